"""Times as people have them: whatever holds them, whatever their zone, also where the clocks are put back."""

from datetime import date, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tallybayes as tb
from tallybayes.models.streaming.timestamps import read_times

BERLIN = ZoneInfo("Europe/Berlin")
# An hour apart each; half past two comes twice in the night in which summer time ends.
NIGHT = [datetime(2026, 10, 25, 1, 30), datetime(2026, 10, 25, 2, 30), datetime(2026, 10, 25, 2, 30, fold=1),
         datetime(2026, 10, 25, 3, 30)]  # fmt: skip
NIGHT = [moment.replace(tzinfo=BERLIN) for moment in NIGHT]
UTC = np.array(["2026-10-24T23:30", "2026-10-25T00:30", "2026-10-25T01:30", "2026-10-25T02:30"], "M8[ns]")
WRITTEN = [moment.isoformat() for moment in NIGHT]
FORMS = {
    "list": list, "array": np.array, "series": pd.Series, "index": pd.DatetimeIndex, "polars": pl.Series,
    "arrow": pa.array, "arrow in parts": lambda times: pa.chunked_array([times[:1], times[1:]]),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_instants_of_a_zone(form):
    found = read_times(FORMS[form](NIGHT), 4)
    assert found.dated
    np.testing.assert_array_equal(found.values, UTC.view(np.int64))
    if form != "index":
        np.testing.assert_array_equal(read_times(FORMS[form](WRITTEN), 4).values, UTC.view(np.int64))


@pytest.mark.parametrize("form", [form for form in FORMS if form != "index"])
def test_days(form):
    days = [date(2026, 1, 1), date(2026, 1, 3)]
    assert np.diff(read_times(FORMS[form](days), 2).values).tolist() == [2 * 86_400 * 10**9]


def test_a_window_goes_by_hours_that_passed_not_by_what_the_clock_shows():
    x, y = np.arange(4.0)[:, None], [0, 1, 0, 1]
    for times in (NIGHT, pd.Series(NIGHT), pl.Series(NIGHT)):
        window = tb.Window(tb.NaiveBayes(), duration=timedelta(hours=2)).partial_fit(x, y, time=times)
        assert window.n_kept_ == 2  # in (00:30, 02:30] of UTC; the clocks show three hours from 1:30 to 3:30, not two
        assert window.now_ == UTC[-1]
    elsewhere = NIGHT[-1].astimezone(ZoneInfo("America/New_York")) + timedelta(hours=1)
    assert window.advance(elsewhere).n_kept_ == 1


@pytest.mark.parametrize("form", [form for form in FORMS if form not in ("index", "arrow in parts")])
def test_a_row_without_a_time_is_named(form):
    with pytest.raises(tb.DataError, match="row 1 has no time"):
        read_times(FORMS[form]([NIGHT[0], None]), 2)


@pytest.mark.parametrize(
    ("time", "said"),
    [
        ([1.0, np.nan], "row 1 has no time"),
        (pd.Series([1, None], dtype="Int64"), "row 1 has no time"),
        ([1.0, np.inf], "row 1 has no time"),
        (["monday", "2026-01-01"], "the time of row 0 is 'monday'; expected a date"),
        (["2026-01-01", 3], "expected numbers or dates"),
        ([None, None], "expected numbers or dates"),
        (np.array(["1500-01-01", "2026-01-01"], "M8[s]"), "between 1678 and 2262"),
        ([[1, 2], [3, 4]], "one for every row"),
    ],
)
def test_what_is_no_time_is_refused(time, said):
    with pytest.raises(tb.DataError, match=said):
        read_times(time, 2)
