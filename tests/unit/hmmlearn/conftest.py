"""Small matrices, many of them: threads of linear algebra would only wait for each other."""

import pytest
from threadpoolctl import threadpool_limits


@pytest.fixture(scope="module", autouse=True)
def _one_thread():
    with threadpool_limits(limits=1):
        yield
