"""The counts of a tally with their labels, as a long table and as text."""

import numpy as np
import pytest

import tallybayes as tb

ROWS = {
    "sky": ["sun", "rain", "sun", None],
    "wind": [1.0, 4.0, 3.0, 6.0],
    "calls": [2, 0, 1, 3],
    "picnic": [1, 0, 1, 0],
}
MODEL = tb.NaiveBayes({"calls": tb.Poisson(), ...: "auto"}).fit(ROWS, "picnic")
FRAME = MODEL.tally_.to_frame()


def value(**where):
    found = FRAME
    for name, wanted in where.items():
        found = found[found[name] == wanted]
    return found["value"].item()


def test_every_count_has_its_labels():
    assert list(FRAME) == ["factor", "picnic", "column", "level", "statistic", "value"]
    assert value(column="picnic", level=1) == 2
    assert value(picnic=1, column="sky", level="sun") == 2
    assert value(picnic=0, column="sky", level="rain") == 1
    assert value(picnic=0, column="calls", statistic="total") == 3
    assert [value(picnic=1, column="wind", statistic=name) for name in ("weight", "mean", "scatter")] == [2, 2, 2]
    assert len(FRAME) == 2 + 4 + 2 * 2 + 2 * 3


def test_small_tables_are_shown_whole():
    lines = repr(MODEL.tally_).splitlines()
    assert "    picnic  sky=sun  sky=rain" in lines
    assert "    0             0         1" in lines
    assert "    picnic  column  weight  mean  scatter" in lines
    assert lines[-2:] == ["  picnic: 0, 1", "  sky: 'sun', 'rain'"]


def test_large_ones_are_cut():
    X, y = np.ones((60, 30)), np.arange(60) % 20
    shown = repr(tb.NaiveBayes(tb.Poisson()).fit(X, y).tally_)
    assert "… 26 more columns" in shown
    assert "… 12 more groups" in shown
    assert len(shown.splitlines()) < 50
    assert "class=7  …" in shown


@pytest.mark.parametrize("family", [tb.MultivariateGaussian(), tb.TiedGaussian(), tb.Multinomial(), tb.Bernoulli()])
def test_of_blocks(family):
    X, y = np.array([[1.0, 0, 1], [0, 1, 1], [1, 1, 0], [0, 0, 1]]), [0, 0, 1, 1]
    frame = tb.NaiveBayes(family).fit(X, y).tally_.to_frame()
    totals = frame[frame["statistic"].isin(["total", "mean"])]
    assert totals.groupby("column")["value"].sum().gt(0).all()
    assert set(totals["column"]) == {0, 1, 2}


def test_words_are_levels():
    model = tb.NaiveBayes(tb.Text()).fit(["free lunch", "free money", "dear friend"], ["spam", "spam", "ham"])
    frame = model.tally_.to_frame().set_index(["class", "level", "statistic"])["value"]
    assert frame["spam", "free", "total"] == 2
    assert frame["ham", "dear", "total"] == 1
