"""Items computed ahead, and one thread for linear algebra."""

import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from tallybayes._utils.threads import computed_ahead, single_blas_thread


def test_items_are_computed_in_order_in_another_thread():
    threads = set()

    def item(number):
        threads.add(threading.get_ident())
        return number**2

    assert list(computed_ahead(map(item, range(5)))) == [0, 1, 4, 9, 16]
    assert threading.get_ident() not in threads
    assert list(computed_ahead([])) == []


def test_errors_reach_the_caller():
    with pytest.raises(ZeroDivisionError):
        list(computed_ahead(1 / number for number in (1, 0)))


def test_blas_uses_one_thread_within_the_context():
    np.ones((2, 2)) @ np.ones((2, 2))
    before = [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]
    with single_blas_thread():
        assert {library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"} <= {1}
    assert [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"] == before
