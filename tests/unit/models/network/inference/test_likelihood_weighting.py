"""Likelihood weighting: agreement with exact inference within standard errors."""

import itertools

import numpy as np
import pytest
from hypothesis import given as hypothesis_given
from hypothesis import strategies as st

import tallybayes as tb
from tallybayes.errors import DataError, EstimateError, ImpossibleError, TooLargeError
from tests.examples import examples
from tests.shared import DATA, needs
from tests.unit.models.network.network_cases import given, networks, questions


def _agrees(sampled, exact, n_errors=6.0):
    """Whether the answers differ by no more than some standard errors."""
    return np.abs(sampled.probabilities - exact.probabilities) <= n_errors * sampled.standard_errors + 1e-12


@examples(60)
@hypothesis_given(st.data())
def test_sampling_agrees_with_exact_inference(data):
    tables = data.draw(networks(5))
    observed, do = data.draw(questions(tables))
    free = [node for node in tables.levels if node not in observed and node not in do]
    model = given(tables)
    query_nodes = free[:2] or list(tables.levels)[:1]
    try:
        exact = model.query(query_nodes, observed, do=do)
    except ImpossibleError:
        with pytest.raises(EstimateError, match="none of 2,000 draws agrees with"):
            model.query(query_nodes, observed, do=do, inference="sampling", n_draws=2000, random_state=0)
        return
    try:
        sampled = model.query(query_nodes, observed, do=do, inference="sampling", n_draws=40_000, random_state=0)
    except (EstimateError, UserWarning):
        assert model.probability(observed, do=do) < 0.05  # too improbable to be met
        return
    assert sampled.given == exact.given
    assert sampled.probabilities.sum() == pytest.approx(1.0)
    assert _agrees(sampled, exact).all()


@pytest.mark.slow
@needs("networks")
@pytest.mark.parametrize("name", ["asia", "cancer", "earthquake", "survey", "sachs", "alarm", "insurance", "hepar2"])
def test_sampling_of_reference_networks(name):
    model = tb.BayesianNetwork.from_bif(DATA / "networks" / f"{name}.bif.gz")
    (row,) = zip(*model.sample(1, random_state=3).values(), strict=True)
    nodes = list(model.levels_)
    seen = dict(list(zip(nodes, row, strict=True))[:: max(2, len(nodes) // 3)])
    query_nodes = [node for node in nodes if node not in seen]
    apart = []
    for node, seed in itertools.product(query_nodes[:6], range(1, 4)):
        sampled = model.query(node, seen, inference="sampling", n_draws=50_000, random_state=seed)
        exact = model.query(node, seen)
        assert sampled.effective_size > 1000
        assert _agrees(sampled, exact).all()
        differ = (sampled.probabilities - exact.probabilities) / sampled.standard_errors
        apart += differ[exact.probabilities > 0.01].tolist()
    assert 0.3 < np.sqrt(np.mean(np.square(apart))) < 2.0  # the standard errors are neither too large nor too small


def _measured():
    rng = np.random.default_rng(0)
    fire = rng.random(500) < 0.3
    rows = {"fire": fire, "heat": rng.normal(np.where(fire, 60.0, 20.0), 15.0), "smoke": fire ^ (rng.random(500) < 0.1)}
    return tb.BayesianNetwork({"heat": ["fire"], "smoke": ["fire"]}).fit(rows), rows


def test_continuous_evidence_soft_evidence_and_seeds():
    model, _ = _measured()
    for known in ({"heat": 45.0}, {"heat": 45.0, "smoke": {False: 1.0, True: 3.0}}):
        sampled = model.query("fire", known, inference="sampling", random_state=0)
        assert _agrees(sampled, model.query("fire", known)).all()
        again = model.query("fire", known, inference="sampling", random_state=0)
        np.testing.assert_array_equal(sampled.probabilities, again.probabilities)
    moved = model.query("fire", do={"smoke": True}, inference="sampling", random_state=0)
    assert _agrees(moved, model.query("fire")).all()
    assert repr(moved).startswith("p(fire | do(smoke) = True), 200,000 draws (effective size 200,000)\n  False  0.")
    assert "± 0.00" in repr(moved)


def test_informative_missing_values():
    """Labels whose absence is a level, and a measured node beside which stands whether it is there."""
    rng = np.random.default_rng(1)
    ill = rng.random(800) < 0.4
    test = np.where(ill ^ (rng.random(800) < 0.2), "positive", "negative").astype(object)
    test[rng.random(800) < np.where(ill, 0.1, 0.5)] = None  # the well are tested more rarely
    fever = np.where(rng.random(800) < np.where(ill, 0.2, 0.7), np.nan, rng.normal(np.where(ill, 39.0, 37.0), 0.7))
    columns = {"test": tb.WithMissing(tb.Categorical()), "fever": tb.WithMissing(tb.Gaussian())}
    rows = {"ill": ill, "test": test, "fever": fever}
    model = tb.BayesianNetwork({"test": ["ill"], "fever": ["ill"]}, columns=columns).fit(rows)
    before = model.query("ill")[True]
    for known in (
        {"test": None},
        {"fever": None},
        {"fever": 38.2},
        {"test": None, "fever": np.nan},
        {"test": "positive"},
    ):
        exact = model.query("ill", known)
        assert abs(exact[True] - before) > 0.02  # the missing value is evidence, too
        sampled = model.query("ill", known, inference="sampling", random_state=2)
        assert _agrees(sampled, exact).all()
        assert sampled.effective_size > 1000
    joint = model.query(["ill", "test"], {"fever": None}, inference="sampling", random_state=2)
    assert _agrees(joint, model.query(["ill", "test"], {"fever": None})).all()
    for known in ({"fever": None}, {"fever": 38.2}):
        moved = model.query("ill", do=known, inference="sampling", random_state=2)
        assert _agrees(moved, model.query("ill", do=known)).all()
        assert moved.effective_size == pytest.approx(moved.n_draws)  # interventions are no evidence on parents


def test_warning_for_small_effective_size():
    tables = {"rare": [1 - 1e-4, 1e-4], "seen": [[1 - 1e-4, 1e-4], [0.1, 0.9]]}
    model = tb.BayesianNetwork.from_tables({"seen": ["rare"]}, dict.fromkeys(tables, (False, True)), tables)
    with pytest.warns(
        UserWarning, match=r"the effective size of 10,000 draws is \d+, because few agree with seen = True"
    ):
        model.query("rare", {"seen": True}, inference="sampling", n_draws=10_000, random_state=0)


def _tangled(n=150):
    rng = np.random.default_rng(0)
    parents = {f"n{k}": [f"n{j}" for j in rng.choice(k, 3, replace=False)] if k > 2 else [] for k in range(n)}
    tables = {node: rng.dirichlet([1, 1], [2] * len(above)) for node, above in parents.items()}
    return tb.BayesianNetwork.from_tables(parents, dict.fromkeys(parents, (False, True)), tables)


@pytest.mark.slow
def test_sampling_of_a_network_too_large_for_exact_inference():
    model = _tangled()
    with pytest.raises(TooLargeError, match=r"inference='sampling'"):
        model.query("n149")
    rows = model.sample(50_000, random_state=0)
    answer = model.query(["n100", "n149"], inference="sampling", random_state=1)
    share = np.mean(rows["n100"] & rows["n149"])
    assert answer[True, True] == pytest.approx(share, abs=6 * np.sqrt(share / 50_000))
    alone = model.query("n0", inference="sampling", random_state=1)
    assert alone[True] == pytest.approx(model.cpt("n0").values[1], abs=6 * alone.standard_errors[1])
    assert model.sample(3, do={"n0": True}, random_state=0)["n0"].tolist() == [True] * 3
    assert len(model.sample(0)["n0"]) == 0
    with pytest.raises(TooLargeError):
        model.sample(3, {"n149": True})


def test_undefined_rows_raise():
    rows = {"a": [0, 1, 1, 0], "b": [0, 0, 0, 0], "c": [0, 1, 0, 1]}
    columns = {node: tb.Categorical(levels=[0, 1]) for node in "abc"}
    model = tb.BayesianNetwork({"c": ["a", "b"]}, columns=columns, estimate="mle").fit(rows)
    assert model.query("c", {"b": 0}, inference="sampling", random_state=0)[1] == pytest.approx(0.5, abs=0.01)
    with pytest.raises(EstimateError, match="no row has 'c' with a = "):
        model.query("c", do={"b": 1}, inference="sampling", random_state=0)
    with pytest.raises(EstimateError, match="inference is 'draws'; expected 'exact' or 'sampling'"):
        model.query("c", inference="draws")
    with pytest.raises(DataError, match="n_draws is 0"):
        model.query("c", inference="sampling", n_draws=0)
