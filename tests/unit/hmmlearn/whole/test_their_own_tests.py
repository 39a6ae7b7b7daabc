"""hmmlearn's own tests of these models, run against ours: each passes, or is in the table with the reason.

Its test files are loaded with the names of the models standing for ours. A test that fails and is not in the table
fails here, and so does one that is in the table and passes.
"""

import importlib.util
import re
from pathlib import Path
from types import ModuleType
from unittest import mock

import numpy as np
import pytest

hmmlearn = pytest.importorskip("hmmlearn", reason="hmmlearn, whose tests these are, is not installed")
theirs = pytest.importorskip("hmmlearn.hmm")

import tallybayes.hmmlearn as ours  # noqa: E402

WRITTEN_FOR = "0.3"  # the version whose tests the table was written for

# Of what is hmmlearn's own here, too (monitors, the base class, helpers), there is nothing to test.
FILES = ["test_categorical_hmm", "test_gaussian_hmm", "test_multinomial_hmm", "test_poisson_hmm"]
FILES += ["test_gmm_hmm_new", "test_gmm_hmm_multisequence"]

# The tests that cannot pass, by the name of the function or of one of its parametrisations, and why.
CANNOT_PASS: dict[str, str] = {}

pytestmark = pytest.mark.filterwarnings("ignore")  # as these tests are run there

same_version = hmmlearn.__version__.startswith(f"{WRITTEN_FOR}.")


@pytest.fixture(autouse=True)
def _listed(request):
    np.random.seed(0)  # noqa: NPY002 they draw from the global generator
    for name in (request.node.originalname, request.node.name):
        if name in CANNOT_PASS:
            request.node.add_marker(pytest.mark.xfail(reason=CANNOT_PASS[name], strict=True))


def load_against_ours(name: str) -> ModuleType:
    """One of hmmlearn's files of tests, its models being ours."""
    spec = importlib.util.find_spec(f"hmmlearn.tests.{name}")
    assert spec is not None
    loaded = importlib.util.module_from_spec(spec)
    replaced = {kind: getattr(ours, kind) for kind in ours.__all__}
    with mock.patch.multiple(theirs, **replaced):
        spec.loader.exec_module(loaded)
    if hasattr(loaded, "hmm"):
        loaded.hmm = ours  # whose names are looked up when a test runs
    for kind in [thing for thing in vars(loaded).values() if isinstance(thing, type)]:
        for function in vars(kind).values():  # what hmmlearn expects to fail has to pass here
            marks = getattr(function, "pytestmark", None)
            if marks is not None:
                function.pytestmark = [mark for mark in marks if mark.name != "xfail"]
    return loaded


def test_the_handbook_has_the_same_table():
    chapter = Path(__file__).parents[4] / "docs" / "from-hmmlearn.md"
    told = dict(re.findall(r"^\| `(test_[^`]+)` \| (.+) \|$", chapter.read_text(encoding="utf-8"), flags=re.MULTILINE))
    assert told == CANNOT_PASS


@pytest.mark.skipif(same_version, reason="they run")
def test_hmmlearns_own_tests():
    pytest.skip(f"the table is of hmmlearn {WRITTEN_FOR}, and this is {hmmlearn.__version__}")


if same_version:
    with np.errstate():  # its tests set what NumPy says of underflow, for all that run after them
        for _file in FILES:
            for _name, _thing in vars(load_against_ours(_file)).items():
                if _name.startswith("Test"):
                    globals()[f"{_name}_{_file}"] = pytest.mark.slow(_thing)
                elif _name.startswith("test_"):
                    assert _name not in globals(), "two files have a test of the same name"
                    globals()[_name] = pytest.mark.slow(_thing)
