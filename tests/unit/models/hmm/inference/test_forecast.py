"""What comes after a sequence: powers of the transitions, mixtures of what states emit, and pictures."""

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy import stats

import tallybayes as tb
from tests.unit.models.hmm.chains import DIARY, WEATHER, ice_cream

mpl.use("Agg")

MOVES, RATES = np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([4.0, 9.0])


def telephone(**options):
    emission = {"calls": {k: {"rate": rate} for k, rate in enumerate(RATES.tolist())}}
    return tb.HiddenMarkovModel.from_tables([0.5, 0.5], MOVES, emission, columns={"calls": tb.Poisson()}, **options)


def test_states_are_powers_and_counts_are_mixtures():
    model, steps = telephone(), [{"calls": [3, 4, 11]}]
    found = model.forecast(steps, 5, mass=0.8)[0]
    now = model.filter_proba(steps)[0][-1]
    for step in range(5):
        p = now @ np.linalg.matrix_power(MOVES, step + 1)
        np.testing.assert_allclose(found.proba[step], p, atol=1e-14)
        assert found.mean["calls"][step] == pytest.approx(p @ RATES)
        upto = p @ stats.poisson(RATES[:, None]).cdf(np.arange(60))
        assert found.low["calls"][step] == np.argmax(upto >= 0.1)
        assert found.high["calls"][step] == np.argmax(upto >= 0.9)
    np.testing.assert_allclose(found.proba, model.predict_next(steps, 5)[0])


def test_measured_columns_by_their_own_distribution_functions():
    rng = np.random.default_rng(0)
    states = [rng.integers(0, 2, 50).tolist() for _ in range(3)]
    steps = [
        {
            "heat": rng.normal(np.array(y) * 4.0, 1.0),
            "size": np.exp(rng.normal(np.array(y), 0.5)),
            "sky": np.where(rng.random(50) < 0.3, "gray", "blue"),
            "flat": np.full(50, 7.0),
        }
        for y in states
    ]
    columns = {"heat": tb.Gaussian(), "size": tb.LogNormal(), "sky": tb.Categorical(), "flat": tb.Gaussian()}
    model = tb.HiddenMarkovModel(columns=columns).fit(steps, states)
    found = model.forecast(steps[:1], 3)[0]
    mean, variance = (part[:, 0] for part in model.emission_["heat", "flat"])
    for end, level in ((found.low, 0.05), (found.high, 0.95)):
        upto = stats.norm(mean, np.sqrt(variance)).cdf(end["heat"][:, None])
        np.testing.assert_allclose((found.proba * upto).sum(axis=1), level, atol=1e-12)
    center, spread = (np.ravel(part) for part in model.emission_["size"][:2])
    np.testing.assert_allclose(found.mean["size"], found.proba @ np.exp(center + spread / 2))
    for label, p in model.emission_["sky"].items():
        np.testing.assert_allclose(found.labels["sky"][label], found.proba @ p)
    assert found.mean["flat"].tolist() == found.low["flat"].tolist() == found.high["flat"].tolist() == [7.0] * 3


def test_intervals_hold_what_is_drawn():
    model, n = telephone(), 4000
    past = [{"calls": [9, 10]}]
    found = model.forecast(past, 4)[0]
    rng = np.random.default_rng(1)
    state = (rng.random(n) < found.proba[3, 1]).astype(int)
    drawn = rng.poisson(RATES[state])
    inside = (drawn >= found.low["calls"][3]) & (drawn <= found.high["calls"][3])
    assert inside.mean() > 0.9 - 4 * np.sqrt(0.09 / n)


def test_labels_that_were_never_seen_have_no_part():
    found = ice_cream("bayes").forecast([[1, 2, 7]], 2)[0]
    assert list(found.labels[0]) == [1, 2, 3] and not found.mean  # noqa: PT018
    np.testing.assert_allclose(sum(found.labels[0].values()), 1.0)


def test_after_nothing_comes_the_first_step():
    model = telephone()
    found = model.forecast([[]], 2)[0]
    np.testing.assert_allclose(found.proba, [[0.5, 0.5], [0.55, 0.45]])


def test_after_an_impossible_sequence_nothing_is_known():
    model = tb.HiddenMarkovModel(columns=tb.Categorical(), estimate="mle").fit([["a", "b", "a"]], [["s", "t", "s"]])
    with pytest.warns(UserWarning, match="sequence 0 is impossible at step 1"):
        found = model.forecast([["a", "a"]], 2)[0]
    assert np.isnan(found.proba).all()
    assert np.isnan(found.labels[0]["a"]).all()
    assert "2 steps ahead" in repr(found)
    numbers = tb.HiddenMarkovModel.from_tables(
        {"a": 1.0, "b": 0.0}, np.eye(2), {"a": {"rate": 0.0}, "b": {"rate": 1.0}}
    )
    with pytest.warns(UserWarning, match="impossible"):
        assert np.isnan(numbers.forecast([[3]], 2)[0].high[0]).all()


def test_every_way_sequences_come_and_ends_do_not_count():
    frame = pd.DataFrame({"who": ["x", "y"] * 2, "day": [2, 1, 1, 2], "calls": [3, 1, 1, 2]})
    by_frame = telephone().forecast(frame, 3, sequence="who", order="day")
    by_list = telephone().forecast([{"calls": [1, 3]}, {"calls": [1, 2]}], 3)
    for one, two in zip(by_frame, by_list, strict=True):
        pd.testing.assert_frame_equal(one.to_frame(), two.to_frame())
    ends = tb.HiddenMarkovModel(columns=tb.Categorical(), end_state=True).fit(DIARY, WEATHER)
    np.testing.assert_allclose(ends.forecast([[1]], 2)[0].proba, ends.predict_next([[1]], 2)[0])


def test_text_has_no_forecast():
    steps = [{"said": ["good day", "bad day", "day"], "n": [1, 2, 1]}]
    columns = {"said": tb.Text(), "n": tb.Poisson()}
    model = tb.HiddenMarkovModel(columns=columns).fit(steps, [["u", "v", "u"]])
    assert list(model.forecast(steps)[0].mean) == ["n"]
    assert not model.forecast(steps)[0].labels


def test_tables():
    found = telephone().forecast([{"calls": [3, 4, 11]}], 20)[0]
    assert repr(found).endswith("   …  8 more")
    assert "7.558 (2 to 14)" in found._repr_html_()
    assert found.to_frame().columns.tolist() == ["step", "column", "mean", "low", "high"]
    labels = ice_cream("bayes").forecast([[1]], 2)[0]
    assert labels.to_frame().columns.tolist() == ["step", "column", "label", "probability"]
    assert repr(labels).startswith("2 steps ahead\n")
    assert len(labels) == 2


@pytest.mark.parametrize(
    ("options", "words"),
    [({"horizon": 0}, "horizon is 0"), ({"mass": 1.0}, "mass is 1.0"), ({"mass": "high"}, "mass is 'high'")],
    ids=["none", "all", "word"],
)
def test_what_makes_no_sense(options, words):
    with pytest.raises(tb.DataError, match=words):
        telephone().forecast([{"calls": [3]}], **options)


@pytest.mark.slow
@pytest.mark.parametrize("n_states", [3, 30])
@pytest.mark.parametrize("horizon", [1, 8])
def test_pictures(n_states, horizon):
    rng = np.random.default_rng(0)
    emission = {
        "calls": {k: {"rate": 2.0 * k + 1} for k in range(n_states)},
        "kind": {k: dict(zip("abc", rng.dirichlet(np.ones(3)), strict=True)) for k in range(n_states)},
    }
    model = tb.HiddenMarkovModel.from_tables(
        np.full(n_states, 1 / n_states), rng.dirichlet(np.ones(n_states), n_states), emission
    )
    X, _ = model.sample(20, random_state=0)
    picture = model.forecast(X, horizon)[0].plot()
    frame = picture.to_frame()
    assert len(picture.axes) == 3
    assert len(frame) == horizon * (3 + 3 + n_states)
    assert frame.columns.tolist() == ["step", "column", "what", "value"]
    picture.figure.canvas.draw()
    plt.close("all")
    _, ax = plt.subplots(2, 1)
    assert len(model.forecast([{"calls": [], "kind": []}], horizon)[0].plot(ax).axes) == 2
    plt.close("all")
