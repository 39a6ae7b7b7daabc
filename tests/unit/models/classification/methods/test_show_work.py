"""The worked row is true for every model: its lines add up, and each is what it says it is."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy import stats

import tallybayes as tb
from tallybayes.errors import DataError

RNG = np.random.default_rng(3)
N = 60
X = RNG.multivariate_normal([0, 1, 2], [[2, 1, 0], [1, 3, 0.5], [0, 0.5, 1]], N)
Y = np.array(["a", "b", "c"])[np.arange(N) % 3]
FRAME = pd.DataFrame({"sky": np.array(["sun", "rain", "fog"])[RNG.integers(0, 3, N)], "x": X[:, 0], "z": X[:, 1]})
NUMBER = r"-?\d+\.\d{4}|-?inf|-?[\d.]+e[+-]\d+"


def numbers(line):
    return [float(text) for text in re.findall(NUMBER, line)[-3:]]


def parts_of(text):
    """The lines that add up, and what they add up to."""
    lines = text.splitlines()
    rule = next(k for k, line in enumerate(lines) if line.strip().startswith("─"))
    above = [line for line in lines[3:rule] if not line.startswith(" ")]
    return np.array([numbers(line) for line in above]), np.array(numbers(lines[rule + 1])), lines


MODELS = {
    "naive": lambda e: tb.NaiveBayes(estimate=e).fit(FRAME, Y),
    "blocks": lambda e: tb.NaiveBayes({"sky": "auto", ("x", "z"): tb.MultivariateGaussian()}, estimate=e).fit(FRAME, Y),
    "mixture": lambda e: tb.Mixture(3, estimate=e, random_state=0).fit(FRAME),
    **{
        name: lambda e, name=name: tb.GaussianDiscriminant(name, estimate=e).fit(FRAME[["x", "z"]], Y)
        for name in tb.GaussianDiscriminant.families
    },
    "tree": lambda e: tb.TreeAugmentedNaiveBayes(bins=3).fit(FRAME, Y),
    "averaged": lambda e: tb.AveragedOneDependence(bins=3).fit(FRAME, Y),
}


@pytest.mark.slow
@pytest.mark.parametrize("estimate", ["mle", "map", "bayes"])
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("lost", [(), ("x",), ("x", "z"), ("sky", "z")])
def test_the_lines_add_up_to_the_joint(name, estimate, lost):
    model = MODELS[name](estimate)
    row = FRAME[:1].copy()
    for column in lost:
        row[column] = None if column == "sky" else np.nan
    row = row if hasattr(model, "columns") else row[["x", "z"]]
    parts, total, lines = parts_of(model.show_work(row))
    joint = model.predict_joint_log_proba(row)[0]
    np.testing.assert_allclose(total, joint, atol=6e-5)
    np.testing.assert_allclose(parts.sum(axis=0), joint, atol=1e-3)
    assert lines[-1] == f"prediction: {model.predict(row)[0]}"
    chances = next(line for line in lines if re.match(r"p\((class|component) \| x\) ", line) and "∝" not in line)
    np.testing.assert_allclose(numbers(chances), model.predict_proba(row)[0], atol=6e-5)


def test_a_full_covariance_is_shown_by_its_quadratic_form():
    model = tb.GaussianDiscriminant(estimate="mle").fit(X, Y)
    text = model.show_work(X[:1])
    assert "Π" not in text
    assert "quadratic form" in text
    by_title = {line.strip().split("  ")[0]: line for line in text.splitlines()}
    means, spread = model.means_, model.covariances_
    gaps = X[0] - means
    squares = [gap @ np.linalg.solve(matrix, gap) for gap, matrix in zip(gaps, spread, strict=True)]
    np.testing.assert_allclose(numbers(by_title["−½ (x − μ)ᵀ Σ⁻¹ (x − μ)"]), -0.5 * np.array(squares), atol=6e-5)
    log_det = -0.5 * np.linalg.slogdet(2 * np.pi * spread)[1]
    np.testing.assert_allclose(numbers(by_title["−½ log det(2πΣ)"]), log_det, atol=6e-5)
    np.testing.assert_allclose(numbers(by_title["mean of 1"]), means[:, 1], atol=6e-5)


@pytest.mark.parametrize("covariance", ["full", "tied", "spherical", "tied_spherical"])
def test_integrated_parameters_are_shown_as_the_t_they_are(covariance):
    model = tb.GaussianDiscriminant(covariance).fit(X, Y)
    row = np.array([[0.5, np.nan, 2.0]])
    text = model.show_work(row)
    by_title = {line.strip().split("  ")[0]: line for line in text.splitlines()}
    q, freedom = (
        numbers(by_title[next(t for t in by_title if t.startswith("q ="))]),
        numbers(by_title["degrees of freedom ν"]),
    )
    bent = numbers(by_title["−½ (ν + 2) log(1 + q)"])
    np.testing.assert_allclose(bent, -0.5 * (np.array(freedom) + 2) * np.log1p(q), atol=0.02)
    assert "missing: marginalized" in text
    belief = model.posterior_[0, 1, 2]
    if covariance == "full":
        np.testing.assert_allclose(freedom, belief.degrees_of_freedom - 2)
        for k in range(3):
            scale = belief.scale[k][np.ix_([0, 2], [0, 2])] * (1 + 1 / belief.strength[k]) / freedom[k]
            t = stats.multivariate_t(belief.location[k][[0, 2]], scale, df=freedom[k])
            log_p = t.logpdf(row[0, [0, 2]])
            np.testing.assert_allclose(numbers(by_title["log p(0, 2 | class)"])[k], log_p, atol=6e-5)


@pytest.mark.parametrize("family", [tb.Categorical(), tb.Bernoulli(), tb.Multinomial(), tb.Poisson()], ids=repr)
def test_impossible_rows_are_worked_without_a_warning(family):
    rows, y = np.array([[1, 0], [1, 0], [0, 1]]), ["a", "a", "b"]
    model = tb.NaiveBayes(family, estimate="mle").fit(rows, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        text = model.show_work([[1, 1]])
    assert "impossible in every class" in text
    assert "nan" not in text
    assert "-inf" in text


def test_a_coefficient_is_common_to_all_classes():
    model = tb.NaiveBayes(tb.Multinomial(), estimate="mle").fit([[2, 1, 1], [0, 1, 3], [1, 1, 1]], ["a", "b", "c"])
    line = next(line for line in model.show_work([[1, 1, 2]]).splitlines() if line.startswith("log coefficient"))
    np.testing.assert_allclose(numbers(line), np.log(12), atol=6e-5)


def test_words_of_a_block_that_are_there_have_their_lines():
    words = sp.csr_array(RNG.poisson(0.02, (N, 500)))
    for family in (tb.Multinomial(), tb.Bernoulli(), tb.Poisson()):
        rows = words.minimum(1) if family == tb.Bernoulli() else words
        named = tb.NamedMatrix(rows, [f"word{k}" for k in range(500)])
        model = tb.NaiveBayes({"text": family}, estimate="map").fit({"text": named}, Y)
        first = {"text": rows[:1]}
        parts, total, lines = parts_of(model.show_work(first))
        np.testing.assert_allclose(total, model.predict_joint_log_proba(first)[0], atol=6e-5)
        np.testing.assert_allclose(parts.sum(axis=0), total, atol=2e-3)
        for place in np.flatnonzero(rows[[0]].toarray()[0]):
            assert any(line.startswith(f"log p(word{place} | class)") for line in lines)


def test_words_that_make_themselves_likelier_are_no_product():
    model = tb.NaiveBayes(tb.DirichletMultinomial(), prior=1).fit([[2, 1, 1], [0, 1, 3], [1, 1, 1]], ["a", "b", "c"])
    text = model.show_work([[1, 1, 2]])
    parts, total, _ = parts_of(text)
    np.testing.assert_allclose(parts.sum(axis=0), total, atol=1e-3)
    assert "log urn term of 2" in text


def test_what_is_calibrated_is_said_so():
    model = tb.NaiveBayes(calibration="temperature").fit(FRAME, Y)
    text = model.show_work(FRAME[:1])
    line = next(line for line in text.splitlines() if line.startswith("p(class | x), calibrated"))
    np.testing.assert_allclose(numbers(line), model.predict_proba(FRAME[:1])[0], atol=6e-5)


@pytest.mark.parametrize("metric", ["mahalanobis", "euclidean", "learned", np.diag([1.0, 0.5, 2.0])], ids=str)
def test_distances_are_worked_direction_by_direction(metric):
    model = tb.NearestClassMean(metric, max_iter=2000).fit(X, Y)
    parts, total, lines = parts_of(model.show_work(X[:1]))
    np.testing.assert_allclose(parts.sum(axis=0), model.squared_distances(X[:1])[0], atol=1e-3)
    np.testing.assert_allclose(total, model.squared_distances(X[:1])[0], atol=6e-5)
    assert lines[-1] == f"prediction: {model.predict(X[:1])[0]}"
    far = tb.NearestClassMean(lambda rows, mean: np.abs(rows - mean).sum(axis=1)).fit(X, Y).show_work(X[:1])
    assert "given metric" in far


def test_what_was_chosen_is_worked_member_by_member():
    model = tb.AutoClassifier(folds=2).fit(FRAME, Y)
    text = model.show_work(FRAME[:1])
    parts, total, lines = parts_of(text)
    weights = [member.spec.weight for member in model.members_]
    np.testing.assert_allclose(np.array(weights) @ parts, total, atol=2e-3)
    np.testing.assert_allclose(numbers(lines[-3]), model.predict_proba(FRAME[:1])[0], atol=6e-5)
    with pytest.raises(DataError, match="one row"):
        model.show_work(FRAME[:2])


def test_long_and_wide_rows_stay_readable():
    wide = RNG.normal(size=(200, 40))
    y = np.repeat([f"class number {k}" for k in range(10)], 20)
    text = tb.GaussianDiscriminant("tied").fit(wide, y).show_work(wide[:1])
    assert "and 28 more columns" in text
    assert len(text.splitlines()) < 40
    words = sp.csr_array(RNG.poisson(0.1, (200, 5000)))
    text = tb.NaiveBayes().fit(words, y).show_work(words[:1])
    assert len(text.splitlines()) < 40
    assert "4,988 other columns of x" in text
    widths = {len(line) for line in text.splitlines()[2:4]}
    assert len(widths) == 1  # numbers stand below their classes
    far = tb.NaiveBayes().fit(wide, y).show_work(wide[:1] * 1e12)
    assert "nan" not in far
