"""Long columns of labels, which are encoded by threads and by shortcuts: the same codes as one by one."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tallybayes as tb
from tallybayes.data.encoding import encode
from tallybayes.data.table import open_table
from tallybayes.errors import LabelError

N_ROWS = 300_000  # several slices
RARE = [10, 200_001, 299_999]  # rows with labels that occur nowhere else
WORDS = np.array(["ham", "spam", "eggs", "", "Zoë"], dtype=object)


def labels() -> np.ndarray:
    found = WORDS[np.random.default_rng(0).integers(0, len(WORDS), N_ROWS)]
    found[RARE] = ["first", "second", "third"]
    return found


def copied(values: np.ndarray) -> np.ndarray:
    """Every row an object of its own, as `astype` makes them."""
    return values.astype(str).astype(object)


STRINGS = {
    "shared objects": lambda v: v,
    "objects of their own": copied,
    "strided objects": lambda v: np.stack([v, v], axis=1)[:, 0],
    "U": lambda v: v.astype(str),
    "strided U": lambda v: np.stack([v.astype(str)] * 2, axis=1)[:, 1],
    "U of the other byte order": lambda v: v.astype(str).astype(">U6"),
    "list": lambda v: v.tolist(),
    "pandas objects": lambda v: pd.Series(v, dtype=object),
    "pandas strings": lambda v: pd.Series(v, dtype="string"),
    "pandas index": lambda v: pd.Index(v, dtype=object),
    "Polars": lambda v: pl.Series(v.tolist()),
    "Arrow": lambda v: pa.array(v),
    "Arrow chunks": lambda v: pa.chunked_array([v[:1000], v[1000:]]),
}


@pytest.mark.parametrize("form", STRINGS)
@pytest.mark.parametrize("ordered", [False, True])
def test_strings(form, ordered):
    values = labels()
    codes, domain = encode(STRINGS[form](values), "x", ordered=ordered)
    expected = sorted(set(values)) if ordered else list(dict.fromkeys(values))
    assert list(domain.levels) == expected
    assert (np.array(expected, dtype=object)[codes] == values).all()


MISSING = {
    "shared objects": (lambda v: v, None),
    "NaN among shared objects": (lambda v: v, np.nan),
    "pandas strings": (lambda v: pd.Series(v, dtype="string"), None),
    "Arrow": (lambda v: pa.array(v, from_pandas=True), None),
}


@pytest.mark.parametrize("form", MISSING)
def test_missing_strings(form):
    make, nothing = MISSING[form]
    values = labels()
    values[5::7] = nothing
    codes, domain = encode(make(values), "x")
    assert ((codes < 0) == (np.arange(N_ROWS) % 7 == 5)).all()
    known = codes >= 0
    assert (np.array(domain.levels, dtype=object)[codes[known]] == values[known]).all()


NUMBERS = {
    "int8 over its whole range": np.array([-128, 127, 0], dtype=np.int8),
    "int16 over its whole range": np.array([-(2**15), 2**15 - 1, 7], dtype=np.int16),
    "minus one and one": np.array([-1, 1]),
    "years": np.array([1999, 2024, 2025], dtype=np.int32),
    "a wide range": np.array([-5000, 70_000, 0]),
    "far apart": np.array([-(2**62), 2**62, 3]),
    "near the top of uint64": np.array([2**64 - 1, 2**64 - 3, 2**64 - 300], dtype=np.uint64),
    "around 2⁶³": np.array([2**63 - 1, 2**63, 2**63 + 200], dtype=np.uint64),
    "floats": np.array([-1.0, 3.0, 250.0]),
    "float32": np.array([-1.0, 3.0, 70_000.0], dtype=np.float32),
}


@pytest.mark.parametrize("form", NUMBERS)
@pytest.mark.parametrize("stride", [1, 2])
def test_numbers(form, stride):
    few = NUMBERS[form]
    values = few[np.random.default_rng(1).integers(0, len(few), N_ROWS)][::stride]
    codes, domain = encode(values, "x", ordered=True)
    assert set(few.tolist()) <= set(domain.levels)
    assert (np.array(domain.levels, dtype=object)[codes] == values.astype(object)).all()


def test_floats_with_holes_and_refused_ones():
    values = np.tile([2.0, np.nan, 3.0], 1000)
    codes, domain = encode(values, "x")
    assert [domain.levels[k] if k >= 0 else None for k in codes[:3]] == [2, None, 3]
    for wrong in (0.5, np.inf, 2.0**53):
        with pytest.raises(LabelError):
            encode(np.array([1.0, wrong]), "x")


def test_surrogates_are_refused_in_every_form():
    broken = np.array(["a", "\ud800"])
    for values in (broken, broken.astype(object), np.tile(broken.astype(object), 2000)):
        with pytest.raises(LabelError, match="surrogates"):
            encode(values, "x")


def test_mixed_kinds_among_shared_objects_are_refused():
    values = np.tile(np.array(["a", 1], dtype=object), 2000)
    with pytest.raises(LabelError, match="int"):
        encode(values, "x")


def test_predictions_of_a_list_of_strings_are_strings():
    X = np.arange(4.0)[:, None]
    model = tb.NaiveBayes().fit(X, ["a", "a", "bb", "bb"])
    assert model.classes_.dtype.kind == "U"
    assert model.predict(X).tolist() == ["a", "a", "bb", "bb"]


@pytest.mark.parametrize("missing", [[], [None], [np.nan], [None, np.nan, pd.NA]], ids=["none", "None", "nan", "all"])
def test_a_frame_of_objects_that_share_their_strings(missing):
    levels = np.array(["spam", "ham", "".join(["h", "am"]), *missing], dtype=object)  # of two objects with one text
    rng = np.random.default_rng(0)
    cells, y = levels[rng.integers(0, len(levels), 5000)], rng.choice(["no", "yes"], 5000)
    shared = pd.DataFrame({"x": pd.Series(cells, dtype=object), "y": y})
    copies = [cell if pd.isna(cell) else str(cell.encode(), "utf8") for cell in cells]
    own = shared.assign(x=pd.Series(copies, dtype=object))
    found, expected = (tb.NaiveBayes().fit(frame, "y").tally_ for frame in (shared, own))
    assert set(found.domains["x"].levels) == {"spam", "ham"}
    where = [found.domains["x"].levels.index(level) for level in expected.domains["x"].levels]
    np.testing.assert_array_equal(found["x"].table[:, where], expected["x"].table)
    column = open_table(shared).columns["x"]
    assert column.null_count == shared["x"].isna().sum()


def test_a_frame_of_objects_that_are_no_strings():
    numbers = pd.DataFrame({"x": pd.Series(np.arange(5000) % 3, dtype=object), "y": np.arange(5000) % 2})
    assert open_table(numbers).kind("x") == "number"
    mixed = numbers.assign(x=pd.Series(np.array(["a", 1], dtype=object)[np.arange(5000) % 2], dtype=object))
    with pytest.raises(LabelError, match="column 'x'"):
        tb.NaiveBayes({"x": tb.Categorical()}).fit(mixed, "y")
    strange = numbers.assign(x=pd.Series(np.array(["a", "\ud800"], dtype=object)[np.arange(5000) % 2], dtype=object))
    with pytest.raises(LabelError, match="column 'x'"):
        tb.NaiveBayes({"x": tb.Categorical()}).fit(strange, "y")
