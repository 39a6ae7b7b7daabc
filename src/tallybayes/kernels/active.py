"""The active implementation of the kernels: the compiled module or the NumPy reference.

`module` is selected when the package is imported. Tests and benchmarks replace it temporarily.
"""

from __future__ import annotations

import os
from types import ModuleType
from typing import Any

from tallybayes.kernels.choice import choose
from tallybayes.kernels.reference import sums as _reference_sums

__all__ = ["implementation_for", "module", "name"]

module: Any
module, name = choose(os.environ.get("TALLYBAYES_KERNELS"))


def implementation_for(reference: ModuleType) -> Any:
    """Return the compiled module if it is active, otherwise the given module of the reference."""
    return reference if module is _reference_sums else module
