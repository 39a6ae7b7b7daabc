"""Bayesian networks against pyAgrum and pgmpy on ALARM: tables from a million rows, posteriors of a thousand.

And EM of 5,000 rows of INSURANCE with missing cells, against pyAgrum.

Run it with ``python benchmarks/network.py [em] [scale]``; ``em`` is EM alone, which is left out otherwise. It needs
``pip install pyagrum pgmpy``, which nothing else here does, and ``alarm.bif.gz`` and ``insurance.bif.gz`` in
``../shared/data/networks``. A scale below 1 takes that share of the rows.
"""

from __future__ import annotations

import logging
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from harness import Timing, peak_memory, race, table

import tallybayes as tb
from tallybayes import kernels

try:
    import pandas as pd
    import pgmpy.estimators
    import pyagrum as gum
    from pgmpy.inference import VariableElimination
    from pgmpy.models import DiscreteBayesianNetwork
except ImportError:
    sys.exit("this benchmark compares with pyAgrum and pgmpy: pip install pyagrum pgmpy")

NETWORKS = Path(__file__).parents[2] / "shared" / "data" / "networks"
VE_ROWS, LAZY_ROWS, EM_ROWS = 2, 200, 100  # the peers answer these, and the time is multiplied
EM_STEPS = 5


def coded(name: str) -> tb.BayesianNetwork:
    """A network with the codes of its levels for labels."""
    file = NETWORKS / f"{name}.bif.gz"
    if not file.exists():
        sys.exit(f"{file} is not there")
    given = tb.BayesianNetwork.from_bif(file).to_tables()
    levels = {node: tuple(range(len(found))) for node, found in given.levels.items()}
    tables = {node: found / found.sum(axis=-1, keepdims=True) for node, found in given.tables.items()}
    return tb.BayesianNetwork.from_tables(given.parents, levels, tables)


def agrum_network(model: tb.BayesianNetwork) -> Any:
    """The same network in pyAgrum."""
    network = gum.BayesNet()
    for node, levels in model.levels_.items():
        network.add(gum.LabelizedVariable(node, node, [str(level) for level in levels]))
    for parent, node in model.graph_.edges:
        network.addArc(parent, node)
    for node, parents in model.graph_.parents.items():
        names = list(reversed(network.cpt(node).names))
        order = [(*parents, node).index(name) for name in names]
        network.cpt(node)[:] = np.ascontiguousarray(model.cpt(node).values.transpose(order))
    return network


def pgmpy_network(model: tb.BayesianNetwork) -> Any:
    """The same network in pgmpy."""
    from pgmpy.factors.discrete import TabularCPD

    network = DiscreteBayesianNetwork(model.graph_.edges)
    for node, parents in model.graph_.parents.items():
        values = np.moveaxis(model.cpt(node).values, -1, 0).reshape(len(model.levels_[node]), -1)
        sizes = [len(model.levels_[name]) for name in parents]
        network.add_cpds(TabularCPD(node, len(values), values, list(parents) or None, sizes or None))
    return network


def learning(model: tb.BayesianNetwork, n_rows: int) -> None:
    """Tables from rows of codes that are in memory."""
    drawn = {node: cells.astype(np.uint8) for node, cells in model.sample(n_rows, random_state=0).items()}
    frame = pd.DataFrame({node: cells.astype(np.int64) for node, cells in drawn.items()})
    network = agrum_network(model)
    loaded = gum.BNLearner(frame.astype(str), network)
    loaded.useSmoothingPrior(1)
    theirs = pgmpy_network(model)
    ours = tb.BayesianNetwork(model.graph_.parents, columns=model.columns)
    block = np.stack(list(drawn.values()), axis=1)

    def tables(rows: Any) -> Any:
        fitted = ours.fit(rows)
        return [fitted.cpt(node).values for node in fitted.levels_]

    contenders = {
        "tallybayes, uint8 columns": lambda: tables(drawn),
        "tallybayes, int64 frame": lambda: tables(frame),
        "pyAgrum learnParameters, data loaded": lambda: loaded.learnParameters(network.dag()),
        "pgmpy MLE": lambda: pgmpy.estimators.MaximumLikelihoodEstimator(theirs, frame).get_parameters(n_jobs=1),
        "read the bytes": lambda: kernels.read_bytes(block),
    }
    timings = race(contenders)
    for reference in ("pyAgrum learnParameters, data loaded", "pgmpy MLE"):
        print(table(f"Tables of ALARM from {n_rows:,} rows", timings, reference, "read the bytes"))
    learned = loaded.learnParameters(network.dag())
    fitted = ours.fit(drawn)
    worst = 0.0
    for node, parents in model.graph_.parents.items():
        names = list(reversed(learned.cpt(node).names))
        order = [names.index(name) for name in (*parents, node)]
        worst = max(worst, float(np.abs(learned.cpt(node).toarray().transpose(order) - fitted.cpt(node).values).max()))
    print(f"largest difference from pyAgrum's tables: {worst:.1e}\n")
    print(f"peak memory while fitting: {peak_memory(lambda: ours.fit(drawn)) / 2**20:.1f} MiB above the data\n")


def posteriors(model: tb.BayesianNetwork, n_rows: int, own_pattern: bool) -> None:
    """All marginals of every row, through the public face; peers answer some rows."""
    rng = np.random.default_rng(1)
    nodes = list(model.levels_)
    drawn = model.sample(n_rows, random_state=1)
    known = np.zeros((n_rows, len(nodes)), dtype=bool)
    for row in range(n_rows):
        if own_pattern:
            known[row] = rng.random(len(nodes)) < 0.5
        else:
            known[row, rng.choice(len(nodes), 5, replace=False)] = True
    rows = {node: np.where(known[:, k], drawn[node], np.nan) for k, node in enumerate(nodes)}
    evidence = [{node: int(drawn[node][r]) for k, node in enumerate(nodes) if known[r, k]} for r in range(n_rows)]
    lazy = gum.LazyPropagation(agrum_network(model))
    elimination = VariableElimination(pgmpy_network(model))

    def agrum(n: int) -> list[Any]:
        found = []
        for one in evidence[:n]:
            lazy.setEvidence(one)
            lazy.makeInference()
            found.append([lazy.posterior(node).toarray() for node in nodes])
        return found

    def eliminate(n: int) -> None:
        for one in evidence[:n]:
            for node in nodes:
                if node not in one:
                    elimination.query([node], evidence=one, show_progress=False)

    timings = race({"tallybayes": lambda: model.predict_proba(rows), "pyAgrum": lambda: agrum(LAZY_ROWS)}, rounds=5)
    start = time.perf_counter()
    if not own_pattern:
        eliminate(VE_ROWS)
    once = time.perf_counter() - start
    scaled = [timings[0], Timing("pyAgrum LazyPropagation", tuple(s * n_rows / LAZY_ROWS for s in timings[1].seconds))]
    if not own_pattern:
        scaled.append(Timing("pgmpy VariableElimination", (once * n_rows / VE_ROWS,)))
    what = (
        "half of the nodes observed, different in every row"
        if own_pattern
        else "5 observed nodes, different in every row"
    )
    for reference in [timing.name for timing in scaled[1:]]:
        print(table(f"37 posteriors of {n_rows:,} rows: {what}", scaled, reference))
    found = model.predict_proba(rows)
    worst = max(
        float(np.abs(found[node][row] - expected).max())
        for row, answers in enumerate(agrum(20))
        for node, expected in zip(nodes, answers, strict=True)
    )
    print(f"largest difference from pyAgrum's posteriors: {worst:.1e}\n")


def expecting(model: tb.BayesianNetwork, n_rows: int) -> None:
    """Some steps of EM on rows of which every tenth cell is missing; pyAgrum's rows are fewer, its time multiplied."""
    rng = np.random.default_rng(2)
    drawn = {node: cells.astype(float) for node, cells in model.sample(n_rows, random_state=2).items()}
    rows = {node: np.where(rng.random(n_rows) < 0.1, np.nan, cells) for node, cells in drawn.items()}
    columns = {node: tb.Categorical(levels=levels) for node, levels in model.levels_.items()}
    ours = tb.BayesianNetwork(
        model.graph_.parents, columns=columns, missing="em", estimate="map", max_iter=EM_STEPS, tol=1e-300
    )
    some = min(EM_ROWS, n_rows)
    words = {node: ["?" if np.isnan(cell) else str(int(cell)) for cell in cells[:some]] for node, cells in rows.items()}
    network = agrum_network(model)
    theirs = gum.BNLearner(pd.DataFrame(words), network, ["?"])
    theirs.useSmoothingPrior(1)
    theirs.useEM(1e-300)
    theirs.EMsetMaxIter(EM_STEPS)
    timings = race(
        {"tallybayes": lambda: ours.fit(rows), "pyAgrum": lambda: theirs.learnParameters(network.dag())}, rounds=3
    )
    scaled = [timings[0], Timing("pyAgrum EM", tuple(seconds * n_rows / some for seconds in timings[1].seconds))]
    print(table(f"{EM_STEPS} iterations of EM, {n_rows:,} rows of INSURANCE, 10 % missing", scaled, "pyAgrum EM"))


def main() -> None:
    warnings.filterwarnings("ignore")
    logging.disable(logging.INFO)
    wanted = sys.argv[1:]
    by_em = wanted[:1] == ["em"]
    scale = float(wanted[by_em]) if len(wanted) > by_em else 1.0
    print(f"kernels: {kernels.implementation()}\n")
    if by_em:
        expecting(coded("insurance"), round(5000 * scale))
        return
    model = coded("alarm")
    learning(model, round(1_000_000 * scale))
    for own_pattern in (False, True):
        posteriors(model, 1000, own_pattern)


if __name__ == "__main__":
    main()
