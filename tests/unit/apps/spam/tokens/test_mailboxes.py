"""Mails are found where people keep them, one at a time."""

import io
import itertools
import os
import subprocess
import sys

import pytest

from tallybayes.apps.spam.tokens import mailboxes
from tallybayes.apps.spam.tokens.message_tokens import content_id, mails_in
from tests.unit.apps.spam.mails import plain

LINE = b"From ann@example.org Mon Jan  1 10:00:00 2024\n"


def mbox(*mails: bytes) -> bytes:
    return b"".join(LINE + mail + b"\n" for mail in mails)


def test_a_file_with_one_mail(tmp_path):
    path = tmp_path / "one"
    path.write_bytes(plain())
    assert list(mails_in([path])) == [(str(path), plain())]
    path.write_bytes(b"")
    assert list(mails_in([str(path)])) == []  # such as an mbox whose mails were all deleted


def test_an_mbox(tmp_path):
    path = tmp_path / "box"
    mails = [plain(str(number), "From here\n\nFrom there on\n\n>From Mon 10:00 2024") for number in range(3)]
    path.write_bytes(mbox(*mails))
    found = list(mails_in([path]))
    assert [name for name, _ in found] == [str(path), f"{path}#2", f"{path}#3"]
    assert [raw.rstrip(b"\n") for _, raw in found] == [mail.rstrip(b"\n") for mail in mails]
    assert [content_id(raw) for _, raw in found] == [content_id(mail) for mail in mails]
    path.write_bytes(mbox(*mails).replace(b"\n", b"\r\n"))
    assert [content_id(raw) for _, raw in mails_in([path])] == [content_id(mail) for mail in mails]


@pytest.mark.parametrize("piece", [40, 64, 1000])
def test_an_mbox_is_cut_right_wherever_pieces_end(tmp_path, monkeypatch, piece):
    mails = [plain(str(number), "x" * (number * 7)) for number in range(60)]
    path = tmp_path / "box"
    path.write_bytes(mbox(*mails))
    whole = [raw for _, raw in mails_in([path])]
    monkeypatch.setattr(mailboxes, "_PIECE", max(piece, len(LINE)))
    assert [raw for _, raw in mails_in([path])] == whole
    assert len(whole) == 60


def test_an_mbox_is_read_as_it_is_asked_for(tmp_path):
    class Endless(io.RawIOBase):
        """An mbox without an end."""

        taken = 0

        def readable(self):
            return True

        def read(self, size=-1):
            self.taken += 1
            return mbox(plain()) * 100

    stream = Endless()
    assert len(list(itertools.islice(mailboxes._mails_of(stream, "x"), 50))) == 50
    assert stream.taken * len(mbox(plain())) * 100 < 3 << 20


def test_of_a_long_mail_the_beginning_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(mailboxes, "MAIL_BYTES", 1000)
    monkeypatch.setattr(mailboxes, "_PIECE", 128)
    path = tmp_path / "box"
    long = plain(body="x" * 5000)
    path.write_bytes(mbox(long, plain()))
    found = [raw for _, raw in mails_in([path])]
    assert [len(raw) for raw in found] == [1000, len(plain()) + 1]  # and the empty line at the end
    path.write_bytes(long)
    assert [len(raw) for _, raw in mails_in([path])] == [1000]


def test_a_maildir_has_what_was_delivered(tmp_path):
    for folder in ("cur", "new", "tmp", ".Junk/cur", ".Junk/new"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "1:2,S").write_bytes(plain(folder))
    (tmp_path / "dovecot.index").write_bytes(b"no mail")
    assert [raw for _, raw in mails_in([tmp_path])] == [plain("cur"), plain("new")]


def test_a_directory_of_directories(tmp_path):
    (tmp_path / "b" / "c").mkdir(parents=True)
    (tmp_path / "b" / "c" / "2").write_bytes(plain("two"))
    (tmp_path / "b" / "1").write_bytes(mbox(plain("one"), plain("more")))
    (tmp_path / "a").write_bytes(plain("first"))
    (tmp_path / ".hidden").write_bytes(plain("no"))
    (tmp_path / "loop").symlink_to(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    names = [os.path.relpath(name, tmp_path) for name, _ in mails_in([tmp_path])]
    assert names == ["a", "b/1", "b/1#2", "b/c/2"]


def test_files_that_are_moved_meanwhile_are_passed_over(tmp_path):
    for name in "abc":
        (tmp_path / name).write_bytes(plain(name))
    found = mails_in([tmp_path])
    assert next(found)[1] == plain("a")
    (tmp_path / "b").unlink()
    assert [raw for _, raw in found] == [plain("c")]


def test_a_path_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        list(mails_in([tmp_path / "none"]))


def test_standard_input():
    code = (
        "from tallybayes.apps.spam.tokens.message_tokens import mails_in\n"
        "print([(name, len(raw)) for name, raw in mails_in(['-'])])"
    )
    for content, expected in (
        (plain(), [("-", len(plain()))]),
        (mbox(plain(), plain()), [("-", len(plain())), ("-#2", len(plain()) + 1)]),
    ):
        out = subprocess.run([sys.executable, "-c", code], input=content, capture_output=True, check=True)
        assert out.stdout.decode().strip() == str(expected)
