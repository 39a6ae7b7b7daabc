"""Stores to learn in, a file and a schema of a PostgreSQL server; and mail to learn from."""

import random
import shutil

import pytest

from tallybayes.apps.spam.store.spam_store import Store
from tallybayes.apps.spam.train import learn, recalibrate
from tests.unit.apps.cli.conftest import done, tally  # noqa: F401 - fixtures


@pytest.fixture(scope="session")
def spam_server(one_postgresql):
    """The address of a server's database."""
    parts = dict(part.split("=", 1) for part in one_postgresql.split())
    return f"postgresql://{parts['user']}@/{parts['dbname']}?host={parts['host']}"


@pytest.fixture
def empty_server(spam_server):
    """The same, without a store in it."""
    import psycopg

    with psycopg.connect(spam_server, autocommit=True) as connection:
        connection.execute("SET client_min_messages = warning")
        connection.execute("DROP SCHEMA IF EXISTS tally_spam CASCADE")
    return spam_server


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request, tmp_path):
    """Where a store may be made, of both kinds."""
    if request.param == "sqlite":
        return str(tmp_path / "folder" / "spam.sqlite")
    return request.getfixturevalue("empty_server")


HAM_WORDS = "meeting notes lunch project review draft tomorrow thanks agenda report office team"
SPAM_WORDS = "winner prize viagra casino cheap offer money click unsubscribe credit loan pills"
BOTH = "the a of and to you your in is it for this with on we"


def make_mail(kind, number):
    """A mail that is plainly one or the other, with a few words of both."""
    chance = random.Random(f"{kind} {number}")
    own = (HAM_WORDS if kind == "ham" else SPAM_WORDS).split()
    words = chance.choices(own, k=30) + chance.choices(BOTH.split(), k=5)
    chance.shuffle(words)
    sender = f"{chance.choice('abcdef')}@{'work' if kind == 'ham' else 'deals'}.example"
    head = f"From: {sender}\nTo: me@home.example\nSubject: {' '.join(words[:3])}\nMessage-ID: <{kind}{number}@x>\n"
    return f"{head}\n{' '.join(words[3:])} number{number}\n".encode()


@pytest.fixture(scope="session")
def learned_once(tmp_path_factory):
    """Folders of mail, to learn from and to ask about; and a store where the first have been learned."""
    folder = tmp_path_factory.mktemp("mail")
    for kind in ("ham", "spam"):
        for number in range(60):
            place = folder / ("train" if number < 40 else "test") / kind
            place.mkdir(parents=True, exist_ok=True)
            (place / f"{number:02d}.eml").write_bytes(make_mail(kind, number))
    with Store(str(folder / "spam.sqlite"), create=True) as store:
        for _ in learn(store, {"ham": [str(folder / "train/ham")], "spam": [str(folder / "train/spam")]}):
            recalibrate(store)
    return folder


@pytest.fixture
def mails(tmp_path, learned_once):
    """Folders of mail, and no store."""
    for name in ("train", "test"):
        shutil.copytree(learned_once / name, tmp_path / name)
    return tmp_path


@pytest.fixture
def learned(mails, learned_once, monkeypatch):
    """Folders of mail, and a store that has learned the first."""
    shutil.copy(learned_once / "spam.sqlite", mails)
    monkeypatch.chdir(mails)
    monkeypatch.setenv("TALLY_SPAM_STORE", str(mails / "spam.sqlite"))
    return mails
