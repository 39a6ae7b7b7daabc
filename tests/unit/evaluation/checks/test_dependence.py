"""Dependence: known informations, coverage, independent columns, edges, real data."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

import tallybayes as tb
from tallybayes.evaluation.checks import dependence as module
from tallybayes.evaluation.checks.mutual_information import of_explained, of_labels
from tests.shared import DATA, needs

mpl.use("Agg")


def brute_force(joint):
    """I(x; x' | class) in bits of probabilities (classes, levels, levels), term by term."""
    total = 0.0
    for table in joint:
        share = table.sum()
        for i, j in np.ndindex(table.shape):
            if table[i, j] > 0:
                total += table[i, j] * np.log2(table[i, j] * share / (table[i].sum() * table[:, j].sum()))
    return total


def draw_pair(joint, n, rng):
    cells = rng.choice(joint.size, n, p=joint.ravel())
    c, i, j = np.unravel_index(cells, joint.shape)
    return {"a": [f"a{x}" for x in i], "b": [f"b{x}" for x in j], "y": c}


def only(found):
    assert len(found.table) == 1
    return found.table[0]


# ---- Known answers ----------------------------------------------------------------------------------------------


def test_two_labels_with_known_information():
    rng = np.random.default_rng(0)
    joint = rng.dirichlet(np.full(24, 0.6)).reshape(2, 3, 4)
    pair = only(tb.dependence(draw_pair(joint, 40_000, rng), "y"))
    truth = brute_force(joint)
    assert truth > 0.05
    assert pair.information == pytest.approx(truth, rel=0.03)
    assert pair.low < truth < pair.high
    assert pair.evidence > 100
    assert (pair.first, pair.second) == ("a", "b")


@pytest.mark.parametrize("rho", [0.0, 0.3, -0.9])
def test_two_numbers_with_known_correlation(rho):
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, 30_000)
    x = rng.normal(size=30_000)
    other = rho * x + np.sqrt(1 - rho**2) * rng.normal(size=30_000)
    # Shifts and scales by class change no correlation within a class.
    pair = only(tb.dependence({"a": x * (1 + y) + 5 * y, "b": other - 3 * y, "y": y}, "y"))
    truth = -0.5 * np.log2(1 - rho**2)
    assert pair.information == pytest.approx(truth, abs=0.01)
    assert pair.low <= truth + 1e-6
    assert truth <= pair.high
    assert (pair.evidence > 0) == (rho != 0)


def test_label_and_number_with_known_correlation_ratio():
    rng = np.random.default_rng(2)
    n = 30_000
    y, level = rng.integers(0, 2, n), rng.integers(0, 4, n)
    means = np.array([-1.0, 0.0, 0.0, 1.0])  # variance ½ between levels, 1 within: η² = 1/3
    pair = only(tb.dependence({"x": means[level] + rng.normal(size=n) + 9 * y, "l": level.astype(str), "y": y}, "y"))
    truth = -0.5 * np.log2(1 - 1 / 3)
    assert pair.information == pytest.approx(truth, abs=0.01)
    assert pair.low < truth < pair.high
    assert (pair.first, pair.second) == ("x", "l")


def test_what_classes_explain_is_no_dependence():
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 4000)
    rows = {"a": y * 5 + rng.normal(size=4000), "b": y * 5 + rng.normal(size=4000), "c": np.where(y, "u", "v"), "y": y}
    found = tb.dependence(rows, "y")
    assert found.information.max() < 0.002
    assert found.evidence.max() < 3


def test_classes_are_averaged_by_weight():
    rng = np.random.default_rng(4)
    y = (rng.random(20_000) < 0.25).astype(int)
    x = rng.normal(size=20_000)
    other = np.where(y == 1, 0.8 * x + 0.6 * rng.normal(size=20_000), rng.normal(size=20_000))
    assert only(tb.dependence({"a": x, "b": other, "y": y}, "y")).information == pytest.approx(
        -0.25 * 0.5 * np.log2(1 - 0.64), rel=0.06
    )


# ---- The posterior ----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_mean_and_variance_under_one_strength_agree_with_draws(monkeypatch):
    from tallybayes.evaluation.checks import mutual_information

    table = np.array([[[30.0, 5.0, 2.0], [4.0, 22.0, 8.0]], [[3.0, 9.0, 1.0], [10.0, 2.0, 20.0]]])
    monkeypatch.setattr(mutual_information, "_strengths", lambda total, n_steps: np.array([6.0]))
    found = of_labels(table)
    margins = [(m + 0.5) / (m + 0.5).sum(axis=1, keepdims=True) for m in (table.sum(axis=2), table.sum(axis=1))]
    alpha = table + 6.0 * margins[0][:, :, None] * margins[1][:, None, :]
    rng, share = np.random.default_rng(0), table.sum(axis=(1, 2)) / table.sum()
    draws = np.array([[brute_force(rng.dirichlet(a.ravel()).reshape(1, *a.shape)) for a in alpha] for _ in range(4000)])
    assert found.mean == pytest.approx((draws @ share).mean(), abs=0.004)
    between = share @ draws.mean(axis=0) ** 2 - (share @ draws.mean(axis=0)) ** 2
    spread = np.sqrt((draws @ share).var() + between / (table.sum() + 1))
    assert np.sqrt(found.variance) == pytest.approx(spread, rel=0.1)
    # The evidence is that of the joint table beside its margins.
    bits = 0.0
    for a, t in zip(alpha, table, strict=True):
        prior = a - t
        bits += tb.Dirichlet(prior.ravel()).log_evidence(tb.Counts(t.ravel()))
        bits -= tb.Dirichlet(prior.sum(axis=1)).log_evidence(tb.Counts(t.sum(axis=1)))
        bits -= tb.Dirichlet(prior.sum(axis=0)).log_evidence(tb.Counts(t.sum(axis=0)))
    assert found.evidence == pytest.approx(bits / np.log(2))


@pytest.mark.slow
def test_evidence_of_a_number_is_that_of_a_regression(monkeypatch):
    from scipy.integrate import dblquad

    from tallybayes.evaluation.checks import mutual_information

    rng = np.random.default_rng(5)
    x = rng.normal(size=12)
    other = 0.7 * x + rng.normal(size=12)
    x, other = x - x.mean(), other - other.mean()
    monkeypatch.setattr(mutual_information, "_strengths", lambda total, n_steps: np.array([[3.0]]))
    ones = np.ones((1, 1))
    eta = (x @ other) ** 2 / (x @ x) / (other @ other)
    found = of_explained(eta * ones, 12 * ones, ones, 2 * ones)

    # Flat in the mean (hence n − 1), 1/σ in the deviation, N(0, g σ² / x·x) in the slope with g = 12 / 3.
    def joint(slope, log_s):
        s2 = np.exp(2 * log_s)
        prior = np.exp(-(slope**2) * (x @ x) / (8 * s2)) * np.sqrt((x @ x) / (8 * np.pi * s2))
        return prior * s2 ** (-11 / 2) * np.exp(-((other - slope * x) ** 2).sum() / (2 * s2))

    dependent = dblquad(joint, -3, 3, -4, 6, epsabs=0, epsrel=1e-6)[0]
    grid = np.linspace(-4, 6, 4001)
    alone = np.trapezoid(np.exp(-11 * grid - (other @ other) / (2 * np.exp(2 * grid))), grid)
    assert found.evidence[0] == pytest.approx(np.log2(dependent / alone), abs=1e-3)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["labels", "numbers", "mixed"])
def test_coverage(kind):
    rng = np.random.default_rng(6)
    inside = []
    for _ in range(100):
        n = 600
        y = rng.integers(0, 2, n)
        if kind == "labels":
            joint = rng.dirichlet(np.full(18, 1.5)).reshape(2, 3, 3)
            truth, rows = brute_force(joint), draw_pair(joint, n, rng)
        else:
            rho = rng.uniform(0.05, 0.95)
            truth = -0.5 * np.log2(1 - rho**2)
            if kind == "numbers":
                x = rng.normal(size=n)
                rows = {"a": x, "b": rho * x + np.sqrt(1 - rho**2) * rng.normal(size=n), "y": y}
            else:
                level = rng.integers(0, 5, n)
                x = (level - 2) / np.sqrt(2)
                rows = {"a": level.astype(str), "b": rho * x + np.sqrt(1 - rho**2) * rng.normal(size=n), "y": y}
        pair = only(tb.dependence(rows, "y", mass=0.9))
        inside.append(pair.low <= truth <= pair.high)
    assert 0.8 <= np.mean(inside) <= 0.98  # over 400 draws and more: 0.87, 0.89 and 0.87


def test_independent_columns_are_said_to_be():
    rng = np.random.default_rng(7)
    n = 2000
    rows = {
        **{f"l{k}": rng.integers(0, size, n).astype(str) for k, size in enumerate((2, 5, 40, 40))},
        **{f"x{k}": rng.normal(size=n) for k in range(3)},
        "y": rng.integers(0, 2, n),
    }
    found = tb.dependence(rows, "y")
    assert len(found.table) == 21
    assert found.evidence.max() < 4
    assert np.median(found.evidence) < -1
    assert found.low.max() < 0.005
    wide = next(pair for pair in found.table if {pair.first, pair.second} == {"l2", "l3"})
    codes = pd.crosstab([rows["y"], rows["l2"]], rows["l3"]).to_numpy().reshape(2, 40, 40) / n
    assert brute_force(codes) > 0.5  # the plug-in value, where the truth is 0
    assert wide.information < 0.05


# ---- Missing cells, weights, forms of data ----------------------------------------------------------------------


def test_missing_numbers_are_left_out_pair_by_pair():
    rng = np.random.default_rng(8)
    X = rng.normal(size=(500, 3)) @ rng.normal(size=(3, 3)) + 1e6
    y = rng.integers(0, 2, 500)
    X[rng.random(X.shape) < 0.2] = np.nan
    found = tb.dependence(X, y)
    for pair in found.table:
        both = ~np.isnan(X[:, [pair.first, pair.second]]).any(axis=1)
        alone = only(tb.dependence(X[both][:, [pair.first, pair.second]], y[both]))
        assert pair[2:] == pytest.approx(alone[2:], rel=1e-6)


def test_missing_labels_are_left_out_pair_by_pair():
    rng = np.random.default_rng(9)
    a, b = rng.integers(0, 3, 300).astype(str).astype(object), rng.normal(size=300)
    c = np.where(rng.random(300) < 0.7, a, "2").astype(object)
    y = rng.integers(0, 2, 300)
    a[:50], b[30:90], c[80:120] = None, np.nan, None
    for pair in tb.dependence({"a": a, "b": b, "c": c}, y).table:
        columns = {"a": a, "b": b, "c": c}
        both = ~pd.isna(columns[pair.first]) & ~pd.isna(columns[pair.second])
        rows = {name: columns[name][both] for name in (pair.first, pair.second)}
        assert pair[2:] == pytest.approx(only(tb.dependence(rows, y[both]))[2:], rel=1e-9)


def test_weights_are_repetitions():
    rng = np.random.default_rng(10)
    frame = pd.DataFrame(
        {"a": rng.normal(size=80), "b": rng.normal(size=80), "l": rng.choice(list("uvw"), 80), "m": [*"xy"] * 40}
    )
    frame["b"] += frame["a"]
    y, weight = rng.integers(0, 2, 80), rng.integers(0, 4, 80)
    repeated = tb.dependence(frame.loc[frame.index.repeat(weight)], np.repeat(y, weight))
    weighted = tb.dependence(frame, y, sample_weight=weight)
    assert weighted.to_frame()[["first", "second"]].equals(repeated.to_frame()[["first", "second"]])
    for name in ("information", "low", "high", "evidence"):
        np.testing.assert_allclose(getattr(weighted, name), getattr(repeated, name), rtol=1e-9)
    named = tb.dependence(frame.assign(y=y, w=weight), "y", sample_weight="w")
    np.testing.assert_allclose(named.information, weighted.information)


def test_pieces_change_nothing(monkeypatch):
    rng = np.random.default_rng(11)
    rows = {f"l{k}": rng.integers(0, 2 + k, 200).astype(str) for k in range(4)} | {"x": rng.normal(size=200)}
    rows |= {"z": np.where(rng.random(200) < 0.1, np.nan, rows["x"] + rng.normal(size=200))}
    y = rng.integers(0, 2, 200)
    whole = tb.dependence(rows, y)
    monkeypatch.setattr(module, "_CELLS", 50)
    pieces = tb.dependence(rows, y)
    np.testing.assert_allclose(pieces.matrix, whole.matrix, rtol=1e-9)


def test_blocks_are_taken_apart():
    rng = np.random.default_rng(12)
    X, y = rng.normal(size=(100, 3)), rng.integers(0, 2, 100)
    found = tb.dependence({"block": X, "name": rng.choice(list("ab"), 100)}, y)
    assert found.columns == [("block", 0), ("block", 1), ("block", 2), "name"]
    np.testing.assert_allclose(found.matrix[:3, :3], tb.dependence(X, y).matrix)


def test_scale_and_offset_change_nothing():
    rng = np.random.default_rng(13)
    X, y = rng.normal(size=(300, 2)), rng.integers(0, 2, 300)
    X[:, 1] += X[:, 0]
    label = np.where(X[:, 0] > 0, "u", "v")
    near = tb.dependence({"a": X[:, 0], "b": X[:, 1], "l": label}, y)
    far = tb.dependence({"a": X[:, 0] * 1e-3 + 1e3, "b": X[:, 1] + 1e9, "l": label}, y)
    np.testing.assert_allclose(far.information, near.information, rtol=1e-5)


# ---- Edges ------------------------------------------------------------------------------------------------------


def test_one_column_has_no_pair():
    found = tb.dependence({"a": [1.0, 2.0], "y": [0, 1]}, "y")
    assert found.table == []
    assert found.matrix.shape == (1, 1)
    assert "0 pairs" in repr(found)
    assert len(found.to_frame()) == 0


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_rows_say_little(n):
    rows = {"a": np.arange(n) * 1.5, "b": np.arange(n) * 2.5 + 1, "l": [f"l{i}" for i in range(n)], "m": ["m"] * n}
    found = tb.dependence(rows, ["y"] * n)
    assert np.isfinite(found.information).all()
    assert (found.low <= found.information).all()
    assert (found.information <= found.high).all()
    assert found.evidence.max() < 8


def test_constant_columns_share_nothing():
    rng = np.random.default_rng(14)
    rows = {"k": np.full(50, 0.1), "l": ["same"] * 50, "x": rng.normal(size=50), "m": rng.choice(list("ab"), 50)}
    found = tb.dependence(rows, rng.integers(0, 2, 50))
    for pair in found.table:
        if {"k", "l"} & {pair.first, pair.second}:
            assert pair[2:] == (0.0, 0.0, 0.0, 0.0)


def test_copies_share_everything_they_have():
    rng = np.random.default_rng(15)
    label = rng.choice(list("abc"), 3000)
    number = np.searchsorted(list("abc"), label) * 2.0
    x = rng.normal(size=3000)
    found = tb.dependence({"l": label, "n": number, "copy": label, "x": x, "z": 3 * x + 1}, ["y"] * 3000)
    entropy = np.log2(3)
    values = {(pair.first, pair.second): pair for pair in found.table}
    assert values["l", "n"].information == pytest.approx(entropy, rel=1e-3)
    assert values["l", "n"].high <= entropy + 1e-9
    assert values["l", "copy"].information == pytest.approx(entropy, rel=0.01)
    assert 20 < values["x", "z"].information < 30


def test_pairs_never_known_together_are_unknown():
    rows = {"a": [1.0, 2.0, np.nan, np.nan], "b": [np.nan, np.nan, 1.0, 3.0], "l": [None, None, "u", "v"]}
    found = tb.dependence(rows, [0, 1, 0, 1])
    assert [(p.first, p.second) for p in found.table if np.isnan(p.information)] == [("a", "b"), ("a", "l")]
    assert np.isnan(found.information[1:]).all()


def test_refusals():
    with pytest.raises(ValueError, match="0 rows"):
        tb.dependence(np.zeros((0, 2)), [])
    with pytest.raises(ValueError, match="weight of every row is zero"):
        tb.dependence({"a": [1.0, 2.0], "b": [1.0, 2.0]}, [0, 1], sample_weight=[0, 0])
    with pytest.raises(ValueError, match="label of row 1 is missing"):
        tb.dependence({"a": [1.0, 2.0], "b": [1.0, 2.0]}, ["u", None])
    with pytest.raises(ValueError, match="mass is 2"):
        tb.dependence({"a": [1.0, 2.0], "b": [1.0, 2.0]}, [0, 1], mass=2)
    with pytest.raises(ValueError, match="no column 'z'"):
        tb.dependence({"a": [1.0, 2.0]}, "z")
    for missing in (0.0, np.nan):
        with pytest.raises(ValueError, match="found inf in row 1, column 'a'"):
            tb.dependence({"a": [1.0, np.inf, 2.0], "b": [1.0, 2.0, missing]}, [0, 1, 1])
    from scipy.sparse import csr_matrix

    with pytest.raises(ValueError, match="sparse block"):
        tb.dependence(csr_matrix(np.eye(3)), [0, 1, 1])


def test_tables_too_large_are_refused_before_they_are_made():
    n = 10_000
    rows = {"a": np.arange(n).astype(str), "b": np.arange(n)[::-1].astype(str)}
    with pytest.raises(ValueError, match=r"'a' to 'b' and 2 classes form a table of 200000000 cells"):
        tb.dependence(rows, np.arange(n) % 2)


# ---- What is shown ----------------------------------------------------------------------------------------------


def test_table_matrix_frame_and_picture():
    rng = np.random.default_rng(16)
    X = rng.normal(size=(200, 40))
    X[:, 5] += 3 * X[:, 30]
    found = tb.dependence(X, rng.integers(0, 2, 200))
    assert (found.table[0].first, found.table[0].second) == (5, 30)
    assert (np.diff(found.information) <= 0).all()
    np.testing.assert_array_equal(found.matrix, found.matrix.T)
    assert found.matrix[5, 30] == found.information[0]
    assert np.isnan(np.diagonal(found.matrix)).all()
    assert list(found.to_frame().columns) == ["first", "second", "information", "low", "high", "evidence"]
    assert "5 – 30" in repr(found)
    assert "1 of 780 pairs are dependent (evidence above" in repr(found)
    (ax,) = found.plot(most=10).axes
    names = [text.get_text() for text in ax.get_xticklabels()]
    assert len(names) == 10
    assert {"5", "30"} <= set(names)
    mpl.pyplot.close(ax.figure)
    ax = tb.dependence(X[:, :3], rng.integers(0, 2, 200)).plot().axes[0]
    assert len(ax.get_xticklabels()) == 3
    mpl.pyplot.close(ax.figure)


@needs("tables")
def test_adult():
    names = [
        *("age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation", "relationship"),
        *("race", "sex", "capital-gain", "capital-loss", "hours-per-week", "native-country", "income"),
    ]
    frame = pd.read_csv(
        DATA / "tables" / "adult.data.gz", names=names, skipinitialspace=True, na_values="?", keep_default_na=False
    )
    found = tb.dependence(frame, "income")
    pairs = [(pair.first, pair.second) for pair in found.table]
    assert pairs[:3] == [("education", "education-num"), ("marital-status", "relationship"), ("relationship", "sex")]
    counts = pd.crosstab([frame["income"], frame["relationship"]], frame["sex"]).to_numpy().reshape(2, -1, 2)
    assert found.information[2] == pytest.approx(brute_force(counts / counts.sum()), rel=0.01)
    education = frame["education"].groupby(frame["income"]).value_counts(normalize=True)
    entropy = sum(-(p * np.log2(p)).sum() * (frame["income"] == c).mean() for c, p in education.groupby(level=0))
    assert found.information[0] == pytest.approx(entropy, rel=1e-6)  # one is a code of the other
