"""What users write has the types they expect: `make types` checks this file, and it runs as a test, too."""

from pathlib import Path
from typing import assert_type

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

import tallybayes as tb
from tallybayes.typing import Labels, RandomState, Rows, Weights

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(40, 2)), np.arange(40) % 2
FRAME = {"a": X[:, 0], "b": X[:, 1], "kind": Y}


def train(rows: Rows, labels: Labels, weights: Weights = None) -> tb.NaiveBayes:
    """A function as users annotate theirs."""
    return tb.NaiveBayes().fit(rows, labels, weights)


def test_models_give_themselves() -> None:
    model = train(X, Y)
    assert_type(model, tb.NaiveBayes)
    assert_type(model.partial_fit(X, Y), tb.NaiveBayes)
    assert_type(model.forget(X, Y), tb.NaiveBayes)
    assert_type(model.reestimate(estimate="map"), tb.NaiveBayes)
    assert_type(model + model, tb.NaiveBayes)
    assert_type(tb.GaussianDiscriminant().fit(X, Y), tb.GaussianDiscriminant)
    assert_type(tb.Regression().fit(X, X[:, 0]), tb.Regression)


def test_rows_are_what_people_have(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("a,b,kind\n" + "\n".join(f"{a},{b},{y}" for (a, b), y in zip(X.tolist(), Y.tolist(), strict=True)))
    listed = [{"a": a, "b": b, "kind": y} for (a, b), y in zip(X.tolist(), Y.tolist(), strict=True)]
    for model in (
        train(X, Y),
        train(X.tolist(), Y.tolist(), np.ones(40)),
        train(FRAME, "kind"),
        train(listed, "kind"),
        train(path, "kind"),
        train(str(path), "kind"),
        train(tb.table(path), "kind"),
        train(pd.DataFrame(FRAME), "kind"),
        train(pl.DataFrame(FRAME), "kind"),
        train(pl.DataFrame(FRAME).lazy(), "kind"),
        train(iter([pd.DataFrame(FRAME)]), "kind"),
    ):
        assert model.n_rows_ == 40
    assert tb.NaiveBayes(tb.Multinomial()).fit(sparse.csr_array(np.abs(X).round()), Y).n_rows_ == 40


def test_answers_are_arrays() -> None:
    model = train(X, Y)
    assert_type(model.predict(X), np.ndarray)
    assert_type(model.predict_proba(X), np.ndarray)
    assert_type(model.classes_, np.ndarray)
    assert_type(model.n_parameters_, int)
    assert_type(model.bic_, float)
    assert_type(model.tally_, tb.Tally)
    assert_type(model.explain(X), tb.Explanation)
    assert_type(tb.Regression().fit(X, X[:, 0]).predict(X), np.ndarray)


def test_results_are_known() -> None:
    model = train(X, Y)
    assert_type(tb.evaluate(model, X, Y), tb.Evaluation)
    assert_type(tb.evaluate(tb.Regression().fit(X, X[:, 0]), X, X[:, 0]), tb.RegressionEvaluation)
    assert_type(tb.cross_validate(model, X, Y, 2), tb.CrossValidation)
    assert_type(tb.leave_one_out(model, X, Y), tb.CrossValidation)
    assert_type(tb.dependence(FRAME, "kind"), tb.Dependence)
    assert_type(tb.learn([0, 1], tb.Bernoulli()), tb.Learned)


@pytest.mark.parametrize("seed", [0, None, RNG, np.random.PCG64(0), np.random.SeedSequence(0)])
def test_every_random_state_draws(seed: RandomState) -> None:
    assert tb.Beta(1, 1).sample(3, random_state=seed).shape == (3,)


def test_what_is_no_row_is_noticed() -> None:
    with pytest.raises((tb.TallybayesError, TypeError, ValueError)):
        train(5, Y)  # type: ignore[arg-type]
