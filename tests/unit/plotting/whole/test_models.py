"""Pictures of whole models: decisions, joints, classes as images, graphs and trellises draw what the models say."""

from dataclasses import replace
from functools import cache

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.datasets import load_digits, load_iris

import tallybayes as tb
from tallybayes.errors import DataError
from tests.unit.plotting.readable import assert_readable, legend_of

mpl.use("Agg")
import matplotlib.pyplot as plt

rng = np.random.default_rng(0)
KIND = rng.choice(["a", "b", "c"], 300)
ROWS = {
    "sky": np.where(rng.random(300) < 0.6, KIND, "a"),
    "x": rng.normal(KIND == "b"),
    "calls": rng.poisson(2 + 3 * (KIND == "c")),
    "price": np.exp(rng.normal(KIND == "a")),
}
COLUMNS = {"sky": tb.Categorical(), "x": tb.Gaussian(), "calls": tb.Poisson(), "price": tb.LogNormal()}
IRIS, SPECIES = load_iris(return_X_y=True)
DIARY = [[3, 3, 2], [1, 1, 2], [1, 2, 3]]
WEATHER = [["hot", "hot", "cold"], ["cold"] * 3, ["cold", "hot", "hot"]]


@pytest.fixture(autouse=True)
def _no_figures_left():
    yield
    plt.close("all")


# ---- Decisions and joints --------------------------------------------------------------------------------------------


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("pair", [("sky", "x"), ("x", "price"), ("calls", "sky"), ("price", "calls")], ids=str)
def test_decisions_marginalize_what_is_not_drawn(pair):
    model = tb.NaiveBayes(COLUMNS).fit(ROWS, KIND)
    picture = model.plot_decision_boundary(ROWS, KIND, pair)
    assert_readable(picture)
    assert "the other 2 are marginalized" in picture.axes[0].get_title()
    drawn = picture.to_frame().iloc[::977]
    asked = {name: [None] * len(drawn) for name in ROWS} | {name: drawn[name].tolist() for name in pair}
    asked |= {name: np.full(len(drawn), np.nan) for name in ("x", "calls", "price") if name not in pair}
    assert model.predict(asked).tolist() == drawn["predicted"].tolist()


@pytest.mark.parametrize("name", ["x", "sky", "calls", "price"])
def test_along_one_column_probabilities_are_drawn(name):
    model = tb.NaiveBayes(COLUMNS).fit(ROWS, KIND)
    picture = model.plot_decision_boundary(ROWS, KIND, name)
    assert_readable(picture)
    assert "the other 3 are marginalized" in picture.axes[0].get_title()
    drawn = picture.to_frame().iloc[::37]
    asked = {other: [None] * len(drawn) for other in ROWS} | {name: drawn[name].tolist()}
    asked |= {other: np.full(len(drawn), np.nan) for other in ("x", "calls", "price") if other != name}
    told = np.stack([drawn[f"p({label})"] for label in model.classes_.tolist()], axis=1)
    np.testing.assert_allclose(told, model.predict_proba(asked), rtol=1e-9)


@pytest.mark.parametrize(
    "model", [tb.NearestClassMean(), tb.GaussianDiscriminant(), tb.NaiveBayes(tb.Binned(np.linspace(0, 8, 17)))]
)
def test_one_column_of_every_kind_of_answer(model):
    model = model.fit(IRIS, SPECIES)
    assert_readable(model.plot_decision_boundary(IRIS, SPECIES, [3]))
    told = type(model)(**model.get_params()).fit(IRIS[:, :1], SPECIES).plot_decision_boundary()  # all there is
    assert_readable(told)
    np.testing.assert_allclose(told.to_frame().filter(like="p(").sum(axis=1), 1.0)


def test_bins_are_drawn_in_the_plane():
    model = tb.NaiveBayes(tb.Binned(np.linspace(0, 8, 17))).fit(IRIS, SPECIES)
    assert_readable(model.plot_decision_boundary(IRIS, SPECIES, (2, 3)))
    with pytest.raises(tb.DataError, match=r"shape \(3,\); expected 2 names, or 1 name"):
        model.plot_decision_boundary(columns=[0, 1, 2])
    with pytest.raises(tb.DataError, match="expected 2 names"):
        model.plot_joint(columns=[0])


def test_the_components_of_rows_are_drawn_over_the_regions_of_a_mixture():
    mixture = tb.Mixture(3, random_state=0).fit(IRIS)
    drawn = mixture.plot_decision_boundary(IRIS, mixture.predict(IRIS), (2, 3))
    assert_readable(drawn)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    "model",
    [
        tb.GaussianDiscriminant(),
        tb.TreeAugmentedNaiveBayes(),
        tb.AveragedOneDependence(),
        tb.NaiveBayes(calibration="isotonic"),
    ],
    ids=lambda model: type(model).__name__,
)
def test_decisions_of_every_classifier(model):
    model = model.fit(IRIS, SPECIES)
    picture = model.plot_decision_boundary(IRIS, SPECIES, (2, 3))
    assert_readable(picture)
    assert legend_of(picture) == ["0", "1", "2"]
    mixture = tb.Mixture(3, random_state=0).fit(IRIS)
    assert_readable(mixture.plot_decision_boundary(IRIS))


def test_planes_start_at_0_if_no_row_is_negative():
    wide = tb.GaussianDiscriminant("diagonal").fit(np.abs(IRIS[:, 2:] - 2), SPECIES)
    below = wide.plot_decision_boundary(IRIS[:, 2:] - 2, SPECIES).to_frame()
    from_0 = wide.plot_decision_boundary(np.abs(IRIS[:, 2:] - 2), SPECIES).to_frame()
    assert (below.iloc[:, :2].min() < -1).all()
    assert (from_0.iloc[:, :2].min() > -0.1).all()


def test_decisions_of_nearest_means():
    model = tb.NearestClassMean("euclidean").fit(IRIS[:, 2:], SPECIES)
    picture = model.plot_decision_boundary(IRIS[:, 2:], SPECIES)
    assert_readable(picture)
    drawn = picture.to_frame()
    gap = drawn[["0", "1"]].to_numpy()[:, None] - model.means_
    np.testing.assert_array_equal((gap**2).sum(axis=2).argmin(axis=1), drawn["predicted"])


@pytest.mark.slow
@pytest.mark.parametrize(
    "metric",
    ["euclidean", "mahalanobis", lambda X, mean: np.abs(X - mean).sum(axis=1)],
    ids=["euclidean", "mahalanobis", "own"],
)
def test_nearest_means_in_any_two_columns_have_the_others_at_their_mean(metric):
    model = tb.NearestClassMean(metric).fit(IRIS, SPECIES)
    picture = model.plot_decision_boundary(IRIS, SPECIES, (3, 1))
    assert "the other 2 are at the mean of all rows" in picture.axes[0].get_title().replace("\n", " ")
    drawn = picture.to_frame().iloc[::977]
    rows = np.tile(IRIS.mean(axis=0), (len(drawn), 1))
    rows[:, [3, 1]] = drawn[["3", "1"]]
    assert model.predict(rows).tolist() == drawn["predicted"].tolist()
    said = model.plot_decision_boundary().axes[0]
    assert (said.get_xlabel(), said.get_ylabel()) == ("column 2", "column 3")  # petals tell most


@cache
def mixture_of_kinds():
    return tb.AutoClassifier().fit(ROWS, KIND)


def alone(number):
    """A chosen classifier of one member."""
    choice = mixture_of_kinds().spec_
    generative = [member for member in choice.members if member.trees is None]
    only = replace(generative[number], weight=1.0)
    return tb.AutoClassifier(spec=replace(choice, members=(only,))).fit(ROWS, KIND)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("pair", [None, ("sky", "x"), ("calls", "price")], ids=str)
@pytest.mark.parametrize("number", [None, 0])
def test_decisions_of_a_chosen_mixture_take_the_other_columns_for_missing(pair, number):
    model = mixture_of_kinds() if number is None else alone(number)
    picture = model.plot_decision_boundary(ROWS, KIND, pair)
    assert_readable(picture)
    title = picture.axes[0].get_title().replace("\n", " ")
    assert title.startswith(f"AutoClassifier: {model.members_[0].spec.name}")
    assert "the other 2 are missing" in title
    assert (pair is None) == ("the two of 4 columns with the largest information" in title)
    frame = picture.to_frame()
    pair = pair or tuple(frame)[:2]
    drawn = frame.iloc[::487]
    asked = {name: drawn[name].tolist() if name in pair else [None] * len(drawn) for name in ROWS}
    asked |= {name: np.full(len(drawn), np.nan) for name in ("x", "calls", "price") if name not in pair}
    assert model.predict(asked).tolist() == drawn["predicted"].tolist()


@pytest.mark.slow
def test_a_chosen_mixture_draws_its_heaviest_member_and_says_so():
    model = mixture_of_kinds()
    generative = next(spec for spec, _ in model.members_ if spec.trees is None)
    said = f"by {generative.name}, weight "
    row = {name: column[:1] for name, column in ROWS.items()}
    two = [name for name in model.parameters_ if name in ROWS][:2]
    for picture in (
        model.plot_columns(X=ROWS, y=KIND),
        model.plot_joint(ROWS, KIND),
        model.plot_joint(ROWS, KIND, two),
        model.plot_graph(),
    ):
        assert_readable(picture)
        words = [picture.figure.get_suptitle(), *(axes.get_title() for axes in picture.axes)]
        assert said in " ".join(words).replace("\n", " ")
    assert set(model.plot_columns(columns=two).to_frame()["column"]) == set(two)
    assert_readable(model.plot_explanation(row))


@pytest.mark.slow
def test_classes_are_images_where_a_member_leaves_columns_out():
    images, digits = load_digits(return_X_y=True)
    model = tb.AutoClassifier(single=True).fit(images[:200], digits[:200])
    frame = model.plot_class_means((8, 8)).to_frame()
    assert len(frame) == 640
    assert frame.loc[frame["column"] == 0, "expected"].isna().all()  # 0 in every row
    close = frame.loc[frame["column"] == 20].set_index("class")["expected"]
    mean = [images[:200][digits[:200] == k, 20].mean() for k in close.index]
    assert np.corrcoef(close, mean)[0, 1] > 0.9


def test_columns_of_a_named_matrix_have_their_names_in_pictures():
    matrix = scipy.sparse.csr_array(rng.poisson(np.where(KIND[:, None] == "a", 4, 1), (300, 3)))
    counts = tb.NamedMatrix(matrix, ["free", "money", "lunch"])
    model = tb.NaiveBayes(tb.Poisson()).fit(counts, KIND)
    picture = model.plot_columns(columns=["money", "free"])
    assert [axes.get_title() for axes in picture.axes] == ["money", "free"]
    assert model.plot_decision_boundary(counts, KIND, columns=("lunch", "free")).axes[0].get_xlabel() == "lunch"
    assert model.plot_decision_boundary(columns=(("x", 2), "free")).axes[0].get_xlabel() == "lunch"
    words = tb.NaiveBayes(tb.Multinomial()).fit(counts, KIND).plot_columns()
    assert set(words.to_frame()["value"]) == {"free", "money", "lunch"}


@pytest.mark.slow
def test_places_go_by_the_names_of_their_columns():
    rows = {"class": rng.normal(size=40), "predicted": rng.normal(size=40)}
    y = np.arange(40) % 2
    for model in (tb.NaiveBayes(), tb.NearestClassMean()):
        assert model.fit(rows, y).plot_decision_boundary().to_frame().columns.tolist() == [
            "class_",
            "predicted_",
            "predicted",
        ]
    found = tb.NaiveBayes().fit(rows, y).plot_joint(rows, y).to_frame()
    assert found.columns.tolist() == ["class", "class_", "predicted_", "log_joint", "log_product"]
    labels = tb.NaiveBayes(COLUMNS).fit(ROWS, KIND).plot_joint(ROWS, KIND, ("sky", "x")).to_frame()
    assert set(labels["sky"]) == set(ROWS["sky"])


def test_a_model_as_given_has_no_estimate():
    given = tb.GaussianDiscriminant.from_parameters({"a": [0, 0], "b": [6, 1]}, np.eye(2), covariance="tied")
    assert given.plot_decision_boundary().axes[0].get_title() == "tied covariance, fixed parameters"
    counted = tb.GaussianDiscriminant("tied").fit(IRIS[:, :2], SPECIES).plot_decision_boundary()
    assert counted.axes[0].get_title() == "tied covariance, bayes estimate"


def test_columns_to_decide_by_are_two_and_known():
    model = tb.NaiveBayes(COLUMNS).fit(ROWS, KIND)
    with pytest.raises(DataError, match="no column 'sea'"):
        model.plot_decision_boundary(columns=("sky", "sea"))
    with pytest.raises(DataError, match=r"\(3,\); expected 2 names"):
        model.plot_decision_boundary(columns=("sky", "x", "calls"))


def test_a_joint_beside_the_product_of_its_marginals():
    truth = [[1, 0.8], [0.8, 1]]
    y = np.arange(4000) % 2
    X = rng.multivariate_normal([0, 0], truth, 4000) + 2 * y[:, None]
    full = tb.GaussianDiscriminant("full", estimate="mle").fit(X, y)
    picture = full.plot_joint(X, y)
    assert_readable(picture)
    within = np.concatenate([X[y == k] - X[y == k].mean(axis=0) for k in (0, 1)])
    correlation = np.corrcoef(within.T)[0, 1]
    assert bits_lost(picture) == pytest.approx(-0.5 * np.log2(1 - correlation**2), abs=0.02)
    naive = tb.NaiveBayes(estimate="mle").fit(X, y).plot_joint(X, y)
    assert bits_lost(naive) == pytest.approx(-0.5 * np.log2(1 - correlation**2), abs=0.005)
    assert "estimated from 4,000 rows" in naive.axes[0].get_title()
    frame, twin = (
        naive.to_frame(),
        tb.GaussianDiscriminant("full", estimate="mle").fit(X, y).plot_joint(X, y).to_frame(),
    )
    likely = twin["log_joint"] > twin["log_joint"].max() - 6
    np.testing.assert_allclose(frame["log_joint"][likely], twin["log_joint"][likely], atol=0.05)
    np.testing.assert_allclose(frame["log_product"], twin["log_product"], atol=1e-9)


def bits_lost(picture):
    return float(picture.axes[1].get_title().replace("\n", " ").rsplit("loses ")[1].split()[0])


def test_naive_bayes_needs_rows_for_the_joint():
    model = tb.NaiveBayes(COLUMNS).fit(ROWS, KIND)
    for rows in ({}, {"X": ROWS}):
        with pytest.raises(DataError, match=r"(?s)X and y are missing.*'sky', 'x'.*plot_joint\(X, y, columns="):
            model.plot_joint(**rows, columns=("sky", "x"))


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("sides", ["labels", "label and number", "number and label", "counts"])
def test_joint_of_other_columns_by_the_rows(sides):
    n = 2000
    a, y = rng.integers(0, 3, n), np.arange(n) % 2
    copy = np.where(rng.random(n) < 0.9, a, rng.integers(0, 3, n))
    words, twins = np.array(list("uvw"))[a], np.array(list("pqr"))[copy]
    number, truth = 4.0 * a + rng.normal(size=n), np.bincount(3 * a + copy, minlength=9).reshape(3, 3) / n
    expected = (truth * np.log2(truth / np.outer(truth.sum(1), truth.sum(0)))).sum()
    family = {}
    if sides == "labels":
        rows = {"a": words, "b": twins}
    elif sides == "counts":
        shared = rng.poisson(3, n)
        rows, family = {"a": shared + rng.poisson(1, n), "b": shared + rng.poisson(1, n)}, {...: tb.Poisson()}
        expected = -0.5 * np.log2(1 - 0.75**2)  # ρ = 3/4, of counts about
    else:
        rows = {"a": words, "b": number} if sides == "label and number" else {"a": number, "b": words}
        expected = np.log2(3) - 0.17  # the number all but determines the label
    model = tb.NaiveBayes(family or "auto").fit(rows, y)
    picture = model.plot_joint(rows, y)
    assert_readable(picture)
    assert bits_lost(picture) == pytest.approx(expected, rel=0.15)
    apart = {"a": rows["a"], "b": rng.permutation(rows["b"])}
    assert bits_lost(model.plot_joint(apart, y)) < 0.02


def test_joint_of_a_mixture_is_weighted_by_responsibilities():
    X = rng.multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], 1000)
    mixture = tb.Mixture(1).fit(X)
    correlation = np.corrcoef(X.T)[0, 1]
    assert bits_lost(mixture.plot_joint(X)) == pytest.approx(-0.5 * np.log2(1 - correlation**2), abs=0.02)
    with pytest.raises(DataError, match=r"plot_joint\(X, columns="):
        mixture.plot_joint()


@pytest.mark.slow
def test_yes_and_no_is_one_bar_a_class():
    X, y = rng.integers(0, 2, (500, 3)), np.arange(500) % 50
    model = tb.NaiveBayes(tb.Bernoulli(), estimate="mle").fit(X, y)
    picture = model.plot_columns()
    assert_readable(picture)
    heights = [bar.get_height() for bar in picture.axes[0].patches]
    np.testing.assert_allclose(heights, [X[y == k, 0].mean() for k in range(40)])
    assert "40 of 50 classes" in picture.axes[0].get_title()


@pytest.mark.slow
def test_numbers_far_from_zero_and_classes_that_cannot_be():
    y = np.arange(100) % 2
    X = np.column_stack([1e12 + 1e-3 * rng.normal(size=100), 1e-9 * rng.normal(size=100) + y])
    for model in (tb.NaiveBayes(class_prior=[0, 1]).fit(X, y), tb.GaussianDiscriminant().fit(X, y)):
        for picture in (model.plot_columns(X=X, y=y), model.plot_decision_boundary(X, y), model.plot_joint(X, y)):
            assert_readable(picture)
    sure = tb.NaiveBayes(tb.Categorical(), estimate="mle").fit([["u", "p"], ["v", "q"]], [0, 1])
    for picture in (
        sure.plot_columns(),
        sure.plot_decision_boundary(),
        sure.plot_joint([["u", "p"], ["v", "q"]], [0, 1]),
    ):
        assert_readable(picture)


def test_columns_with_their_data_behind():
    model = tb.NaiveBayes(COLUMNS).fit(ROWS, KIND)
    picture = model.plot_columns(["x", "calls", "price"], ROWS, KIND)
    assert_readable(picture)
    from matplotlib.patches import StepPatch

    for panel in picture.axes:
        assert sum(isinstance(patch, StepPatch) for patch in panel.patches) == 3
    counts = picture.axes[1].patches[0].get_data().values
    expected = [(ROWS["calls"][KIND == "a"] == n).mean() for n in range(len(counts))]
    np.testing.assert_allclose(counts, expected)
    with pytest.raises(DataError, match="y is missing; expected the class"):
        model.plot_columns(X=ROWS)


# ---- Classes as images -----------------------------------------------------------------------------------------------


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("covariance", ["tied", "diagonal"])
def test_classes_are_images_of_their_means(covariance):
    digits, y = load_digits(return_X_y=True)
    model = tb.GaussianDiscriminant(covariance, estimate="map").fit(digits, y)
    picture = model.plot_class_means((8, 8))
    assert_readable(picture)
    assert [ax.get_title() for ax in picture.axes] == [str(k) for k in range(10)]
    np.testing.assert_allclose(picture.axes[3].images[0].get_array(), model.means_[3].reshape(8, 8), rtol=1e-12)


@pytest.mark.slow
def test_classes_of_yes_and_no_are_shares_and_few_of_many():
    X, y = rng.integers(0, 2, (500, 6)), np.arange(500) % 50
    model = tb.NaiveBayes(tb.Bernoulli()).fit(X, y)
    picture = model.plot_class_means((2, 3))
    assert_readable(picture)
    assert len(picture.axes) == 40
    assert picture.figure.texts[0].get_text() == "showing 40 of 50 classes, the most frequent"
    assert picture.axes[0].images[0].get_clim() == (0.0, 1.0)
    with pytest.raises(DataError, match="whose product is 6"):
        model.plot_class_means((2, 2))
    with pytest.raises(DataError, match="column 'sky' is categorical"):
        tb.NaiveBayes(COLUMNS).fit(ROWS, KIND).plot_class_means((2, 2))


# ---- Graphs and trellises --------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_graphs_with_plates():
    many = {f"a block whose name goes on and on {k}": rng.normal(size=300) for k in range(9)}
    kinds = {name: [tb.Gaussian(), tb.LogNormal(), tb.Poisson()][0] for name in many}
    for model in (
        tb.NaiveBayes().fit(IRIS, SPECIES),
        tb.NaiveBayes(COLUMNS).fit(ROWS, KIND),
        tb.NaiveBayes(kinds).fit(many, KIND),
        tb.GaussianDiscriminant().fit(IRIS, SPECIES),
        tb.NaiveBayes(tb.Multinomial()).fit(rng.poisson(2, (20, 300)), np.arange(20) % 2),
        tb.Mixture(3, random_state=0).fit(IRIS),
        tb.TreeAugmentedNaiveBayes().fit(IRIS, SPECIES),
        tb.HiddenMarkovModel().fit(DIARY, WEATHER),
    ):
        assert_readable(model.plot_graph())
    picture = tb.NaiveBayes(COLUMNS).fit(ROWS, KIND).plot_graph()
    frame = picture.to_frame()
    assert set(frame[frame["from"] == "class"]["to"]) == set(ROWS)
    texts = [text.get_text() for text in picture.axes[0].texts]
    assert {"300 rows", "3 classes", "Poisson"} <= set(texts)


def test_the_tree_of_columns_is_in_the_graph():
    model = tb.TreeAugmentedNaiveBayes().fit(IRIS, SPECIES)
    frame = model.plot_graph().to_frame()
    found = {(parent, child) for parent, child in zip(frame["parent"], frame["child"], strict=True)}
    between = {(parent, child) for child, parent in model.parents_.items() if parent is not None}
    assert between | {("class", child) for child in range(4)} <= found


def test_a_trellis_shows_the_best_path():
    model = tb.HiddenMarkovModel(columns=tb.Categorical(), estimate="mle").fit(DIARY, WEATHER)
    (trellis,) = model.trellis([[1, 2, 3]])
    picture = trellis.plot()
    assert_readable(picture)
    (ax,) = picture.axes
    path = ax.lines[0].get_ydata()
    assert [trellis.states[k] for k in path] == trellis.path.tolist()
    assert len(ax.collections[0].get_segments()) == (trellis.pointers >= 0).sum()
    assert "0.027" in [text.get_text() for text in ax.texts]
    frame = picture.to_frame()
    np.testing.assert_allclose(frame["log_delta"], trellis.log_delta.ravel())


@pytest.mark.slow
def test_a_trellis_of_an_impossible_sequence_and_of_a_long_one():
    model = tb.HiddenMarkovModel(columns=tb.Categorical(), estimate="mle", unseen="missing")
    model = model.fit([[0, 0], [1, 1]], [["a", "a"], ["b", "b"]])
    with pytest.warns(UserWarning, match="impossible"):
        (trellis,) = model.trellis([[0, 1]])
    assert "impossible" in trellis.plot().axes[0].get_title()
    states = rng.integers(0, 30, 200)
    long = tb.HiddenMarkovModel().fit([rng.normal(states)], [[f"a state of a long name, {k}" for k in states]])
    assert_readable(long.trellis([rng.normal(states)])[0].plot())


# ---- Every picture ---------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_picture_is_a_file_and_shows_itself(tmp_path):
    picture = tb.NaiveBayes().fit(IRIS, SPECIES).plot_columns()
    for ending in ("svg", "pdf", "png"):
        picture.save(tmp_path / f"x.{ending}")
    assert b"<svg" in (tmp_path / "x.svg").read_bytes()[:1000]
    assert picture._repr_png_().startswith(b"\x89PNG")
    assert repr(picture).startswith("<Plot of 4 panels")
    assert picture.figure is picture.axes[0].figure
    frame = picture.to_frame()
    assert list(frame) == ["column", "class", "value", "what", "height"]
    assert len(frame) == 4 * 3 * 400


def test_a_notebook_shows_a_picture_once(monkeypatch):
    picture = tb.Beta(2, 2).plot()
    assert picture._repr_png_().startswith(b"\x89PNG")
    monkeypatch.setattr(mpl, "get_backend", lambda: "module://matplotlib_inline.backend_inline")
    assert picture._repr_png_() is None  # the notebook shows open figures itself
    plt.close(picture.figure)
    assert picture._repr_png_() is not None  # and closes them: later, the picture shows itself


@pytest.mark.slow
def test_one_class_and_columns_that_say_nothing():
    rows = {"same": np.ones(20), "lost": np.full(20, np.nan), "x": rng.normal(size=20)}
    model = tb.NaiveBayes().fit(rows, np.zeros(20, dtype=int))
    for picture in (model.plot_columns(), model.plot_decision_boundary(columns=("x", "same")), model.plot_graph()):
        assert_readable(picture)


def test_graphs_of_models_with_dependent_columns():
    rows = {"a": list("uvuvuvuv"), "b": list("ppqqppqq"), "c": list("xxxxyyyy")}
    y = [0, 1, 1, 0] * 2
    average = tb.AveragedOneDependence().fit(rows, y).plot_graph()
    assert_readable(average)
    assert ("parent", "others") in set(zip(*average.to_frame()[["from", "to"]].to_numpy().T, strict=True))
    assert "mean over i" in average.axes[0].get_title()
    assert "2 other columns" in [text.get_text() for text in average.axes[0].texts]
    network = tb.BayesianNetwork({"a": [], "b": ["a"]}).fit(rows)
    assert network.plot_graph().to_frame().equals(network.plot(tables=False).to_frame())


def test_states_of_all_that_predict_takes():
    mean = np.array([[0.0], [4.0]])
    model = tb.HiddenMarkovModel(2, random_state=0, columns=tb.Gaussian())
    sequences = [rng.normal(mean[k], 1.0, (20 + k, 1))[:, 0] for k in (0, 1, 1)]
    model.fit(sequences)
    joined = np.concatenate(sequences)
    number = np.repeat([0, 1, 2], [len(one) for one in sequences])
    frame = pd.DataFrame({"who": number, "at": np.concatenate([np.arange(len(one)) for one in sequences]), 0: joined})
    told = model.plot_states(sequences)
    assert_readable(told)
    lines = told.to_frame()
    assert lines["sequence"].value_counts().tolist() == [42, 42, 40]
    assert lines["predicted"][::2].tolist() == np.concatenate(model.predict(sequences)).tolist()
    assert "dashed lines are between sequences" in told.axes[-1].get_xlabel()
    for picture in (
        model.plot_states(joined, [20, 21, 21]),
        model.plot_states(joined[:, None], lengths=[20, 21, 21]),
        model.plot_states(frame, sequence="who", order="at"),
        model.plot_states([one.tolist() for one in sequences]),
    ):
        pd.testing.assert_frame_equal(picture.to_frame(), lines)
    for one in (sequences[0], sequences[0].tolist(), sequences[:1], sequences[0][:, None]):
        assert "sequence" not in model.plot_states(one).to_frame()
    many = model.plot_states(sequences * 4)
    assert "the first 8 of 12 sequences" in many.axes[0].get_title()
    with pytest.raises(DataError, match="no time steps"):
        model.plot_states([])
