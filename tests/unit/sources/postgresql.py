"""A PostgreSQL server of the tests' own, where its programs are installed."""

import os
import pwd
import shutil
import subprocess
from pathlib import Path

import pytest


def start(folder: Path) -> str:
    """Make a database in a folder, start its server on a socket there, and say how to connect to it."""
    programs = _programs()
    if programs is None:
        pytest.skip("PostgreSQL's programs (initdb, pg_ctl) are not installed")
    data = folder / "data"
    folder.chmod(0o755)
    for parent in folder.parents:  # pytest's own folders are for their owner only
        if str(parent).startswith("/tmp/") and os.geteuid() == 0:
            parent.chmod(0o755)
    if os.geteuid() == 0:  # which the server refuses to be
        shutil.chown(folder, "nobody")
    _run([str(programs / "initdb"), "-D", str(data), "-U", "tests", "--auth=trust", "-E", "UTF8", "--no-sync"], folder)
    options = f"-k {folder} -c listen_addresses='' -c fsync=off"
    _run([str(programs / "pg_ctl"), "-D", str(data), "-o", options, "-l", str(folder / "log"), "-w", "start"], folder)
    return f"host={folder} user=tests dbname=postgres"


def stop(folder: Path) -> None:
    """Stop the server."""
    programs = _programs()
    assert programs is not None
    _run([str(programs / "pg_ctl"), "-D", str(folder / "data"), "-m", "immediate", "stop"], folder)


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
