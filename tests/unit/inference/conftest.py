"""What the tests of EM share."""

import pytest

from tallybayes.inference.em import climb
from tallybayes.models import expectation


@pytest.fixture
def climbs(monkeypatch):
    """The parameters at every step of every climb there was."""
    found = []

    def recorded(start, maximise, expect, **options):
        steps = []

        def noted(expected):
            parameters, density = maximise(expected)
            steps.append(parameters)
            return parameters, density

        found.append(steps)
        return climb(start, noted, expect, **options)

    monkeypatch.setattr(expectation, "climb", recorded)
    return found
