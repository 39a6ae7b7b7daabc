"""What EM climbed to, drawn: all climbs, of which the best counts."""

import matplotlib as mpl
import numpy as np
import pytest

import tallybayes as tb

mpl.use("Agg")
import matplotlib.pyplot as plt


@pytest.fixture(autouse=True)
def _no_figures_left():
    yield
    plt.close("all")


def heaps(n=90):
    rng = np.random.default_rng(3)
    return rng.normal(size=(n, 2)) + 6 * np.eye(4, 2)[np.arange(n) % 3]


def test_every_start_is_drawn_and_the_best_is_the_history():
    model = tb.Mixture(4, n_init=5, random_state=0).fit(heaps())
    picture = model.plot_convergence()
    drawn = picture.to_frame()
    climbs = [part["objective"].tolist() for _, part in drawn.groupby("initialization")]
    assert len(climbs) == 5
    assert max(climbs, key=lambda climb: climb[-1]) == model.history_
    assert all(np.diff(climb).min(initial=0.0) > -1e-9 for climb in climbs)
    n_there = sum(climb[-1] > model.history_[-1] - 0.1 for climb in climbs)
    assert picture.axes[0].get_title().startswith(f"{n_there} of 5 initializations reach ")
    assert picture.axes[0].get_ylabel() == "log posterior, nats"
    low, high = picture.axes[0].get_ylim()
    assert all(low < climb[-1] < high for climb in climbs)


def test_a_single_climb_says_how_long_it_was():
    model = tb.Mixture(2, n_init=1, random_state=0).fit(heaps())
    assert f" in {len(model.history_)} iterations" in model.plot_convergence().axes[0].get_title()


def test_a_model_from_a_file_remembers_the_best(tmp_path):
    model = tb.Mixture(3, n_init=4, random_state=1).fit(heaps())
    model.save(tmp_path / "model.tally")
    drawn = tb.load(tmp_path / "model.tally").plot_convergence().to_frame()
    assert drawn["objective"].tolist() == model.history_
    assert set(drawn["initialization"]) == {0}


def test_where_nothing_was_climbed_it_says_so():
    counted = tb.NaiveBayes().fit([[1.0], [2.0], [7.0], [9.0]], ["a", "a", "b", "b"])
    with pytest.raises(tb.DataError, match="This NaiveBayes has no EM history: it was fitted by counting"):
        counted.plot_convergence()
