"""What the tests of EM share."""

import numpy as np
import pytest

from tallybayes.estimation.em import em_loop
from tallybayes.models.classification import class_em


@pytest.fixture
def climbs(monkeypatch):
    """The parameters at every step of every climb there was, the one that ended highest last."""
    found, tops, climb = [], [], em_loop.run_em

    def recorded(start, maximize, expect, **options):
        steps = []

        def noted(expected):
            parameters, density = maximize(expected)
            steps.append(parameters)
            return parameters, density

        done = climb(start, noted, expect, **options)
        found.insert(len(found) if done.history[-1] > max(tops, default=-np.inf) else 0, steps)
        tops.append(done.history[-1])
        return done

    monkeypatch.setattr(em_loop, "run_em", recorded)
    monkeypatch.setattr(class_em, "is_supported", lambda *_: False)  # compiled code, which shows no steps
    return found
