"""Hidden Markov models from tallies and files, whatever their columns are called."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import tallybayes as tb
from tallybayes._utils import sealed_file
from tallybayes.errors import DataError, FileError, StatisticsError
from tests.unit.models.hmm.chains import ice_cream


def test_a_model_from_a_tally_and_re_estimated():
    model = ice_cream()
    other = tb.HiddenMarkovModel(columns=tb.Categorical(), estimate="bayes").fit_tally(model.tally_)
    np.testing.assert_allclose(other.start_, ice_cream("bayes").start_)
    np.testing.assert_allclose(model.reestimate(estimate="bayes").transition_, other.transition_)
    with pytest.raises(StatisticsError, match="tally has other factors than"):
        other.fit_tally(tb.NaiveBayes().fit([[1.0], [2.0]], [0, 1]).tally_)


def test_files(tmp_path):
    X = [np.random.default_rng(2).normal(size=n) for n in (30, 1, 12)]
    with pytest.warns(ConvergenceWarning):
        model = tb.HiddenMarkovModel(2, end_state=True, max_iter=5, random_state=0).fit(X)
    model.save(tmp_path / "model")
    back = tb.load(tmp_path / "model")
    np.testing.assert_array_equal(back.score_samples(X), model.score_samples(X))
    assert back.history_ == model.history_
    assert (back.objective_, back.converged_) == (model.objective_, model.converged_)
    assert back.tally_.soft
    counted = ice_cream()
    counted.save(tmp_path / "counted")
    other = tb.load(tmp_path / "counted")
    assert other.states_.tolist() == ["cold", "hot"]
    assert (other + counted).tally_ == (counted + counted).tally_


def rename(state, manifest, arrays):
    state["names"]["to"] = "elsewhere"


def lose_a_name(state, manifest, arrays):
    del state["names"]["from"]


def lose_the_history(state, manifest, arrays):
    del arrays["em/history"]


def lose_an_array(state, manifest, arrays):
    arrays.pop(next(name for name in arrays if not name.startswith("em/")))


def be_another(state, manifest, arrays):
    manifest["class"] = "HiddenMarkov"


def expect_an_end(state, manifest, arrays):
    manifest["parameters"]["end_state"] = True


@pytest.mark.slow_after(2)
@pytest.mark.parametrize(
    "change",
    [rename, lose_a_name, lose_the_history, lose_an_array, be_another, expect_an_end],
    ids=lambda f: f.__name__,
)
def test_a_file_that_makes_no_sense(change, tmp_path):
    """It is sealed, so no accident changed it; still it is no model."""
    with pytest.warns(ConvergenceWarning):
        tb.HiddenMarkovModel(2, max_iter=2, random_state=0).fit([[1.0, 2.0, 8.0, 9.0]]).save(tmp_path / "model")
    kind, manifest, arrays = sealed_file.read(tmp_path / "model")
    change(manifest["state"], manifest, arrays)
    sealed_file.write(tmp_path / "changed", kind, manifest, arrays)
    with pytest.raises(FileError):
        tb.load(tmp_path / "changed")


def test_a_damaged_file(tmp_path):
    ice_cream().save(tmp_path / "model")
    content = bytearray((tmp_path / "model").read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "model").write_bytes(content)
    with pytest.raises(FileError):
        tb.load(tmp_path / "model")


# ---- Names ----------------------------------------------------------------------------------------------------------

STEPS = {
    "state": list("aabba"),
    "start": list("bbaab"),
    "to": [1.0, 2.0, 5.0, 6.0, 1.5],
    "from": [3, 1, 0, 2, 2],
    "end": [0, 1, 1, 0, 1],
}
FAMILIES = {
    "state": tb.Categorical(),
    "start": tb.Categorical(),
    "to": tb.Gaussian(),
    "from": tb.Poisson(),
    "end": tb.Bernoulli(),
}


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("end_state", [False, True], ids=["", "end"])
@pytest.mark.parametrize(
    "taken", [["state"], ["start"], ["to"], ["end"], ["from", "to"], list(STEPS)], ids=lambda names: " ".join(names)
)
@pytest.mark.parametrize("y", [[list("uuvvu")], None], ids=["counted", "expected"])
def test_columns_may_be_called_as_ours(taken, end_state, y, tmp_path):
    """What they are called changes nothing, whether a model is fitted, made from a tally, or loaded."""
    X, plain = [{name: STEPS[name] for name in taken}], [{f"my {name}": STEPS[name] for name in taken}]
    options = {"end_state": end_state, "n_states": None if y else 2, "random_state": 0, "max_iter": 500}
    model = tb.HiddenMarkovModel(columns={name: FAMILIES[name] for name in taken}, **options).fit(X, y)
    other = tb.HiddenMarkovModel(columns={f"my {name}": FAMILIES[name] for name in taken}, **options).fit(plain, y)
    assert model.states_.tolist() == other.states_.tolist() == (["u", "v"] if y else [0, 1])
    model.save(tmp_path / "model")
    for same in (model, tb.HiddenMarkovModel(end_state=end_state).fit_tally(model.tally_), tb.load(tmp_path / "model")):
        assert [*same.emission_] == taken
        np.testing.assert_array_equal(same.predict_proba(X)[0], other.predict_proba(plain)[0])
        assert same.score_samples(X) == other.score_samples(plain)
        if y is not None:
            before = same.tally_
            assert same.partial_fit(X, y).forget(X, y).tally_ == before


def test_the_end_is_the_last_factor():
    X, y = [{"x": [1, 0, 1, 1]}], [["a", "a", "b", "b"]]
    plain, ended = (tb.HiddenMarkovModel(columns=tb.Bernoulli(), end_state=end).fit(X, y) for end in (False, True))
    before = ended.tally_
    with pytest.raises(StatisticsError, match=r"last p\(end \| state\)"):
        ended.fit_tally(plain.tally_)
    assert ended.tally_ is before
    plain.fit_tally(before)  # which says nothing of ends, so this is a column
    with pytest.raises(DataError, match="no column 'end'"):
        plain.predict(X)
