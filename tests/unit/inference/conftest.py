"""What the tests of EM share."""

import pytest

from tallybayes.inference import em


@pytest.fixture
def climbs(monkeypatch):
    """The parameters at every step of every climb there was."""
    found, climb = [], em.climb

    def recorded(start, maximise, expect, **options):
        steps = []

        def noted(expected):
            parameters, density = maximise(expected)
            steps.append(parameters)
            return parameters, density

        found.append(steps)
        return climb(start, noted, expect, **options)

    monkeypatch.setattr(em, "climb", recorded)
    return found
