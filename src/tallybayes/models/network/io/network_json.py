"""Read and write Bayesian networks as JSON: CPTs of discrete nodes, linear models of continuous nodes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Never

from tallybayes._utils.sealed_zip import FilePath
from tallybayes.errors import DataError, FileError, LabelError, short_repr
from tallybayes.models.network.io.network_spec import NetworkSpec, read_network_spec
from tallybayes.models.network.io.text_file import TextSource, read_text, write_text

FORMAT, VERSION = "tallybayes network", 2
_SURROGATE = re.compile(r"\\u[dD]|[\ud800-\udfff]")  # possibly a lone one: as an escape, or as it is


def read_json(source: TextSource) -> NetworkSpec:
    """Read a network from a JSON file.

    Files are untrusted: nothing in them is executed, sizes are checked before memory is allocated, and invalid content
    raises FileError.

    Parameters
    ----------
    source : str, path-like or file object
        Compressed files (gzip) are recognized by their content.

    Returns
    -------
    NetworkSpec
    """
    text, name = read_text(source, "from_json")
    try:
        content = json.loads(text, object_pairs_hook=_unique_keys, parse_constant=_reject_constant)
    except RecursionError:
        raise FileError(f"{name} has too deeply nested lists; expected a network.") from None
    except ValueError as error:
        raise FileError(
            f"{name} is not valid JSON: {short_repr(str(error), 120)}.\n    Write it with to_json."
        ) from None
    if _SURROGATE.search(text) and not _is_encodable(content):
        raise FileError(f"{name} has a name with a lone surrogate; expected valid text.")
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise FileError(
            f'{name} is no network; expected {{"format": "{FORMAT}", "version": {VERSION}, "nodes": [...]}}.\n'
            "    Write one with to_json."
        )
    if type(content.get("version")) is not int or content["version"] != VERSION:
        raise FileError(
            f"{name} has version {short_repr(content.get('version'))}; this version of Tallybayes reads {VERSION} "
            "only.\n    Write the network again with to_json, or read it with the version of Tallybayes that wrote it."
        )
    unknown = [key for key in content if key not in ("format", "version", "nodes")]
    if unknown or not isinstance(content.get("nodes"), list):
        what = f"the key {short_repr(unknown[0])}" if unknown else "no list of nodes"
        raise FileError(f"{name} has {what}; expected 'format', 'version' and 'nodes', a list.")
    try:
        return read_network_spec(_by_name(content["nodes"]))
    except (DataError, LabelError) as error:
        raise FileError(f"{name}: {error}") from None


def write_json(nodes: Mapping[Any, Mapping[str, Any]], target: FilePath) -> None:
    """Write a network as a JSON file, atomically. The same network gives the same bytes.

    Parameters
    ----------
    nodes : mapping from node to its parameters
        As for `read_network_spec`.
    target : str or path-like
        Compressed if it ends in ``.gz``.
    """
    records = [{"name": node, **spec} for node, spec in nodes.items()]
    lines = [json.dumps(record, ensure_ascii=False, allow_nan=False) for record in records]
    invalid = [record["name"] for record in records if not _is_encodable(record)]
    if invalid:
        raise DataError.wrong_type(
            f"the node {invalid[0]!r}", "with a lone surrogate", "names and levels that are text"
        )
    head = f'{{"format": {json.dumps(FORMAT)}, "version": {VERSION}, "nodes": [\n'
    write_text(target, [head, ",\n".join(lines), "\n]}\n"])


def _is_encodable(content: object) -> bool:
    """Return whether all strings of JSON content can be encoded as UTF-8."""
    try:
        json.dumps(content, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _by_name(nodes: list[Any]) -> dict[Any, Any]:
    """Return the nodes of a file by name."""
    by_name: dict[Any, Any] = {}
    for spec in nodes:
        name = spec.get("name") if isinstance(spec, dict) else None
        if isinstance(name, bool) or not isinstance(name, str | int):
            raise DataError.wrong_type(
                "a node", short_repr(spec), 'an object with a "name", a string or a whole number'
            )
        if name in by_name:
            raise DataError(f"the node {name!r} is there twice; expected each once.")
        by_name[name] = {key: value for key, value in spec.items() if key != "name"}
    return by_name


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice!r} is there twice in an object")
    return content


def _reject_constant(word: str) -> Never:
    raise ValueError(f"found {word}; expected finite numbers")
