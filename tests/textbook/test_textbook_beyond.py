"""What generative classifiers are good for, as the textbooks reckon it: new classes, missing labels, densities."""

import gzip
from math import ceil, erfc, log

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import tallybayes as tb
from tests.shared import DATA, needs
from tests.textbook.course import BLUE, CLASS, DAYS, HAM, SPAM, WORDS, X, Y, clouds, columns, digits, mails, near, spam

MNIST = DATA / "mnist"
SQUARE = np.array([(0, 0), (2, 0), (0, 2), (2, 2)], dtype=float)


def test_T2_C7_the_larger_half():
    model = mails(estimate="map")
    rows = columns(*SPAM, *HAM)
    ours = model.predict_proba(rows)[:, 1]
    assert (model.predict(rows) == np.where(ours > 1 / 2, "spam", "ham")).all()
    cells = np.column_stack([rows[word] for word in WORDS])
    theirs = LogisticRegression().fit(cells, CLASS)
    assert (theirs.predict(cells) == np.where(theirs.predict_proba(cells)[:, 1] > 1 / 2, "spam", "ham")).all()


def test_T4_a_model_of_the_data_has_uses_of_its_own():
    model = clouds()
    rows, labels = model.sample(50, random_state=0)
    assert np.shape(rows) == (50, 2)
    assert set(labels) == {"blue", "green", "red"}
    assert np.isfinite(model.impute(np.array([[np.nan, 2.0]]))).all()
    near(model.score_samples([[3, 3]]), np.logaddexp.reduce(model.predict_joint_log_proba([[3, 3]])[0]))


def test_T6_the_joint_read_off_a_graph():
    star = tb.BayesianNetwork({word: ["spam"] for word in WORDS}, estimate="mle")
    star.fit(columns(*SPAM, *HAM) | {"spam": CLASS})
    mail = dict(zip(WORDS, (1, 1, 0, 1), strict=True))
    near(star.probability({"spam": "spam", **mail}), 9 / 40)
    near(star.probability({"spam": "spam", **mail}) / star.probability(mail), 54 / 55)


def test_T14_how_much_is_lost_by_being_naive():
    rows = {word: np.array(cells) > 0 for word, cells in columns(*SPAM, *HAM).items()}
    found = tb.dependence(rows, CLASS)
    assert len(found.table) == 6
    assert "0 of 6 pairs are dependent (evidence" in str(found)
    assert not tb.predictive_check(mails(), columns(*SPAM, *HAM), CLASS).failed_checks


@pytest.mark.parametrize(("copies", "expected"), [(1, 3 / 5), (2, 9 / 13), (10, 0.982954)])
def test_M9_4_1b_M9_4_1c_a_column_copied_counts_again(copies, expected):
    rows = {f"sky {k}": DAYS["sky"] for k in range(copies)}
    model = tb.NaiveBayes(estimate="map").fit(rows, DAYS["picnic"])
    (near if copies < 10 else digits)(model.predict_proba({name: ["sun"] for name in rows})[0, 1], expected)
    cells = np.repeat([[cell == "sun"] for cell in DAYS["sky"]], copies, axis=1)
    logistic = LogisticRegression(C=1e8, tol=1e-10).fit(cells, DAYS["picnic"])
    near(logistic.predict_proba(np.ones((1, copies)))[0, 1], 2 / 3, rtol=1e-6)


def test_M9_4_2a_learning_is_one_pass_of_counting():
    model = tb.NaiveBayes(tb.Bernoulli())
    for mail, label in zip(SPAM + HAM, CLASS, strict=True):
        model.partial_fit(columns(mail), [label])
    assert model.tally_ == mails().tally_


def test_M9_4_2c_a_class_needs_no_other():
    both, labels = np.concatenate([SQUARE, SQUARE + 3]), ["near"] * 4 + ["far"] * 4
    model = tb.GaussianDiscriminant().fit(SQUARE, ["near"] * 4).add_class("far", SQUARE + 3)
    assert model.tally_ == tb.GaussianDiscriminant().fit(both, labels).tally_
    assert model.drop_class("far").tally_ == tb.GaussianDiscriminant().fit(SQUARE, ["near"] * 4).tally_


def test_M9_4_2d_a_row_without_a_label():
    rows, labels, share, found = [[1], [1], [0], [0], [0], [1]], ["a"] * 3 + ["b"] * 3, 1 / 2, []
    for _ in range(3):  # the row is in both classes, for a share of it each
        step = tb.NaiveBayes(tb.Bernoulli(), estimate="mle")
        step.fit([*rows, [1], [1]], [*labels, "a", "b"], sample_weight=[1] * 6 + [share, 1 - share])
        share = step.predict_proba([[1]])[0, 0]
        found.append(share)
    near(found, [0.625, 0.65625, 0.6640625])
    model = tb.NaiveBayes(tb.Bernoulli(), estimate="mle", unlabeled="em", tol=1e-30)
    model.fit([*rows, [1]], [*labels, None])
    near(model.tally_["class"].table, [11 / 3, 10 / 3], rtol=1e-8)
    near(model.predict_proba([[1]])[0], [2 / 3, 1 / 3], rtol=1e-8)
    assert (np.diff(model.history_) > -1e-12).all()


def test_M9_4_2e_a_background_that_no_longer_follows_the_class():
    rng = np.random.default_rng(0)

    def drawn(n, follows):
        y = rng.integers(0, 2, n)
        told = np.where(rng.random(n) < follows, y, 1 - y)
        return np.column_stack([rng.normal(y, 1.0), rng.normal(2 * told, 0.5)]), y

    rows, y = drawn(2000, 0.95)
    models = tb.NaiveBayes(tb.TiedGaussian()).fit(rows, y), LogisticRegression().fit(rows, y)
    for model in models:
        known, strange = (model.score(*drawn(2000, follows)) for follows in (0.95, 0.5))
        assert known > 0.9
        assert strange < 0.65  # of either kind: generative is no protection
    never = tb.NaiveBayes(tb.TiedGaussian()).fit(rows[:, :1], y)
    other, truth = drawn(2000, 0.5)
    near(models[0].predict_proba(other * [1, np.nan]), never.predict_proba(other[:, :1]))  # but it can be left out
    assert never.score(other[:, :1], truth) > 0.65


def test_M9_4_1a_two_bumps_and_one_step():
    shares = {0: {"mean": 0, "variance": 1}, 1: {"mean": 2, "variance": 1}, 2: {"mean": 6, "variance": 1}}
    model = tb.NaiveBayes.from_parameters({"x": shares}, {0: 1 / 2, 1: 1 / 4, 2: 1 / 4})
    rows = {"x": np.linspace(-3, 9, 121)}
    bumps = np.exp(model.predict_joint_log_proba(rows))[:, 1:].sum(axis=1)
    step = model.predict_proba(rows)[:, 1:].sum(axis=1)
    assert np.sum(np.diff(np.sign(np.diff(bumps))) < 0) == 2  # tops of p(x | class 1)
    assert (np.diff(step) > 0).all()  # p(class 1 | x) only rises
    assert step[0] < 0.001
    assert step[-1] > 0.999


def test_M0_1_anomalies():
    model = tb.GaussianDiscriminant(estimate="mle").fit(np.concatenate([SQUARE, SQUARE + 3]), ["a"] * 4 + ["b"] * 4)
    digits(model.score_samples([[1, 1], [30, 30]]), [-2.530901, -678.531024])


@pytest.mark.slow
@needs("mnist")
def test_F9_6_F9_7_M0_13_digits_of_pixels():
    pixels, answers = {}, {}
    for part in ("train", "t10k"):
        images = gzip.decompress((MNIST / f"{part}-images-idx3-ubyte.gz").read_bytes())
        pixels[part] = (np.frombuffer(images, np.uint8, offset=16).reshape(-1, 784) > 127).astype(np.uint8)
        labels = gzip.decompress((MNIST / f"{part}-labels-idx1-ubyte.gz").read_bytes())
        answers[part] = np.frombuffer(labels, np.uint8, offset=8)
    model = tb.NaiveBayes(tb.Bernoulli()).fit(pixels["train"], answers["train"])
    assert model.score(pixels["t10k"], answers["t10k"]) == pytest.approx(0.843, abs=5e-4)
    images = model.plot_class_means(shape=(28, 28))
    shown = np.array([axes.images[0].get_array() for axes in images.axes if axes.images])
    near(
        shown.reshape(10, 784), np.column_stack([model.parameter_table(k).values[:, 1] for k in range(784)]), rtol=1e-6
    )


@pytest.mark.parametrize(
    ("apart", "correlation", "expected"),
    [([2, 1], 0.8, [0.131776, 0.191321]), ([0.5, 0.25] * 20, 0.3, [0.126656, 0.130818])],
)
def test_T22_the_errors_that_unlimited_rows_leave(apart, correlation, expected):
    apart = np.array(apart)
    spread = np.kron(np.eye(len(apart) // 2), [[1, correlation], [correlation, 1]])
    found = []
    for covariance in ("tied", "tied_diagonal"):
        means = {"left": -apart / 2, "right": apart / 2}
        w = tb.GaussianDiscriminant.from_parameters(means, spread, covariance=covariance).to_linear().coef[0]
        found.append(erfc(w @ apart / np.sqrt(8 * w @ spread @ w)) / 2)  # half the means' distance, in deviations
    digits(found, expected)


@pytest.mark.slow
def test_T22fig_C18b_T40_E_C4_E_T9_few_rows_favor_naive_bayes():
    apart = np.array([0.5, 0.25] * 20)
    spread = np.kron(np.eye(20), [[1, 0.3], [0.3, 1]])
    rng = np.random.default_rng(0)
    y = np.arange(20_000) % 2
    X = np.where(y[:, None] == 1, 0.5, -0.5) * apart + rng.multivariate_normal(np.zeros(40), spread, len(y))
    models = {"naive Bayes": tb.NaiveBayes(tb.TiedGaussian()), "logistic": LogisticRegression(C=1e4, max_iter=1000)}
    found = tb.learning_curves(models, X, y, [80, 320])
    ours, theirs = found.error.mean(axis=2)
    assert (ours < theirs).all()
    np.testing.assert_allclose(ours, [0.167, 0.140], atol=0.015)  # the book's means are of 40 draws, these of 5
    np.testing.assert_allclose(theirs, [0.225, 0.162], atol=0.015)


@pytest.mark.slow
def test_T22fig_M9_4_1a_the_curves_cross_between_1280_and_2560_rows():
    """The exact error of the rules that m rows give, in the mean of 40 draws, as the textbook's figure has it."""
    apart, found = np.array([0.5, 0.25] * 20), []
    spread = np.kron(np.eye(20), [[1, 0.3], [0.3, 1]])
    shape = np.linalg.cholesky(spread).T
    for m in (20, 80, 320, 1280, 2560):
        errors = []
        for seed in range(40):
            rng = np.random.default_rng([seed, m])
            y = np.arange(m) % 2
            rows = (y[:, None] - 0.5) * apart + rng.normal(size=(m, 40)) @ shape
            ours = tb.NaiveBayes(tb.TiedGaussian(), estimate="mle").fit(rows, y).to_linear().log_odds_coefficients(1)
            theirs = LogisticRegression(C=1e4, max_iter=2000).fit(rows, y)
            lines = [(ours.coef[0], ours.intercept[0]), (theirs.coef_[0], theirs.intercept_[0])]
            halves = [[(w @ apart / 2 + sign * b) / np.sqrt(w @ spread @ w) for sign in (1, -1)] for w, b in lines]
            errors.append([np.mean([erfc(half / np.sqrt(2)) / 2 for half in pair]) for pair in halves])
        found.append(np.mean(errors, axis=0))
    book = [(0.234, 0.258), (0.167, 0.225), (0.140, 0.162), (0.1330, 0.1345), (0.1319, 0.1305)]
    np.testing.assert_allclose(found[:2], book[:2], atol=0.012)  # standard errors are .006 at most, on either side
    np.testing.assert_allclose(found[2:], book[2:], atol=0.0025)
    assert [bool(ours < theirs) for ours, theirs in found] == [True] * 4 + [False]


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(("d", "rows"), [(10, 300), (100, 415), (1000, 530), (100_000, 761)])
def test_T22b_log_d_rows_bring_all_estimates_near(d, rows):
    assert ceil(log(2 * d / 0.05) / (2 * 0.1**2)) == rows
    rng, some, draws = np.random.default_rng(d), min(d, 2000), 20  # of very many columns the first are looked at
    off = [
        np.abs(tb.fit_distribution(rng.random((rows, some)) < 0.5, tb.Bernoulli()).estimate("mle") - 0.5).max() > 0.1
        for _ in range(draws)
    ]
    assert np.mean(off) <= 0.05
    few = [
        np.abs(tb.fit_distribution(rng.random((40, some)) < 0.5, tb.Bernoulli()).estimate("mle") - 0.5).max() > 0.1
        for _ in range(draws)
    ]
    assert np.mean(few) > 0.5  # and forty rows do not


# ---- Pictures --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_F9_1_one_tilted_one_straight_one_round():
    found = clouds().plot_joint(X, Y).to_frame()
    apart = (found["log_joint"] - found["log_product"]).abs().groupby(found["class"]).max()
    assert apart["blue"] > 1
    near([apart["green"], apart["red"]], 0, rtol=1e-9)


def test_T12_the_product_of_both_loses_the_covariance():
    naive = tb.NaiveBayes(tb.Gaussian(), estimate="mle").fit(BLUE, ["blue"] * 4)
    near(naive.covariances_, [np.diag([4, 2])])
    whole = tb.GaussianDiscriminant(estimate="mle").fit(BLUE, ["blue"] * 4)
    near(whole.covariances_, [[[4, 2], [2, 2]]])
    found = whole.plot_joint(BLUE, ["blue"] * 4).to_frame()
    first, second = found["0"], found["1"]
    near(found["log_product"], -(first**2) / 8 - second**2 / 4 - log(2 * np.pi * np.sqrt(8)))


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("metric", ["euclidean", "mahalanobis", np.diag([1, 1 / 4])])
def test_F9_2c_regions_under_three_metrics(metric):
    model = tb.NearestClassMean(metric).fit(X, Y)
    assert model.predict([[3, 3]])[0] == "red"
    found = model.plot_decision_boundary(X, Y).to_frame().iloc[::97]
    assert (model.predict(found.iloc[:, :2].to_numpy()) == found["predicted"]).all()


# ---- Errata ----------------------------------------------------------------------------------------------------------


def test_E_C2_as_many_classes_as_labels():
    model = tb.NaiveBayes(tb.Bernoulli()).fit([[0], [1], [1]], [0, 1, 2])
    assert len(model.classes_) == len(model.class_prior_.values) == 3


def test_E_T1_a_score_is_no_probability():
    moments = {0: {"mean": -1 / 2, "variance": 1}, 1: {"mean": 1 / 2, "variance": 1}}
    model = tb.NaiveBayes.from_parameters({"u": moments, "v": moments}, {0: 0.5, 1: 0.5}, columns=tb.TiedGaussian())
    form = model.to_linear()
    near([*form.coef[0], form.intercept[0]], [1, 1, 0])
    near(form.coef[0] @ [1, 1] + form.intercept[0], 2)
    near(model.predict_proba({"u": [1.0], "v": [1.0]})[0, 1], 1 / (1 + np.exp(-2)))


def test_E_P1_words_that_depend_on_each_other_alone_say_nothing():
    rows = columns(*SPAM, *HAM) | {"spam": CLASS}
    chain = dict(zip(WORDS[1:], [[word] for word in WORDS[:-1]], strict=True)) | {"spam": []}
    model = tb.BayesianNetwork(chain, estimate="mle").fit(rows)
    for mail in (*SPAM, *HAM):
        near(model.query("spam", dict(zip(WORDS, map(int, mail), strict=True)))["spam"], 4 / 10)
    near(spam(mails(estimate="mle"), "1101"), 54 / 55)


def test_E_P5_logs_of_probabilities_are_not_positive():
    model, rows = mails(estimate="mle"), columns(*SPAM, *HAM)
    labels = 4 * log(model.class_prior_["spam"]) + 6 * log(model.class_prior_["ham"])
    digits([labels, model.log_likelihood(rows, CLASS) - labels], [-6.730117, -18.223182])
