"""Wherever the rows come from, the counts are the same; what is wrong with a file is said with its name and line."""

import gzip
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from sklearn.base import clone

import tallybayes as tb
from tallybayes.data import source as source_module
from tallybayes.models.ensemble.members import class_count
from tallybayes.warnings import DataSourceWarning

SOURCES = {
    "arrow": lambda frame, path: pa.Table.from_pandas(frame, preserve_index=False),
    "polars": lambda frame, path: pl.from_pandas(frame),
    "lazy": lambda frame, path: pl.from_pandas(frame).lazy(),
    "iterator": lambda frame, path: (frame.iloc[k : k + 77] for k in range(0, len(frame), 77)),
    "polars-iterator": lambda frame, path: iter(pl.from_pandas(frame).iter_slices(50)),
    "function": lambda frame, path: tb.table(lambda: (frame.iloc[k : k + 77] for k in range(0, len(frame), 77))),
    "reader": lambda frame, path: pa.Table.from_pandas(frame, preserve_index=False).to_reader(max_chunksize=64),
    "parquet": lambda frame, path: _parquet(frame, path / "rows.parquet"),
    "parquets": lambda frame, path: (
        [_parquet(frame[:200], path / "1.pq"), _parquet(frame[200:], path / "2.pq")] and str(path / "*.pq")
    ),
    "folder": lambda frame, path: (
        _parquet(frame[:200], path / "1.pq").parent if _parquet(frame[200:], path / "2.pq") else None
    ),
    "dataset": lambda frame, path: ds.dataset(_parquet(frame, path / "rows.parquet")),
    "feather": lambda frame, path: _feather(frame, path / "rows.feather"),
    "csv": lambda frame, path: _csv(frame, path / "rows.csv"),
    "tsv": lambda frame, path: _csv(frame, path / "rows.tsv", sep="\t"),
    "csv.gz": lambda frame, path: _csv(frame, path / "rows.csv.gz"),
    "csv.zst": lambda frame, path: _packed(frame, path / "rows.csv.zst"),
    "jsonl": lambda frame, path: _jsonl(frame, path / "rows.jsonl"),
    "jsonl.gz": lambda frame, path: _jsonl(frame, path / "rows.jsonl.gz"),
}


def _parquet(frame, path):
    frame.to_parquet(path, index=False, row_group_size=100)
    return path


def _feather(frame, path):
    pyarrow.feather.write_feather(pa.Table.from_pandas(frame, preserve_index=False), str(path))
    return path


def _csv(frame, path, **options):
    frame.to_csv(path, index=False, **options)
    return path


def _packed(frame, path):
    with pa.CompressedOutputStream(str(path), "zstd") as out:
        out.write(frame.to_csv(index=False).encode())
    return path


def _jsonl(frame, path):
    frame.to_json(path, orient="records", lines=True)
    return path


@pytest.fixture
def small_batches(monkeypatch):
    """Batches of some 64 rows, so that a few hundred are many."""
    for name in ("source.BATCH", "source.MOST", "batch_source.BATCH"):
        monkeypatch.setattr(f"tallybayes.data.{name}", 64)
    monkeypatch.setattr("tallybayes.data.files.csv_source._BLOCK", 2000)
    monkeypatch.setattr(source_module.in_batches, "__defaults__", (64,))


@pytest.fixture
def frame():
    rng = np.random.default_rng(3)
    y = rng.choice(["no", "yes", "perhaps"], 390)
    found = pd.DataFrame(
        {
            "far": 1e9 + rng.normal(size=390) + (y == "yes"),
            "kids": rng.poisson(2, 390),
            "a job, or none": rng.choice(["cook", 'the "boss"', "søn", "2"], 390),
            "x.select": rng.random(390) < 0.3,
            "id": 2**60 + rng.integers(0, 3, 390),
            "weight": rng.integers(1, 4, 390),
            "y": y,
        }
    )
    found.loc[::11, "far"] = np.nan
    found.loc[::7, "a job, or none"] = None
    return found


def _model():
    columns = {"id": tb.Categorical(), "kids": tb.Poisson(), "weight": tb.Categorical(), ...: "auto"}
    return tb.NaiveBayes(columns)


def _assert_same(found, expected):
    assert found.tally_.factors == expected.tally_.factors
    assert found.tally_.domains == expected.tally_.domains
    for one, other in zip(found.tally_.statistics, expected.tally_.statistics, strict=True):
        assert one.isclose(other, {tb.Moments: 1e-9, tb.Totals: 1e-13}.get(type(one), 0.0))  # Σ log x! is no count


@pytest.mark.parametrize("kind", SOURCES)
def test_every_source_counts_alike(kind, frame, tmp_path, small_batches):
    expected = _model().fit(frame, "y")
    _assert_same(_model().fit(SOURCES[kind](frame, tmp_path), "y"), expected)


@pytest.mark.parametrize("kind", ["parquet", "csv", "jsonl", "iterator", "lazy"])
def test_weights_more_rows_and_fewer(kind, frame, tmp_path, small_batches):
    expected = tb.NaiveBayes().fit(frame, "y", sample_weight="weight")
    first, rest = tmp_path / "first", tmp_path / "rest"
    first.mkdir()
    rest.mkdir()
    made = SOURCES[kind]
    found = tb.NaiveBayes().fit(made(frame[:150], first), "y", sample_weight="weight")
    found.partial_fit(made(frame[150:], rest), "y", sample_weight="weight")
    _assert_same(found, expected)
    found.forget(made(frame[150:], rest), "y", sample_weight="weight")
    _assert_same(found, tb.NaiveBayes().fit(frame[:150], "y", sample_weight="weight"))


@pytest.mark.parametrize("kind", ["parquet", "csv", "jsonl", "iterator", "lazy"])
def test_answers_come_batch_by_batch(kind, frame, tmp_path, small_batches):
    model = _model().fit(frame, "y")
    for method in ("predict", "predict_proba", "predict_log_proba", "score_samples"):
        expected = getattr(model, method)(frame)
        np.testing.assert_array_equal(getattr(model, method)(SOURCES[kind](frame, tmp_path)), expected)


@pytest.fixture
def never_whole(monkeypatch):
    """Rows that are all read at a time are an error."""

    def read(*_):
        raise AssertionError("all rows were read")

    monkeypatch.setattr(source_module.Source, "read", read)


@pytest.mark.parametrize(
    "model",
    [tb.NearestClassMean(), tb.AutoClassifier(single=True, random_state=0)],
    ids=lambda model: type(model).__name__,
)
def test_other_classifiers_answer_batch_by_batch(model, frame, tmp_path, small_batches, never_whole):
    some = frame[["kids", "weight", "y"]]
    model.fit(some, "y")
    path = _parquet(some, tmp_path / "rows.parquet")
    for method in ("predict", "predict_proba", "predict_log_proba"):
        found, expected = (getattr(model, method)(rows) for rows in (path, some))
        if method == "predict":
            np.testing.assert_array_equal(found, expected)
        else:
            np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_networks_answer_batch_by_batch(frame, tmp_path, small_batches, never_whole):
    columns = {"kids": tb.Categorical(), "far": tb.Gaussian()}
    network = tb.BayesianNetwork({"y": ["kids", "x.select"], "far": ["y"]}, columns=columns).fit(frame)
    path = _parquet(frame, tmp_path / "rows.parquet")
    np.testing.assert_array_equal(network.predict(path, "y"), network.predict(frame, "y"))
    np.testing.assert_allclose(network.predict(path, "far"), network.predict(frame, "far"), rtol=1e-12)
    np.testing.assert_allclose(network.predict_proba(path, "y"), network.predict_proba(frame, "y"), rtol=1e-12)
    np.testing.assert_allclose(network.score_samples(path), network.score_samples(frame), rtol=1e-12)
    several, expected = network.predict(path, ["y", "kids"]), network.predict(frame, ["y", "kids"])
    assert {name: cells.tolist() for name, cells in several.items()} == expected.to_dict("list")
    posteriors, expected = network.predict_proba(path), network.predict_proba(frame)
    np.testing.assert_allclose(posteriors.log_likelihood, expected.log_likelihood, rtol=1e-12)
    for node in expected:
        np.testing.assert_allclose(posteriors[node], expected[node], rtol=1e-12)
    filled, expected = network.impute(path), network.impute(frame)
    np.testing.assert_allclose(filled["far"], expected["far"], rtol=1e-12)


def test_columns_of_a_file_are_found_by_name_also_where_the_model_left_some_out(frame, tmp_path, small_batches):
    rows = frame[["kids", "weight"]].assign(nothing=1.0)
    model = tb.NaiveBayes("suggest").fit(rows, frame["y"])  # a constant says nothing
    path = _parquet(frame.assign(nothing=1.0), tmp_path / "rows.parquet")
    np.testing.assert_array_equal(model.predict(path), model.predict(rows))
    with pytest.raises(tb.DataError, match="no column 'nothing'"):
        model.predict(_parquet(frame, tmp_path / "other.parquet"))


@pytest.mark.parametrize(
    "model",
    [
        tb.NaiveBayes("suggest"),
        tb.NaiveBayes(calibration="temperature"),
        tb.AveragedOneDependence(),
        tb.TreeAugmentedNaiveBayes(),
        tb.GaussianDiscriminant(),
        tb.NearestClassMean(),
        tb.AutoClassifier(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_every_classifier_takes_a_file(model, frame, tmp_path, small_batches):
    some = frame.drop(columns=["id", "weight"])
    if isinstance(model, tb.GaussianDiscriminant | tb.NearestClassMean):
        some = some[["kids", "far", "y"]].dropna().assign(far=lambda one: one["far"] - 1e9)
    path = _parquet(some, tmp_path / "rows.parquet")
    found, expected = (type(model)(**model.get_params(deep=False)).fit(rows, "y") for rows in (path, some))
    if isinstance(model, tb.AveragedOneDependence | tb.TreeAugmentedNaiveBayes):  # whose bins the first batch cut
        assert (found.predict(path) == some["y"]).mean() > some["y"].value_counts(normalize=True).max()
    else:
        np.testing.assert_array_equal(found.predict(path), expected.predict(some))


def test_covariances_with_holes_are_expected_from_all_rows(frame, tmp_path, small_batches):
    some = frame[["kids", "far", "y"]].assign(far=lambda one: one["far"] - 1e9)
    found = tb.GaussianDiscriminant().fit(_csv(some, tmp_path / "rows.csv"), "y")
    np.testing.assert_allclose(found.predict_proba(some), tb.GaussianDiscriminant().fit(some, "y").predict_proba(some))


@pytest.mark.slow
def test_networks_chains_mixtures_and_measures_take_files(frame, tmp_path):
    path = _csv(frame, tmp_path / "rows.csv")
    network = tb.BayesianNetwork({"y": ["kids"]}, columns={"kids": tb.Categorical()})
    np.testing.assert_array_equal(network.fit(path).cpt("y").values, network.fit(frame).cpt("y").values)
    twice = network.fit(path).partial_fit(path)
    np.testing.assert_array_equal(twice.tally_["y"].table, 2 * network.fit(frame).tally_["y"].table)
    steps = pd.DataFrame({"s": [1, 1, 2, 2], "word": ["the", "dog", "a", "cat"], "tag": ["D", "N", "D", "N"]})
    chain = tb.HiddenMarkovModel().fit(_csv(steps, tmp_path / "steps.csv"), "tag", sequence="s")
    assert [list(part) for part in chain.predict(tmp_path / "steps.csv", sequence="s")] == [["D", "N"], ["D", "N"]]
    some = tb.table(path, columns=["kids"])
    assert tb.Mixture(2).fit(some).predict(some).shape == (390,)
    model = tb.NaiveBayes().fit(frame, "y")
    assert tb.evaluate(model, path, "y").accuracy == tb.evaluate(model, frame, "y").accuracy
    assert (
        tb.cross_validate(tb.NaiveBayes(), path, "y").accuracy
        == tb.cross_validate(tb.NaiveBayes(), frame, "y").accuracy
    )


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["parquet", "csv", "iterator"])
def test_evaluations_ask_batch_by_batch(kind, frame, tmp_path, small_batches, never_whole):
    def same(found, expected):
        assert found.accuracy == expected.accuracy
        np.testing.assert_allclose(found.log_loss.value, expected.log_loss.value, rtol=1e-12)

    made = SOURCES[kind]
    named = {"by": "x.select", "sample_weight": "weight"}
    model = _model().fit(frame, "y")
    found, expected = (tb.evaluate(model, rows, "y", **named) for rows in (made(frame, tmp_path), frame))
    same(found, expected)
    np.testing.assert_array_equal(found.by, expected.by)
    same(tb.evaluate(model, made(frame, tmp_path), frame["y"]), tb.evaluate(model, frame, "y"))
    assert model.score(made(frame, tmp_path), "y", "weight") == model.score(frame, "y", "weight")
    assert model.score(made(frame, tmp_path), frame["y"]) == model.score(frame, "y")
    nearest = tb.NearestClassMean().fit(frame[["kids", "weight"]], frame["y"])
    expected = tb.evaluate(nearest, frame[["kids", "weight"]], frame["y"])
    same(tb.evaluate(nearest, made(frame, tmp_path), "y"), expected)
    same(tb.evaluate(nearest, made(frame, tmp_path), frame["y"]), expected)
    mixture = tb.Mixture(2, random_state=0).fit(frame[["kids"]])
    found = tb.evaluate(mixture, made(frame, tmp_path)).bits_per_row
    np.testing.assert_allclose(found.value, tb.evaluate(mixture, frame[["kids"]]).bits_per_row.value, rtol=1e-12)
    with pytest.raises(tb.DataError, match="no column 'nope'"):
        tb.evaluate(model, made(frame, tmp_path), "nope")


def test_a_group_that_the_first_rows_lack(frame):
    rows = pa.Table.from_pandas(frame.assign(group=np.where(np.arange(390) < 200, None, "late")), preserve_index=False)
    untyped = rows[:200].set_column(7, "group", pa.nulls(200))
    model = _model().fit(frame, "y")
    named = {"by": "group", "sample_weight": "weight"}
    found = tb.evaluate(model, _Parts([untyped, rows[200:]]), "y", **named)
    assert found.accuracy == tb.evaluate(model, rows, "y", **named).accuracy
    told = tb.write_predictions(model, _Parts([untyped, rows[200:]]), "pyarrow", keep="group")
    assert told.column("group").to_pylist() == rows.column("group").to_pylist()


class _Parts(source_module.Source):
    """Batches as they are, whatever their types: a database has rows without types."""

    def __init__(self, parts):
        super().__init__("the parts")
        self.parts = parts

    @property
    def schema(self):
        return self.parts[0].schema

    def batches(self, columns=None):
        return iter(part if columns is None else part.select(columns) for part in self.parts)


def test_suggestions_look_at_all_rows(frame, tmp_path, small_batches, never_whole):
    rows = frame.assign(kids=np.where(np.arange(390) < 64, 1.5, frame["kids"]))
    path = _parquet(rows, tmp_path / "rows.parquet")
    assert len(tb.table(path).first_batch()) < 390
    found = tb.suggest_families(path, "y")
    assert found.columns == tb.suggest_families(rows, "y").columns
    with pytest.raises(tb.DataError, match="no column 'nope'"):
        tb.suggest_families(path, "nope")
    with pytest.raises(tb.DataError, match="the name of a column of"):
        tb.suggest_families(path, frame["y"])


def test_counting_without_a_model(frame, tmp_path, small_batches):
    factors = [tb.Factor("kids", ("y",), tb.Poisson()), tb.Factor("far", (), tb.Gaussian())]
    found = tb.count(_csv(frame, tmp_path / "rows.csv"), factors, weight="weight")
    expected = tb.count(frame, factors, weight=frame["weight"])
    assert found["kids"].isclose(expected["kids"], 1e-13)
    assert found["far"].isclose(expected["far"], 1e-9)


def test_some_rows_and_columns(frame, tmp_path):
    path = _parquet(frame, tmp_path / "rows.parquet")
    some = tb.table(path, columns=["kids", "y"], where=pc.field("y") != "perhaps", types={"kids": "string"})
    model = tb.NaiveBayes().fit(some, "y")
    assert list(model.classes_) == ["no", "yes"]
    assert model.tally_.domains["kids"].kind == "string"
    expected = frame[frame["y"] != "perhaps"].assign(kids=lambda one: one["kids"].astype(str))[["kids", "y"]]
    _assert_same(model, tb.NaiveBayes().fit(expected, "y"))


def test_spellings_of_missing_cells(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("x;y\n?;a\n1;b\n2;?\n")
    with pytest.raises(tb.DataError, match=r"column 'x'|label"):
        tb.NaiveBayes({"x": tb.Gaussian()}).fit(path, "y")
    model = tb.NaiveBayes(unlabeled="skip").fit(tb.table(path, null_values=["?"]), "y")
    assert list(model.classes_) == ["a", "b"]
    assert model.tally_["x"].weight.tolist() == [[0.0], [1.0]]
    frame = pd.read_csv(path, sep=";")
    again = tb.table(_parquet(frame, tmp_path / "rows.parquet"), null_values=["?"], types={"x": "int64"})
    _assert_same(tb.NaiveBayes(unlabeled="skip").fit(again, "y"), model)


def test_files_without_a_line_of_names(tmp_path):
    path = tmp_path / "rows.data"
    path.write_text("1,a\n2,b\n")
    assert list(tb.NaiveBayes().fit(tb.table(path, names=["x", "y"]), "y").classes_) == ["a", "b"]


def test_an_iterator_is_there_once(frame):
    rows = iter([frame])
    tb.NaiveBayes().fit(rows, "y")
    source = tb.table(frame.iloc[k : k + 50] for k in range(0, 390, 50))
    tb.NaiveBayes().fit(source, "y")
    with pytest.raises(tb.DataError, match="was read before"):
        tb.NaiveBayes().fit(source, "y")


@pytest.fixture
def in_parts(frame, small_batches):
    """Frames through an iterator, a hundred rows at a time."""
    return lambda rows: (rows.iloc[k : k + 100] for k in range(0, len(rows), 100))


@pytest.mark.parametrize(
    "model",
    [
        tb.NaiveBayes(calibration="temperature"),
        tb.NaiveBayes(unlabeled="em"),
        tb.NaiveBayes("suggest"),
        tb.GaussianDiscriminant(),
        tb.NearestClassMean(),
        tb.AveragedOneDependence(),
        tb.TreeAugmentedNaiveBayes(),
        tb.AutoClassifier(),
    ],
    ids=lambda model: type(model).__name__ + "-" + str(getattr(model, "unlabeled", "")),
)
def test_no_row_of_an_iterator_is_lost(model, frame, in_parts):
    rows = frame[["kids", "far", "y"]].assign(far=frame["far"].fillna(1e9) - 1e9)
    rows.loc[::5, "y"] = None if getattr(model, "unlabeled", None) == "em" else "no"
    rows.loc[3, "far"] = np.nan if isinstance(model, tb.GaussianDiscriminant) else 0.0  # in the first part
    model = clone(model).fit(in_parts(rows), "y")
    if isinstance(model, tb.AutoClassifier):
        assert {float(class_count(member.model).sum()) for member in model.members_} == {390.0}
    else:
        assert model.tally_["y"].table.sum() == pytest.approx(390, rel=1e-12)


def test_no_row_of_an_iterator_is_lost_to_a_network(frame, in_parts):
    expected = tb.BayesianNetwork({"y": ["a job, or none"], "x.select": []}).fit(frame)
    found = tb.BayesianNetwork({"y": ["a job, or none"], "x.select": []}).fit(in_parts(frame))
    _assert_same(found, expected)
    found.partial_fit(in_parts(frame)).forget(in_parts(frame))
    _assert_same(found, expected)
    apart = tb.BayesianNetwork({"y": [], "x.select": []}).fit(in_parts(frame))
    assert apart.tally_["y"].table.sum() == 390


def test_the_level_of_a_row_without_a_parent_is_told_of_in_one_pass(frame, in_parts):
    rows = frame.assign(y=np.where(frame["a job, or none"].isna(), "who knows", frame["y"]))
    with pytest.warns(UserWarning, match="'who knows' of 'y' occurs only with missing parents"):
        found = tb.BayesianNetwork({"y": ["a job, or none"]}).fit(in_parts(rows))
    assert sorted(found.tally_.domains["y"].levels) == ["no", "perhaps", "yes"]


@pytest.mark.parametrize("kind", [tb.NaiveBayes, tb.AveragedOneDependence, tb.TreeAugmentedNaiveBayes])
def test_a_column_that_is_missing_in_the_first_batch_is_learned_from_the_next(kind, frame, in_parts):
    rows = frame[["a job, or none", "x.select", "y"]].copy()
    rows.loc[:99, "a job, or none"] = None
    _assert_same(kind().fit(in_parts(rows), "y"), kind().fit(rows, "y"))


def test_the_first_batch_may_have_no_row_that_counts(frame, in_parts):
    late = np.arange(390) >= 200
    unlabeled = frame[["kids", "y"]].assign(y=frame["y"].where(late, None))
    found = tb.NaiveBayes(unlabeled="skip").fit(in_parts(unlabeled), "y")
    _assert_same(found, tb.NaiveBayes(unlabeled="skip").fit(unlabeled, "y"))
    weighted = frame[["kids", "y"]].assign(w=late.astype(float))
    found = tb.NaiveBayes({"kids": tb.Poisson()}).fit(in_parts(weighted), "y", sample_weight="w")
    _assert_same(found, tb.NaiveBayes({"kids": tb.Poisson()}).fit(frame[["kids", "y"]][200:], "y"))


def test_missing_cells_of_a_covariance_may_come_late(frame, tmp_path, in_parts):
    rows = frame[["kids", "far", "y"]].assign(far=frame["far"].fillna(1e9) - 1e9)
    rows.loc[350, "far"] = np.nan
    found = tb.GaussianDiscriminant("full").fit(_parquet(rows, tmp_path / "rows.parquet"), "y")
    _assert_same(found, tb.GaussianDiscriminant("full").fit(rows, "y"))
    with pytest.raises(tb.DataError, match="Pass a function that returns it"):
        tb.GaussianDiscriminant("full").fit(in_parts(rows), "y")
    _assert_same(tb.GaussianDiscriminant().fit(in_parts(rows), "y"), tb.GaussianDiscriminant().fit(rows, "y"))


@pytest.mark.parametrize(
    "option",
    [{"query": "t"}, {"on_bad": "skip"}, {"names": ["a"]}, {"delimiter": ";"}, {"encoding": "latin-1"}],
    ids=lambda option: next(iter(option)),
)
def test_an_option_that_would_do_nothing_is_refused(option, frame, tmp_path):
    with pytest.raises(tb.DataError, match=f"{next(iter(option))}=.* is an option of"):
        tb.table(_parquet(frame, tmp_path / "rows.parquet"), **option)


# ---- What is wrong with a file ---------------------------------------------------------------------------------------


def _fails(path, match, **options):
    with pytest.raises(tb.DataError, match=match):
        tb.NaiveBayes().fit(tb.table(path, **options) if options else path, "y")


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", "rows.csv is empty"),
        ("x,y\n", "0 rows"),
        ("x,y\n1,a\n2,b,9\n3,c\n", "rows.csv, line 3: .*Expected 2 columns, got 3"),
        ("x,x,y\n1,2,a\n", "two columns 'x'"),
        ("x,z\n1,2\n", "no column 'y'"),
    ],
)
def test_a_text_file_that_is_none(text, match, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text(text)
    _fails(path, match)


def test_a_cell_that_is_not_of_its_column(tmp_path, monkeypatch):
    monkeypatch.setattr("tallybayes.data.files.csv_source._BLOCK", 2000)
    lines = [f"{k},{'ab'[k % 2]}" for k in range(1000)]
    lines[900] = "foo,a"
    path = tmp_path / "rows.csv"
    path.write_text("x,y\n" + "\n".join(lines) + "\n")
    _fails(path, "rows.csv, line 902, column 'x': found 'foo'; expected int64")
    for on_bad, n_rows, n_cells in (("missing", 1000, 999), ("skip", 999, 999)):
        with pytest.warns(DataSourceWarning, match=r"rows.csv: 1 bad (cell treated as missing|line skipped)"):
            model = tb.NaiveBayes().fit(tb.table(path, on_bad=on_bad), "y")
        assert model.tally_["y"].table.sum() == n_rows
        assert model.tally_["x"].weight.sum() == n_cells
        assert model.tally_["x"].pool_groups().mean == pytest.approx((999 * 500 - 900) / 999)


def test_lines_that_are_left_out_are_counted_once(tmp_path, monkeypatch):
    monkeypatch.setattr("tallybayes.data.files.csv_source._BLOCK", 2000)
    lines = [f"{k},{'ab'[k % 2]}" for k in range(1000)]
    lines[10], lines[990], lines[900] = "1,a,too many", "too few", "foo,b"
    path = tmp_path / "rows.csv"
    path.write_text("x,y\n" + "\n".join(lines) + "\n")
    with pytest.warns(DataSourceWarning, match=r"rows.csv: 3 bad lines skipped"):
        model = tb.NaiveBayes().fit(tb.table(path, on_bad="skip"), "y")
    assert model.tally_["y"].table.sum() == 997


def test_a_cell_that_its_family_refuses_is_named_with_its_line(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("x,y\n1,a\n2,b\n-3,b\n")
    with pytest.raises(tb.DataError, match=r"found -3 in .*rows.csv, line 4, column 'x'"):
        tb.NaiveBayes({"x": tb.Poisson()}).fit(path, "y")
    other = _parquet(pd.read_csv(path), tmp_path / "rows.parquet")
    with pytest.raises(tb.DataError, match=r"found -3 in .*rows.parquet, row 2, column 'x'"):
        tb.NaiveBayes({"x": tb.Poisson()}).fit(other, "y")


def test_files_that_do_not_go_together(tmp_path):
    (tmp_path / "a1.csv").write_text("x,y\n1,a\n")
    (tmp_path / "a2.csv").write_text("x,y\nfoo,b\n")
    _fails(str(tmp_path / "a*.csv"), "column 'x' is int64 in .*a1.csv and string in .*a2.csv")
    model = tb.NaiveBayes().fit(tb.table(str(tmp_path / "a*.csv"), types={"x": "string"}), "y")
    assert model.tally_.domains["x"].levels == ("1", "foo")
    (tmp_path / "b1.csv").write_text("x,y\n1,a\n")
    (tmp_path / "b2.csv").write_text("y\nb\n")
    _fails(str(tmp_path / "b*.csv"), "b2.csv has no column 'x', which .*b1.csv has")
    (tmp_path / "c1.csv").write_text("x,y\n1,a\n")
    (tmp_path / "c2.csv").write_text("x,y\n2.5,b\n")
    assert tb.NaiveBayes().fit(str(tmp_path / "c*.csv"), "y").tally_["x"].pool_groups().mean == 1.75
    (tmp_path / "c3.jsonl").write_text('{"x": 1, "y": "a"}\n')
    _fails(str(tmp_path / "c*"), "several formats")


def test_paths_that_lead_nowhere(tmp_path):
    (tmp_path / "rows.csv").write_text("x,y\n1,a\n")
    _fails(tmp_path / "row.csv", r"no file .*row.csv.*\n.*Files in .*: rows.csv")
    (tmp_path / "rows.xyz").write_text("x,y\n1,a\n")
    _fails(tmp_path / "rows.xyz", "has the unknown ending .xyz")
    assert tb.NaiveBayes().fit(tb.table(tmp_path / "rows.xyz", format="csv"), "y").classes_ == ["a"]
    (tmp_path / "rows.parquet").write_text("x,y\n1,a\n")
    _fails(tmp_path / "rows.parquet", "rows.parquet cannot be read as parquet")


def test_other_encodings_and_broken_lines(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes("x,y\né,a\nà,b\n".encode("latin-1"))
    _fails(path, "rows.csv, line 2: found the byte 0xe9; expected text in utf8")
    model = tb.NaiveBayes().fit(tb.table(path, encoding="latin-1"), "y")
    assert model.tally_.domains["x"].levels == ("é", "à")
    broken = tmp_path / "rows.jsonl"
    broken.write_text('{"x": 1, "y": "a"}\n{"x": 2.5, "y":\n')
    _fails(broken, "rows.jsonl, line 2: 'Invalid value'")
    broken.write_text("")
    _fails(broken, "is empty")
    with gzip.open(tmp_path / "cut.csv.gz", "wb") as file:
        file.write(b"x,y\n" + b"1,a\n" * 10_000)
    whole = (tmp_path / "cut.csv.gz").read_bytes()
    (tmp_path / "cut.csv.gz").write_bytes(whole[: len(whole) // 2])
    _fails(tmp_path / "cut.csv.gz", "cut.csv.gz")


def test_labels_and_weights_are_columns(frame, tmp_path):
    path = _csv(frame, tmp_path / "rows.csv")
    with pytest.raises(tb.DataError, match=r"y is values beside rows .* name of a column of .*rows.csv"):
        tb.NaiveBayes().fit(path, frame["y"])
    with pytest.raises(tb.DataError, match="sample_weight is values"):
        tb.NaiveBayes().fit(path, "y", sample_weight=frame["weight"])
    with pytest.raises(tb.DataError, match="no column 'z'"):
        tb.NaiveBayes().fit(path, "z")


def test_batches_that_differ(frame):
    with pytest.raises(tb.DataError, match=r"batch 1 .*column 'kids'"):
        tb.NaiveBayes().fit(iter([frame, frame.drop(columns="kids")]), "y")
    with pytest.raises(tb.DataError, match=r"column 'kids' is int64 in the first batch and .*string in batch 1"):
        tb.NaiveBayes().fit(iter([frame, frame.assign(kids="many")]), "y")
    with pytest.raises(tb.DataError, match="batch 0 is 7"):
        tb.NaiveBayes().fit(iter([7]), "y")
    mixed = iter([frame.assign(y=frame["y"].astype("category")), frame])
    twice = pd.concat([frame, frame])
    _assert_same(tb.NaiveBayes().fit(mixed, "y"), tb.NaiveBayes().fit(twice, "y"))


def test_an_error_in_the_middle_changes_nothing(frame, tmp_path, small_batches):
    model = tb.NaiveBayes().fit(frame, "y")
    before = model.tally_
    with pytest.raises(tb.DataError):
        model.partial_fit(iter([frame, frame.drop(columns="kids")]), "y")
    assert model.tally_ is before

    def stopped():
        yield frame
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(stopped(), "y")
    assert model.tally_ is before


@pytest.mark.slow
def test_memory_stays_flat(tmp_path):
    rows = pa.table({"x": np.arange(400_000) % 7, "y": np.arange(400_000) % 3})
    pq.write_table(rows, tmp_path / "rows.parquet", row_group_size=50_000)
    import tracemalloc

    tb.NaiveBayes({"x": tb.Categorical()}).fit(tmp_path / "rows.parquet", "y")
    before = pa.total_allocated_bytes()
    tracemalloc.start()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tb.NaiveBayes({"x": tb.Categorical()}).fit(
            tb.table(lambda: (rows.slice(0, 10_000) for _ in range(400))), "y"
        )  # 4,000,000 rows, 64 MB
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16e6
    assert pa.total_allocated_bytes() - before < 16e6
