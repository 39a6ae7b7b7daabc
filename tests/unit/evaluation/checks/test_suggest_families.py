"""Families suggested for columns: the one that made a column wins, by code lengths that can be had by hand."""

import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from scipy import stats
from scipy.special import gammaln
from sklearn.metrics import log_loss

import tallybayes as tb
from tallybayes.errors import DataError
from tests.shared import DATA, needs

N = 600


def draw(seed=0, n=N):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    return y, {
        "normal": rng.normal(40.0 + 5 * y, 10.0),
        "log-normal": np.exp(rng.normal(1.0 + y, 1.0)),
        "poisson": rng.poisson(2.0 + y),
        "bimodal": np.where(rng.random(n) < 0.5, -4.0, 4.0) + rng.normal(size=n) * 0.5,
        "zeros": np.where(rng.random(n) < 0.9, 0.0, np.exp(rng.normal(5.0, 1.0, n))),
        "rounded": rng.normal(60.0 + 5 * y, 15.0).round(),
        "grades": rng.choice([1, 2, 5], n, p=[0.6, 0.1, 0.3]),
        "coin": rng.integers(0, 2, n),
        "truth": rng.random(n) < 0.3,
        "word": rng.choice(["a", "b"], n),
    }


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("seed", range(5))
def test_what_made_a_column_wins(seed):
    y, rows = draw(seed)
    found = tb.suggest_families(rows, y)
    kinds = {name: type(family).__name__ for name, family in found.columns.items()}
    assert kinds == {
        "normal": "Gaussian",
        "log-normal": "LogNormal",
        "poisson": "Poisson",
        "bimodal": "Binned",
        "zeros": "Binned",
        "rounded": "Gaussian",
        "grades": "Categorical",
        "coin": "Bernoulli",
        "truth": "Categorical",
        "word": "Categorical",
    }
    assert list(found.columns) == list(rows)
    for one in found.details.values():
        assert one.gain >= 0
        assert [c.bits for c in one.candidates] == sorted(c.bits for c in one.candidates)
    tb.NaiveBayes(found.columns).fit(rows, y).predict_proba(rows)  # ready for use


def bits_of(found, column, family):
    return next(c.bits for c in found.details[column].candidates if c.family == family)


def beyond(values, family):
    """Values beyond the outer edges: excesses one by one, each predicted from those before it, by a Gamma's rate."""
    total = 0.0
    for excess, width in (
        (family.edges[1] - values[values < family.edges[1]], family.widths[0]),
        (values[values >= family.edges[-2]] - family.edges[-2], family.widths[-1]),
    ):
        seen = np.concatenate([[0.0], np.cumsum(excess)[:-1]])
        scale, n = width + seen, np.arange(len(excess))
        total -= stats.lomax.logpdf(excess, n + 1, scale=scale).sum() + len(excess) * np.log(width)
    return total


def test_bits_are_evidence_given_the_target():
    y, rows = draw()
    rows["normal"][:9] = np.nan
    found = tb.suggest_families(rows, y)

    def evidence(column, family):
        return -np.sum(tb.fit_distribution(rows[column], family, group=y).log_evidence()) / math.log(2)

    for column, family in (
        ("normal", tb.Gaussian()),
        ("normal", tb.LogNormal()),
        ("log-normal", tb.Gaussian()),
        ("poisson", tb.Poisson()),
        ("coin", tb.Bernoulli()),
        ("word", tb.Categorical()),
        ("truth", tb.Bernoulli()),
    ):
        assert bits_of(found, column, family) == pytest.approx(evidence(column, family), rel=1e-10)
    # bins pay for their edges, whole numbers as labels for saying which
    for candidate in found.details["bimodal"].candidates:
        if isinstance(candidate.family, tb.Binned):
            n, k = N - 1, len(candidate.family.edges) - 2
            charge = (gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)) / math.log(2)
            charge += beyond(rows["bimodal"], candidate.family) / math.log(2)
            assert candidate.bits == pytest.approx(evidence("bimodal", candidate.family) + charge, rel=1e-10)
    labels = bits_of(found, "grades", tb.Categorical())
    assert labels == pytest.approx(evidence("grades", tb.Categorical()) + math.log2(math.comb(5, 3)), rel=1e-10)
    # of the choice between tries, the default of "auto" is the mark
    one = found.details["log-normal"]
    assert one.gain == pytest.approx(evidence("log-normal", tb.Gaussian()) - evidence("log-normal", tb.LogNormal()))


def test_densities_of_whole_numbers_are_no_more_than_the_probability_of_their_cells():
    rng = np.random.default_rng(3)
    for spread in (0.1, 0.3, 1.0, 8.0):
        x = np.round(rng.normal(60.0, spread, 400)) + rng.integers(0, 2, 400)
        y = np.zeros(400, dtype=int)
        found = tb.suggest_families({"x": x}, y)
        # at the best parameters of the cells there is no shorter code than their own probabilities allow
        times = np.unique(x, return_counts=True)[1]
        entropy = -(times * np.log2(times / times.sum())).sum()
        for family in (tb.Gaussian(), tb.LogNormal()):
            assert bits_of(found, "x", family) > entropy
        if spread == 8.0:  # and where the cells are fine, nothing is lost
            cells = stats.norm.cdf(x + 0.5, x.mean(), x.std()) - stats.norm.cdf(x - 0.5, x.mean(), x.std())
            best = -np.log2(cells).sum()
            assert best < bits_of(found, "x", tb.Gaussian()) < best + 25


def test_a_rare_one_is_no_spike():
    y = np.array([0] * 300 + [1] * 300)
    x = np.zeros(600)
    x[599] = 1.0  # a Gaussian's density in the class of zeros alone has no bound
    found = tb.suggest_families({"x": x}, y)
    assert isinstance(found.columns["x"], tb.Bernoulli | tb.Poisson | tb.Categorical)
    assert all(candidate.bits > 0 for candidate in found.details["x"].candidates)


def test_weights_are_repetitions_and_zero_is_absent():
    y, rows = draw(n=120)
    times = np.random.default_rng(1).integers(0, 3, 120)
    repeated = {name: np.repeat(column, times) for name, column in rows.items()}
    expected = tb.suggest_families(repeated, np.repeat(y, times))
    rows["log-normal"] = np.where(times == 0, -1.0, rows["log-normal"])  # what is not there cannot forbid a family
    rows["normal"] = np.where(times == 0, np.inf, rows["normal"])
    rows["grades"] = np.where(times == 0, 0, rows["grades"])
    found = tb.suggest_families(rows, y, sample_weight=times)
    assert found.columns == expected.columns
    for name in rows:
        for mine, its in zip(found.details[name].candidates, expected.details[name].candidates, strict=True):
            assert mine.family == its.family
            assert mine.bits == pytest.approx(its.bits, rel=1e-10)
    by_name = tb.suggest_families({**rows, "y": y, "times": times.astype(float)}, "y", sample_weight="times")
    assert by_name.columns == found.columns


def test_every_form_of_the_data():
    y, rows = draw(n=150)
    frame = pd.DataFrame(rows)
    expected = tb.suggest_families(rows, y).columns
    assert tb.suggest_families(frame, y).columns == expected
    assert tb.suggest_families(frame.assign(y=y), "y").columns == expected
    assert tb.suggest_families(pl.from_pandas(frame.assign(y=y)), "y").columns == expected
    nullable = frame.assign(poisson=frame["poisson"].astype("Int64"), truth=frame["truth"].astype("boolean"))
    assert tb.suggest_families(nullable, y).columns == expected
    numbers = frame[["normal", "log-normal", "poisson"]].to_numpy(float)
    assert [type(f).__name__ for f in tb.suggest_families(numbers, y).columns.values()] == [
        *("Gaussian", "LogNormal", "Poisson")
    ]
    assert list(tb.suggest_families(numbers, y).columns) == [0, 1, 2]


def test_columns_that_leave_no_choice():
    y = np.array([0, 1, 0, 1])
    rows = {
        "constant": [3.0] * 4,
        "missing": [np.nan] * 4,
        "single": [np.nan, 2.0, np.nan, np.nan],
        "words": scipy.sparse.csr_array(np.eye(4)),
        "block": np.eye(4),
        "x": [0.5, 1.5, 0.1, 2.0],
    }
    found = tb.suggest_families(rows, y)
    kinds = {name: type(family).__name__ for name, family in found.columns.items()}
    assert kinds == {"words": "Multinomial", "block": "Gaussian", "x": kinds["x"]}
    assert found.dropped_columns == {"constant": "constant", "missing": "no known cell", "single": "constant"}
    assert [one.remark for one in found.details.values()][3:5] == ["a block: not examined"] * 2
    assert "constant" in repr(found)
    tb.NaiveBayes(found.columns).fit(rows, y).predict(rows)
    one_class = tb.suggest_families({"x": [0.5, 1.5, 0.1, 2.0]}, ["a"] * 4)
    assert one_class.details["x"].candidates


def test_refusals():
    with pytest.raises(DataError, match="row 1, column 'x'"):
        tb.suggest_families({"x": [1.0, np.inf]}, [0, 1])
    with pytest.raises(DataError, match="no column 'y'"):
        tb.suggest_families({"x": [1.0, 2.0]}, "y")
    with pytest.raises(DataError, match="weight is -1"):
        tb.suggest_families({"x": [1.0, 2.0]}, [0, 1], sample_weight=[1, -1])


def test_large_offsets():
    rng = np.random.default_rng(2)
    y = rng.integers(0, 2, 300)
    found = tb.suggest_families(
        {"x": 1e9 + rng.normal(y, 1.0), "n": 10**9 + rng.choice(5, 300, p=[0.4, 0.05, 0.3, 0.05, 0.2])}, y
    )
    assert found.columns["x"] == tb.Gaussian() or found.columns["x"] == tb.LogNormal()  # alike at such an offset
    assert found.columns["n"] == tb.Categorical()
    assert tb.suggest_families({"n": np.array([2**60, 2**61, 2**60, 2**59])}, [0, 1, 0, 1]).columns


def test_tables():
    y, rows = draw(n=100)
    found = tb.suggest_families(rows, y)
    frame = found.to_frame()
    assert frame["proposed"].sum() == len(rows)
    assert (frame.groupby("column")["excess_loss"].min() == 0).all()
    lines = repr(found).splitlines()
    assert len(lines) == len(rows) + 2
    assert lines[0].startswith("Suggestion for 10 columns")
    assert "than Gaussian()" in lines[3]


# ---- Real data ----------------------------------------------------------------------------------------------------

ADULT = [
    *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship"),
    *("race", "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country", "income"),
]


@pytest.mark.slow
@needs("tables")
def test_adult():
    train, test = (
        pd.read_csv(
            DATA / "tables" / name,
            names=ADULT,
            skipinitialspace=True,
            na_values="?",
            keep_default_na=False,
            comment="|",
        )
        for name in ("adult.data.gz", "adult.test.gz")
    )
    answers = test["income"].str.rstrip(".")
    found = tb.suggest_families(train, "income")
    for column in ("capital-gain", "capital-loss"):  # none of them: a spike that no Gaussian has
        assert isinstance(found.columns[column], tb.Binned)
        assert found.columns[column].edges[:2] == (-0.5, 0.5)
        assert found.details[column].gain > 9.2 * 20_000  # bits of the rows that were looked at
    plain, better = (tb.NaiveBayes(columns).fit(train, "income") for columns in ("auto", found.columns))
    losses = [log_loss(answers, fitted.predict_proba(test)) for fitted in (plain, better)]
    assert losses[0] == pytest.approx(0.691, abs=0.005)
    assert losses[1] == pytest.approx(0.406, abs=0.005)
    assert found.dropped_columns == {"education-num": "repeats 'education'"}
    absent = {name for name, family in found.columns.items() if isinstance(family, tb.WithMissing)}
    assert absent == {"occupation"}  # and wherever it is missing, the class of work is too
    by_type = tb.NaiveBayes(dict.fromkeys(found.columns, "auto") | {"occupation": found.columns["occupation"]})
    by_type.fit(train, "income")
    assert tb.compare({"auto": by_type, "suggested": better}).best == "suggested"
    accuracy = [np.mean(fitted.predict(test) == answers) for fitted in (by_type, better)]
    assert accuracy[1] > accuracy[0]
