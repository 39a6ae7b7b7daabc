"""EM in networks, against EM over all completions of every row."""

from __future__ import annotations

import math
import warnings
from itertools import product

import numpy as np
import pytest
from hypothesis import given as hypothesis_given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

import tallybayes as tb
from tallybayes.data.table import Table
from tallybayes.errors import DataError, EstimateError, NotForgettableError, PriorError, TooLargeError
from tallybayes.models.network.e_step import in_batches
from tallybayes.models.network.inference.evidence import Evidence, read_rows
from tallybayes.models.network.inference.most_probable import _eliminate, _reduced_factors
from tests.examples import examples
from tests.shared import DATA, needs
from tests.unit.models.network.network_cases import given, networks


def _reference(tables, rows, weight, more, start, n_steps):
    """EM by summing over every completion of every row: expected tables after so many steps."""
    nodes, current = list(tables.parents), start
    for _ in range(n_steps):
        counts = {node: np.zeros(tables.tables[node].shape) for node in nodes}
        value = 0.0
        for row, w in zip(zip(*(rows[node] for node in nodes), strict=True), weight, strict=True):
            choices = [
                range(len(tables.levels[node])) if cell is None else [tables.levels[node].index(cell)]
                for node, cell in zip(nodes, row, strict=True)
            ]
            shares = []
            for codes in product(*choices):
                code = dict(zip(nodes, codes, strict=True))
                places = {node: tuple(code[name] for name in (*tables.parents[node], node)) for node in nodes}
                shares.append((math.prod(current[node][places[node]] for node in nodes), places))
            total = math.fsum(share for share, _ in shares)
            value += w * math.log(total)
            for share, places in shares:
                for node, place in places.items():
                    counts[node][place] += w * share / total
        current = {node: _normalized(table + more) for node, table in counts.items()}
    return current, value, counts


def _normalized(table):
    total = table.sum(axis=-1, keepdims=True)
    return np.where(total > 0, table / np.where(total > 0, total, 1.0), 1.0 / table.shape[-1])


def _holed(data, tables, n_rows):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    drawn = given(tables).sample(n_rows, random_state=rng)
    rows = {node: [None if rng.random() < 0.3 else cell.item() for cell in cells] for node, cells in drawn.items()}
    for node, levels in tables.levels.items():
        for place, level in enumerate(levels):
            rows[node][place] = level  # all levels are seen
    return rows, rng.choice([0.5, 1.0, 2.0], n_rows)


@pytest.mark.slow
@examples(25)
@hypothesis_given(st.data())
def test_em_equals_sums_over_all_completions(data):
    tables = data.draw(networks(3, zeros=False))
    rows, weight = _holed(data, tables, 12)
    columns = {node: tb.Categorical(levels=levels) for node, levels in tables.levels.items()}
    for estimate, more in (("mle", 0.0), ("map", 1.0), ("bayes", 1.0)):
        network = tb.BayesianNetwork(tables.parents, columns=columns, missing="em", estimate=estimate, tol=1e-300)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # three steps are enough to compare
            model = network.set_params(max_iter=3).fit(rows, sample_weight=weight)
        available = tb.BayesianNetwork(tables.parents, columns=columns).fit(rows, sample_weight=weight)
        begin = {node: available.cpt(node).values for node in tables.parents}
        _, _, counts = _reference(tables, rows, weight, more, begin, 1)
        if model.history_:
            ends = []  # most likely tables set out from one step of add-one, and from three
            for n_steps in (1, 3) if estimate == "mle" else (1,):
                start = _reference(tables, rows, weight, 1.0, begin, n_steps - 1)[0] if n_steps > 1 else begin
                start = _reference(tables, rows, weight, more, start, 1)[0]
                ends.append(_reference(tables, rows, weight, more, start, len(model.history_))[1:])
            value, counts = max(ends, key=lambda end: end[0])
            assert model._em_result.log_likelihood == pytest.approx(value, abs=1e-9)
        for node in tables.parents:
            np.testing.assert_allclose(model._estimated_network.nodes[node].statistics.table, counts[node], atol=1e-9)
        history = np.array(model.history_)
        assert (np.diff(history) > -1e-9).all()


def test_objective_is_the_likelihood_of_observed_cells():
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2, 200)
    rows = {"a": a.tolist(), "b": (a ^ (rng.random(200) < 0.1)).tolist(), "x": rng.normal(a * 3.0, 1.0)}
    for name in ("a", "b"):
        rows[name] = [None if rng.random() < 0.3 else int(cell) for cell in rows[name]]
    rows["x"][rng.random(200) < 0.2] = np.nan
    mle = tb.BayesianNetwork({"b": ["a"], "x": ["a"]}, missing="em", estimate="mle", max_iter=500, tol=1e-12).fit(rows)
    assert mle.objective_ == "log likelihood"
    assert mle.converged_
    assert mle.history_[-1] == pytest.approx(mle.score_samples(rows).sum(), abs=1e-6)
    assert (np.diff(mle.history_) > -1e-9).all()
    posterior = tb.BayesianNetwork({"b": ["a"], "x": ["a"]}, missing="em", estimate="map").fit(rows)
    assert posterior.objective_ == "log posterior"
    assert (np.diff(posterior.history_) > -1e-9).all()


def test_em_is_unbiased_where_available_cases_are_not():
    # The parent is hidden more often where the child is "yes": complete cases then show too few of those.
    rng = np.random.default_rng(1)
    a = rng.integers(0, 2, 20_000)
    b = (rng.random(20_000) < np.where(a == 1, 0.8, 0.4)).astype(int)
    hidden = rng.random(20_000) < np.where(b == 1, 0.8, 0.1)
    rows = {"a": [None if h else int(v) for v, h in zip(a, hidden, strict=True)], "b": b}
    em = tb.BayesianNetwork({"b": ["a"]}, missing="em").fit(rows)
    available = tb.BayesianNetwork({"b": ["a"]}).fit(rows)
    assert em.cpt("b").values[1, 1] == pytest.approx(0.8, abs=0.02)
    assert em.cpt("a").values[1] == pytest.approx(0.5, abs=0.02)
    assert available.cpt("b").values[1, 1] < 0.6


def test_hidden_node_is_estimated_from_others():
    rng = np.random.default_rng(2)
    hidden = rng.random(3000) < 0.4
    rows = {"h": [None] * 3000, "x": rng.normal(np.where(hidden, 4.0, 0.0), 1.0)}
    for name in "uvw":
        rows[name] = (rng.random(3000) < np.where(hidden, 0.9, 0.2)).astype(int)
    parents = {name: ["h"] for name in "uvwx"}
    model = tb.BayesianNetwork(
        parents, columns={"h": tb.Categorical(levels=(0, 1))}, missing="em", random_state=0, max_iter=500
    ).fit(rows)
    share = model.cpt("h").values
    assert sorted(share) == pytest.approx([0.4, 0.6], abs=0.03)
    assert sorted(model.cpt("x").values[:, 0]) == pytest.approx([0.0, 4.0], abs=0.15)


@pytest.mark.slow
def test_hidden_node_is_estimated_from_many_rows():
    """Levels drawn by chance, row by row, differ less and less: EM stopped after two steps as if it had arrived."""
    rng = np.random.default_rng(4)
    shares, kinds = rng.dirichlet(np.full(3, 5.0), (3, 5)), rng.integers(0, 3, 200_000)
    cells = (rng.random((len(kinds), 5, 1)) > shares[kinds].cumsum(axis=-1)[..., :-1]).sum(axis=-1).astype(np.int8)
    different, n_times = np.unique(cells, axis=0, return_counts=True)
    truth = n_times @ np.log(np.prod(shares[:, np.arange(5), different], axis=-1).mean(axis=0))
    rows = {name: cells[:, place] for place, name in enumerate("uvwxy")}
    columns = {"h": tb.Categorical(levels=range(3))}
    network = tb.BayesianNetwork({name: ["h"] for name in rows}, columns=columns, missing="em", max_iter=5000)
    for seed in range(3):
        found = network.set_params(random_state=seed).fit(rows)
        assert found._em_result.log_likelihood > truth - 100  # where it stopped was 2,300 below


@pytest.mark.slow
def test_maximum_likelihood_is_not_below_that_under_a_prior():
    for seed in range(2):
        rng = np.random.default_rng(seed)
        shares, kinds = rng.dirichlet(np.full(3, 3.0), (3, 5)), rng.integers(0, 3, 600)
        cells = (rng.random((600, 5, 1)) > shares[kinds].cumsum(axis=-1)[..., :-1]).sum(axis=-1)
        rows = {name: cells[:, place] for place, name in enumerate("uvwxy")}
        rows["h"] = [int(kind) if rng.random() < 0.02 * (seed % 2) else None for kind in kinds]
        columns = {"h": tb.Categorical(levels=range(3))}
        network = tb.BayesianNetwork({name: ["h"] for name in "uvwxy"}, columns=columns, missing="em", max_iter=2000)
        ends = {
            name: network.set_params(estimate=name, random_state=seed).fit(rows)._em_result.log_likelihood
            for name in ("mle", "map", "bayes")
        }
        assert ends["mle"] > max(ends["map"], ends["bayes"])


def test_complete_rows_need_no_em():
    rows = {"a": [0, 1, 1], "b": [1, 1, 0]}
    model = tb.BayesianNetwork({"b": ["a"]}, missing="em").fit(rows)
    assert model.history_ == []
    assert not model.tally_.soft
    assert model.tally_ == tb.BayesianNetwork({"b": ["a"]}).fit(rows).tally_
    model.partial_fit(rows).forget(rows)


def test_invalid_use_of_em_raises():
    rows = {"a": [0, 1, 1, None], "b": [1, 1, 0, 0]}
    model = tb.BayesianNetwork({"b": ["a"]}, missing="em").fit(rows)
    assert model.tally_.soft
    model.partial_fit({"a": [0], "b": [1]})
    assert model.history_ == []
    with pytest.raises(NotForgettableError, match=r"EM imputed"):
        model.forget({"a": [0], "b": [1]})
    with pytest.raises(DataError, match=r"column 'a' has missing cells; missing='em'"):
        model.partial_fit({"a": [None], "b": [1]})
    for call in (model.log_evidence, model.description_length):
        with pytest.raises(EstimateError, match=r"EM filled in"):
            call()
    with pytest.raises(AttributeError, match=r"counts have changed since EM ended"):
        _ = model.bic_
    with pytest.raises(PriorError, match=r"no maximum to converge to"):
        tb.BayesianNetwork({"b": ["a"]}, missing="em", estimate="map", prior=tb.Dirichlet(0.1)).fit(
            {"a": [0, 1, 0, None], "b": [1, 0, 1, 0]}
        )
    for setting in ({"max_iter": 0}, {"tol": -1.0}):
        with pytest.raises(EstimateError, match=r"max_iter is 0|tol is -1.0"):
            tb.BayesianNetwork({"b": ["a"]}, missing="em", **setting).fit(rows)


def test_levels_that_occur_only_with_missing_parents():
    rows = {"a": [0, 1, None], "b": ["x", "y", "z"]}
    assert tb.BayesianNetwork({"b": ["a"]}, missing="em").fit(rows).levels_["b"] == ("x", "y", "z")
    with pytest.warns(UserWarning, match=r"level 'z' of 'b' occurs only with missing parents"):
        assert tb.BayesianNetwork({"b": ["a"]}).fit(rows).levels_["b"] == ("x", "y")
    with pytest.raises(DataError, match=r"no row has 'b', so its levels are unknown"):
        tb.BayesianNetwork({"b": ["a"]}, missing="em").fit({"a": [0, 1], "b": [None, None]})


def test_hidden_nodes_need_no_column():
    rng = np.random.default_rng(2)
    hidden = rng.random(2000) < 0.4
    rows = {name: (rng.random(2000) < np.where(hidden, 0.9, 0.2)).astype(int) for name in "uvw"}
    parents = {name: ["h"] for name in "uvw"}
    columns = {"h": tb.Categorical(levels=("no", "yes"))}
    absent = tb.BayesianNetwork(parents, columns=columns, missing="em", random_state=0, max_iter=500).fit(rows)
    empty = tb.BayesianNetwork(parents, columns=columns, missing="em", random_state=0, max_iter=500)
    assert absent.tally_.isclose(empty.fit(rows | {"h": [None] * 2000}).tally_, 1e-9)
    with pytest.raises(
        DataError, match=r"no column 'h'.*\n.*\n    A node that is never observed needs missing='em' and columns="
    ):
        tb.BayesianNetwork(parents).fit(rows)


def test_em_has_the_levels_of_the_prior():
    expert = tb.BayesianNetwork.from_tables(
        {"smoke": ["fire"]},
        {"fire": ["no", "small", "big"], "smoke": [False, True]},
        {"fire": [0.8, 0.1, 0.1], "smoke": [[0.9, 0.1], [0.2, 0.8], [0.1, 0.9]]},
    )
    rows = {"fire": ["no", "small", None, "no"], "smoke": [False, True, True, None]}
    model = tb.BayesianNetwork({"smoke": ["fire"]}, prior=tb.BDe(expert, 1000), missing="em").fit(rows)
    assert model.levels_["fire"] == ("big", "no", "small")
    assert model.tally_.soft
    assert model.query("smoke", {"fire": "big"})[True] == pytest.approx(0.9, abs=0.01)


def _expected_row_by_row(network, known, weight):
    """Expected counts of every node from posteriors, and the log likelihood by variable elimination, of all rows."""
    families = [(*network.graph.parents[node], node) for node in network.levels]
    ((_, posterior),) = network.posteriors(known, families)
    counts = [weight @ posterior.joint(nodes) for nodes in families]
    shapes = [[len(network.levels[node]) for node in nodes] for nodes in families]
    value = 0.0
    for row, of_row in enumerate(weight):
        observed = {node: codes[row : row + 1] for node, codes in known.codes.items() if codes[row] >= 0}
        factors, _ = _reduced_factors(network, tuple(network.levels), Evidence(1, observed, {}, {}))
        value += of_row * _eliminate(factors, network.order_with())[1]
    return [part.reshape(shape) for part, shape in zip(counts, shapes, strict=True)], value


def _looked_up(network, known, weight):
    """Return counts and log-likelihood of families without missing nodes."""
    counts, value = [], 0.0
    for node, size in zip(network.levels, network.sizes, strict=True):
        names = (*network.graph.parents[node], node)
        codes = [known.codes.get(name, np.full(known.n_rows, -1)) for name in names]
        rows = np.flatnonzero(np.all([column >= 0 for column in codes], axis=0))
        table = np.zeros((*(len(network.levels[name]) for name in names[:-1]), size))
        np.add.at(table, tuple(column[rows] for column in codes), weight[rows])
        counts.append(table)
        value += float(weight[rows] @ np.log(network.tables[node][tuple(column[rows] for column in codes)]))
    return counts, value


@needs("networks")
@pytest.mark.parametrize(("name", "share"), [("insurance", 0.1), ("insurance", 0.4), ("alarm", 0.7)])
def test_expected_counts_equal_those_of_every_row(name, share):
    model = tb.BayesianNetwork.from_bif(DATA / "networks" / f"{name}.bif.gz")
    rng = np.random.default_rng(0)
    drawn = model.sample(60, random_state=0)
    rows = {node: np.where(rng.random(60) < share, None, cells) for node, cells in drawn.items()}
    network, weight = model._estimated_network.inference, rng.choice([0.5, 1.0, 3.0], 60)
    known = read_rows(network, Table(rows), "missing")
    counts, value = _expected_row_by_row(network, known, weight)
    fixed, fixed_value = _looked_up(network, known, weight)
    (part,) = in_batches(network, known, weight)
    more, _, more_value = part.expect(network)
    assert fixed_value + more_value == pytest.approx(value, rel=1e-13)
    for once, expected, wanted in zip(fixed, more, counts, strict=True):
        np.testing.assert_allclose(once + expected, wanted, atol=1e-12)


@pytest.mark.slow
def test_em_of_a_network_too_large_for_queries():
    """Memory depends on the missing cells of a row, not on the size of the network."""
    rng = np.random.default_rng(0)
    parents = {f"n{k}": [f"n{j}" for j in rng.choice(k, 3, replace=False)] if k > 2 else [] for k in range(120)}
    rows = {node: [bool(one) for one in rng.random(200) < 0.5] for node in parents}
    for node in parents:
        rows[node] = [None if rng.random() < 0.01 else cell for cell in rows[node]]
    columns = tb.Categorical(levels=[False, True])
    model = tb.BayesianNetwork(parents, columns=columns, missing="em").fit(rows)
    assert model.converged_
    with pytest.raises(TooLargeError):
        model.query("n0", {"n119": True})
    with pytest.raises(TooLargeError, match=r"the missing cells of some row would need"):
        tb.BayesianNetwork(parents, columns=columns, missing="em").fit({n: [True, None] for n in parents})


def test_continuous_node_with_observed_parents():
    """No row lacks what it depends on, so its own counts are those of the rows as they are."""
    rng = np.random.default_rng(0)
    rows = {
        "job": np.where(rng.random(80) < 0.3, None, rng.choice(["a", "b"], 80)),
        "paid": rng.choice(["x", "y"], 80),
        "salary": rng.normal(size=80),
    }
    model = tb.BayesianNetwork({"paid": ["job"], "salary": ["paid"]}, missing="em").fit(rows)
    alone = tb.BayesianNetwork({"salary": ["paid"]}).fit(rows)
    np.testing.assert_allclose(model.cpt("salary").values, alone.cpt("salary").values, rtol=1e-12)
