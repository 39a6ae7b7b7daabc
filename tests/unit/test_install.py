"""The package installs where there is no compiler, says so once, and works."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import entry_points
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def without_compiler(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package installed by pip with every compiler hidden."""
    folder = tmp_path_factory.mktemp("install")
    hidden = {name: str(folder / "no-compiler") for name in ("CC", "CXX")}
    command = [sys.executable, "-m", "pip", "install", "--verbose", "--no-deps", "--target", str(folder / "site")]
    command += ["--config-settings", f"build-dir={folder / 'build'}", str(ROOT)]
    done = subprocess.run(command, env=os.environ | hidden, capture_output=True, text=True, check=False)
    if "No matching distribution found" in done.stderr:
        pytest.skip("the build's own requirements cannot be downloaded here")
    assert done.returncode == 0, done.stderr
    (folder / "site" / "pip.log").write_text(done.stdout + done.stderr, encoding="utf-8")
    return folder / "site"


def run(site: Path, code: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if name != "TALLYBAYES_KERNELS"}
    return subprocess.run(
        [sys.executable, "-c", code], env=env | {"PYTHONPATH": str(site)}, capture_output=True, text=True, check=True
    )


@pytest.mark.slow
def test_it_installs_without_the_compiled_kernels(without_compiler: Path) -> None:
    assert list((without_compiler / "tallybayes").glob("**/*.py"))
    assert not list(without_compiler.glob("**/_compiled*.so"))


@pytest.mark.slow
def test_the_build_says_so(without_compiler: Path) -> None:
    said = " ".join((without_compiler / "pip.log").read_text(encoding="utf-8").split())
    assert "The compiled kernels of tallybayes could not be built" in said
    assert "Install GCC 9, Clang 14 or newer" in said


@pytest.mark.parametrize(("compiler", "version"), [("GNU", "8.5"), ("Clang", "13.0.1"), ("MSVC", "19.4")])
def test_other_compilers_are_refused_by_name(tmp_path: Path, compiler: str, version: str) -> None:
    if not shutil.which("cmake"):
        pytest.skip("cmake is not installed")
    pretended = {"ID_RUN": "1", "FORCED": "1", "ID": compiler, "VERSION": version}
    settings = [f"-DCMAKE_CXX_COMPILER_{name}={value}" for name, value in pretended.items()]
    command = ["cmake", "-S", str(ROOT), "-B", str(tmp_path), *settings]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    said = " ".join(done.stderr.split())
    assert "need GCC 9, Clang 14 or newer" in said
    assert f"the compiler found is {compiler} {version}" in said
    assert "environment variable CXX" in said


@pytest.mark.slow
def test_it_says_so_once_and_works(without_compiler: Path) -> None:
    code = (
        # an editable install of the package answers imports before sys.path does: put its finder aside
        "import sys; sys.meta_path = [f for f in sys.meta_path if 'editable' not in type(f).__module__.lower()]\n"
        f"sys.path.insert(0, {str(without_compiler)!r})\n"
        "import tallybayes as tb\n"
        "coin = tb.fit_distribution([1, 1, 0], tb.Bernoulli()) + tb.fit_distribution([0], tb.Bernoulli())\n"
        "from tallybayes import kernels\n"
        "print(tb.__file__, coin.estimate('mle'), kernels.implementation())"
    )
    done = run(without_compiler, code)
    where, estimate, implementation = done.stdout.split()
    assert Path(where).is_relative_to(without_compiler)
    assert (float(estimate), implementation) == (0.5, "reference")
    assert done.stderr.count("compiled kernels of tallybayes are missing") == 1
    assert "C++ compiler" in done.stderr


def test_the_command_is_named() -> None:
    (command,) = entry_points(group="console_scripts", name="tally")
    pytest.importorskip("cyclopts", reason="the extra [cli] is not installed")
    assert command.load().__module__ == "tallybayes.apps.cli.main"


@pytest.mark.slow
def test_the_command_is_installed(without_compiler: Path) -> None:
    pytest.importorskip("cyclopts", reason="the extra [cli] is not installed")
    script = next(path for path in without_compiler.glob("bin/tally*"))
    env = os.environ | {"PYTHONPATH": str(without_compiler)}
    done = subprocess.run([sys.executable, str(script), "--help"], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("Usage: tally COMMAND")


def test_packages_that_are_built_in_public_name_where(tmp_path: Path) -> None:
    if not (ROOT / ".github").exists():
        pytest.skip("source distributions are without the forge's files")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    forge = {"GITHUB_SERVER_URL": "https://forge.example", "GITHUB_REPOSITORY": "some/one"}
    script = [sys.executable, str(ROOT / ".github" / "name_urls.py")]
    subprocess.run(script, cwd=tmp_path, env=os.environ | forge, check=True)
    project = tomllib.loads((tmp_path / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["urls"]["Source"] == "https://forge.example/some/one"
    for address in project["urls"].values():
        file = ROOT / address.partition("/blob/main/")[2]
        assert address.startswith("https://forge.example/some/one")
        assert file.exists()
    assert "urls" not in tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
