"""`tally spam watch`: new mail is judged once, what people move is learned once, whatever happens in between."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

import tallybayes as tb
from tallybayes.apps.spam import maildir_watcher
from tallybayes.apps.spam.spam_score import Thresholds
from tallybayes.apps.spam.store.maintenance import check_integrity
from tallybayes.apps.spam.store.spam_store import Store
from tests.unit.apps.spam.conftest import make_mail

HERE = {**os.environ, "PYTHONPATH": str(Path(tb.__file__).parents[1])}


@pytest.fixture
def maildir(learned):
    root = learned / "Maildir"
    for folder in ("", ".Junk", ".Work", ".Trash"):
        for part in ("new", "cur", "tmp"):
            (root / folder / part).mkdir(parents=True)
    return root


@pytest.fixture
def look(maildir, done):
    """Look once; what was done, as (what, verdict, file)."""

    def run(*words):
        lines = done("spam watch Maildir --once --json", *words).splitlines()
        events = [json.loads(line) for line in lines]
        return [(one["what"], one["verdict"], Path(one["file"]).name) for one in events]

    return run


def deliver(maildir, kind, number, where="new", name=None):
    path = maildir / where / (name or f"{number}.M1.host")
    path.write_bytes(make_mail(kind, number))
    return path


def names(maildir, folder):
    return sorted(path.name for part in ("new", "cur") for path in (maildir / folder / part).iterdir())


def move(maildir, source, target, name=None):
    """As a mail reader moves a mail that was read: with a name of its own."""
    path = maildir / source
    path.rename(maildir / target / (name or f"moved-{path.name.partition(':')[0]}:2,S"))


@pytest.mark.slow
def test_new_mail_is_judged_once_and_spam_moved(maildir, look):
    deliver(maildir, "spam", 50)
    deliver(maildir, "ham", 51)
    deliver(maildir, "spam", 52, "cur", "52.M1.host:2,")  # a reader has listed it, nobody has read it
    assert look() == [("judged", "spam", "50.M1.host"), ("judged", "ham", "51.M1.host")]
    # What lies in cur at the very start is taken as it is; later it is new mail.
    assert names(maildir, "") == ["51.M1.host", "52.M1.host:2,"]
    assert names(maildir, ".Junk") == ["50.M1.host"]
    assert look() == []
    deliver(maildir, "spam", 53, "cur", "53.M1.host:2,")
    deliver(maildir, "spam", 54, "cur", "54.M1.host:2,S")  # somebody has read it and left it
    assert look() == [("judged", "spam", "53.M1.host:2,")]
    assert "53.M1.host:2," in names(maildir, ".Junk")
    assert look() == []


def test_moves_are_learned_once(maildir, look, done):
    deliver(maildir, "spam", 50)
    deliver(maildir, "ham", 51)
    look()
    before = json.loads(done("spam stats --json"))
    move(maildir, ".Junk/new/50.M1.host", "cur")
    move(maildir, "new/51.M1.host", ".Junk/cur")
    assert sorted(look()) == [("learned", "ham", "moved-50.M1.host:2,S"), ("learned", "spam", "moved-51.M1.host:2,S")]
    assert look() == []
    after = json.loads(done("spam stats --json"))
    assert (after["ham"] - before["ham"], after["spam"] - before["spam"]) == (1, 1)
    # Minds change: it is relearned, not learned twice.
    move(maildir, "cur/moved-50.M1.host:2,S", ".Junk/cur", "again:2,S")
    assert look() == [("learned", "spam", "again:2,S")]
    final = json.loads(done("spam stats --json"))
    assert (final["ham"], final["spam"]) == (before["ham"], before["spam"] + 2)
    assert "consistent      yes" in done("spam stats --check")


@pytest.mark.slow
def test_moves_between_other_folders_say_nothing(maildir, look):
    deliver(maildir, "ham", 51)
    deliver(maildir, "spam", 50)
    look()
    move(maildir, "new/51.M1.host", ".Work/cur")
    move(maildir, ".Junk/new/50.M1.host", ".Trash/cur")
    assert look() == []
    deliver(maildir, "spam", 55, ".Junk/cur", "55.by-hand:2,S")  # another filter, or a folder that is not here
    assert look() == []
    move(maildir, ".Junk/cur/55.by-hand:2,S", ".Work/cur")
    assert look() == [("learned", "ham", "moved-55.by-hand:2,S")]


def test_a_copy_on_either_side_says_nothing(maildir, look):
    deliver(maildir, "ham", 51)
    look()
    deliver(maildir, "ham", 51, ".Junk/cur", "copy:2,S")
    assert look() == []
    (maildir / "new" / "51.M1.host").unlink()
    assert look() == [("learned", "spam", "copy:2,S")]


def test_spam_may_be_flagged_where_it_is(maildir, look):
    deliver(maildir, "spam", 50)
    assert look("--action", "flag") == [("judged", "spam", "50.M1.host")]
    assert names(maildir, "") == ["50.M1.host:2,F"]
    assert look("--action", "flag") == []
    move(maildir, "cur/50.M1.host:2,F", ".Junk/cur")
    assert look("--action", "flag") == [("learned", "spam", "moved-50.M1.host:2,S")]


def test_a_junk_folder_is_made(maildir, look):
    deliver(maildir, "spam", 50)
    look("--junk", ".Spam")
    assert names(maildir, ".Spam") == ["50.M1.host"]
    assert (maildir / ".Spam" / "tmp").is_dir()


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("after", [False, True], ids=["before it is moved", "after it was moved"])
@pytest.mark.parametrize("action", ["move", "flag"])
def test_stopped_in_the_middle(after, action, maildir, look, monkeypatch):
    deliver(maildir, "spam", 50)
    real = os.rename

    def stop(source, target):
        if after:
            real(source, target)
        raise KeyboardInterrupt

    with Store("spam.sqlite") as store:
        before = store.state()
        watch = maildir_watcher.MaildirWatcher(str(maildir), store, "Junk", action, Thresholds())
        monkeypatch.setattr(maildir_watcher.os, "rename", stop)
        with pytest.raises(KeyboardInterrupt):
            list(watch.scan_once())
        watch.close()
        monkeypatch.undo()
        monkeypatch.chdir(maildir.parent)
        watch = maildir_watcher.MaildirWatcher(str(maildir), store, "Junk", action, Thresholds())
        for _ in range(3):
            assert [event.what for event in watch.scan_once()] == []  # judged before, and nothing is learned from it
        watch.close()
        assert store.state() == before
        assert check_integrity(store) == []
    assert names(maildir, ".Junk" if action == "move" else "") == ["50.M1.host" + ":2,F" * (action == "flag")]


@pytest.mark.slow
def test_it_goes_on_until_it_is_stopped(maildir, learned):
    command = [sys.executable, "-m", "tallybayes", "spam", "watch", str(maildir), "--every", "0.05"]
    environment = {**HERE, "TALLY_SPAM_STORE": str(learned / "spam.sqlite")}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as ran:
        for number in (50, 51):
            deliver(maildir, "spam", number)
            assert ran.stdout.readline().startswith("spam   ")
            time.sleep(0.1)
        ran.kill()
    assert names(maildir, ".Junk") == ["50.M1.host", "51.M1.host"]


def test_what_is_no_maildir_is_refused(learned, tally):
    (learned / "plain").mkdir()
    for words, code, said in (
        ("spam watch nowhere --once", 3, "folder 'nowhere' does not exist"),
        ("spam watch plain --once", 3, "is not a Maildir"),
        ("spam watch plain --once --every 0", 64, "--every is 0"),
        ("spam watch plain --once --junk a/b", 64, "--junk is 'a/b'"),
    ):
        found = tally(words)
        assert found.code == code
        assert said in found.err
