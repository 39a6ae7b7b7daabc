"""Untrusted BIF files: invalid bytes, declared sizes, and texts that could take very long."""

import gzip
import io
import tracemalloc
from array import array

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallybayes.errors import DataError, FileError
from tallybayes.models.network.io import bif_parser as bif_blocks
from tallybayes.models.network.io import text_file
from tallybayes.models.network.io.bif import read_bif
from tallybayes.models.network.io.bif_scanner import Scanner
from tests.examples import examples
from tests.unit.models.network.io.bif_examples import CHILD, ROOT, START, WHOLE, read

# ---- Bytes ------------------------------------------------------------------------------------------------------


def test_compressed_files_are_recognized_by_content(tmp_path):
    packed = gzip.compress(WHOLE.encode())
    (tmp_path / "n.bif").write_bytes(packed)
    (tmp_path / "n.gz").write_text(WHOLE)
    for source in (tmp_path / "n.bif", tmp_path / "n.gz", io.BytesIO(packed)):
        assert read_bif(source) == read(WHOLE)


@pytest.mark.parametrize(
    "damage", [lambda b: b[:-9], lambda b: b[:40] + b"\xff" * 9 + b[49:], lambda b: b[:2], lambda b: b + b"x"]
)
def test_damaged_compressed_files(damage):
    with pytest.raises(FileError, match="the text is damaged: it cannot be decompressed"):
        read_bif(io.BytesIO(damage(gzip.compress(WHOLE.encode()))))


def test_decompression_bombs_raise(monkeypatch):
    assert text_file.MAX_SIZE == 2**28
    monkeypatch.setattr(text_file, "MAX_SIZE", 2**26)  # which takes less time
    bomb = gzip.compress(b" " * 2**20) * 2**10  # a megabyte for each kilobyte
    tracemalloc.start()
    try:
        with pytest.raises(FileError, match="the text holds more than 64 MiB"):
            read_bif(io.BytesIO(bomb))
        assert tracemalloc.get_traced_memory()[1] < 1.1 * text_file.MAX_SIZE
    finally:
        tracemalloc.stop()


def test_too_long_texts(monkeypatch):
    class Endless:
        def read(self, size):
            return "x" * size

    monkeypatch.setattr(text_file, "MAX_SIZE", 2**21)
    with pytest.raises(FileError, match="holds more than 2 MiB"):
        read_bif(Endless())


def test_other_encodings(tmp_path):
    text = START.replace("a1", "größe") + ROOT + CHILD.replace("a1", "größe")
    path = tmp_path / "n.bif"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(FileError, match=r"n\.bif, line 4: found the byte 0xf6; expected text in UTF-8(.|\n)*latin-1"):
        read_bif(path)
    with path.open(encoding="utf-8") as file, pytest.raises(FileError, match="expected text in UTF-8"):
        read_bif(file)
    with path.open(encoding="latin-1") as file:
        assert read_bif(file) == read(text)
    with pytest.raises(FileError, match="line 1: found the byte 0xff; expected text in UTF-8"):
        read_bif(io.BytesIO(text.encode("utf-16")))


@pytest.mark.parametrize("source", [None, 5, b"network", WHOLE])
def test_other_sources(source):
    with pytest.raises(DataError, match="expected a path or a file object"):
        read_bif(source)


def test_file_objects_of_other_things():
    class Strange:
        def read(self, size):
            return [1, 2]

    with pytest.raises(DataError, match=r"a file object that gives \[1, 2\]; expected one of text or bytes"):
        read_bif(Strange())


# ---- Untrusted files ----- ---------------------------------------------------------------------------------------


def wide(n_parents, n_levels, rows):
    """A node with many parents."""
    levels = " ".join(f"x{i}" for i in range(n_levels))
    parents = [f"p{i}" for i in range(n_parents)]
    text = "".join(
        f"variable {name} {{ type discrete [ {n_levels} ] {{ {levels} }}; }}\n"
        f"probability ( {name} ) {{ table 1 {'0 ' * (n_levels - 1)}; }}\n"
        for name in parents
    )
    node = "variable A { type discrete [ 2 ] { a0, a1 }; }\n"
    return f"network n {{ }}\n{text}{node}probability ( A | {' '.join(parents)} ) {{ {rows} }}"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        (START.replace("[ 2 ]", "[ 2000000000 ]"), "found 2 levels of 'A'; expected 2000000000"),
        (START.replace("[ 2 ]", f"[ {'9' * 10_000} ]"), "expected a whole number"),
        (wide(40, 10, "default 1, 0;"), "tables of more than 33554432 cells"),
        (wide(63, 30, "default 1, 0;"), "tables of more than 33554432 cells"),
        (wide(64, 1, "default 1, 0;"), "found more than 63 parents of 'A'"),
        (wide(23, 2, "(x0) 1, 0;"), "found 1 level for a row of 'A'; expected 23"),
        (wide(23, 2, f"({'x0 ' * 23}) 1, 0;"), "found no numbers for the row \\('x0', .*'x0', 'x1'\\) of 'A'"),
        (wide(23, 2, "table 1, 0;"), "found 2 numbers in the table of 'A'; expected 16777216"),
    ],
)
def test_declared_sizes_allocate_no_memory(text, what):
    tracemalloc.start()
    try:
        with pytest.raises(FileError, match=what):
            read(text)
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()


def test_surplus_numbers_are_not_stored():
    scanner, kept = Scanner("0.5, 0.25, 0.25, 7, 8; 9", "the text"), array("d")
    assert scanner.numbers(2, kept) == 5
    assert kept.tolist() == [0.5, 0.25]
    assert scanner.peek() == "9"


def test_total_size_of_tables_is_limited(monkeypatch):
    monkeypatch.setattr(bif_blocks, "MAX_CELLS", 8)
    assert read(WHOLE).tables["B"].size == 6
    monkeypatch.setattr(bif_blocks, "MAX_CELLS", 7)
    with pytest.raises(FileError, match="found, with that of 'B', tables of more than 7 cells"):
        read(WHOLE)


def test_many_parents():
    assert read(wide(63, 1, "default 1, 0;")).tables["A"].shape == (*[1] * 63, 2)
    table = read(wide(12, 2, "default 0.5, 0.5;")).tables["A"]
    assert table.shape == (2,) * 13
    assert (table == 0.5).all()


N = 200_000


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [
        lambda n: "a/**/" * n,
        lambda n: "/**/" * n,
        lambda n: "network " + "a/" * n,
        lambda n: "network " + "{" * n,
        lambda n: "network " + '"' * n,
        lambda n: 'network "' + '\\"' * n,
        lambda n: "network n { " + 'property "x' * n,
        lambda n: "network n { " + 'property "x\n;' * n,
        lambda n: "network n { " + "property ;" * n,
        lambda n: START + "probability " + "(" * n,
        lambda n: START + "probability ( A | " + "B, " * n,
        lambda n: START + "probability ( A ) { table " + "0 " * n,
        lambda n: START + "probability ( A ) { table " + "0" * n,
        lambda n: START + "probability ( A ) { table " + "e" * n,
        lambda n: START + "probability ( A ) { table " + "," * n,
        lambda n: START + "probability ( A ) { table " + "0 //\n" * n,
        lambda n: START + "probability ( A ) { " + "() 1 0;" * n + "}",
        lambda n: "network n { } variable A { type discrete [ 2 ] { " + "".join(f"{i} " for i in range(n)),
        lambda n: "network n { }" + "".join(f"variable v{i} {{ type discrete[1] {{ x }}; }}" for i in range(n // 10)),
    ],
)
def test_long_texts_raise(make):
    with pytest.raises(FileError):  # work that grew with the square of the length would not end
        read(make(N))


@pytest.mark.slow
def test_long_cycles_and_chains():
    n = 2000
    variables = "".join(f"variable v{i} {{ type discrete[1] {{ x }}; }}\n" for i in range(n))
    blocks = "".join(f"probability ( v{i} | v{i + 1} ) {{ table 1; }}\n" for i in range(n - 1))
    chain = read(f"network n {{ }}\n{variables}{blocks}probability ( v{n - 1} ) {{ table 1; }}")
    assert list(chain.parents) == [f"v{i}" for i in reversed(range(n))]
    with pytest.raises(FileError, match=r"line 2002: found the cycle 'v0' → 'v1999' → .* → …; expected none"):
        read(f"network n {{ }}\n{variables}{blocks}probability ( v{n - 1} | v0 ) {{ table 1; }}")


SMALL = WHOLE.replace("(a1) 0.0, 0.0, 1.0", 'default 1 0 0; property "x;" /* y */').encode()
PIECES = st.sampled_from([*b' ,;{}()[]|"/*\\\n\r.-e0159ab', 0, 0x80, 0xFF]).map(lambda code: bytes([code]))
PLACE = st.integers(0, len(SMALL))


@given(st.lists(st.tuples(PLACE, PLACE, PIECES | st.just(b"") | st.binary(max_size=4)), min_size=1, max_size=4))
@examples(400)
def test_changed_bytes_are_read_or_raise(changes):
    content = SMALL
    for first, second, piece in changes:
        low, high = sorted((first, second))
        mode = (first + second) % 4
        if mode == 0:  # cut out
            content = content[:low] + piece + content[high:]
        elif mode == 1:  # insert
            content = content[:low] + piece + content[low:]
        elif mode == 2:  # repeat
            content = content[:high] + piece + content[low:]
        else:  # swap
            content = content[high:] + piece + content[low:high] + content[:low]
    try:
        network = read_bif(io.BytesIO(content))
    except FileError as error:
        assert "the text" in str(error)  # noqa: PT017 - whatever else is raised fails the test
        return
    for table in network.tables.values():
        np.testing.assert_allclose(table.sum(axis=-1), 1, rtol=0, atol=1e-9)


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
@examples(100)
def test_other_content_raises(content):
    for start in (b"", b"network n { ", START.encode(), b"\x1f\x8b"):
        with pytest.raises(FileError):
            read_bif(io.BytesIO(start + content))
