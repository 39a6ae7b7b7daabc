"""A PostgreSQL server of the tests' own, where its programs are installed."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def running() -> Iterator[str]:
    """A database in a folder of its own, whose server listens on a socket there; how to connect to it."""
    programs = _programs()
    if programs is None:
        pytest.skip("PostgreSQL's programs (initdb, pg_ctl) are not installed")
    folder = Path(tempfile.mkdtemp(prefix="postgresql-"))  # not pytest's, which are for their owner only
    data, control = folder / "data", [str(programs / "pg_ctl"), "-D", str(folder / "data")]
    if os.geteuid() == 0:  # which the server refuses to be
        shutil.chown(folder, "nobody")
    try:
        made = [str(programs / "initdb"), "-D", str(data), "-U", "tests", "--auth=trust", "-E", "UTF8", "--no-sync"]
        _run(made, folder)
        options = f"-k {folder} -c listen_addresses='' -c fsync=off"
        _run([*control, "-o", options, "-l", str(folder / "log"), "-w", "start"], folder)
        yield f"host={folder} user=tests dbname=postgres"
        _run([*control, "-m", "immediate", "stop"], folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _programs() -> Path | None:
    found = [Path(path).parent for path in [shutil.which("initdb")] if path]
    found += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((path for path in found if (path / "initdb").exists() and (path / "pg_ctl").exists()), None)


def _run(command: list[str], folder: Path) -> None:
    options: dict = {}
    if os.geteuid() == 0:
        user = pwd.getpwnam("nobody")
        options = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
    environment = {**os.environ, "LC_ALL": "C.UTF-8", "HOME": str(folder)}
    subprocess.run(command, check=True, cwd=folder, env=environment, capture_output=True, timeout=60, **options)
