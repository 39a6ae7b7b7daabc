"""Families, beliefs, rules, factors and schemas are values: they compare, hash, print, copy and travel."""

import copy

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone

import tallybayes as tb
from tallybayes import testing
from tests.laws.catalog import BELIEFS, FAMILIES

VALUES = {
    **FAMILIES,
    **{name: belief for name, (belief, _) in BELIEFS.items()},
    "BDeu": tb.BDeu(4.0),
    "BDeu, default": tb.BDeu(),
    "K2": tb.K2(),
    "BDe": tb.BDe(tb.BayesianNetwork.from_tables({"a": []}, {"a": ["u", "v"]}, {"a": [1 / 3, 2 / 3]}), 4),
    "Factor": tb.Factor(("length", "width"), "kind", tb.Gaussian(), tb.NormalInverseGamma(0, 1, 2, 3)),
    "Factor without prior": tb.Factor(0, (), tb.Categorical(levels=(True, False))),
    "Schema": tb.Schema({"from": "state", "to": "state"}, sorted_domains=("state",)),
    "Schema, ordered only": tb.Schema(sorted_domains=("state",)),
    "Beta of arrays": tb.Beta([[1.0, 2.0], [3.0, 0.1]], [0.5, 1 / 3]),
    "Dirichlet of columns": tb.Dirichlet([1.0, 2.0, 3.0], sizes=(1, 2)),
    "Gamma of thirds": tb.Gamma(1 / 3, 2 / 3),
    "posterior of hypotheses": tb.fit_distribution([1, 1, 0], tb.Bernoulli()).posterior(
        tb.Hypotheses({"fair": 0.5, "bent": 0.9})
    ),
    "hypotheses on a grid": tb.Hypotheses.grid(np.linspace(0.1, 0.9, 5)),
    "hypotheses, one impossible": tb.Hypotheses({"fair": 0.5, "never": 0.1}, prior=[1.0, 0.0]),
    "hypotheses about labels": tb.Hypotheses({"fair": {"a": 0.5, "b": 0.5}, "bent": {"a": 0.9, "b": 0.1}}),
}
every_value = pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)


@every_value
def test_a_value_travels(value):
    testing.check_value(value)


@every_value
def test_estimators_with_values_can_be_cloned(value):
    class Estimator(BaseEstimator):
        def __init__(self, setting=None):
            self.setting = setting

    twin = clone(Estimator(setting=value))
    assert twin.setting == value
    assert repr(twin) == repr(Estimator(setting=value))
    assert clone(value, safe=False) == value


def test_different_values_differ():
    values = [value for name, value in VALUES.items() if name != "BDeu, default"]
    for place, value in enumerate(values):
        assert [other == value for other in values] == [index == place for index in range(len(values))]
    assert tb.Beta(1, 2) != tb.Beta(2, 1)
    assert tb.Beta(1, 2) == tb.Beta(1.0, np.float64(2))
    assert tb.Beta([1, 2], 1) != tb.Beta([[1, 2]], 1)
    assert tb.BDeu() == tb.BDeu(1)
    assert len({tb.Gaussian(), tb.Gaussian(), tb.TiedGaussian()}) == 2


def evaluates_back(value):
    """Whether all that a value holds can be read in its repr: no arrays, which are shown in short."""
    if isinstance(value, tb.Hypotheses | tb.BDe):
        return False  # shows probabilities, or how large a network is, not how it was made
    return not any(isinstance(part, np.ndarray) and part.ndim for part in value._fields().values())


@pytest.mark.parametrize("value", [v for v in VALUES.values() if evaluates_back(v)], ids=repr)
def test_repr_evaluates_back(value):
    names = {name: getattr(tb, name) for name in dir(tb)}
    back = eval(repr(value), names)
    assert repr(back) == repr(value)
    for name, part in value._fields().items():
        if isinstance(part, np.ndarray):  # shown to twelve digits
            assert getattr(back, name) == pytest.approx(part.item(), rel=1e-11)
        else:
            assert getattr(back, name) == part


@every_value
def test_values_cannot_be_changed(value):
    for name, part in value._fields().items():
        with pytest.raises(AttributeError):
            setattr(value, name, part)
        if isinstance(part, np.ndarray) and part.size:
            with pytest.raises(ValueError, match="read-only"):
                part[...] = 0
    assert copy.copy(value) == value


def test_hypotheses_still_learn_after_a_journey():
    from tallybayes._utils.frozen_value import from_config

    coin = tb.fit_distribution([1, 1, 0], tb.Bernoulli())
    prior = tb.Hypotheses({"fair": 0.5, "bent": 0.9}, prior={"fair": 0.8, "bent": 0.2})
    back = from_config(prior.to_config())
    assert coin.posterior(back).probabilities == coin.posterior(prior).probabilities
