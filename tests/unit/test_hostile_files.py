"""Files of a stranger who can seal: loaded as they say, or refused, in little time and memory."""

import copy
import json
import os
import random
import stat
import sys
import time
import tracemalloc

import numpy as np
import pytest

import tallybayes as tb
from tallybayes._utils import atomic_write, sealed_file, sealed_zip
from tallybayes.errors import FileError
from tallybayes.models.io import model_from_parts
from tallybayes.models.network.graph import Graph
from tallybayes.tally.domain import Schema
from tallybayes.tally.tally_io import tally_to_parts

ROWS = np.random.default_rng(0).normal(size=(12, 2))
CLASSES = ["a", "b", "c"] * 4
LABELS = {"a": CLASSES, "b": [1, 0] * 6, "c": ROWS[:, 0]}

MAKERS = {
    "Tally": lambda: tb.count(
        {"y": ["a", "b"], "x": [1.0, 2.0]}, [tb.Factor("y", (), tb.Categorical()), tb.Factor("x", "y", tb.Gaussian())]
    ),
    "NaiveBayes": lambda: tb.NaiveBayes(
        {"a": tb.Categorical(), "c": tb.Gaussian()}, prior={"a": tb.Dirichlet([1, 2, 3])}
    ).fit(LABELS, "b"),
    "text": lambda: tb.NaiveBayes(
        {"s": tb.Text(tb.Bernoulli(), stop_words=["of"]), "t": tb.Text(ngram_range=(1, 2)), "h": tb.Text(hash_bits=3)}
    ).fit({name: ["a naïve word", "of two", None, "東京 of"] for name in "sth"} | {"y": [0, 1, 1, 0]}, "y"),
    "calibrated": lambda: tb.NaiveBayes().fit(ROWS, CLASSES).calibrate(ROWS, CLASSES, method="isotonic"),
    "GaussianDiscriminant": lambda: tb.GaussianDiscriminant(covariance="tied").fit(ROWS, CLASSES),
    "AveragedOneDependence": lambda: tb.AveragedOneDependence(bins=3).fit(ROWS, CLASSES),
    "TreeAugmentedNaiveBayes": lambda: tb.TreeAugmentedNaiveBayes(bins=3).fit(ROWS, CLASSES),
    "AutoClassifier": lambda: tb.AutoClassifier(folds=2).fit(LABELS, "b"),
    "CountForest": lambda: tb.CountForest(n_trees=3, min_leaf=1, strength=0.5).fit(LABELS, "b"),
    "CountBoosting": lambda: tb.CountBoosting(max_trees=2).fit(LABELS, "b"),
    "NearestClassMean": lambda: tb.NearestClassMean(metric="learned", max_iter=2).fit(ROWS, CLASSES),
    "Mixture": lambda: tb.Mixture(2, random_state=0).fit(ROWS),
    "HiddenMarkovModel": lambda: tb.HiddenMarkovModel(prior={"emission": tb.Dirichlet(1)}).fit([CLASSES], [CLASSES]),
    "BayesianNetwork": lambda: tb.BayesianNetwork({"b": ["a"], "c": ["a"]}).fit(LABELS),
    "given tables": lambda: tb.BayesianNetwork.from_tables(
        {"a": (), "b": ("a",)}, {"a": ("x", "y"), "b": (0, 1)}, {"a": [0.5, 0.5], "b": [[0.1, 0.9], [0.2, 0.8]]}
    ),
    "given classes": lambda: tb.NaiveBayes.from_parameters(
        {"a": {0: {"p": 0.5, "q": 0.5}, 1: {"q": 1.0}}, "b": {0: 0.5, 1: 0.1}, "c": {k: {"rate": 2.0} for k in (0, 1)}},
        [0.5, 0.5],
    ),
    "given moments": lambda: tb.GaussianDiscriminant.from_parameters([[0, 0], [1, 2]], [np.eye(2)] * 2),
    "given chain": lambda: tb.HiddenMarkovModel.from_tables([0.5, 0.5], np.eye(2), [[0.5, 0.5], [0, 1]], [0.1, 0.2]),
}


def write_any(path, kind: str, manifest: dict, arrays: dict) -> None:
    """A sealed file of any manifest, whatever `save` would say to it."""
    arrays = {name: arrays[name] for name in sorted(arrays)}
    forms = {name: (array.dtype.str, array.shape) for name, array in arrays.items()}
    declared = {name: {"dtype": dtype, "shape": list(shape)} for name, (dtype, shape) in forms.items()}
    whole = {
        "format": sealed_file.FORMAT,
        "kind": kind,
        "created_by": "a stranger",
        "arrays": declared,
        "manifest": manifest,
    }
    text = json.dumps(whole, sort_keys=True, separators=(",", ":")).encode()
    with path.open("wb") as file:
        sealed_zip.write_sealed(file, sealed_zip.list_members(text, forms), arrays)


def places_in(value, place=()):
    """Every place in a manifest."""
    yield place
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from places_in(item, (*place, key))


def deep(depth: int) -> list:
    value: list = []
    for _ in range(depth):
        value = [value]
    return value


STRANGE = [
    None, True, False, 0, 1, -1, 2, 10**12, 2**63, 2**64, -(10**40), 0.5, 1e308, -1e-300, "", "a", "x" * 100_000,
    "\ud800", "\x1b[31m", "O", "V1000000000", "<M8[s]", "(9999999,)f8", "mapping", [], {}, [[]], [None], [0] * 1000,
    [["a", 1]],
    {"type": "mapping", "items": []}, {"type": "mapping", "items": [[0, 1]], "more": 1}, {"type": "Gaussian"},
    {"type": "Binned", "edges": list(range(1000))}, {"type": "Family"}, {"type": "Dirichlet", "concentration": [1.0]},
    {"type": "Categorical", "levels": ["a", 1]}, {"type": "Hypotheses"}, {"type": "NetworkTables"}, deep(300),
]  # fmt: skip


def mutated(manifest: dict, arrays: dict, rng: random.Random) -> tuple[dict, dict]:
    """A manifest and arrays with one or two things changed."""
    manifest, arrays = copy.deepcopy(manifest), dict(arrays)
    for _ in range(rng.choice((1, 1, 1, 2))):
        if arrays and rng.random() < 0.3:
            name = rng.choice(sorted(arrays))
            array = arrays[name]
            how = rng.randrange(7)
            if how == 0:
                del arrays[name]
            elif how == 1:
                arrays[rng.choice((f"{name}/more", "statistics/9/table", "other"))] = array
            elif how == 2:
                arrays[name] = np.zeros(rng.choice(((0, 2**40), (2**30, 0), (0,), (1,) * 20, (), (3, 3, 3))))
            elif how == 3:
                arrays[name] = array.astype(rng.choice(("<f4", "<i8", "|u1", "|b1", "<f8")))
            elif how == 4 and array.size:
                arrays[name] = array.copy()
                fill = rng.choice((0, 1, -1, 2**31, 1e308, np.nan, np.inf))
                with np.errstate(all="ignore"):
                    arrays[name].reshape(-1)[rng.randrange(array.size)] = np.array(fill).astype(array.dtype)
            elif how == 5:
                arrays[name] = array.reshape(-1)
            else:
                arrays[name] = np.concatenate([array.reshape(-1)] * 2)
            continue
        place = rng.choice(list(places_in(manifest))[1:])
        target = manifest
        for key in place[:-1]:
            target = target[key]
        how = rng.random()
        if how < 0.15:
            del target[place[-1]]
        elif how < 0.3 and isinstance(target, dict):
            target["unknown"] = copy.deepcopy(rng.choice(STRANGE))
        elif how < 0.4 and isinstance(target, list):
            target.append(copy.deepcopy(rng.choice(target)))
        elif how < 0.5 and isinstance(target[place[-1]], list | dict):
            target[place[-1]] = rng.choice(list(places_in(manifest)))[-1:]
        else:
            target[place[-1]] = copy.deepcopy(rng.choice(STRANGE))
    return manifest, arrays


def same(first, second) -> bool:
    if isinstance(first, tb.Tally):
        return isinstance(second, tb.Tally) and first == second
    if isinstance(first, tb.AutoClassifier):
        pairs = zip(first.members_, second.members_, strict=True)
        return first.spec_ == second.spec_ and all(same(mine.model, its.model) for mine, its in pairs)
    if hasattr(first, "counts_"):  # of trees
        return type(first) is type(second) and first.counts_ == second.counts_
    return type(first) is type(second) and first.tally_ == second.tally_


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", MAKERS)
def test_sealed_nonsense_is_refused_or_loaded_as_it_says(name, tmp_path):
    path, again = tmp_path / "a", tmp_path / "b"
    MAKERS[name]().save(path)
    kind, manifest, arrays = sealed_file.read(path)
    rng = random.Random(name)
    n_loaded = longest = 0
    tracemalloc.start()
    try:
        for _ in range(60):  # many more by `make fuzz`
            write_any(path, kind, *mutated(manifest, arrays, rng))
            tracemalloc.reset_peak()
            before, start = tracemalloc.get_traced_memory()[0], time.process_time()
            try:
                found = tb.load(path)
            except FileError as error:
                longest = max(longest, len(str(error)))
            else:
                n_loaded += 1
                found.save(again)  # what was taken for a model is one, and goes through a file again
                assert same(tb.load(again), found)
            assert time.process_time() - start < 5
            assert tracemalloc.get_traced_memory()[1] - before < 50_000_000
    finally:
        tracemalloc.stop()
    assert 0 < n_loaded < 50
    assert longest < 1000


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", MAKERS)
def test_unknown_entries_are_refused_everywhere(name, tmp_path):
    path = tmp_path / "a"
    MAKERS[name]().save(path)
    kind, manifest, arrays = sealed_file.read(path)
    write_any(path, kind, manifest, arrays)
    tb.load(path)
    for place in places_in(manifest):
        changed = copy.deepcopy(manifest)
        target = changed
        for key in place:
            target = target[key]
        if isinstance(target, dict):
            target["unknown"] = 1
            write_any(path, kind, changed, arrays)
            with pytest.raises(FileError, match="unknown"):
                tb.load(path)
    write_any(path, kind, manifest, arrays | {"unknown": np.zeros(1)})
    with pytest.raises(FileError, match="unknown"):
        tb.load(path)


@pytest.mark.slow
@pytest.mark.parametrize("piece", ["[]", "{}", '""', '{"a":0}', "[0]", "0.5", '"ab"', "[[]]"])
def test_a_manifest_of_many_small_things_takes_little_memory(piece, tmp_path):
    n = 60_000_000 // (len(piece) + 1)
    whole = manifest_text(f'{{"junk":[{",".join([piece] * n)}]}}')
    path = tmp_path / "a"
    with path.open("wb") as file:
        sealed_zip.write_sealed(file, sealed_zip.list_members(whole, {}), {})
    size = path.stat().st_size
    del whole
    tracemalloc.start()
    try:
        with pytest.raises(FileError):
            tb.load(path)
        assert tracemalloc.get_traced_memory()[1] < 10 * size
    finally:
        tracemalloc.stop()


def manifest_text(content: str) -> bytes:
    head = f'"arrays":{{}},"created_by":"a stranger","format":{sealed_file.FORMAT},"kind":"Tally"'
    return f'{{{head},"manifest":{content}}}'.encode()


@pytest.mark.parametrize("text", ['{"soft":true,"soft":true}', '{"a": 1}', '{"a":1e999}', '{"a":NaN}', '{"b":1,"a":1}'])
def test_a_second_way_to_write_the_same_is_refused(text, tmp_path):
    with (tmp_path / "a").open("wb") as file:
        sealed_zip.write_sealed(file, sealed_zip.list_members(manifest_text(text), {}), {})
    with pytest.raises(FileError, match=r"manifest|JSON"):
        tb.load(tmp_path / "a")


# ---- Time that grows with the size, not with its square ---------------------------------------------------------


def seconds(work) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


@pytest.mark.slow
def test_many_shared_domains_load_quickly(tmp_path):
    names = [f"x{k}" for k in range(20_000)]
    manifest, arrays = tally_to_parts(tb.count({"y": ["a"]}, [tb.Factor("y", (), tb.Categorical())]))
    manifest["schema"] = Schema({name: name for name in names}).to_config()
    manifest["factors"] *= 3000
    manifest["statistics"] *= 3000
    for k in range(1, 3000):
        arrays |= {f"statistics/{k}/{part}": arrays[f"statistics/0/{part}"] for part in ("sizes", "table")}
    write_any(tmp_path / "a", "Tally", manifest, arrays)
    assert seconds(lambda: tb.load(tmp_path / "a")) < 10  # minutes, once


@pytest.mark.slow
def test_a_node_of_many_parents_is_read_quickly():
    names = [f"x{k}" for k in range(200_000)]
    assert seconds(lambda: Graph.read({"y": names})) < 10
    with pytest.raises(tb.errors.DataError, match="parent 'x7' twice"):
        Graph.read({"y": [*names, "x7"]})


@pytest.mark.slow
def test_a_long_cycle_is_found_quickly_and_told_in_short():
    n = 100_000
    ring = {k: [(k + 1) % n] for k in range(n)}
    start = time.process_time()
    with pytest.raises(tb.errors.DataError, match="has a cycle") as caught:
        Graph.read(ring)
    assert time.process_time() - start < 10
    assert len(str(caught.value)) < 400


def test_a_level_repeated_at_the_end_is_found_quickly(tmp_path):
    manifest, arrays = tally_to_parts(tb.count({"y": [1]}, [tb.Factor("y", (), tb.Categorical())]))
    levels = np.append(np.arange(200_000), 199_999)
    arrays |= {"domain/0/levels": levels, "domain/0/declared": np.zeros(len(levels), dtype=bool)}
    write_any(tmp_path / "a", "Tally", manifest, arrays)

    def refuse():
        with pytest.raises(FileError, match="twice"):
            tb.load(tmp_path / "a")

    assert seconds(refuse) < 10


@pytest.mark.slow
def test_networks_of_many_nodes_take_time_in_proportion(tmp_path):
    def work(n: int) -> float:
        parents = {f"n{k}": [f"n{k // 2}"] if k else [] for k in range(n)}
        rows = {name: np.array([0, 1, 1, 0]) for name in parents}
        model = tb.BayesianNetwork(parents)
        steps = [seconds(lambda: model.fit(rows)), seconds(lambda: model.save(tmp_path / "a"))]
        steps.append(seconds(lambda: tb.load(tmp_path / "a")))
        model.to_bif(tmp_path / "a.bif")
        return np.array([*steps, seconds(lambda: tb.BayesianNetwork.from_bif(tmp_path / "a.bif"))])

    few = np.min([work(800) for _ in range(3)], axis=0)
    assert (work(6400) < 8 * 4 * few).all()  # 64 times as long, where it grew with the square


def test_a_model_of_a_stranger_has_labels_of_plain_types(tmp_path):
    path = tmp_path / "a"
    tb.NaiveBayes().fit(ROWS, CLASSES).save(path)
    for dtype in ("V1000000000", "<M8[s]", "(1000,)f8", "f8,f8", "|V0", "<c16"):
        _, manifest, arrays = sealed_file.read(path)
        manifest["state"]["y_dtype"] = dtype
        with pytest.raises(FileError, match="labels of the model are of type"):
            model_from_parts(manifest, arrays)


# ---- Where a file is written ------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX pipes, links and permissions")
def test_only_regular_files_are_replaced(tmp_path):
    tally = MAKERS["Tally"]()
    pipe, folder, link, dangling = (tmp_path / name for name in ("pipe", "folder", "link", "dangling"))
    os.mkfifo(pipe)
    folder.mkdir()
    link.symlink_to(pipe)
    dangling.symlink_to(tmp_path / "new")
    with pytest.raises(IsADirectoryError):
        tally.save(folder)
    for path in (pipe, link, "/dev/null"):
        with pytest.raises(FileError, match="expected a regular file to replace, or a new name"):
            tally.save(path)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dangling", "folder", "link", "pipe"]
    tally.save(dangling)  # a link stays, what it points to is written
    assert dangling.is_symlink()
    assert tb.load(tmp_path / "new") == tally
    (tmp_path / "new").chmod(0o604)
    tally.save(dangling)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o604


def test_temporary_files_that_were_left_behind_are_removed(tmp_path):
    old, fresh, other = (tmp_path / f".tallybayes-{c * 16}.tmp" for c in "abg")
    for path in (old, fresh, other):
        path.touch()
    for path in (old, other):
        os.utime(path, (0, 0))
    MAKERS["Tally"]().save(tmp_path / "a")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["a", fresh.name, other.name])
    assert atomic_write._STALE > 3600


def test_the_forger_here_is_as_good_as_save(tmp_path):
    tally = MAKERS["Tally"]()
    write_any(tmp_path / "a", "Tally", *tally_to_parts(tally))
    assert tb.load(tmp_path / "a") == tally


# ---- Parameters that were given -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "array", "value", "message"),
    [
        ("given classes", "stated/1/probability", [[0.5, 0.6], [0, 1]], "sums to 1.1"),
        ("given classes", "stated/1/probability", [[1.5, -0.5], [0, 1]], "has the probability 1.5"),
        ("given classes", "stated/1/probability", [[0.5, 0.5]], r"shape \(1, 2\); expected \(2, 2\)"),
        ("given classes", "stated/1/probability", [[1.0], [1.0]], r"shape \(2, 1\); expected \(2, 2\)"),
        ("given classes", "stated/0/probability", [0.5, np.nan], "has a non-finite probability"),
        ("given classes", "stated/2/probability", [[0.5], [2.0]], "has the probability 2"),
        ("given classes", "stated/3/rate", [[-1.0], [2.0]], "has the rate -1"),
        ("given moments", "stated/1/covariance", [[[1, 2], [2, 1]], np.eye(2)], "not positive definite"),
        ("given moments", "stated/1/covariance", [[[1, 0.5], [0, 1]], np.eye(2)], "not symmetric"),
        ("given moments", "stated/1/covariance", np.zeros((2, 3, 3)), r"expected \(2, 2, 2\)"),
        ("given moments", "stated/1/mean", np.zeros((2, 3)), r"shape \(2, 3\); expected \(2, 2\)"),
        ("given moments", "stated/1/mean", np.zeros((0, 2**40)), r"expected \(2, 2\)"),
        ("given chain", "stated/1/probability", [[0.5, 0.4], [0, 1]], "sums to 0.9"),
        ("given chain", "stated/3/probability", [[0.5]], r"expected \(2, 1\)"),
    ],
)
def test_parameters_that_are_none_are_refused(name, array, value, message, tmp_path):
    MAKERS[name]().save(tmp_path / "a")
    kind, manifest, arrays = sealed_file.read(tmp_path / "a")
    assert array in arrays
    write_any(tmp_path / "a", kind, manifest, arrays | {array: np.array(value, dtype=float)})
    with pytest.raises(FileError, match=message):
        tb.load(tmp_path / "a")
