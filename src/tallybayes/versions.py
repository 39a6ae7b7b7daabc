"""Versions of the package, its dependencies and the active kernels, for bug reports."""

from __future__ import annotations

import platform
import sys
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from tallybayes import __version__, kernels
from tallybayes.kernels.arguments import threads as n_threads

__all__ = ["show_versions"]

_REQUIRED = ("numpy", "scipy", "scikit-learn", "narwhals", "pyarrow")
_OPTIONAL = ("matplotlib", "pandas", "polars", "networkx")


def show_versions() -> None:
    """Print the versions of the package, of Python and of its dependencies, and the active kernels.

    Versions are read from the package metadata without importing the libraries.

    Examples
    --------
    >>> import tallybayes as tb
    >>> tb.show_versions()
    tallybayes    ...
    kernels       ...
    processor     ...
    system        ...
    Python        3...
    <BLANKLINE>
    numpy         2...
    """
    lines = {
        "tallybayes": __version__,
        "kernels": _kernels(),
        "processor": _processor(),
        "system": platform.platform(),
        "Python": f"{platform.python_version()} ({platform.python_implementation()})",
        "": "",
        **{library: _version(library) for library in (*_REQUIRED, *_OPTIONAL)},
    }
    sys.stdout.write("".join(f"{name:14}{value}".rstrip() + "\n" for name, value in lines.items()))


def _kernels() -> str:
    """Return the active kernels, the alternatives and the number of threads."""
    name = kernels.implementation()
    if name == "reference":
        return "reference (NumPy), one thread"
    compiled = import_module("tallybayes.kernels._compiled")
    others = [tier for tier in compiled.available_tiers() if tier not in name]
    alternatives = f" (also {', '.join(others)})" if others else ""
    threads = n_threads() or compiled.available_threads()
    return f"{name}{alternatives}, built by {compiled.compiler()}, {threads} thread{'s' if threads > 1 else ''}"


def _processor() -> str:
    """Return the name of the processor, without starting a process."""
    name = platform.processor()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line for line in cpuinfo.read_text(errors="replace").splitlines() if line.startswith("model name")]
        name = names[0].partition(":")[2].strip() if names else name
    machine = platform.machine()
    return f"{name} ({machine})" if name not in ("", machine) else machine


def _version(library: str) -> str:
    """Return the installed version of a library."""
    try:
        return version(library)
    except PackageNotFoundError:
        return "not installed"
