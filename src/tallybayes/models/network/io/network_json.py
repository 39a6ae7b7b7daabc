"""Networks of labels and of lines as JSON: a plain text that people and other programs read and write."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from tallybayes._utils.sealed_zip import FilePath
from tallybayes.errors import DataError, FileError, LabelError, short_repr
from tallybayes.models.network.io.network_spec import NetworkSpec, read_network_spec
from tallybayes.models.network.io.text_file import text_of, write_text

FORMAT, VERSION = "tallybayes network", 2
_HALF = re.compile(r"\\u[dD]|[\ud800-\udfff]")  # of a character, perhaps: as an escape, or as it is


def read_json(source: Any) -> NetworkSpec:
    """Read a network from a JSON file.

    Files are untrusted: nothing in them is executed, sizes are checked before memory is allocated, and whatever is
    wrong is a `FileError`.

    Parameters
    ----------
    source : str, path-like or file object
        Packed files (gzip) are recognized by their content.

    Returns
    -------
    Described
    """
    text, name = text_of(source, "from_json")
    try:
        found = json.loads(text, object_pairs_hook=_each_once, parse_constant=_no_number)
    except RecursionError:
        raise FileError(f"{name} holds lists within lists without an end; expected a network.") from None
    except ValueError as error:
        raise FileError(f"{name} is no JSON: {short_repr(str(error), 120)}.") from None
    if _HALF.search(text) and not _is_text(found):
        raise FileError(f"{name} has a name that is no text: half a character (a lone surrogate).")
    if not isinstance(found, dict) or found.get("format") != FORMAT:
        raise FileError(
            f'{name} is no network; expected {{"format": "{FORMAT}", "version": {VERSION}, "nodes": [...]}}.\n'
            "    Write one with to_json."
        )
    if type(found.get("version")) is not int or found["version"] != VERSION:
        raise FileError(
            f"{name} has version {short_repr(found.get('version'))}; this version of Tallybayes reads {VERSION} only.\n"
            "    Write the network again with to_json, or read it with the version of Tallybayes that wrote it."
        )
    strange = [key for key in found if key not in ("format", "version", "nodes")]
    if strange or not isinstance(found.get("nodes"), list):
        what = f"{short_repr(strange[0])} beside its nodes" if strange else "no list of nodes"
        raise FileError(f"{name} has {what}; expected 'format', 'version' and 'nodes', a list.")
    try:
        return read_network_spec(_by_name(found["nodes"]))
    except (DataError, LabelError) as error:
        raise FileError(f"{name}: {error}") from None


def write_json(nodes: Mapping[Any, Mapping[str, Any]], target: FilePath) -> None:
    """Write a network as a JSON file: all of it or nothing. The same network gives the same bytes.

    Parameters
    ----------
    nodes : mapping from node to its numbers
        As `read_network_spec` takes them.
    target : str or path-like
        A name that ends in ``.gz`` gives a packed file.
    """
    lines = [json.dumps({"name": node, **spec}, ensure_ascii=False, allow_nan=False) for node, spec in nodes.items()]
    wrong = [node for node, spec in nodes.items() if not _is_text({"name": node, **spec})]
    if wrong:
        raise DataError.wrong_type(f"the node {wrong[0]!r}", "with a lone surrogate", "names and levels that are text")
    head = f'{{"format": {json.dumps(FORMAT)}, "version": {VERSION}, "nodes": [\n'
    write_text(target, [head, ",\n".join(lines), "\n]}\n"])


def _is_text(found: Any) -> bool:
    """Whether all strings of what JSON holds can be written."""
    try:
        json.dumps(found, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _by_name(nodes: list[Any]) -> dict[Any, Any]:
    """The nodes of a file, each by its name."""
    found: dict[Any, Any] = {}
    for spec in nodes:
        name = spec.get("name") if isinstance(spec, dict) else None
        if isinstance(name, bool) or not isinstance(name, str | int):
            raise DataError.wrong_type(
                "a node", short_repr(spec), 'an object with a "name", a string or a whole number'
            )
        if name in found:
            raise DataError(f"the node {name!r} is there twice; expected each once.")
        found[name] = {key: value for key, value in spec.items() if key != "name"}
    return found


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice!r} is there twice in an object")
    return found


def _no_number(word: str) -> Any:
    raise ValueError(f"found {word}; expected finite numbers")
