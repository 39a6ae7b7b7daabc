"""Every picture with two and with thirty classes, three and three hundred columns, long labels: all can be read."""

import matplotlib as mpl
import numpy as np
import pytest

import tallybayes as tb
from tests.unit.plotting.readable import assert_readable, legend_of

mpl.use("Agg")
import matplotlib.pyplot as plt

LONG = "a label that goes on and on, as labels of real data do, number"


@pytest.fixture(autouse=True)
def _no_figures_left():
    yield
    plt.close("all")


def numbers(n_classes, n_columns, n=300):
    rng = np.random.default_rng(n_classes + n_columns)
    y = rng.integers(0, n_classes, n)
    rows = rng.normal(size=(n, n_columns)) + 0.2 * y[:, None] * (np.arange(n_columns) % 3)
    return {f"{LONG} {k}": column for k, column in enumerate(rows.T)}, np.array([f"{LONG} {k}" for k in y])


def labels(n_classes, n_columns, n_levels, n=600):
    rng = np.random.default_rng(n_classes)
    y = rng.integers(0, n_classes, n)
    rows = {
        f"{LONG} {k}": np.array([f"{LONG} {code}" for code in (rng.integers(0, n_levels, n) + y * k) % n_levels])
        for k in range(n_columns)
    }
    return rows, np.array([f"{LONG} {k}" for k in y])


def evaluated(n_classes):
    rng = np.random.default_rng(n_classes)
    p = rng.dirichlet(np.full(n_classes, 0.5), 400)
    codes = np.array([rng.choice(n_classes, p=row) for row in p])
    return tb.Evaluation([f"{LONG} {k}" for k in range(n_classes)], codes, np.log(np.maximum(p, 1e-300)))


def chain(n_states, n_columns=1, n=200):
    rng = np.random.default_rng(n_states)
    state = np.arange(n) // 3 % n_states
    names = np.array([f"{LONG} {k}" for k in state])
    steps = {f"{LONG} {k}": rng.normal(state * (k % 3)) for k in range(n_columns)}
    return tb.HiddenMarkovModel().fit([steps], [names]), steps


CLASSES, COLUMNS = [2, 9, 30], [3, 300]


@pytest.mark.parametrize("n_classes", [2, 30])
@pytest.mark.parametrize("n_columns", COLUMNS)
class TestModels:
    @pytest.mark.slow
    def test_columns_of_numbers(self, n_classes, n_columns):
        rows, y = numbers(n_classes, n_columns)
        model = tb.NaiveBayes().fit(rows, y)
        picture = model.plot_columns()
        assert len(picture.axes) == min(n_columns, 12)
        assert_readable(picture)
        named = legend_of(picture)
        assert len(named) == min(n_classes, 8)
        assert n_classes <= 8 or named[-1] == f"{n_classes - 7} other classes"
        said = [text.get_text() for text in picture.figure.texts]
        assert len(picture.to_frame()["column"].unique()) == min(n_columns, 12)
        if n_columns == 300:
            assert said[0].startswith("showing 12 of 300 columns, those with the largest information on the class")
            places = [int(name.split()[-1]) for name in picture.to_frame()["column"].unique()]
            assert all(place % 3 for place in places)  # every third says nothing

    @pytest.mark.slow
    def test_columns_of_labels(self, n_classes, n_columns):
        rows, y = labels(n_classes, min(n_columns, 20), 4 if n_columns == 3 else 120)
        picture = tb.NaiveBayes().fit(rows, y).plot_columns()
        assert_readable(picture)
        assert n_columns == 3 or "16 of 120 levels" in picture.axes[0].get_title()

    @pytest.mark.slow
    def test_decision(self, n_classes, n_columns):
        rows, y = numbers(n_classes, n_columns)
        picture = tb.NaiveBayes().fit(rows, y).plot_decision_boundary(rows, y)
        assert_readable(picture)
        assert len(legend_of(picture)) == min(n_classes, 8)
        assert f"of {n_columns} columns with the largest information; the other" in picture.axes[0].get_title().replace(
            "\n", " "
        )

    @pytest.mark.slow_after(2)
    def test_explanation(self, n_classes, n_columns):
        rows, y = numbers(n_classes, n_columns)
        row = {name: column[:1] for name, column in rows.items()}
        picture = tb.NaiveBayes().fit(rows, y).plot_explanation(row)
        assert_readable(picture)
        assert len(picture.to_frame()) == n_columns + 1


@pytest.mark.slow
@pytest.mark.parametrize("n_columns", COLUMNS)
def test_dependence(n_columns):
    rows, y = numbers(2, n_columns)
    picture = tb.dependence(rows, y).plot()
    assert_readable(picture)
    assert n_columns == 3 or "the 30 of 300 columns with the strongest pairs" in picture.axes[0].get_title().replace(
        "\n", " "
    )


@pytest.mark.slow_after(3)
@pytest.mark.parametrize("draw", ["plot_confusion", "plot_reliability", "plot_precision_recall"])
@pytest.mark.parametrize("n_classes", CLASSES)
def test_evaluations(n_classes, draw):
    assert_readable(getattr(evaluated(n_classes), draw)())


@pytest.mark.parametrize("n_classes", CLASSES)
def test_projection(n_classes):
    rows, y = numbers(n_classes, 3)
    picture = tb.GaussianDiscriminant().fit(rows, y).plot_projection(rows, y)
    assert_readable(picture)
    assert len(legend_of(picture)) == min(n_classes, 8)


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", CLASSES)
def test_predictive_check(n_classes):
    rows, y = labels(n_classes, 1, 40)
    picture = tb.predictive_check(tb.NaiveBayes().fit(rows, y), rows, y, n_draws=10).plot()
    assert_readable(picture)
    if n_classes == 30:
        assert picture.figure.texts[0].get_text() == "showing 12 of 30 classes, the most frequent"


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("n_states", [1, *CLASSES])
def test_transitions(n_states):
    model, _ = chain(n_states)
    picture = model.plot_transitions()
    assert_readable(picture)
    assert bool(picture.axes[0].images) == (n_states > 8)  # no tangle of arrows
    np.testing.assert_allclose(picture.to_frame()["probability"], model.transition_.ravel())


@pytest.mark.slow
@pytest.mark.parametrize("n_states", CLASSES)
@pytest.mark.parametrize("n_columns", [1, 3, 20])
def test_states(n_states, n_columns):
    model, steps = chain(n_states, n_columns)
    picture = model.plot_states(steps)
    assert_readable(picture)
    assert len(picture.axes) == min(n_columns, 6) + 1
    assert len(legend_of(picture)) == min(n_states, 8)
    frame = picture.to_frame()
    assert list(frame) == ["time", "state", "probability", "predicted"]
    np.testing.assert_allclose(frame["probability"].to_numpy().reshape(-1, n_states), model.predict_proba([steps])[0])
    tops = [layer.get_paths()[0].vertices[:, 1].max() for layer in picture.axes[-1].collections]
    assert tops[-1] == pytest.approx(1.0)  # the last is on top of all others


def test_states_draw_the_columns_of_the_model_and_no_others():
    rng = np.random.default_rng(0)
    state = np.repeat([0, 1], 20)
    steps = {"x": rng.normal(5.0 * state), "when": np.arange(40) + 1e6}
    model = tb.HiddenMarkovModel(columns={"x": tb.Gaussian()}).fit([steps], [state])
    panel, _ = model.plot_states(steps).axes
    assert panel.get_ylabel() == "x"
    assert panel.get_ylim()[1] < 100


@pytest.mark.slow
def test_columns_that_tell_most_are_those_of_most_information():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 2000)
    X = rng.normal(size=(2000, 20))
    X[:, [4, 17]] += 2 * y[:, None]
    for model in (tb.NaiveBayes(), tb.GaussianDiscriminant()):
        picture = model.fit(X, y).plot_decision_boundary()
        assert (picture.axes[0].get_xlabel(), picture.axes[0].get_ylabel()) == ("column 4", "column 17")
