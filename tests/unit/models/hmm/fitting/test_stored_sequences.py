"""Unlabeled sequences in files larger than memory: read in blocks, with the results of memory."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import tallybayes as tb
from tallybayes.data.source import Source
from tallybayes.models.hmm.fitting import stored_sequences, training_sequences

pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

N_SEQUENCES, LENGTH = 30, 12
COLUMNS = {
    "levels": {"word": tb.Categorical()},
    "numbers": {"x": tb.Gaussian(), "y": tb.Gaussian()},
    "missing cells": {("x", "y"): tb.MultivariateGaussian()},
    "both": {"word": tb.Categorical(), "y": tb.Gaussian()},
    "the past": {"y": tb.Autoregressive()},
}


def steps():
    rng = np.random.default_rng(0)
    states = (np.arange(N_SEQUENCES * LENGTH) // 7) % 3
    x = rng.normal(2.0 * states, 1.0)
    x[rng.random(len(x)) < 0.05] = np.nan
    frame = {
        "id": np.repeat([f"s{k}" for k in range(N_SEQUENCES)], LENGTH),
        "time": np.tile(rng.permutation(LENGTH), N_SEQUENCES),
        "word": np.array(["a", "b", "c", "d"])[(states + rng.integers(0, 2, len(states))) % 4],
        "x": x,
        "y": rng.normal(states, 1.0),
        "gap": (rng.random(len(x)) < 0.1) * 2,
    }
    return pd.DataFrame(frame)


class Pieces(Source):
    """A data frame in batches of some rows."""

    def __init__(self, frame, size):
        super().__init__("the pieces")
        self.rows, self.size = pa.Table.from_pandas(frame, preserve_index=False), size

    @property
    def schema(self):
        return self.rows.schema

    def batches(self, columns=None):
        rows = self.rows if columns is None else self.rows.select(columns)
        return (rows.slice(first, self.size) for first in range(0, len(rows), self.size))


@pytest.fixture
def in_blocks(monkeypatch):
    """Fit a model to batches of a few sequences, which are read again in every iteration."""

    def fit(model, frame, size=50):
        with monkeypatch.context() as patch:
            patch.setattr(stored_sequences, "_IN_MEMORY", 0)
            return model.fit(Pieces(frame, size), sequence="id", order="time")

    return fit


@pytest.mark.slow_after(6)
@pytest.mark.parametrize("gaps", [None, "gap"])
@pytest.mark.parametrize("estimate", ["mle", "bayes"])
@pytest.mark.parametrize("columns", COLUMNS.values(), ids=COLUMNS)
def test_equal_to_sequences_in_memory(columns, estimate, gaps, in_blocks):
    if gaps is not None and isinstance(columns.get("y"), tb.Autoregressive):
        pytest.skip("autoregressive emissions reject gaps")
    options = {"estimate": estimate, "gaps": gaps, "max_iter": 5, "n_init": 2, "random_state": 0}
    expected = tb.HiddenMarkovModel(3, columns, **options).fit(steps(), sequence="id", order="time")
    found = in_blocks(tb.HiddenMarkovModel(3, columns, **options), steps())
    np.testing.assert_allclose(found.history_, expected.history_, rtol=1e-12)
    np.testing.assert_allclose(found.transition_, expected.transition_, rtol=1e-9)
    assert found.dropped_columns_.keys() == expected.dropped_columns_.keys()
    assert found.n_rows_ == pytest.approx(expected.n_rows_)


@pytest.mark.parametrize("n_steps", [1, 100])
def test_a_sample_of_sequences_initializes(n_steps, in_blocks, monkeypatch):
    monkeypatch.setattr(training_sequences, "_SAMPLE", n_steps)
    options = {"max_iter": 10, "random_state": 0}
    expected = tb.HiddenMarkovModel(3, COLUMNS["both"], **options).fit(steps(), sequence="id", order="time")
    found = in_blocks(tb.HiddenMarkovModel(3, COLUMNS["both"], **options), steps())
    np.testing.assert_allclose(found.history_, expected.history_, rtol=1e-12)
    assert (np.diff(found.history_) >= 0).all()
    assert found.n_rows_ == pytest.approx(N_SEQUENCES * LENGTH)


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_files(ending, tmp_path, monkeypatch):
    frame, path = steps(), tmp_path / f"steps.{ending}"
    frame.to_parquet(path) if ending == "parquet" else frame.to_csv(path, index=False)
    monkeypatch.setattr(stored_sequences, "_IN_MEMORY", 0)
    options = {"columns": COLUMNS["levels"], "max_iter": 5, "random_state": 0}
    found = tb.HiddenMarkovModel(3, **options).fit(path, sequence="id", order="time")
    expected = tb.HiddenMarkovModel(3, **options).fit(frame, sequence="id", order="time")
    np.testing.assert_allclose(found.history_, expected.history_, rtol=1e-12)


def test_every_iteration_holds_a_block_alone(in_blocks, monkeypatch):
    seen = []
    opened = stored_sequences.open_sequences
    monkeypatch.setattr(
        stored_sequences, "open_sequences", lambda rows, *of: seen.append(len(rows)) or opened(rows, *of)
    )
    in_blocks(tb.HiddenMarkovModel(2, COLUMNS["levels"], max_iter=4, tol=0, random_state=0), steps())
    assert max(seen) <= 50 + LENGTH
    assert sum(seen) == 6 * N_SEQUENCES * LENGTH  # the sample, the levels, and four iterations


def test_a_sequence_longer_than_a_batch(in_blocks):
    frame = steps().assign(id="one")
    model = in_blocks(
        tb.HiddenMarkovModel(2, COLUMNS["levels"], max_iter=3, random_state=0), frame.assign(time=range(len(frame)))
    )
    other = tb.HiddenMarkovModel(2, COLUMNS["levels"], max_iter=3, random_state=0).fit([frame[["word"]]])
    np.testing.assert_allclose(model.history_, other.history_, rtol=1e-12)


def test_sequences_in_several_places_are_read_into_memory(in_blocks, monkeypatch):
    frame = steps().sort_values("time", kind="stable")
    monkeypatch.setattr(stored_sequences.StoredSequences, "__iter__", None)
    options = {"max_iter": 5, "random_state": 0}
    found = in_blocks(tb.HiddenMarkovModel(3, COLUMNS["levels"], **options), frame)
    expected = tb.HiddenMarkovModel(3, COLUMNS["levels"], **options).fit(frame, sequence="id", order="time")
    assert found.history_ == expected.history_


def test_a_sequence_without_a_name(in_blocks):
    frame = steps()
    frame.loc[200, "id"] = None
    with pytest.raises(tb.DataError, match="has no 'id'"):
        in_blocks(tb.HiddenMarkovModel(3, COLUMNS["levels"]), frame)
