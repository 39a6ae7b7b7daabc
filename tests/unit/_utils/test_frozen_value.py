"""Values: settings that compare, hash, print and travel."""

import copy
import json
import pickle
from dataclasses import FrozenInstanceError, dataclass, fields, is_dataclass

import numpy as np
import pytest
from sklearn.base import BaseEstimator, clone

import tallybayes as tb
from tallybayes._utils.frozen_value import FrozenValue, from_config, frozen_array, same
from tallybayes.errors import FileError
from tallybayes.models.network.io.network_tables import NetworkTables

VALUES = [
    tb.Binned((0.0, 1.0, 2.5)),
    tb.LogNormal(),
    tb.WithMissing(tb.Gaussian()),
    tb.Text(),
    tb.Text(tb.Bernoulli(), ngram_range=(1, 2), stop_words=("a", "the"), min_count=2.5),
    tb.Text(hash_bits=10, binary=True, token_rule="sklearn"),
    tb.Bernoulli(),
    tb.Binomial(7),
    tb.Categorical(),
    tb.Categorical(("a", "b")),
    tb.Categorical((True, False)),
    tb.Categorical((3, 1)),
    tb.Multinomial(),
    tb.DirichletMultinomial(),
    tb.Poisson(),
    tb.Gaussian(),
    tb.TiedGaussian(),
    tb.SphericalGaussian(),
    tb.TiedSphericalGaussian(),
    tb.MultivariateGaussian(),
    tb.TiedMultivariateGaussian(),
    tb.Beta(2, 3),
    tb.Beta([1.0, 2.0], [[0.5], [0.1]]),
    tb.Dirichlet(1),
    tb.Dirichlet([1.0, 2.0, 3.0]),
    tb.Dirichlet([1.0, 2.0, 3.0], sizes=(1, 2)),
    tb.Gamma(2, 3),
    tb.Gamma([1.0, 2.0], 3),
    tb.NormalInverseGamma(0, 1, 2, 3),
    tb.NormalInverseGamma([0.0, 1.0], 1, 2, 3, tied_over=("groups",)),
    tb.NormalInverseWishart([0.0, 1.0], 1, 4, np.eye(2)),
    tb.Autoregressive(order=2),
    tb.LinearGaussian(),
    tb.LinearGaussianThroughOrigin(),
    tb.ConditionalLinearGaussian(),
    tb.LinearNormalInverseGamma(
        [0.0, 1.0], np.eye(2), 1, 2, intercept_location=3.0, strength=0.5, input_center=[1.0, 2.0]
    ),
    tb.LinearNormalInverseGamma([0.0], [[0.0]], 1, 2, strength=None),
    tb.BDeu(),
    tb.BDeu(2.5),
    tb.K2(),
    tb.BDe(NetworkTables({"a": (), 1: ("a",)}, {"a": (0, 1), 1: ("u",)}, {"a": [0.1, 0.9], 1: [[1.0], [1.0]]}), 3),
    tb.Hypotheses({"fair": 0.5, "biased": 0.9}),
    tb.Hypotheses({1: (0.0, 1.0), 2: (1.0, 2.0)}, prior=[0.25, 0.75]),
    tb.Hypotheses({"die": {"a": 0.5, "b": 0.5}, "type": {"a": 0.1, "b": 0.9}}),
    tb.Factor(("a", 0), ("b",), tb.Binomial(3), tb.Beta(1, [2.0, 3.0])),
    tb.Factor("x", (), tb.Categorical(("u", "v")), tb.BDeu(4)),
    tb.Schema(),
    tb.Schema({"from": "state", 0: "state"}, sorted_domains=("state",)),
    tb.Schema(sorted_domains=("y",)),
]
IDS = [f"{number}-{type(value).__name__}" for number, value in enumerate(VALUES)]


@pytest.mark.parametrize("value", VALUES, ids=IDS)
def test_copies_are_equal_and_hash_alike(value):
    for other in (copy.copy(value), copy.deepcopy(value), value.replace(), pickle.loads(pickle.dumps(value))):
        assert other == value
        assert hash(other) == hash(value)


@pytest.mark.parametrize("value", VALUES, ids=IDS)
def test_a_trip_through_json(value):
    config = json.loads(json.dumps(value.to_config(), allow_nan=False))
    found = from_config(config)
    assert found == value
    assert type(found) is type(value)
    assert repr(found) == repr(value)
    assert found.to_config() == value.to_config()


def test_all_values_are_different():
    for number, value in enumerate(VALUES):
        assert [other for other in VALUES if other == value] == [VALUES[number]]


@pytest.mark.parametrize("value", VALUES, ids=IDS)
def test_frozen(value):
    for field in fields(value):
        with pytest.raises(FrozenInstanceError):
            setattr(value, field.name, None)


@pytest.mark.parametrize("value", VALUES, ids=IDS)
def test_scikit_learn_clones_them(value):
    class Model(BaseEstimator):
        def __init__(self, value=None):
            self.value = value

    cloned = clone(Model(value))
    assert cloned.value == value
    assert repr(value).split("(")[0] in repr(cloned)


@pytest.mark.parametrize("value", VALUES, ids=IDS)
def test_nothing_takes_them_for_a_sequence(value):
    for name in ("__len__", "__iter__", "__array__", "__getitem__"):
        assert not hasattr(value, name)


def test_the_table_above_is_complete():
    tested = {type(value).__name__ for value in VALUES}
    public = [getattr(tb, name) for name in tb._PUBLIC]
    values = {
        kind.__name__
        for kind in public
        if isinstance(kind, type) and issubclass(kind, FrozenValue) and is_dataclass(kind)
    }
    assert values <= tested


TYPED = [value for value in VALUES if not isinstance(value, tb.Hypotheses | tb.Schema | tb.BDe)]


@pytest.mark.parametrize("value", TYPED, ids=repr)
def test_what_is_printed_can_be_typed(value):
    typed = eval(repr(value), {name: getattr(tb, name) for name in tb._PUBLIC})
    assert typed == value


def test_repr_names_what_stands_behind_a_gap():
    assert repr(tb.Schema(sorted_domains=("y",))) == "Schema(sorted_domains=('y',))"
    assert repr(tb.Schema((("a", "b"),), ("y",))) == "Schema((('a', 'b'),), ('y',))"


def test_repr_of_numbers_and_arrays():
    assert repr(tb.Beta(2, 0.1)) == "Beta(2, 0.1)"
    assert repr(tb.Dirichlet(np.arange(1, 101))) == "Dirichlet([ 1., 2., ..., 99., 100.])"


class TestEquality:
    def test_a_scalar_and_an_array_of_no_axes(self):
        assert tb.Beta(np.array(2.0), 3) == tb.Beta(2, 3.0)

    def test_shape_matters(self):
        assert tb.Beta([2.0], 3) != tb.Beta(2, 3)
        assert tb.Beta([2.0, 2.0], 3) != tb.Beta([[2.0], [2.0]], 3)

    def test_classes_matter(self):
        assert tb.Gaussian() != tb.TiedGaussian()
        assert tb.Multinomial() != tb.DirichletMultinomial()
        assert tb.Bernoulli() != "Bernoulli()"

    def test_true_is_not_one(self):
        assert tb.Categorical((True, False)) != tb.Categorical((1, 0))

    def test_they_are_keys(self):
        assert {tb.Beta([1.0, 2.0], 3): "a"}[tb.Beta([1, 2], 3)] == "a"


class TestArraysBelongToTheValue:
    def test_not_to_the_caller(self):
        array = np.array([1.0, 2.0])
        belief = tb.Beta(array, 1)
        array[0] = 99.0
        assert belief.alpha[0] == 1.0
        with pytest.raises(ValueError, match="read-only"):
            belief.alpha[0] = 5.0

    def test_frozen_array(self):
        source = np.ones(2)
        assert not np.shares_memory(frozen_array(source), source)
        assert not frozen_array(source).flags.writeable
        assert frozen_array([1, 2], dtype=int).dtype == int


class TestConfigsOfStrangers:
    @pytest.mark.parametrize(
        "config",
        [
            {},
            {"type": None},
            {"type": ["Beta"]},
            {"type": "Exploit"},
            {"type": "os.system"},
            {"type": "Family"},
            {"type": "Belief"},
            {"type": "Value"},
            {"type": "load"},
            {"type": "Tally"},
            [],
            "Beta",
            None,
        ],
        ids=str,
    )
    def test_unknown_types(self, config):
        with pytest.raises(FileError, match="unknown type"):
            from_config(config)

    def test_extra_fields(self):
        with pytest.raises(FileError, match=r"Beta has no field \['shell'\]; expected \['alpha', 'beta'\]"):
            from_config({"type": "Beta", "alpha": 1, "beta": 1, "shell": "rm"})

    @pytest.mark.parametrize("config", [{"type": "Beta"}, {"type": "Beta", "alpha": 1}, {"type": "Factor"}])
    def test_missing_fields(self, config):
        with pytest.raises(FileError, match="cannot be made without"):
            from_config(config)

    def test_fields_with_defaults_are_needed_too(self):
        config = tb.Factor("x", (), tb.Bernoulli()).to_config()
        assert from_config(config) == tb.Factor("x", (), tb.Bernoulli())
        with pytest.raises(FileError, match=r"Factor cannot be made without the fields \['prior'\]"):
            from_config({key: value for key, value in config.items() if key != "prior"})

    def test_values_are_checked_as_ever(self):
        with pytest.raises(ValueError, match=r"alpha of Beta is .*; expected finite numbers of at least 0"):
            from_config({"type": "Beta", "alpha": -1, "beta": 1})

    def test_nested_types_are_checked_too(self):
        with pytest.raises(FileError, match="unknown type 'Exploit'"):
            from_config(tb.Factor("x", (), tb.Bernoulli()).to_config() | {"family": {"type": "Exploit"}})

    def test_classes_of_others_are_not_known(self):
        @dataclass(frozen=True, eq=False, repr=False)
        class Mine(FrozenValue):
            size: int = 1

        assert Mine(2) == Mine(2) != Mine(3)
        with pytest.raises(FileError, match="cannot save a Mine"):
            Mine(2).to_config()
        with pytest.raises(FileError, match="unknown type 'Mine'"):
            from_config({"type": "Mine", "size": 2})


class TestFrozenArrays:
    def test_what_can_still_be_written_is_copied(self):
        source = np.arange(6.0)
        read_only = source[:3]
        read_only.setflags(write=False)
        for given in (source, read_only, source.reshape(2, 3), [1.0, 2.0], np.arange(3)):
            found = frozen_array(given)
            assert not np.shares_memory(found, source)
            assert found.dtype == np.float64
            with pytest.raises(ValueError, match="read-only"):
                found[...] = 0.0

    def test_what_nobody_can_write_is_not(self):
        frozen = frozen_array(np.arange(6.0))
        for view in (frozen, frozen[2:], frozen.reshape(2, 3)[1]):
            assert frozen_array(view) is view
        assert frozen_array(frozen, int).dtype == np.int64  # another type is another array

    def test_memory_of_others_is_copied(self):
        borrowed = np.frombuffer(bytearray(16))
        borrowed.setflags(write=False)
        assert not np.shares_memory(frozen_array(borrowed), borrowed)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ([1.0, 2.0], np.array([1.0, 2.0]), True),
        ((1.0, [2.0]), [1.0, (2.0,)], True),
        ({"a": tb.Gaussian()}, {"a": tb.Gaussian()}, True),
        ({"a": tb.Gaussian()}, {"a": tb.TiedGaussian()}, False),
        ({"a": tb.Gaussian()}, {"b": tb.Gaussian()}, False),
        ([1.0], [1.0, 2.0], False),
        (tb.Beta(1, [1.0, 2.0]), tb.Beta(1, np.array([1.0, 2.0])), True),
        (None, tb.Gaussian(), False),
        ("auto", "auto", True),
    ],
)
def test_settings_that_mean_the_same(first, second, expected):
    assert same(first, second) is expected
    assert same(second, first) is expected


def test_settings_of_families_of_ones_own_are_compared_too():
    class Own(tb.Gaussian):
        pass

    assert same({"a": Own()}, {"a": Own()})
    assert not same(Own(), tb.Gaussian())
