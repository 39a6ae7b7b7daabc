"""Tries an installed wheel from outside the source tree: ``python tests/installed.py PROJECT (compiled | reference)``.

What is imported must be what was installed, with its types, licenses and command, and run the kernels expected. Then
come the examples of the package as installed, and the tests of kernels, of statistics and of model files.
`make test-wheel` and the builds of wheels run it. It needs pytest, hypothesis, pandas and polars.
"""

import os
import subprocess
import sys
import sysconfig
import tempfile
from importlib.metadata import distribution
from pathlib import Path

EXAMPLES = ("kernels", "statistics", "beliefs", "families", "tally", "models.naive_bayes.naive_bayes")
TESTS = ("kernels", "statistics", "test_frozen_files.py", "test_versions.py")


def problems(project: Path, expected: str) -> list[str]:
    """What is wrong with the package that is imported."""
    import tallybayes as tb
    from tallybayes import kernels

    folder, found = Path(tb.__file__).parent, []
    if folder.is_relative_to(project / "src"):
        found.append(f"{folder} is the source tree, not an installed package")
    if ("reference" if kernels.implementation() == "reference" else "compiled") != expected:
        found.append(f"the kernels are {kernels.implementation()}, expected {expected} ones")
    installed = distribution("tallybayes")
    if installed.version != tb.__version__:
        found.append(f"the metadata say version {installed.version}, the package says {tb.__version__}")
    files = [str(path) for path in installed.files or ()]
    needed = ("tallybayes/py.typed", "_compiled.pyi", "page.html", "/LICENSE", "/LICENSE-UNICODE")
    found += [f"the wheel has no {end}" for end in needed if not any(name.endswith(end) for name in files)]
    junk = [name for name in files if name.startswith(("tests", "docs", "cpp", "benchmarks")) or name.endswith(".cpp")]
    if junk:
        found.append(f"the wheel has {junk[0]}, which nobody imports")
    script = Path(sysconfig.get_path("scripts")) / ("tally.exe" if os.name == "nt" else "tally")
    if not script.exists():
        found.append(f"there is no command {script}")
    tb.show_versions()
    return found


def main() -> int:
    project, expected = Path(sys.argv[1]).resolve(), sys.argv[2]
    with tempfile.TemporaryDirectory() as elsewhere:
        os.chdir(elsewhere)
        found = problems(project, expected)
        if found:
            sys.stderr.write("\n".join(found) + "\n")
            return 1
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow"]
        command += ["-c", str(project / "pyproject.toml"), "--rootdir", str(project)]
        examples = [*command, "--pyargs", *(f"tallybayes.{name}" for name in EXAMPLES)]
        tests = [*command, *(str(project / "tests" / "unit" / name) for name in TESTS)]
        done = [subprocess.run(each, check=False).returncode for each in (examples, tests)]
    return max(done)


if __name__ == "__main__":
    sys.exit(main())
