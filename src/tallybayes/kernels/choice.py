"""The choice between the compiled kernels, of one instruction set, and those in NumPy."""

from __future__ import annotations

import warnings
from importlib import import_module
from types import ModuleType

from tallybayes.kernels.reference import sums as reference_sums

__all__ = ["choose"]


def choose(wish: str | None) -> tuple[ModuleType, str]:
    """Return the module that does the work and its name, as the environment variable or the processor decides.

    Parameters
    ----------
    wish : str, optional
        The environment variable ``TALLYBAYES_KERNELS``.

    Examples
    --------
    >>> from tallybayes.kernels.choice import choose
    >>> choose("reference")[1]
    'reference'
    """
    if wish == "reference":
        return reference_sums, "reference"
    if wish not in (None, "", "baseline", "v3", "v4"):
        raise ValueError(
            f"the environment variable TALLYBAYES_KERNELS is {wish!r}, expected reference, baseline, v3 or v4; "
            "unset it to let the processor decide"
        )
    try:
        _compiled = import_module("tallybayes.kernels._compiled")
    except ImportError as error:
        if wish:
            raise ImportError(
                f"the environment variable TALLYBAYES_KERNELS asks for {wish}, but the compiled kernels cannot be "
                f"imported ({error}); install a C++ compiler and reinstall tallybayes, or unset the variable"
            ) from error
        warnings.warn(
            "the compiled kernels of tallybayes are missing, so the NumPy reference kernels run: same results, many "
            f"times slower ({error}). Install a C++ compiler (GCC 9, Clang 14 or newer) and run 'pip install "
            "--force-reinstall --no-deps --no-binary tallybayes tallybayes'; TALLYBAYES_KERNELS=reference is quiet.",
            UserWarning,
            stacklevel=3,
        )
        return reference_sums, "reference"
    built, available = _compiled.built_tiers(), _compiled.available_tiers()
    if wish and wish not in available:
        lacking = "this processor cannot run it" if wish in built else "it was not compiled"
        raise ValueError(
            f"the environment variable TALLYBAYES_KERNELS is {wish!r}, but {lacking} (available: "
            f"{', '.join(available) or 'reference'}); unset it, or compile all: TALLYBAYES_TIERS=all make setup"
        )
    if not available:
        warnings.warn(
            f"the compiled kernels of tallybayes were built for another processor ({', '.join(built)}), which has "
            "instructions that this one lacks, so the NumPy reference kernels run: same results, many times slower. "
            "Reinstall tallybayes on this machine; TALLYBAYES_TIERS=all compiles for every x86-64 processor.",
            UserWarning,
            stacklevel=3,
        )
        return reference_sums, "reference"
    tier = wish or available[-1]
    _compiled.use_tier(tier)
    return _compiled, f"compiled {tier}"
