"""Two paces: `make test` is quick, `make test-slow` runs what takes long and draws more examples.

Hypothesis draws the same examples every time; ``--hypothesis-profile=deep`` draws many, and others each time.
Where the environment variable TALLYBAYES_TEST_ORDER is set, files are tried in an order that is drawn by it.
"""

import gc
import os
import random
from collections import Counter
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

from tests.examples import DEEP, QUICK, THOROUGH

always = {
    "database": None,
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
}
settings.register_profile("quick", derandomize=True, max_examples=QUICK, **always)
settings.register_profile("thorough", derandomize=True, max_examples=THOROUGH, **always)
settings.register_profile("deep", max_examples=DEEP, **always)
settings.load_profile("quick")

ORDER = os.environ.get("TALLYBAYES_TEST_ORDER")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Say the order, also under -q, so that what failed in it can be tried in it again."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if ORDER and reporter is not None:  # processes of pytest-xdist have none
        reporter.write_line(f"files in the order of TALLYBAYES_TEST_ORDER={ORDER}")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected stays to the end: looking through it for garbage, again and again, took a tenth of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of tests that say so, only the first few cases are quick: the others are slow."""
    seen: Counter[str] = Counter()
    for item in items:
        few = item.get_closest_marker("slow_after")
        if few is not None:
            name = item.nodeid.partition("[")[0]
            seen[name] += 1
            if seen[name] > few.args[0]:
                item.add_marker(pytest.mark.slow)
    if ORDER:  # the same in all processes of pytest-xdist; tests within a file stay as they are
        places = {item.path: random.Random(f"{ORDER} {item.nodeid.partition('::')[0]}").random() for item in items}
        items.sort(key=lambda item: places[item.path])
