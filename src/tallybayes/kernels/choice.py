"""Selection of the compiled kernels for an instruction set, or of the NumPy reference."""

from __future__ import annotations

import warnings
from importlib import import_module
from types import ModuleType

from tallybayes.kernels.reference import sums as reference_sums

__all__ = ["choose"]


def choose(requested: str | None) -> tuple[ModuleType, str]:
    """Return the module of the kernels and its name, selected by an environment variable or the processor.

    Parameters
    ----------
    requested : str, optional
        Value of the environment variable ``TALLYBAYES_KERNELS``.

    Examples
    --------
    >>> from tallybayes.kernels.choice import choose
    >>> choose("reference")[1]
    'reference'
    """
    if requested == "reference":
        return reference_sums, "reference"
    if requested not in (None, "", "baseline", "v3", "v4"):
        raise ValueError(
            f"the environment variable TALLYBAYES_KERNELS is {requested!r}, expected reference, baseline, v3 or v4; "
            "unset it to select by processor"
        )
    try:
        _compiled = import_module("tallybayes.kernels._compiled")
    except ImportError as error:
        if requested:
            raise ImportError(
                f"the environment variable TALLYBAYES_KERNELS is {requested}, but the compiled kernels cannot be "
                f"imported ({error}); install a C++ compiler and reinstall tallybayes, or unset the variable"
            ) from error
        warnings.warn(
            "the compiled kernels of tallybayes are missing, so the NumPy reference kernels run: same results, many "
            f"times slower ({error}).\n    Install a C++ compiler (GCC 9, Clang 14 or newer) and run 'pip install "
            "--force-reinstall --no-deps --no-binary tallybayes tallybayes'; TALLYBAYES_KERNELS=reference is quiet.",
            UserWarning,
            stacklevel=4,
        )
        return reference_sums, "reference"
    built = _compiled.built_tiers()
    available = _compiled.available_tiers()
    if requested and requested not in available:
        reason = "this processor cannot run it" if requested in built else "it was not compiled"
        raise ValueError(
            f"the environment variable TALLYBAYES_KERNELS is {requested!r}, but {reason} (available: "
            f"{', '.join(available) or 'reference'}); unset it, or compile all: TALLYBAYES_TIERS=all make setup"
        )
    if not available:
        warnings.warn(
            f"the compiled kernels of tallybayes were built for another processor ({', '.join(built)}) with "
            "instructions that this one does not have, so the NumPy reference kernels run: same results, many "
            "times slower.\n    Reinstall tallybayes here; TALLYBAYES_TIERS=all compiles for every x86-64 processor.",
            UserWarning,
            stacklevel=4,
        )
        return reference_sums, "reference"
    tier = requested or available[-1]
    _compiled.use_tier(tier)
    return _compiled, f"compiled {tier}"
