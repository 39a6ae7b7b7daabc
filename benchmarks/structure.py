"""Searches for the structure of ALARM, Insurance and Hepar II against pgmpy's and pyAgrum's: time, score and distance.

Run it with ``python benchmarks/structure.py [scale [network …]]``; it needs ``pip install pyagrum pgmpy``, which
nothing else here does, and the networks in ``../shared/data/networks``. A scale below 1 takes that share of the 20,000
rows. All work on one thread, which is pgmpy's only one and, on few cores, pyAgrum's fastest; seconds are the
processor's, medians of three; pgmpy is asked once a network and score, and stopped after a quarter of an hour.
"""

from __future__ import annotations

import logging
import signal
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import tallybayes as tb
from tallybayes import kernels

try:
    import pandas as pd
    import pgmpy.estimators
    import pyagrum as gum
except ImportError:
    sys.exit("this benchmark compares with pyAgrum and pgmpy: pip install pyagrum pgmpy")

NETWORKS = Path(__file__).parents[2] / "shared" / "data" / "networks"
NAMES = ("alarm", "insurance", "hepar2")
SCORES = {"bdeu": tb.BDeu(10), "bic": "bic"}
N_ROWS = 20_000
PEER = "pgmpy HillClimbSearch"
LIMIT = 900.0  # seconds of the processor, after which pgmpy is stopped


def searched(rows: Any, frame: pd.DataFrame, score: str) -> dict[str, Callable[[], Any]]:
    """The contenders; each gives something that has edges."""
    coded = frame.apply(lambda column: column.cat.codes.astype(str))

    def theirs() -> Any:
        search = pgmpy.estimators.HillClimbSearch(frame)
        if score == "bdeu":
            scoring: Any = pgmpy.estimators.BDeu(frame, equivalent_sample_size=10)
        else:
            scoring = pgmpy.estimators.BIC(frame)
        return [*search.estimate(scoring_method=scoring, show_progress=False).edges()]

    def agrum(tabu: bool) -> Any:
        learner = gum.BNLearner(coded)
        learner.setNumberOfThreads(1)
        learner.useNoPrior()
        if score == "bdeu":
            learner.useScoreBDeu()
            learner.useBDeuPrior(10)
        else:
            learner.useScoreBIC()
        if tabu:
            learner.useLocalSearchWithTabuList()
        else:
            learner.useGreedyHillClimbing()
        return [(frame.columns[a], frame.columns[b]) for a, b in learner.learnDAG().arcs()]

    how = SCORES[score]
    return {
        "tallybayes": lambda: tb.learn_structure(rows, score=how).graph_.edges,
        "tallybayes, one climb": lambda: tb.learn_structure(rows, score=how, n_restarts=0, tabu_length=0).graph_.edges,
        PEER: theirs,
        "pyAgrum hill climbing": lambda: agrum(False),
        "pyAgrum tabu list": lambda: agrum(True),
    }


def compare(name: str, n_rows: int, score: str) -> None:
    """Time, score and distance from the truth of every search."""
    path = NETWORKS / f"{name}.bif.gz"
    if not path.exists():
        sys.exit(f"{path} is not there")
    truth = tb.BayesianNetwork.from_bif(path)
    rows = truth.sample(n_rows, random_state=0)
    frame = pd.DataFrame(rows).astype("category")
    found: dict[str, tuple[float, Any]] = {}
    for contender, search in searched(rows, frame, score).items():
        seconds, edges = [], None
        for _ in range(1 if contender == PEER else 3):
            start = time.process_time()
            signal.setitimer(signal.ITIMER_PROF, LIMIT if contender == PEER else 0)
            try:
                edges = search()
            except TimeoutError:
                print(
                    f"{contender}, {name}, {score}: stopped after {LIMIT:.0f} s, so its factors are at least these.\n"
                )
            signal.setitimer(signal.ITIMER_PROF, 0)
            seconds.append(time.process_time() - start)
        found[contender] = statistics.median(seconds), edges
    print(f"### {name}, {len(truth.graph_.nodes)} nodes, {len(truth.graph_.edges)} edges, {n_rows:,} rows, {score}\n")
    print(f"| | seconds | × faster than {PEER} | edges | score | distance | of classes |\n|---{'|---:' * 6}|")
    for contender, (took, edges) in found.items():
        if edges is None:
            print(f"| {contender} | {took:.2f} | 1.0 | | | | |")
            continue
        graph = {node: [a for a, b in edges if b == node] for node in truth.graph_.nodes}
        classes = tb.equivalence_class(truth), tb.equivalence_class(graph)
        cells = [
            contender,
            f"{took:.2f}",
            f"{found[PEER][0] / took:.1f}",
            len(edges),
            f"{_score(rows, graph, score):.1f}",
        ]
        distances = [tb.structural_hamming_distance(truth, graph), tb.structural_hamming_distance(*classes)]
        print("| " + " | ".join(map(str, [*cells, *distances])) + " |")
    print(flush=True)


def _score(rows: Any, graph: Any, score: str) -> float:
    """What a structure is worth, by the network itself."""
    if score == "bic":
        return -0.5 * tb.BayesianNetwork(graph, estimate="mle").fit(rows).bic_
    return float(tb.BayesianNetwork(graph, prior=SCORES[score]).fit(rows).log_evidence())


def _stop(*_: Any) -> None:
    raise TimeoutError


def main() -> None:
    warnings.filterwarnings("ignore")
    logging.disable(logging.INFO)
    np.random.seed(0)  # noqa: NPY002 - pgmpy's
    signal.signal(signal.SIGPROF, _stop)
    tb.set_threads(1)
    scale = float(sys.argv[1]) if len(sys.argv) > 1 else 1.0
    names = sys.argv[2:] or NAMES
    print(f"kernels: {kernels.implementation()}\n")
    for name in names:
        for score in SCORES:
            compare(name, round(N_ROWS * scale), score)


if __name__ == "__main__":
    main()
