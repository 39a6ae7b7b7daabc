"""Predictive checks: data of the model's own pass, wrong families are found first; edges."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.sparse import csr_matrix

import tallybayes as tb
from tallybayes.evaluation.checks import replicated_data as module
from tallybayes.evaluation.checks.summary_statistics import COUNTS, LEVELS, NUMBERS, WORDS, count_words

mpl.use("Agg")


def mixed(n, rng):
    y = rng.integers(0, 2, n)
    return {
        "x": rng.normal(3 * y, 1 + y),
        "z": rng.normal(size=n),
        "l": rng.choice(list("abc"), n, p=[0.5, 0.3, 0.2]),
        "y": np.where(y, "yes", "no"),
    }


# ---- Right models pass ------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("estimate", ["bayes", "mle"])
def test_data_of_the_model_itself_do_not_surprise(estimate):
    rng = np.random.default_rng(0)
    p = []
    for seed in range(6):
        rows = mixed(400, rng)
        model = tb.NaiveBayes(estimate=estimate).fit(rows, "y")
        check = tb.predictive_check(model, rows, "y", n_draws=100, random_state=seed)
        assert check.failed_checks == []
        p += [row.p for row in check.table if row.statistic in ("skewness", "minimum", "maximum")]
    # These are not fitted, so their p-values are nearly uniform.
    assert stats.kstest(p, "uniform").pvalue > 0.001
    assert 0.35 < np.mean(p) < 0.65


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    ("family", "draw"),
    [
        (tb.Poisson(), lambda rng: rng.poisson(3, (300, 2))),
        (tb.Bernoulli(), lambda rng: rng.integers(0, 2, (300, 2))),
        (tb.Binomial(7), lambda rng: rng.binomial(7, 0.3, (300, 2))),
        (tb.Multinomial(), lambda rng: rng.multinomial(20, [0.5, 0.3, 0.1, 0.1], 300)),
        (tb.Categorical(), lambda rng: rng.integers(0, 3, (300, 2))),
        (tb.TiedGaussian(), lambda rng: rng.normal(size=(300, 2))),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, tb.Gaussian | tb.Poisson | tb.Bernoulli) else None,
)
def test_every_family_passes_on_its_own_data(family, draw):
    rng = np.random.default_rng(1)
    X, y = draw(rng), rng.integers(0, 3, 300)
    check = tb.predictive_check(tb.NaiveBayes(family).fit(X, y), X, y, n_draws=60)
    assert check.table
    assert check.failed_checks == []
    assert all(np.isfinite(row.gap) for row in check.table)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("covariance", ["full", "tied", "diagonal", "spherical", "tied_spherical"])
def test_discriminants(covariance):
    rng = np.random.default_rng(2)
    y = rng.integers(0, 2, 300)
    X = rng.normal(size=(300, 3)) + 2 * y[:, None]
    model = tb.GaussianDiscriminant(covariance).fit(X, y)
    assert tb.predictive_check(model, X, y, n_draws=60).failed_checks == []
    skewed = np.exp(X)
    worst = tb.predictive_check(model.fit(skewed, y), skewed, y, n_draws=60)
    assert worst.table[0].statistic in ("skewness", "maximum")


# ---- Wrong ones do not ------------------------------------------------------------------------------------------


def test_skewed_numbers_as_gaussian():
    rng = np.random.default_rng(3)
    rows = {**mixed(500, rng), "income": rng.lognormal(0, 1, 500)}
    check = tb.predictive_check(tb.NaiveBayes().fit(rows, "y"), rows, "y", n_draws=100)
    assert check.table[0].column == "income"
    assert check.table[0].statistic == "skewness"
    assert {row.column for row in check.failed_checks} == {"income"}
    assert check.table[0].p == 0.0
    frame = pd.DataFrame(rows)
    mine = frame.loc[frame["y"] == check.table[0].label, "income"]
    assert check.table[0].observed == pytest.approx(stats.skew(mine))
    assert "The data differ from the model in: income." in repr(check)


def test_overdispersed_counts_as_poisson():
    rng = np.random.default_rng(4)
    rows = {"calm": rng.poisson(4, 400), "bursts": rng.negative_binomial(1, 0.2, 400), "y": rng.integers(0, 2, 400)}
    model = tb.NaiveBayes({("calm", "bursts"): tb.Poisson()}).fit(rows, "y")
    check = tb.predictive_check(model, rows, "y", n_draws=100)
    assert {row.column for row in check.failed_checks} == {"bursts"}
    dispersion = next(row for row in check.table if row.statistic == "dispersion")
    assert dispersion.column == "bursts"
    assert dispersion.expected == pytest.approx(1.0, abs=0.1)
    assert dispersion.observed > 3


def test_bursty_words_as_multinomial():
    rng = np.random.default_rng(5)
    theta = rng.dirichlet(np.full(50, 0.1), 200)
    words = csr_matrix(np.stack([rng.multinomial(rng.integers(0, 40), row) for row in theta]))
    y = rng.integers(0, 2, 200)
    check = tb.predictive_check(tb.NaiveBayes().fit(words, y), words, y, n_draws=60)
    assert {row.statistic for row in check.failed_checks} == {"different words in a row", "probability of equal words"}
    assert all(row.gap < 0 for row in check.table if row.statistic == "different words in a row")
    dense = words.toarray()
    same = tb.predictive_check(tb.NaiveBayes(tb.Multinomial()).fit(dense, y), dense, y, n_draws=60)
    assert sorted(row.observed for row in same.table) == pytest.approx(sorted(row.observed for row in check.table))
    assert same.table[0].column == "0 … 49"


def test_new_data_that_moved():
    rng = np.random.default_rng(6)
    old, new = mixed(400, rng), mixed(400, rng)
    new["z"] = new["z"] + 1
    new["l"] = np.where(rng.random(400) < 0.5, "c", new["l"])
    check = tb.predictive_check(tb.NaiveBayes().fit(old, "y"), new, "y", n_draws=80)
    assert {row.column for row in check.failed_checks} == {"z", "l"}
    assert check.table[0].statistic == "mean"


# ---- The statistics ---------------------------------------------------------------------------------------------


def test_summaries_against_scipy():
    rng = np.random.default_rng(7)
    rows = rng.normal(size=(60, 3)).round(1) + 1
    rows[rng.random(rows.shape) < 0.2] = np.nan
    rows[:, 2] = np.nan
    found = NUMBERS.compute(rows)
    assert np.isnan(found[:, 2]).all()
    for place in (0, 1):
        known = rows[~np.isnan(rows[:, place]), place]
        expected = [known.mean(), known.std(), stats.skew(known), known.min(), known.max(), (known == 0).mean()]
        np.testing.assert_allclose(found[:, place], expected, rtol=1e-12)
    counts = rng.poisson(2, (40, 1)).astype(float)
    np.testing.assert_allclose(
        COUNTS.compute(counts)[:, 0], [counts.mean(), counts.var() / counts.mean(), counts.max(), (counts == 0).mean()]
    )
    codes = np.array([[0.0], [1.0], [1.0], [np.nan], [2.0]])
    assert LEVELS.compute(codes)[:, 0] == pytest.approx([0.5, stats.entropy([1, 2, 1], base=2)])
    words = count_words(np.array([[2, 1, 0], [0, 3, 0], [0, 0, 0]]), np.arange(3), "words")
    assert WORDS.compute(words)[:, 0] == pytest.approx([1.0, (2 + 6) / (6 + 6)])


def test_huge_offset():
    rng = np.random.default_rng(8)
    X, y = rng.normal(size=(200, 2)) + 1e9, rng.integers(0, 2, 200)
    model = tb.NaiveBayes().fit(X, y)
    assert tb.predictive_check(model, X, y, n_draws=60).failed_checks == []
    assert tb.predictive_check(model, X + np.array([0.0, 1.0]), y, n_draws=60).failed_checks[0][:3:2] == (1, "mean")


# ---- Edges ------------------------------------------------------------------------------------------------------


def test_missing_cells_are_missing_in_the_draws():
    rng = np.random.default_rng(9)
    rows = mixed(300, rng)
    rows["x"][:200] = np.nan
    rows["l"] = np.where(np.arange(300) < 250, None, rows["l"])
    model = tb.NaiveBayes().fit(rows, "y")
    check = tb.predictive_check(model, rows, "y", n_draws=60)
    assert check.failed_checks == []
    observed, drawn, labels, levels = check.replicates("x", 3)
    np.testing.assert_array_equal(np.isnan(drawn), np.isnan(observed)[None].repeat(3, axis=0))
    assert (labels == "no").sum() == (rows["y"] == "no").sum()
    assert levels == ()
    observed, drawn, _, levels = check.replicates("l")
    assert np.isnan(observed).sum() == 250
    assert set(levels) == {"a", "b", "c"}


def test_all_missing_column_has_no_checks():
    rng = np.random.default_rng(10)
    rows = mixed(60, rng)
    model = tb.NaiveBayes().fit(rows, "y")
    check = tb.predictive_check(model, {**rows, "z": np.full(60, np.nan)}, "y", n_draws=20)
    assert {row.column for row in check.table} == {"x", "l"}


def test_one_row_one_class_constant_column():
    rows = {"x": [2.0], "l": ["a"], "y": ["only"]}
    check = tb.predictive_check(tb.NaiveBayes().fit(rows, "y"), rows, "y", n_draws=20)
    assert {row.label for row in check.table} == {"only"}
    assert check.failed_checks == []
    assert all(row.gap == 0 and row.p == 1 for row in check.table if row.column == "x")  # constant: nothing to see
    assert check.n_rows == {"only": 1}


def test_unseen_levels_are_missing_and_unseen_classes_refused():
    rng = np.random.default_rng(11)
    rows = mixed(60, rng)
    for unseen in ("missing", "smooth"):
        model = tb.NaiveBayes(unseen=unseen).fit(rows, "y")
        new = {**rows, "l": np.array(["new", *rows["l"][1:]])}
        observed = tb.predictive_check(model, new, "y", n_draws=10).replicates("l", 1)[0]
        assert np.isnan(observed).sum() == 1
    with pytest.raises(ValueError, match="level 'maybe'"):
        tb.predictive_check(model, {**rows, "y": np.array(["maybe", *rows["y"][1:]])}, "y")


def test_large_classes_are_looked_at_in_part(monkeypatch):
    rng = np.random.default_rng(12)
    X = rng.normal(size=(5000, 2))
    y = (np.arange(5000) >= 4900).astype(int)
    model = tb.NaiveBayes().fit(X, y)
    assert tb.predictive_check(model, X, y, n_draws=5).n_rows == {0: 2000, 1: 100}
    monkeypatch.setattr(module, "_CELLS", 5 * 2 * 2 * 30)
    assert tb.predictive_check(model, X, y, n_draws=5).n_rows == {0: 30, 1: 30}
    monkeypatch.setattr(module, "_CELLS", 5 * 2 * 2 * 10)
    with pytest.raises(ValueError, match="n_draws is 5: with 2 columns in 2 classes"):
        tb.predictive_check(model, X, y, n_draws=5)


def test_tokens_are_bounded(monkeypatch):
    words = csr_matrix(np.full((100, 4), 5))
    y = np.arange(100) % 2
    monkeypatch.setattr(module, "_TOKENS", 200)
    check = tb.predictive_check(tb.NaiveBayes().fit(words, y), words, y, n_draws=5)
    assert check.n_rows == {0: 10, 1: 10}


def test_same_seed_same_answer():
    rng = np.random.default_rng(13)
    rows = mixed(100, rng)
    model = tb.NaiveBayes().fit(rows, "y")
    first, again, other = (tb.predictive_check(model, rows, "y", n_draws=20, random_state=s) for s in (1, 1, 2))
    assert first.table == again.table
    assert first.table != other.table
    np.testing.assert_array_equal(first.replicates("x")[1], again.replicates("x")[1])


def test_refusals():
    rows = mixed(40, np.random.default_rng(14))
    model = tb.NaiveBayes().fit(rows, "y")
    with pytest.raises(ValueError, match="n_draws is 0"):
        tb.predictive_check(model, rows, "y", n_draws=0)
    with pytest.raises(ValueError, match="generative model of rows"):
        tb.predictive_check(tb.NearestClassMean(), rows, "y")
    with pytest.raises(ValueError, match="not fitted"):
        tb.predictive_check(tb.NaiveBayes(), rows, "y")
    with pytest.raises(ValueError, match="found inf"):
        tb.predictive_check(model, {**rows, "x": np.append(rows["x"][1:], np.inf)}, "y")
    with pytest.raises(ValueError, match="no column 'q'"):
        tb.predictive_check(model, rows, "y", n_draws=5).plot("q")
    words = csr_matrix(np.array([[0.5, 1.0], [1.0, 2.0]]))
    with pytest.raises(ValueError, match="not of whole numbers"):
        tb.predictive_check(tb.NaiveBayes().fit(words, [0, 1]), words, [0, 1])


# ---- What is shown ----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_frame_repr_and_pictures():
    rng = np.random.default_rng(15)
    rows = {**mixed(200, rng), "k": rng.poisson(2, 200)}
    model = tb.NaiveBayes({("x", "z"): tb.Gaussian(), "l": tb.Categorical(), "k": tb.Poisson()}).fit(rows, "y")
    check = tb.predictive_check(model, rows, "y", n_draws=30)
    frame = check.to_frame()
    assert list(frame.columns[:4]) == ["column", "class", "statistic", "observed"]
    assert len(frame) == 2 * (2 * 6 + 2 + 4)
    assert (frame["gap"].abs().diff().dropna() <= 1e-12).all()
    assert "36 statistics of 30 draws" in repr(check)
    assert repr(check).endswith("No check failed.")
    for column in (None, "x", "l", "k"):
        axes = check.plot(column).axes
        assert len(axes) == 2
        mpl.pyplot.close(axes[0].figure)
    figure, panel = mpl.pyplot.subplots()
    assert check.plot("x", panel).axes[0] is panel
    mpl.pyplot.close(figure)
