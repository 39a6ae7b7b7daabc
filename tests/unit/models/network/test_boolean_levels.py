"""Booleans stand for levels that read as booleans, in evidence and in rows of any kind."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

import tallybayes as tb
from tallybayes.data.table import open_table
from tallybayes.errors import LabelError
from tallybayes.models.network.boolean_levels import boolean_levels, booleans_to_levels
from tallybayes.warnings import InvalidValueWarning


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        (["true", "false"], {False: "false", True: "true"}),
        (["FALSE", "TRUE"], {False: "FALSE", True: "TRUE"}),
        (["Yes", "No", "unknown"], {False: "No", True: "Yes"}),
        (["true", "no"], {False: "no", True: "true"}),
        (["yes", "true", "no"], {}),  # which one is not said
        (["yes"], {}),
        (["present", "absent"], {}),
        ([False, True], {}),
        ([0, 1], {}),
        ([None, "yes", "no"], {False: "no", True: "yes"}),
        ([], {}),
    ],
)
def test_levels_that_read_as_booleans(levels, expected):
    assert boolean_levels(levels) == expected


LEVELS = {"fire": ("true", "false"), "smoke": ("YES", "NO", "unknown"), "report": ("present", "absent")}
TABLES = {"fire": [0.1, 0.9], "smoke": [[0.7, 0.1, 0.2], [0.1, 0.8, 0.1]], "report": [[0.6, 0.4]] * 2 + [[0.2, 0.8]]}


def building():
    return tb.BayesianNetwork.from_tables({"smoke": ["fire"], "report": ["smoke"]}, LEVELS, TABLES)


FIRE = [True, False, None, True]
SMOKE = [False, True, True, None]
WORDS = {"fire": ["true", "false", None, "true"], "smoke": ["NO", "YES", "YES", None]}
ROWS = {
    "lists": {"fire": FIRE, "smoke": SMOKE},
    "dicts": [{"fire": f, "smoke": s} for f, s in zip(FIRE, SMOKE, strict=True)],
    "objects": {"fire": np.array(FIRE, dtype=object), "smoke": np.array(SMOKE, dtype=object)},
    "pandas, nullable": pd.DataFrame({"fire": FIRE, "smoke": SMOKE}).astype("boolean"),
    "pandas, objects": pd.DataFrame({"fire": FIRE, "smoke": SMOKE}, dtype=object),
    "pandas, categories": pd.DataFrame({"fire": FIRE, "smoke": SMOKE}).astype("category"),
    "polars": pl.DataFrame({"fire": FIRE, "smoke": SMOKE}),
    "arrow": pl.DataFrame({"fire": FIRE, "smoke": SMOKE}).to_arrow(),
}


@pytest.mark.parametrize("kind", ROWS)
def test_boolean_columns_equal_word_columns(kind):
    model = building()
    np.testing.assert_array_equal(model.score_samples(ROWS[kind]), model.score_samples(WORDS))
    np.testing.assert_array_equal(model.predict_proba(ROWS[kind], "fire"), model.predict_proba(WORDS, "fire"))
    assert np.asarray(model.impute(ROWS[kind])["smoke"])[:3].tolist() == ["NO", "YES", "YES"]


@pytest.mark.filterwarnings("ignore:cells that cannot be")
def test_arrays_of_booleans_without_missing_cells():
    model = building()
    block = np.array([[True, False], [False, True]])
    expected = model.score_samples({"fire": ["true", "false"], "smoke": ["NO", "YES"]})
    for rows in (pd.DataFrame(block, columns=["fire", "smoke"]), dict(zip(("fire", "smoke"), block.T, strict=True))):
        np.testing.assert_array_equal(model.score_samples(rows), expected)
    np.testing.assert_array_equal(model.score_samples(block, names=["fire", "smoke"]), expected)
    with pytest.warns(InvalidValueWarning, match=r"3\.5 in column 'smoke'"):  # the invalid cell leaves the other alone
        one = model.predict_proba({"fire": [True], "smoke": [3.5]}, "report")
    np.testing.assert_array_equal(one, model.predict_proba({"fire": ["true"]}, "report"))


def test_evidence():
    model = building()
    for true in (True, np.True_):
        for answer in (model.query("smoke", {"fire": true}), model.query("smoke", do={"fire": true})):
            np.testing.assert_allclose(answer.probabilities, TABLES["smoke"][0], rtol=1e-12)
    hints = {True: 0.5, False: 0.2, "unknown": 0.1}, {"YES": 0.5, "NO": 0.2, "unknown": 0.1}
    soft, hard = (model.query("fire", {"smoke": hint}).probabilities for hint in hints)
    np.testing.assert_array_equal(soft, hard)
    with pytest.raises(LabelError, match="node 'report' has no level True"):
        model.query("fire", {"report": True})
    with pytest.raises(LabelError, match="node 'fire' has no level 1 "):
        model.query("smoke", {"fire": 1})
    with pytest.raises(LabelError, match="string levels on one side and bool levels on the other"):
        model.score_samples({"report": [True, False]})


def test_booleans_become_declared_levels():
    rng = np.random.default_rng(0)
    fire = rng.random(200) < 0.3
    rows = {"fire": fire, "smoke": fire ^ (rng.random(200) < 0.1)}
    words = {
        "fire": np.where(fire, "true", "false"),
        "smoke": np.where(rows["smoke"], "YES", "NO"),
    }
    columns = {"fire": tb.Categorical(levels=LEVELS["fire"]), "smoke": tb.Categorical(levels=LEVELS["smoke"])}
    graph = {"smoke": ["fire"]}
    declared, spelled_out = (tb.BayesianNetwork(graph, columns=columns).fit(some) for some in (rows, words))
    assert declared.tally_ == spelled_out.tally_
    assert declared.levels_ == {name: LEVELS[name] for name in ("fire", "smoke")}
    more = tb.BayesianNetwork(graph, columns=columns).fit(words).partial_fit(pd.DataFrame(rows)).forget(rows)
    assert more.tally_ == declared.tally_
    believed = tb.BayesianNetwork(graph, prior=tb.BDe(building(), 10)).fit(rows)
    assert set(believed.levels_["smoke"]) == {"YES", "NO", "unknown"}
    anew = tb.BayesianNetwork(graph).fit(words).fit(rows)  # where no words are declared
    assert anew.levels_["fire"] == (False, True)
    evaluation = tb.evaluate(declared, rows, target="fire")
    assert evaluation.accuracy.value == tb.evaluate(declared, words, target="fire").accuracy.value
    held = tb.cross_validate(declared, pd.DataFrame(rows), "fire")
    assert held.log_loss.value == tb.cross_validate(declared, words, "fire").log_loss.value


def test_a_network_from_a_file_reads_the_frame_it_was_fitted_on(tmp_path):
    rows = pd.DataFrame({"rain": [True, False, True, True], "wet": [True, False, True, False]})
    model = tb.BayesianNetwork({"wet": ["rain"]}).fit(rows)
    model.to_bif(tmp_path / "garden.bif")
    again = tb.BayesianNetwork.from_bif(tmp_path / "garden.bif")
    assert again.levels_ == {"rain": ("False", "True"), "wet": ("False", "True")}
    np.testing.assert_allclose(again.score_samples(rows), model.score_samples(rows))


def test_other_columns_stay_as_they_are():
    table = open_table({"fire": ["true", "false"], "report": [True, False], "day": [0, 1], "block": np.ones((2, 2))})
    levels = {**LEVELS, "day": ("yes", "no"), "block": ("yes", "no"), "smoke": ("yes", "no")}
    assert booleans_to_levels(table, levels) is table
