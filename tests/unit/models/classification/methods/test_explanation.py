"""Weights of evidence sum to the log-odds; the worked row shows the model's own numbers; linear forms; pictures."""

import re

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.special import expit, softmax

import tallybayes as tb
from tallybayes.errors import DataError, LabelError, NotLinearError

ESTIMATES = ["mle", "unbiased", "map", "bayes"]
FAMILIES = [
    tb.Bernoulli(),
    tb.Binomial(9),
    tb.Categorical(tuple(range(10))),
    tb.Poisson(),
    tb.Multinomial(),
    tb.DirichletMultinomial(),
    tb.Gaussian(),
    tb.TiedGaussian(),
    tb.SphericalGaussian(),
    tb.TiedSphericalGaussian(),
    tb.MultivariateGaussian(),
    tb.TiedMultivariateGaussian(),
]
TAKES_NO_MISSING = (tb.Multinomial, tb.MultivariateGaussian)


def rows_for(family, n=45, seed=0):
    rng = np.random.default_rng(seed)
    y = np.array(["a", "b", "c"])[np.arange(n) % 3]
    X = rng.poisson(3 + (y == "b")[:, None], (n, 3)).clip(0, 9).astype(float)
    return (X > 3).astype(float) if isinstance(family, tb.Bernoulli) and not isinstance(family, tb.Binomial) else X, y


def gaps(model, X, classes, others):
    """log p(class, row) − log p(other, row), from the model's own joint."""
    joint, place = model.predict_joint_log_proba(X), {label: k for k, label in enumerate(model.classes_)}
    rows = np.arange(len(joint))
    with np.errstate(invalid="ignore"):
        return joint[rows, [place[c] for c in classes]] - joint[rows, [place[o] for o in others]]


@pytest.mark.slow_after(4)
@pytest.mark.parametrize("estimate", ESTIMATES)
@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_contributions_sum_to_the_log_odds(family, estimate):
    X, y = rows_for(family)
    model = tb.NaiveBayes(family, estimate=estimate).fit(X, y)
    X = X[np.isfinite(model.predict_joint_log_proba(X)).all(axis=1)]
    assert len(X) > 10
    found = model.explain(X)
    joint = model.predict_joint_log_proba(X)
    assert found.classes.tolist() == model.predict(X).tolist()
    np.testing.assert_allclose(found.log_odds, np.diff(np.sort(joint, axis=1))[:, -1], atol=1e-11)
    np.testing.assert_allclose(found.contributions.sum(axis=1), found.log_odds, atol=1e-12)
    for other in model.classes_:
        against = model.explain(X, against=other)
        assert (against.against == other).all()
        assert (against.classes != other).all()
        np.testing.assert_allclose(against.log_odds, gaps(model, X, against.classes, against.against), atol=1e-11)
    np.testing.assert_allclose(found.contributions[:, 0], 0.0, atol=1e-15)  # the classes are of one size


@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_a_missing_column_contributes_nothing(family):
    X, y = rows_for(family)
    model = tb.NaiveBayes(family).fit(X, y)
    if isinstance(family, tb.Multinomial):
        X[:, 1] = 0  # a word that does not occur
    else:
        X[:, 1] = np.nan
    found = model.explain(X)
    np.testing.assert_allclose(found.contributions[:, 2], 0.0, atol=1e-12)
    np.testing.assert_allclose(found.log_odds, gaps(model, X, found.classes, found.against), atol=1e-11)


def mixed():
    columns = {
        "sky": ["sun", "rain", "snow", "sun", None, "rain", "sun", "rain"],
        "calls": [1, 2, 0, 4, 5, 3, 2, 2],
        "warmth": [1.0, 2.0, 3.0, None, 5.0, 4.0, 0.5, 2.5],
        "words": sparse.csr_array(np.random.default_rng(0).poisson(1, (8, 4))),
    }
    families = {"sky": tb.Categorical(), "calls": tb.Poisson(), "warmth": tb.Gaussian(), "words": tb.Multinomial()}
    return tb.NaiveBayes(families).fit(columns, list("pqpqpqqq")), columns


def test_an_explanation_of_mixed_columns():
    model, columns = mixed()
    found = model.explain(columns)
    assert found.columns == ["(class prior)", "sky", "calls", "warmth", *(("words", j) for j in range(4))]
    np.testing.assert_allclose(found.log_odds, gaps(model, columns, found.classes, found.against), atol=1e-12)
    share = np.log(4 / 6)  # three rows of p, five of q, and one more of each
    np.testing.assert_allclose(found.contributions[:, 0], np.where(found.classes == "p", share, -share), atol=1e-14)
    assert found.contributions[4, 1] == 0
    assert found.contributions[3, 3] == 0
    frame = found.to_frame()
    assert len(frame) == 8 * 8
    np.testing.assert_allclose(frame.groupby("row")["contribution"].sum(), found.log_odds, atol=1e-12)
    assert frame["value"].tolist()[:4] == [None, "sun", 1.0, 1.0]
    ordered = list(found.to_dict(2).values())
    assert sorted(np.abs(ordered), reverse=True) == np.abs(ordered).tolist()
    text = repr(found)
    assert "5 more rows" in text
    for row in range(3):
        assert f"{found.classes[row]} against {found.against[row]}, log-odds {found.log_odds[row]:+.3f}" in text
    with pytest.raises(LabelError, match="'z'"):
        model.explain(columns, against="z")


def test_explaining_impossible_and_unseen_cells():
    rows = {"u": ["a", "a", "b"], "v": ["x", "x", "y"]}
    model = tb.NaiveBayes(estimate="mle").fit(rows, [0, 0, 1])
    found = model.explain({"u": ["a", "a"], "v": ["x", "y"]})
    assert found.classes.tolist() == [0, 0]
    assert found.against.tolist() == [1, 1]  # never the class itself
    assert found.log_odds.tolist() == [np.inf, pytest.approx(np.log(2))]  # possible in one class; in none
    assert not np.isnan(found.contributions).any()
    smooth = tb.NaiveBayes(unseen="smooth").fit(rows, [0, 0, 1])
    strange = {"u": ["z"], "v": ["x"]}
    found = smooth.explain(strange)
    np.testing.assert_allclose(found.log_odds, gaps(smooth, strange, found.classes, found.against), atol=1e-12)
    assert found.values[0][1] == "(unseen)"
    assert "adds 0" not in smooth.show_work(strange)


@pytest.mark.parametrize("form", [np.array, sparse.csr_array], ids=["dense", "sparse"])
def test_an_impossible_row_names_the_cells_that_make_it_so(form):
    X, y = np.array([[1, 0, 0, 1], [1, 0, 0, 0], [0, 1, 0, 1], [0, 1, 0, 0]]), list("aabb")
    model = tb.NaiveBayes(tb.Bernoulli(), estimate="mle", class_prior={"a": 0.75, "b": 0.25}).fit(form(X), y)
    found = model.explain(form(np.array([[1, 1, 0, 1], [1, 0, 1, 1], [1, 0, 0, 1]])))
    assert found.log_odds.tolist() == pytest.approx([np.log(3), np.log(3), np.inf])
    np.testing.assert_allclose(found.contributions[0], [np.log(3), np.inf, -np.inf, 0, 0])
    np.testing.assert_allclose(found.contributions[1], [np.log(3), np.inf, np.inf, 0, 0])
    first, second, third = repr(found).split("\n\n")
    assert "log-odds +1.099 by the class prior alone: the row is impossible in both" in first
    assert re.search(r"0\)? +1 +\+inf", first)
    assert re.search(r"1\)? +1 +-inf", first)
    assert re.search(r"2\)? +1 +impossible in both", second)
    assert "impossible" not in third


def test_more_infinities_than_are_shown():
    X = np.concatenate([np.eye(2).repeat(15, axis=1), np.eye(2).repeat(15, axis=1)])
    model = tb.NaiveBayes(tb.Bernoulli(), estimate="mle").fit(X, [0, 1, 0, 1])
    found = model.explain(np.ones((1, 30)))
    assert re.search("19 more +±inf", repr(found))
    assert list(found.to_dict().values())[-1] == 0.0


def numbers_of(line, n_classes):
    """The last numbers of a line of worked text."""
    return [float(text) for text in re.findall(r"-?\d+\.\d+|-?inf", line)[-n_classes:]]


@pytest.mark.slow_after(6)
@pytest.mark.parametrize("estimate", ESTIMATES)
@pytest.mark.parametrize("family", FAMILIES, ids=repr)
def test_the_worked_row_shows_the_model_s_numbers(family, estimate):
    X, y = rows_for(family)
    model = tb.NaiveBayes(family, estimate=estimate).fit(X, y)
    X = X[np.isfinite(model.predict_joint_log_proba(X)).all(axis=1)]
    lines = model.show_work(X[:1]).splitlines()
    by_title = {line.split("  ")[0]: line for line in lines}
    np.testing.assert_allclose(numbers_of(by_title["log p(class)"], 3), np.log([1 / 3] * 3), atol=1e-4)
    joint = model.predict_joint_log_proba(X[:1])[0]
    np.testing.assert_allclose(numbers_of(by_title["log p(class, x)"], 3), joint, atol=1e-4)
    np.testing.assert_allclose(numbers_of(by_title["p(class | x)"], 3), model.predict_proba(X[:1])[0], atol=1e-4)
    parts = [
        numbers_of(line, 3) for line in lines[3 : [line.strip()[:1] for line in lines].index("─")] if line[0] != " "
    ]
    np.testing.assert_allclose(np.sum(parts, axis=0), joint, atol=5e-4)
    assert lines[-1] == f"prediction: {model.predict(X[:1])[0]}"


def test_the_worked_row_of_mixed_columns():
    model, columns = mixed()
    row = {"sky": ["sun"], "calls": [2], "warmth": [None], "words": columns["words"][:1]}
    text = model.show_work(row)
    assert "missing: marginalized, adds 0" in text
    assert re.search(r"log p\(sky \| class\) +sun", text)
    total = next(line for line in text.splitlines() if line.startswith("log p(class, x)"))
    np.testing.assert_allclose(numbers_of(total, 2), model.predict_joint_log_proba(row)[0], atol=1e-4)
    lines = text.splitlines()
    rule = next(place for place, line in enumerate(lines) if line.strip().startswith("─"))
    shown = [line for line in lines[3:rule] if not line.startswith(" ")]
    np.testing.assert_allclose(np.sum([numbers_of(line, 2) for line in shown], axis=0), numbers_of(total, 2), atol=5e-4)
    with pytest.raises(DataError, match="one row"):
        model.show_work({"sky": ["sun"] * 2, "calls": [1, 2], "warmth": [1.0, 2.0], "words": columns["words"][:2]})


LINEAR = [
    (tb.Bernoulli(), "bayes"),
    (tb.Bernoulli(), "map"),
    (tb.Bernoulli(), "mle"),
    (tb.Multinomial(), "bayes"),
    (tb.Multinomial(), "map"),
    (tb.Multinomial(), "mle"),
    (tb.DirichletMultinomial(), "map"),
    (tb.Poisson(), "mle"),
    (tb.Poisson(), "map"),
    (tb.TiedGaussian(), "mle"),
    (tb.TiedGaussian(), "map"),
    (tb.TiedGaussian(), "unbiased"),
    (tb.TiedSphericalGaussian(), "map"),
    (tb.TiedMultivariateGaussian(), "unbiased"),
]


@pytest.mark.parametrize(("family", "estimate"), LINEAR, ids=repr)
def test_linear_forms(family, estimate):
    X, y = rows_for(family)
    weights = np.where(y == "b", 3.0, 1.0)
    many = tb.NaiveBayes(family, estimate=estimate).fit(X, y, sample_weight=weights)
    form = many.to_linear()
    assert form.coef.shape == (3, 3)
    np.testing.assert_allclose(softmax(X @ form.coef.T + form.intercept, axis=1), many.predict_proba(X), atol=1e-11)
    np.testing.assert_allclose(form.predict_proba(X), many.predict_proba(X), atol=1e-11)
    two = many.drop_class("c")
    form = two.to_linear()
    assert form.coef.shape == (1, 3)
    assert form.classes.tolist() == ["a", "b"]
    np.testing.assert_allclose(expit(X @ form.coef[0] + form.intercept[0]), two.predict_proba(X)[:, 1], atol=1e-11)


def test_the_textbook_s_signs():
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 50)
    X = rng.normal(size=(50, 3)) + y[:, None]
    form = tb.NaiveBayes(tb.TiedGaussian(), estimate="mle").fit(X, y).to_linear()
    zero, one = X[y == 0], X[y == 1]
    variance = (zero.var(axis=0) * len(zero) + one.var(axis=0) * len(one)) / 50
    mu0, mu1, theta = zero.mean(axis=0), one.mean(axis=0), y.mean()
    # the textbook's P(1 | x) = 1 / (1 + exp(w·x + b))
    w = (mu0 - mu1) / variance
    b = np.log((1 - theta) / theta) + ((mu1**2 - mu0**2) / (2 * variance)).sum()
    np.testing.assert_allclose(form.coef[0], -w, rtol=1e-11)
    np.testing.assert_allclose(form.intercept[0], -b, rtol=1e-10)


def test_a_linear_form_of_mixed_columns_keeps_the_order_of_its_columns():
    rng = np.random.default_rng(4)
    X = np.column_stack([rng.integers(0, 2, 40), rng.normal(size=40), rng.integers(0, 2, 40), rng.poisson(2, 40)])
    y = rng.integers(0, 2, 40)
    columns = {(0, 2): tb.Bernoulli(), 1: tb.TiedGaussian(), 3: tb.Poisson()}
    model = tb.NaiveBayes(columns, estimate="map").fit(X, y)
    form = model.to_linear()
    assert form.columns == (0, 1, 2, 3)  # as the rows have them, not as the blocks came
    np.testing.assert_allclose(expit(X @ form.coef[0] + form.intercept[0]), model.predict_proba(X)[:, 1], atol=1e-12)
    frame = pd.DataFrame(X, columns=["d", "c", "b", "a"])
    named = tb.NaiveBayes(columns, estimate="map").fit(frame, y).to_linear()
    assert named.columns == ("d", "c", "b", "a")
    np.testing.assert_allclose(named.coef, form.coef, rtol=1e-13)


@pytest.mark.parametrize(
    ("family", "estimate"),
    [
        (tb.Gaussian(), "map"),
        (tb.Gaussian(), "bayes"),
        (tb.TiedGaussian(), "bayes"),
        (tb.Poisson(), "bayes"),
        (tb.DirichletMultinomial(), "bayes"),
        (tb.Categorical(), "map"),
        (tb.Binomial(9), "bayes"),
        (tb.MultivariateGaussian(), "mle"),
    ],
    ids=repr,
)
def test_what_is_not_linear_says_so(family, estimate):
    X, y = rows_for(family)
    with pytest.raises(NotLinearError, match=type(family).__name__):
        tb.NaiveBayes(family, estimate=estimate).fit(X, y).to_linear()


def test_impossible_values_have_no_linear_form():
    with pytest.raises(NotLinearError, match="impossible"):
        tb.NaiveBayes(tb.Bernoulli(), estimate="mle").fit([[1, 0], [0, 1]], [0, 1]).to_linear()


@pytest.fixture
def pyplot():
    mpl.use("agg")
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


def test_a_picture_of_an_explanation(pyplot):
    model, columns = mixed()
    row = {name: column[:1] for name, column in columns.items()}
    (axes,) = model.plot_explanation(row).axes
    found = model.explain(row)
    widths = sorted(bar.get_width() for bar in axes.patches)
    np.testing.assert_allclose(widths, np.sort(found.contributions[0]), atol=1e-12)
    assert f"{found.log_odds[0]:+.2f}" in axes.get_title()
    _, given = pyplot.subplots()
    assert model.plot_explanation(row, against="q", ax=given).axes[0] is given


def test_a_picture_of_an_impossible_row(pyplot):
    model = tb.NaiveBayes(tb.Bernoulli(), estimate="mle").fit([[1, 0], [0, 1]], ["a", "b"])
    (axes,) = model.plot_explanation([[1, 1]]).axes
    assert sorted(bar.get_width() for bar in axes.patches) == [-1.0, 0.0, 1.0]
    assert [text.get_text() for text in axes.texts] == ["∞", "∞"]


def test_pictures_of_columns(pyplot):
    model, _ = mixed()
    figure = model.plot_columns()
    drawn = [axes for axes in figure.axes if axes.get_visible()]
    assert [axes.get_title() for axes in drawn] == ["sky", "calls", "warmth", "words"]
    bars = [bar.get_height() for bar in drawn[0].patches]
    assert sum(bars) == pytest.approx(2.0)  # the levels of each of two classes
    for line in drawn[2].get_lines():  # Student t, over four scales
        assert np.trapezoid(line.get_ydata(), line.get_xdata()) == pytest.approx(1.0, abs=0.1)
    assert len([axes for axes in model.plot_columns(["sky"]).axes if axes.get_visible()]) == 1
