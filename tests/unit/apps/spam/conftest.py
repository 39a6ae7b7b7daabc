"""Stores to learn in: a file, and a schema of a PostgreSQL server."""

import pytest
from tests.unit.sources import postgresql as server


@pytest.fixture(scope="session")
def spam_server():
    """The address of a server with one empty database."""
    pytest.importorskip("psycopg", reason="psycopg is not installed")
    with server.running() as address:
        parts = dict(part.split("=", 1) for part in address.split())
        yield f"postgresql://{parts['user']}@/{parts['dbname']}?host={parts['host']}"


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
