"""Decisions cost as little as they can; the class prior of unlabeled rows is the most likely one."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import optimize, sparse
from scipy.special import log_softmax, logsumexp
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import tallybayes as tb
from tallybayes.errors import DataError, EstimateError, LabelError, PriorError
from tallybayes.models.classification.methods.decisions import _maximize_mixing_weights


def three_clouds(n=150, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2])
    X = rng.normal(size=(n, 2)) + np.array([[0.0, 0.0], [1.5, 0.0], [0.0, 1.5]])[np.searchsorted(["a", "b", "c"], y)]
    return X, y


X, Y = three_clouds()
MODEL = tb.NaiveBayes().fit(X, Y)


# ---- decide ----


@pytest.mark.parametrize("estimate", ["bayes", "mle", "map", "unbiased"])
def test_without_costs_the_most_probable_class(estimate):
    for model in (MODEL, tb.GaussianDiscriminant().fit(X, Y)):
        model = model.reestimate(estimate=estimate)
        decided = model.decide(X)
        assert decided.dtype == model.classes_.dtype
        np.testing.assert_array_equal(decided, model.predict(X))


def test_the_least_expected_cost_by_hand():
    rng = np.random.default_rng(1)
    cost = rng.normal(size=(3, 3)) - 2 * np.eye(3)  # gains too
    proba = MODEL.predict_proba(X)
    expected = []
    for p in proba:
        prices = [sum(p[true] * cost[true, decided] for true in range(3)) for decided in range(3)]
        expected.append("abc"[prices.index(min(prices))])
    assert MODEL.decide(X, cost).tolist() == expected
    assert len(set(expected)) > 1
    named = {true: {decided: cost["abc".index(true), "abc".index(decided)] for decided in "cab"} for true in "bca"}
    assert MODEL.decide(X, named).tolist() == expected
    assert MODEL.decide(X, named).dtype == MODEL.classes_.dtype
    frame = pd.DataFrame(named).T.loc[list("cba"), list("bca")]
    assert MODEL.decide(X, frame).tolist() == expected
    shifted = MODEL.decide(X, cost + np.array([[5.0], [-2.0], [1e3]]))  # what a class costs anyhow changes nothing
    np.testing.assert_array_equal(shifted, expected)


def test_uneven_costs_move_the_boundary_to_where_odds_meet_them():
    two = tb.NaiveBayes().fit(X, Y == "a")
    cost = {True: {True: 0, False: 7}, False: {True: 1, False: 0}}
    decided = two.decide(X, cost)
    assert decided.dtype == bool
    p = two.predict_proba(X)[:, 1]
    np.testing.assert_array_equal(decided, 7 * p > 1 - p)


def test_decisions_that_are_no_classes():
    cost = {"a": {"wait": 1, "go": 0}, "b": {"go": 10, "wait": 0}, "c": {"wait": 0.5, "go": 3}}
    decided = MODEL.decide(X, cost)
    prices = MODEL.predict_proba(X) @ np.array([[1, 0], [0, 10], [0.5, 3]])
    np.testing.assert_array_equal(decided, np.array(["wait", "go"])[prices.argmin(axis=1)])
    assert set(decided) == {"wait", "go"}
    mixed = {true: {1: 0, "stop": 1} for true in "abc"}
    found = MODEL.decide(X[:2], mixed)
    assert found.dtype == object
    assert found.tolist() == [1, 1]
    assert MODEL.decide(X[:1], {true: {("go", 2): 0.0} for true in "abc"}).tolist() == [("go", 2)]
    some = {true: {"a": 1, "b": 0} for true in "abc"}  # only some of the classes can be decided
    assert MODEL.decide(X[:2], some).tolist() == ["b", "b"]


def test_abstaining():
    best = MODEL.predict_proba(X).max(axis=1)
    decided = MODEL.decide(X, abstain=0.2)
    assert decided.dtype == object
    assert [label is None for label in decided] == (1 - best > 0.2).tolist()
    assert 0 < sum(label is None for label in decided) < len(X)
    kept = np.array([label is not None for label in decided])
    np.testing.assert_array_equal(decided[kept], MODEL.predict(X)[kept])
    assert isinstance(decided[kept][0], str)
    certain = MODEL.decide(X, abstain=1)
    assert certain.dtype == object
    np.testing.assert_array_equal(certain, MODEL.predict(X))
    assert MODEL.decide(X, abstain=-1).tolist() == [None] * len(X)
    cost = np.array([[0, 1, 4], [2, 0, 1], [1, 1, 0]])
    prices = MODEL.predict_proba(X) @ cost
    expected = np.where(prices.min(axis=1) > 0.3, None, np.array(list("abc"), dtype=object)[prices.argmin(axis=1)])
    assert MODEL.decide(X, cost, abstain=0.3).tolist() == expected.tolist()
    sure = tb.NaiveBayes().fit(X, ["only"] * len(X))
    assert sure.decide(X[:1], abstain=0).tolist() == ["only"]  # a tie: deciding costs no more


def test_ties_go_to_the_first():
    even = MODEL.reestimate(class_prior="uniform")
    nothing = [[np.nan, np.nan]]
    assert even.decide(nothing).tolist() == ["a"]
    assert even.decide(nothing, {true: {"z": 1, "y": 1} for true in "abc"}).tolist() == ["z"]


def test_the_class_prior_where_decisions_are_taken():
    shares = {"a": 0.01, "b": 0.01, "c": 0.98}
    np.testing.assert_array_equal(
        MODEL.decide(X, class_prior=shares), MODEL.classes_[MODEL.predict_proba(X, shares).argmax(axis=1)]
    )
    assert (MODEL.decide(X, class_prior=shares) != MODEL.decide(X)).any()
    uneven = np.array([[0.0, 1, 1], [1, 0, 1], [1, 1, 0]]) * 3 * np.array([[0.01], [0.01], [0.98]])
    uniform = MODEL.reestimate(class_prior="uniform")  # costs and shares weigh alike
    np.testing.assert_array_equal(uniform.decide(X, uneven), uniform.decide(X, class_prior=shares))


def test_a_row_impossible_in_every_class_is_decided_by_the_class_prior():
    model = tb.NaiveBayes(tb.Categorical(levels=("x", "y", "z")), estimate="mle").fit([["x"], ["y"], ["y"]], [0, 1, 1])
    with pytest.warns(UserWarning, match="impossible"):
        assert model.decide([["z"]]).tolist() == [1]
    with pytest.warns(UserWarning, match="impossible"):
        assert model.decide([["z"]], [[0, 9], [1, 0]]).tolist() == [0]


@pytest.mark.parametrize(
    ("cost", "match"),
    [
        (np.zeros((2, 3)), r"shape \(2, 3\)"),
        (np.zeros(3), r"shape \(3,\)"),
        ([[0, 1, np.nan], [1, 0, 1], [1, 1, 0]], "cost of 'c' where the class is 'a' is nan"),
        ([[0, 1, 1], [np.inf, 0, 1], [1, 1, 0]], "cost of 'a' where the class is 'b' is inf"),
        ("zero-one", "cost is 'zero-one'"),
        ({"a": {"a": 0}, "b": {"a": 0}}, "no costs for the true class 'c'"),
        ({"a": {"a": 0}, "b": 3, "c": {"a": 0}}, "has 3 for the true class 'b'"),
        ({"a": {"a": 0, "b": 1}, "b": {"a": 0}, "c": {"a": 0, "b": 1}}, "decision 'b' where the class is 'b'"),
        ({t: {"a": None} for t in "abc"}, "cost of 'a' where the class is 'a' is None"),
        ({t: {} for t in "abc"}, "names no decision"),
    ],
    ids=lambda value: None if isinstance(value, str) else "cost",
)
def test_costs_that_are_refused(cost, match):
    with pytest.raises(DataError, match=match):
        MODEL.decide(X, cost)


def test_more_that_decide_refuses():
    with pytest.raises(LabelError, match="no class 'd'"):
        MODEL.decide(X, {t: {"a": 0} for t in "abcd"})
    for wrong in (np.nan, "cheap", np.inf):
        with pytest.raises(DataError, match="abstain"):
            MODEL.decide(X, abstain=wrong)
    with pytest.raises(PriorError):
        MODEL.decide(X, class_prior={"a": 1.0})
    with pytest.raises(NotFittedError):
        tb.NaiveBayes().decide(X)
    with pytest.raises(DataError, match="features"):
        MODEL.decide(X[:, :1])
    assert MODEL.decide(np.zeros((0, 2))).shape == (0,)


# ---- estimate_class_prior ----


def log_likelihoods(model, rows):
    return model.predict_joint_log_proba(rows) - model.class_log_prior_


def best_by_scipy(log_terms, weight):
    """The maximum over all softmaxes."""

    def minus(z):
        log_shares = log_softmax(np.append(z, 0.0))
        mixed = logsumexp(log_terms + log_shares, axis=1, keepdims=True)
        slope = weight @ np.exp(log_terms + log_shares - mixed) - weight.sum() * np.exp(log_shares)
        return -weight @ mixed[:, 0], -slope[:-1]

    found = optimize.minimize(minus, np.zeros(log_terms.shape[1] - 1), jac=True, method="BFGS", options={"gtol": 1e-10})
    return np.exp(log_softmax(np.append(found.x, 0.0))), -found.fun


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_the_most_likely_shares_against_scipy_and_em(seed):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 4, 400)
    model = tb.GaussianDiscriminant().fit(rng.normal(size=(400, 2)) + 1.2 * np.eye(4, 2)[y] + 0.5 * y[:, None], y)
    true = rng.dirichlet(np.full(4, 3.0))
    z = rng.choice(4, 600, p=true)
    rows = rng.normal(size=(600, 2)) + 1.2 * np.eye(4, 2)[z] + 0.5 * z[:, None]
    weight = rng.exponential(size=600)
    found = model.estimate_class_prior(rows, sample_weight=weight)
    assert list(found) == [0, 1, 2, 3]
    shares = np.array(list(found.values()))
    assert shares.sum() == pytest.approx(1.0, abs=1e-14)
    log_terms = log_likelihoods(model, rows)
    exact, height = best_by_scipy(log_terms, weight / weight.sum())
    np.testing.assert_allclose(shares, exact, atol=1e-4)
    assert weight @ logsumexp(log_terms, axis=1, b=shares) / weight.sum() >= height - 1e-9
    em = np.full(4, 0.25)
    for _ in range(5000):
        posterior = np.exp(log_terms) * em
        em = np.average(posterior / posterior.sum(axis=1, keepdims=True), axis=0, weights=weight)
    np.testing.assert_allclose(shares, em, atol=1e-4)


def test_a_shift_is_found_within_its_standard_error():
    """The classes are known almost exactly, so what is left is the sampling error, from the Fisher information."""
    rng = np.random.default_rng(4)
    y = np.repeat([0, 1], 100_000)
    model = tb.NaiveBayes().fit(rng.normal(2.0 * y)[:, None], y)
    for true in (0.02, 0.3, 0.9):
        z = rng.random(4000) < true
        rows = rng.normal(2.0 * z)[:, None]
        found = model.estimate_class_prior(rows)[1]
        p = np.exp(log_likelihoods(model, rows))
        information = (((p[:, 1] - p[:, 0]) / (true * p[:, 1] + (1 - true) * p[:, 0])) ** 2).sum()
        assert abs(found - true) < 4 / np.sqrt(information)
        prior = model.estimate_class_prior(rows)
        assert (model.decide(rows, class_prior=prior) == z).mean() >= (model.predict(rows) == z).mean()


def test_a_maximum_on_the_boundary_is_found_exactly():
    rows = X[Y == "a"]
    found = MODEL.estimate_class_prior(rows - 2.0)  # away from the others
    assert found["a"] == pytest.approx(1.0, abs=1e-9)
    shares = np.array(list(MODEL.estimate_class_prior(X[Y != "b"]).values()))
    p = np.exp(log_likelihoods(MODEL, X[Y != "b"]))
    slope = (p / (p @ shares)[:, None]).mean(axis=0)
    assert (
        slope <= 1 + 1e-9
    ).all()  # no class would gain, and those in use are level: the maximum of a concave function
    np.testing.assert_allclose(slope[shares > 1e-6], 1.0, atol=1e-6)


def test_weights_count_rows_and_every_kind_of_input_agrees():
    expected = MODEL.estimate_class_prior(np.repeat(X, 2, axis=0)[:100])
    weight = np.r_[np.full(50, 2.0), np.zeros(len(X) - 50)]
    assert MODEL.estimate_class_prior(X, sample_weight=weight) == pytest.approx(expected, abs=1e-9)
    frame = pd.DataFrame(X, columns=["u", "v"]).assign(often=weight, kind=Y)
    named = tb.NaiveBayes({("u", "v"): tb.Gaussian()}).fit(frame, "kind")
    assert named.estimate_class_prior(frame, sample_weight="often") == pytest.approx(expected, abs=1e-9)
    rows = frame.to_dict(orient="records")
    assert named.estimate_class_prior(rows, sample_weight=weight) == pytest.approx(expected, abs=1e-9)
    rng = np.random.default_rng(5)
    words, y = rng.poisson(0.7, (60, 9)), rng.integers(0, 2, 60)
    words[y == 1, 0] += 2
    dense = tb.NaiveBayes(tb.Multinomial()).fit(words, y).estimate_class_prior(words[:30])
    thin = tb.NaiveBayes(tb.Multinomial()).fit(sparse.csr_array(words), y)
    assert thin.estimate_class_prior(sparse.csr_array(words[:30])) == pytest.approx(dense, abs=1e-9)


def test_the_models_own_class_prior_plays_no_part():
    expected = MODEL.estimate_class_prior(X)
    for given in ("uniform", [1.0, 0.0, 0.0], tb.Dirichlet(3)):
        assert MODEL.reestimate(class_prior=given).estimate_class_prior(X) == pytest.approx(expected, abs=1e-9)
    np.testing.assert_allclose(
        MODEL.reestimate(class_prior=expected).predict_proba(X), MODEL.predict_proba(X, class_prior=expected)
    )


def test_rows_that_cannot_tell():
    nothing = np.full((5, 2), np.nan)
    learned = {label: float((label == Y).mean()) for label in "abc"}
    assert MODEL.estimate_class_prior(nothing) == pytest.approx(learned)
    # Two classes of the same rows keep their proportion, whatever the third does.
    same = [[0], [0], [0], [1]]
    twins, y = [*same, *same, *same, [1], [1], [1], [1]], ["a"] * 8 + ["b"] * 4 + ["c"] * 4
    model = tb.NaiveBayes(tb.Bernoulli(), estimate="mle").fit(twins, y)
    found = model.estimate_class_prior([[0]] * 3 + [[1]] * 7)
    assert found["c"] == pytest.approx(0.6, abs=1e-6)  # 0.25 · 0.4 + 0.6 = 0.7 of the rows are 1
    assert found["a"] / found["b"] == pytest.approx(2.0, rel=1e-6)


def test_few_rows_and_few_classes():
    assert tb.NaiveBayes().fit(X, ["only"] * len(X)).estimate_class_prior(X[:1]) == {"only": 1.0}
    one = MODEL.estimate_class_prior(X[:1])
    best = MODEL.classes_[log_likelihoods(MODEL, X[:1]).argmax()]
    assert one[best] == pytest.approx(1.0)
    declared = tb.NaiveBayes().partial_fit(X, Y, classes=["a", "b", "c", "d"])
    assert declared.estimate_class_prior(X)["d"] == 0.0
    for estimate in ("mle", "map", "unbiased"):
        found = declared.reestimate(estimate=estimate).estimate_class_prior(X)
        assert found["d"] == 0.0
        assert sum(found.values()) == pytest.approx(1.0)
    for rows, weight in ((np.zeros((0, 2)), None), (X, np.zeros(len(X)))):
        with pytest.raises(DataError, match="0 rows"):
            MODEL.estimate_class_prior(rows, sample_weight=weight)
    with pytest.raises(DataError, match="weight"):
        MODEL.estimate_class_prior(X, sample_weight=-np.ones(len(X)))
    with pytest.raises(NotFittedError):
        tb.NaiveBayes().estimate_class_prior(X)


def test_impossible_rows_are_left_out_and_possible_in_one_class_only_counted():
    model = tb.NaiveBayes(tb.Categorical(levels=("x", "y", "z")), estimate="mle").fit([["x"], ["y"], ["y"]], [0, 1, 1])
    assert model.estimate_class_prior([["x"], ["x"], ["x"], ["y"]]) == pytest.approx({0: 0.75, 1: 0.25})
    with pytest.warns(UserWarning, match="row 1, one of 2, is impossible"):
        assert model.estimate_class_prior([["x"], ["z"], ["y"], ["z"]]) == pytest.approx({0: 0.5, 1: 0.5})
    with pytest.warns(UserWarning, match="impossible"), pytest.raises(DataError, match="0 rows"):
        model.estimate_class_prior([["z"]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.estimate_class_prior([["z"], ["x"]], sample_weight=[0, 1])


def test_far_likelihoods_do_not_underflow():
    wide = tb.NaiveBayes(tb.TiedGaussian(), estimate="mle").fit([[0.0], [0.1], [1000.0], [1000.1]], [0, 0, 1, 1])
    assert wide.estimate_class_prior([[0.0], [999.0], [1000.0], [1001.0]]) == pytest.approx({0: 0.25, 1: 0.75})


def test_few_steps_suffice_for_any_likelihoods():
    """Classes alike or worlds apart, impossible cells, twins, poor starts: 30 steps reach the maximum."""
    rng = np.random.default_rng(8)
    for trial in range(300):
        n, k = rng.integers(1, 60), rng.integers(1, 12)
        log_terms = rng.normal(size=(n, k)) * 10 ** rng.uniform(-3, 2.5)
        if trial % 5 == 0:
            log_terms[:, 0] = log_terms[:, -1]
        if trial % 4 == 0:
            log_terms[rng.random(log_terms.shape) < 0.3] = -np.inf
            log_terms[np.isneginf(log_terms).all(axis=1), -1] = 0.0
        likelihood = np.exp(log_terms - log_terms.max(axis=1, keepdims=True))
        weight = rng.dirichlet(np.ones(n))
        start = rng.dirichlet(np.full(k, 10 ** rng.uniform(-1, 1))) + 1e-9
        shares, gap = _maximize_mixing_weights(likelihood, weight, start / start.sum(), 30, 1e-9)
        assert gap <= 1e-9
        assert (shares >= 0).all()
        assert shares.sum() == pytest.approx(1.0, abs=1e-12)
        assert (weight @ (likelihood / (likelihood @ shares)[:, None])).max() <= 1 + 1e-9


def test_what_no_row_can_tell_moves_in_proportion():
    """Also through bounds and back: 0 is left in the proportions of the start."""
    rng = np.random.default_rng(9)
    for _ in range(200):
        n, k = rng.integers(2, 60), rng.integers(2, 9)
        likelihood = rng.random((n, k)) ** rng.uniform(0.1, 9.0)
        likelihood[:, 0] = likelihood[:, -1]
        start = rng.dirichlet(np.ones(k)) + 1e-3
        shares, gap = _maximize_mixing_weights(likelihood, np.full(n, 1 / n), start / start.sum(), 30, 1e-9)
        assert gap <= 1e-9
        assert shares[0] * start[-1] == pytest.approx(shares[-1] * start[0], rel=1e-9, abs=1e-12)


def test_classes_that_hardly_differ_still_reach_the_maximum():
    rng = np.random.default_rng(10)
    for size in 10.0 ** np.arange(-9, -2):
        likelihood = np.exp(size * rng.normal(size=(50, 4)))
        weight = rng.dirichlet(np.ones(50))
        assert _maximize_mixing_weights(likelihood, weight, np.array([0.7, 0.1, 0.1, 0.1]), 30, 1e-12)[1] <= 1e-12


def test_too_few_steps_are_said():
    with pytest.warns(ConvergenceWarning, match="1 iterations"):
        MODEL.estimate_class_prior(X - 1.0, max_iter=1)
    with pytest.raises(EstimateError, match="max_iter"):
        MODEL.estimate_class_prior(X, max_iter=0)
    with pytest.raises(EstimateError, match="tol"):
        MODEL.estimate_class_prior(X, tol=0.0)


# ---- Thresholds for a stated precision or recall ---------------------------------------------------------------------


def mails(n=600, seed=0):
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(n) < 0.3, "spam", "ham")
    return {"x": rng.normal(1.5 * (y == "spam")), "z": rng.normal(0.5 * (y == "spam"))}, y


def achieved(decided, y, positive="spam"):
    right = ((decided == positive) & (y == positive)).sum()
    return right / (decided == positive).sum(), right / (y == positive).sum()


@pytest.mark.parametrize("model", [tb.NaiveBayes(), tb.AutoClassifier(folds=2), tb.NaiveBayes(calibration="isotonic")])
@pytest.mark.parametrize("stated", [0.6, 0.8, 0.9])
def test_threshold_reaches_a_stated_precision_at_the_highest_recall(model, stated):
    model.fit(*mails(400))
    X, y = mails(500, 1)
    decided = model.decide(X, precision=stated, held_out=(X, y))
    precision, recall = achieved(decided, y)
    assert precision >= stated
    odds = np.diff(model.predict_log_proba(X), axis=1)[:, 0]
    every = [achieved(np.where(odds >= at, "spam", "ham"), y) for at in np.unique(odds)]
    assert recall == pytest.approx(max(r for p, r in every if p >= stated))
    found = tb.evaluate(model, X, y).threshold(precision=stated)
    assert (found.precision, found.recall) == pytest.approx((precision, recall))
    assert model.decide(X, threshold=found).tolist() == decided.tolist()
    assert 0 < found.probability < 1
    new = mails(300, 2)[0]
    above = model.predict_proba(new)[:, 1] >= found.probability
    assert (model.decide(new, threshold=found) == "spam").tolist() == above.tolist()


def test_threshold_reaches_a_stated_recall_at_the_highest_precision():
    model, (X, y) = tb.NaiveBayes().fit(*mails(400)), mails(500, 1)
    for stated in (0.5, 0.9, 1.0):
        precision, recall = achieved(model.decide(X, recall=stated, held_out=(X, y)), y)
        assert recall >= stated
        odds = np.diff(model.predict_log_proba(X), axis=1)[:, 0]
        every = [achieved(np.where(odds >= at, "spam", "ham"), y) for at in np.unique(odds)]
        assert precision == pytest.approx(max(p for p, r in every if r >= stated))
    both = tb.evaluate(model, X, y).threshold(precision=0.6, recall=0.5)
    assert both.precision >= 0.6
    assert both.recall >= 0.5


def test_a_threshold_among_several_classes():
    rng = np.random.default_rng(0)
    y = rng.choice(["a", "b", "c"], 600)
    X = rng.normal(2.0 * np.array([ord(label) for label in y]))[:, None]
    model = tb.NaiveBayes().fit(X[:300], y[:300])
    decided = model.decide(X[300:], precision=0.97, held_out=(X[300:], y[300:]), positive="b")
    assert achieved(decided, y[300:], "b")[0] >= 0.97
    others = decided != "b"
    assert set(decided[others]) == {"a", "c"}
    with pytest.raises(tb.DataError, match=r"positive is missing and there are 3 classes.*\n.*'a', 'b', 'c'"):
        model.decide(X, precision=0.9, held_out=(X, y))
    with pytest.raises(tb.LabelError, match="'d'"):
        model.decide(X, precision=0.9, held_out=(X, y), positive="d")


def test_weights_of_held_out_rows_are_repetitions():
    model, (X, y) = tb.NaiveBayes().fit(*mails(400)), mails(200, 1)
    weight = np.arange(200) % 3
    rows = np.repeat(np.arange(200), weight)
    twice = tb.evaluate(model, {name: cells[rows] for name, cells in X.items()}, y[rows]).threshold(precision=0.7)
    weighted = tb.evaluate(model, X, y, sample_weight=weight).threshold(precision=0.7)
    assert weighted[1:] == pytest.approx(twice[1:])


def test_what_has_no_threshold():
    y = mails(400)[1]
    noise = {"x": np.random.default_rng(5).normal(size=400)}
    model = tb.NaiveBayes().fit(noise, y)
    held = {"x": np.r_[noise["x"], noise["x"]]}, np.r_[y, np.where(y == "spam", "ham", "spam")]  # twice, both ways
    with pytest.raises(
        tb.DataError,
        match=r"precision 0\.95 of class 'spam' is not reached on these 800 rows; the highest precision is 0\.5000",
    ):
        model.decide(noise, precision=0.95, held_out=held)
    with pytest.raises(
        tb.DataError, match=r"precision 0\.9 with recall 0\.99 .*highest precision with that recall is 0\.5"
    ):
        model.decide(noise, precision=0.9, recall=0.99, held_out=held)
    with pytest.raises(tb.DataError, match=r"held_out is missing.*\n.*held_out=\(X_val, y_val\)"):
        model.decide(noise, precision=0.9)
    with pytest.raises(tb.DataError, match="neither precision nor recall"):
        model.decide(noise, held_out=held)
    with pytest.raises(tb.DataError, match="precision is 95; expected a number above 0 and up to 1"):
        model.decide(noise, precision=95, held_out=held)
    with pytest.raises(tb.DataError, match="costs or a threshold"):
        model.decide(noise, abstain=0.1, precision=0.9, held_out=held)
    with pytest.raises(tb.DataError, match="no held-out row is of class 'spam'"):
        model.decide(noise, precision=0.9, held_out=({"x": [1.0]}, ["ham"]))
    with pytest.raises(tb.LabelError, match="'junk'"):
        model.decide(noise, precision=0.9, held_out=({"x": [1.0]}, ["junk"]))
    with pytest.raises(tb.DataError, match=r"threshold is 0\.5; expected a Threshold"):
        model.decide(noise, threshold=0.5)
    found = tb.Threshold("spam", 0.0, 1.0, 1.0)
    with pytest.raises(tb.DataError, match="threshold is found already"):
        model.decide(noise, threshold=found, precision=0.9)
    assert model.decide(noise, threshold=found).tolist() == model.predict(noise).tolist()
