"""Binned columns: against a plain histogram, the categorical model of the bins, and the chain rule."""

import json

import numpy as np
import pytest
from scipy import stats

import tallybayes as tb
from tallybayes.errors import DataError, FileError, StatisticsError
from tallybayes.families.protocols.counting import sql_group_expression, sql_group_value
from tallybayes.families.protocols.display import plot_grid
from tallybayes.families.protocols.distribution_functions import cdf
from tallybayes.families.protocols.leave_one_out import leave_one_out_log_prob, leave_one_out_tables
from tallybayes.families.protocols.scoring_forms import log_predictive_form

EDGES = (0, 1, 2.5, 10)
rng = np.random.default_rng(3)
VALUES = rng.uniform(0, 10, 60) ** 1.5 / 10**0.5
PRIOR = tb.Dirichlet([0.5, 2.0, 1.0])


def test_it_is_numpy_s_histogram():
    learned = tb.fit_distribution(VALUES, tb.Binned(EDGES))
    counts, _ = np.histogram(VALUES, EDGES)
    assert learned.statistics.table.tolist() == counts.tolist()
    density, _ = np.histogram(VALUES, EDGES, density=True)
    points = np.array([0.5, 2.0, 7.0])
    found = tb.Binned(EDGES).log_prob(tb.Binned(EDGES).maximum_likelihood(learned.statistics), points[:, None])
    np.testing.assert_allclose(np.exp(found[:, 0]), density, rtol=1e-13)
    shape = stats.rv_histogram((counts, np.array(EDGES)), density=False)
    mle = learned.estimate("mle")
    assert learned.log_likelihood(mle) == pytest.approx(shape.logpdf(VALUES).sum(), rel=1e-12)
    assert tb.Binned(EDGES).mean(tb.Binned(EDGES).maximum_likelihood(learned.statistics)) == pytest.approx(shape.mean())


def test_edges_belong_to_the_bin_above_but_for_the_last():
    values = [0.0, 1.0, 2.5, 10.0, -4.0, 99.0, np.nan, np.nextafter(1.0, 0.0)]
    assert tb.Binned(EDGES).codes(values).tolist() == [0, 1, 2, 2, 0, 2, -1, 0]
    assert tb.Binned(EDGES).bins == ("[0, 1)", "[1, 2.5)", "[2.5, 10]")
    assert tb.fit_distribution(values, tb.Binned(EDGES)).statistics.table.tolist() == [3.0, 1.0, 3.0]


def test_many_values_and_many_cuts_fall_alike():
    values = np.concatenate([rng.normal(size=5000), [np.nan, np.inf, -np.inf, 0.5, -0.5, 1e308, -1e308]])
    for n_cuts in (1, 2, 31, 33, 100):
        family = tb.Binned((None, *np.linspace(-0.5, 0.5, n_cuts), None))
        for some in (values, values[:5000], np.append(values[:5000], [1e308, 1e308])):
            np.testing.assert_array_equal(
                family.codes(some), np.concatenate([family.codes(one) for one in np.array_split(some, 50)])
            )
    blocks = np.stack([values, values[::-1]], axis=1)
    np.testing.assert_array_equal(family.codes(blocks)[:, 1], family.codes(values[::-1]))


def test_beyond_the_edges_is_on_the_edge():
    learned = tb.fit_distribution(VALUES, tb.Binned(EDGES))
    inside, outside = learned.predictive().log_prob([0.0, 10.0]), learned.predictive().log_prob([-1e9, 1e9])
    np.testing.assert_array_equal(inside, outside)


def test_evidence_is_the_chain_rule():
    family = tb.Binned(EDGES)
    total = sum(
        tb.fit_distribution(VALUES[:n], family).predictive(PRIOR).log_prob(VALUES[n]) for n in range(len(VALUES))
    )
    learned = tb.fit_distribution(VALUES, family)
    assert learned.log_evidence(PRIOR) == pytest.approx(total, rel=1e-11)
    assert learned.description_length(PRIOR).evidence == pytest.approx(-total / np.log(2), rel=1e-11)
    # that of the labels of the bins, less the widths
    codes = np.digitize(VALUES, EDGES) - 1
    labels = tb.fit_distribution(codes, tb.Categorical(levels=(0, 1, 2))).log_evidence(PRIOR)
    widths = np.diff(EDGES)
    assert learned.log_evidence(PRIOR) == pytest.approx(labels - np.log(widths)[codes].sum(), rel=1e-12)


def test_evidence_of_groups_columns_and_weights():
    cells = np.where(rng.random((60, 2)) < 0.2, np.nan, np.column_stack([VALUES, VALUES[::-1]]))
    group, weight = rng.integers(0, 3, 60), rng.integers(0, 3, 60).astype(float)
    learned = tb.fit_distribution(cells, tb.Binned(EDGES), group=group, weight=weight)
    found = learned.log_evidence(tb.Dirichlet(0.5))
    assert found.shape == (3, 2)
    for g in range(3):
        for column in range(2):
            mine = np.repeat(cells[group == g, column], weight[group == g].astype(int))
            alone = tb.fit_distribution(mine, tb.Binned(EDGES)).log_evidence(tb.Dirichlet(0.5))
            assert found[g, column] == pytest.approx(alone, rel=1e-11)


def test_hypotheses_count_the_widths_once():
    even, odd = dict.fromkeys(tb.Binned(EDGES).bins, 1 / 3), {"[0, 1)": 0.2, "[1, 2.5)": 0.1, "[2.5, 10]": 0.7}
    learned = tb.fit_distribution(VALUES, tb.Binned(EDGES))
    likelihoods = [learned.log_likelihood(p) for p in (even, odd)]
    found = learned.log_evidence(tb.Hypotheses({"even": even, "odd": odd}))
    assert found == pytest.approx(np.logaddexp(*likelihoods) - np.log(2), rel=1e-12)


@pytest.mark.parametrize(
    "edges",
    [
        *[(), (1,), (1, 1), (2, 1), (0, np.nan), (np.inf, 0), (0, np.inf, 1), (None, None), (None,), (0, None, 1)],
        ("a", "b"),
        3,
        None,
        "ab",
        [[0, 1]],
        [[0, 1], 2],
        [[0, 1], [2, 3]],
    ],
    ids=repr,
)
def test_edges_that_are_none(edges):
    with pytest.raises(DataError, match=r"edges of Binned.*expected finite numbers"):
        tb.Binned(edges)


def test_equal_edges_are_equal_families():
    assert tb.Binned([0, 1.0, np.float64(2.5)]) == tb.Binned((0.0, 1, 2.5))
    assert repr(tb.Binned(np.array([0, 5, 9]))) == "Binned((0, 5, 9))"
    assert tb.Binned((0, 1)).statistics_key != tb.Binned((0, 2)).statistics_key
    json.dumps(tb.Binned(np.arange(3)).to_config())


@pytest.mark.parametrize("value", [np.inf, -np.inf])
def test_infinities_are_refused(value):
    with pytest.raises(DataError, match="row 1, column 'age'"):
        tb.NaiveBayes({"age": tb.Binned(EDGES)}).fit({"age": [1.0, value], "kind": ["a", "b"]}, "kind")
    model = tb.NaiveBayes({"age": tb.Binned(EDGES)}).fit({"age": [1.0, 2.0], "kind": ["a", "b"]}, "kind")
    with pytest.raises(DataError, match="row 1, column 'age'"):
        model.predict({"age": [1.0, value]})
    weighed = tb.fit_distribution([1.0, value], tb.Binned(EDGES), weight=[1.0, 0.0])
    assert weighed.statistics.table.tolist() == [0.0, 1.0, 0.0]


@pytest.fixture(params=["bayes", "map", "mle"])
def model(request):
    y = np.array(["a", "b", "b"] * 20)
    rows = {
        "age": np.where(y == "a", VALUES, 9 - VALUES),
        "size": VALUES[::-1].copy(),
        "sky": np.array(list("rs") * 30),
    }
    rows["age"][5] = np.nan
    columns = {"age": tb.Binned(EDGES), "size": tb.Binned(EDGES), "sky": tb.Categorical()}
    return tb.NaiveBayes(columns, estimate=request.param, unseen="smooth").fit(rows, y), rows, y


def test_it_is_the_categorical_model_of_the_bins(model):
    fitted, rows, y = model
    codes = {name: tb.Binned(EDGES).codes(rows[name]) for name in ("age", "size")}
    cut = {name: [None if c < 0 else tb.Binned(EDGES).bins[c] for c in column] for name, column in codes.items()}
    labels = tb.Categorical(levels=tb.Binned(EDGES).bins)
    columns = {"age": labels, "size": labels, "sky": tb.Categorical()}
    twin = tb.NaiveBayes(columns, estimate=fitted.estimate).fit({**rows, **cut}, y)
    plain = fitted.reestimate(unseen="missing")
    np.testing.assert_allclose(plain.predict_proba(rows), twin.predict_proba({**rows, **cut}), rtol=1e-12)
    widths = np.diff(EDGES)
    spread = sum(np.where(code < 0, 0.0, np.log(widths)[code]) for code in codes.values())
    np.testing.assert_allclose(plain.score_samples(rows), twin.score_samples({**rows, **cut}) - spread, rtol=1e-12)
    assert plain.n_parameters_ == twin.n_parameters_
    # numbers stay numbers where people see them
    assert plain.explain(rows).values[0][1] == rows["age"][0]
    assert f"{rows['age'][0]:.6g}" in plain.show_work({name: column[:1] for name, column in rows.items()})


def test_an_unseen_number_is_not_an_unseen_level(model):
    fitted = model[0]
    once, twice = (fitted.reestimate(unseen=how) for how in ("smooth", "missing"))
    ages = {"age": [55.0], "size": [0.5], "sky": [None]}
    np.testing.assert_allclose(once.predict_proba(ages), twice.predict_proba(ages), rtol=1e-12)


def test_parts_rows_and_files(model, tmp_path):
    fitted, rows, y = model
    half = {name: column[:21] for name, column in rows.items()}, y[:21]
    rest = {name: column[21:] for name, column in rows.items()}, y[21:]
    first, second = (tb.NaiveBayes(fitted.columns, estimate=fitted.estimate).fit(*part) for part in (half, rest))
    assert (first + second).tally_ == fitted.tally_
    assert fitted.reestimate().forget(*half).tally_ == second.tally_
    with pytest.raises(StatisticsError, match="cannot forget"):
        first.forget(*rest)
    fitted.save(tmp_path / "model")
    np.testing.assert_array_equal(tb.load(tmp_path / "model").predict_proba(rows), fitted.predict_proba(rows))


def test_forgetting_names_the_bin():
    fitted = tb.NaiveBayes({"age": tb.Binned(EDGES)}).fit({"age": [0.5, 0.7, 5.0]}, ["a", "a", "b"])
    with pytest.raises(ValueError, match=r"column 'age', bin 2"):
        fitted.forget({"age": [5.0]}, ["a"])


def test_samples_and_filled_cells(model):
    fitted, rows, _ = model
    drawn, labels = fitted.sample(6000, random_state=0)
    assert drawn["age"].dtype.kind == "f"
    inside = tb.Binned(EDGES).codes(drawn["age"][labels == "a"])
    scored = fitted._factor_scorers[0]
    theta = (scored.family.parameters_from(scored.parameters, "mean") if scored.predictive else scored.parameters).table
    np.testing.assert_allclose(np.bincount(inside, minlength=3) / len(inside), theta[0, :3], atol=0.05)
    # evenly within a bin
    last = drawn["age"][drawn["age"] >= 2.5]
    assert stats.kstest(last, stats.uniform(2.5, 7.5).cdf).pvalue > 1e-6
    weights = fitted.predict_proba({name: column[5:6] for name, column in rows.items()})[0]
    expected = weights @ scored.family.mean(scored.parameters)[:, 0]
    assert fitted.impute(rows)["age"][5] == pytest.approx(expected, rel=1e-12)


def test_a_column_may_be_binned_here_and_labels_there():
    factors = [
        tb.Factor("x", (), tb.Categorical()),
        tb.Factor("x", "y", tb.Binned((0, 2, 9))),
        tb.Factor("x", "y", tb.Poisson()),
    ]
    one = tb.count({"x": [0, 5, 5], "y": ["a", "b", "b"]}, factors)
    two = tb.count({"x": [7, 1], "y": ["c", "a"]}, factors)
    whole = tb.count({"x": [0, 5, 5, 7, 1], "y": ["a", "b", "b", "c", "a"]}, factors)
    assert one + two == whole
    assert whole - two == one
    assert (one + two).statistics[1].table.tolist() == [[2.0, 0.0], [0.0, 2.0], [0.0, 1.0]]


def test_a_file_with_other_bins_is_refused(tmp_path):
    from tallybayes.tally.tally_io import tally_from_parts, tally_to_parts

    manifest, arrays = tally_to_parts(tb.count({"x": [0.5, 5.0]}, [tb.Factor("x", (), tb.Binned(EDGES))]))
    manifest["factors"][0]["family"]["edges"] = [0, 1, 2]
    with pytest.raises(FileError, match=r"statistics of \[3\] bins"):
        tally_from_parts(manifest, arrays)


def test_blocks_and_matrices():
    X = np.column_stack([VALUES, VALUES[::-1], VALUES])
    y = rng.integers(0, 2, 60)
    matrix = tb.NaiveBayes(tb.Binned(EDGES)).fit(X, y)
    block = tb.NaiveBayes({"x": tb.Binned(EDGES)}).fit({"x": X}, y)
    columns = tb.NaiveBayes(dict.fromkeys("abc", tb.Binned(EDGES))).fit(dict(zip("abc", X.T, strict=True)), y)
    np.testing.assert_array_equal(matrix.predict_proba(X), block.predict_proba({"x": X}))
    np.testing.assert_array_equal(matrix.predict_proba(X), columns.predict_proba(dict(zip("abc", X.T, strict=True))))
    assert matrix.sample(4)[0].shape == (4, 3)


def test_all_missing_and_one_row():
    fitted = tb.NaiveBayes({"x": tb.Binned(EDGES), "z": tb.Gaussian()}).fit(
        {"x": [np.nan, np.nan], "z": [0.0, 1.0]}, ["a", "b"]
    )
    assert np.isfinite(fitted.predict_log_proba({"x": [0.5], "z": [0.3]})).all()
    single = tb.fit_distribution([0.5], tb.Binned(EDGES))
    assert single.estimate("bayes") == {"[0, 1)": 0.5, "[1, 2.5)": 0.25, "[2.5, 10]": 0.25}
    assert tb.fit_distribution([1e9 + 0.5], tb.Binned((1e9, 1e9 + 1, 1e9 + 2))).statistics.table.tolist() == [1.0, 0.0]


def test_pictures():
    pyplot = pytest.importorskip("matplotlib.pyplot")
    fitted = tb.NaiveBayes({"x": tb.Binned(EDGES)}).fit({"x": VALUES}, np.arange(60) % 2)
    figure = fitted.plot_columns().figure
    across, up = figure.axes[0].lines[0].get_data()
    assert np.trapezoid(up, across) == pytest.approx(1.0, rel=1e-9)
    pyplot.close(figure)


def test_an_open_bin_holds_all_beyond_and_is_three_times_as_wide_as_its_neighbor():
    opened, closed = tb.Binned((None, 1, 2.5, 4.5, None)), tb.Binned((-3.5, 1, 2.5, 4.5, 10.5))
    assert opened == tb.Binned((-np.inf, 1, 2.5, 4.5, np.inf))
    assert opened != closed
    assert opened.statistics_key != closed.statistics_key
    assert repr(opened) == "Binned((None, 1, 2.5, 4.5, None))"
    assert opened.bins == ("below 1", "[1, 2.5)", "[2.5, 4.5)", "4.5 and more")
    np.testing.assert_array_equal(opened.ends, closed.edges)
    far = np.append(VALUES, [-1e9, 1e9])
    mine, its = (tb.fit_distribution(far, family) for family in (opened, closed))
    assert mine.statistics == its.statistics
    assert mine.log_evidence() == its.log_evidence()
    np.testing.assert_array_equal(mine.predictive().log_prob(far), its.predictive().log_prob(far))
    assert mine.estimate("mle")["4.5 and more"] == its.estimate("mle")["[4.5, 10.5]"]
    assert tb.Binned((None, 3, None)).ends.tolist() == [2.0, 3.0, 4.0]
    assert tb.Binned((0, None)).bins == ("0 and more",)
    assert tb.Binned((None, 0, 5)).bins == ("below 0", "[0, 5]")


def test_open_bins_in_a_file(tmp_path):
    family = tb.Binned((None, 1, 2.5, None))
    fitted = tb.NaiveBayes({"x": family}).fit({"x": VALUES}, np.arange(60) % 2)
    fitted.save(tmp_path / "model")
    back = tb.load(tmp_path / "model")
    assert back.columns == {"x": family}
    np.testing.assert_array_equal(back.predict_proba({"x": VALUES}), fitted.predict_proba({"x": VALUES}))
    with pytest.raises(DataError, match="row 1, column 'x'"):
        back.predict({"x": [1.0, np.inf]})


def test_middles_of_bins_and_widths_of_open_ones():
    family = tb.Binned([0.0, 1.0, 3.0, 7.0])
    assert sql_group_value(family, np.array([0, 1, 2])).tolist() == [0.5, 2.0, 5.0]
    opened = tb.Binned([None, 1.0, 3.0, None])
    (low, width), (high, wide) = opened.open_bins
    assert (low, high) == ((-np.inf, 1.0), (3.0, np.inf))
    ends = opened.ends
    assert (width, wide) == (ends[1] - ends[0], ends[-1] - ends[-2])
    assert width > 0


FIVE = (None, 1.0, 3.0, 4.0, 8.0, None)


def test_open_bins_are_as_wide_as_their_own_neighbor_says():
    family = tb.Binned(FIVE)
    assert family.ends.tolist() == [-5.0, 1.0, 3.0, 4.0, 8.0, 20.0]
    assert list(family.open_bins) == [((-np.inf, 1.0), 6.0), ((8.0, np.inf), 12.0)]
    assert tb.Binned((None, 1, 3)).ends.tolist() == [-5.0, 1.0, 3.0]  # two edges are enough to tell
    assert list(tb.Binned((0, 1, 3)).open_bins) == []


def test_what_is_infinite_has_no_bin_but_the_density_of_the_last():
    family = tb.Binned(EDGES)
    assert family.codes(np.array([np.inf, -np.inf, np.nan, 5.0])).tolist() == [3, 3, -1, 2]
    point = family.maximum_likelihood(family.collect(VALUES[:, None]))
    far = family.log_prob(point, np.array([[np.inf], [9.0]]))
    np.testing.assert_array_equal(far[0], far[1])


def test_a_database_groups_by_the_cuts_within():
    from tallybayes.families._shared.sql_aggregates import BinIndex, SqlColumn

    assert sql_group_expression(tb.Binned(FIVE), SqlColumn(2)) == BinIndex(SqlColumn(2), (1.0, 3.0, 4.0, 8.0))
    assert sql_group_expression(tb.Binned(EDGES), SqlColumn(0)) == BinIndex(SqlColumn(0), (1.0, 2.5))


@pytest.mark.parametrize("n", [1999, 2000, 2001])
@pytest.mark.parametrize("n_cuts", [31, 32, 33])
def test_bins_are_the_same_however_they_are_found(n, n_cuts):
    values, cuts = np.random.default_rng(0).normal(size=n), np.linspace(-1, 1, n_cuts)
    values[:n_cuts] = cuts  # a cut belongs to the bin above it
    expected = (values[:, None] >= cuts).sum(axis=1)
    np.testing.assert_array_equal(tb.Binned((None, *cuts, None)).codes(values), expected)


@pytest.mark.parametrize("n_groups", [None, 1, 3])
def test_shares_up_to_a_value_are_those_of_the_histogram(n_groups):
    family, cells = tb.Binned(EDGES), np.stack([VALUES, VALUES[::-1] / 2], axis=1)
    group = None if n_groups is None else np.arange(60) % n_groups
    point = family.maximum_likelihood(tb.fit_distribution(cells, family, group=group).statistics)
    x = np.array(
        [[-1.0, 0.0], [0.0, 0.25], [0.25, 1.0], [1.0, 2.0], [2.5, 9.0], [9.0, 10.0], [10.0, 11.0], [99.0, 5.0]]
    )
    found = cdf(family, point, x)
    assert found.shape == ((8, 2) if n_groups is None else (8, n_groups, 2))
    for g in range(n_groups or 1):
        for column in range(2):
            mine = cells[:, column] if n_groups is None else cells[group == g, column]
            shape = stats.rv_histogram((np.histogram(mine, EDGES)[0], np.array(EDGES)), density=False)
            told = found[:, column] if n_groups is None else found[:, g, column]
            np.testing.assert_allclose(told, shape.cdf(x[:, column]), rtol=1e-12, atol=1e-15)


WIDE = (-1, 1, 2.5, 10)  # no bin has width 1


@pytest.mark.parametrize("estimate", ["bayes", "mle"])
def test_a_row_left_out_is_predicted_by_the_others(estimate):
    from tallybayes.families._shared.leave_one_out_counts import GroupStatistics, RemovedRows
    from tallybayes.families.estimates import read_estimate

    family, read = tb.Binned(WIDE), read_estimate(estimate)
    cells = np.stack([VALUES, VALUES[::-1] / 2], axis=1)[:12]
    cells[3, 1] = np.nan
    group, weight = np.arange(12) % 2, np.where(np.arange(12) % 3 == 0, 2.0, 1.0)
    counted = GroupStatistics(family.collect(cells, group, 2, weight), PRIOR_OF_TWO, read)
    removed = RemovedRows(cells, group, weight, np.zeros(2, dtype=bool))
    with np.errstate(divide="ignore"):
        found = leave_one_out_log_prob(family, counted, removed)
    for row in range(12):
        others = np.arange(12) != row
        rest = family.collect(cells[others], group[others], 2, weight[others])
        if estimate == "bayes":
            terms = log_predictive_form(family, PRIOR_OF_TWO.update(rest)).evaluate(family.codes(cells[row : row + 1]))
        else:
            with np.errstate(divide="ignore"):
                terms = family.log_prob(family.maximum_likelihood(rest), cells[row : row + 1])
        assert found[row, 0] == pytest.approx(terms[0, group[row]].sum(), rel=1e-12)
    held = counted._replace(estimate=read_estimate("map"), prior=tb.Dirichlet(0.5))
    assert leave_one_out_log_prob(family, held, removed) is None


PRIOR_OF_TWO = tb.Dirichlet([0.5, 2.0, 1.0, 1.0, 0.25, 3.0], sizes=(3, 3))


def test_tables_of_rows_left_out_are_densities():
    from tallybayes.families._shared.leave_one_out_counts import GroupStatistics
    from tallybayes.families.estimates import read_estimate

    family = tb.Binned(WIDE)
    cells, group = np.stack([VALUES, VALUES[::-1] / 2], axis=1)[:12], np.arange(12) % 2
    statistics = family.collect(cells, group, 2)
    (table,) = leave_one_out_tables(
        family, GroupStatistics(statistics, PRIOR_OF_TWO, read_estimate("bayes")), np.zeros(2, bool)
    )
    assert table.shape == (6, 2)
    alpha = PRIOR_OF_TWO.concentration
    for level, g in np.ndindex(6, 2):
        column = slice(3 * (level // 3), 3 * (level // 3) + 3)
        if statistics.table[g, level] == 0:
            continue  # no row has it
        share = (statistics.table[g, level] - 1 + alpha[level]) / (
            statistics.table[g, column].sum() - 1 + alpha[column].sum()
        )
        assert table[level, g] == pytest.approx(np.log(share / np.diff(WIDE)[level % 3]), rel=1e-12)
    held = GroupStatistics(statistics, tb.Dirichlet(0.5), read_estimate("map"))
    assert leave_one_out_tables(family, held, np.zeros(2, bool)) is None


def test_a_picture_has_both_ends_of_every_bin():
    grid = plot_grid(tb.Binned(EDGES), None, 0)
    assert grid[0::2].tolist() == [0.0, 1.0, 2.5]
    np.testing.assert_allclose(grid[1::2], [1.0, 2.5, 10.0], rtol=1e-15)
    assert (grid[1::2] < [1.0, 2.5, 10.0]).all()
