"""Bayesian networks of the public repository: pyAgrum's exact posteriors, counts of real rows, files there and back."""

import csv
import gzip
import json
from collections import Counter
from functools import cache

import numpy as np
import pytest

import tallybayes as tb
from tests.shared import DATA, needs

pytestmark = needs("networks", "reference", "network-samples")
REFERENCE = ["asia", "cancer", "earthquake", "sachs", "survey", "alarm", "insurance", "hepar2"]


@cache
def network(name):
    return tb.BayesianNetwork.from_bif(DATA / "networks" / f"{name}.bif.gz")


@cache
def reference():
    with gzip.open(DATA / "reference" / "network_posteriors.json.gz", "rt") as file:
        return json.load(file)


def rows(name):
    with gzip.open(DATA / "network-samples" / f"{name}.csv.gz", "rt") as file:
        lines = list(csv.DictReader(file))
    return {column: [line[column] for line in lines] for column in lines[0]}


@pytest.mark.slow
@pytest.mark.parametrize("name", REFERENCE)
def test_posteriors(name):
    model = network(name)
    assert {*reference()[name]} == {"prior", "evidence_cases"}
    cases = [{"evidence": {}, "posterior": reference()[name]["prior"]}, *reference()[name]["evidence_cases"]]
    table = {node: [case["evidence"].get(node) for case in cases] for node in model.levels_}
    posteriors = model.predict_proba(table)
    logs = model.score_samples(table)
    for row, case in enumerate(cases):
        assert np.exp(logs[row]) == pytest.approx(case.get("p_evidence", 1.0), rel=1e-6, abs=1e-9)
        if "p_evidence" in case:
            assert model.probability(case["evidence"]) == pytest.approx(case["p_evidence"], abs=1e-9)
        for node, expected in case["posterior"].items():
            found = dict(zip(model.levels_[node], posteriors[node][row], strict=True))
            assert found == pytest.approx(expected, abs=1e-9)
            assert dict(model.query(node, case["evidence"])) == pytest.approx(expected, abs=1e-9)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("name", [*REFERENCE, "water"])
def test_files_there_and_back(name, tmp_path):
    model = network(name)
    model.to_bif(tmp_path / "again.bif")
    again = tb.BayesianNetwork.from_bif(tmp_path / "again.bif")
    assert again.levels_ == model.levels_
    assert again.graph_ == model.graph_
    for node in model.levels_:
        np.testing.assert_array_equal(again.cpt(node).values, model.cpt(node).values)
    model.save(tmp_path / "again.tally")
    np.testing.assert_array_equal(tb.load(tmp_path / "again.tally").cpt(node).values, model.cpt(node).values)


@pytest.mark.slow
def test_tables_of_real_rows_are_counts():
    data = rows("insurance")
    structure = network("insurance").graph_.parents
    model = tb.BayesianNetwork(structure, estimate="mle").fit(data)
    for node, parents in structure.items():
        counted = Counter(zip(*(data[name] for name in (*parents, node)), strict=True))
        table, places = model._estimated_network.nodes[node].statistics.table, model.levels_
        found = {
            tuple(places[name][k] for name, k in zip((*parents, node), place, strict=True)): table[place]
            for place in zip(*np.nonzero(table), strict=True)
        }
        assert found == counted
    half = {node: cells[:10_000] for node, cells in data.items()}
    rest = {node: cells[10_000:] for node, cells in data.items()}
    assert tb.BayesianNetwork(structure, estimate="mle").fit(half).partial_fit(rest).tally_ == model.tally_


@pytest.mark.slow
def test_samples_bring_the_tables_back():
    for name in ("asia", "alarm"):
        given = network(name)
        drawn = given.sample(100_000, random_state=0)
        learned = tb.BayesianNetwork(given.graph_.parents, columns=given.columns).fit(drawn)
        for node, parents in given.graph_.parents.items():
            table, weight = given.cpt(node).values, learned._estimated_network.nodes[node].statistics.weight[..., 0]
            error = np.abs(learned.cpt(node).values - table).max(axis=-1)
            assert (error < 5 / np.sqrt(weight + 1)).all(), (name, node, parents)


def test_structures_of_the_learning_test():
    """R's bnlearn made these rows from A → B, A → D, C → D, B → E, F → E: no wrong structure explains them better."""
    data = rows("learning.test")
    true = {"B": ["A"], "D": ["A", "C"], "E": ["B", "F"]}
    right = tb.BayesianNetwork(true, prior=tb.BDeu(1)).fit(data)
    for wrong in (
        true | {"D": ["A"], "C": []},
        true | {"E": ["B"], "F": []},
        true | {"F": ["A"]},
        true | {"B": ["A", "C"]},
        {"A": [], "B": [], "C": [], "D": [], "E": [], "F": []},
    ):
        other = tb.BayesianNetwork(wrong, prior=tb.BDeu(1)).fit(data)
        assert right.log_evidence() > other.log_evidence()
        assert right.bic_ < other.bic_
    joined = {frozenset((node, *parents)) for node, parents in tb.learn_tree(data).graph_.parents.items() if parents}
    assert joined >= {frozenset("AB"), frozenset("AD"), frozenset("BE")}


def test_missing_cells_of_real_rows_by_em():
    rng = np.random.default_rng(0)
    data = rows("asia")
    true = tb.BayesianNetwork(_asia()).fit(data)
    holed = {node: [None if rng.random() < 0.2 else cell for cell in cells] for node, cells in data.items()}
    em = tb.BayesianNetwork(_asia(), missing="em").fit(holed)
    assert em.converged_
    assert (np.diff(em.history_) > -1e-6).all()
    available = tb.BayesianNetwork(_asia()).fit(holed)
    gaps = [
        sum(np.abs(model.cpt(node).values - true.cpt(node).values).sum() for node in data) for model in (em, available)
    ]
    assert gaps[0] < gaps[1]


def _asia():
    return {"T": ["A"], "L": ["S"], "B": ["S"], "E": ["T", "L"], "X": ["E"], "D": ["E", "B"]}
