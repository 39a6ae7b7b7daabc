"""Files that were written once load for ever, and their models answer as they did."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import tallybayes as tb
from tallybayes._utils import sealed_file

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


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(ANSWERS))
def test_it_is_what_fitting_gives_today(name):
    loaded, fitted = tb.load(FILES / f"{name}.tally"), frozen.models()[name]()
    assert type(loaded) is type(fitted)
    assert loaded.tally_.isclose(fitted.tally_)


def test_defaults_of_the_time_are_spelled_out(tmp_path):
    old = tb.load(FILES / "naive-bayes-bayes.tally")
    assert (old.prior, old.class_prior) == (1, "frequency")
    old.save(tmp_path / "again.tally")
    again = tb.load(tmp_path / "again.tally")
    assert (again.prior, again.class_prior) == (1, "frequency")
    old.reestimate(prior=None, class_prior=None).save(tmp_path / "new.tally")
    new = tb.load(tmp_path / "new.tally")
    assert (new.prior, new.class_prior) == (None, None)
    chain = tb.load(FILES / "chain-bayes.tally")
    assert (chain.prior, chain.unseen) == (None, "missing")  # no step is a label
    assert tb.load(FILES / "hidden-chain-bayes.tally").unseen == "missing"
    assert tb.load(FILES / "network-bayes.tally").prior is None  # add-one as ever


@pytest.mark.parametrize(
    ("prior", "meant"),
    [
        (tb.Gamma(2.0, 1.0), (tb.Gamma(2.0, 1.0), 1)),
        ([tb.Gamma(2.0, 1.0), tb.Beta(2, 2)], (tb.Gamma(2.0, 1.0), tb.Beta(2, 2), 1)),
        ({"prizes": tb.Gamma(2.0, 1.0)}, {"prizes": tb.Gamma(2.0, 1.0), ("colour",): 1, ("bottled",): 1}),
        ({"colour": tb.Dirichlet(3.0)}, {"colour": tb.Dirichlet(3.0), ("bottled",): 1}),
        ("empirical", "empirical"),
    ],
    ids=repr,
)
def test_priors_of_the_time_leave_the_others_at_add_one(prior, meant, tmp_path, monkeypatch):
    model = frozen.naive_bayes("bayes").reestimate(prior=prior, class_prior=None)
    write = sealed_file.write
    monkeypatch.setattr(
        sealed_file, "write", lambda path, kind, content, arrays: write(path, kind, without(content), arrays)
    )
    model.save(tmp_path / "old.tally")
    old = tb.load(tmp_path / "old.tally")
    assert old.prior == meant
    assert old.prior_["price"] == model.prior_["price"]
    if prior != "empirical":
        beliefs = [tb.Dirichlet(3.0) if "colour" in meant else tb.Dirichlet(1.0)]
        beliefs += [tb.Beta(2, 2) if tb.Beta(2, 2) in meant else tb.Beta(1, 1)]
        assert [old.prior_["colour"], old.prior_["bottled"]] == beliefs


def without(content):
    return {key: value for key, value in content.items() if key != "defaults"}


def test_priors_of_chains_of_the_time(tmp_path, monkeypatch):
    write = sealed_file.write
    monkeypatch.setattr(
        sealed_file, "write", lambda path, kind, content, arrays: write(path, kind, without(content), arrays)
    )
    for prior in (None, tb.Dirichlet(2.0), {"start": tb.Dirichlet(2.0)}):
        tb.HiddenMarkovModel(prior=prior).fit([list("abca"), list("bc")], [list("xyxx"), list("yx")]).save(
            tmp_path / "old.tally"
        )
        old = tb.load(tmp_path / "old.tally")
        assert old.prior_["start"] == tb.Dirichlet(1.0 if prior is None else 2.0)
        assert list(old.prior_.values())[-1] == tb.Dirichlet(1.0)


def test_files_from_before_failures_were_kept():
    model = tb.load(FILES / "before-failures" / "naive-bayes-mle.tally")
    np.testing.assert_allclose(frozen.answers("naive-bayes-mle", model), ANSWERS["naive-bayes-mle"], rtol=1e-9)
    fitted = frozen.naive_bayes("mle")
    assert (fitted + model).tally_.isclose((fitted + fitted).tally_)
    assert model.forget(frozen.rows(), "kind").tally_.isclose(
        frozen.naive_bayes("mle").forget(frozen.rows(), "kind").tally_
    )
