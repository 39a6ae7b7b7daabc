"""Scores of families: closed forms, the evidence of the network itself, and equal scores of equivalent structures."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import gammaln

import tallybayes as tb
from tallybayes.models.network.structure.encoded_rows import EncodedRows, read_rows
from tallybayes.models.network.structure.structure_scores import ScoreCache, read_score
from tests.examples import examples
from tests.unit.models.network.structure.structures import GRAPHS, graphs, named, rows_of, skeleton_and_colliders

PRIORS = {"bdeu": tb.BDeu(1), "k2": tb.K2(), "Dirichlet": tb.Dirichlet(0.5), "BDeu(7)": tb.BDeu(7)}


def scored(rows: EncodedRows, score: object, edges: np.ndarray) -> float:
    """The score of a structure."""
    masks = [(child, int(sum(1 << k for k in np.flatnonzero(edges[:, child])))) for child in range(len(edges))]
    return sum(ScoreCache(rows, read_score(score)).scores(masks))


@examples(40)
@given(edges=graphs, seed=st.integers(0, 99), n=st.sampled_from([1, 7, 150]), weighted=st.booleans())
def test_scores_equal_log_evidence_of_the_network(edges, seed, n, weighted):
    data = rows_of(seed, n)
    weight = np.random.default_rng(seed).integers(1, 4, n).astype(float) if weighted else None
    rows = read_rows(data, "auto", weight, None, "error")
    model = tb.BayesianNetwork(named(edges)).fit(data, sample_weight=weight)
    for word, prior in PRIORS.items():
        score = word if word.islower() else prior
        expected = model.reestimate(prior=prior).log_evidence()
        np.testing.assert_allclose(scored(rows, score, edges), expected, rtol=1e-10)


@examples(20)
@given(edges=graphs, seed=st.integers(0, 99))
def test_scores_equal_information_criteria_of_the_network(edges, seed):
    data = rows_of(seed, 120)
    model = tb.BayesianNetwork(named(edges), estimate="mle").fit(data)
    rows = read_rows(data, "auto", None, None, "error")
    np.testing.assert_allclose(scored(rows, "bic", edges), -0.5 * model.bic_, rtol=1e-10)
    np.testing.assert_allclose(scored(rows, "aic", edges), -0.5 * model.aic_, rtol=1e-10)


def test_closed_forms():
    # x → y, 3 rows (0, 0), 1 row (0, 1), 2 rows (1, 1): by hand.
    data = {"x": [0, 0, 0, 0, 1, 1], "y": [0, 0, 0, 1, 1, 1]}
    rows = read_rows(data, "auto", None, None, "error")
    edges = np.array([[False, True], [False, False]])

    def dirichlet(counts, alpha):
        total = gammaln(len(counts) * alpha) - gammaln(len(counts) * alpha + sum(counts))
        return total + sum(gammaln(alpha + n) - gammaln(alpha) for n in counts)

    k2 = dirichlet([4, 2], 1) + dirichlet([3, 1], 1) + dirichlet([0, 2], 1)
    bdeu = dirichlet([4, 2], 0.5) + dirichlet([3, 1], 0.25) + dirichlet([0, 2], 0.25)
    likelihood = 4 * math.log(4 / 6) + 2 * math.log(2 / 6) + 3 * math.log(3 / 4) + math.log(1 / 4)
    expected = {"k2": k2, "bdeu": bdeu, "bic": likelihood - 1.5 * math.log(6), "aic": likelihood - 3}
    for score, value in expected.items():
        assert scored(rows, score, edges) == pytest.approx(value, rel=1e-12)


CLASSES: dict[object, list[np.ndarray]] = {}
for graph in GRAPHS:
    CLASSES.setdefault(skeleton_and_colliders(graph), []).append(graph)


@examples(25)
@given(kind=st.sampled_from(range(len(CLASSES))), seed=st.integers(0, 99))
def test_equivalent_structures_have_equal_scores(kind, seed):
    members = list(CLASSES.values())[kind]
    data = rows_of(seed, 80)
    rows = read_rows(data, "auto", None, None, "error")
    expert = tb.BayesianNetwork({"b": ["a"], "d": ["c"]}).fit(rows_of(seed + 1, 500))
    for score in ("bdeu", tb.BDeu(10), "bic", "aic", tb.BDe(expert, 5)):
        found = [scored(rows, score, edges) for edges in members]
        np.testing.assert_allclose(found, found[0], rtol=1e-11)


def test_bde_of_a_uniform_network_is_bdeu():
    data = rows_of(0, 100)
    levels = {name: tuple(range(int(column.max()) + 1)) for name, column in data.items()}
    tables = {name: np.full(len(found), 1 / len(found)) for name, found in levels.items()}
    uniform = tb.BayesianNetwork.from_tables(dict.fromkeys(levels, ()), levels, tables)
    rows = read_rows(data, "auto", None, None, "error")
    for edges in GRAPHS[::50]:
        np.testing.assert_allclose(scored(rows, tb.BDe(uniform, 3), edges), scored(rows, tb.BDeu(3), edges), rtol=1e-11)


def test_repeated_rows_are_counted_once():
    data = rows_of(3, 4000)
    rows = read_rows(data, "auto", None, None, "error")
    few = ScoreCache(rows, read_score("bdeu")).rows
    assert len(few.codes[0]) <= 24 < len(rows.codes[0])
    assert few.weight.sum() == 4000
    for edges in GRAPHS[::60]:
        masks = [(c, int(sum(1 << k for k in np.flatnonzero(edges[:, c])))) for c in range(4)]
        once = read_score("bdeu").score_families(rows, [(c, tuple(np.flatnonzero(edges[:, c]))) for c in range(4)])
        np.testing.assert_allclose(ScoreCache(rows, read_score("bdeu")).scores(masks), once, rtol=1e-11)


def test_scores_of_available_rows_are_scaled_to_all_rows():
    # A parent that says nothing and is mostly missing must not gain by leaving rows out.
    rng = np.random.default_rng(0)
    data = {"x": rng.integers(0, 2, 2000), "noise": rng.integers(0, 2, 2000).astype(object)}
    data["noise"][rng.random(2000) < 0.7] = None
    rows = read_rows(data, "auto", None, None, "available")
    alone, given = read_score("bdeu").score_families(rows, [(0, ()), (0, (1,))])
    assert given < alone
    assert given == pytest.approx(alone, rel=0.03)  # as if all rows were known


@pytest.mark.parametrize("score", ["BDeu", "likelihood", tb.Dirichlet([1, 2]), tb.Gamma(1, 1), True, -1.0, 0, None])
def test_invalid_scores_raise(score):
    with pytest.raises((tb.PriorError, tb.EstimateError), match=r"score|pseudo-counts"):
        read_score(score)
