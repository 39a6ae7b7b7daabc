"""The model files in tests/files load, have the current format version, and predict what was written beside them.

``python tests/files/frozen.py`` writes all of them again.
"""

import json
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

import tallybayes as tb
from tallybayes._utils import sealed_file
from tallybayes._utils.frozen_value import same

FILES = Path(__file__).parents[1] / "files"
sys.path.insert(0, str(FILES))
import frozen  # noqa: E402

ANSWERS = json.loads((FILES / "answers.json").read_text())


def test_there_is_a_file_of_every_model():
    assert {path.stem for path in FILES.rglob("*.tally")} == set(ANSWERS) == set(frozen.models())


@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_a_file_loads_and_predicts_the_same(name):
    path = FILES / f"{name}.tally"
    with zipfile.ZipFile(path) as archive:
        assert json.loads(archive.read("manifest.json"))["format"] == sealed_file.FORMAT
    np.testing.assert_allclose(frozen.answers(name, tb.load(path)), ANSWERS[name], rtol=1e-9, atol=1e-12)


def model_of(found):
    """The model of a window, a decayed model or a filter; another model itself."""
    return getattr(found, "model_", getattr(found, "_model", found))


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_a_file_is_what_fitting_gives(name):
    loaded, fitted = tb.load(FILES / f"{name}.tally"), frozen.models()[name]()
    assert type(loaded) is type(fitted)
    if isinstance(fitted, tb.AutoClassifier):
        assert loaded.spec_ == fitted.spec_
    else:
        assert model_of(loaded).tally_.isclose(model_of(fitted).tally_)
        assert same(model_of(loaded).get_params(deep=False), model_of(fitted).get_params(deep=False))


@pytest.mark.parametrize("changed", [{"n_iter": 3}, {"prior": ...}], ids=["unknown", "missing"])
def test_parameters_must_be_those_of_the_class(changed, tmp_path, monkeypatch):
    model, write = frozen.mixture("bayes"), sealed_file.write

    def write_changed(path, kind, content, arrays):
        parameters = {**content["parameters"], **changed}
        kept = {name: value for name, value in parameters.items() if value is not ...}
        write(path, kind, {**content, "parameters": kept}, arrays)

    monkeypatch.setattr(sealed_file, "write", write_changed)
    model.save(tmp_path / "a.tally")
    with pytest.raises(tb.FileError, match=f"{next(iter(changed))}.*(unknown|missing)"):
        tb.load(tmp_path / "a.tally")
