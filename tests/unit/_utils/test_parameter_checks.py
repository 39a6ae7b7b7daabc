"""Words of settings: what is near is suggested, what is not a word passes only where something else may stand."""

import pytest

import tallybayes as tb
from tallybayes._utils.parameter_checks import StringOptions, check_count
from tallybayes.errors import DataError, EstimateError

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


def test_whole_numbers_have_a_largest_value():
    assert check_count("n", 2**53) == 2**53
    with pytest.raises(DataError, match=r"n is 10+; expected a whole number of at least 1, at most 2\*\*53\."):
        check_count("n", 10**30)
    with pytest.raises(DataError, match=r"n is -1; expected a whole number of at least 1\."):
        check_count("n", -1)


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda n: tb.Mixture(n).fit([[0.0], [1.0]]), "n_components"),
        (lambda n: tb.Mixture(2, n_init=n).fit([[0.0], [1.0]]), "n_init"),
        (lambda n: tb.CountForest(n_trees=n).fit([[0.0], [1.0]], [0, 1]), "n_trees"),
        (lambda n: tb.CountBoosting(max_trees=n).fit([[0.0], [1.0]], [0, 1]), "max_trees"),
        (lambda n: tb.CountBoosting(random_state=n).fit([[0.0], [1.0]], [0, 1]), "random_state"),
        (lambda n: tb.learning_curves(tb.NaiveBayes(), [[0.0]] * 9, [0, 1, 1] * 3, n_repeats=n), "n_repeats"),
        (lambda n: tb.NaiveBayes().fit([[0.0], [1.0]], [0, 1]).sample(n), "n"),
        (lambda n: tb.Beta(1, 1).sample(n), "n"),
        (lambda n: tb.Binomial(n), "n of Binomial"),
        (tb.set_threads, "the number of threads"),
        (lambda n: tb.Beta(n**20, 1), "alpha of Beta"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_huge_numbers_are_rejected(call, name):
    with pytest.raises((DataError, EstimateError, tb.PriorError), match=f"^{name} is 10+.*; expected"):
        call(10**30)
