"""Classifiers with their defaults on larger tables of ``../shared/data``, beside gradient boosting and forests.

Run it with ``python benchmarks/large_tables.py --json FILE``: every table, split and contender that the file does not
hold yet, each in a process of its own, so that an interrupted run continues where it stopped. ``--tables``,
``--splits`` and ``--only`` select some; ``--summary`` prints the tables of the file and runs nothing. Later lines of
the file replace earlier ones.

Splits are 2/3 for training and 1/3 for testing, stratified, seeds 1 to 3; the seed of a split is also that of its
contenders. MNIST has its own test images: 28 × 28 pixels are fitted on all 60,000 training images, 14 × 14 on 20,000 of
them, drawn by the seed. Classes of fewer than ten rows are dropped, and so is the column of names of splice. KDD Cup 99
has many equal rows: most test rows also occur in the training rows.

Contenders have two cores (``TALLYBAYES_THREADS=1``: one) and their defaults, except: 500 iterations of logistic
regression, 300 trees of random forests and extra trees, 1,000 iterations and early stopping of HistGradientBoosting.
Logistic regression gets scaled numbers and one-hot levels, forests get numbers and one-hot levels, gradient boosting
gets categorical columns.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import json
import os
import resource
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from tables import SMALLEST, TABLES, calibration_error, tables

DATA = TABLES.parent
SPLITS = (1, 2, 3)
CORES = int(os.environ.get("TALLYBAYES_THREADS", 2))
LIMIT = 900  # seconds of all cores for one contender on one split, as processor time: other programs do not count
BINS = 15  # of equal size, of the calibration error
SIMULATIONS = 500  # of a perfectly calibrated model
Rows = tuple[pd.DataFrame, np.ndarray]
Record = dict[str, Any]


# ---- Tables: columns c0, c1, … of floats or of objects; classes are numbers from 0 ---------------------------------


def _arff(name: str) -> Rows:
    _, X, y = next(tables([name]))
    return X.drop(columns="Instance_name", errors="ignore"), y


def _csv(*paths: str) -> Rows:
    """Comma-separated files without a heading; the last column is the target."""
    options: dict[str, Any] = {"header": None, "skipinitialspace": True, "keep_default_na": False, "na_values": "?"}
    frame = pd.concat([pd.read_csv(DATA / path, **options) for path in paths], ignore_index=True)
    y = frame.pop(frame.columns[-1]).str.rstrip(".").to_numpy(dtype=object)
    for column in frame:
        if pd.api.types.is_numeric_dtype(frame[column]):
            frame[column] = frame[column].astype(float)
        else:
            frame[column] = frame[column].astype(object).where(frame[column].notna(), None)
    return frame, y


def _mnist(pool: int) -> Rows:
    """Training images, then test images; means of squares of `pool` × `pool` pixels."""
    parts = []
    for what, header in (("images-idx3", 16), ("labels-idx1", 8)):
        raw = [gzip.decompress((DATA / "mnist" / f"{s}-{what}-ubyte.gz").read_bytes()) for s in ("train", "t10k")]
        parts.append(np.concatenate([np.frombuffer(one, np.uint8, offset=header) for one in raw]))
    side = 28 // pool
    pixels = parts[0].reshape(-1, side, pool, side, pool).mean(axis=(2, 4)).reshape(-1, side * side)
    return pd.DataFrame(pixels), parts[1]


LOADERS: dict[str, Callable[[], Rows]] = {
    "adult": partial(_csv, "tables/adult.data.gz", "tables/adult.test.gz"),
    "letter": partial(_arff, "letter"),
    "pendigits": partial(_arff, "pendigits"),
    "optdigits": partial(_arff, "optdigits"),
    "splice": partial(_arff, "splice"),
    "spambase": partial(_arff, "spambase"),
    "segment": partial(_arff, "segment"),
    "page-blocks": partial(_arff, "page.blocks"),
    "waveform": partial(_arff, "waveform5000"),
    "kr-vs-kp": partial(_arff, "kr.vs.kp"),
    "nursery": partial(_csv, "tables/nursery.data.gz"),
    "mnist 14x14": partial(_mnist, 2),
    "mnist 28x28": partial(_mnist, 1),
    "kdd": partial(_csv, "kddcup99/kddcup.data_10_percent.gz"),
}


def load(name: str) -> Rows:
    """A table without its classes of fewer than ten rows."""
    X, y = LOADERS[name]()
    _, codes, counts = np.unique(y.astype(str), return_inverse=True, return_counts=True)
    kept = counts[codes] >= 10
    X = X[kept].reset_index(drop=True).set_axis([f"c{place}" for place in range(X.shape[1])], axis=1)
    return X, np.cumsum(counts >= 10)[codes[kept]] - 1


def split_rows(name: str, y: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of the training rows and of the test rows."""
    rows = np.arange(len(y))
    if not name.startswith("mnist"):
        train, test = train_test_split(rows, test_size=1 / 3, stratify=y, random_state=seed)
        return train, test
    train, test = rows[:60_000], rows[60_000:]
    if name == "mnist 14x14":
        train, _ = train_test_split(train, train_size=20_000, stratify=y[train], random_state=seed)
    return train, test


# ---- Contenders: an unfitted classifier, made from the names of numeric and of categorical columns, and a seed -----


class Levels(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Columns of objects as categories of pandas, whose levels are those of the training rows."""

    def fit(self, X: pd.DataFrame, y: Any = None) -> Levels:
        self.levels_ = {c: pd.unique(X[c].dropna()) for c in X if X[c].dtype != float}
        return self

    def transform(self, X: pd.DataFrame) -> pd.DataFrame:
        return X.assign(**{c: pd.Categorical(X[c].where(X[c].isin(known)), known) for c, known in self.levels_.items()})


class Named(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Missing levels as a level."""

    def fit(self, X: pd.DataFrame, y: Any = None) -> Named:
        self.fitted_ = True
        return self

    def transform(self, X: pd.DataFrame) -> pd.DataFrame:
        return X.assign(**{c: X[c].where(X[c].notna(), "?") for c in X if X[c].dtype != float})


Make = Callable[[list[str], list[str], int], Any]


def _one_hot(numbers: list[str], labels: list[str], numeric: Any, model: Any) -> Any:
    parts = make_column_transformer(
        (numeric, numbers), (OneHotEncoder(handle_unknown="ignore"), labels), sparse_threshold=0.0
    )
    return make_pipeline(parts, model)


def _logistic(numbers: list[str], labels: list[str], seed: int) -> Any:
    from sklearn.linear_model import LogisticRegression

    numeric = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    return _one_hot(numbers, labels, numeric, LogisticRegression(max_iter=500, random_state=seed))


def _trees(name: str, numbers: list[str], labels: list[str], seed: int) -> Any:
    from sklearn import ensemble

    model = getattr(ensemble, name)(n_estimators=300, n_jobs=CORES, random_state=seed)
    return _one_hot(numbers, labels, "passthrough", model)


def _histogram(numbers: list[str], labels: list[str], seed: int) -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    options = {"max_iter": 1000, "early_stopping": True, "categorical_features": "from_dtype"}
    return make_pipeline(Levels(), HistGradientBoostingClassifier(**options, random_state=seed))


def _lightgbm(numbers: list[str], labels: list[str], seed: int) -> Any:
    from lightgbm import LGBMClassifier

    return make_pipeline(Levels(), LGBMClassifier(n_jobs=CORES, random_state=seed, verbose=-1))


def _xgboost(numbers: list[str], labels: list[str], seed: int) -> Any:
    from xgboost import XGBClassifier

    return make_pipeline(Levels(), XGBClassifier(enable_categorical=True, n_jobs=CORES, random_state=seed))


def _catboost(numbers: list[str], labels: list[str], seed: int) -> Any:
    from catboost import CatBoostClassifier

    options = {"allow_writing_files": False, "verbose": False, "thread_count": CORES}
    return make_pipeline(Named(), CatBoostClassifier(cat_features=labels, random_seed=seed, **options))


def _ours(name: str, numbers: list[str], labels: list[str], seed: int) -> Any:
    import tallybayes as tb

    return getattr(tb, name)(random_state=seed)


PEERS: dict[str, Make] = {
    "logistic regression": _logistic,
    "random forest": partial(_trees, "RandomForestClassifier"),
    "extra trees": partial(_trees, "ExtraTreesClassifier"),
    "HistGradientBoosting": _histogram,
    "LightGBM": _lightgbm,
    "XGBoost": _xgboost,
    "CatBoost": _catboost,
}
OURS: dict[str, Make] = {name: partial(_ours, name) for name in ("CountForest", "CountBoosting", "AutoClassifier")}
CONTENDERS = PEERS | OURS
OPTIONAL = {"LightGBM": "lightgbm", "XGBoost": "xgboost", "CatBoost": "catboost"}


# ---- One contender on one split, in a process of its own -----------------------------------------------------------


def judge(P: np.ndarray, y: np.ndarray) -> Record:
    """Log loss and its standard error, accuracy, calibration error and its bound, from probabilities and classes."""
    losses = -np.log(np.clip(P[np.arange(len(y)), y], SMALLEST, 1))
    top, right = P.max(axis=1), P.argmax(axis=1) == y
    return {
        "log loss": float(losses.mean()),
        "error": float(losses.std() / np.sqrt(len(y))),
        "accuracy": float(right.mean()),
        "calibration": calibration_error(top, right, BINS),
        "bound": calibration_bound(top),
    }


def calibration_bound(top: np.ndarray) -> float:
    """The 95 % quantile of the calibration error if the probabilities of the top classes were true."""
    rng = np.random.default_rng(0)
    top = np.sort(top)
    errors = [calibration_error(top, rng.random(len(top)) < top, BINS) for _ in range(SIMULATIONS)]
    return float(np.quantile(errors, 0.95))


def _megabytes(field: str) -> float:
    """VmRSS or VmHWM of this process."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) / 1024
    raise OSError(f"/proc/self/status has no {field}: the memory of a fit is measured on Linux only")


def measure(name: str, seed: int, contender: str) -> Record:
    """Fit and judge a contender. Memory, in MB, is the peak of fit and prediction above what the rows take."""
    X, y = load(name)
    train, test = split_rows(name, y, seed)
    A, B, a, b = X.iloc[train], X.iloc[test], y[train], y[test]
    del X
    numbers = [column for column in A if A[column].dtype == float]
    model = CONTENDERS[contender](numbers, [column for column in A if column not in numbers], seed)
    load_average = os.getloadavg()[0]
    Path("/proc/self/clear_refs").write_text("5")  # VmHWM starts again from VmRSS
    before, start, cpu = _megabytes("VmRSS"), time.perf_counter(), time.process_time()
    model.fit(A, a)
    record = {"fit": time.perf_counter() - start, "fit cpu": time.process_time() - cpu}
    P, times = _predict(model, B)
    record |= times
    record["memory"] = max(0.0, _megabytes("VmHWM") - before)  # pages may be returned meanwhile
    record["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    report = getattr(model, "leaderboard_", None)
    if report is not None:
        record |= {"claimed": report.loss, "low": report.low, "high": report.high}
    return {"train": len(a), "test": len(b), "cores": CORES, "load": load_average} | record | judge(P, b)


def _predict(model: Any, B: pd.DataFrame) -> tuple[np.ndarray, Record]:
    """Probabilities, in the order of the class numbers, and the shortest times of up to three calls."""
    times: list[tuple[float, float]] = []
    while len(times) < 3 and sum(seconds for seconds, _ in times) < 2:
        start, cpu = time.perf_counter(), time.process_time()
        P = np.asarray(model.predict_proba(B))
        times.append((time.perf_counter() - start, time.process_time() - cpu))
    assert list(model.classes_) == list(range(P.shape[1]))
    wall, cpu = (min(kind) for kind in zip(*times, strict=True))
    return P, {"predict": wall, "predict cpu": cpu}


def run(name: str, seed: int, contender: str, limit: int) -> Record:
    """`measure` in a process of its own; of one that fails or reaches the limit, the reason."""
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TALLYBAYES_THREADS"), str(CORES))
    command = [sys.executable, __file__, "--cell", name, str(seed), contender, "--limit", str(limit)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ | threads)
    if done.returncode == -signal.SIGXCPU:
        return {"failed": f"more than {limit} s of {CORES} cores"}
    if done.returncode:
        return {"failed": (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1][:200]}
    return json.loads(done.stdout.splitlines()[-1])


# ---- Summary -------------------------------------------------------------------------------------------------------


class Results:
    """Records by table, contender and split; figures are means over the splits that all shown contenders finished."""

    def __init__(self, records: Iterable[Record]) -> None:
        cells = {(one["table"], one["contender"], one["split"]): one for one in records}
        found = [{contender for _, contender, _ in cells}, {table for table, _, _ in cells}]
        self.contenders = [one for one in CONTENDERS if one in found[0]]
        self.tables = [one for one in LOADERS if one in found[1]]
        self.cells = {key: one for key, one in cells.items() if "failed" not in one}
        self.failed = {key: one["failed"] for key, one in cells.items() if "failed" in one}

    def splits(self, table: str, *contenders: str) -> list[int]:
        """The splits of a table that all these contenders finished."""
        return [s for s in SPLITS if all((table, one, s) in self.cells for one in contenders)]

    def mean(self, table: str, contender: str, key: str, splits: Iterable[int] | None = None) -> float:
        """The mean over splits, by default all that the contender finished; NaN without any."""
        wanted = self.splits(table, contender) if splits is None else splits
        found = [self.cells[table, contender, s][key] for s in wanted if (table, contender, s) in self.cells]
        return float(np.mean(found)) if found else float("nan")

    def common(self, contenders: list[str]) -> list[str]:
        """The tables that all these contenders finished on a split at least."""
        return [table for table in self.tables if self.splits(table, *contenders)]


def _markdown(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def _by_table(results: Results, title: str, cell: Callable[[str, str], str]) -> str:
    rows = [[table, *(cell(table, one) for one in results.contenders)] for table in results.tables]
    return _markdown([title, *results.contenders], rows)


def log_losses(results: Results) -> str:
    """Log loss of every contender, and its geometric mean over the tables that all finished; the best peer is bold."""
    peers = [one for one in results.contenders if one in PEERS]
    rows = []
    for table in results.tables:
        found = {one: results.mean(table, one, "log loss") for one in results.contenders}
        best = np.nanmin([found[one] for one in peers] or [float("nan")])
        shown = [f"**{v:.4f}**" if one in PEERS and v == best else f"{v:.4f}" for one, v in found.items()]
        count = "/".join(str(len(results.splits(table, one))) for one in results.contenders)
        rows.append([table, *shown, count])
    common = results.common(results.contenders)
    means = [
        np.exp(np.mean([np.log(_common_loss(results, table, one)) for table in common])) if common else float("nan")
        for one in results.contenders
    ]
    rows.append([f"geometric mean of {len(common)}", *(f"{value:.4f}" for value in means), ""])
    return _markdown(["log loss", *results.contenders, "splits"], rows)


def _common_loss(results: Results, table: str, contender: str) -> float:
    return results.mean(table, contender, "log loss", results.splits(table, *results.contenders))


def against_peers(results: Results, ours: str) -> str:
    """One of our classifiers beside the best peer of each table, and its claims beside the test rows."""
    peers = [one for one in results.contenders if one in PEERS]
    rows = []
    for table in results.tables:
        there = [one for one in peers if results.splits(table, one)]
        splits = results.splits(table, ours, *there)
        if not splits or not there:
            continue
        found = {one: results.mean(table, one, "log loss", splits) for one in there}
        best = min(found, key=found.__getitem__)
        loss = results.mean(table, ours, "log loss", splits)
        cells = [results.cells[table, ours, s] for s in splits]
        claims = [c for c in cells if "claimed" in c]
        kept = f"{sum(c['low'] <= c['log loss'] <= c['high'] for c in claims)} of {len(claims)}" if claims else ""
        claimed = f"{np.mean([c['claimed'] for c in claims]):.4f}" if claims else ""
        ratio = f"{100 * (loss / found[best] - 1):+.1f} %"
        rows.append([table, f"{loss:.4f}", f"{found[best]:.4f}", best, ratio, claimed, kept, str(len(splits))])
    head = [ours, "log loss", "best peer", "which", "difference", "claimed", "within its interval", "splits"]
    return _markdown(head, rows)


def summary(results: Results) -> str:
    """All tables of the results."""
    boosting, forest = "HistGradientBoosting", "random forest"

    def ratio(key: str, yardstick: str, table: str, one: str) -> str:
        splits = results.splits(table, one, yardstick)
        return f"{results.mean(table, one, key, splits) / results.mean(table, yardstick, key, splits):.2f}"

    def seconds(table: str, one: str) -> str:
        wall, cpu = (results.mean(table, one, key) for key in ("fit", "fit cpu"))
        return f"{wall:.1f} ({cpu:.1f})"

    def rate(table: str, one: str) -> str:
        wall, cpu = (
            results.mean(table, one, "test") / results.mean(table, one, key) for key in ("predict", "predict cpu")
        )
        return f"{wall:,.0f} ({cpu:,.0f})"

    def excess(table: str, one: str) -> str:
        gap = results.mean(table, one, "calibration") - results.mean(table, one, "bound")
        return f"{results.mean(table, one, 'calibration'):.4f} ({gap:+.4f})"

    parts = [
        log_losses(results),
        *(against_peers(results, one) for one in results.contenders if one in OURS),
        _by_table(results, "accuracy", lambda table, one: f"{results.mean(table, one, 'accuracy'):.4f}"),
        _by_table(results, "calibration error (above the bound)", excess),
        _by_table(results, "fit, s (of processors)", seconds),
        _by_table(results, f"fit, × {boosting}", partial(ratio, "fit", boosting)),
        _by_table(results, f"processor time of fit, × {boosting}", partial(ratio, "fit cpu", boosting)),
        _by_table(results, "predictions a second (of processors)", rate),
        _by_table(results, "memory, MB", lambda table, one: f"{results.mean(table, one, 'memory'):,.0f}"),
        _by_table(results, f"memory, × {forest}", partial(ratio, "memory", forest)),
    ]
    missing = [f"{table}, {one}, split {split}: {why}" for (table, one, split), why in results.failed.items()]
    return "\n".join(parts) + "".join(f"\nNot finished: {line}\n" for line in missing)


# ---- Command -------------------------------------------------------------------------------------------------------


def read(path: Path | None) -> list[Record]:
    """The records of a file; none if it does not exist."""
    if path is None or not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def available(contender: str) -> bool:
    """Whether the package of a contender is installed; a message if not."""
    package = OPTIONAL.get(contender)
    found = package is None or importlib.util.find_spec(package) is not None
    if not found:
        print(f"{contender} is skipped: no package {package}", file=sys.stderr)
    return found


def main() -> None:
    """Run what the command line selects, and print the summary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", choices=list(LOADERS), default=list(LOADERS))
    parser.add_argument("--splits", nargs="+", type=int, choices=SPLITS, default=SPLITS)
    parser.add_argument("--only", nargs="+", choices=list(CONTENDERS), default=list(CONTENDERS))
    parser.add_argument("--json", type=Path, help="lines of JSON, one for each contender, table and split")
    parser.add_argument("--limit", type=int, default=LIMIT, help="seconds of all cores for one contender on one split")
    parser.add_argument("--summary", action="store_true", help="print the summary of the file alone")
    parser.add_argument("--cell", nargs=3, metavar=("TABLE", "SPLIT", "CONTENDER"), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    if chosen.cell:
        name, seed, contender = chosen.cell
        seconds = CORES * chosen.limit
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
        print(json.dumps(measure(name, int(seed), contender)))
        return
    records = read(chosen.json)
    done = {(one["table"], one["split"], one["contender"]) for one in records}
    contenders = [] if chosen.summary else [one for one in chosen.only if available(one)]
    for split, name, contender in product(chosen.splits, chosen.tables, contenders):
        if (name, split, contender) in done:
            continue
        record = {"table": name, "split": split, "contender": contender} | run(name, split, contender, chosen.limit)
        records.append(record)
        shown = record.get("failed") or f"log loss {record['log loss']:.4f}, fit {record['fit']:.1f} s"
        print(f"{name}, split {split}, {contender}: {shown}", file=sys.stderr, flush=True)
        if chosen.json:
            with chosen.json.open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")
    print(summary(Results(records)))


if __name__ == "__main__":
    main()
