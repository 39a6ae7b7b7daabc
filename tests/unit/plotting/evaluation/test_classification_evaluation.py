"""Pictures of an evaluation: what they draw, on any number of classes."""

import matplotlib as mpl
import numpy as np
import pytest
from sklearn.metrics import average_precision_score

import tallybayes as tb
from tallybayes.errors import DataError

mpl.use("Agg")
import matplotlib.pyplot as plt


@pytest.fixture(autouse=True)
def _no_figures_left():
    yield
    plt.close("all")


def drawn(n_classes, n=400, weight=None):
    rng = np.random.default_rng(n_classes)
    p = rng.dirichlet(np.full(n_classes, 0.5), n)
    codes = np.array([rng.choice(n_classes, p=row) for row in p])
    names = [f"a label that is long enough to be cut {k}" for k in range(n_classes)]
    return tb.Evaluation(names, codes, np.log(np.maximum(p, 1e-300)), weight=weight)


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [1, 2, 3, 9, 60])
@pytest.mark.parametrize("weighted", [False, True])
def test_pictures(n_classes, weighted):
    found = drawn(n_classes, weight=np.random.default_rng(0).gamma(1.0, size=400) if weighted else None)
    for picture in (found.plot_confusion(), found.plot_reliability(), found.plot_precision_recall()):
        (ax,) = picture.axes
        ax.figure.canvas.draw()
        assert ax.get_xlabel()
        assert ax.get_ylabel()


def test_confusion_shows_the_table():
    found = drawn(3)
    (ax,) = found.plot_confusion().axes
    shown = np.zeros((3, 3))
    for text in ax.texts:
        shown[round(text.get_position()[1]), round(text.get_position()[0])] = float(text.get_text())
    np.testing.assert_array_equal(shown, found.confusion_matrix)
    np.testing.assert_allclose(
        ax.images[0].get_array(), found.confusion_matrix / found.confusion_matrix.sum(axis=1, keepdims=True), rtol=1e-6
    )
    assert ax.get_yticklabels()[2].get_text().endswith("cut 2")


def test_reliability_shows_the_bins():
    found = drawn(3)
    (ax,) = found.plot_reliability().axes
    bins = found.reliability
    points = ax.containers[0].lines[0]
    np.testing.assert_allclose(points.get_xdata(), bins.confidence)
    np.testing.assert_allclose(points.get_ydata(), bins.accuracy.value)
    strip = ax.child_axes[0]
    np.testing.assert_allclose([bar.get_height() for bar in strip.patches], bins.weight / 400)


def test_precision_recall_of_two_classes_and_of_many():
    found = drawn(2)
    (ax,) = found.plot_precision_recall().axes
    area = average_precision_score(found.codes, np.exp(found.log_proba[:, 1]))
    assert f"(average {area:.3f})" in ax.get_legend().get_texts()[0].get_text()
    texts = [text.get_text() for text in drawn(20).plot_precision_recall().axes[0].get_legend().get_texts()]
    assert texts[0] == "14 other classes"
    assert len(texts) == 7
    nothing = tb.Evaluation(["a", "b"], np.array([0, 0]), np.log(np.full((2, 2), 0.5)))
    with pytest.raises(DataError, match="no row is of class 'b'"):
        nothing.plot_precision_recall()


@pytest.mark.slow
def test_pictures_go_into_axes_that_are_given():
    found = drawn(3)
    figure, axes = plt.subplots(1, 3, figsize=(15, 5), layout="constrained")
    assert found.plot_confusion(axes[0]).axes[0] is axes[0]
    assert found.plot_reliability(axes[1]).axes[0] is axes[1]
    assert found.plot_precision_recall(ax=axes[2]).axes[0] is axes[2]
    figure.canvas.draw()
