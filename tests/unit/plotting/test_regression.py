"""Pictures of a regression: what they draw is what the model says."""

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest

import tallybayes as tb

mpl.use("Agg")
import matplotlib.pyplot as plt

X = np.array([[-2.0], [-1.0], [0.0], [1.0], [2.0]])
Y = np.array([5.0, 0.0, 1.0, 1.0, 4.0])


@pytest.fixture(autouse=True)
def _no_figures_left():
    yield
    plt.close("all")


def test_the_line_its_band_and_the_rows():
    model = tb.LinearRegression(2).fit(X, Y)
    drawn = model.plot(X, Y, mass=0.8).to_frame()
    line = drawn[drawn["what"] == "line"]
    told = model.predictive(line[["input"]].to_numpy())
    np.testing.assert_array_equal(line["expected"], told.mean())
    np.testing.assert_array_equal(line["high"], told.interval(0.8).high)
    assert drawn[drawn["what"] == "row"]["expected"].tolist() == Y.tolist()
    assert len(model.plot().to_frame()) == 201  # without rows


def test_a_panel_for_every_candidate_from_the_same_counts():
    picture = tb.LinearRegression(4, estimate="mle").fit(X, Y).plot(X, Y, candidates={"degree": [1, 2, 4]})
    assert [ax.get_title() for ax in picture.axes] == ["degree = 1", "degree = 2", "degree = 4"]


def test_groups_frames_and_several_inputs():
    frame = pd.DataFrame({"x": X[:, 0], "g": list("ababa")})
    grouped = tb.LinearRegression(by="g").fit(frame, Y).plot(frame, Y).to_frame()
    assert set(grouped["group"]) == {"a", "b"}
    named = tb.LinearRegression().fit(frame[["x"]], Y).plot(frame[["x"]], Y)
    assert named.axes[0].get_xlabel() == "x"
    wide = tb.LinearRegression().fit(frame.assign(z=X[:, 0] ** 2), Y)
    errors = wide.plot(frame.assign(z=X[:, 0] ** 2), Y).to_frame()
    np.testing.assert_allclose(errors["error"] + errors["predicted"], Y)
    with pytest.raises(tb.DataError, match="Pass X and y"):
        wide.plot()
    with pytest.raises(tb.DataError, match="one target"):
        tb.LinearRegression().fit(X, np.c_[Y, Y]).plot()


def test_what_was_learned_of_a_line():
    picture = tb.fit_distribution(np.c_[X, Y], tb.LinearGaussian()).plot()
    assert set(picture.to_frame()["parameter"]) == {"slope", "variance"}
