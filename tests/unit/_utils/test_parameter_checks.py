"""Words of settings: what is near is suggested, what is not a word passes only where something else may stand."""

import pytest

from tallybayes._utils.parameter_checks import StringOptions
from tallybayes.errors import EstimateError

ESTIMATES = StringOptions(("mle", "unbiased", "map", "bayes"))
COVARIANCES = StringOptions(("full", "tied", "diagonal", "tied_diagonal", "spherical", "tied_spherical"))
CLASS_PRIOR = StringOptions(("uniform", "frequency"), ("probabilities by class", "None"))


@pytest.mark.parametrize(
    ("words", "found", "meant"),
    [
        (ESTIMATES, "ml", "mle"),
        (ESTIMATES, "MAP", "map"),
        (ESTIMATES, "Bayesian", "bayes"),
        (ESTIMATES, "maximum likelihood", "mle"),
        (ESTIMATES, "unbiassed", "unbiased"),
        (COVARIANCES, "diag", "diagonal"),
        (COVARIANCES, "tied-diagonal", "tied_diagonal"),
        (COVARIANCES, "LDA", "tied"),
        (COVARIANCES, "qda", "full"),
        (CLASS_PRIOR, "Uniform", "uniform"),
        (CLASS_PRIOR, "frequencies", "frequency"),
    ],
)
def test_near_misses_are_answered(words, found, meant):
    with pytest.raises(EstimateError, match=f"setting is {found!r}; expected .*\n.*Did you mean {meant!r}"):
        words.check("setting", found)


def test_what_is_far_is_not_guessed():
    with pytest.raises(EstimateError) as caught:
        ESTIMATES.check("estimate", "whatever")
    assert str(caught.value) == "estimate is 'whatever'; expected 'mle', 'unbiased', 'map' or 'bayes'."


def test_what_else_may_stand_there():
    CLASS_PRIOR.check("class_prior", None)
    CLASS_PRIOR.check("class_prior", [0.5, 0.5])
    StringOptions(("em", None)).check("unlabeled", None)
    for found in (True, 3, None, ["mle"]):
        with pytest.raises(EstimateError, match="expected 'mle'"):
            ESTIMATES.check("estimate", found)
    with pytest.raises(EstimateError, match="expected 'uniform', 'frequency', probabilities by class or None"):
        CLASS_PRIOR.check("class_prior", "what")
