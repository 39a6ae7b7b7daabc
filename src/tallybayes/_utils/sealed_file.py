"""Sealed model files: named arrays and a JSON manifest in one zip that NumPy, too, can open.

`read` accepts exactly the bytes that `write` makes: how a file must look follows from its manifest, and every other
byte is compared with what it must be. So nothing is interpreted: no pickle, no ``eval``, no decompression, and no
memory is asked for before the declared sizes add up to the size of the file.

A file is a zip of stored (uncompressed) zip64 entries dated 1980: ``manifest.json``, then ``<name>.npy`` in the order
of the names, little-endian, in C order; its comment is the seal, a SHA-256 of every byte before it. Only files of the
one format version `FORMAT` are read. Every version keeps the first entry and the seal in their places, so that a reader
of another version can name both versions in its message.

The seal protects against accidents, not attackers: whoever writes a file can also compute its seal. A stranger's file
is harmless because reading it does nothing but fill arrays and parse JSON.
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
    Intake,
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
_MAX_PARSED = 2**29  # bytes of memory that parsing the manifest may take: up to some 25 times its size, if all is small
_COSTS = {b"{": 250, b"[": 100, b",": 60}  # at most so many bytes for every object, list and value


def write(path: FilePath, kind: str, manifest: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Write a sealed file: all of it or nothing. An existing file is replaced in one step, or stays as it was.

    The same content gives the same bytes, and ``np.load(path, allow_pickle=False)`` opens the arrays.

    Parameters
    ----------
    path : str or os.PathLike
        A new name, or a regular file, which is replaced and keeps its permissions. Of a symbolic link, what it points
        to is replaced and the link stays. Folders, pipes and devices are refused.
    kind : str
        What is in the file; `load` finds the loader registered for it.
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
    members = list_members(*_described(kind, manifest, arrays))
    with atomic_write(path) as file:
        write_sealed(file, members, arrays)


def read(path: FilePath) -> tuple[str, dict[str, Any], dict[str, np.ndarray]]:
    """Read a sealed file in one pass, refusing whatever `write` would not have written.

    Nothing in the file is executed, and no more memory is taken than it is long (for the manifest, a small multiple).
    The seal shows that no accident changed the bytes, not who wrote them: what the content means is the loader's to
    check.

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
                raise FileError.damaged(path, "its seal is missing; it was cut short, or something was appended")
            is_zip = start.startswith(b"PK\x03\x04")
            raise FileError.not_ours(path, "it is a zip archive without our seal" if is_zip else "it is no zip archive")
        file.seek(0)
        intake = Intake(file, size - DIGEST_SIZE, path)
        try:
            content = _read_content(intake)
        except (ValueError, RecursionError) as error:
            intake.check_seal(seal)  # a broken seal explains the rest
            raise error if isinstance(error, FileError) else FileError.damaged(path, str(error)) from error
        intake.check_seal(seal)
        return content


def register(kind: str) -> Callable[[Loader], Loader]:
    """Register, as a decorator, the function that makes an object of the manifest and the arrays of a kind of file.

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
    """Read a sealed file and make the object it describes, by the loader registered for its kind.

    A stranger can seal nonsense, so content that the loader cannot make sense of is refused as well.

    Parameters
    ----------
    path : str or os.PathLike

    Returns
    -------
    object
        What the loader returned.

    Raises
    ------
    FileError
        If `read` refuses the file, no loader is registered for its kind, or the loader fails on the content.

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
    except Exception as error:  # whatever nonsense leads to
        reason = f"its content makes no sense as {kind!r} ({type(error).__name__}: {error!s:.300})"
        raise FileError.damaged(path, reason) from error


def check_no_unknown_entries(what: str, rest: dict[str, Any]) -> None:
    """Refuse entries of a file that nobody has taken out: content that this version does not know.

    Parameters
    ----------
    what : str
        What messages call it.
    rest : dict
        Of the manifest, or of the arrays.
    """
    if rest:
        raise FileError(f"{what} has the unknown entries {_shown(sorted(rest))}; expected none besides the known ones.")


def pack_strings(strings: list[str]) -> tuple[np.ndarray, np.ndarray]:
    """Pack strings into two arrays that a file can hold.

    Parameters
    ----------
    strings : list of str

    Returns
    -------
    buffer : ndarray of uint8, shape (n_bytes,)
        Their UTF-8, end to end.
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
    """Unpack what `pack_strings` packed, perhaps after a trip through a file.

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
        If `pack_strings` cannot have made these arrays.

    Examples
    --------
    >>> unpack_strings(*pack_strings(["one", "two"]))
    ['one', 'two']
    """
    raw = check_strings(buffer, offsets)
    return [raw[start:stop].decode() for start, stop in pairwise(offsets.tolist())]


def check_strings(buffer: np.ndarray, offsets: np.ndarray) -> bytes:
    """Refuse arrays that `pack_strings` cannot have made; the bytes of those that it can."""
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


def _described(kind: str, manifest: dict[str, Any], arrays: dict[str, np.ndarray]) -> tuple[bytes, Forms]:
    """Return the manifest's bytes and the arrays' forms in order, or say what cannot be stored."""
    if not _is_kind(kind):
        raise DataError.wrong_type("kind", _shown(kind), "a printable string of 1 to 200 characters")
    for name, array in arrays.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            expected = "1 to 255 of the characters A-Z a-z 0-9 _ . / -, without '..' and without a leading '/'"
            raise DataError.wrong_type("the name of an array", _shown(name), expected)
        if type(array) not in (np.ndarray, np.memmap):  # a masked array would lose its mask
            raise DataError.wrong_type(f"array {name!r}", f"a {type(array).__name__}", "a plain NumPy array")
        if array.dtype.kind not in "biuf" or little_endian(array.dtype) not in _DTYPES:
            found, expected = f"of dtype {array.dtype}", "bool, integers, float32 or float64"
            raise DataError.wrong_type(f"array {name!r}", found, expected, "Strings are stored with pack_strings.")
    forms = {name: (little_endian(arrays[name].dtype), arrays[name].shape) for name in sorted(arrays)}
    declared = {name: {"dtype": dtype, "shape": shape} for name, (dtype, shape) in forms.items()}
    whole = {"format": FORMAT, "kind": kind, "created_by": f"tallybayes {__version__}", "arrays": declared}
    try:
        if not isinstance(manifest, dict) or not _has_string_keys(manifest):
            raise TypeError("only dicts with string keys")
        text = _json({**whole, "manifest": manifest})
    except (TypeError, ValueError, RecursionError) as error:
        expected = "plain JSON: dicts with string keys, lists, strings, finite numbers, booleans, None"
        raise DataError.wrong_type("manifest", f"refused ({error})", expected) from error
    if len(text) > _MAX_MANIFEST or _cost(text) > _MAX_PARSED:
        hint = "Long lists of strings are stored as arrays, with pack_strings."
        found = f"{len(text)} bytes of JSON, {_cost(text)} when read"
        raise DataError.wrong_type("manifest", found, f"at most {_MAX_MANIFEST} and {_MAX_PARSED}", hint)
    return text, forms


def _is_kind(kind: object) -> bool:
    return isinstance(kind, str) and 0 < len(kind) <= 200 and kind.isprintable()


def _has_string_keys(value: Any) -> bool:
    """Tell whether JSON would keep the keys as they are: it turns 1 into "1" without a word."""
    if isinstance(value, dict):
        return all(isinstance(key, str) and _has_string_keys(item) for key, item in value.items())
    return not isinstance(value, list | tuple) or all(map(_has_string_keys, value))


def _json(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, allow_nan=False, separators=(",", ":")).encode("ascii")


def _cost(text: bytes) -> int:
    """About the bytes of memory that JSON takes when it is parsed, at most."""
    return len(text) + sum(each * text.count(symbol) for symbol, each in _COSTS.items())


def _parse(text: bytes, path: FilePath) -> tuple[str, dict[str, Any], Forms]:
    if _cost(text) > _MAX_PARSED:  # before any of it is taken
        raise ValueError(f"its manifest has more entries than save() writes ({_cost(text)} bytes when read)")
    try:
        whole = json.loads(text.decode("ascii"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"its manifest is not plain JSON ({error})") from error
    found = whole.get("format") if isinstance(whole, dict) else None
    if type(found) is not int or found < 1:
        raise ValueError(f"its manifest has the format version {_shown(found)}")
    if found != FORMAT:
        raise FileError.other_version(path, found, FORMAT, whole.get("created_by"))
    if set(whole) != {"arrays", "created_by", "format", "kind", "manifest"}:
        raise ValueError(f"its manifest has the entries {_shown(sorted(whole))}")
    if _json(whole) != text:  # no repeated key, no NaN, no 1e999, no second way to write the same
        raise ValueError("its manifest is not written as save() writes it")
    kind, manifest, arrays = whole["kind"], whole["manifest"], whole["arrays"]
    if not _is_kind(kind) or not isinstance(manifest, dict) or not isinstance(arrays, dict):
        raise ValueError(f"its manifest has the kind {_shown(kind)}, or no content, or no arrays")
    for name, form in arrays.items():
        if not _NAME.fullmatch(name) or not _is_form(form):
            raise ValueError(f"its manifest declares the array {_shown(name)} as {_shown(form)}")
    return kind, manifest, {name: (form["dtype"], tuple(form["shape"])) for name, form in arrays.items()}


def _is_form(form: Any) -> bool:
    if not isinstance(form, dict) or set(form) != {"dtype", "shape"} or form["dtype"] not in _DTYPES:
        return False
    shape = form["shape"]
    return isinstance(shape, list) and len(shape) <= 64 and all(type(n) is int and 0 <= n < 2**63 for n in shape)


def _shown(value: object) -> str:
    """Show a value in a message; a stranger's may be long."""
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:97]}..."


# ---- The content ------------------------------------------------------------------------------------------------


def _read_content(intake: Intake) -> tuple[str, dict[str, Any], dict[str, np.ndarray]]:
    local = intake.take(local_size(MANIFEST))
    size = manifest_size(local)
    if size > min(intake.size, _MAX_MANIFEST) or not is_local(local, MANIFEST, size):
        raise ValueError(f"it begins with {describe_entry(local)} in place of {MANIFEST}, stored")
    text = intake.take(size)
    if zlib.crc32(text) != crc_of(local):
        raise ValueError(f"{MANIFEST} has another CRC-32 than its entry says")
    kind, manifest, forms = _parse(text, intake.path)
    members, crcs, arrays = list_members(text, forms), [crc_of(local)], {}
    if sealed_size(members) != intake.size:  # before any memory is taken
        found, needed = intake.size + DIGEST_SIZE, sealed_size(members) + DIGEST_SIZE
        raise ValueError(f"it has {found} bytes, but the {len(forms)} arrays that it declares make {needed}")
    for name, member in zip(forms, members[1:], strict=True):
        local = intake.take(local_size(member.name))
        if not is_local(local, member.name, member.size):
            raise ValueError(
                f"it has {describe_entry(local)} in place of {member.name}, stored, of {member.size} bytes"
            )
        head = intake.take(len(member.head))
        if head != member.head:
            raise ValueError(f"{member.name} has the header {_shown(head[10:].strip())}, but declared is {forms[name]}")
        array = np.empty(member.shape, member.dtype)
        raw = array.reshape(-1).view(np.uint8)
        if intake.fill(raw.data, zlib.crc32(head)) != crc_of(local):
            raise ValueError(f"{member.name} has another CRC-32 than its entry says")
        if member.dtype == "|b1" and (raw > 1).any():  # as an index, such a bool would leave its table
            raise ValueError(f"{member.name} has booleans that are neither 0 nor 1")
        arrays[name] = array
        crcs.append(crc_of(local))
    ending = directory_record(members, crcs)
    if intake.take(len(ending)) != ending:
        raise ValueError("its zip directory does not list the declared arrays, each once and in order")
    return kind, manifest, arrays
