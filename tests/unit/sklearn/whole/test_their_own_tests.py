"""scikit-learn's own tests of these estimators, run against ours: each passes, or is in the table with the reason.

Its test files are loaded with the names of the estimators standing for ours. A test that fails and is not in the table
fails here, and so does one that is in the table and passes.
"""

import importlib
import importlib.util
import re
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
import sklearn

import tallybayes.sklearn as ours

WRITTEN_FOR = "1.9"  # the version whose tests the table was written for

FILES = {
    "sklearn.naive_bayes": "sklearn.tests.test_naive_bayes",
    "sklearn.discriminant_analysis": "sklearn.tests.test_discriminant_analysis",
    "sklearn.neighbors": "sklearn.neighbors.tests.test_nearest_centroid",
    "sklearn.mixture": "sklearn.mixture.tests.test_gaussian_mixture",
}

# The tests that cannot pass, by the name of the function or of one of its parametrisations, and why.
CANNOT_PASS = {
    "test_gaussian_mixture_all_init_does_not_estimate_gaussian_parameters": "it counts calls of a private helper",
}

# Other arrays than NumPy's are not taken, nor claimed by the tags.
NOT_RUN = dict.fromkeys(
    [
        "test_gnb_array_api_compliance",
        "test_gaussian_mixture_array_api_compliance",
        "test_gaussian_mixture_raises_where_array_api_not_implemented",
    ],
    "not run: it is about other arrays than NumPy's",
)

pytestmark = pytest.mark.filterwarnings("ignore")  # as these tests are run there; those that look at warnings still do

same_version = sklearn.__version__.startswith(f"{WRITTEN_FOR}.")


@pytest.fixture
def global_random_seed():
    return 42


@pytest.fixture(params=[np.float64, np.float32])
def global_dtype(request):
    return request.param


SLOW = dict.fromkeys(
    ["test_monotonic_likelihood", "test_multiple_init", "test_init", "test_gaussian_mixture_fit_best_params"],
    pytest.mark.slow,
)
SLOW |= {"test_check_accuracy_on_digits": pytest.mark.slow, "test_gaussian_mixture_fit": pytest.mark.slow_after(1)}
SLOW |= {"test_warm_start": pytest.mark.slow_after(1), "test_gaussian_mixture_fit_predict": pytest.mark.slow_after(4)}
SLOW |= {"test_fitted_precision_covariance_concistency": pytest.mark.slow_after(4)}


@pytest.fixture(autouse=True)
def _listed(request):
    name = request.node.originalname, request.node.name
    for one in name:
        if one in CANNOT_PASS:
            request.node.add_marker(pytest.mark.xfail(reason=CANNOT_PASS[one], strict=True))


def load_against_ours(module: str, tests: str) -> dict[str, object]:
    """The test functions of one of scikit-learn's files, its estimators being ours."""
    spec = importlib.util.find_spec(tests)
    assert spec is not None
    loaded = importlib.util.module_from_spec(spec)
    home = importlib.import_module(module)
    replaced = {name: getattr(ours, name) for name in ours.__all__ if hasattr(home, name)}
    assert replaced
    with mock.patch.multiple(home, **replaced):
        spec.loader.exec_module(loaded)
    found = {name: thing for name, thing in vars(loaded).items() if name.startswith("test_") and name not in NOT_RUN}
    for name, function in found.items():
        marks = getattr(function, "pytestmark", [])
        function.pytestmark = [as_list(mark) if mark.name == "parametrize" else mark for mark in marks]
        if name in SLOW:
            function.pytestmark.append(SLOW[name].mark)
    return found


def as_list(mark: pytest.Mark) -> pytest.Mark:
    """The same parametrisation, of a list: pytest warns of generators."""
    names, values = mark.args
    return pytest.mark.parametrize(names, list(values), **mark.kwargs).mark


def test_the_handbook_has_the_same_table():
    chapter = Path(__file__).parents[4] / "docs" / "from-scikit-learn.md"
    told = dict(re.findall(r"^\| `(test_\w+)` \| (.+) \|$", chapter.read_text(encoding="utf-8"), flags=re.MULTILINE))
    assert told == CANNOT_PASS | NOT_RUN


@pytest.mark.skipif(same_version, reason="they run")
def test_scikit_learns_own_tests():
    pytest.skip(f"the table is of scikit-learn {WRITTEN_FOR}, and this is {sklearn.__version__}")


if same_version:
    for _module, _tests in FILES.items():
        _found = load_against_ours(_module, _tests)
        assert not set(_found) & set(globals()), "two files have a test of the same name"
        globals().update(_found)
