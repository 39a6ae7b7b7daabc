"""Which implementation runs, and what importing it costs."""

from __future__ import annotations

import os
import shutil
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
    assert (
        "ValueError: the environment variable TALLYBAYES_KERNELS is 'fast', expected reference, baseline"
        in answer.stderr
    )


def test_unavailable_tier() -> None:
    missing = [tier for tier in ("baseline", "v3", "v4") if tier not in TIERS]
    if not TIERS or not missing:
        pytest.skip("tallybayes was installed without compiled kernels, or with all of them")
    assert f"is '{missing[0]}', but it was not compiled" in python(TELL, TALLYBAYES_KERNELS=missing[0]).stderr


# The kernels of another machine: compiled for a processor with more instructions than this one.
FOREIGN = """
import sys, types
module = types.ModuleType("tallybayes.kernels._compiled")
module.built_tiers, module.available_tiers = lambda: ["v4"], lambda: []
sys.modules[module.__name__] = module
"""


def test_built_for_another_processor() -> None:
    answer = python(FOREIGN + TELL)
    assert answer.stdout == "reference\n"
    assert answer.stderr.count("UserWarning") == 1
    assert "built for another processor (v4)" in answer.stderr
    assert "TALLYBAYES_TIERS=all" in answer.stderr
    silent = python(FOREIGN + TELL, TALLYBAYES_KERNELS="reference")
    assert (silent.stdout, silent.stderr) == ("reference\n", "")
    forced = python(FOREIGN + TELL, TALLYBAYES_KERNELS="v4")
    assert "is 'v4', but this processor cannot run it (available: reference)" in forced.stderr


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("qemu-x86_64"), reason="needs qemu-x86_64, of Debian's package qemu-user")
@pytest.mark.skipif("baseline" in TIERS, reason="the baseline was compiled, which every processor runs")
def test_compiled_kernels_on_a_processor_that_lacks_their_instructions() -> None:
    code = "import importlib.util as util, sys; spec = util.spec_from_file_location('_compiled', sys.argv[1])\n"
    code += "module = util.module_from_spec(spec); spec.loader.exec_module(module)\n"
    code += "print(module.built_tiers(), module.available_tiers())"
    from tallybayes.kernels import _compiled

    command = ["qemu-x86_64", "-cpu", "Nehalem", sys.executable, "-S", "-c", code, _compiled.__file__]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (answer.stdout, answer.returncode) == (f"{_compiled.built_tiers()} []\n", 0), answer.stderr


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
