"""Every attribute of every model has a value or is an AttributeError: `dir`, `hasattr` and notebooks never fail."""

import copy
import inspect
import pickle
import tracemalloc

import numpy as np
import pytest

import tallybayes as tb
from tallybayes.errors import EstimateError, NotLinearError, PriorError, StatisticsError, TallybayesError

X = np.random.default_rng(0).normal(size=(12, 2))
ROWS = {"spread": X, "constant": np.zeros((12, 2)), "one row a class": X[:3]}
CLASSES = np.array([0, 1, 2] * 4)
ESTIMATES = ("mle", "map", "bayes", "unbiased")
COVARIANCES = ("full", "tied", "diagonal", "tied_diagonal", "spherical", "tied_spherical")

MAKERS = {
    "NaiveBayes": lambda x, y, estimate: tb.NaiveBayes(estimate=estimate).fit(x, y),
    "NaiveBayes with a class without rows": lambda x, y, estimate: tb.NaiveBayes(estimate=estimate).partial_fit(
        x, y, classes=[0, 1, 2, 3]
    ),
    "NaiveBayes of labels": lambda x, y, estimate: tb.NaiveBayes(tb.Categorical(), estimate=estimate).fit(
        np.round(x), y
    ),
    **{
        f"GaussianDiscriminant {covariance}": lambda x, y, estimate, covariance=covariance: tb.GaussianDiscriminant(
            covariance=covariance, estimate=estimate
        ).fit(x, y)
        for covariance in COVARIANCES
    },
    "AveragedOneDependence": lambda x, y, estimate: tb.AveragedOneDependence().fit(x, y),
    "TreeAugmentedNaiveBayes": lambda x, y, estimate: tb.TreeAugmentedNaiveBayes().fit(x, y),
    "AutoClassifier": lambda x, y, estimate: tb.AutoClassifier(folds=2).fit(x, y),
    "NearestClassMean": lambda x, y, estimate: tb.NearestClassMean().fit(x, y),
    "NearestClassMean euclidean": lambda x, y, estimate: tb.NearestClassMean(metric="euclidean").fit(x, y),
    "NearestClassMean callable": lambda x, y, estimate: tb.NearestClassMean(metric=np.subtract).fit(x, y),
    "Mixture": lambda x, y, estimate: tb.Mixture(2, estimate=estimate, random_state=0).fit(x),
    "HiddenMarkovModel": lambda x, y, estimate: tb.HiddenMarkovModel(estimate=estimate).fit([x], [y]),
    "HiddenMarkovModel by EM": lambda x, y, estimate: tb.HiddenMarkovModel(
        n_states=2, estimate=estimate, random_state=0
    ).fit([x]),
    "BayesianNetwork": lambda x, y, estimate: tb.BayesianNetwork({"b": ["a"], "c": ["a"]}, estimate=estimate).fit(
        {"a": y, "b": y % 2, "c": x[:, 0]}
    ),
}


def look_at(model) -> set[str]:
    """Ask for every attribute there may be; the names of those that are not there."""
    absent = set()
    for name in object.__dir__(model):
        try:
            getattr(model, name)
        except AttributeError:
            absent.add(name)
    assert absent.isdisjoint(dir(model))
    inspect.getmembers(model)
    assert not {name for name in absent if hasattr(model, name)}
    return absent


def show(model) -> None:
    """Show it as a notebook does: scikit-learn's diagram and, where it is fitted, what it consists of."""
    shown = model._repr_mimebundle_()
    assert shown["text/plain"] == repr(model)
    assert "sk-top-container" in shown["text/html"]
    below = shown["text/html"].rsplit("</div>", 1)[1]
    assert ("</table>" in below or "</pre>" in below) == model.__sklearn_is_fitted__()


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("estimate", ESTIMATES)
@pytest.mark.parametrize("name", MAKERS)
def test_every_attribute_has_a_value_or_is_not_there(name, estimate, rows):
    try:
        model = MAKERS[name](ROWS[rows], CLASSES[: len(ROWS[rows])], estimate)
    except TallybayesError:  # EM that cannot climb, an estimate that the family does not have
        assert name in ("Mixture", "HiddenMarkovModel by EM") or estimate == "unbiased"
        return
    absent = look_at(model)
    show(model)
    for other in (
        copy.copy(model),
        copy.deepcopy(model),
        *([] if "callable" in name else [pickle.loads(pickle.dumps(model))]),
    ):
        assert look_at(other) == absent


def test_models_that_are_not_fitted_and_models_of_strangers(tmp_path):
    for model in (
        tb.NaiveBayes(),
        tb.GaussianDiscriminant(),
        tb.NearestClassMean(),
        tb.Mixture(2),
        tb.HiddenMarkovModel(),
        tb.BayesianNetwork({"b": ["a"]}),
        tb.NaiveBayes(estimate="nope", prior="nope", unseen="nope"),
    ):
        look_at(model)
        show(model)
    tb.BayesianNetwork({"b": ["a"]}).fit({"a": [0, 1], "b": [1, 0]}).to_bif(tmp_path / "x.bif")
    model = tb.BayesianNetwork.from_bif(tmp_path / "x.bif")
    assert not hasattr(model, "bic_")
    look_at(model)
    show(model)


GIVEN = {
    "NaiveBayes": lambda: tb.NaiveBayes.from_parameters(
        {"x": {"a": {"u": 0.2, "v": 0.8}, "b": {"u": 0.5, "v": 0.5}}}, {"a": 0.5, "b": 0.5}
    ),
    "GaussianDiscriminant": lambda: tb.GaussianDiscriminant.from_parameters([[0, 0], [1, 2]], [np.eye(2), np.eye(2)]),
    "Mixture": lambda: tb.Mixture.from_parameters(
        {0: [{"mean": 0, "variance": 1}, {"mean": 3, "variance": 1}]}, [0.5, 0.5]
    ),
    "HiddenMarkovModel": lambda: tb.HiddenMarkovModel.from_tables(
        {"hot": 0.8, "cold": 0.2},
        {"hot": {"hot": 0.6, "cold": 0.4}, "cold": {"hot": 0.5, "cold": 0.5}},
        {"hot": {1: 0.2, 2: 0.8}, "cold": {1: 0.5, 2: 0.5}},
    ),
    "BayesianNetwork": lambda: tb.BayesianNetwork.from_tables(
        {"fire": []}, {"fire": [False, True]}, {"fire": [0.9, 0.1]}
    ),
}


@pytest.mark.parametrize("name", GIVEN)
def test_models_of_given_parameters(name, tmp_path):
    model = GIVEN[name]()
    absent = look_at(model)
    assert "bic_" in absent  # which needs counts
    show(model)
    model.save(tmp_path / "model")
    assert look_at(tb.load(tmp_path / "model")) == absent


FORGET = {
    "NaiveBayes": lambda estimate: (tb.NaiveBayes(estimate=estimate), (X, CLASSES)),
    "NaiveBayes of labels": lambda estimate: (tb.NaiveBayes(tb.Categorical(), estimate=estimate), (X.round(), CLASSES)),
    **{
        f"GaussianDiscriminant {covariance}": lambda estimate, covariance=covariance: (
            tb.GaussianDiscriminant(covariance=covariance, estimate=estimate),
            (X, CLASSES),
        )
        for covariance in COVARIANCES
    },
    "NearestClassMean": lambda estimate: (tb.NearestClassMean(), (X, CLASSES)),
    "AveragedOneDependence": lambda estimate: (tb.AveragedOneDependence(), (X.round().astype(str), CLASSES)),
    "TreeAugmentedNaiveBayes": lambda estimate: (tb.TreeAugmentedNaiveBayes(), (X.round().astype(str), CLASSES)),
    "HiddenMarkovModel": lambda estimate: (tb.HiddenMarkovModel(estimate=estimate), ([X], [CLASSES])),
    "HiddenMarkovModel of zeros": lambda estimate: (tb.HiddenMarkovModel(estimate=estimate), ([0 * X], [CLASSES])),
    "BayesianNetwork": lambda estimate: (
        tb.BayesianNetwork({"b": ["a"], "c": ["a"]}, estimate=estimate),
        ({"a": CLASSES, "b": CLASSES % 2, "c": X[:, 0]},),
    ),
}


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("estimate", ["bayes", "mle"])
@pytest.mark.parametrize("name", FORGET)
def test_models_that_have_forgotten_everything_and_models_from_files(name, estimate, tmp_path):
    model, rows = FORGET[name](estimate)
    for found in (model.fit(*rows), model.forget(*rows)):
        absent = look_at(found)
        show(found)
        found.save(tmp_path / "model")
        loaded = tb.load(tmp_path / "model")
        assert look_at(loaded) == absent
        show(loaded)


def test_the_error_is_still_its_own_and_says_why():
    model = tb.GaussianDiscriminant().fit(X, CLASSES)
    with pytest.raises(NotLinearError, match="linear only with a tied covariance") as caught:
        _ = model.discriminant_functions_
    assert isinstance(caught.value, AttributeError)
    assert type(caught.value).__name__ == "NotLinearError"
    again = pickle.loads(pickle.dumps(caught.value))
    assert isinstance(again, NotLinearError)
    assert isinstance(again, AttributeError)
    assert str(again) == str(caught.value)
    with pytest.raises(EstimateError, match="variance of column 0 in class 0 is 0"):
        _ = tb.NaiveBayes(estimate="mle").fit(ROWS["constant"], CLASSES).constant_columns_


# ---- Settings that do not fit -----------------------------------------------------------------------------------


NAMED = {
    "NaiveBayes": lambda prior: tb.NaiveBayes(prior=prior).fit({"height": X[:, 0], "width": X[:, 1]}, CLASSES),
    "NaiveBayes under mle": lambda prior: tb.NaiveBayes(prior=prior, estimate="mle").fit(
        {"height": X[:, 0], "width": X[:, 1]}, CLASSES
    ),
    "NaiveBayes by EM": lambda prior: tb.NaiveBayes(prior=prior, unlabeled="em").fit(
        {"height": X[:, 0], "width": X[:, 1]}, [None, *CLASSES[1:].tolist()]
    ),
    "Mixture": lambda prior: tb.Mixture(2, prior=prior).fit({"height": X[:, 0], "width": X[:, 1]}),
    "HiddenMarkovModel": lambda prior: tb.HiddenMarkovModel(prior={"emission": prior}).fit(
        [{"height": X[:, 0], "width": X[:, 1]}], [CLASSES]
    ),
    "HiddenMarkovModel by EM": lambda prior: tb.HiddenMarkovModel(2, prior={"emission": prior}).fit(
        [{"height": X[:, 0], "width": X[:, 1]}]
    ),
    "BayesianNetwork": lambda prior: tb.BayesianNetwork({"height": [], "width": []}, prior=prior).fit(
        {"height": X[:, 0], "width": X[:, 1]}
    ),
    "a tally": lambda prior: tb.NaiveBayes(prior=prior).fit_tally(
        tb.NaiveBayes().fit({"height": X[:, 0], "width": X[:, 1]}, CLASSES).tally_
    ),
}


@pytest.mark.parametrize("name", NAMED)
def test_a_prior_for_a_column_that_is_not_there_is_refused_when_fitting(name):
    belief = tb.NormalInverseGamma(0, 1, 2, 1)
    with pytest.raises(PriorError, match=r"has unknown columns 'hieght' .*known: .*'height', 'width'"):
        NAMED[name]({"hieght": belief, "width": belief})
    NAMED[name]({"height": belief, "width": belief})


def test_a_discriminant_has_one_prior_for_all_columns():
    with pytest.raises(PriorError, match="has unknown columns 'nope'"):
        tb.GaussianDiscriminant(prior={"nope": tb.NormalInverseGamma(0, 1, 2, 1)}).fit(X, CLASSES)


def test_a_refused_fit_changes_nothing():
    model = tb.NaiveBayes().fit({"height": X[:, 0]}, CLASSES)
    before = model.tally_
    model.prior = {"nope": tb.NormalInverseGamma(0, 1, 2, 1)}
    with pytest.raises(PriorError, match="'nope'"):
        model.fit({"height": X[:, 1]}, CLASSES)
    with pytest.raises(PriorError, match="'nope'"):
        model.fit_tally(before)
    assert model.tally_ is before


def test_models_of_other_settings_do_not_add_and_the_message_is_short():
    rows = {f"column {k}": X[:, k % 2] for k in range(300)}
    first = tb.NaiveBayes({name: tb.Gaussian() for name in rows}).fit(rows, CLASSES)
    second = tb.NaiveBayes({name: tb.LogNormal() for name in rows}, estimate="map").fit(
        rows | {name: np.exp(c) for name, c in rows.items()}, CLASSES
    )
    with pytest.raises(
        StatisticsError, match=r"parameters differ \(columns=.*estimate='bayes' and columns=.*estimate='map'\)"
    ) as caught:
        _ = first + second
    assert len(str(caught.value)) < 400
    assert "unseen" not in str(caught.value)
    nodes = {f"node {k}": [] for k in range(200)}
    data = {name: [0, 1] for name in nodes}
    one = tb.BayesianNetwork(nodes).fit(data).tally_
    two = tb.BayesianNetwork(nodes | {"node 7": ["node 8"]}).fit(data).tally_
    with pytest.raises(StatisticsError, match="the factors differ") as caught:
        _ = one + two
    assert "p(node 7 | node 8)" in str(caught.value)
    assert len(str(caught.value)) < 600


def test_displays_of_many_columns_take_memory_of_their_number_not_its_square():
    model = tb.NaiveBayes().fit(np.random.default_rng(0).normal(size=(6, 2000)), [0, 1] * 3)
    tracemalloc.start()
    model._repr_html_()
    assert "means_" in dir(model)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 32e6  # the covariances alone are 64 MB
    small = tb.NaiveBayes().fit(X, CLASSES)
    assert {"means_", "covariances_"} <= set(dir(small))
