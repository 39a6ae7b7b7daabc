"""Sealed model files: named arrays and a JSON manifest in one zip file that NumPy can open.

`read` accepts exactly the bytes that `write` produces: the layout of a file follows from its manifest, and every other
byte is compared with its expected value. Nothing is interpreted: no pickle, no ``eval``, no decompression. No memory is
allocated before the declared sizes match the size of the file.

A file is a zip of stored (uncompressed) zip64 entries dated 1980: ``manifest.json``, then ``<name>.npy`` in the order
of the names, little-endian, in C order. Its comment is the seal, a SHA-256 of every byte before it. Only files of
format version `FORMAT` are read. Every version keeps the first entry and the seal in place, so that other versions can
be named in the error message.

The seal protects against accidents, not attackers: anyone can compute a seal. An untrusted file is harmless because
reading it only fills arrays and parses JSON.
"""

from __future__ import annotations

import json
import os
import re
import zlib
from collections.abc import Callable
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from tallybayes import __version__
from tallybayes._utils.atomic_write import atomic_write
from tallybayes._utils.sealed_zip import (
    DIGEST_SIZE,
    MANIFEST,
    SEAL,
    FilePath,
    Forms,
    SealedReader,
    crc_of,
    describe_entry,
    directory_record,
    is_local,
    list_members,
    little_endian,
    local_size,
    manifest_size,
    sealed_size,
    write_sealed,
)
from tallybayes.errors import DataError, FileError

FORMAT = 2

Loader = TypeVar("Loader", bound=Callable[[dict[str, Any], dict[str, np.ndarray]], Any])

_LOADERS: dict[str, Callable[[dict[str, Any], dict[str, np.ndarray]], Any]] = {}
_DTYPES = ("|b1", "|i1", "<i2", "<i4", "<i8", "|u1", "<u2", "<u4", "<u8", "<f4", "<f8")
_NAME = re.compile(r"(?!/)(?!.*\.\.)[A-Za-z0-9_./-]{1,255}")
_MAX_MANIFEST = 2**26  # bytes
_MAX_PARSED = 2**29  # bytes of memory for parsing the manifest: up to about 25 times its size
_COSTS = {b"{": 250, b"[": 100, b",": 60}  # upper bounds of bytes per object, list and value


def write(path: FilePath, kind: str, manifest: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Write a sealed file atomically; an existing file is replaced in one step, or left unchanged after an error.

    Equal content gives equal bytes, and ``np.load(path, allow_pickle=False)`` opens the arrays.

    Parameters
    ----------
    path : str or os.PathLike
        A new name, or a regular file, which is replaced and keeps its permissions. The target of a symbolic link is
        replaced. Folders, pipes and devices raise an error.
    kind : str
        Kind of content; `load` uses the loader registered for it.
    manifest : dict
        Plain JSON: dicts with string keys, lists, strings, finite numbers, booleans, None. Tuples come back as lists.
    arrays : dict of str to ndarray
        Of bool, integers, float32 or float64, in any shape. Names are made of ``A-Z a-z 0-9 _ . / -``, without ``..``
        and without a leading ``/``.

    Raises
    ------
    DataError
        If the manifest, a name or an array cannot be stored.
    FileError
        If a pipe, a socket or a device is at the path; of a folder, it is the system's own error.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(folder + "/model", "example", {"columns": ["height"]}, {"counts": np.array([3, 4])})
    ...     with np.load(folder + "/model", allow_pickle=False) as archive:
    ...         archive["counts"]
    array([3, 4])
    """
    members = list_members(*_describe_content(kind, manifest, arrays))
    with atomic_write(path) as file:
        write_sealed(file, members, arrays)


def read(path: FilePath) -> tuple[str, dict[str, Any], dict[str, np.ndarray]]:
    """Read a sealed file in one pass; raise FileError for anything that `write` does not produce.

    Nothing in the file is executed, and no more memory is used than its size (for the manifest, a small multiple). The
    seal detects accidental changes, not forgery: the loader must validate the content.

    Parameters
    ----------
    path : str or os.PathLike

    Returns
    -------
    kind : str
    manifest : dict
    arrays : dict of str to ndarray
        As written, in the order of their names; each in C order, with its own writable memory.

    Raises
    ------
    FileError
        If the file is not ours, damaged, or of a newer format.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(folder + "/model", "example", {"columns": ["height"]}, {"counts": np.array([3, 4])})
    ...     read(folder + "/model")
    ('example', {'columns': ['height']}, {'counts': array([3, 4])})
    """
    path = os.fspath(path)
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        start = file.read(local_size(MANIFEST))
        file.seek(max(size - len(SEAL) - DIGEST_SIZE, 0))
        seal = file.read(len(SEAL) + DIGEST_SIZE)
        if not seal.startswith(SEAL):
            if is_local(start, MANIFEST, manifest_size(start)):
                raise FileError.damaged(path, "its seal is missing; it was truncated, or data was appended")
            kind = "a zip archive without our seal" if start.startswith(b"PK\x03\x04") else "not a zip archive"
            raise FileError.not_ours(path, f"it is {kind}")
        file.seek(0)
        intake = SealedReader(file, size - DIGEST_SIZE, path)
        try:
            content = _read_content(intake)
        except (ValueError, RecursionError) as error:
            intake.check_seal(seal)  # a broken seal is the better explanation
            raise error if isinstance(error, FileError) else FileError.damaged(path, str(error)) from error
        intake.check_seal(seal)
        return content


def register(kind: str) -> Callable[[Loader], Loader]:
    """Return a decorator that registers a function as the loader of a kind of file.

    The loader makes an object of the manifest and the arrays.

    Parameters
    ----------
    kind : str
        As given to `write`.

    Returns
    -------
    callable
        A decorator that returns its function unchanged.

    Examples
    --------
    >>> @register("example")
    ... def load_example(manifest, arrays):
    ...     return dict(zip(manifest["columns"], arrays["counts"].tolist(), strict=True))
    """

    def keep(loader: Loader) -> Loader:
        known = _LOADERS.setdefault(kind, loader)
        if (known.__module__, known.__qualname__) != (loader.__module__, loader.__qualname__):  # unless reloaded
            raise ValueError(f"files of kind {kind!r} already have the loader {known.__module__}.{known.__qualname__}.")
        _LOADERS[kind] = loader
        return loader

    return keep


def load(path: FilePath) -> Any:
    """Read a sealed file and return the object made by the loader registered for its kind.

    A valid seal does not imply valid content, so FileError is also raised if the loader fails.

    Parameters
    ----------
    path : str or os.PathLike

    Returns
    -------
    object
        The loader's result.

    Raises
    ------
    FileError
        If `read` raises it, no loader is registered for its kind, or the loader fails on the content.

    Examples
    --------
    >>> import tempfile
    >>> @register("example")
    ... def load_example(manifest, arrays):
    ...     return dict(zip(manifest["columns"], arrays["counts"].tolist(), strict=True))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(folder + "/model", "example", {"columns": ["red", "blue"]}, {"counts": np.array([3, 4])})
    ...     load(folder + "/model")
    {'red': 3, 'blue': 4}
    """
    kind, manifest, arrays = read(path)
    if kind not in _LOADERS:
        raise FileError.unknown_kind(path, kind, sorted(_LOADERS))
    try:
        return _LOADERS[kind](manifest, arrays)
    except Exception as error:  # invalid content may raise anything
        reason = f"its content is invalid for {kind!r} ({type(error).__name__}: {error!s:.300})"
        raise FileError.damaged(path, reason) from error


def check_no_unknown_entries(what: str, rest: dict[str, Any]) -> None:
    """Raise FileError if entries of a file remain after the known ones were removed.

    Parameters
    ----------
    what : str
        Description, for the message.
    rest : dict
        Remaining entries of the manifest or of the arrays.
    """
    if rest:
        raise FileError(f"{what} has the unknown entries {_shown(sorted(rest))}; expected none besides the known ones.")


def pack_strings(strings: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Return strings packed into two arrays for a file.

    Parameters
    ----------
    strings : list of str

    Returns
    -------
    buffer : ndarray of uint8, shape (n_bytes,)
        The concatenated UTF-8 bytes.
    offsets : ndarray of int64, shape (n_strings + 1,)
        String ``i`` is ``buffer[offsets[i]:offsets[i + 1]]``.

    Raises
    ------
    DataError
        If one is not a string, or has a surrogate, which UTF-8 cannot encode.

    Examples
    --------
    >>> buffer, offsets = pack_strings(["red", "", "blå"])
    >>> offsets
    array([0, 3, 3, 7])
    >>> unpack_strings(buffer, offsets)
    ['red', '', 'blå']
    """
    encoded = []
    for index, string in enumerate(strings):
        if not isinstance(string, str):
            raise DataError.wrong_type(f"string {index}", _shown(string), "a str")
        try:
            encoded.append(string.encode())
        except UnicodeEncodeError as error:
            hint = "Replace what UTF-8 cannot encode: string.encode('utf-8', 'replace').decode()."
            raise DataError.wrong_type(f"string {index}", _shown(string), "text without surrogates", hint) from error
    offsets = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum([len(part) for part in encoded], out=offsets[1:])
    return np.frombuffer(bytearray().join(encoded), np.uint8), offsets


def unpack_strings(buffer: np.ndarray, offsets: np.ndarray) -> list[str]:
    """Return the strings packed by `pack_strings`.

    Parameters
    ----------
    buffer : ndarray of uint8, shape (n_bytes,)
    offsets : ndarray of int64, shape (n_strings + 1,)

    Returns
    -------
    list of str

    Raises
    ------
    FileError
        If the arrays are not the result of `pack_strings`.

    Examples
    --------
    >>> unpack_strings(*pack_strings(["one", "two"]))
    ['one', 'two']
    """
    raw = check_strings(buffer, offsets)
    return [raw[start:stop].decode() for start, stop in pairwise(offsets.tolist())]


def check_strings(buffer: np.ndarray, offsets: np.ndarray) -> bytes:
    """Return the bytes of packed strings; raise FileError if the arrays are not the result of `pack_strings`."""
    for name, array, dtype in (("buffer", buffer, np.uint8), ("offsets", offsets, np.int64)):
        if array.dtype != dtype or array.ndim != 1:
            raise FileError.bad_strings(f"the {name} has dtype {array.dtype} and {array.ndim} dimensions")
    if len(offsets) == 0 or offsets[0] != 0 or offsets[-1] != len(buffer) or (offsets[1:] < offsets[:-1]).any():
        raise FileError.bad_strings(f"the offsets do not go up from 0 to {len(buffer)}, the number of bytes")
    raw = buffer.tobytes()
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        raise FileError.bad_strings(f"they are not UTF-8 ({error.reason})") from error
    starts = offsets[offsets < len(buffer)]
    if len(starts) and (buffer[starts] & 0xC0 == 0x80).any():
        raise FileError.bad_strings("they are not UTF-8 (one begins within a character)")
    return raw


# ---- The manifest -----------------------------------------------------------------------------------------------


def _describe_content(kind: str, manifest: dict[str, Any], arrays: dict[str, np.ndarray]) -> tuple[bytes, Forms]:
    """Return the manifest's bytes and the arrays' forms in order; raise DataError for unsupported content."""
    if not _is_kind(kind):
        raise DataError.wrong_type("kind", _shown(kind), "a printable string of 1 to 200 characters")
    for name, array in arrays.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            expected = "1 to 255 of the characters A-Z a-z 0-9 _ . / -, without '..' and without a leading '/'"
            raise DataError.wrong_type("the name of an array", _shown(name), expected)
        if type(array) not in (np.ndarray, np.memmap):  # a masked array would lose its mask
            raise DataError.wrong_type(f"array {name!r}", f"a {type(array).__name__}", "a plain NumPy array")
        if array.dtype.kind not in "biuf" or little_endian(array.dtype) not in _DTYPES:
            dtype_text, expected = f"of dtype {array.dtype}", "bool, integers, float32 or float64"
            raise DataError.wrong_type(f"array {name!r}", dtype_text, expected, "Strings are stored with pack_strings.")
    forms = {name: (little_endian(arrays[name].dtype), arrays[name].shape) for name in sorted(arrays)}
    declared = {name: {"dtype": dtype, "shape": shape} for name, (dtype, shape) in forms.items()}
    document = {"format": FORMAT, "kind": kind, "created_by": f"tallybayes {__version__}", "arrays": declared}
    try:
        if not isinstance(manifest, dict) or not _has_string_keys(manifest):
            raise TypeError("only dicts with string keys")
        json_text = _json({**document, "manifest": manifest})
    except (TypeError, ValueError, RecursionError) as error:
        expected = "plain JSON: dicts with string keys, lists, strings, finite numbers, booleans, None"
        raise DataError.wrong_type("manifest", f"refused ({error})", expected) from error
    if len(json_text) > _MAX_MANIFEST or _cost(json_text) > _MAX_PARSED:
        hint = "Long lists of strings are stored as arrays, with pack_strings."
        dtype_text = f"{len(json_text)} bytes of JSON, {_cost(json_text)} when read"
        raise DataError.wrong_type("manifest", dtype_text, f"at most {_MAX_MANIFEST} and {_MAX_PARSED}", hint)
    return json_text, forms


def _is_kind(kind: object) -> bool:
    """Return whether a value is a valid kind."""
    return isinstance(kind, str) and 0 < len(kind) <= 200 and kind.isprintable()


def _has_string_keys(value: object) -> bool:
    """Return whether all keys are strings, since JSON silently converts others."""
    if isinstance(value, dict):
        return all(isinstance(key, str) and _has_string_keys(item) for key, item in value.items())
    return not isinstance(value, list | tuple) or all(map(_has_string_keys, value))


def _json(value: object) -> bytes:
    """Return the canonical JSON bytes of a value."""
    return json.dumps(value, sort_keys=True, allow_nan=False, separators=(",", ":")).encode("ascii")


def _cost(text: bytes) -> int:
    """Return an upper bound of the memory that parsing JSON takes."""
    return len(text) + sum(each * text.count(symbol) for symbol, each in _COSTS.items())


def _parse(text: bytes, path: FilePath) -> tuple[str, dict[str, Any], Forms]:
    """Return kind, manifest and array forms from the manifest's bytes; raise ValueError if invalid."""
    if _cost(text) > _MAX_PARSED:  # before allocating it
        raise ValueError(f"its manifest has more entries than save() writes ({_cost(text)} bytes when read)")
    try:
        document = json.loads(text.decode("ascii"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"its manifest is not plain JSON ({error})") from error
    version = document.get("format") if isinstance(document, dict) else None
    if type(version) is not int or version < 1:
        raise ValueError(f"its manifest has the format version {_shown(version)}")
    if version != FORMAT:
        raise FileError.other_version(path, version, FORMAT, document.get("created_by"))
    if set(document) != {"arrays", "created_by", "format", "kind", "manifest"}:
        raise ValueError(f"its manifest has the entries {_shown(sorted(document))}")
    if _json(document) != text:  # canonical: no repeated keys, no NaN, no 1e999
        raise ValueError("its manifest is not written as save() writes it")
    kind, manifest, arrays = document["kind"], document["manifest"], document["arrays"]
    if not _is_kind(kind) or not isinstance(manifest, dict) or not isinstance(arrays, dict):
        raise ValueError(f"its manifest has the kind {_shown(kind)}, or no content, or no arrays")
    for name, form in arrays.items():
        if not _NAME.fullmatch(name) or not _is_form(form):
            raise ValueError(f"its manifest declares the array {_shown(name)} as {_shown(form)}")
    return kind, manifest, {name: (form["dtype"], tuple(form["shape"])) for name, form in arrays.items()}


def _is_form(form: object) -> bool:
    """Return whether a value declares the dtype and shape of an array."""
    if not isinstance(form, dict) or set(form) != {"dtype", "shape"} or form["dtype"] not in _DTYPES:
        return False
    shape = form["shape"]
    return isinstance(shape, list) and len(shape) <= 64 and all(type(n) is int and 0 <= n < 2**63 for n in shape)


def _shown(value: object) -> str:
    """Return the repr of a value, truncated to 100 characters."""
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:97]}..."


# ---- The content ------------------------------------------------------------------------------------------------


def _read_content(intake: SealedReader) -> tuple[str, dict[str, Any], dict[str, np.ndarray]]:
    """Return kind, manifest and arrays; raise ValueError for unexpected bytes."""
    header = intake.take(local_size(MANIFEST))
    size = manifest_size(header)
    if size > min(intake.size, _MAX_MANIFEST) or not is_local(header, MANIFEST, size):
        raise ValueError(f"it begins with {describe_entry(header)} in place of {MANIFEST}, stored")
    text = intake.take(size)
    if zlib.crc32(text) != crc_of(header):
        raise ValueError(f"{MANIFEST} has another CRC-32 than its entry says")
    kind, manifest, forms = _parse(text, intake.path)
    members, crcs, arrays = list_members(text, forms), [crc_of(header)], {}
    if sealed_size(members) != intake.size:  # before allocating memory
        n_bytes, needed = intake.size + DIGEST_SIZE, sealed_size(members) + DIGEST_SIZE
        raise ValueError(f"it has {n_bytes} bytes, but the {len(forms)} arrays that it declares make {needed}")
    for name, member in zip(forms, members[1:], strict=True):
        header = intake.take(local_size(member.name))
        if not is_local(header, member.name, member.size):
            raise ValueError(
                f"it has {describe_entry(header)} in place of {member.name}, stored, of {member.size} bytes"
            )
        head = intake.take(len(member.head))
        if head != member.head:
            raise ValueError(f"{member.name} has the header {_shown(head[10:].strip())}, but declared is {forms[name]}")
        array = np.empty(member.shape, member.dtype)
        raw = array.reshape(-1).view(np.uint8)
        if intake.fill(raw.data, zlib.crc32(head)) != crc_of(header):
            raise ValueError(f"{member.name} has another CRC-32 than its entry says")
        if member.dtype == "|b1" and (raw > 1).any():  # as an index, such a bool would leave its table
            raise ValueError(f"{member.name} has booleans that are neither 0 nor 1")
        arrays[name] = array
        crcs.append(crc_of(header))
    ending = directory_record(members, crcs)
    if intake.take(len(ending)) != ending:
        raise ValueError("its zip directory does not list the declared arrays, each once and in order")
    return kind, manifest, arrays
