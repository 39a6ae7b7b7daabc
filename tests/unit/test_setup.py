"""tools/install.py, which `make setup` and `make demo` run: it shows how far it is, and why it failed."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

FILE = Path(__file__).resolve().parents[2] / "tools" / "install.py"


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("tools_install", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "LOGS", tmp_path / "log")
    return module


def test_progress_is_that_of_the_compiler_and_of_pip(install: ModuleType) -> None:
    line = "  [12/94] Building CXX object tier_v4.dir/cpp/simd/group_rows.cpp.o\n"
    assert install.of_compiler(line) == "12 of 94 compiled"
    assert install.of_compiler("  -- Configuring done\n") is None
    assert install.of_pip("Collecting numpy>=2\n") == "collecting numpy>=2"
    assert (
        install.of_pip("  Using cached https://host/simple/numpy-2.4.0.whl (16 MB)\n") == "using cached numpy-2.4.0.whl"
    )
    assert install.of_pip("Installing collected packages: numpy, scipy\n") == "installing 2 packages"


def test_a_step_says_what_it_does_and_keeps_the_output(
    install: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = "print('[1/2] Building a'); print('[2/2] Linking b')"
    assert "Linking b" in install.run("kernels", "Kernels", [sys.executable, "-c", code], install.of_compiler)
    told = capsys.readouterr().err.splitlines()
    assert told[0] == "Kernels ..."
    assert told[-1].startswith("Kernels: done in ")
    assert (tmp_path / "log" / "kernels.log").read_text(encoding="utf-8").startswith("[1/2] Building a")


def test_a_step_that_fails_shows_why(install: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    code = "import sys; print('error: no such header'); sys.exit(3)"
    with pytest.raises(SystemExit) as raised:
        install.run("kernels", "Kernels", [sys.executable, "-c", code], install.of_compiler)
    assert raised.value.code == 3
    told = capsys.readouterr().err
    assert "Kernels: failed; the end of log/kernels.log:" in told
    assert "error: no such header" in told


def test_requirements_of_extras_are_resolved(install: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[project]\ndependencies = ["numpy"]\n'
        "[project.optional-dependencies]\n"
        'command = ["rich"]\nplot = ["matplotlib"]\ntest = ["tallybayes[command,plot]", "pytest"]\n'
    )
    assert list(install.requirements([])) == ["numpy"]
    assert list(install.requirements(["test"])) == ["rich", "matplotlib", "pytest"]
