"""Networks in files that other programs read and write: BIF, the Interchange Format 0.15."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

from tallybayes._utils.sealed_zip import FilePath
from tallybayes.errors import DataError, FileError
from tallybayes.families.with_missing import MISSING
from tallybayes.models.network.io.bif_parser import BlockReader
from tallybayes.models.network.io.bif_scanner import Scanner, written
from tallybayes.models.network.io.network_tables import NetworkTables
from tallybayes.models.network.io.text_file import text_of, write_text


def read_bif(source: Any) -> NetworkTables:
    r"""Read a network from a BIF file: the format of the bnlearn repository, pgmpy, pyAgrum, GeNIe and JavaBayes.

    Files are untrusted: nothing in them is executed, sizes are checked before memory is allocated, and whatever is
    wrong is a `FileError` that names the line.

    Parameters
    ----------
    source : str, path-like or file object
        A path, or anything with ``read`` that gives text or bytes. Packed files (gzip) are recognized by their content.

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
    text, name = text_of(source, "from_bif")
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
    write_text(target, _pieces(tables))


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
