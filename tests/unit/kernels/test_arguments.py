"""How many threads work: as said, as the environment says, or as there are cores; with the same result."""

import os
import subprocess
import sys

import numpy as np
import pytest

import tallybayes as tb
from tallybayes.kernels.arguments import threads
from tests.unit.kernels.kernel_cases import needs_compiled


@pytest.fixture(autouse=True)
def all_cores_again():
    yield
    tb.set_threads(0)


def test_as_many_as_said_unless_asked_for_others():
    tb.set_threads(3)
    assert (threads(), threads(2)) == (3, 2)
    tb.set_threads(0)
    assert threads() == 0


def test_no_result_changes():
    X, y = np.random.default_rng(0).normal(size=(5000, 3)), np.arange(5000) % 3
    found = []
    for n in (1, 2, 0):
        tb.set_threads(n)
        found.append(tb.GaussianDiscriminant().fit(X, y).predict_log_proba(X))
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])


@pytest.mark.parametrize("wrong", [-1, 1.5, True, "2x"])
def test_what_is_no_number_of_threads_is_refused(wrong):
    with pytest.raises(tb.DataError, match="expected a whole number"):
        tb.set_threads(wrong)


@needs_compiled
@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    ("said", "shown"), [("1", "1 thread\n"), ("", "thread"), ("many", "TALLYBAYES_THREADS is 'many'")]
)
def test_what_the_environment_says(said, shown):
    code = "import tallybayes as tb; tb.show_versions()"
    environment = {**os.environ, "TALLYBAYES_THREADS": said, "TALLYBAYES_KERNELS": ""}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert shown in done.stdout + done.stderr
