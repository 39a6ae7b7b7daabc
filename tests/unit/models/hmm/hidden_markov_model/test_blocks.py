"""Sequences are worked on a few at a time: whatever their number, the answers are those of all together."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import tallybayes as tb
from tallybayes.errors import DataError
from tallybayes.models.hmm import hmm_parameters as chains
from tallybayes.models.hmm.hmm_parameters import blocks_of_sequences
from tallybayes.models.inputs import sequences


@pytest.fixture
def few(monkeypatch):
    """Blocks of about ten steps for three states."""
    monkeypatch.setattr(chains, "_CELLS", 30)


def measured(n_sequences=12, seed=0):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 9, n_sequences)
    lengths[[0, n_sequences // 2]] = 0, 25  # an empty one first, and one longer than a block
    path = rng.integers(0, 3, lengths.sum())
    X = rng.normal(size=(len(path), 2)) + path[:, None]
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, path, lengths


FAMILIES = {
    "gaussian": tb.Gaussian(),
    "full covariance": tb.MultivariateGaussian(),
    "mixed": {0: tb.Gaussian(), 1: tb.LogNormal()},
}


def asked(model, X, lengths):
    return {
        "log_likelihood": model.score_samples(X, lengths),
        "predict": np.concatenate(model.predict(X, lengths)),
        "predict_proba": np.concatenate(model.predict_proba(X, lengths)),
        "filter_proba": np.concatenate(model.filter_proba(X, lengths)),
        "predict_transition_proba": np.concatenate(model.predict_transition_proba(X, lengths)),
        "predict_next": model.predict_next(X, 2, lengths),
        "impute": np.concatenate(model.impute(X, lengths)),
    }


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("name", FAMILIES)
def test_blocks_change_no_bit_of_any_answer(name, monkeypatch):
    X, path, lengths = measured()
    X = np.exp(X) if name == "mixed" else X
    whole = np.where(np.isnan(X), 1.0, X) if name == "full covariance" else X
    model = tb.HiddenMarkovModel(columns=FAMILIES[name], end_state=True).fit(whole, path, lengths)
    together = asked(model, X, lengths)
    monkeypatch.setattr(chains, "_CELLS", 30)
    assert len(blocks_of_sequences(np.concatenate([[0], np.cumsum(lengths)]), 3)) > 4
    apart = asked(model, X, lengths)
    for question, found in together.items():
        np.testing.assert_array_equal(apart[question], found, err_msg=question)
    assert [len(steps) for steps in model.predict(X, lengths)] == lengths.tolist()


def test_a_step_is_refused_by_its_own_number(few):
    X, path, lengths = measured()
    model = tb.HiddenMarkovModel(columns=tb.Gaussian()).fit(X, path, lengths)
    X[40, 1] = np.inf
    with pytest.raises(DataError, match="row 40"):
        model.predict(X, lengths)


def test_an_unseen_label_is_missing_in_every_block(few):
    rng = np.random.default_rng(0)
    steps = {"size": rng.normal(size=24), "kind": np.tile(["a", "b", "c"], 8)}
    model = tb.HiddenMarkovModel(columns={"size": tb.Gaussian(), "kind": tb.Categorical()}, unseen="missing")
    model.fit(steps, np.tile([0, 1, 2], 8), [6] * 4)
    new = {"size": steps["size"], "kind": np.array(["a"] * 12 + ["new"] * 12, dtype=object)}
    without = {"size": steps["size"], "kind": np.array(["a"] * 12 + [None] * 12, dtype=object)}
    absent = model.score_samples(without, [6] * 4)
    np.testing.assert_array_equal(model.score_samples(new, [6] * 4), absent)
    absent[2:] += 6 * np.log(0.5 / 9)  # a new one: half a step of 8 + 1 in every state
    np.testing.assert_allclose(model.reestimate(unseen="new").score_samples(new, [6] * 4), absent)


def test_an_impossible_sequence_in_a_later_block_is_named(few):
    steps = {"kind": ["a", "b", "c"] * 8, "other": ["x", "y", "z"] * 8}
    model = tb.HiddenMarkovModel(columns={"kind": tb.Categorical(), "other": tb.Categorical()}, estimate="mle")
    model.fit(steps, [0, 1, 2] * 8, [6] * 4)
    steps["other"][13] = "z"  # never with "b"
    with pytest.warns(UserWarning, match="sequence 2 is impossible at step 1"):
        found = model.predict(steps, [6] * 4)
    assert found[2].tolist() == [None] * 6
    assert [part.dtype.kind for part in found] == ["i", "i", "O", "i"]
    np.testing.assert_array_equal(found[3], [0, 1, 2, 0, 1, 2])


@pytest.mark.parametrize("states", [[0, 1], [1, 2], [0, 2], ["hot", "cold"], [False, True], [0.0, 1.0]], ids=str)
def test_predicted_states_are_of_the_kind_that_was_learned(states):
    X, codes = np.array([0.0, 5.0, 5.1, 0.1] * 3), np.array([0, 1, 1, 0] * 3)
    y = np.array(states)[codes]
    model = tb.HiddenMarkovModel(columns=tb.Gaussian()).fit(X, y, [4] * 3)
    found = np.concatenate(model.predict(X, [4] * 3))
    np.testing.assert_array_equal(found, y)
    assert found.dtype == model.states_.dtype


def test_nothing_is_asked_of_text():
    steps = [{"said": ["good day", "bad day", "day"]}]
    model = tb.HiddenMarkovModel(columns={"said": tb.Text()}).fit(steps, [["u", "v", "u"]])
    assert [each.tolist() for each in model.predict([{"said": []}])] == [[]]
    assert model.score_samples([[], []]).tolist() == [0, 0]


def test_states_are_scored_by_text():
    steps = [{"said": ["good fine", "bad", "awful bad"]}, {"said": ["fine", "good", "bad"]}]
    states = [["p", "n", "n"], ["p", "p", "n"]]
    model = tb.HiddenMarkovModel(columns={"said": tb.Text()}).fit(steps, states)
    assert model.score(steps, states) == tb.evaluate(model, steps, states).accuracy.value == 1.0


def test_nothing_is_asked():
    model = tb.HiddenMarkovModel(columns=tb.Gaussian()).fit(*measured())
    assert model.score_samples([]).shape == (0,)
    assert model.predict([]) == []
    assert model.score_samples([[], []]).tolist() == [0.0, 0.0]
    assert [part.shape for part in model.predict_proba([[], []])] == [(0, 3), (0, 3)]


def test_blocks_of_sequences_cover_all_sequences_once():
    for lengths in ([], [0], [0, 0, 0], [5], [1000], [3, 0, 40, 0, 0, 7, 100, 1]):
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        found = blocks_of_sequences(offsets, 3)
        assert [k for first, last in found for k in range(first, last)] == list(range(len(lengths)))
        assert all(first < last for first, last in found)


# ---- Baum and Welch -------------------------------------------------------------------------------------------------


def learned(X, lengths, y=None, **options):
    options = {"estimate": "map", "max_iter": 5, "tol": 1e-300, "random_state": 0, **options}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return tb.HiddenMarkovModel(3, **options).fit(X, y, lengths)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("labeled", [False, True])
@pytest.mark.parametrize("kind", ["labels", "numbers"])
def test_em_in_blocks_climbs_as_all_together(kind, labeled, monkeypatch):
    X, path, lengths = measured(30)
    X = np.array(["a", "b", "c", "d", None], dtype=object)[np.arange(len(X)) * 7 % 5] if kind == "labels" else X
    family = tb.Categorical() if kind == "labels" else tb.Gaussian()
    y = np.where(np.arange(len(path)) % 3 == 0, path.astype(object), None) if labeled else None
    together = learned(X, lengths, y, columns=family)
    monkeypatch.setattr(chains, "_CELLS", 30)
    apart = learned(X, lengths, y, columns=family)
    np.testing.assert_allclose(apart.history_, together.history_, rtol=1e-12)
    np.testing.assert_allclose(apart.transition_, together.transition_, rtol=1e-9)


@pytest.mark.parametrize("n_levels", [1, 2, 127, 128, 129, 300])
def test_every_number_of_labels_fits_its_codes(n_levels):
    """Codes take as few bytes as there are labels, and one more value for a missing step."""
    rng = np.random.default_rng(n_levels)
    codes = np.concatenate([np.arange(n_levels), rng.integers(0, n_levels, 400)])
    steps = codes.astype(object)
    steps[n_levels + 7] = None
    options = {"columns": tb.Categorical(), "max_iter": 2, "tol": 1e-300, "random_state": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = tb.HiddenMarkovModel(2, **options).fit(steps, None, [len(steps)])
    factor, counts = model._estimated_hmm.emissions[0]
    expected = np.bincount(np.delete(codes, n_levels + 7), minlength=n_levels)
    order = model.tally_.domains[str(factor.columns[0])].positions_of(range(n_levels))
    np.testing.assert_allclose(counts.table.sum(axis=0)[order], expected, rtol=1e-12)


@pytest.mark.parametrize(
    ("cells", "family"),
    [
        (np.arange(60) % 3, tb.Categorical()),
        (np.arange(60) % 2 == 1, tb.Bernoulli()),
        (np.arange(60, dtype=np.int8), tb.Poisson()),
        (np.arange(60.0), tb.Gaussian()),
        (np.sin(np.arange(120.0)).reshape(60, 2), tb.Gaussian()),
        (np.arange(120).reshape(60, 2) % 4, tb.Categorical()),
    ],
    ids=["labels", "yes or no", "counts", "numbers", "rows", "rows of labels"],
)
def test_arrays_that_differ_in_length_only_are_one_table(monkeypatch, cells, family):
    """A table for each took longer than all that is asked of them."""
    lengths = [7, 0, 20, 1, 32]
    parts = np.split(cells, np.cumsum(lengths)[:-1])
    model = tb.HiddenMarkovModel(columns=family, estimate="map").fit(cells, np.arange(60) // 2 % 2, lengths)
    opened, open_table = [], sequences.open_table
    monkeypatch.setattr(sequences, "open_table", lambda part: opened.append(part) or open_table(part))
    np.testing.assert_array_equal(model.score_samples(parts), model.score_samples(cells, lengths))
    assert len(opened) == 2
    for path, same in zip(model.predict(parts), model.predict(cells, lengths), strict=True):
        np.testing.assert_array_equal(path, same)
    mixed = [part if k else np.ma.masked_array(part) for k, part in enumerate(parts)]
    np.testing.assert_array_equal(model.score_samples(mixed), model.score_samples(parts))
    states = np.split(np.arange(60) // 2 % 2, np.cumsum(lengths)[:-1])
    assert tb.HiddenMarkovModel(columns=family, estimate="map").fit(parts, states).tally_ == model.tally_


def test_arrays_of_several_types_keep_them():
    model = tb.HiddenMarkovModel(columns=tb.Gaussian()).fit([[1.0, 2.5, 3.0]], [[0, 1, 0]])
    apart = [model.score_samples([part])[0] for part in (np.array([1, 2]), np.array([2.5]))]
    np.testing.assert_array_equal(model.score_samples([np.array([1, 2]), np.array([2.5])]), apart)
    with pytest.raises(DataError, match=r"sequence 1 has the columns \[0, 1\], the first one \[0\]"):
        model.score_samples([np.array([1.0]), np.array([[1.0, 2.0]])])
