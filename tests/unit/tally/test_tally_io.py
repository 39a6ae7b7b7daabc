"""Tallies in files: every family and kind of level comes back; nonsense is refused."""

import subprocess
import sys

import numpy as np
import pytest

import tallybayes as tb
from tallybayes._utils import sealed_file
from tallybayes.errors import DataError, FileError, LabelError
from tallybayes.tally.tally_io import tally_to_parts

NUMBERS = np.array([[1.0, 2.0], [3.0, 1.0], [0.0, 5.0]])
FAMILIES = [
    tb.Bernoulli(),
    tb.Binomial(7),
    tb.Categorical(),
    tb.Categorical((0, 1, 2, 3, 5, 8)),
    tb.Multinomial(),
    tb.DirichletMultinomial(),
    tb.Poisson(),
    tb.Gaussian(),
    tb.TiedGaussian(),
    tb.SphericalGaussian(),
    tb.TiedSphericalGaussian(),
    tb.MultivariateGaussian(),
    tb.TiedMultivariateGaussian(),
]


def roundtrip(tally, folder):
    path = folder / "a.tally"
    tally.save(path)
    return tb.load(path)


def assert_same(found, expected):
    assert found == expected
    assert found.factors == expected.factors
    assert found.schema == expected.schema
    for name, domain in expected.domains.items():
        assert found.domains[name].levels == domain.levels
        assert found.domains[name].is_sorted == domain.is_sorted
        assert found.domains[name].kind == domain.kind
    for mine, its in zip(found.statistics, expected.statistics, strict=True):
        for part, other in zip(mine.arrays().values(), its.arrays().values(), strict=True):
            for a, b in ((part.high, other.high), (part.low, other.low)) if hasattr(part, "high") else ((part, other),):
                np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
@pytest.mark.parametrize("grouped", [False, True])
def test_every_family(family, grouped, tmp_path):
    values = (NUMBERS > 1.5).astype(int) if isinstance(family, tb.Bernoulli) else NUMBERS
    columns = {"a": values[:, 0], "b": values[:, 1], "g": ["u", "v", "u"]}
    tally = tb.count(columns, [tb.Factor(("a", "b"), ("g",) if grouped else (), family)])
    assert_same(roundtrip(tally, tmp_path), tally)


@pytest.mark.parametrize(
    "values",
    [
        [True, False, True],
        [-5, 3, 2**40],
        ["", "é", "e\u0301", "日本", "\U0001f600", "a\0b", "line\nbreak"],
        np.array([0, 2**64 - 1], dtype=np.uint64),
        np.array([-(2**63), 2**63 - 1]),
        [],
        [None, None],
    ],
    ids=["bool", "int", "unicode", "uint64", "int64", "empty", "missing"],
)
@pytest.mark.parametrize("ordered", [False, True])
def test_every_kind_of_level(values, ordered, tmp_path):
    schema = tb.Schema(sorted_domains=("x",) if ordered else ())
    tally = tb.count({"x": values}, [tb.Factor("x", (), tb.Categorical())], schema=schema)
    assert_same(roundtrip(tally, tmp_path), tally)


def test_declared_levels_and_shared_domains(tmp_path):
    factors = [tb.Factor("to", "from", tb.Categorical(("a", "b", "c"))), tb.Factor(0, (), tb.Poisson())]
    schema = tb.Schema({"from": "state", "to": "state"}, sorted_domains=("state",))
    tally = tb.count({"from": ["a"], "to": ["b"], 0: [3]}, factors, schema=schema)
    found = roundtrip(tally, tmp_path)
    assert_same(found, tally)
    assert (found - tally).domains["state"].levels == ("a", "b", "c")


@pytest.mark.parametrize(
    "prior",
    [
        tb.Beta(2, 3),
        tb.Beta([1.0, 2.0], 0.5),
        tb.Hypotheses({"fair": 0.5, "biased": 0.9}, prior={"fair": 0.8, "biased": 0.2}),
        tb.Hypotheses.grid([0.25, 0.5]),
    ],
    ids=repr,
)
def test_priors_travel_along(prior, tmp_path):
    tally = tb.count({"a": [1], "b": [0]}, [tb.Factor(("a", "b"), (), tb.Bernoulli(), prior)])
    assert roundtrip(tally, tmp_path).factors[0].prior == prior


def test_a_tally_of_nothing(tmp_path):
    assert_same(roundtrip(tb.Tally([], [], {}), tmp_path), tb.Tally([], [], {}))


@pytest.mark.slow
def test_a_fresh_process_knows_every_public_type(tmp_path):
    factors = [
        tb.Factor("x", (), tb.Gaussian(), tb.NormalInverseGamma(0, 1, 1, 1)),
        tb.Factor("y", (), tb.Categorical(), tb.BDeu(2.0)),
    ]
    tb.count({"x": [1.0], "y": ["a"]}, factors).save(tmp_path / "a.tally")
    code = "import sys, tallybayes; print(tallybayes.load(sys.argv[1]).factors)"
    out = subprocess.run([sys.executable, "-c", code, tmp_path / "a.tally"], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == repr(tuple(factors))


@pytest.mark.parametrize("levels", [(-1, 2**63), (0, 2**64), ("\ud800",)])
def test_levels_that_a_file_cannot_hold_are_refused_when_counting(levels):
    with pytest.raises(LabelError, match=r"64 bits|surrogates"):
        tb.count({"x": []}, [tb.Factor("x", (), tb.Categorical(levels))])


def test_a_function_as_prior_cannot_be_saved(tmp_path):
    prior = tb.Hypotheses.grid([0.25, 0.5], prior=lambda p: p)
    tally = tb.count({"x": [1]}, [tb.Factor("x", (), tb.Bernoulli(), prior)])
    with pytest.raises(DataError, match="function"):
        tally.save(tmp_path / "a.tally")


# ---- Files that are sealed, but make no sense -------------------------------------------------------------------


def _set(place, value):
    def change(manifest, arrays):
        *path, last = place
        target = manifest
        for step in path:
            target = target[step]
        target[last] = value

    return change


def _array(name, value):
    return lambda manifest, arrays: arrays.__setitem__(name, np.asarray(value))


def _drop(name):
    return lambda manifest, arrays: arrays.pop(name)


CRAFTED = {
    "no factors": lambda manifest, arrays: manifest.pop("factors"),
    "one factor less": lambda manifest, arrays: manifest["factors"].pop(),
    "another type for a factor": _set(("factors", 0), {"type": "Beta", "alpha": 1, "beta": 1}),
    "an unknown family": _set(("factors", 0, "family"), {"type": "Exploit"}),
    "a base class as family": _set(("factors", 0, "family"), {"type": "Family"}),
    "a belief as family": _set(("factors", 0, "family"), {"type": "Beta", "alpha": 1, "beta": 1}),
    "a family with an extra field": _set(("factors", 0, "family", "shell"), "rm"),
    "a family of other statistics": _set(("factors", 0, "family"), {"type": "Gaussian"}),
    "moments of another form": _set(("factors", 1, "family"), {"type": "MultivariateGaussian"}),
    "counts for numbers": _set(("factors", 1, "family"), {"type": "Poisson"}),
    "more columns than statistics": _set(("factors", 1, "columns"), ["x", "z"]),
    "a column that is no name": _set(("factors", 1, "columns"), [["x"]]),
    "a schema of another type": _set(("schema",), {"type": "Gaussian"}),
    "unknown statistics": _set(("statistics", 0), "Pickle"),
    "a domain less": lambda manifest, arrays: manifest["domains"].clear(),
    "a repeated level": _array("domain/0/offsets", np.array([0, 0, 0])),
    "a level more": lambda manifest, arrays: arrays.update(
        {"domain/0/text": np.frombuffer(b"abc", np.uint8), "domain/0/offsets": np.array([0, 1, 2, 3])}
    ),
    "levels that are no text": _array("domain/0/text", np.array([255, 254], dtype=np.uint8)),
    "too few declared marks": _array("domain/0/declared", np.array([True])),
    "levels missing": _drop("domain/0/text"),
    "a negative count": _array("statistics/0/table", np.array([1.0, -1.0])),
    "an infinite count": _array("statistics/0/table", np.array([1.0, np.inf])),
    "a table of another size": _array("statistics/0/table", np.array([1.0])),
    "negative sizes": _array("statistics/0/sizes", np.array([3, -1])),
    "sums missing": _drop("statistics/1/first_sum.low"),
    "sums that are not numbers": _array("statistics/1/first_sum.high", np.full((2, 1), np.nan)),
    "sums of another shape": _array("statistics/1/second_sum.low", np.zeros((2, 2))),
    "a negative weight": _array("statistics/1/weight_sum.high", np.full((2, 1), -1.0)),
    "another number of anchors": _array("statistics/1/anchor", np.zeros(4)),
    "an anchor that is no number": _array("statistics/1/anchor", np.array([np.nan])),
}


@pytest.mark.parametrize("name", CRAFTED)
def test_crafted_files_are_refused(name, tmp_path):
    factors = [tb.Factor("y", (), tb.Categorical()), tb.Factor("x", "y", tb.Gaussian())]
    tally = tb.count({"y": ["a", "b"], "x": [1.0, 2.0]}, factors)
    manifest, arrays = tally_to_parts(tally)
    arrays = {key: np.array(value) for key, value in arrays.items()}
    path = tmp_path / "a.tally"
    sealed_file.write(path, "Tally", manifest, arrays)
    assert tb.load(path) == tally
    CRAFTED[name](manifest, arrays)
    sealed_file.write(path, "Tally", manifest, arrays)
    with pytest.raises(FileError):
        tb.load(path)


@pytest.mark.parametrize(("family", "width"), [(tb.Poisson(), 2**31), (tb.MultivariateGaussian(), 2**13)], ids=repr)
def test_no_groups_with_absurdly_many_columns_are_refused(family, width, tmp_path):
    """Arrays of no groups take no bytes, whatever they declare: nothing of that size may be made of them."""
    rows = tb.count({"x": np.zeros((1, 3)), "g": ["a"]}, [tb.Factor("x", "g", family)])
    manifest, arrays = tally_to_parts(rows - rows)
    wide = {name: np.zeros([width if size == 3 else size for size in array.shape]) for name, array in arrays.items()}
    kept = {name: array for name, array in arrays.items() if name.startswith("domain")}
    sealed_file.write(tmp_path / "wide", "Tally", manifest, wide | kept)
    with pytest.raises(FileError, match="no groups"):
        tb.load(tmp_path / "wide")
