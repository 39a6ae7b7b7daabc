"""Sequences, however they are given: a list of arrays is one array, cut."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest

import tallybayes as tb
from tallybayes.models.inputs.sequences import open_labels, open_sequences


@pytest.mark.parametrize("scale", [1, 20_000, 1 << 40])
@pytest.mark.parametrize("family", [tb.Categorical(), tb.Gaussian()], ids=["labels", "measured"])
def test_a_list_of_arrays_is_asked_as_one_array_and_lengths(scale: int, family: tb.Family) -> None:
    rng = np.random.default_rng(0)
    steps, states = rng.integers(-3, 4, 300) * scale, rng.integers(0, 3, 300)
    lengths = [0, 100, 1, 150, 49]
    parts, truth = (np.split(one, np.cumsum(lengths)[:-1]) for one in (steps, states))
    model = tb.HiddenMarkovModel(3, family).fit(steps, states, lengths)
    other = tb.HiddenMarkovModel(3, family).fit(parts, truth)
    assert model.tally_ == other.tally_
    np.testing.assert_array_equal(model.score_samples(parts), model.score_samples(steps, lengths))
    for ask in (model.predict, model.predict_proba, model.filter_proba):
        for one, flat in zip(ask(parts), ask(steps, lengths), strict=True):
            assert one.dtype == flat.dtype
            np.testing.assert_array_equal(one, flat)


def test_what_is_learned_from_keeps_its_type() -> None:
    parts = [np.array([1, 2]), np.array([3])]
    assert open_sequences(parts).table.columns[0].dtype == np.int64
    assert open_sequences(tuple(parts)).table.columns[0].dtype == np.int64
    assert open_labels(parts, open_sequences(parts), parts).dtype == np.int64


def test_labels_of_arrays_of_other_types_are_joined_one_by_one() -> None:
    parts = [np.array([1, 2]), np.array(["a"])]
    assert open_labels(parts, open_sequences([[1, 2], [3]]), None).tolist() == [1, 2, "a"]


def test_many_short_sequences_cost_little_each() -> None:
    """A hundred thousand arrays of ten steps: what Python does for each of them is little beside the kernels."""

    def seconds(work: Callable[[], object]) -> float:
        begin = time.process_time()
        work()
        return time.process_time() - begin

    rng = np.random.default_rng(0)
    steps, lengths = rng.integers(0, 20, 200_000), [10] * 20_000
    model = tb.HiddenMarkovModel(5, tb.Categorical(), estimate="mle").fit(steps, rng.integers(0, 5, 200_000), lengths)
    parts = np.split(steps, np.cumsum(lengths)[:-1])
    flat = min(seconds(lambda: model.score_samples(steps, lengths)) for _ in range(5))
    listed = min(seconds(lambda: model.score_samples(parts)) for _ in range(5))
    paths = min(seconds(lambda: model.predict(parts)) for _ in range(5))
    assert listed < 3 * flat  # it was six times
    assert paths < 10 * flat  # it was forty times
