"""The targets of tests/fuzz.py run: with few changed files here, with many by `make fuzz`."""

import random
import sys
import warnings

import pytest

from tests import fuzz


@pytest.mark.parametrize("target", ["mail", "text", "csv", "jsonl", "parquet"])
def test_targets_run(target, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)  # restored afterwards
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = getattr(fuzz, target)(tmp_path)
        assert {run(random.Random(f"{target} {number}")) for number in range(5)}
