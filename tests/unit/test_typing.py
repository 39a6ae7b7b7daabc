"""What users write has the types they expect: `make types` checks this file, and it runs as a test, too."""

import importlib.util
import inspect
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, assert_type, get_overloads

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.naive_bayes import GaussianNB

import tallybayes as tb
import tallybayes.sklearn as drop_in
from tallybayes.typing import (
    Candidates,
    ClassPrior,
    Columns,
    EstimatorLike,
    Labels,
    Parents,
    Priors,
    RandomState,
    Rows,
    SampleWeights,
)

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(40, 2)), np.arange(40) % 2
FRAME = {"a": X[:, 0], "b": X[:, 1], "kind": Y}


def train(rows: Rows, labels: Labels, weights: SampleWeights = None) -> tb.NaiveBayes:
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
    assert_type(tb.LinearRegression().fit(X, X[:, 0]), tb.LinearRegression)


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
    assert_type(tb.LinearRegression().fit(X, X[:, 0]).predict(X), np.ndarray)


def test_results_are_known() -> None:
    model = train(X, Y)
    assert_type(tb.evaluate(model, X, Y), tb.Evaluation)
    assert_type(tb.evaluate(tb.LinearRegression().fit(X, X[:, 0]), X, X[:, 0]), tb.RegressionEvaluation)
    assert_type(tb.cross_validate(model, X, Y, 2), tb.Evaluation)
    assert_type(tb.leave_one_out(model, X, Y), tb.Evaluation)
    assert_type(tb.dependence(FRAME, "kind"), tb.results.Dependence)
    assert_type(tb.fit_distribution([0, 1], tb.Bernoulli()), tb.FittedDistribution)


def test_validations_are_known_by_their_models() -> None:
    network, chain = tb.BayesianNetwork({"b": ["a"]}), tb.HiddenMarkovModel()
    rows, steps = {"a": Y.tolist(), "b": Y.tolist()}, [Y[:20], Y[20:]]
    assert_type(tb.cross_validate(tb.LinearRegression(), X, X[:, 0], 2), tb.RegressionEvaluation)
    assert_type(tb.cross_validate(tb.Mixture(2, n_init=1, random_state=0), X[:9], folds=2), tb.DensityEvaluation)
    assert_type(tb.cross_validate(network, rows, folds=Y), tb.DensityEvaluation)
    assert_type(tb.evaluate(network.fit(rows), rows, "b"), tb.Evaluation)
    assert_type(tb.evaluate(chain.fit(steps, steps), steps), tb.DensityEvaluation)
    candidates: Candidates = {"estimate": ["map", "bayes"]}
    assert_type(tb.cross_validate(tb.NaiveBayes(), X, Y, 2, candidates=candidates), tb.results.Selection)
    assert_type(tb.leave_one_out(tb.NaiveBayes(), X, Y, candidates=[{"estimate": "map"}]), tb.results.Selection)


def test_settings_are_what_people_write() -> None:
    columns: Columns = {"a": tb.LogNormal(), ("b",): "auto", ...: "suggest"}
    named = {"a": tb.Gaussian(), "b": tb.TiedGaussian()}
    prior: Priors = {"a": tb.NormalInverseGamma(0, 1, 2, 3), "b": tb.NormalInverseGamma(0, 1, 2, 3)}
    shares: ClassPrior = {0: 0.25, 1: 0.75}
    weak = [tb.NormalInverseGamma(0, 1, 2, 3)]
    for model in (
        tb.NaiveBayes(tb.Gaussian(), prior=prior, class_prior=shares),
        tb.NaiveBayes(named, prior=weak, class_prior=[0.5, 0.5]),
        tb.NaiveBayes("auto", prior="empirical", class_prior=tb.Dirichlet(1)),
        tb.NaiveBayes(prior=tb.NaiveBayes().fit(FRAME, "kind").tally_, class_prior=np.array([0.5, 0.5])),
        tb.AveragedOneDependence(bins=4, prior=0.5),
    ):
        assert_type(model.fit(FRAME, "kind").predict_proba(FRAME, class_prior="uniform"), np.ndarray)
    assert tb.NaiveBayes(columns).columns is columns
    with pytest.raises(tb.DataError):
        tb.NaiveBayes(tb.Gaussian).fit(X, Y)  # type: ignore[arg-type]


def test_networks_take_graphs_and_names() -> None:
    rows = {"a": Y.tolist(), "b": Y.tolist()}
    edges, known = [("a", "b")], {"a": 1}
    graphs: list[Parents] = [{"b": "a"}, {"b": ["a"]}, edges, tb.learn_structure(rows)]
    assert [tb.BayesianNetwork(graph).fit(rows).n_rows_ for graph in graphs] == [40] * 4
    model = tb.BayesianNetwork(edges).fit(rows)
    model.query("b", known), model.query(["a", "b"]), model.most_probable(known)
    assert_type(model.predict(rows, "b"), np.ndarray)
    assert_type(model.predict_proba(rows, "b"), np.ndarray)
    assert_type(model.predict_proba({"a": [1, 0]}, ["b"])["b"], np.ndarray)
    assert not model.d_separated("a", ["b"], given=())


def test_sequences_and_streams_take_lengths_and_times(tmp_path: Path) -> None:
    chain = tb.HiddenMarkovModel(2, random_state=0)
    assert_type(chain.fit(X, lengths=[20, 20]), tb.HiddenMarkovModel)
    assert_type(chain.predict([X[:20], X[20:]])[0], np.ndarray)
    window = tb.Window(tb.NaiveBayes(), duration=timedelta(days=9))
    assert_type(window.partial_fit(X[:2], Y[:2], time=[date(2026, 1, 1), date(2026, 1, 2)]), tb.Window)
    window.advance(datetime(2026, 1, 3)).save(tmp_path / "window.tally")
    assert_type(window.now_, float | np.datetime64)
    assert tb.load(str(tmp_path / "window.tally")).n_rows_ == 2


def test_what_is_stated_is_of_its_class() -> None:
    two = tb.NaiveBayes.from_parameters(
        {"x": {0: {"mean": 0, "variance": 1}, 1: {"mean": 3, "variance": 1}}}, [0.5, 0.5]
    )
    assert_type(two, tb.NaiveBayes)
    means = [[0.0], [3.0]]
    covariances = np.ones((2, 1, 1))
    assert_type(tb.GaussianDiscriminant.from_parameters(means, covariances), tb.GaussianDiscriminant)


def test_a_learner_may_be_of_another_library() -> None:
    learners: dict[str, EstimatorLike] = {
        "ours": tb.NaiveBayes(),
        "theirs": GaussianNB(),
        "drop-in": drop_in.GaussianNB(),
    }
    assert list(tb.learning_curves(learners, X, Y, [8, 16], n_repeats=1).names) == list(learners)


@pytest.mark.parametrize("seed", [0, None, RNG, np.random.PCG64(0), np.random.SeedSequence(0)])
def test_every_random_state_draws(seed: RandomState) -> None:
    assert tb.Beta(1, 1).sample(3, random_state=seed).shape == (3,)


def test_what_is_no_row_is_noticed() -> None:
    with pytest.raises((tb.TallybayesError, TypeError, ValueError)):
        train(5, Y)  # type: ignore[arg-type]


# ---- How much of it is known --------------------------------------------------------------------------------------

MOST = 0.0685  # the share of public parameters and results that are Any; where it falls, so shall this
ROOMS = ["results", "sklearn", "testing", "typing", *(["hmmlearn"] if importlib.util.find_spec("hmmlearn") else [])]
MODULES = [importlib.import_module(f"tallybayes.{name}") for name in ROOMS]
PUBLIC = [getattr(tb, name) for name in tb._PUBLIC] + [getattr(one, name) for one in MODULES for name in one.__all__]


def function_of(member: Any) -> Callable[..., Any] | None:
    """The function that an attribute of a class is made of, as it was written."""
    if isinstance(member, property | cached_property):
        member = member.fget if isinstance(member, property) else member.func
    member = inspect.unwrap(getattr(member, "__func__", member))
    return member if inspect.isfunction(member) else None


def public_functions() -> Iterator[tuple[Callable[..., Any], bool]]:
    """Public functions, constructors, methods and properties; and whether their first parameter is the object."""
    for thing in PUBLIC:
        if inspect.isfunction(thing):
            yield thing, False
        for name in dir(thing) if isinstance(thing, type) else ():
            member = inspect.getattr_static(thing, name)
            function = function_of(member) if name == "__init__" or not name.startswith("_") else None
            if function is not None and (function.__module__.startswith("tallybayes") or name == "__init__"):
                yield function, not isinstance(member, staticmethod)


def positions() -> Iterator[tuple[str, str, str]]:
    """Every parameter and every result that has a type: the function, the name, and the type as it is written."""
    for function, bound in dict(public_functions()).items():
        for form in get_overloads(function) or [function]:
            first = next(iter(inspect.signature(form).parameters), None) if bound else None
            for name, kind in form.__annotations__.items():
                if name != first and not (name == "return" and function.__name__ == "__init__"):
                    yield f"{function.__module__}.{function.__qualname__}", name, str(kind).removeprefix("typing.")


def test_few_public_types_are_unknown() -> None:
    found = list(positions())
    unknown = [f"{function}: {name}" for function, name, kind in found if kind == "Any"]
    assert len(found) > 2700, "all of them are read"
    assert len(unknown) <= MOST * len(found), "say what is taken and given (tallybayes.typing has names for much of it)"
