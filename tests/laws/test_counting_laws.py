"""The laws of counting, for every family and for whole models."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tallybayes import kernels, testing
from tallybayes.families.continuous import ContinuousFamily
from tallybayes.kernels import active
from tallybayes.kernels.reference import sums as reference_sums
from tallybayes.tally.factor import Factor
from tallybayes.testing import strategies
from tests.laws.catalog import FAMILIES, models

TABLES = {name: strategies.rows(family) for name, family in FAMILIES.items()} | {"whole model": models()}
every_table = pytest.mark.parametrize("tables", TABLES.values(), ids=TABLES)


@pytest.mark.slow
@every_table
@given(data=st.data())
def test_addition(tables, data):
    rows = data.draw(tables)
    a, b, c = (rows.take(part).count() for part in data.draw(strategies.splits(len(rows))))
    testing.check_addition(a, b, c, rows.take([]).count(), exact=rows.exact)


@pytest.mark.slow
@every_table
@given(data=st.data())
def test_forgetting(tables, data):
    rows = data.draw(tables)
    a, b = (rows.take(part).count() for part in data.draw(strategies.splits(len(rows), 2)))
    testing.check_forgetting(a, b, rows.take([]).count(), exact=rows.exact)


GAUSSIANS = [name for name, family in FAMILIES.items() if isinstance(family, ContinuousFamily) and "Log" not in name]


@pytest.mark.parametrize("name", GAUSSIANS)
@given(data=st.data())
def test_forgetting_fractional_weights_of_constant_columns(name, data):
    n = data.draw(st.integers(2, 30))
    constant = data.draw(st.integers(1, 9)) * data.draw(st.sampled_from([1.0, 0.1, 1e9]))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    table = {"x0": np.full(n, constant), "x1": rng.normal(size=n)}
    rows = testing.WeightedRows(table, (Factor(("x0", "x1"), (), FAMILIES[name]),), 3.0 * rng.random(n))
    a, b = (rows.take(part).count() for part in data.draw(strategies.splits(n, 2)))
    testing.check_forgetting(a, b, rows.take([]).count())


@pytest.mark.slow
@every_table
@given(data=st.data())
def test_never_added_is_refused(tables, data):
    rows = data.draw(tables)
    part, more = data.draw(strategies.splits(len(rows), 2))
    extra = rows.take(more).count()
    assume(any(statistic.group_weights().sum() > 0 for statistic in extra.statistics))
    testing.check_refusal(rows.take(part).count(), extra)


@pytest.mark.slow
@every_table
@given(data=st.data())
def test_split(tables, data):
    rows = data.draw(tables)
    testing.check_split(rows, data.draw(strategies.splits(len(rows))))


@every_table
@given(data=st.data())
def test_weights(tables, data):
    rows = data.draw(tables)
    times = data.draw(st.lists(st.integers(0, 3), min_size=len(rows), max_size=len(rows)))
    testing.check_weights(rows, np.array(times, dtype=int))


@pytest.mark.slow
@every_table
@given(data=st.data())
def test_weight_zero(tables, data):
    rows = data.draw(tables)
    testing.check_absent(rows, data.draw(strategies.junk(rows)))


@every_table
@given(data=st.data())
def test_order(tables, data):
    rows = data.draw(tables)
    testing.check_order(rows, data.draw(st.permutations(range(len(rows)))))


@pytest.mark.slow
@every_table
@given(data=st.data())
def test_names(tables, data):
    rows = data.draw(tables)
    testing.check_names(rows, data.draw(strategies.renamings(rows)))


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
@given(data=st.data())
def test_soft_groups(family, data):
    testing.check_soft_groups(data.draw(strategies.rows(family, n_given=1)))


@every_table
@given(data=st.data())
def test_files(tables, data):
    testing.check_file(data.draw(tables).count())


@pytest.mark.slow
@pytest.mark.skipif(kernels.implementation() == "reference", reason="only one implementation of the kernels is here")
@every_table
@given(data=st.data())
def test_kernels(tables, data):
    testing.check_kernels(data.draw(tables), reference_sums, active.module)
