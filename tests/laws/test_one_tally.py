"""One tally for the shapes that models need: a naive Bayes star, a table with two parents, a hidden Markov chain."""

from itertools import pairwise

import numpy as np

import tallybayes as tb
from tallybayes import testing

STAR = (
    tb.Factor("class", (), tb.Categorical()),
    tb.Factor(("color", "size"), "class", tb.Categorical()),
    tb.Factor(("length", "width"), "class", tb.Gaussian()),
)
TWO_PARENTS = (tb.Factor("grade", ("class", "color"), tb.Categorical()),)
START = (tb.Factor("start", (), tb.Categorical()),)
STEP = (tb.Factor("to", "from", tb.Categorical()), tb.Factor("signal", "to", tb.Gaussian()))
STATES = tb.Schema({"start": "state", "from": "state", "to": "state"}, sorted_domains=("state",))


def draw_rows(rng, n, classes, colors):
    kind = rng.choice(classes, n)
    return {
        "class": kind,
        "color": rng.choice(colors, n),
        "size": rng.integers(1, 4, n),
        "grade": rng.choice(["low", "high"], n),
        "length": rng.normal(1e9, 1.0, n),
        "width": np.where(rng.random(n) < 0.2, np.nan, rng.normal(0.0, 2.0, n)),
    }


def draw_chains(rng, n, states):
    return [rng.choice(states, int(rng.integers(1, 6))) for _ in range(n)]


def count_all(rows, chains):
    """Tables of three different lengths through one tally."""
    steps = [(a, b) for chain in chains for a, b in pairwise(chain)]
    moves = np.array(steps, dtype=object).reshape(-1, 2)
    signal = np.array([len(str(to)) + 0.25 * len(str(before)) for before, to in steps], dtype=float)
    star = tb.count(rows, STAR + TWO_PARENTS)
    start = tb.count({"start": np.array([chain[0] for chain in chains], dtype=object)}, START, schema=STATES)
    step = tb.count({"from": moves[:, 0], "to": moves[:, 1], "signal": signal}, STEP, schema=STATES)
    return star | start | step


def join(*tables):
    return {name: np.concatenate([np.asarray(table[name], dtype=object) for table in tables]) for name in tables[0]}


def numeric(table):
    """Joined columns of objects back as numbers where they are numbers."""
    floats = {name: table[name].astype(float) for name in ("length", "width")}
    return {**table, "size": table["size"].astype(int), **floats}


def make_days():
    rng = np.random.default_rng(8)
    palette = [(["ham", "spam"], ["red"]), (["spam", "news"], ["red", "green"]), (["ham", "alarm"], ["blue", "red"])]
    rows = [draw_rows(rng, n, *labels) for n, labels in zip((40, 25, 31), palette, strict=True)]
    states = [["sun", "rain"], ["rain", "snow"], ["fog", "sun"]]
    chains = [draw_chains(rng, n, names) for n, names in zip((12, 7, 9), states, strict=True)]
    return rows, chains


def test_days_merge_into_the_batch_and_leave_it_again():
    rows, chains = make_days()
    days = [count_all(table, sequence) for table, sequence in zip(rows, chains, strict=True)]
    whole = count_all(numeric(join(*rows)), [chain for day in chains for chain in day])
    exact = [True] * len(whole.factors)
    testing.assert_statistics_close(days[0] + days[1] + days[2], whole, exact=exact)
    testing.assert_statistics_close(days[2] + (days[0] + days[1]), whole, exact=exact)

    two_days = count_all(numeric(join(rows[0], rows[2])), chains[0] + chains[2])
    testing.assert_statistics_close(whole - days[1], two_days, held=whole, exact=exact)
    testing.assert_statistics_close(whole - days[1] - days[2], days[0], held=whole, exact=exact)
    testing.assert_statistics_close(whole - (days[2] + days[0]) - days[1], whole - whole, held=whole, exact=exact)


def test_levels_come_and_go_with_their_rows():
    rows, chains = make_days()
    days = [count_all(table, sequence) for table, sequence in zip(rows, chains, strict=True)]
    whole = days[0] + days[1] + days[2]
    assert set(whole.domains["class"].levels) == {"ham", "spam", "news", "alarm"}
    assert set(whole.domains["color"].levels) == {"red", "green", "blue"}
    assert whole.domains["state"].levels == ("fog", "rain", "snow", "sun")
    rest = whole - days[1]
    assert set(rest.domains["class"].levels) == {"ham", "spam", "alarm"}
    assert set(rest.domains["color"].levels) == {"red", "blue"}
    assert rest.domains["state"].levels == ("fog", "rain", "sun")
    assert (whole - days[1] - days[2]).domains == days[0].domains
    assert all(not domain.levels for domain in (whole - whole).domains.values())


def test_the_numbers_are_those_of_a_plain_count():
    rows, chains = make_days()
    tally = sum(count_all(table, sequence) for table, sequence in zip(rows, chains, strict=True))
    table = numeric(join(*rows))
    grades = tally["grade"]
    names = {name: tally.domains[name].levels for name in ("class", "color", "grade", "state")}
    for i, kind in enumerate(names["class"]):
        for j, color in enumerate(names["color"]):
            for k, grade in enumerate(names["grade"]):
                rows_here = (table["class"] == kind) & (table["color"] == color) & (table["grade"] == grade)
                assert grades.table[i, j, k] == rows_here.sum()
    steps = [step for day in chains for chain in day for step in pairwise(chain)]
    for i, before in enumerate(names["state"]):
        assert tally["start"].table[i] == sum(chain[0] == before for day in chains for chain in day)
        for j, after in enumerate(names["state"]):
            assert tally["to"].table[i, j] == steps.count((before, after))


def test_forgetting_what_one_factor_never_had_changes_nothing():
    rows, chains = make_days()
    first = count_all(rows[0], chains[0])
    for foreign in (count_all(rows[0], chains[1]), count_all(rows[1], chains[0])):
        testing.check_refusal(first, foreign)
    testing.check_file(first)
