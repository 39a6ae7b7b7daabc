"""Read and write BIF files: the Interchange Format for Bayesian networks, version 0.15."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from tallybayes._utils.sealed_zip import FilePath
from tallybayes.errors import DataError, FileError
from tallybayes.families.with_missing import MISSING
from tallybayes.models.network.io.bif_parser import BlockReader
from tallybayes.models.network.io.bif_scanner import Scanner, quote_name
from tallybayes.models.network.io.network_tables import NetworkTables
from tallybayes.models.network.io.text_file import TextSource, read_text, write_text


def read_bif(source: TextSource) -> NetworkTables:
    r"""Read a network from a BIF file: the format of the bnlearn repository, pgmpy, pyAgrum, GeNIe and JavaBayes.

    Files are untrusted: nothing in them is executed, sizes are checked before memory is allocated, and errors raise
    `FileError` with the line number.

    Parameters
    ----------
    source : str, path-like or file object
        A path, or an object with ``read`` that returns text or bytes. Compressed files (gzip) are recognized by their
        content.

    Returns
    -------
    NetworkTables
        Levels are strings, in the order of the file. Rows whose sum differs from 1 by more than 1e-6 are divided by
        their sum (printed digits are few); all others are as in the file, bit by bit.

    Raises
    ------
    FileError
        If the file is not BIF in UTF-8; has more than 256 MiB, or tables of more than 2²⁵ cells in total; if a
        variable, a level or a row is unknown, missing or repeated; if a number is negative, or a row does not sum to 1
        within 0.001; or if the network has a cycle.

    Notes
    -----
    The rows of ``probability ( A | B, C )`` may be listed, ``(b1, c1) 0.1, 0.9;``, with ``default 0.5, 0.5;`` for
    all others. Or all are in one ``table …;``, in which the levels of the node itself change slowest and those of the
    last parent fastest. ``probability ( A B C )``, as JavaBayes writes it, means the same. Variables come before the
    blocks that name them. Properties and the network's name are ignored.

    Names and levels end at white space and at ``, ; { } ( ) | "``. Others are quoted; in quotes, ``\"``, ``\\``,
    ``\n`` and ``\r`` stand for a quote, a backslash, a newline and a carriage return; other backslashes are literal.

    Examples
    --------
    >>> import io
    >>> from tallybayes.models.network.io.bif import read_bif
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
    text, name = read_text(source, "from_bif")
    try:
        return BlockReader(Scanner(text, name)).read()
    except MemoryError:
        raise FileError(
            f"{name} has a network that does not fit into memory.\n    Read it on a machine with more memory."
        ) from None


def write_bif(tables: NetworkTables, target: FilePath) -> None:
    r"""Write a network as a BIF file, atomically. An existing file is replaced.

    `read_bif` reads the same numbers, bit by bit, if rows sum to 1 within 1e-6. Levels and names become text, True and
    1 too. The same network gives the same bytes.

    Parameters
    ----------
    tables : NetworkTables
    target : str or path-like
        Compressed if it ends in ``.gz``.

    Raises
    ------
    DataError
        If `tables` is not a `NetworkTables`, or a name cannot be encoded as UTF-8.

    Notes
    -----
    Any text can be a name or a level. It is quoted if it is empty, has white space, unprintable characters or one of
    ``, ; { } ( ) [ ] | " /``. In quotes, a quote is quote_name ``\"``, a backslash ``\\``, a newline ``\n`` and a
    carriage return ``\r``.

    Examples
    --------
    >>> import os, tempfile
    >>> from tallybayes.models.network.io.bif import read_bif, write_bif
    >>> from tallybayes.models.network.io.network_tables import NetworkTables
    >>> network = NetworkTables({"rain": (), "grass": ("rain",)}, {"rain": ("no", "yes"), "grass": ("dry", "wet")},
    ...                         {"rain": [0.8, 0.2], "grass": [[0.9, 0.1], [0.0, 1.0]]})
    >>> path = os.path.join(tempfile.mkdtemp(), "weather.bif.gz")
    >>> write_bif(network, path)
    >>> read_bif(path) == network
    True
    """
    if not isinstance(tables, NetworkTables):
        raise DataError.wrong_type("tables", f"a {type(tables).__name__}", "NetworkTables", "Pass a network's tables.")
    write_text(target, bif_blocks(tables))


def bif_blocks(tables: NetworkTables) -> Iterator[str]:
    """Yield the text of a BIF file in pieces."""
    yield "network unknown {\n}\n"
    names = {node: quote_name(node) for node in tables.parents}
    levels = {n: [quote_name(MISSING if x is None else x) for x in tables.levels[n]] for n in tables.parents}
    for node, of_node in levels.items():
        yield f"variable {names[node]} {{\n  type discrete [ {len(of_node)} ] {{ {', '.join(of_node)} }};\n}}\n"
    for node, parents in tables.parents.items():
        given = f" | {', '.join(names[parent] for parent in parents)}" if parents else ""
        yield f"probability ( {names[node]}{given} ) {{\n"
        rows = tables.tables[node].reshape(-1, len(levels[node]))
        for given_levels, row in zip(product(*(levels[parent] for parent in parents)), rows, strict=True):
            start = f"({', '.join(given_levels)})" if parents else "table"
            yield f"  {start} {', '.join(map(repr, row.tolist()))};\n"
        yield "}\n"
