"""Which implementation runs, and what importing it costs."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tallybayes import kernels
from tests.unit.kernels.kernel_cases import TIERS


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if name != "TALLYBAYES_KERNELS"}
    return subprocess.run(
        [sys.executable, "-W", "always", "-c", code],
        env=clean | environment,
        capture_output=True,
        text=True,
        check=False,
    )


TELL = "from tallybayes import kernels; import numpy; numpy.zeros(1); print(kernels.implementation())"
# What happens where nothing was compiled: the module is hidden from the import system.
HIDDEN = "import sys; sys.modules['tallybayes.kernels._compiled'] = None; " + TELL


@pytest.mark.slow
def test_every_choice() -> None:
    assert kernels.implementation() == (f"compiled {TIERS[-1]}" if TIERS else "reference") or os.environ.get(
        "TALLYBAYES_KERNELS"
    )
    answer = python(TELL, TALLYBAYES_KERNELS="reference")
    assert (answer.stdout, answer.stderr) == ("reference\n", "")
    for tier in TIERS:
        assert python(TELL, TALLYBAYES_KERNELS=tier).stdout == f"compiled {tier}\n"


def test_unknown_choice() -> None:
    answer = python(TELL, TALLYBAYES_KERNELS="fast")
    assert "ValueError: the environment variable TALLYBAYES_KERNELS is 'fast', expected reference, v2" in answer.stderr


def test_unavailable_tier() -> None:
    missing = [tier for tier in ("v2", "v3", "v4", "native") if tier not in TIERS]
    if not TIERS:
        pytest.skip("tallybayes was installed without compiled kernels")
    assert "only have" in python(TELL, TALLYBAYES_KERNELS=missing[0]).stderr


@pytest.mark.slow
def test_without_compiled_kernels() -> None:
    answer = python(HIDDEN)
    assert answer.stdout == "reference\n"
    assert answer.stderr.count("UserWarning: the compiled kernels of tallybayes are missing") == 1
    assert "Install a C++ compiler" in answer.stderr
    silent = python(HIDDEN, TALLYBAYES_KERNELS="reference")
    assert (silent.stdout, silent.stderr) == ("reference\n", "")
    assert "ImportError: the environment variable" in python(HIDDEN, TALLYBAYES_KERNELS="v3").stderr


def test_importing_kernels_loads_neither_scipy_nor_sklearn() -> None:
    code = "import sys, tallybayes.kernels; print([m for m in ('scipy', 'sklearn', 'pandas') if m in sys.modules])"
    assert python(code).stdout == "[]\n"
