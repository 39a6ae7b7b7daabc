"""Columns that repeat others are found in time proportional to the number of columns."""

import time
from types import SimpleNamespace

import numpy as np

from tallybayes.models.inputs.uninformative_columns import ColumnValues, duplicate_columns


def labels(name, codes):
    values, weight = np.unique(codes[codes >= 0], return_counts=True)
    return ColumnValues(name, SimpleNamespace(values=values, weight=weight), int((codes >= 0).sum()), codes)


def test_other_names_for_the_same_values_are_duplicates():
    codes = np.random.default_rng(0).integers(0, 4, 200)
    holes = np.where(np.arange(200) == 7, -1, codes)
    columns = [labels("a", codes), labels("b", 3 - codes), labels("c", holes), labels("d", np.roll(codes, 1))]
    columns += [labels("e", holes), labels("f", (codes + 1) % 4)]
    found = {(one.name, other.name) for one, other in duplicate_columns(columns)}
    assert found == {("b", "a"), ("f", "a"), ("e", "c")}


def test_time_is_proportional_to_the_number_of_columns():
    rng = np.random.default_rng(0)
    columns = [labels(f"c{number}", rng.permutation(np.repeat(np.arange(4), 30))) for number in range(1200)]

    def seconds(n):
        start = time.process_time()
        assert not list(duplicate_columns(columns[:n]))
        return time.process_time() - start

    few, many = (min(seconds(n) for _ in range(3)) for n in (100, 1200))
    assert many < 40 * few  # 12 times the columns, which took 144 times as long
