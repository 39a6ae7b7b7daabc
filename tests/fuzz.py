"""Strangers' files by the hundred thousand: whatever is in them, they are opened or refused, soon and in little memory.

``make fuzz RUNS=100000``, or ``python tests/fuzz.py TARGET [runs] [seed]``, where TARGET is one of:

- ``sealed``: models whose manifest and arrays were changed and sealed again, so that all but the seal is to be doubted;
- ``bytes``: files with bits turned, bytes lost, put in, cut off or taken from another file;
- ``bif``: networks in BIF, their words changed, lost and repeated;
- ``json``: networks of tables and lines as JSON, the same;
- ``mail``: mails of every kind, their lines, words and bytes changed, lost, repeated and put into each other;
- ``text``: text of the world's scripts, its characters and bytes changed; both kernels find the same tokens;
- ``csv``, ``jsonl``, ``parquet``: tables in files, their cells and bytes changed; a model is fitted, or an error
  of this package is raised.

What is opened is saved and opened again. It ends with the counts of what happened, or at the first surprise: an error
that is no `FileError`, over two seconds, or over 256 MB more.
"""

from __future__ import annotations

import copy
import gzip
import io
import json
import random
import resource
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

_SECONDS, _MEGABYTES = 2.0, 256
Work = Callable[[random.Random], str]


def sealed(folder: Path) -> Work:
    """Models, changed and sealed again."""
    import tallybayes as tb
    from tallybayes._utils import sealed_file
    from tallybayes.errors import FileError
    from tests.unit.test_hostile_files import MAKERS, mutated, same, write_any

    seeds = []
    for number, make in enumerate(MAKERS.values()):
        make().save(folder / f"{number}")
        seeds.append(sealed_file.read(folder / f"{number}"))
    path, again = folder / "changed", folder / "again"

    def run(rng: random.Random) -> str:
        kind, manifest, arrays = rng.choice(seeds)
        write_any(path, kind, *mutated(manifest, arrays, rng))
        try:
            found = tb.load(path)
        except FileError:
            return "refused"
        found.save(again)
        if not same(tb.load(again), found):
            raise AssertionError("it is another one after it was saved")
        return "opened"

    return run


def bytes_(folder: Path) -> Work:
    """Files whose bytes were changed; the seal tells all of them."""
    import tallybayes as tb
    from tallybayes.errors import FileError
    from tests.unit.test_hostile_files import MAKERS

    seeds = []
    for number, make in enumerate(MAKERS.values()):
        make().save(folder / f"{number}")
        seeds.append((folder / f"{number}").read_bytes())
    path = folder / "changed"

    def run(rng: random.Random) -> str:
        seed = rng.choice(seeds)
        raw = changed(bytearray(seed), rng, seeds)
        path.write_bytes(raw)
        try:
            tb.load(path)
        except FileError:
            return "refused"
        if bytes(raw) != seed and bytes(raw) not in seeds:
            raise AssertionError("a file that nobody sealed was opened")
        return "opened, nothing had changed"

    return run


def changed(raw: bytearray, rng: random.Random, others: list[bytes]) -> bytearray:
    """Bytes with one to four changes."""
    for _ in range(rng.randint(1, 4)):
        place = rng.randrange(len(raw) + 1)
        match rng.randrange(6):
            case 0 if raw:
                raw[place % len(raw)] ^= 1 << rng.randrange(8)
            case 1:
                del raw[place : place + rng.choice((1, 2, 8, 100))]
            case 2:
                raw[place:place] = rng.randbytes(rng.choice((1, 4, 64)))
            case 3:
                del raw[place:]
            case 4:
                other = rng.choice(others)
                first = rng.randrange(len(other))
                raw[place : place + 64] = other[first : first + 64]
            case _:
                raw[place : place + 8] = rng.choice((b"\xff" * 8, b"\x00" * 8, b"\x7f" * 8, b"PK\x03\x04"))
    return raw


_WORDS = [
    "network", "variable", "probability", "type", "discrete", "table", "default", "property", "{", "}", "(", ")", "[",
    "]", "|", ",", ";", '"', "\\", "//", "/*", "*/", "\n", "1e999", "nan", "inf", "-1", "0.5", "1", "9" * 40, "2", "é",
    "\x00", "\ud800", "x" * 300,
]  # fmt: skip


def bif(folder: Path) -> Work:
    """Networks in BIF with words changed, lost and repeated."""
    del folder
    seeds = _networks()

    def run(rng: random.Random) -> str:
        words = rng.choice(seeds).split(" ")
        for _ in range(rng.randint(1, 3)):
            place = rng.randrange(len(words))
            match rng.randrange(4):
                case 0:
                    words[place] = rng.choice(_WORDS)
                case 1:
                    words[place:place] = words[rng.randrange(len(words)) :][: rng.randint(1, 30)]
                case 2:
                    del words[place : place + rng.randint(1, 5)]
                case _:
                    words[place] = words[place][: rng.randint(0, 5)] + rng.choice(_WORDS)
        return read(" ".join(words))

    return run


_VALUES: list[Any] = [
    None, True, 0, 1, -1, 0.5, 1e-300, 1e300, 10**40, "", "a", "x", "y", [], {}, [0.5, 0.5], [1, 2, 3], [[1], [2]],
    {"x": 1}, ["a", "b"], ["x"], ["y"], "\x00", "é",
]  # fmt: skip
_JSON = ["{", "}", "[", "]", ",", ":", '"', "null", "1e999", "NaN", "-Infinity", "\\", "\ud800", "[" * 3000, '"x": 1,']


def json_(folder: Path) -> Work:
    """Networks of tables and lines as JSON: values changed, lost and moved, or the text itself."""
    import tallybayes as tb
    from tallybayes.errors import FileError, TooLargeError

    path = folder / "n.json"
    nodes = {
        "a": {"levels": ["u", "v", None], "probabilities": [0.5, 0.25, 0.25]},
        "b": {"parents": ["a"], "levels": [True, False], "probabilities": [[0.5, 0.5], [1, 0], [0.25, 0.75]]},
        "x": {"parents": ["a"], "intercept": [0, 1, 2], "std": [1, 2, 3]},
        "y": {"parents": ["b", "x"], "intercept": 1, "coefficients": {"x": [1, -1]}, "std": 0.5},
    }
    tb.BayesianNetwork.from_parameters(nodes).to_json(path)
    whole = path.read_text(encoding="utf-8")

    def run(rng: random.Random) -> str:
        changed = json.loads(whole)
        for _ in range(rng.randint(1, 3)):
            _change(changed, rng)
        text = json.dumps(changed)
        if rng.random() < 0.2:
            place = rng.randrange(len(text))
            text = text[:place] + rng.choice(_JSON) + text[place + rng.randint(0, 3) :]
        try:
            found = tb.BayesianNetwork.from_json(io.StringIO(text))
        except (FileError, TooLargeError):
            return "refused"
        found.to_json(path)
        if tb.BayesianNetwork.from_json(path).levels_ != found.levels_:
            raise AssertionError("it is another one after it was written")
        return "opened"

    return run


def _change(tree: Any, rng: random.Random) -> None:
    """Change something somewhere in lists and objects."""
    keys = list(tree) if isinstance(tree, dict) else list(range(len(tree)))
    if not keys:
        return
    key = rng.choice(keys)
    what = 3 if isinstance(tree[key], dict | list) and rng.random() < 0.8 else rng.randrange(3)
    match what:
        case 0:
            tree[key] = rng.choice(_VALUES)
        case 1:
            del tree[key]
        case 2:
            tree[key] = copy.deepcopy(tree[rng.choice(keys)])
        case _:
            _change(tree[key], rng)


def _networks() -> list[str]:
    """Small networks as BIF."""
    import tallybayes as tb

    made = [
        tb.BayesianNetwork.from_tables({"a": ()}, {"a": ("x", "y")}, {"a": [0.5, 0.5]}),
        tb.BayesianNetwork.from_tables(
            {"a": (), "b b": ("a",)},
            {"a": ("x", 'q"'), "b b": (0, 1)},
            {"a": [0.25, 0.75], "b b": [[0.1, 0.9], [0.2, 0.8]]},
        ),
        tb.BayesianNetwork.from_tables(
            {"a": (), "b": (), "c": ("a", "b")},
            dict.fromkeys("abc", ("f", "t")),
            {"a": [0.5, 0.5], "b": [0.125, 0.875], "c": [[[0.1, 0.9], [0.2, 0.8]], [[0.3, 0.7], [0.4, 0.6]]]},
        ),
    ]
    from tallybayes.models.network.io.bif import bif_blocks

    found = ["".join(bif_blocks(network.to_tables())) for network in made]
    return [
        *found,
        "network n { } variable a { type discrete [ 2 ] { x, y }; } probability ( a ) { default 0.5, 0.5; }",
    ]


def read(text: str | bytes) -> str:
    """Read a network, and once more after it was written."""
    from tallybayes.errors import FileError
    from tallybayes.models.network.io.bif import bif_blocks, read_bif

    try:
        found = read_bif(io.StringIO(text) if isinstance(text, str) else io.BytesIO(text))
    except FileError:
        return "refused"
    again = read_bif(io.StringIO("".join(bif_blocks(found))))
    if again.levels != found.levels:
        raise AssertionError("it is another one after it was written")
    return "opened"


_MAIL_WORDS = [
    b"\n", b"\r\n", b"\r", b"\n\n", b"\n ", b"--edge", b"\n--edge\n", b"\n--edge--\n", b"=", b"==", b"=\n", b"=3D",
    b"=?", b"?=", b"=?utf-8?B?", b"=?x?Q?a?=", b"<", b">", b"<!--", b"-->", b"<script>", b"</p>",
    b"<p style=display:none>", b"&#", b"&#x1F600;", b"&amp;", b"&#99999999999;", b"http://", b"://a.b/", b"From ",
    b">From ", b"Subject: ", b"Content-Type: ", b"text/html; ", b"multipart/mixed; boundary=edge\n",
    b"message/rfc822\n\n", b"Content-Transfer-Encoding: base64\n", b"Content-Transfer-Encoding: quoted-printable\n",
    b"charset=utf-16", b"charset=utf-7", b"charset=euc-kr", b"charset=gb18030", b"charset=iso-2022-jp", b"charset=hz",
    b"charset=big5", b"charset=shift_jis", b"charset=x", b"charset*0=u", b"\x00", b"\xff", b"\xe2\x80\x99",
    b"\xed\xa0\x80", b"\x1b$B", b"+AAA", b"begin 644 a\n", b"\xf0\x9f\x98\x80", b"a" * 300, b"'.'.", b"< >",
    b"<\n>", b"<=>", b"</", b"&", b" ", b"<a href=", b"<p>", b"</p", b"bgcolor=x", b";", b'"', b":", b"boundary=",
]  # fmt: skip


def mail(folder: Path) -> Work:
    """Mails changed in every way, and read as a file, as a mbox and as bytes."""
    from tallybayes.apps.spam.spam_score import UNCALIBRATED, SpamTotals, score_tokens
    from tallybayes.apps.spam.store.backends import storable
    from tallybayes.apps.spam.store.message_codec import words_from_bytes
    from tallybayes.apps.spam.tokens import message_tokens as reading
    from tallybayes.apps.spam.tokens.message_batches import REFERENCE
    from tallybayes.apps.spam.tokens.token_kernel import mail_batch
    from tests.unit.apps.spam.mails import HONEST

    seeds = [*HONEST.values(), *_corpus()]
    path, totals = folder / "mail", SpamTotals(5, 5, 100, 100, 100)

    def run(rng: random.Random) -> str:
        raw = bytearray(rng.choice(seeds))
        for _ in range(rng.randint(1, 8)):
            place = rng.randrange(len(raw) + 1)
            match rng.randrange(5):
                case 0:
                    raw[place : place + rng.choice((0, 0, 1, 8))] = rng.choice(_MAIL_WORDS) * rng.choice((1, 1, 1, 50))
                case 1:
                    other = rng.choice(seeds)
                    first = rng.randrange(len(other) + 1)
                    raw[place:place] = other[first : first + rng.choice((20, 200, 10_000))]
                case 2:
                    lines = bytes(raw).split(b"\n")
                    rng.shuffle(lines) if rng.random() < 0.1 else lines.insert(
                        rng.randrange(len(lines)), rng.choice(lines)
                    )
                    raw = bytearray(b"\n".join(lines))
                case _:
                    raw = changed(raw, rng, seeds)
        read = bytes(raw)
        if rng.random() < 0.1:
            path.write_bytes(read)
            try:
                found = [one for _, one in reading.mails_in([path])]
            except OSError:  # binary, or damaged as a compressed file
                found = [read]
            if read and not read.startswith(b"From ") and found != [read]:  # an empty file has no mail
                raise AssertionError("a mail is another one from a file")
        tokens = reading.tokens_of(read)
        if len(set(tokens)) != len(tokens) or not all(tokens) or len(reading.content_id(read)) != 32:
            raise AssertionError("tokens that are not distinct, or empty")
        "".join(tokens).encode()  # they are stored
        batch = mail_batch(REFERENCE)
        if batch is not None and batch.add(read) and words_from_bytes(batch.words()) != storable(tokens):
            raise AssertionError("other tokens where mails are compiled")
        counts = [rng.randrange(6) for _ in tokens]
        if not 0 <= score_tokens(tokens, counts, counts[::-1], totals, UNCALIBRATED).probability <= 1:
            raise AssertionError("a probability that is none")
        return "read" if tokens else "empty"

    return run


def _corpus() -> list[bytes]:
    """Some real mails, where they are."""
    import tarfile

    archive = Path(__file__).parents[2] / "shared" / "data" / "spamassassin" / "spamassassin-2003.tar.xz"
    if not archive.exists():
        return []
    found = []
    with tarfile.open(archive, "r|xz") as files:  # in one pass: to go back is to unpack it once more
        for number, member in enumerate(files):
            if number % 40 == 0 and member.isfile() and member.size < 6000:
                found.append(files.extractfile(member).read())
    return found


def text(folder: Path) -> Work:
    """Texts whose characters and bytes were changed, by every rule: what is compiled, and the reference."""
    from tallybayes.kernels.reference import text_counts as reference_text_counts
    from tallybayes.kernels.text.text_counts import TokenRule, WordIndex, text_rows
    from tests.unit.kernels.text_cases import BROKEN, RULES, TEXTS, buffers, encoded

    del folder
    seeds = [encoded(one) for one in (*TEXTS, *BROKEN) if one]

    def run(rng: random.Random) -> str:
        rows = []
        for _ in range(rng.randint(1, 3)):
            raw = bytearray(b" ".join(rng.choice(seeds) for _ in range(rng.randint(1, 3))))
            for _ in range(rng.randint(0, 6)):
                place = rng.randrange(len(raw) + 1)
                raw[place:place] = chr(rng.randrange(0x110000)).encode("utf-8", "surrogatepass")
            rows.append(bytes(changed(raw, rng, seeds) if rng.random() < 0.5 else raw))
        name, characters, low = rng.choice(("words", "sklearn")), rng.random() < 0.2, rng.randint(1, 3)
        rule = rng.choice([*RULES, TokenRule(name, rng.random() < 0.7, (low, low + rng.randint(0, 2)), characters)])
        found = text_rows(*buffers(rows), rule)
        words = [word.encode() for word in WordIndex(found.data, found.offsets).words()]
        for row, raw in enumerate(rows):
            span = slice(found.indptr[row], found.indptr[row + 1])
            counts = dict(zip((words[j] for j in found.indices[span]), found.counts[span].tolist(), strict=True))
            if counts != Counter(reference_text_counts.tokens(raw, rule)):
                raise AssertionError(f"other tokens of {raw!r} by {rule}")
        return "words" if words else "none"

    return run


_CELLS = [
    b"\n", b"\r\n", b"\r", b",", b";", b"\t", b'"', b'""', b'"\n', b'",', b"\\", b"NULL", b"nan", b"1e999", b"-0",
    b"2024-01-01", b"true", b"\xff", b"\x00", b"\xef\xbb\xbf", b"\xff\xfe", b"\xc3\xa9", b"{", b"}", b"[", b"]", b":",
    b"9" * 40, b"[" * 90,
    b'{"x": ', b'"x": [1], ', b'"y": {"z": null}, ', b"\\ud800", b"\\u0000", b'"\\', b" ", b"x" * 300,
]  # fmt: skip


def csv(folder: Path) -> Work:
    """Files of comma-separated values, their cells and bytes changed, and random bytes."""
    text = b'x,a b,"y"\n' + b"".join(b'%d,"w %d",%s\n' % (k, k % 3, b"ab"[k % 2 : k % 2 + 1]) for k in range(30))
    more = b"x;y\n1.5;a\n;b\n-2e3;a\nNA;b\n", b"x\ty\r\n1\t2024-01-01\r\n2\t2024-01-02\r\n"
    seeds = [text, *more, text.decode().encode("utf-16"), text.decode().encode("utf-32"), b"x,y\n" + b'"1\n2",a\n' * 9]
    return _read_files(folder, "csv", seeds)


def jsonl(folder: Path) -> Work:
    """Files of JSON lines, their words and bytes changed, and random bytes."""
    rows = [{"x": k, "z": [{"u": None}], "s": {"r": "w"}, "b": k % 2 == 0, "y": "ab"[k % 2]} for k in range(30)]
    text = "".join(json.dumps(row) + "\n" for row in rows).encode()
    return _read_files(folder, "jsonl", [text, text.decode().encode("utf-16"), b'{"x": 1.5, "y": "a"}\n{"y": "b"}\n'])


def parquet(folder: Path) -> Work:
    """Parquet files of several types and encodings, their bytes changed, and random bytes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table(
        {
            "x": [float(k) for k in range(40)],
            "k": list(range(40)),
            "s": [None if k % 7 == 0 else f"w{k % 5}" for k in range(40)],
            "z": [[k] for k in range(40)],
            "b": [k % 2 == 0 for k in range(40)],
            "y": ["ab"[k % 2] for k in range(40)],
        }
    )
    seeds = []
    kinds: list[dict[str, Any]] = [
        {},
        {"use_dictionary": False, "compression": "none"},
        {"row_group_size": 7},
        {"use_dictionary": ["y"], "column_encoding": {"s": "DELTA_BYTE_ARRAY"}, "compression": "none"},
    ]
    for number, options in enumerate(kinds):
        pq.write_table(table, folder / f"{number}", **options)
        seeds.append((folder / f"{number}").read_bytes())
    return _read_files(folder, "parquet", seeds)


def _read_files(folder: Path, kind: str, seeds: list[bytes]) -> Work:
    """Read a changed file and fit a model on it; what cannot be read raises an error of this package."""
    import tallybayes as tb
    from tallybayes.errors import TallybayesError

    path, packed = folder / f"rows.{kind}", folder / f"rows.{kind}.gz"

    def failed(unraisable: Any) -> None:
        raised.append(unraisable.exc_value)

    raised: list[Any] = []
    sys.unraisablehook = failed

    def run(rng: random.Random) -> str:
        raw = bytearray(rng.choice(seeds))
        if rng.random() < 0.05:
            raw = bytearray(rng.randbytes(rng.choice((1, 10, 1000))))
        for _ in range(rng.randint(0, 3) if kind != "parquet" else 0):
            place = rng.randrange(len(raw) + 1)
            raw[place : place + rng.choice((0, 0, 1, 5))] = rng.choice(_CELLS)
        if rng.random() < (0.3 if kind != "parquet" else 0.98):
            raw = changed(raw, rng, seeds)
        file = path
        if kind != "parquet" and rng.random() < 0.05:
            file, raw = packed, changed(bytearray(gzip.compress(bytes(raw))), rng, seeds)
        file.write_bytes(raw)
        options = {} if kind == "parquet" or rng.random() < 0.7 else {"on_bad": "skip"} if kind == "csv" else {}
        opened = io.BytesIO(raw) if rng.random() < 0.1 else file  # its format is found by its first bytes
        try:
            tb.NaiveBayes().fit(tb.table(opened, **options), "y").predict(file)
        except TallybayesError as error:
            return type(error).__name__
        finally:
            if raised:
                raise AssertionError(f"an exception was ignored: {raised[0]!r}")
        return "read"

    return run


def main(target: str, n_runs: int = 100_000, seed: int = 0) -> None:
    """Run, and say what happened."""
    warnings.simplefilter("ignore")
    done: Counter[str] = Counter()
    start = time.monotonic()
    with tempfile.TemporaryDirectory(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as folder:
        work = {
            "sealed": sealed,
            "bytes": bytes_,
            "bif": bif,
            "json": json_,
            "mail": mail,
            "text": text,
            "csv": csv,
            "jsonl": jsonl,
            "parquet": parquet,
        }[target](Path(folder))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for number in range(n_runs):
            begun = time.process_time()
            try:
                done[work(random.Random(f"{target} {seed} {number}"))] += 1
            except BaseException as error:
                sys.stderr.write(f"\nrun {number} of seed {seed} of {target!r}: {type(error).__name__}\n")
                raise
            took = time.process_time() - begun
            more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
            if took > _SECONDS or more > _MEGABYTES:
                raise SystemExit(f"run {number} of seed {seed} of {target!r} took {took:.1f} s and {more:.0f} MB")
            if number % 10_000 == 9_999:
                sys.stderr.write(f"\r{target}: {number + 1:,} of {n_runs:,}")
    took = time.monotonic() - start
    counts = ", ".join(f"{n:,} {what}" for what, n in done.most_common())
    sys.stdout.write(f"\n{target}: {n_runs:,} runs, seed {seed}, {took:.0f} s: {counts}; no surprise\n")


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:4]))
