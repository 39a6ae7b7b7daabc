"""The covariance that GaussianDiscriminant() chooses: by leave-one-out, for whole rows, and fixed from then on."""

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_iris

import tallybayes as tb
from tallybayes.data.table import open_table
from tallybayes.errors import StatisticsError
from tallybayes.families.multivariate_gaussian import TiedMultivariateGaussian
from tallybayes.models.discriminant import covariance_choice


def made(scales, n=400, seed=0, heavy=False):
    """Two classes about 1.5 apart with these standard deviations; `heavy` rows are t-distributed."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    tails = np.sqrt(rng.chisquare(3, (n, 1)) / 3) if heavy else 1.0
    return rng.normal(size=(n, 3)) / tails * np.array(scales)[y][:, None] + 1.5 * y[:, None], y


DIFFERENT, ALIKE = made([1.0, 3.0]), made([1.0, 1.0], n=60, heavy=True)


@pytest.mark.parametrize(("rows", "expected"), [(DIFFERENT, "full"), (ALIKE, "tied")])
def test_the_chosen_covariance_has_the_lowest_leave_one_out_loss(rows, expected):
    losses = {name: tb.leave_one_out(tb.GaussianDiscriminant(name), *rows).log_loss.value for name in ("full", "tied")}
    assert min(losses, key=losses.get) == expected
    model = tb.GaussianDiscriminant().fit(*rows)
    assert model.covariance_ == expected
    assert f"covariance: {expected}" in repr(model)
    same = tb.GaussianDiscriminant(expected).fit(*rows)
    assert same.covariance_ == expected
    np.testing.assert_array_equal(model.predict_proba(rows[0]), same.predict_proba(rows[0]))
    assert model.log_evidence() == same.log_evidence()


@pytest.mark.parametrize("load", [load_iris, load_breast_cancer, load_digits])
def test_the_loss_on_other_rows_is_close_to_that_of_the_better_covariance(load):
    X, y = load(return_X_y=True)
    train = np.random.default_rng(0).permutation(len(y)) < 0.6 * len(y)
    loss = {
        name: tb.evaluate(tb.GaussianDiscriminant(name).fit(X[train], y[train]), X[~train], y[~train]).log_loss.value
        for name in ("auto", "full", "tied")
    }
    assert loss["auto"] <= min(loss["full"], loss["tied"]) + 0.02


def test_a_row_of_weight_two_is_that_row_twice():
    X, y = made([1.0, 1.3], n=50, seed=3)
    weight = np.random.default_rng(1).integers(0, 3, len(y))
    twice = np.repeat(np.arange(len(y)), weight)
    table, repeated = (pd.DataFrame(rows).assign(y=labels) for rows, labels in ((X, y), (X[twice], y[twice])))
    found = []
    for rows, some in ((table[weight > 0], weight[weight > 0].astype(float)), (repeated, np.ones(len(twice)))):
        model = tb.GaussianDiscriminant("full").fit(rows, "y", some)
        losses = covariance_choice._losses(model, open_table(rows), some, np.arange(len(rows)))
        found.append(losses @ some)
    assert found[0] == pytest.approx(found[1], rel=1e-12)
    assert tb.GaussianDiscriminant().fit(X, y, weight).covariance_ == (
        tb.GaussianDiscriminant().fit(X[twice], y[twice]).covariance_
    )


def test_rows_without_label_or_with_missing_cells_do_not_decide():
    X, y = DIFFERENT
    holed, labels = np.concatenate([X, np.full((300, 3), np.nan), X]), [*y, *y[:300], *[None] * len(y)]
    model = tb.GaussianDiscriminant(unlabeled="skip").fit(holed, labels)
    assert model.covariance_ == "full"
    assert tb.GaussianDiscriminant(unlabeled="skip").fit(holed[300:800], labels[300:800]).covariance_ == "full"
    nothing = tb.GaussianDiscriminant().fit([[np.nan, 1.0], [2.0, np.nan], [1.0, np.nan]], [0, 1, 1])
    assert nothing.covariance_ == "tied"
    assert tb.GaussianDiscriminant().fit([[1.0, 2.0]], ["only"]).covariance_ == "tied"


def test_a_singular_class_is_tied():
    X, y = DIFFERENT
    few = np.concatenate([np.flatnonzero(y == 0)[:2], np.flatnonzero(y == 1)[:50]])
    model = tb.GaussianDiscriminant(estimate="mle").fit(X[few], y[few])
    assert model.covariance_ == "tied"
    assert np.isfinite(model.predict_proba(X)).all()


@pytest.mark.parametrize("shrinkage", ["auto", 0.5])
def test_shrunk_covariances_are_chosen_by_folds(shrinkage):
    for rows, expected in ((DIFFERENT, "full"), (ALIKE, "tied")):
        assert tb.GaussianDiscriminant(shrinkage=shrinkage).fit(*rows).covariance_ == expected


def test_the_choice_stays(tmp_path):
    X, y = DIFFERENT
    model = tb.GaussianDiscriminant().fit(X, y)
    model.save(tmp_path / "model.tally")
    back = tb.load(tmp_path / "model.tally")
    assert back.covariance_ == "full"
    np.testing.assert_array_equal(back.predict_proba(X), model.predict_proba(X))
    assert model.without_rows().partial_fit(*ALIKE).covariance_ == "full"
    forgetful = tb.GaussianDiscriminant().fit(np.concatenate([ALIKE[0], X]), np.concatenate([ALIKE[1], y]))
    assert forgetful.covariance_ == "full"
    assert forgetful.forget(X, y).covariance_ == "full"
    kept = tb.GaussianDiscriminant("full").fit(*ALIKE)
    np.testing.assert_allclose(forgetful.predict_proba(X), kept.predict_proba(X), rtol=1e-9)
    assert tb.GaussianDiscriminant().partial_fit(*ALIKE).partial_fit(X, y).covariance_ == "tied"
    assert model.reestimate(covariance="tied").covariance_ == "tied"
    counted = tb.GaussianDiscriminant().fit_tally(tb.GaussianDiscriminant("tied").fit(X, y).tally_)
    assert counted.covariance_ == "full"  # of a tally without a choice
    naive = tb.NaiveBayes().fit(X, y)
    columns = tb.GaussianDiscriminant().fit_tally(naive.tally_)
    assert columns.covariance_ == "diagonal"
    np.testing.assert_allclose(columns.predict_proba(X), naive.predict_proba(X), rtol=1e-9)
    counts = tb.NaiveBayes(tb.Poisson()).fit(np.abs(X).round(), y)
    assert tb.GaussianDiscriminant().fit_tally(counts.tally_).covariance_ == "full"


def test_models_of_one_choice_merge():
    X, y = DIFFERENT
    halves = [tb.GaussianDiscriminant().fit(X[part], y[part]) for part in (slice(200), slice(200, 400))]
    assert [half.covariance_ for half in halves] == ["full", "full"]
    whole = halves[0] + halves[1]
    np.testing.assert_allclose(whole.predict_proba(X), tb.GaussianDiscriminant().fit(X, y).predict_proba(X), rtol=1e-9)
    other = tb.GaussianDiscriminant().fit(*ALIKE)
    with pytest.raises(StatisticsError, match=r"'full' here and 'tied' there.*\n.*reestimate\(covariance="):
        _ = whole + other
    both = whole.reestimate(covariance="tied") + other.reestimate(covariance="tied")
    assert both.n_rows_ == 460


def test_sources_decide_by_a_sample(tmp_path, monkeypatch):
    X, y = DIFFERENT
    order = np.argsort(y, kind="stable")  # the first batch has one class
    rows = pd.DataFrame(X[order], columns=list("abc")).assign(y=y[order])
    rows.to_parquet(tmp_path / "rows.parquet")
    for source in (tmp_path / "rows.parquet", lambda: iter([rows[:100], rows[100:]]), iter([rows[:100], rows[100:]])):
        assert tb.GaussianDiscriminant().fit(source, "y").covariance_ == "full"
    monkeypatch.setattr(covariance_choice, "MOST_ROWS", 150)
    monkeypatch.setattr(covariance_choice, "_SCORED", (80, 90))
    model = tb.GaussianDiscriminant().fit(rows, "y")
    assert model.covariance_ == "full"
    assert isinstance(tb.GaussianDiscriminant().fit(*ALIKE).tally_.factors[1].family, TiedMultivariateGaussian)
