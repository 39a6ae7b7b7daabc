"""Networks in files that other programs read and write: BIF, the Interchange Format 0.15."""

from __future__ import annotations

import gzip
import io
import os
import zlib
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import product
from typing import Any

from tallybayes.errors import DataError, FileError
from tallybayes.families.with_missing import MISSING
from tallybayes.models.networks.bif.blocks import BlockReader
from tallybayes.models.networks.bif.text import Scanner, written
from tallybayes.models.networks.tables import NetworkTables
from tallybayes.replacing import replacing
from tallybayes.sealed_zip import FilePath

MAX_SIZE = 2**28  # bytes or characters of a file, unpacked
_GZIP = b"\x1f\x8b"
_CHUNK = 2**20


def read_bif(source: Any) -> NetworkTables:
    r"""Read a network from a BIF file: the format of the bnlearn repository, pgmpy, pyAgrum, GeNIe and JavaBayes.

    Files come from strangers: nothing in them is executed, sizes are checked before memory is taken, and whatever is
    wrong is a `FileError` that names the line.

    Parameters
    ----------
    source : str, path-like or file object
        A path, or anything with ``read`` that gives text or bytes. Packed files (gzip) are recognised by their content.

    Returns
    -------
    NetworkTables
        Levels are strings, in the order of the file. Rows that do not sum to 1 within 1e-6 were divided by their sum
        (printed digits are few); all others are as in the file, to the last bit.

    Raises
    ------
    FileError
        If the file is not BIF in UTF-8; holds more than 256 MiB or declares tables of more than 2²⁵ cells together; a
        variable, a level or a row is unknown, missing or there twice; a number is negative or a row does not sum to 1
        within 0.001; or the network has a cycle.

    Notes
    -----
    The rows of ``probability ( A | B, C )`` may be given one by one, ``(b1, c1) 0.1, 0.9;``, those not given by
    ``default 0.5, 0.5;``, or all at once: in ``table …;`` the levels of the node itself change slowest and those of
    the last parent fastest. ``probability ( A B C )``, as JavaBayes writes it, means the same. Variables come before
    the blocks that name them. Properties and the network's name are passed over.

    Names and levels end at white space and at ``, ; { } ( ) | "``. Others are quoted; in quotes, ``\"``, ``\\``,
    ``\n`` and ``\r`` stand for a quote, a backslash and the two ends of a line, and other backslashes for themselves.

    Examples
    --------
    >>> import io
    >>> from tallybayes.models.networks.bif.file import read_bif
    >>> network = read_bif(io.StringIO('''
    ... network weather { }
    ... variable rain { type discrete [ 2 ] { no, yes }; }
    ... variable grass { type discrete [ 2 ] { dry, wet }; }
    ... probability ( rain ) { table 0.8, 0.2; }
    ... probability ( grass | rain ) {
    ...   (no) 0.9, 0.1;
    ...   (yes) 0.0, 1.0;
    ... }'''))
    >>> network.levels["grass"], network.tables["grass"][network.levels["rain"].index("yes")]
    (('dry', 'wet'), array([0., 1.]))
    """
    text, name = _text_of(source)
    try:
        return BlockReader(Scanner(text, name)).read()
    except MemoryError:
        raise FileError(
            f"{name} describes a network that does not fit into memory.\n    Read it where more memory is free."
        ) from None


def write_bif(tables: NetworkTables, target: FilePath) -> None:
    r"""Write a network as a BIF file: all of it or nothing. An existing file is replaced in one step.

    `read_bif` reads back the same numbers, to the last bit where rows sum to 1 within 1e-6. Levels and names become
    text, True and 1 too. The same network gives the same bytes.

    Parameters
    ----------
    tables : NetworkTables
    target : str or path-like
        A name that ends in ``.gz`` gives a packed file.

    Raises
    ------
    DataError
        If `tables` are no `NetworkTables`, or a name cannot be encoded as UTF-8.

    Notes
    -----
    Any text can be a name or a level. It is quoted if it is empty, has white space, characters that cannot be printed
    or one of ``, ; { } ( ) [ ] | " /``; in quotes, a quote is written ``\"``, a backslash ``\\``, and the two ends
    of a line ``\n`` and ``\r``.

    Examples
    --------
    >>> import os, tempfile
    >>> from tallybayes.models.networks.bif.file import read_bif, write_bif
    >>> from tallybayes.models.networks.tables import NetworkTables
    >>> network = NetworkTables({"rain": (), "grass": ("rain",)}, {"rain": ("no", "yes"), "grass": ("dry", "wet")},
    ...                         {"rain": [0.8, 0.2], "grass": [[0.9, 0.1], [0.0, 1.0]]})
    >>> path = os.path.join(tempfile.mkdtemp(), "weather.bif.gz")
    >>> write_bif(network, path)
    >>> read_bif(path) == network
    True
    """
    if not isinstance(tables, NetworkTables):
        raise DataError.wrong_type("tables", f"a {type(tables).__name__}", "NetworkTables", "Pass a network's tables.")
    with replacing(target) as file, ExitStack() as packing:
        out: Any = file
        if os.fsdecode(target).lower().endswith(".gz"):  # without name and time: equal networks, equal bytes
            out = packing.enter_context(gzip.GzipFile("", "wb", fileobj=file, mtime=0))
        for piece in _pieces(tables):
            out.write(piece.encode())


def _pieces(tables: NetworkTables) -> Iterator[str]:
    yield "network unknown {\n}\n"
    names = {node: written(node) for node in tables.parents}
    levels = {n: [written(MISSING if x is None else x) for x in tables.levels[n]] for n in tables.parents}
    for node, known in levels.items():
        yield f"variable {names[node]} {{\n  type discrete [ {len(known)} ] {{ {', '.join(known)} }};\n}}\n"
    for node, parents in tables.parents.items():
        given = f" | {', '.join(names[parent] for parent in parents)}" if parents else ""
        yield f"probability ( {names[node]}{given} ) {{\n"
        rows = tables.tables[node].reshape(-1, len(levels[node]))
        for labels, row in zip(product(*(levels[parent] for parent in parents)), rows, strict=True):
            start = f"({', '.join(labels)})" if parents else "table"
            yield f"  {start} {', '.join(map(repr, row.tolist()))};\n"
        yield "}\n"


# ---- The bytes --------------------------------------------------------------------------------------------------


def _text_of(source: Any) -> tuple[str, str]:
    """The text of a source, and what messages call it."""
    if isinstance(source, str) and "\n" in source:
        hint = "Wrap the text of a file: tb.BayesianNetwork.from_bif(io.StringIO(text))."
        raise DataError.wrong_type("source", "text of several lines", "a path or a file object", hint)
    if isinstance(source, str | os.PathLike):
        name = os.fsdecode(source)
        with open(source, "rb") as file:
            content = _read(file, name)
    elif hasattr(source, "read"):
        known = getattr(source, "name", None)
        name = known if isinstance(known, str) else "the text"
        content = _read(source, name)
    else:
        raise DataError.wrong_type("source", f"a {type(source).__name__}", "a path or a file object")
    if isinstance(content, str):
        return content, name
    if content.startswith(_GZIP):
        try:
            with gzip.GzipFile(fileobj=io.BytesIO(content)) as unpacked:
                content = _read(unpacked, name)
        except (OSError, EOFError, zlib.error) as error:
            raise FileError.damaged(name, f"it cannot be unpacked ({error})") from error
    try:
        return content.decode(), name
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise _not_utf8(name, line, f"the byte 0x{content[error.start]:02x}") from error


def _read(file: Any, name: str) -> Any:
    """All of a file, text or bytes, but not too much."""
    parts: list[Any] = []
    size = 0
    try:
        while part := file.read(_CHUNK):
            if not isinstance(part, str | bytes) or type(part) is not type([*parts[:1], part][0]):
                raise DataError.wrong_type("source", f"a file object that gives {part!r:.40}", "one of text or bytes")
            parts.append(part)
            size += len(part)
            if size > MAX_SIZE:
                raise FileError(
                    f"{name} holds more than {MAX_SIZE >> 20} MiB, unpacked; expected less.\n"
                    "    Split the network, or make sure that the file is what its name says."
                )
    except UnicodeDecodeError as error:  # from a file that was opened as text
        raise _not_utf8(name, sum(part.count("\n") for part in parts) + 1, error.reason) from error
    return type(parts[0])().join(parts) if parts else ""


def _not_utf8(name: str, line: int, found: str) -> FileError:
    hint = "Save it as UTF-8, or pass it opened with its encoding: from_bif(open(path, encoding='latin-1'))."
    return FileError.bad_line(name, line, f"found {found}; expected text in UTF-8", hint)
