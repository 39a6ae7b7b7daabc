"""Compressed mail is decompressed within limits; what is not mail is skipped in folders, and an error by itself."""

import bz2
import gzip
import io
import lzma

import numpy as np
import pytest

from tallybayes.apps.spam import unpacking
from tallybayes.apps.spam.tokens.mailboxes import mails_in
from tallybayes.apps.spam.unpacking import NotMailError, describe_skipped, open_compressed, read_up_to, reason_not_mail
from tests.unit.apps.spam.mails import plain
from tests.unit.apps.spam.tokens.test_mailboxes import mbox

PACKERS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
MAILS = [plain(str(number), "words " * number) for number in range(40)]
NOISE = np.random.default_rng(0).bytes(40_000)


@pytest.mark.parametrize("ending", PACKERS)
def test_compressed_mail_is_the_mail(ending, tmp_path):
    path, box, pack = tmp_path / f"one{ending}", tmp_path / f"box{ending}", PACKERS[ending]
    path.write_bytes(pack(plain()))
    assert list(mails_in([path])) == [(str(path), plain())]
    whole = mbox(*MAILS)
    (tmp_path / "box").write_bytes(whole)
    expected = [raw for _, raw in mails_in([tmp_path / "box"])]
    assert len(expected) == 40
    for packed in (pack(whole), pack(whole[:3000]) + pack(whole[3000:])):  # several members, as `cat a.gz b.gz` makes
        box.write_bytes(packed)
        assert [raw for _, raw in mails_in([box])] == expected
    assert [name for name, _ in mails_in([box])][:2] == [str(box), f"{box}#2"]


class Slow(io.RawIOBase):
    """A pipe that gives a byte at a time."""

    def __init__(self, data):
        self.rest = io.BytesIO(data)

    def readable(self):
        return True

    def read(self, size=-1):
        return self.rest.read(1)


@pytest.mark.parametrize("ending", PACKERS)
def test_pieces_of_any_size_are_decompressed(ending):
    packed = PACKERS[ending](MAILS[7]) + PACKERS[ending](MAILS[8])
    start, stream = open_compressed(Slow(packed), "pipe")
    assert start + read_up_to(stream, 1 << 20, 3) == MAILS[7] + MAILS[8]


@pytest.mark.parametrize("ending", PACKERS)
def test_damaged_and_endless_files_are_rejected(ending, tmp_path, monkeypatch):
    packed = PACKERS[ending](b"".join(MAILS))
    path = tmp_path / "mail"
    for damaged in (packed[: len(packed) // 2], packed[:30] + bytes(9) + packed[39:]):
        path.write_bytes(damaged)
        with pytest.raises(NotMailError, match="cannot be decompressed"):
            list(mails_in([path]))
    monkeypatch.setattr(unpacking, "ALWAYS", 1 << 20)
    path.write_bytes(PACKERS[ending](b"Subject: x\n\n" + bytes(1 << 25)))
    with pytest.raises(NotMailError, match="to more than 200 times its size"):
        list(mails_in([path]))


@pytest.mark.parametrize(
    ("start", "alone", "in_folder"),
    [
        (b"", None, None),
        (plain()[:100], None, None),
        (b"From ann@example.org Mon Jan  1 10:00:00 2024\nX: y\n", None, None),
        (b"\r\n\r\nSubject: x\r\n\r\n\0\0", None, None),
        (b"Received", None, "has no mail headers"),
        (b"Dear all,\nsee you.\n", None, "has no mail headers"),
        (NOISE, "is binary, not mail", "is binary, not mail"),
        (b"\x7fELF\2\1\1" + bytes(100), "is binary, not mail", "is binary, not mail"),
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "is binary, not mail", "is binary, not mail"),
        (b"PK\3\4\n\0\0\0\0\0", "is binary, not mail", "is binary, not mail"),
        (b"PK\3\4\n\0\0\0\n" + plain(), "is binary, not mail", "is binary, not mail"),
        (
            b"mail/1".ljust(512, b"\0") + plain().replace(b"\n", b"\nX-1: y\n"),
            "is binary, not mail",
            "is binary, not mail",
        ),
    ],
)
def test_what_is_not_mail_is_known_by_its_start(start, alone, in_folder):
    assert reason_not_mail(start, strict=False) == alone
    assert reason_not_mail(start, strict=True) == in_folder


def test_other_files_of_a_folder_are_skipped(tmp_path):
    for name, data in {
        "1": plain(),
        "a.png": NOISE,
        "box.gz": gzip.compress(mbox(*MAILS)),
        "cmds": b"mv 1 2\n",
    }.items():
        (tmp_path / name).write_bytes(data)
    (tmp_path / "torn.gz").write_bytes(gzip.compress(plain())[:40])
    skipped = []
    assert len(list(mails_in([tmp_path], skipped))) == 41
    assert [(error.filename.rpartition("/")[2], error.reason.partition(" (")[0]) for error in skipped] == [
        ("a.png", "is binary, not mail"),
        ("cmds", "has no mail headers"),
        ("torn.gz", "cannot be decompressed"),
    ]
    assert describe_skipped(skipped).startswith(
        f"skipped 3 files without mail: {tmp_path / 'a.png'} is binary, not mail, "
    )
    assert describe_skipped(skipped * 2).endswith(" and 1 more")
    with pytest.raises(NotMailError, match="is binary"):
        list(mails_in([tmp_path / "a.png"]))
