"""The laws of adding and subtracting, for every statistics type on its own; and that no type was forgotten."""

import importlib
import pkgutil

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import tallybayes as tb
from tallybayes import testing
from tallybayes.distributions.parameter_distribution import ParameterDistribution
from tallybayes.families._shared.joint_gaussian import JointGaussian
from tallybayes.families.family import Family
from tallybayes.families.text import Text
from tallybayes.families.with_missing import WithMissing
from tallybayes.statistics.sufficient_statistics import Statistics
from tests.laws.catalog import BELIEFS, FAMILIES, STATISTICS

every_statistic = pytest.mark.parametrize("examples", STATISTICS.values(), ids=STATISTICS)


def every_subclass(base):
    for package in ("families", "distributions", "statistics"):
        for module in pkgutil.iter_modules(importlib.import_module(f"tallybayes.{package}").__path__):
            importlib.import_module(f"tallybayes.{package}.{module.name}")
    for name in dir(tb):
        getattr(tb, name)
    found, waiting = set(), [base]
    while waiting:
        children = waiting.pop().__subclasses__()
        waiting += children
        found |= {child for child in children if child.__module__.startswith("tallybayes.")}
    return found


def test_every_type_is_in_the_catalog():
    whole = {kind for kind in every_subclass(Family) if "__dataclass_fields__" in vars(kind)}  # others are made from
    whole -= {WithMissing, Text}  # never counted themselves; what they are made of is, and text in a whole model
    whole -= {JointGaussian}  # of which every column is counted in a line of its own
    whole -= {tb.Autoregressive}  # a line like LinearGaussian, of steps that only a chain lays side by side
    assert whole == {type(family) for family in FAMILIES.values()}
    assert every_subclass(ParameterDistribution) == {type(belief) for belief, _ in BELIEFS.values()}
    assert {kind.__name__ for kind in every_subclass(Statistics)} == {name.split(",")[0] for name in STATISTICS}


@every_statistic
@given(data=st.data())
def test_addition(examples, data):
    testing.check_addition(*data.draw(examples), exact=True)


@every_statistic
@given(data=st.data())
def test_forgetting(examples, data):
    a, b, _, zero = data.draw(examples)
    testing.check_forgetting(a, b, zero, exact=True)


@every_statistic
@given(data=st.data())
def test_never_added_is_refused(examples, data):
    a, b, _, _ = data.draw(examples)
    assume(b.group_weights().sum() > 0)
    testing.check_refusal(a, b)


@every_statistic
@given(data=st.data(), factor=st.sampled_from([0.0, 0.5, 1.0, 2.0, 8.0]))
def test_scaling_distributes_over_addition(examples, data, factor):
    a, b, _, zero = data.draw(examples)
    testing.assert_statistics_close((a + b).scale(factor), a.scale(factor) + b.scale(factor), held=a + b, exact=True)
    testing.assert_statistics_close(a.scale(2.0), a + a, exact=True)
    testing.assert_statistics_close(a.scale(0.0), zero, held=a, exact=True)


@every_statistic
@given(data=st.data())
def test_pooling_is_adding_the_groups(examples, data):
    a, b, _, _ = data.draw(examples)
    testing.assert_statistics_close((a + b).pool_groups(), a.pool_groups() + b.pool_groups(), exact=True)
    if len(a.given_shape) == 1:
        groups = [a.take(0, np.array([group])).reshape_groups(()) for group in range(a.given_shape[0])]
        testing.assert_statistics_close(sum(groups), a.pool_groups(), exact=True)


@every_statistic
@given(data=st.data())
def test_moving_groups_commutes_with_adding(examples, data):
    a, b, _, _ = data.draw(examples)
    assume(a.given_shape)
    n = a.given_shape[0]
    source = np.array(data.draw(st.lists(st.integers(-1, n - 1), min_size=1, max_size=4)))
    testing.assert_statistics_close((a + b).take(0, source), a.take(0, source) + b.take(0, source), exact=True)
