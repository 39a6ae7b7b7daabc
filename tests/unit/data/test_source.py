"""How files are read: once, in batches whose size does not depend on how wide their rows are."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tallybayes as tb
from tallybayes.data.source import Source


class _Counted(Source):
    """Batches that say how often they were made."""

    def __init__(self, parts):
        super().__init__("the parts")
        self.parts, self.made = parts, []

    @property
    def schema(self):
        return self.parts[0].schema

    def batches(self, columns=None):
        for number, part in enumerate(self.parts):
            self.made.append(number)
            yield part if columns is None else part.select(columns)


def test_the_first_batch_is_read_once():
    part = pa.table({"x": ["a", "b", "a"], "y": ["no", "yes", "no"]})
    source = _Counted([part, part, part])
    model = tb.NaiveBayes().fit(source, "y")
    assert source.made == [0, 1, 2]
    assert model.tally_["y"].table.tolist() == [6, 3]
    model.partial_fit(source, "y")  # all over again
    assert source.made == [0, 1, 2] * 2
    assert model.tally_["y"].table.tolist() == [12, 6]


def test_the_first_batch_of_other_columns_is_read_again():
    source = _Counted([pa.table({"x": ["a", "b"], "more": [1.5, 2.5], "y": ["no", "yes"]})] * 2)
    assert source.first_batch().schema.names == ["x", "more", "y"]
    assert [batch.schema.names for batch in source.read_ahead(["y", "x"])] == [["y", "x"]] * 2
    assert [batch.schema.names for batch in source.read_ahead(["y", "x", "more"])] == [["y", "x", "more"]] * 2


def test_what_makes_batches_is_asked_once_for_one_fit():
    made = []

    def make():
        made.append(1)
        return iter([pa.table({"x": ["a", "b"], "y": ["no", "yes"]})] * 3)

    source = tb.table(make)
    for times in (1, 2):
        assert tb.NaiveBayes().fit(source, "y").tally_["y"].table.sum() == 6
        assert len(made) == times


@pytest.mark.slow
@pytest.mark.parametrize("format", ["parquet", "ipc"])
def test_wide_rows_come_in_small_batches(format, tmp_path):
    path = tmp_path / f"rows.{'arrow' if format == 'ipc' else format}"
    wide = pa.table({f"x{k}": np.zeros(40_000) for k in range(400)})  # 128 MB
    if format == "parquet":
        pq.write_table(wide, path)
    else:
        with pa.ipc.new_file(path, wide.schema) as file:
            file.write_table(wide)
    found = [(len(batch), batch.nbytes) for batch in tb.table(path).batches()]
    assert sum(n for n, _ in found) == 40_000
    assert max(size for _, size in found) < 70e6


def test_narrow_rows_come_in_large_batches(tmp_path):
    pq.write_table(pa.table({"x": np.zeros(3_000_000, np.uint8)}), tmp_path / "rows.parquet")
    assert len(list(tb.table(tmp_path / "rows.parquet").batches())) <= 3_000_000 / 2**17 + 1


def test_files_of_one_type_and_another(tmp_path):
    columns = {"b": [1, 2], "a": ["u", None], "y": ["no", "yes"]}
    pq.write_table(pa.table(columns), tmp_path / "1.parquet")
    more = {"a": pa.nulls(2), "y": columns["y"], "b": pa.array([0.5, 1], pa.float32())}  # in another order
    pq.write_table(pa.table(more), tmp_path / "2.parquet")
    source = tb.table(str(tmp_path / "*.parquet"))
    parts = list(source.batches())
    assert [part.schema.remove_metadata() for part in parts] == [source.schema] * 2
    assert pa.concat_tables(parts)["b"].to_pylist() == [1, 2, 0.5, 1]
    assert pa.concat_tables(parts)["a"].to_pylist() == ["u", None, None, None]
    assert tb.NaiveBayes().fit(source, "y").tally_.domains["a"].levels == ("u",)
