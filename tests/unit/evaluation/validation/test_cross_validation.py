"""Held-out scores by subtraction are those of refitting: every family, covariance and estimate, and the edges."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_iris

import tallybayes as tb

ESTIMATES = ["bayes", "map", "mle", "unbiased"]
COVARIANCES = ["full", "tied", "diagonal", "tied_diagonal", "spherical", "tied_spherical"]
N_ROWS = 60


def make_rows(kind):
    """Rows of a kind that a family takes, three classes, the last one small."""
    rng = np.random.default_rng(5)
    y = np.repeat([0, 1, 2], [28, 24, 8])
    rate = np.array([1.0, 2.0, 4.0])[y][:, None] * np.array([0.5, 1.0, 2.0, 1.0])
    counts = rng.poisson(rate)
    if kind == "labels":
        return counts.clip(0, 3), y
    if kind == "binary":
        return (counts > 1).astype(int), y
    if kind == "counts":
        return counts, y
    if kind == "sparse":
        return sp.csr_array(counts), y
    measured = rng.normal(rate, 1 + y[:, None] / 3)
    if kind == "positive":
        return np.exp(measured / 3), y
    if kind == "gaps":
        measured[rng.random(measured.shape) < 0.2] = np.nan
    return measured, y


FAMILIES = [
    (tb.Bernoulli(), "binary"),
    (tb.Categorical(levels=(0, 1, 2, 3)), "labels"),
    (tb.Poisson(), "counts"),
    (tb.Multinomial(), "counts"),
    (tb.Multinomial(), "sparse"),
    (tb.DirichletMultinomial(), "counts"),
    (tb.Gaussian(), "measured"),
    (tb.Gaussian(), "gaps"),
    (tb.TiedGaussian(), "gaps"),
    (tb.SphericalGaussian(), "gaps"),
    (tb.TiedSphericalGaussian(), "gaps"),
    (tb.LogNormal(), "positive"),
    (tb.Binned((-10.0, 0.0, 1.0, 3.0, 20.0)), "gaps"),
]
WEIGHTS = [None, "whole", "fractions"]


def make_weight(kind, n_rows):
    rng = np.random.default_rng(11)
    return {
        None: None,
        "whole": rng.integers(1, 4, n_rows).astype(float),
        "fractions": rng.random(n_rows) + 0.1,
    }[kind]


def refit(model, whole, X, y, weight, kept):
    """The model fitted on some rows, with the prior that all rows gave."""
    other = clone(model)
    if model.estimate in ("bayes", "map"):
        (prior,) = whole.prior_.values()
        other.set_params(prior=prior)
    return other.fit(X[kept], y[kept], None if weight is None else weight[kept])


def check_leave_one_out(model, X, y, weight, tolerance=1e-9):
    found = tb.leave_one_out(model, X, y, sample_weight=weight)
    for row in range(0, X.shape[0], 7):
        kept = np.arange(X.shape[0]) != row
        expected = refit(model, found.model, X, y, weight, kept)
        np.testing.assert_allclose(
            found.log_proba[row], expected.predict_log_proba(X[[row]])[0], rtol=tolerance, atol=tolerance
        )
        np.testing.assert_allclose(
            found.log_density[row], expected.score_samples(X[[row]])[0], rtol=tolerance, atol=tolerance
        )


def check_folds(model, X, y, weight, tolerance=1e-9):
    found = tb.cross_validate(model, X, y, folds=4, sample_weight=weight)
    for fold in range(4):
        held = np.flatnonzero(found.fold == fold)
        expected = refit(model, found.model, X, y, weight, found.fold != fold)
        np.testing.assert_allclose(
            found.log_proba[held], expected.predict_log_proba(X[held]), rtol=tolerance, atol=tolerance
        )
        np.testing.assert_allclose(found.log_density[held], expected.score_samples(X[held]), rtol=1e-9, atol=1e-9)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:row")  # under maximum likelihood some rows are impossible without themselves
@pytest.mark.parametrize("weight", WEIGHTS, ids=str)
@pytest.mark.parametrize("estimate", ESTIMATES)
@pytest.mark.parametrize("place", range(len(FAMILIES)))
def test_naive_bayes_is_scored_as_if_refitted(place, estimate, weight):
    family, kind = FAMILIES[place]
    X, y = make_rows(kind)
    model = tb.NaiveBayes(family, estimate=estimate)
    check_leave_one_out(model, X, y, make_weight(weight, len(y)))
    check_folds(model, X, y, make_weight(weight, len(y)))


@pytest.mark.slow
@pytest.mark.parametrize("weight", WEIGHTS, ids=str)
@pytest.mark.parametrize("estimate", ESTIMATES)
@pytest.mark.parametrize("covariance", COVARIANCES)
def test_discriminants_are_scored_as_if_refitted(covariance, estimate, weight):
    X, y = make_rows("measured")
    if estimate in ("mle", "unbiased"):  # enough rows for every covariance, whichever are held out
        X, y = X[y < 2], y[y < 2]
    model = tb.GaussianDiscriminant(covariance, estimate=estimate)
    check_leave_one_out(model, X, y, make_weight(weight, len(y)))
    check_folds(model, X, y, make_weight(weight, len(y)))


@pytest.mark.slow
@pytest.mark.parametrize("shrinkage", [0.3, "auto"], ids=str)
@pytest.mark.parametrize("covariance", ["full", "tied"])
def test_shrunk_covariances_are_scored_as_if_refitted(covariance, shrinkage):
    X, y = make_rows("measured")
    model = tb.GaussianDiscriminant(covariance, shrinkage=shrinkage)
    check_leave_one_out(model, X, y, None)
    check_folds(model, X, y, None)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("unseen", ["missing", "smooth"])
def test_mixed_columns_are_scored_as_if_refitted(unseen):
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, N_ROWS)
    data = pd.DataFrame(
        {
            "color": rng.choice(["red", "green", "blue"], N_ROWS),
            "size": np.where(rng.random(N_ROWS) < 0.2, np.nan, rng.normal(y, 1.0)),
            "visits": rng.poisson(1 + y),
            "class": np.where(y, "yes", "no"),
        }
    )
    data.loc[::9, "color"] = None
    columns = {
        "color": tb.Categorical(levels=("red", "green", "blue")),
        "size": tb.TiedGaussian(),
        "visits": tb.Poisson(),
    }
    model = tb.NaiveBayes(columns, prior=1 if unseen == "smooth" else None, unseen=unseen)
    found = tb.leave_one_out(model, data, "class")
    for row in range(0, N_ROWS, 5):
        rest = data.drop(index=row)
        prior = found.model.prior_
        expected = clone(model).set_params(prior=prior).fit(rest, "class")
        np.testing.assert_allclose(
            found.log_proba[row], expected.predict_log_proba(data.iloc[[row]])[0], rtol=1e-10, atol=1e-10
        )


# ---- Rows that closed forms are not to be trusted with -------------------------------------------------------------


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_a_row_that_is_nearly_all_of_the_spread(covariance):
    X, y = load_iris(return_X_y=True)
    X = X[::3].copy()
    X[4, 2] = 1e8
    check_one(tb.GaussianDiscriminant(covariance), X, y[::3], 4, 1e-7)


def check_one(model, X, y, row, tolerance):
    found = tb.leave_one_out(model, X, y)
    expected = refit(model, found.model, X, y, None, np.arange(len(y)) != row)
    np.testing.assert_allclose(
        found.log_proba[row], expected.predict_log_proba(X[[row]])[0], rtol=tolerance, atol=tolerance
    )


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("covariance", COVARIANCES)
def test_a_huge_offset(covariance):
    X, y = load_iris(return_X_y=True)
    near = tb.leave_one_out(tb.GaussianDiscriminant(covariance), X, y)
    far = tb.leave_one_out(tb.GaussianDiscriminant(covariance), np.round(X * 1024) / 1024 + 2.0**30, y)
    np.testing.assert_allclose(np.exp(near.log_proba), np.exp(far.log_proba), atol=0.02)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("covariance", COVARIANCES)
def test_a_constant_column_says_nothing(covariance):
    X, y = load_iris(return_X_y=True)
    wide = np.column_stack([X, np.full(len(y), 3.0)])
    found = tb.leave_one_out(tb.GaussianDiscriminant(covariance), wide, y)
    assert found.model.constant_columns_ == [4]
    # Only under spherical covariances do the constant cells still count among those that share a variance.
    if "spherical" not in covariance and covariance not in ("full", "tied"):
        plain = tb.leave_one_out(tb.GaussianDiscriminant(covariance), X, y)
        np.testing.assert_allclose(found.log_proba, plain.log_proba, rtol=1e-9, atol=1e-9)
    folds = tb.cross_validate(tb.GaussianDiscriminant(covariance), wide, y, folds=3)
    assert np.isfinite(folds.log_loss.value)


def test_a_class_of_one_row_cannot_be_foreseen():
    X, y = load_iris(return_X_y=True)
    y = np.where(np.arange(len(y)) == 0, 9, y)
    for model in (tb.NaiveBayes(), tb.GaussianDiscriminant("tied")):
        found = tb.leave_one_out(clone(model).set_params(class_prior="frequency"), X, y)
        assert np.isneginf(found.log_proba[0, -1])
        assert np.isinf(found.log_loss.value)
        assert np.isfinite(found.log_proba[1:, :-1]).all()
        for class_prior in ("uniform", None):
            found = tb.leave_one_out(clone(model).set_params(class_prior=class_prior), X, y)
            assert np.isfinite(found.log_loss.value)


def test_a_level_seen_once_is_impossible_under_maximum_likelihood():
    data = {"x": ["a", "b", "a", "a", "b", "c"], "y": [0, 0, 0, 1, 1, 1]}
    with pytest.warns(UserWarning, match="row 5 is impossible in every class when it is held out"):
        found = tb.leave_one_out(tb.NaiveBayes(estimate="mle"), data, "y")
    assert np.isneginf(found.log_density[5])  # nobody else has a c
    np.testing.assert_allclose(np.exp(found.log_proba[5]), [3 / 5, 2 / 5])  # so only the class prior is left
    assert np.isfinite(tb.leave_one_out(tb.NaiveBayes(), data, "y").log_loss.value)


def test_one_class_and_two_rows():
    found = tb.leave_one_out(tb.NaiveBayes(), np.array([[1.0], [2.0]]), ["a", "a"])
    np.testing.assert_array_equal(found.log_proba, np.zeros((2, 1)))
    alone = tb.leave_one_out(tb.NaiveBayes(class_prior="frequency"), np.array([[1.0], [2.0]]), ["a", "b"])
    np.testing.assert_array_equal(np.exp(alone.log_proba), [[0, 1], [1, 0]])


def test_rows_without_weight_are_scored_by_all_the_others_and_count_for_nothing():
    X, y = make_rows("measured")
    weight = np.where(np.arange(len(y)) % 5 == 0, 0.0, 1.0)
    found = tb.leave_one_out(tb.NaiveBayes(), X, y, sample_weight=weight)
    whole = tb.NaiveBayes().fit(X, y, weight)
    np.testing.assert_allclose(found.log_proba[::5], whole.predict_log_proba(X[::5]), rtol=1e-10, atol=1e-12)
    kept = weight > 0
    same = tb.leave_one_out(tb.NaiveBayes(), X[kept], y[kept])
    np.testing.assert_allclose(found.log_loss.value, same.log_loss.value, rtol=1e-9)


# ---- Folds ---------------------------------------------------------------------------------------------------------


def test_folds_are_even_in_rows_and_classes():
    y = np.repeat([0, 1, 2], [100, 53, 7])
    found = tb.cross_validate(tb.NaiveBayes(), np.random.default_rng(0).normal(size=(160, 2)), y, folds=5)
    table = np.array([[np.sum((found.fold == k) & (y == c)) for c in range(3)] for k in range(5)])
    assert (np.ptp(table, axis=0) <= 1).all()
    assert np.ptp(table.sum(axis=1)) == 0


def test_the_same_seed_deals_the_same_folds():
    X, y = load_iris(return_X_y=True)
    folds = [tb.cross_validate(tb.NaiveBayes(), X, y, random_state=seed).fold for seed in (0, 0, 1)]
    assert (folds[0] == folds[1]).all()
    assert (folds[0] != folds[2]).any()


def test_groups_stay_together():
    X, y = load_iris(return_X_y=True)
    groups = np.random.default_rng(0).integers(0, 20, len(y))
    found = tb.cross_validate(tb.NaiveBayes(), X, y, folds=4, groups=groups)
    assert all(len(set(found.fold[groups == g])) == 1 for g in range(20))
    assert np.bincount(found.fold).min() > 25


def test_duplicated_rows_flatter_unless_their_group_is_held_out():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(40, 30)), rng.integers(0, 2, 40)  # nothing to be learned
    X, y, patient = np.repeat(X, 5, axis=0), np.repeat(y, 5), np.repeat(np.arange(40), 5)
    model = tb.GaussianDiscriminant("tied")
    assert tb.cross_validate(model, X, y).accuracy.value > 0.75
    assert tb.cross_validate(model, X, y, groups=patient).accuracy.value < 0.65


def test_order_predicts_every_stretch_from_those_before():
    X, y = make_rows("measured")
    when = np.random.default_rng(1).integers(0, 30, len(y))
    found = tb.cross_validate(tb.NaiveBayes(), X, y, folds=3, order=when)
    (prior,) = found.model.prior_.values()
    assert (found.fold == -1).sum() > 5
    assert len(found.rows) == (found.fold >= 0).sum()
    for fold in range(3):
        held = np.flatnonzero(found.fold == fold)
        before = when < when[held].min()
        assert (before == (found.fold < fold)).all()
        expected = tb.NaiveBayes(prior=prior).fit(X[before], y[before])
        shown = found.log_proba[np.isin(found.rows, held)]
        np.testing.assert_allclose(
            shown[:, np.isin(found.classes, expected.classes_)], expected.predict_log_proba(X[held]), atol=1e-9
        )


def test_columns_may_be_named_and_are_no_features():
    X, y = load_iris(return_X_y=True)
    data = pd.DataFrame(X, columns=list("abcd")).assign(kind=y, patient=np.arange(150) // 3, weight=1.0)
    found = tb.cross_validate(tb.NaiveBayes(), data, "kind", groups="patient", sample_weight="weight")
    assert [f.columns for f in found.model.tally_.factors] == [("kind",), ("a", "b", "c", "d")]
    plain = tb.cross_validate(tb.NaiveBayes(), X, y, groups=np.arange(150) // 3)
    np.testing.assert_allclose(found.log_proba, plain.log_proba, atol=1e-12)


def test_own_folds():
    X, y = load_iris(return_X_y=True)
    found = tb.cross_validate(tb.NaiveBayes(), X, y, folds=np.where(np.arange(150) % 2, "odd", "even"))
    expected = tb.NaiveBayes(prior=next(iter(found.model.prior_.values()))).fit(X[1::2], y[1::2])
    np.testing.assert_allclose(found.log_proba[::2], expected.predict_log_proba(X[::2]), atol=1e-10)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"folds": 1}, "from 2 to 150"),
        ({"folds": 151}, "leave_one_out"),
        ({"folds": 2.5}, "whole number"),
        ({"groups": np.zeros(150)}, "number of groups"),
        ({"groups": np.arange(150) % 3}, "Pass folds=3, or fewer"),
        ({"groups": [None, *range(149)]}, "the entry of groups for row 0 is missing"),
        ({"groups": np.zeros(10)}, "one for every row"),
        ({"order": np.full(150, np.nan)}, "missing"),
        ({"order": np.arange(150), "groups": np.arange(150)}, "expected one of them"),
        ({"candidates": {"estimate": "map"}}, "a list of values"),
        ({"candidates": []}, "at least one"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_be_is_refused(options, words):
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match=words):
        tb.cross_validate(tb.NaiveBayes(), X, y, **options)


def test_another_model_is_refused():
    from sklearn.naive_bayes import GaussianNB

    with pytest.raises(ValueError, match="GaussianNB; expected a model of this package"):
        tb.leave_one_out(GaussianNB(), np.eye(3), [0, 1, 2])


@pytest.mark.parametrize("evaluate", [tb.cross_validate, tb.evaluate])
def test_several_models_or_a_class(evaluate):
    with pytest.raises(tb.DataError, match=r"model is dict; .*\n    Pass one model at a time; candidates="):
        evaluate({"a": tb.NaiveBayes()}, np.eye(3), [0, 1, 2])
    with pytest.raises(tb.DataError, match=r"model is type; .*\n    Pass an instance: NaiveBayes\(\.\.\.\)"):
        evaluate(tb.NaiveBayes, np.eye(3), [0, 1, 2])


# ---- Candidates ----------------------------------------------------------------------------------------------------


def test_candidates_share_one_count():
    X, y = load_iris(return_X_y=True)
    model = tb.GaussianDiscriminant()
    found = tb.cross_validate(model, X, y, candidates={"covariance": ["full", "tied"], "shrinkage": [None, 0.2]})
    assert [r.parameters for r in found][1] == {"covariance": "full", "shrinkage": 0.2}
    for result in found:
        alone = tb.cross_validate(clone(model).set_params(**result.parameters), X, y)
        np.testing.assert_allclose(result.log_proba, alone.log_proba, atol=1e-12)
    assert found.best.log_loss.value == min(result.log_loss.value for result in found)
    assert len(found.to_frame()) == len(found) == 4
    assert "shrinkage" in repr(found)
    assert "excess loss" in repr(found)
    gap = found.excess_loss(found[0])
    assert np.isclose(gap.value, found[0].log_loss.value - found.best.log_loss.value)


def test_candidates_as_a_list_and_priors():
    X, y = make_rows("labels")
    candidates = [{"prior": tb.Dirichlet(a)} for a in (0.1, 1.0, 10.0)]
    found = tb.leave_one_out(tb.NaiveBayes(tb.Categorical()), X, y, candidates=candidates)
    for result in found:
        alone = tb.leave_one_out(tb.NaiveBayes(tb.Categorical(), prior=result.parameters["prior"]), X, y)
        np.testing.assert_allclose(result.log_proba, alone.log_proba, atol=1e-12)


def test_the_result_is_an_evaluation_with_a_model_and_folds():
    X, y = load_iris(return_X_y=True)
    found = tb.cross_validate(tb.NaiveBayes(), X, y, folds=5)
    assert isinstance(found, tb.Evaluation)
    assert found.model.tally_.isclose(tb.NaiveBayes().fit(X, y).tally_)
    by_fold = found.by_fold()
    assert len(by_fold) == 5
    np.testing.assert_allclose(np.average(by_fold["accuracy"], weights=by_fold["weight"]), found.accuracy.value)
    np.testing.assert_allclose(np.average(by_fold["log_loss"], weights=by_fold["weight"]), found.log_loss.value)
