"""A filter that is told one step at a time: the same as all at once, and after a rest in a file."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tallybayes as tb
from tallybayes._utils import sealed_file
from tests.unit.models.hmm.chains import DIARY, WEATHER, ice_cream


def pushed(model, steps):
    now = model.online_filter()
    for step in steps:
        now.update(step)
    return now


@given(
    st.integers(0, 10**6),
    st.integers(1, 5),
    st.booleans(),
    st.lists(st.sampled_from([0, 1, 2, 7, None]), min_size=1, max_size=12),
)
def test_step_by_step_is_all_at_once(seed, n_states, end_state, steps):
    rng = np.random.default_rng(seed)
    model = tb.HiddenMarkovModel.from_tables(
        rng.dirichlet(np.ones(n_states)),
        rng.dirichlet(np.ones(n_states), n_states),
        rng.dirichlet(np.ones(3), n_states),
        rng.random(n_states) if end_state else None,
    )
    now, asked = model.online_filter(), [np.array(steps, dtype=object)]
    expected, surprise = model.filter_proba(asked)[0], model.surprisal(asked)[0]
    np.testing.assert_allclose(now.proba, model.start_)
    for t, step in enumerate(steps):
        now.update(step)
        np.testing.assert_allclose(now.proba, expected[t], atol=1e-12)
        assert now.surprisal == pytest.approx(surprise[t], abs=1e-12)
        assert now.state == expected[t].argmax() or np.ptp(np.sort(expected[t])[-2:]) < 1e-12
    assert now.n_steps == len(steps)
    assert now.log_likelihood == pytest.approx(-surprise.sum(), abs=1e-11)
    ahead = now.forecast(3)
    np.testing.assert_allclose(ahead.proba, model.forecast(asked, 3)[0].proba, atol=1e-12)


def measured():
    rng = np.random.default_rng(0)
    states = [np.repeat(["calm", "wild"], 30).tolist()] * 2
    steps = [
        pd.DataFrame(
            {"heat": rng.normal(0, 1 + 3 * (np.array(y) == "wild")), "n": rng.poisson(3, 60), "sky": ["a", "b"] * 30}
        )
        for y in states
    ]
    columns = {"heat": tb.Gaussian(), "n": tb.Poisson(), "sky": tb.Categorical()}
    return tb.HiddenMarkovModel(columns=columns).fit(steps, states), steps


def test_steps_of_several_columns_come_as_mappings_and_rows():
    model, steps = measured()
    asked = steps[0].iloc[:6]
    expected = model.filter_proba([asked])[0][-1]
    by_mapping = pushed(model, asked.to_dict("records"))
    by_row = pushed(model, [row for _, row in asked.iterrows()])
    np.testing.assert_allclose(by_mapping.proba, expected, atol=1e-12)
    np.testing.assert_allclose(by_row.proba, expected, atol=1e-12)
    assert by_mapping.state == model.states_[np.argmax(expected)]
    array = np.stack([steps[0].heat, steps[0].n], axis=-1)
    plain = tb.HiddenMarkovModel(columns=tb.Gaussian()).fit([array], [[0, 1] * 30])
    for rows in (list(array[:5]), array[:5].tolist()):
        np.testing.assert_allclose(pushed(plain, rows).proba, plain.filter_proba([array[:5]])[0][-1], atol=1e-12)


def test_cells_that_are_missing_or_strange():
    model, _ = measured()
    asked = {"heat": [None, 1.0], "n": [2, None], "sky": ["zzz", None]}
    now = pushed(model, [{name: column[k] for name, column in asked.items()} for k in range(2)])
    np.testing.assert_allclose(now.proba, model.filter_proba([asked])[0][-1], atol=1e-12)
    with pytest.warns(tb.InvalidValueWarning, match="-3"):
        now.update({"heat": 1.0, "n": -3, "sky": "a"})
    with pytest.raises(tb.DataError, match="heat"):
        now.update({"n": 3, "sky": "a"})
    assert now.n_steps == 3


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("n", [0, 1, 7])
def test_a_filter_goes_on_to_the_last_bit(n, tmp_path):
    model, steps = measured()
    rows = steps[1].to_dict("records")
    now = pushed(model, rows[:n])
    now.save(tmp_path / "now")
    again = tb.load(tmp_path / "now")
    assert type(again) is type(now)
    assert again.n_steps == n
    for step in rows[n : n + 10]:
        now.update(step)
        again.update(step)
        assert again.proba.tobytes() == now.proba.tobytes()
        assert (again.log_likelihood, again.surprisal) == (now.log_likelihood, now.surprisal)
    assert again.forecast(2).mean["heat"].tobytes() == now.forecast(2).mean["heat"].tobytes()


def test_what_em_learned_and_tables_are_kept_with_it(tmp_path):
    calls = np.random.default_rng(0).poisson(np.repeat([4, 9], 100))
    learned = tb.HiddenMarkovModel(2, tb.Poisson(), random_state=0).fit([calls])
    tables = tb.HiddenMarkovModel.from_tables([0.5, 0.5], [[0.9, 0.1], [0.2, 0.8]], [[0.7, 0.3], [0.1, 0.9]])
    for model, steps in ((learned, calls[:20].tolist()), (tables, [0, 1, 1, 0])):
        pushed(model, steps[:3]).save(tmp_path / "now")
        again = tb.load(tmp_path / "now")
        for step in steps[3:]:
            again.update(step)
        assert again.proba.tobytes() == pushed(model, steps).proba.tobytes()


def test_it_keeps_to_the_model_it_was_made_from(tmp_path):
    model = ice_cream("bayes")
    now = model.online_filter()
    before = model.filter_proba([[1, 3]])[0][-1]
    model.partial_fit([[1] * 50], [["hot"] * 50])
    now.update(1)
    now.save(tmp_path / "now")
    again = tb.load(tmp_path / "now")
    for one in (now, again):
        one.update(3)
        np.testing.assert_allclose(one.proba, before, atol=1e-12)


@pytest.mark.parametrize(
    "again", [copy.copy, copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))], ids=["copy", "deep", "pickle"]
)
def test_a_copy_goes_its_own_way(again):
    model, steps = measured()
    rows = steps[1].to_dict("records")
    now = pushed(model, rows[:5])
    other = again(now)
    other.update(rows[5])
    assert (now.n_steps, other.n_steps) == (5, 6)
    assert other.proba.tobytes() == pushed(model, rows[:6]).proba.tobytes()


def test_an_impossible_step_ends_what_is_known(tmp_path):
    model = tb.HiddenMarkovModel(columns=tb.Categorical(), estimate="mle").fit([["a", "b", "a"]], [["s", "t", "s"]])
    now = pushed(model, ["a"])
    with pytest.warns(UserWarning, match="step 1 is impossible"):
        now.update("a")
    now.update("b")
    assert now.proba.tolist() == [0, 0]
    assert now.state is None
    assert now.log_likelihood == -np.inf
    assert repr(now) == "filter after 3 steps: impossible"
    assert np.isnan(now.forecast(1).proba).all()
    now.save(tmp_path / "now")
    assert tb.load(tmp_path / "now").state is None


def test_a_state_that_floats_cannot_tell_is_not_lost():
    model = tb.HiddenMarkovModel.from_tables(
        {"a": 0.5, "b": 0.5},
        {"a": {"a": 1.0}, "b": {"b": 1.0}},
        {"a": {"mean": 0.0, "variance": 1.0}, "b": {"mean": 100.0, "variance": 1.0}},
    )
    steps = [50.0, 100.0, 100.0, 0.0, 0.0]
    now = pushed(model, steps)
    np.testing.assert_allclose(now.proba, model.filter_proba([steps])[0][-1], atol=1e-12)
    assert now.log_likelihood == pytest.approx(model.score_samples([steps])[0], rel=1e-12)


def test_how_it_is_shown():
    model = tb.HiddenMarkovModel.from_tables(np.full(5, 0.2), np.full((5, 5), 0.2), np.full((5, 2), 0.5))
    assert repr(model.online_filter()) == "filter before the first step: 0 (0.20), 1 (0.20), 2 (0.20) and 2 more"
    assert repr(pushed(model, [1])).startswith("filter after 1 step: ")
    assert type(pushed(ice_cream(), [1]).state) is str


@pytest.mark.parametrize(
    "change",
    [
        lambda manifest, arrays: manifest.update(n_steps=0),
        lambda manifest, arrays: manifest.update(n_steps=-1),
        lambda manifest, arrays: manifest.update(more=1),
        lambda manifest, arrays: arrays.update({"filter/log": np.zeros(3)}),
        lambda manifest, arrays: arrays.update({"filter/log": np.full(2, np.nan)}),
        lambda manifest, arrays: arrays.update({"filter/numbers": np.zeros(3)}),
        lambda manifest, arrays: arrays.update({"more": np.zeros(3)}),
        lambda manifest, arrays: arrays.pop("filter/log"),
    ],
    ids=["none", "less", "entry", "states", "nan", "numbers", "array", "absent"],
)
def test_a_file_that_makes_no_sense(change, tmp_path):
    path = tmp_path / "now"
    pushed(ice_cream("bayes"), [1, 2]).save(path)
    kind, manifest, arrays = sealed_file.read(path)
    change(manifest, arrays)
    sealed_file.write(path, kind, manifest, arrays)
    with pytest.raises(tb.FileError):
        tb.load(path)


def test_a_long_stream_costs_no_more_at_its_end():
    # Nothing is kept of the steps: what the filter holds is as large after many as after one.
    model = tb.HiddenMarkovModel(columns=tb.Categorical()).fit(DIARY, WEATHER)
    few, many = pushed(model, [1]), pushed(model, [1, 2, 3] * 300)
    held = [
        {name: np.shape(part) for name, part in vars(one).items() if isinstance(part, np.ndarray)}
        for one in (few, many)
    ]
    assert held[0] == held[1]
    assert set(vars(few)) == set(vars(many))
