"""Files that were written once load for ever, and their models answer as they did."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import tallybayes as tb

FILES = Path(__file__).parents[1] / "files"
sys.path.insert(0, str(FILES))
import frozen  # noqa: E402

ANSWERS = json.loads((FILES / "answers.json").read_text())


def test_every_file_is_asked():
    assert {path.stem for path in FILES.glob("*.tally")} == set(ANSWERS) == set(frozen.models())


@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_it_loads_and_answers_as_it_did(name):
    model = tb.load(FILES / f"{name}.tally")
    np.testing.assert_allclose(frozen.answers(name, model), ANSWERS[name], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_it_is_what_fitting_gives_today(name):
    loaded, fitted = tb.load(FILES / f"{name}.tally"), frozen.models()[name]()
    assert type(loaded) is type(fitted)
    assert loaded.tally_.isclose(fitted.tally_)


def test_defaults_of_the_time_are_spelled_out(tmp_path):
    old = tb.load(FILES / "naive-bayes-bayes.tally")
    assert old.class_prior == "frequency"
    old.save(tmp_path / "again.tally")
    assert tb.load(tmp_path / "again.tally").class_prior == "frequency"
    old.reestimate(class_prior=None).save(tmp_path / "new.tally")
    assert tb.load(tmp_path / "new.tally").class_prior is None


def test_files_from_before_failures_were_kept():
    model = tb.load(FILES / "before-failures" / "naive-bayes-mle.tally")
    np.testing.assert_allclose(frozen.answers("naive-bayes-mle", model), ANSWERS["naive-bayes-mle"], rtol=1e-9)
    fitted = frozen.naive_bayes("mle")
    assert (fitted + model).tally_.isclose((fitted + fitted).tally_)
    assert model.forget(frozen.rows(), "kind").tally_.isclose(
        frozen.naive_bayes("mle").forget(frozen.rows(), "kind").tally_
    )
