"""Absence as a level of columns that are counted in pairs: against a table in which the level was written out."""

import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tallybayes as tb
from tallybayes.errors import DataError, ExportError, FileError, LabelError, StatisticsError

each = pytest.mark.parametrize("kind", [tb.AveragedOneDependence, tb.TreeAugmentedNaiveBayes])
EDGES = (None, 0.0, 1.0, None)
COLUMNS = {
    "x": tb.WithMissing(tb.Binned(EDGES)),
    "word": tb.WithMissing(tb.Categorical()),
    "few": tb.WithMissing(tb.Categorical()),
    "yes": tb.WithMissing(tb.Categorical()),
    "named": tb.WithMissing(tb.Categorical(("a", "b", "c"))),
    "z": tb.Categorical(),
}
BY_HAND = {
    "x": tb.Binned((None, 0.0, 1.0, 1e6, None)),
    "named": tb.Categorical(("a", "b", "c", "gone")),
    **dict.fromkeys(["word", "few", "yes", "z"], tb.Categorical()),
}


def draw(n=150, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    columns = {
        "x": rng.normal(y),
        "word": rng.choice(["u", "v"], n).astype(object),
        "few": rng.integers(0, 3, n).astype(float),
        "yes": (rng.random(n) < 0.5).astype(object),
        "named": rng.choice(["a", "b"], n).astype(object),
    }
    for name, column in columns.items():
        gone = rng.random(n) < np.where(y, 0.5, 0.2)
        gone[:2] = [True, False]  # seen and not, whatever the rows
        columns[name] = np.where(gone, np.nan if column.dtype.kind == "f" else None, column)
    columns["z"] = np.where(rng.random(n) < 0.2, None, rng.choice(["r", "s"], n))
    return pd.DataFrame(columns), y


def written_out(frame):
    yes = frame["yes"].map({True: "True", False: "False"})
    gone = {"x": 2e6, "word": "gone", "few": 99, "yes": "gone", "named": "gone"}
    return frame.assign(yes=yes).fillna(gone)


@each
@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_a_level_that_somebody_wrote_out(kind, weighted):
    frame, y = draw()
    weight = np.random.default_rng(1).integers(0, 4, len(y)) if weighted else None
    model = kind(COLUMNS, prior=1.0).fit(frame, y, weight)
    twin = kind(BY_HAND, prior=1.0).fit(written_out(frame), y, weight)
    np.testing.assert_allclose(model.predict_proba(frame), twin.predict_proba(written_out(frame)), rtol=1e-12)
    np.testing.assert_allclose(model.score_samples(frame), twin.score_samples(written_out(frame)), rtol=1e-12)
    left = [tb.leave_one_out(*one).log_loss.value for one in ((model, frame, y), (twin, written_out(frame), y))]
    assert left[0] == pytest.approx(left[1], rel=1e-12)
    ours, its = model.explain(frame[:5]), twin.explain(written_out(frame[:5]))
    np.testing.assert_allclose(ours.contributions, its.contributions, atol=1e-12)
    assert model.n_parameters_ == twin.n_parameters_
    assert model.columns_ == COLUMNS
    assert model.parameters_["word"].columns[-1] == "(missing)"
    assert model.parameters_["x"].columns[-1] == "(missing)"


@pytest.mark.slow
@each
@given(st.integers(0, 2**32 - 1))
def test_the_laws_of_counting(kind, seed):
    frame, y = draw(40, seed)
    y[:2] = [0, 1]
    rng = np.random.default_rng(seed)
    every, cut = np.arange(40), int(rng.integers(2, 39))

    def fit(part, weight=None):
        return kind(COLUMNS).fit(frame.iloc[part], y[part], weight)

    whole = fit(every)
    assert fit(rng.permutation(40)).tally_.isclose(whole.tally_)
    assert fit(every[:cut]).partial_fit(frame[cut:], y[cut:]).tally_.isclose(whole.tally_)
    assert (fit(every[:cut]) + fit(every[cut:])).tally_.isclose(whole.tally_)
    assert whole.reestimate().forget(frame[cut:], y[cut:]).tally_.isclose(fit(every[:cut]).tally_)
    times = rng.integers(0, 3, 40)
    if times.any():
        assert fit(every, times).tally_.isclose(fit(np.repeat(every, times)).tally_)


@each
def test_absence_is_a_level_that_no_row_need_have(kind):
    frame, y = draw()
    whole = frame.ffill().bfill()
    model = kind(COLUMNS).fit(whole, y)
    gone = model.parameters_["word"].values[..., -1]
    assert (gone > 0).all()
    assert (gone < 0.1).all()
    again = model.reestimate().partial_fit(frame[:1], y[:1]).forget(frame[:1], y[:1])
    assert again.tally_ == model.tally_


@each
def test_what_is_unknown_is_not_absent(kind):
    frame, y = draw()
    model = kind(COLUMNS).fit(frame, y)
    new = frame.assign(word="never seen")
    found, absent = model.predict_proba(new), model.predict_proba(frame.assign(word=None))
    joint = [
        np.log(model.predict_proba(frame.assign(word=level))) + model.score_samples(frame.assign(word=level))[:, None]
        for level in ("u", "v", None)
    ]
    summed = np.logaddexp.reduce(joint, axis=0)  # over every level that it may be, absence too
    np.testing.assert_allclose(found, np.exp(summed - np.logaddexp.reduce(summed, axis=1)[:, None]), rtol=1e-9)
    assert np.abs(found - absent).max() > 0.05
    assert set(model.impute(new)["word"]) == {"never seen"}
    strange = frame.assign(word=frame["word"].where(np.arange(150) % 2 == 0, 7), x=frame["x"].astype(object))
    strange.loc[3, "x"] = "no number"
    with pytest.warns(tb.InvalidValueWarning, match="'no number' in column 'x'"):
        odd = model.predict_proba(strange)
    np.testing.assert_allclose(odd[0], model.predict_proba(frame[:1])[0], rtol=1e-12)
    expected = frame[3:4].assign(word="never seen")
    known = [
        np.log(model.predict_proba(expected.assign(x=v))) + model.score_samples(expected.assign(x=v))
        for v in (-1.0, 0.5, 2.0, np.nan)
    ]
    both = np.logaddexp.reduce(known, axis=0)
    np.testing.assert_allclose(odd[3], np.exp(both - np.logaddexp.reduce(both, axis=1))[0], rtol=1e-9)


@each
def test_files_tallies_and_other_rows(kind, tmp_path):
    frame, y = draw()
    model = kind(COLUMNS).fit(frame, y)
    expected = model.predict_proba(frame)
    model.save(tmp_path / "model")
    for back in (tb.load(tmp_path / "model"), pickle.loads(pickle.dumps(model)), kind(COLUMNS).fit_tally(model.tally_)):
        assert back.columns_ == COLUMNS
        np.testing.assert_array_equal(back.predict_proba(frame), expected)
    model.tally_.save(tmp_path / "tally")
    assert tb.load(tmp_path / "tally") == model.tally_
    whole = frame.astype(object).where(frame.notna(), None).to_dict("records")
    labels = {name: family for name, family in COLUMNS.items() if name != "x"}
    alone = kind(labels).fit(frame[list(labels)], y)
    assert kind().fit_tally(alone.tally_).columns_["word"] == tb.WithMissing(tb.Categorical())
    rows = [{k: v for k, v in row.items() if not (place and pd.isna(v))} for place, row in enumerate(whole)]
    np.testing.assert_array_equal(kind(COLUMNS).fit(rows, y).predict_proba(rows), expected)
    X = frame[["x", "few"]].to_numpy()
    array = kind(tb.WithMissing(tb.Gaussian()), bins=4).fit(X, y)  # absence beside bins that are found
    assert [len(family.bins) for family in array.columns_.values()] == [5, 4]
    assert array.score(X, y) > kind(bins=4).fit(X, y).score(X, y)
    here, there = (kind("suggest").fit(one[["word", "z"]], y) for one in (frame, frame.assign(word="u")))
    with pytest.raises(StatisticsError, match="column 'word' has different bins"):
        here + there


@each
def test_samples_and_filled_cells(kind):
    frame, y = draw(600)
    model = kind(COLUMNS).fit(frame, y)
    drawn, labels = model.sample(4000, random_state=0)
    for name in COLUMNS:
        share = [pd.isna(drawn[name][labels == label]).mean() for label in (0, 1)]
        assert share == pytest.approx([0, 0] if name == "z" else [0.2, 0.5], abs=0.07)
    filled = model.impute(frame)
    assert not filled.isna().to_numpy().any()
    assert set(filled["few"]) == {0, 1, 2}
    found = model.impute(frame, "distribution")
    assert found["word"].levels == ("u", "v")
    np.testing.assert_allclose(found["word"].probabilities.sum(axis=1), 1)


@each
def test_suggest_finds_it_by_evidence(kind):
    frame, y = draw(400)
    rng = np.random.default_rng(1)
    frame["by chance"] = np.where(rng.random(400) < 0.3, np.nan, rng.normal(y))
    frame["flag"] = np.where(rng.random(400) < 0.2 + 0.5 * y, "yes", None)
    frame["of one number"] = np.where(rng.random(400) < 0.2 + 0.5 * y, 5.0, np.nan)
    frame["constant"] = 1.0
    model = kind("suggest").fit(frame, y)
    found = {name for name, family in model.columns_.items() if isinstance(family, tb.WithMissing)}
    naive = tb.NaiveBayes("suggest").fit(frame, y)
    assert found == {name for name, family in naive.columns_.items() if isinstance(family, tb.WithMissing)}
    assert {"x", "word", "flag", "of one number"} <= found
    assert "by chance" not in found
    assert model.dropped_columns_ == {"constant": "constant"}
    assert len(model.columns_["x"].present_family.bins) == 8
    assert "WithMissing(Binned of 8): x" in repr(model)
    assert kind(model.columns_).fit(frame, y).tally_ == model.tally_
    assert (
        tb.leave_one_out(model, frame, y).log_loss.value
        < tb.leave_one_out(kind().fit(frame, y), frame, y).log_loss.value
    )
    assert kind({"x": "suggest", ...: "auto"}).fit(frame, y).columns_["x"] == model.columns_["x"]


@pytest.mark.slow
@each
def test_every_answer_is_given(kind):
    frame, y = draw()
    model = kind(COLUMNS).fit(frame, y)
    assert "(missing)" in model.show_work(frame[:1])
    shown = {line.column: line for line in model.summary().columns}
    assert shown["word"].missing == pytest.approx(frame["word"].isna().mean())
    assert shown["x"].missing == pytest.approx(frame["x"].isna().mean())
    tb.cross_validate(model, frame, y)
    tb.predictive_check(model, frame, y)
    model.plot_columns()
    model.plot_decision_boundary(columns=("x", "word"))
    if kind is tb.AveragedOneDependence:
        with pytest.raises(ExportError, match="column 'x' has missing values as a level"):
            model.to_sql("sqlite", "rows")


def test_a_plane_marginalizes_what_it_does_not_show():
    frame, y = draw()
    model = tb.AveragedOneDependence(COLUMNS).fit(frame, y)
    from tallybayes.plotting.classifier.plane_models import _rows

    one = model._estimated_classifier.joint(_rows(model, {"z": np.array(["r"], dtype=object)}, 1))
    absent = model._estimated_classifier.joint(
        _rows(model, {n: np.array([v], dtype=object) for n, v in {"z": "r", "word": None}.items()}, 1)
    )
    assert (one > absent).all()


def test_refusals(tmp_path):
    frame, y = draw()
    with pytest.raises(DataError, match=r"found inf in row 4, column 'x'"):
        tb.AveragedOneDependence(COLUMNS).fit(frame.assign(x=np.where(np.arange(150) == 4, np.inf, frame["x"])), y)
    with pytest.raises(LabelError):
        tb.AveragedOneDependence(COLUMNS).fit(frame.assign(named="d"), y)
    with pytest.raises(LabelError, match="None"):
        tb.AveragedOneDependence({"word": tb.Categorical(("u", "v", None))}).fit(frame, y)  # not so
    from tallybayes.tally import tally_io

    tally = tb.AveragedOneDependence(COLUMNS).fit(frame, y).tally_
    manifest, arrays = tally_io.tally_to_parts(tally)
    for domain in manifest["domains"]:
        domain |= {"missing_level": 17} if "missing_level" in domain else {}
    with pytest.raises(FileError, match="missing level at position 17"):
        tally_io.tally_from_parts(manifest, arrays)
