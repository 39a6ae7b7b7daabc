"""Set up an environment for development, a step at a time, and show the progress: `make setup` and `make demo` run it.

``python tools/install.py VENV packages [EXTRA …] [-- PIP OPTION …]`` installs what pyproject.toml lists: the package's
own requirements and those of the extras named. ``python tools/install.py VENV kernels`` compiles the kernels, and
installs the package in place. What pip and the compiler print is kept in build/log.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOGS = ROOT / "build" / "log"


def show(line: str, last: bool = False) -> None:
    """Replace the line on a terminal; elsewhere print the last one alone."""
    if sys.stderr.isatty():
        sys.stderr.write("\r\033[K" + line[: shutil.get_terminal_size().columns - 1] + "\n" * last)
    elif last:
        sys.stderr.write(line + "\n")
    sys.stderr.flush()


def run(name: str, title: str, command: list[str], progress: Callable[[str], str | None]) -> str:
    """Run a command, show its progress, and return its output; if it fails, print the end of the output and exit."""
    LOGS.mkdir(parents=True, exist_ok=True)
    log, start, output = LOGS / f"{name}.log", time.monotonic(), []
    shown = start
    show(f"{title} ...", last=not sys.stderr.isatty())
    pipe, both = subprocess.PIPE, subprocess.STDOUT
    with (
        log.open("w", encoding="utf-8") as kept,
        subprocess.Popen(command, cwd=ROOT, stdout=pipe, stderr=both, text=True, errors="replace") as process,
    ):
        assert process.stdout is not None
        for line in process.stdout:
            kept.write(line)
            output.append(line)
            found = progress(line)
            if found:
                late = time.monotonic() - shown > 10  # where lines cannot be replaced, a sign of life now and then
                show(f"{title}: {found}", last=late and not sys.stderr.isatty())
                shown = time.monotonic() if late else shown
    if process.returncode:
        show(f"{title}: failed; the end of {log.relative_to(ROOT)}:", last=True)
        sys.stderr.write("".join(output[-40:]))
        raise SystemExit(process.returncode)
    show(f"{title}: done in {time.monotonic() - start:.0f} s", last=True)
    return "".join(output)


def requirements(extras: list[str]) -> Iterator[str]:
    """Return the requirements of the package and of some extras, those of other extras resolved."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    if not extras:
        yield from project["dependencies"]
    for extra in extras:
        for part in project["optional-dependencies"][extra]:
            own = re.fullmatch(r"tallybayes\[(.*)\]", part)
            yield from requirements(own[1].split(",")) if own else [part]


def of_pip(line: str) -> str | None:
    """What pip is doing."""
    if found := re.match(r"\s*(Collecting|Downloading|Using cached|Building wheel for) (\S+)", line):
        return f"{found[1].lower()} {found[2].rsplit('/', 1)[-1]}"
    if found := re.match(r"Installing collected packages: (.*)", line):
        return f"installing {found[1].count(',') + 1} packages"
    return None


def of_compiler(line: str) -> str | None:
    """How many files are compiled, of all."""
    found = re.search(r"\[(\d+)/(\d+)\] (Building|Linking)", line)
    return f"{found[1]} of {found[2]} compiled" if found else None


def main() -> None:
    """Install the packages, or the kernels."""
    venv, step, *rest = sys.argv[1:]
    python = str(Path(venv) / "bin" / "python")
    cut = rest.index("--") if "--" in rest else len(rest)
    extras, options = rest[:cut], rest[cut + 1 :]
    # Only what is imported needs bytecode, and the first import writes it.
    pip = [python, "-m", "pip", "install", "--disable-pip-version-check", "--no-compile", "--progress-bar=off"]
    if step == "packages":
        wanted = [*requirements([]), *(requirements(extras) if extras else ())]
        run("packages", f"Packages ({', '.join(extras) or 'required'})", [*pip, *options, *wanted], of_pip)
        return
    build = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["build-system"]["requires"]
    run("tools", "Build tools", [*pip, *build], of_pip)
    ask = "from scikit_build_core.build import get_requires_for_build_editable as r; print(*r(), sep='\\n')"
    asked = subprocess.run([python, "-c", ask], cwd=ROOT, capture_output=True, text=True, check=True)
    if more := asked.stdout.split():  # cmake and ninja, where those of the system are missing or too old
        run("tools", "CMake and Ninja", [*pip, *more], of_pip)
    install = [*pip, "--verbose", "--no-deps", "--no-build-isolation", "--editable", "."]
    output = run("kernels", "Kernels", install, of_compiler)
    if "could not be built" in output:
        sys.stderr.write("The kernels could not be compiled; NumPy kernels will run, many times slower. Why:\n")
        sys.stderr.write("".join(line + "\n" for line in output.splitlines() if re.search(r"error|Error", line)[:20]))


if __name__ == "__main__":
    main()
