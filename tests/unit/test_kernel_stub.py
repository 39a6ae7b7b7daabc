"""tools/kernel_stub.py: the stub of the compiled kernels is the generated one, and the reference has its parameters."""

from __future__ import annotations

import ast
import importlib.util
from difflib import unified_diff
from pathlib import Path
from types import ModuleType

import pytest

from tests.unit.kernels.kernel_cases import needs_compiled

FILE = Path(__file__).resolve().parents[2] / "tools" / "kernel_stub.py"


@pytest.fixture(scope="module")
def kernel_stub() -> ModuleType:
    spec = importlib.util.spec_from_file_location("tools_kernel_stub", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@needs_compiled
@pytest.mark.skipif(importlib.util.find_spec("ruff") is None, reason="the stub is formatted by ruff")
def test_the_stub_is_the_generated_one(kernel_stub: ModuleType) -> None:
    pytest.importorskip("nanobind.stubgen", reason="nanobind is not installed")
    written = kernel_stub.STUB.read_text(encoding="utf-8").splitlines()
    lines = list(unified_diff(written, kernel_stub.stub().splitlines(), "stub", "generated", "", "", 0, ""))
    assert not lines, "run `make kernel-stub`, or change these lines:\n" + "\n".join(lines)


def test_the_reference_has_the_parameters_of_the_compiled_functions(kernel_stub: ModuleType) -> None:
    reference, _ = kernel_stub.reference_functions()
    compiled = dict(kernel_stub.functions(ast.parse(kernel_stub.STUB.read_text(encoding="utf-8"))))
    differ = {
        name
        for name in compiled.keys() & reference.keys()
        if [a.arg for a in compiled[name].args.args] != [a.arg for a in reference[name].args.args]
    }
    assert differ == {"PartlyKnown.answer", "count_texts"}  # another name; weights, which only the reference has
    alone = {name for name in compiled if "." not in name} - reference.keys()
    chains = {"filter", "best_paths", "log_likelihood", "draw_paths", "posterior", "expected", "viterbi"}
    assert alone - {f"chain_{name}" for name in chains} == {  # of chains, the reference takes one value
        "available_threads",
        "available_tiers",
        "built_tiers",
        "compiler",
        "use_tier",
        "pack_words",
    }
