"""Sealed files: what goes in comes out, and nothing else gets in."""

import hashlib
import io
import json
import os
import pickle
import shutil
import stat
import struct
import subprocess
import sys
import tracemalloc
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tallybayes._utils import sealed_file, sealed_zip
from tallybayes.errors import DataError, FileError
from tests.examples import examples

SEAL = b"tallybayes-sha256:"
ARRAYS = {
    "counts": np.arange(6, dtype=np.int64).reshape(2, 3),
    "flags": np.array([True, False]),
    "given/mean": np.array(0.5),
}
MANIFEST = {"columns": ["größe", "weight"], "prior": {"alpha": 0.1, "type": None}}


def seal(content: bytes) -> bytes:
    """Any bytes, with a seal that holds."""
    return content + SEAL + hashlib.sha256(content + SEAL).hexdigest().encode()


def reseal(content: bytes) -> bytes:
    """The bytes of a changed file of ours, with a seal that holds."""
    return seal(content[: -len(SEAL) - 64])


def seal_zip(content: bytes) -> bytes:
    """Any zip archive, the seal as its comment."""
    end = content.rfind(b"PK\x05\x06")
    return seal(content[: end + 20] + struct.pack("<H", len(SEAL) + 64))


def forge(text: bytes, entries: list[tuple[str, bytes]]) -> bytes:
    """A sealed file in our layout, with any manifest and any entries."""
    members = [
        sealed_zip.ZipEntry("manifest.json", text),
        *(sealed_zip.ZipEntry(name, content) for name, content in entries),
    ]
    crcs = [zlib.crc32(member.head) for member in members]
    locals_ = [
        sealed_zip.local_record(member.name, member.size, crc) for member, crc in zip(members, crcs, strict=True)
    ]
    entries_ = b"".join(local + member.head for local, member in zip(locals_, members, strict=True))
    return seal((entries_ + sealed_zip.directory_record(members, crcs)).removesuffix(SEAL))


def manifest_of(**changes: object) -> bytes:
    whole = {"format": sealed_file.FORMAT, "kind": "test", "created_by": "a stranger", "manifest": {}, "arrays": {}}
    return json.dumps({**whole, **changes}, sort_keys=True, separators=(",", ":")).encode()


def npy(array: np.ndarray, *, dtype: str | None = None, shape: object = None, fortran: bool = False) -> bytes:
    """Our form of a .npy file, perhaps with a header that lies."""
    header = sealed_zip.npy_header(dtype or array.dtype.str, array.shape if shape is None else shape)
    return header.replace(b"False", b"True ") + array.tobytes() if fortran else header + array.tobytes()


def forge_one(dtype: object, shape: object, content: bytes) -> bytes:
    return forge(manifest_of(arrays={"a": {"dtype": dtype, "shape": shape}}), [("a.npy", content)])


def saved(path: Path) -> bytes:
    sealed_file.write(path, "test", MANIFEST, ARRAYS)
    return path.read_bytes()


def refusal(path: Path, content: bytes) -> str:
    path.touch()
    with path.open("r+b") as file:  # emptying a file first makes ext4 write to the disk: minutes, on a busy one
        file.write(content)
        file.truncate()
    try:
        sealed_file.read(path)
    except FileError as error:
        message = str(error)
    else:
        pytest.fail("the file was not refused")
    assert str(path) in message
    assert len(message) < 500 + len(str(path))
    return message


def assert_same(found: dict[str, np.ndarray], expected: dict[str, np.ndarray]) -> None:
    assert list(found) == sorted(expected)
    for name, array in expected.items():
        assert found[name].shape == array.shape
        assert found[name].dtype == array.dtype.newbyteorder("<")
        assert found[name].tobytes() == array.astype(array.dtype.newbyteorder("<")).tobytes()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.tally"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("store")


# ---- What goes in comes out -------------------------------------------------------------------------------------

names = st.from_regex(r"[A-Za-z0-9_/.-]{1,12}", fullmatch=True).filter(
    lambda name: ".." not in name and name[0] != "/" and not name.endswith(".npy") and name != "manifest.json"
)
dtypes = st.one_of(
    hnp.boolean_dtypes(),
    hnp.integer_dtypes(endianness="?"),
    hnp.unsigned_integer_dtypes(endianness="?"),
    hnp.floating_dtypes(endianness="?", sizes=(32, 64)),
)
layouts = st.sampled_from(
    [
        lambda array: array,
        lambda array: np.asfortranarray(array) if array.ndim else array,
        lambda array: array.T,
        lambda array: array[..., ::-2] if array.ndim else array,
        lambda array: np.broadcast_to(array, (2, *array.shape)),
    ]
)
shapes = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)
any_array = st.builds(lambda array, layout: layout(array), hnp.arrays(dtypes, shapes), layouts)
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)


@pytest.mark.slow
@examples(150)
@given(st.dictionaries(names, any_array, max_size=4), st.dictionaries(st.text(), plain, max_size=4))
def test_round_trip(folder, arrays, manifest):
    path = folder / "round_trip"
    sealed_file.write(path, "any kind", manifest, arrays)
    kind, manifest_back, arrays_back = sealed_file.read(path)
    assert kind == "any kind"
    assert manifest_back == manifest
    assert_same(arrays_back, arrays)
    for array in arrays_back.values():
        assert array.flags.c_contiguous
        assert array.flags.aligned
        assert array.flags.writeable
        assert array.flags.owndata
    with np.load(path, allow_pickle=False) as archive:
        assert_same({name: archive[name] for name in sorted(arrays)}, arrays)
        assert json.loads(archive["manifest.json"])["manifest"] == manifest


@pytest.mark.parametrize("accepted", [str, os.fsencode, Path])
def test_any_path(path, accepted):
    saved(path)
    if accepted is not os.fsencode:
        assert sealed_file.read(accepted(path))[1] == MANIFEST
    sealed_file.write(accepted(path), "test", {}, {})
    assert sealed_file.read(path) == ("test", {}, {})


def test_large_arrays_are_read_in_chunks(path):
    arrays = {"a": np.arange(400_001, dtype=">f8"), "b": np.arange(3_000_001, dtype=np.uint8)}
    sealed_file.write(path, "test", {}, arrays)
    assert_same(sealed_file.read(path)[2], arrays)


def test_memmap_and_odd_booleans(path, tmp_path):
    stored = np.memmap(tmp_path / "raw", np.float32, "w+", shape=(3,))
    booleans = np.array([0, 1, 2, 255], np.uint8).view(bool)
    sealed_file.write(path, "test", {}, {"a": stored, "b": booleans})
    arrays = sealed_file.read(path)[2]
    assert arrays["a"].tolist() == [0, 0, 0]
    assert arrays["b"].view(np.uint8).tolist() == [0, 1, 1, 1]


@pytest.mark.slow
def test_many_arrays(path):
    arrays = {str(index): np.array(index) for index in range(66_000)}  # more than 16 bits can number
    sealed_file.write(path, "test", {}, arrays)
    assert len(sealed_file.read(path)[2]) == 66_000
    with zipfile.ZipFile(path) as archive:
        assert len(archive.namelist()) == 66_001


def test_same_content_same_bytes(path):
    first = saved(path)
    sealed_file.write(path, "test", dict(reversed(MANIFEST.items())), dict(reversed(ARRAYS.items())))
    assert path.read_bytes() == first


def test_the_bytes_of_a_format_version_never_change(path, monkeypatch):
    """Since only the very bytes of `write` are read, another Python, NumPy or release must write the same."""
    monkeypatch.setattr(sealed_file, "__version__", "1.2.3")
    content = saved(path)
    assert hashlib.sha256(content).hexdigest() == "6482661f53df01734be131ef7b7bc401f9260e602940246866063650e9da0bd0"


def test_other_programs_can_read_it(path):
    content = saved(path)
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["manifest.json", "counts.npy", "flags.npy", "given/mean.npy"]
        assert archive.comment == content[-82:]
        whole = json.loads(archive.read("manifest.json"))
    assert whole["format"] == sealed_file.FORMAT
    assert whole["kind"] == "test"
    assert whole["created_by"].startswith("tallybayes ")
    assert whole["arrays"]["counts"] == {"dtype": "<i8", "shape": [2, 3]}
    with zipfile.ZipFile(path) as archive:
        for name in ARRAYS:
            np.testing.assert_array_equal(np.lib.format.read_array(archive.open(f"{name}.npy")), ARRAYS[name])
    if shutil.which("unzip"):
        assert subprocess.run(["unzip", "-tqq", path], check=False, capture_output=True).returncode == 0


# ---- All or nothing ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("owner", "name"), [(os, "fsync"), (os, "replace"), (sealed_zip, "directory_record"), (sealed_zip, "raw_bytes")]
)
@pytest.mark.parametrize("failure", [OSError, KeyboardInterrupt, MemoryError])
@pytest.mark.parametrize("existing", [True, False])
def test_failure_changes_nothing(path, monkeypatch, owner, name, failure, existing):
    before = saved(path) if existing else None

    def fail(*_):
        raise failure

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, fail)
        with pytest.raises(failure):
            sealed_file.write(path, "test", {"new": True}, ARRAYS)
    assert list(path.parent.iterdir()) == ([path] if existing else [])
    assert not existing or path.read_bytes() == before


def test_full_disk_changes_nothing(path):
    resource = pytest.importorskip("resource")
    signal = pytest.importorskip("signal")
    before = saved(path)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
        with pytest.raises(OSError, match="large"):
            sealed_file.write(path, "test", {}, {"a": np.zeros(100_000)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX permissions and links")
def test_permissions_and_links_stay(path, tmp_path):
    previous = os.umask(0o027)
    try:
        saved(path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        path.chmod(0o600)
        link = tmp_path / "link"
        link.symlink_to(path)
        sealed_file.write(link, "test", {"new": True}, {})
    finally:
        os.umask(previous)
    assert link.is_symlink()
    assert sealed_file.read(path)[1] == {"new": True}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_operating_system_errors_stay_themselves(tmp_path):
    with pytest.raises(FileNotFoundError):
        sealed_file.read(tmp_path / "missing")
    with pytest.raises(OSError, match="folder" if sys.platform == "win32" else "directory"):
        sealed_file.read(tmp_path)
    with pytest.raises(FileNotFoundError, match="missing"):
        sealed_file.write(tmp_path / "missing" / "model", "test", {}, {})
    with pytest.raises(OSError, match=tmp_path.name):
        sealed_file.write(tmp_path, "test", {}, {})
    with pytest.raises(TypeError):
        sealed_file.read(0)
    assert list(tmp_path.iterdir()) == []


# ---- What cannot be written -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "array",
    [
        np.array([None]),
        np.array(["text"]),
        np.array([b"text"]),
        np.array(["text"], np.dtypes.StringDType()),
        np.zeros(2, "V8"),
        np.zeros(2, [("a", "f8")]),
        np.zeros(2, "M8[s]"),
        np.zeros(2, "m8[s]"),
        np.zeros(2, complex),
        np.zeros(2, np.float16),
        np.zeros(2, np.longdouble),
        np.ma.array([1, 2], mask=[True, False]),
        np.float64(1),
        [1, 2],
        None,
    ],
    ids=lambda array: f"{type(array).__name__} {getattr(array, 'dtype', '')}",
)
def test_arrays_that_cannot_be_stored(path, array):
    if type(array) is np.ndarray and array.dtype == np.float64:
        pytest.skip("long double is double here")
    with pytest.raises(DataError, match="array 'weight' is"):
        sealed_file.write(path, "test", {}, {"weight": array})
    assert not path.exists()


@pytest.mark.parametrize("name", ["", "/a", "a/../b", "..", "a b", "ä", "a\\b", "a\n", "a\0", "x" * 256, 1, None])
def test_names_that_cannot_be_stored(path, name):
    with pytest.raises(DataError, match="name of an array"):
        sealed_file.write(path, "test", {}, {name: np.zeros(1)})


@pytest.mark.parametrize("kind", ["", "a\nb", "x" * 201, 1, None])
def test_kinds_that_cannot_be_stored(path, kind):
    with pytest.raises(DataError, match="kind is"):
        sealed_file.write(path, kind, {}, {})


circular: dict[str, object] = {}
circular["self"] = circular
deep: list[object] = []
for _ in range(100_000):
    deep = [deep]


@pytest.mark.parametrize(
    "manifest",
    [
        {"a": float("nan")},
        {"a": float("inf")},
        {1: "a"},
        {"a": [{None: 1}]},
        {"a": {1, 2}},
        {"a": b"bytes"},
        {"a": np.int64(1)},
        {"a": 10**5000},
        circular,
        {"a": deep},
        [],
        None,
        {"a": "x" * 2**26},
    ],
    ids=lambda manifest: str(type(manifest)),
)
def test_manifests_that_cannot_be_stored(path, manifest):
    with pytest.raises(DataError, match="manifest is"):
        sealed_file.write(path, "test", manifest, {})
    assert not path.exists()


# ---- What is refused: accidents ---------------------------------------------------------------------------------


@pytest.mark.slow
def test_flipped_bits_are_refused(path):
    content = bytearray(saved(path))
    for bit in range(0, 8 * len(content), 3):  # over 3,000, in every byte
        content[bit // 8] ^= 1 << bit % 8
        refusal(path, content)
        content[bit // 8] ^= 1 << bit % 8


@pytest.mark.slow
def test_flipped_bits_are_refused_even_if_sealed_again(path):
    content = bytearray(saved(path))
    for bit in range(0, 8 * (len(content) - len(SEAL) - 64), 3):
        content[bit // 8] ^= 1 << bit % 8
        refusal(path, reseal(bytes(content)))
        content[bit // 8] ^= 1 << bit % 8


def test_every_truncation_and_addition_is_refused(path):
    content = saved(path)
    for size in range(len(content)):
        message = refusal(path, content[:size])
        assert "damaged" in message or size < 63
    for more in (b"\0", b"\n", content[-1:], content[-82:], content):
        refusal(path, content + more)
        refusal(path, more + content)
        refusal(path, reseal(more + content))


def test_blocks_lost_or_swapped_are_refused(path):
    content = saved(path)
    random = np.random.default_rng(0)
    for _ in range(300):
        start, stop = sorted(random.integers(0, len(content) + 1, 2))
        if start < stop and any(content[start:stop]):
            refusal(path, content[:start] + bytes(stop - start) + content[stop:])
            refusal(path, content[:start] + content[stop:])


def test_messages_say_what_was_found(path, tmp_path):
    content = saved(path)
    assert "is not a Tallybayes file: it is not a zip archive" in refusal(path, b"")
    assert "is not a Tallybayes file: it is not a zip archive" in refusal(path, b"\x93NUMPY" + bytes(100))
    np.savez(tmp_path / "foreign.npz", a=np.zeros(3))
    foreign = (tmp_path / "foreign.npz").read_bytes()
    assert "is not a Tallybayes file: it is a zip archive without our seal" in refusal(path, foreign)
    assert "it begins with another zip entry, 'a.npy', in place of manifest.json" in refusal(path, seal_zip(foreign))
    assert "damaged: its seal is missing" in refusal(path, content[:-1])
    assert "damaged: its seal is missing" in refusal(path, content + b"\n")
    assert "SHA-256 differs" in refusal(path, content.replace(b'"format":2', b'"format":3'))
    assert "SHA-256 differs" in refusal(path, content[:-82] + SEAL + b"0" * 64)
    assert "SHA-256 differs" in refusal(path, content[:-64] + content[-64:].upper())


@pytest.mark.parametrize("version", [sealed_file.FORMAT - 1, sealed_file.FORMAT + 1])
def test_another_format_version_is_refused(tmp_path, version):
    path = tmp_path / "model"
    forged = manifest_of(format=version, created_by="tallybayes 0.9")
    assert refusal(path, forge(forged, [])).endswith(
        f"has format version {version}, written by tallybayes 0.9; this version of Tallybayes reads format version "
        f"{sealed_file.FORMAT} only.\n    Fit the model again and save it, or load the file with tallybayes 0.9."
    )
    for other in ({}, {"created_by": 3}, {"created_by": "x" * 61}, {"created_by": "\x1b[31m"}):  # nothing to be quoted
        message = refusal(path, forge(json.dumps({"format": version, **other}).encode(), []))
        assert f"has format version {version}; this" in message
        assert message.endswith("load the file with the version that wrote it.")


# ---- What is refused: strangers, who can compute the seal -------------------------------------------------------


def test_forgery_itself_works(path):
    """The helper's files are read when nothing is wrong with them, so the tests below test what they say."""
    path.write_bytes(forge_one("<f8", [2], npy(np.array([1.0, 2.0]))))
    assert sealed_file.read(path)[2]["a"].tolist() == [1, 2]
    content = saved(path)
    assert reseal(content) == content


class Evil:
    def __reduce__(self):
        return os.system, ("echo pwned > pwned",)


@pytest.mark.parametrize(
    ("dtype", "shape", "content"),
    [
        ("<f8", [2], npy(np.zeros(2), shape=(1, 2))),
        ("<f8", [2], npy(np.zeros(2), dtype="<i8")),
        ("<f8", [2], npy(np.zeros(2), dtype=">f8")),
        ("<f8", [2], npy(np.zeros(3))),
        ("<f8", [2], npy(np.zeros(1))),
        ("<f8", [2], npy(np.zeros(0))),
        ("<f8", [2], b""),
        ("<f8", [2, 2], npy(np.zeros((2, 2)), fortran=True)),
        ("<f8", [2], npy(np.zeros(2)).replace(b"\x01\x00", b"\x02\x00", 1)),
        ("<f8", [2], npy(np.zeros(2)).replace(b"{", b"(", 1)),
        ("|O", [1], npy(np.zeros(1), dtype="|O")),
        ("|O", [1], npy(np.zeros(0), dtype="|O", shape=(1,)) + pickle.dumps(Evil())),
        ("<U8", [2], npy(np.zeros(2, "<U8"))),
        ("|V8", [2], npy(np.zeros(2, "|V8"))),
        (">f8", [2], npy(np.zeros(2, ">f8"))),
        ("f8", [2], npy(np.zeros(2), dtype="f8")),
        ([["a", "<f8"]], [2], npy(np.zeros(2))),
        (None, [2], npy(np.zeros(2))),
        ("|b1", [2], npy(np.array([0, 2], np.uint8), dtype="|b1")),
        ("<f8", [-2], npy(np.zeros(2), shape=(-2,))),
        ("<f8", [-1, -2], npy(np.zeros(2), shape=(-1, -2))),
        ("<f8", [2.0], npy(np.zeros(2), shape=(2.0,))),
        ("<f8", [True], npy(np.zeros(1), shape=(True,))),
        ("<f8", 2, npy(np.zeros(2), shape=(2,))),
        ("<f8", None, npy(np.zeros(2))),
        ("<f8", ["2"], npy(np.zeros(2))),
        ("<f8", [1] * 65, npy(np.zeros(1), shape=(1,) * 65)),
        ("<f8", [0, 2**62, 2**62], npy(np.zeros(0), shape=(0, 2**62, 2**62))),
        ("<f8", [0, 2**63], npy(np.zeros(0), shape=(0, 2**63))),
        ("<f8", [2**40], npy(np.zeros(2), shape=(2**40,))),
        ("<f8", [2**61, 2**61], npy(np.zeros(2), shape=(2**61, 2**61))),
        ("<f8", [10**30], npy(np.zeros(2), shape=(10**30,))),
    ],
)
def test_lying_arrays(path, dtype, shape, content, monkeypatch):
    monkeypatch.chdir(path.parent)
    refusal(path, forge_one(dtype, shape, content))
    assert not Path("pwned").exists()


def test_pickles_are_never_opened(path, monkeypatch):
    for module, name in ((pickle, "loads"), (pickle, "load"), (np.lib.format, "read_array")):
        monkeypatch.setattr(module, name, None)
    saved(path)
    sealed_file.read(path)


@pytest.mark.parametrize("name", ["../a", "/a", "a b", "", "a\n", "\ud800", "x" * 256])
def test_lying_names(path, name):
    text = manifest_of(arrays={name: {"dtype": "<f8", "shape": [2]}})
    entry = name.encode("ascii", "replace").decode()
    assert "declares the array" in refusal(path, forge(text, [(f"{entry}.npy", npy(np.zeros(2)))]))


A = {"dtype": "<f8", "shape": [1]}
DATA = npy(np.zeros(1))


@pytest.mark.parametrize(
    ("arrays", "entries"),
    [
        ({"a": A}, []),
        ({}, [("a.npy", DATA)]),
        ({"a": A}, [("b.npy", DATA)]),
        ({"a": A}, [("a.npz", DATA)]),
        ({"a": A}, [("a.npy", DATA), ("a.npy", DATA)]),
        ({"a": A}, [("a.npy", DATA), ("b.npy", DATA)]),
        ({"a": A, "b": A}, [("a.npy", DATA)]),
        ({"a": A, "b": A}, [("a.npy", DATA), ("a.npy", DATA)]),
        ({"a": A, "b": A}, [("b.npy", DATA), ("a.npy", DATA)]),
        ({"a": A}, [("manifest.json", DATA)]),
    ],
)
def test_members_that_are_not_those_declared(path, arrays, entries):
    refusal(path, forge(manifest_of(arrays=arrays), entries))


def nested(depth: int) -> bytes:
    return manifest_of(manifest={"a": "HERE"}).replace(b'"HERE"', b"[" * depth + b"]" * depth)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b"\xff\xfe",
        b"not JSON",
        manifest_of().decode().encode("utf-16"),
        b"\xef\xbb\xbf" + manifest_of(),
        manifest_of() + b" ",
        b" " + manifest_of(),
        manifest_of().replace(b'{"arrays"', b'{"arrays":{},"arrays"'),
        manifest_of(manifest={"a": float("nan")}),
        manifest_of(manifest={"a": float("inf")}),
        manifest_of(manifest={"a": 0.5}).replace(b"0.5", b"1e999"),
        manifest_of(manifest={"a": 0.5}).replace(b"0.5", b"9" * 5000),
        manifest_of(manifest={"a": 0.5}).replace(b"0.5", b"0.50"),
        manifest_of(manifest=[]),
        manifest_of(arrays=[]),
        manifest_of(arrays={"a": None}),
        manifest_of(arrays={"a": {"dtype": "<f8"}}),
        manifest_of(arrays={"a": {"dtype": "<f8", "shape": [1], "order": "F"}}),
        manifest_of(kind=None),
        manifest_of(kind=""),
        manifest_of(kind="x" * 1_000_000),
        manifest_of(extra=1),
        manifest_of(format=0),
        manifest_of(format=-1),
        manifest_of(format=True),
        manifest_of(format=1.0),
        manifest_of(format="1"),
        manifest_of(format=None),
        manifest_of(format=1),
        manifest_of(format=3),
        manifest_of(format=10**30),
        nested(100_000),
        b"[" * 1_000_000,
        b'{"a":' * 1_000_000,
    ],
    ids=lambda text: repr(text[:60]),
)
def test_lying_manifests(path, text):
    message = refusal(path, forge(text, []))
    assert ("version 2;" in message or f"version {10**30};" in message) == ("reads up to" in message)


def test_deep_nesting_is_read_or_refused(path):
    for depth in range(5, 1100, 5):
        path.write_bytes(forge(nested(depth), []))
        try:
            value = sealed_file.read(path)[1]["a"]
        except FileError:
            assert depth > 100
            continue
        for _ in range(depth - 1):
            (value,) = value
        assert value == []


def zipped(compression: int = zipfile.ZIP_STORED, content: bytes = DATA) -> bytes:
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", compression) as archive:
        archive.writestr("manifest.json", manifest_of(arrays={"a": A}))
        archive.writestr("a.npy", content)
    return memory.getvalue()


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_zips_by_other_programs(path, compression):
    message = refusal(path, seal_zip(zipped(compression)))
    assert ("a compressed zip entry" if compression else "another zip entry") in message


def test_compressed_and_encrypted_entries(path):
    content = saved(path)
    entry = content.index(b"PK\x03\x04", 1)
    for offset, value, expected in (
        (6, 1, "an encrypted"),
        (8, 8, "a compressed"),
        (6, 8, "another"),
        (4, 20, "another"),
    ):
        changed = bytearray(content)
        changed[entry + offset] = value
        assert f"it has {expected} zip entry, 'counts.npy', in place of counts.npy" in refusal(path, reseal(changed))


def test_bombs(path):
    refusal(path, seal_zip(zipped(zipfile.ZIP_DEFLATED, bytes(50_000_000))))


def test_a_manifest_longer_than_allowed(path):
    with path.open("wb") as file:  # sparse: 64 MiB that take no room
        file.write(sealed_zip.local_record("manifest.json", 2**26 + 1, 0))
        file.truncate(2**26 + 2000)
    digest = hashlib.sha256(path.read_bytes() + SEAL).hexdigest().encode()
    with path.open("ab") as file:
        file.write(SEAL + digest)
    with pytest.raises(FileError, match="begins with another zip entry"):
        sealed_file.read(path)


@pytest.mark.parametrize("shape", [[10**13], [2**30], [0, 2**40], [2**20, 2**20]])
def test_no_memory_for_lies(path, shape):
    path.write_bytes(forge_one("|u1", shape, npy(np.zeros(0), dtype="|u1", shape=tuple(shape))))
    tracemalloc.start()
    try:
        if 0 in shape:
            assert sealed_file.read(path)[2]["a"].shape == tuple(shape)
        else:
            with pytest.raises(FileError, match="declares make"):
                sealed_file.read(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 200_000


def test_memory_is_about_the_size_of_the_file(path):
    sealed_file.write(path, "test", {}, {"a": np.zeros(2_000_000), "b": np.zeros(1_000_000, bool)})
    tracemalloc.start()
    try:
        sealed_file.read(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1.1 * path.stat().st_size + 2**21


def test_a_file_that_shrinks_while_it_is_read(path, monkeypatch):
    sealed_file.write(path, "test", {}, {"a": np.zeros(1_000_000)})
    parse = sealed_file._parse

    def shrink(text, where):
        os.truncate(path, 100_000)
        return parse(text, where)

    monkeypatch.setattr(sealed_file, "_parse", shrink)
    with pytest.raises(FileError, match="became shorter"):
        sealed_file.read(path)


# ---- What is refused: anything ----------------------------------------------------------------------------------


def test_garbage(path):
    random = np.random.default_rng(1)
    start = sealed_zip.local_record("manifest.json", 100, 0)
    for size in [*range(200), *random.integers(200, 5000, 300)]:
        noise = random.bytes(size)
        for content in (noise, b"PK\x03\x04" + noise, seal(noise), seal(start + noise), seal(b"PK\x03\x04" + noise)):
            refusal(path, content)


@pytest.mark.slow
def test_mutated_files(path):
    """Bytes changed, dropped, inserted, copied, sealed again or not: refused, or the very same file."""
    random = np.random.default_rng(2)
    original, other = saved(path), forge_one("<f8", [1], DATA)
    for round_ in range(2000):
        content = bytearray(original)
        for _ in range(random.integers(1, 4)):
            start, stop = sorted(random.integers(0, len(content), 2))
            source = (content, other, random.bytes(32), bytes(8), b"\xff" * 8)[random.integers(5)]
            at = random.integers(0, len(source))
            content[start : (start, stop, start + 1, start + 8)[random.integers(4)]] = source[
                at : at + random.integers(40)
            ]
        content = reseal(bytes(content)) if round_ % 2 else bytes(content)
        if content != original:
            refusal(path, content)


@pytest.mark.slow
@examples(300)
@given(
    plain
    | st.fixed_dictionaries(
        {"format": st.just(sealed_file.FORMAT)}, optional={"kind": plain, "manifest": plain, "arrays": plain}
    )
)
def test_any_json(folder, whole):
    refusal(folder / "any_json", forge(json.dumps(whole, sort_keys=True, separators=(",", ":")).encode(), []))


@pytest.mark.slow
@examples(300)
@given(
    plain | st.sampled_from(["<f8", "|b1"]), plain | st.lists(st.integers(-1, 3), max_size=3), st.binary(max_size=40)
)
def test_any_declaration(folder, dtype, shape, data):
    """Whatever a sealed file declares, it is refused or it is what it declares."""
    path = folder / "any_declaration"
    path.write_bytes(forge_one(dtype, shape, sealed_zip.npy_header("<f8", (len(data) // 8,)) + data))
    try:
        arrays = sealed_file.read(path)[2]
    except FileError:
        return
    assert arrays["a"].dtype == np.dtype(dtype)
    assert list(arrays["a"].shape) == shape
    assert arrays["a"].tobytes() == data


# ---- Loaders ----------------------------------------------------------------------------------------------------


@pytest.fixture
def loaders(monkeypatch):
    known = {}
    monkeypatch.setattr(sealed_file, "_LOADERS", known)
    return known


def test_load(path, loaders):
    @sealed_file.register("test")
    def loader(manifest, arrays):
        return manifest["columns"], arrays["counts"].sum()

    saved(path)
    assert sealed_file.load(path) == (["größe", "weight"], 15)
    assert sealed_file.register("test")(loader) is loader


def test_one_loader_for_a_kind(loaders):
    sealed_file.register("test")(len)
    with pytest.raises(ValueError, match=r"'test' already have the loader builtins\.len"):
        sealed_file.register("test")(max)
    assert loaders == {"test": len}


def test_unknown_kind(path, loaders):
    saved(path)
    with pytest.raises(FileError, match=r"holds 'test'.*known: none"):
        sealed_file.load(path)
    sealed_file.register("other")(max)
    with pytest.raises(FileError, match=r"model\.tally holds 'test'.*known: 'other'"):
        sealed_file.load(path)


@pytest.mark.parametrize(
    "loader",
    [
        lambda manifest, arrays: manifest["missing"],
        lambda manifest, arrays: manifest + 1,
        lambda manifest, arrays: manifest["columns"][5],
        lambda manifest, arrays: manifest["columns"].items(),
        lambda manifest, arrays: int(manifest["columns"][0]),
        lambda manifest, arrays: np.zeros(2**70),
        lambda manifest, arrays: np.zeros(-1),
        lambda manifest, arrays: arrays["counts"].reshape(5),
        lambda manifest, arrays: arrays["counts"].sum(axis=5),
        lambda manifest, arrays: 1 / 0,
        lambda manifest, arrays: sealed_file.unpack_strings(arrays["counts"], arrays["counts"]),
    ],
)
def test_nonsense_is_refused(path, loaders, loader):
    sealed_file.register("test")(loader)
    saved(path)
    with pytest.raises(FileError, match=r"model\.tally is damaged: its content is invalid for 'test'") as caught:
        sealed_file.load(path)
    assert caught.value.__cause__ is not None
    assert type(caught.value.__cause__).__name__ in str(caught.value)


def test_load_refuses_what_read_refuses(path, loaders):
    path.write_bytes(b"garbage")
    with pytest.raises(FileError, match="not a zip archive"):
        sealed_file.load(path)


# ---- Strings ----------------------------------------------------------------------------------------------------


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]))))
def test_strings_round_trip(strings):
    buffer, offsets = sealed_file.pack_strings(strings)
    assert (buffer.dtype, offsets.dtype) == (np.uint8, np.int64)
    assert len(offsets) == len(strings) + 1
    assert sealed_file.unpack_strings(buffer, offsets) == strings


def test_strings_through_a_file(path):
    strings = ["", "größe", "\0", "𝛼", ""]
    buffer, offsets = sealed_file.pack_strings(strings)
    sealed_file.write(path, "test", {}, {"buffer": buffer, "offsets": offsets})
    assert sealed_file.unpack_strings(**sealed_file.read(path)[2]) == strings


@pytest.mark.parametrize("string", ["a\ud800", b"bytes", None, 1])
def test_strings_that_cannot_be_packed(string):
    with pytest.raises(DataError, match="string 1 is"):
        sealed_file.pack_strings(["fine", string])


@pytest.mark.parametrize(
    ("buffer", "offsets"),
    [
        (b"abc", []),
        (b"abc", [0]),
        (b"abc", [0, 2]),
        (b"abc", [0, 4]),
        (b"abc", [1, 3]),
        (b"abc", [-1, 3]),
        (b"abc", [0, 2, 1, 3]),
        (b"abc", [0, -(2**63), 3]),
        (b"abc", [0, 2**63 - 1, 3]),
        ("ä".encode(), [0, 1, 2]),
        (b"\xff", [0, 1]),
        (b"\xed\xa0\x80", [0, 3]),
    ],
)
def test_strings_that_cannot_be_unpacked(buffer, offsets):
    with pytest.raises(FileError, match="cannot unpack strings"):
        sealed_file.unpack_strings(np.frombuffer(buffer, np.uint8), np.array(offsets, np.int64))


def test_strings_of_the_wrong_type():
    buffer, offsets = sealed_file.pack_strings(["a", "b"])
    for changed in ((buffer.astype(int), offsets), (buffer, offsets.astype(float)), (buffer[None], offsets)):
        with pytest.raises(FileError, match="dtype"):
            sealed_file.unpack_strings(*changed)
