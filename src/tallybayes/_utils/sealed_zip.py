"""The bytes of a sealed file: a zip of stored entries, written and compared record by record, with a seal."""

from __future__ import annotations

import hashlib
import math
import os
import struct
import zlib
from io import BufferedReader, BufferedWriter
from typing import Any, NamedTuple

import numpy as np

from tallybayes.errors import FileError

FilePath = str | os.PathLike[str]
Forms = dict[str, tuple[str, tuple[int, ...]]]  # name -> dtype, shape

MANIFEST = "manifest.json"
SEAL, DIGEST_SIZE = b"tallybayes-sha256:", 64
_CHUNK = 2**20  # bytes, read and hashed while in the cache

# The records of a zip, see PKWARE's APPNOTE.TXT, 4.3. Always zip64: small and large files take one path.
_LOCAL, _LOCAL_EXTRA = struct.Struct("<4s5H3L2H"), struct.Struct("<2H2Q")
_CENTRAL, _CENTRAL_EXTRA = struct.Struct("<4s6H3L5H2L"), struct.Struct("<2H3Q")
_END = struct.Struct("<4sQ2H2L4Q 4sLQL 4s4H2LH")  # zip64 end, zip64 locator, end
_ZIP64, _STORED, _JANUARY_1980, _U16, _U32 = 45, 0, 0x21, 0xFFFF, 0xFFFFFFFF


def little_endian(dtype: np.dtype[Any]) -> str:
    """Return the name of a dtype in little-endian order."""
    return dtype.newbyteorder("<").str


class ZipEntry(NamedTuple):
    """One entry of the zip: a head (the .npy header, or the whole manifest), then the bytes of an array."""

    name: str
    head: bytes
    dtype: str = "|u1"
    shape: tuple[int, ...] = (0,)

    @property
    def size(self) -> int:
        """Return the number of bytes."""
        return len(self.head) + np.dtype(self.dtype).itemsize * math.prod(self.shape)


def list_members(manifest: bytes, forms: Forms) -> list[ZipEntry]:
    """Return all entries, in order."""
    arrays = [ZipEntry(f"{name}.npy", npy_header(*form), *form) for name, form in forms.items()]
    return [ZipEntry(MANIFEST, manifest), *arrays]


def npy_header(dtype: str, shape: tuple[int, ...]) -> bytes:
    """Return the header NumPy writes before an array."""
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".encode("ascii")
    text += b" " * (-(10 + len(text) + 1) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def local_record(name: str, size: int, crc: int) -> bytes:
    """Return the local file header of an entry."""
    fields = (_ZIP64, 0, _STORED, 0, _JANUARY_1980, crc, _U32, _U32, len(name), _LOCAL_EXTRA.size)
    extra = _LOCAL_EXTRA.pack(1, _LOCAL_EXTRA.size - 4, size, size)
    return _LOCAL.pack(b"PK\x03\x04", *fields) + name.encode("ascii") + extra


def local_size(name: str) -> int:
    """Return the size of the local file header of an entry."""
    return _LOCAL.size + len(name) + _LOCAL_EXTRA.size


def is_local(record: bytes, name: str, size: int) -> bool:
    """Return whether a record is the local file header of this entry, with any checksum."""
    return record == local_record(name, size, crc_of(record))


def crc_of(local: bytes) -> int:
    """Return the checksum in a local file header."""
    return int.from_bytes(local[14:18], "little")


def manifest_size(local: bytes) -> int:
    """Return the size of the manifest, from its local file header."""
    return int.from_bytes(local[-8:], "little")


def directory_record(members: list[ZipEntry], crcs: list[int]) -> bytes:
    """Return the central directory and the end records, up to the digest."""
    records, position, n = [], 0, len(members)
    for member, crc in zip(members, crcs, strict=True):
        fields = (crc, _U32, _U32, len(member.name), _CENTRAL_EXTRA.size, 0, 0, 0, 0, _U32)
        records.append(_CENTRAL.pack(b"PK\x01\x02", _ZIP64, _ZIP64, 0, _STORED, 0, _JANUARY_1980, *fields))
        records.append(member.name.encode("ascii"))
        records.append(_CENTRAL_EXTRA.pack(1, _CENTRAL_EXTRA.size - 4, member.size, member.size, position))
        position += local_size(member.name) + member.size
    directory = b"".join(records)
    end_64 = (b"PK\x06\x06", 44, _ZIP64, _ZIP64, 0, 0, n, n, len(directory), position)
    locator = (b"PK\x06\x07", 0, position + len(directory), 1)
    end = (b"PK\x05\x06", 0, 0, _U16, _U16, _U32, _U32, len(SEAL) + DIGEST_SIZE)
    return directory + _END.pack(*end_64, *locator, *end) + SEAL


def sealed_size(members: list[ZipEntry]) -> int:
    """Return the size of a file up to the digest, without packing sizes that may be absurd."""
    records = local_size("") + _CENTRAL.size + _CENTRAL_EXTRA.size
    return sum(records + 2 * len(member.name) + member.size for member in members) + _END.size + len(SEAL)


def raw_bytes(array: np.ndarray) -> memoryview:
    """Return the bytes of an array, little-endian and in C order, without copying if possible."""
    if array.dtype == bool:
        array = array.view(np.uint8) != 0  # views may contain bytes other than 0 and 1
    return array.astype(little_endian(array.dtype), order="C", copy=False).reshape(-1).view(np.uint8).data


def write_sealed(file: BufferedWriter, members: list[ZipEntry], arrays: dict[str, np.ndarray]) -> None:
    """Write all entries, the directory and the seal."""
    digest, crcs = hashlib.sha256(), []
    for member in members:
        raw = memoryview(b"") if member.name == MANIFEST else raw_bytes(arrays[member.name.removesuffix(".npy")])
        crcs.append(zlib.crc32(raw, zlib.crc32(member.head)))
        for part in (local_record(member.name, member.size, crcs[-1]), member.head, raw):
            digest.update(part)
            file.write(part)
    ending = directory_record(members, crcs)
    digest.update(ending)
    file.write(ending + digest.hexdigest().encode("ascii"))


class SealedReader:
    """The bytes of a file up to its digest, read in order and hashed."""

    def __init__(self, file: BufferedReader, size: int, path: FilePath) -> None:
        self.size, self.path = size, path
        self._file, self._left, self._digest = file, size, hashlib.sha256()

    def take(self, n: int) -> bytes:
        """Return the next `n` bytes, or the remaining ones."""
        raw = bytearray(min(n, self._left))
        self.fill(memoryview(raw))
        return bytes(raw)

    def fill(self, raw: memoryview, crc: int = 0) -> int:
        """Fill a buffer and return the CRC-32 that continues `crc`."""
        for start in range(0, len(raw), _CHUNK):
            chunk = raw[start : start + _CHUNK]
            if self._file.readinto(chunk) != len(chunk):
                raise FileError.damaged(self.path, "it became shorter while it was read")
            self._left -= len(chunk)
            self._digest.update(chunk)
            crc = zlib.crc32(chunk, crc)
        return crc

    def check_seal(self, seal: bytes) -> None:
        """Raise FileError unless the seal matches all bytes, including unread ones."""
        while self._left:
            self.take(_CHUNK)
        if seal != SEAL + self._digest.hexdigest().encode("ascii"):
            raise FileError.damaged(self.path, "its bytes are not those that were sealed (SHA-256 differs)") from None


def describe_entry(local: bytes) -> str:
    """Return a description of the bytes found in place of an entry."""
    if len(local) < _LOCAL.size or not local.startswith(b"PK\x03\x04"):
        return "no zip entry"
    _, _, flags, method, *_, length, _ = _LOCAL.unpack_from(local)
    what = "an encrypted" if flags & 1 else "a compressed" if method != _STORED else "another"
    return f"{what} zip entry, {local[_LOCAL.size :][:length].decode('latin-1')!r},"
