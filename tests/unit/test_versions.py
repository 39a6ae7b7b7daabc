"""What `tb.show_versions` prints, and what it costs."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

import tallybayes as tb
from tallybayes import kernels

ROOT = Path(__file__).parents[2]


def lines(text: str) -> dict[str, str]:
    return {name: value for name, _, value in (line.partition(" ") for line in text.splitlines())}


def test_there_is_one_version_in_one_place() -> None:
    assert version("tallybayes") == tb.__version__
    assert "version" in tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dynamic"]


def test_it_tells_what_runs(capsys: pytest.CaptureFixture[str]) -> None:
    tb.show_versions()
    told = lines(capsys.readouterr().out)
    assert told["tallybayes"].strip() == tb.__version__
    assert told["numpy"].strip() == version("numpy")
    assert told["Python"].split()[0] == ".".join(map(str, sys.version_info[:3]))
    assert told["kernels"].strip().startswith(kernels.implementation())
    assert told["processor"].strip()
    if kernels.implementation() != "reference":
        assert "built by GCC " in told["kernels"] or "Clang " in told["kernels"]
        assert " thread" in told["kernels"]


def test_it_imports_no_library_and_tells_what_is_missing() -> None:
    code = (
        "import importlib.metadata as metadata, sys\n"
        "known = metadata.version\n"
        "def version(name):\n"
        "    if name == 'polars': raise metadata.PackageNotFoundError(name)\n"
        "    return known(name)\n"
        "metadata.version = version\n"
        "import tallybayes as tb; tb.show_versions()\n"
        "print([m for m in ('scipy', 'sklearn', 'narwhals', 'pyarrow', 'pandas', 'matplotlib') if m in sys.modules])"
    )
    environment = os.environ | {"TALLYBAYES_KERNELS": "reference"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    told = lines(done.stdout)
    assert told["polars"].strip() == "not installed"
    assert told["kernels"].strip() == "reference (NumPy), one thread"
    assert done.stdout.splitlines()[-1] == "[]"
