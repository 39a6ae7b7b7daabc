"""Forms: what a family says its log probability looks like is what it is, dense and sparse."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.special import gammaln

import tallybayes as tb
from tallybayes.estimation.scoring.factor_tables import FactorTables
from tallybayes.families._shared import log_prob_forms as forms
from tallybayes.families._shared.blocks import Codes, SparseRows
from tallybayes.families._shared.log_prob_forms import (
    CellSumForm,
    LinearLogForm,
    LogTableForm,
    MultivariateNormalForm,
    MultivariateTForm,
    NormalForm,
    StudentTForm,
    as_cells,
)
from tallybayes.families.protocols.scoring_forms import (
    form_of,
    log_jacobian,
    log_predictive_form,
    log_prob_form,
    transform,
)
from tallybayes.statistics.counts import Segments
from tests.unit.families.family_cases import CASES

# The form of every family's log probability, and of its predictive; None where only the family itself can say it.
KINDS = {
    "bernoulli": (LinearLogForm, LinearLogForm),
    "binomial": (LogTableForm, LogTableForm),
    "poisson": (LinearLogForm, CellSumForm),
    "multinomial": (LinearLogForm, LinearLogForm),
    "dirichlet multinomial": (LinearLogForm, CellSumForm),
    "gaussian": (NormalForm, StudentTForm),
    "tied": (NormalForm, StudentTForm),
    "spherical": (NormalForm, MultivariateTForm),
    "tied spherical": (NormalForm, MultivariateTForm),
    "multivariate": (MultivariateNormalForm, MultivariateTForm),
    "tied multivariate": (MultivariateNormalForm, MultivariateTForm),
}


def learned(case, predictive, weight=None):
    statistics = case.family.collect(case.rows, case.groups, 3, weight)
    if predictive:
        return case.family.resolve_prior(case.prior, statistics, "bayes").update(statistics)
    return case.family.maximum_likelihood(statistics)


def truth(family, parameters, rows, predictive):
    """The log probability of every row and group, by the family itself."""
    terms = (family.log_predictive if predictive else family.log_prob)(parameters, rows)
    return terms.sum(axis=-1) if family.columnwise else terms


def compressed(rows):
    matrix = csr_array(rows)
    return SparseRows(matrix.indptr, matrix.indices, matrix.data, matrix.shape[1])


@pytest.mark.parametrize("predictive", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_every_family_has_the_form_it_should(name, predictive):
    case = CASES[name]
    form, kind = form_of(case.family, learned(case, predictive), predictive), KINDS[name][predictive]
    assert form is None if kind is None else isinstance(form, kind)


@pytest.mark.parametrize("predictive", [False, True])
@pytest.mark.parametrize("name", [name for name, kinds in KINDS.items() if kinds != (None, None)])
def test_a_form_says_what_the_family_says(name, predictive):
    case = CASES[name]
    parameters = learned(case, predictive)
    form, expected = form_of(case.family, parameters, predictive), truth(case.family, parameters, case.rows, predictive)
    if isinstance(form, LinearLogForm | NormalForm | StudentTForm):
        found = form.evaluate(case.rows).sum(axis=-1)
        if getattr(form, "base", None) == "multinomial":
            found = found + gammaln(case.rows.sum(axis=1) + 1)[:, None]
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    if isinstance(form, MultivariateNormalForm | MultivariateTForm):
        np.testing.assert_array_equal(form.evaluate(case.rows), expected)
        known = np.arange(case.rows.shape[1])
        mean = form.mean if isinstance(form, MultivariateNormalForm) else form.location
        (y, log_det), (at, _) = (form.whitened(rows, known) for rows in (case.rows, mean))
        at = np.broadcast_to(at, (3, 3, len(known)))[np.arange(3), np.arange(3)]
        squares, k = ((y - at) ** 2).sum(axis=-1), len(known)
        if isinstance(form, MultivariateNormalForm):
            found = -0.5 * (log_det + k * np.log(2 * np.pi) + squares)
        else:
            a = form.shape
            found = gammaln(a + k / 2) - gammaln(a) - k / 2 * np.log(np.pi) - log_det / 2
            found = found - (a + k / 2) * np.log1p(squares)
        np.testing.assert_allclose(found, expected, rtol=1e-10)
    cells = form.cells if isinstance(form, LinearLogForm) else form
    if isinstance(cells, CellSumForm):
        np.testing.assert_allclose(cells.score(compressed(case.rows)), expected, rtol=1e-12, atol=1e-12)


RNG = np.random.default_rng(5)
TRANSFORMED = {
    "log-normal": (tb.LogNormal(), np.exp(RNG.normal(size=(12, 3)))),
    "binned": (tb.Binned((-2.0, -0.5, 0.0, 0.75, 2.0)), RNG.normal(size=(12, 3))),
    "binomial": (tb.Binomial(5), RNG.integers(0, 6, (12, 3)).astype(float)),
}


@pytest.mark.parametrize("columns", ["array", "list"])
@pytest.mark.parametrize("predictive", [False, True])
@pytest.mark.parametrize("name", TRANSFORMED)
def test_a_form_of_transformed_cells_says_what_the_family_says(name, predictive, columns):
    family, rows = TRANSFORMED[name]
    statistics = family.collect(rows, np.arange(12) % 2, 2)
    parameters = family.maximum_likelihood(statistics)
    if predictive:
        parameters = family.resolve_prior(None, statistics, "bayes").update(statistics)
    rows = rows.copy()
    rows[0, 1] = np.nan
    moved = transform(family, rows if columns == "array" else list(rows.T))
    moved = np.asarray(moved) if columns == "array" else np.stack(moved, axis=-1)
    form, base = form_of(family, parameters, predictive), log_jacobian(family, moved)
    found = form.evaluate(moved).sum(axis=-1) + (0.0 if base is None else base[:, None])
    np.testing.assert_allclose(found, truth(family, parameters, rows, predictive), rtol=1e-12)


def test_binomials_of_many_trials_are_not_looked_up():
    assert type(form_of(tb.Binomial(255), np.array([[0.5]]), False)) is LogTableForm
    assert form_of(tb.Binomial(256), np.array([[0.5]]), False) is None


@pytest.mark.parametrize("name", TRANSFORMED)
def test_kernels_score_transformed_cells(name, monkeypatch):
    family, rows = TRANSFORMED[name]
    y = np.arange(12) % 2
    model = tb.NaiveBayes(family).fit(rows, y)
    expected = truth(family, model._factor_scorers[0].parameters, rows, True) + np.log(0.5)

    def refuse(*arguments):
        raise AssertionError("scored by NumPy")

    monkeypatch.setattr(FactorTables, "add_terms", refuse)
    np.testing.assert_allclose(model.predict_joint_log_proba(rows), expected, rtol=1e-10)
    assert model.predict(rows).tolist() == expected.argmax(axis=1).tolist()


@pytest.mark.parametrize("name", ["bernoulli", "poisson", "gaussian"])
def test_missing_cells_and_silent_columns_add_nothing(name):
    case = CASES[name]
    form, rows = form_of(case.family, learned(case, False), False), case.rows.astype(float)
    rows[0, 1] = np.nan
    assert (form.evaluate(rows)[0, :, 1] == 0).all()
    silent = form.without_columns(np.array([1])).evaluate(case.rows)
    np.testing.assert_array_equal(np.delete(silent, 1, axis=-1), np.delete(form.evaluate(case.rows), 1, axis=-1))


def test_certain_values_are_not_lost():
    form = log_prob_form(tb.Bernoulli(), np.array([[1.0, 0.0], [0.5, 0.5]]))
    found = form.evaluate(np.array([[1, 0], [0, 1]])).sum(axis=-1)
    np.testing.assert_allclose(found, [[0.0, 2 * np.log(0.5)], [-np.inf, 2 * np.log(0.5)]])
    np.testing.assert_allclose(form.cells.score(compressed(np.array([[1, 0], [0, 1]]))), found)


def test_labels_are_looked_up():
    family, codes = tb.Categorical(), np.array([[0, 1], [2, -1], [1, 0]])
    statistics = family.collect(Codes(codes, np.array([3, 2])), np.array([0, 1, 0]), 2, None)
    posterior = tb.Dirichlet(1.0).update(statistics)
    form = form_of(family, posterior, True)
    assert isinstance(form, LogTableForm)
    expected = np.log([[2 / 5, 1 / 2], [1 / 5, 1.0], [2 / 5, 1 / 2]])
    np.testing.assert_allclose(form.evaluate(codes)[:, 0], expected)


def test_a_family_that_scores_otherwise_has_no_form_until_it_says_so():
    @dataclass(frozen=True, eq=False, repr=False)
    class Shifted(tb.Poisson):
        def log_prob(self, parameters, x):
            return super().log_prob(parameters, x) - 1.0

    assert form_of(Shifted(), np.array([[1.0]]), False) is None
    assert type(form_of(tb.Poisson(), np.array([[1.0]]), False)) is LinearLogForm


SPARSE_FORMS = {
    "bernoulli": log_prob_form(tb.Bernoulli(), np.array([[0.2, 0.5, 0.9, 0.4], [0.7, 0.1, 0.3, 0.6]])).cells,
    "poisson": log_prob_form(tb.Poisson(), np.array([[0.2, 1.5, 3.0, 0.4], [2.0, 0.1, 0.3, 1.0]])).cells,
    "events": log_predictive_form(tb.Poisson(), tb.Gamma(np.array([[1.5, 2.0, 0.3, 1.0], [4.0, 1.0, 2.0, 0.5]]), 2.0)),
    "urn": log_predictive_form(
        tb.DirichletMultinomial(), tb.Dirichlet(np.array([[1.0, 2.0, 0.5, 1.0], [3.0, 1.0, 1, 4]]))
    ),
}
FEW = np.array([[1.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0], [0.0, 1.0, 1.0, 1.0], [1.0, 1.0, 0.0, 1.0]])


def one_row(row):
    return compressed(np.asarray(row, dtype=float)[None])


@pytest.mark.parametrize("name", SPARSE_FORMS)
def test_gaps_of_cells_add_up_to_that_of_the_row(name):
    form = SPARSE_FORMS[name]
    for row in (*FEW, *([] if name == "bernoulli" else [np.array([3.0, 0.0, 2.0, 1.0])])):
        score = form.score(one_row(row))[0]
        gaps = form.gap(one_row(row), 0, 1)
        assert gaps.sum() == pytest.approx(score[0] - score[1], abs=1e-12)
        np.testing.assert_allclose(form.gap(one_row(row), 1, 0), -gaps, atol=1e-14)


def test_gaps_are_those_of_every_column():
    rate, row = np.array([[0.2, 1.5, 3.0], [2.0, 0.1, 0.3]]), np.array([2.0, 0.0, 1.0])
    cells = tb.Poisson().log_prob(rate, row[None])[0]
    form = log_prob_form(tb.Poisson(), rate).cells
    np.testing.assert_allclose(form.gap(one_row(row), 0, 1), cells[0] - cells[1], atol=1e-14)
    holed = np.array([np.nan, 0.0, 1.0])
    wanted = np.where(np.isnan(holed), 0.0, cells[0] - cells[1])
    np.testing.assert_allclose(form.gap(one_row(holed), 0, 1), wanted, atol=1e-14)
    absent = one_row(row)._replace(missing_rows=np.array([True]))
    assert form.gap(absent, 0, 1).tolist() == [0.0, 0.0, 0.0]
    there = one_row(row)._replace(missing_rows=np.array([False]))
    np.testing.assert_allclose(form.gap(there, 0, 1), cells[0] - cells[1], atol=1e-14)
    # What a row as a whole has is shared out as its cells share its sum.
    urn = SPARSE_FORMS["urn"]
    gaps = urn.gap(one_row([3.0, 0.0, 1.0, 0.0]), 0, 1)
    terms = urn.term(np.array([3.0, 1.0]), np.array([0, 2]))
    whole = urn.row_term(np.array([4.0])).reshape(-1)
    expected = (terms[0] + whole[0] * np.array([0.75, 0.25])) - (terms[1] + whole[1] * np.array([0.75, 0.25]))
    np.testing.assert_allclose(gaps, [expected[0], 0.0, expected[1], 0.0], atol=1e-13)


def test_a_certain_cell_has_a_gap_without_an_end():
    form = log_prob_form(tb.Bernoulli(), np.array([[1.0, 0.5], [0.5, 0.5]])).cells
    assert form.gap(one_row([0.0, 1.0]), 0, 1).tolist() == [-np.inf, 0.0]
    np.testing.assert_allclose(form.gap(one_row([1.0, 1.0]), 0, 1), [np.log(2), 0.0])


def test_groups_of_several_axes_and_rows_that_are_absent():
    rate = np.array([[[0.2, 1.5], [3.0, 0.4]], [[2.0, 0.1], [0.3, 1.0]], [[1.0, 1.0], [5.0, 0.2]]])
    form, rows = log_prob_form(tb.Poisson(), rate).cells, np.array([[1.0, 0.0], [0.0, 0.0], [2.0, 3.0]])
    expected = tb.Poisson().log_prob(rate, rows).sum(axis=-1)
    found = form.score(compressed(rows))
    assert found.shape == (3, 3, 2)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    absent = compressed(rows)._replace(missing_rows=np.array([False, False, True]))
    np.testing.assert_allclose(form.score(absent), np.where(np.arange(3)[:, None, None] == 2, 0.0, expected))
    urn = log_predictive_form(tb.DirichletMultinomial(), tb.Dirichlet(rate))
    np.testing.assert_allclose(
        urn.score(compressed(rows)), tb.DirichletMultinomial().log_predictive(tb.Dirichlet(rate), rows), atol=1e-12
    )


@pytest.mark.parametrize("most", [1, 2, 5])
def test_few_cells_at_a_time_are_as_good_as_all(most, monkeypatch):
    rows = np.random.default_rng(0).poisson(0.7, (9, 4)).astype(float)
    rows[2, 1] = np.nan
    whole = {name: SPARSE_FORMS[name].score(compressed(rows)) for name in ("poisson", "events")}
    monkeypatch.setattr(forms, "_CELLS", most)
    for name, expected in whole.items():
        np.testing.assert_allclose(SPARSE_FORMS[name].score(compressed(rows)), expected, rtol=1e-12)


@pytest.mark.parametrize("most", [1, 3, 4, 100])
def test_stretches_are_as_long_as_they_may_be(most, monkeypatch):
    monkeypatch.setattr(forms, "_CELLS", most)
    indptr = np.array([0, 2, 2, 3, 9, 9, 10, 12])
    parts = list(forms.row_chunks(indptr))
    assert [k for part in parts for k in range(part.start, part.stop)] == list(range(7))
    for part in parts:
        entries, n = indptr[part.stop] - indptr[part.start], part.stop - part.start
        assert n == 1 or (entries <= most and n <= most)
        if part.stop < 7:  # one row more would be too much
            assert indptr[part.stop + 1] - indptr[part.start] > most or n == most
    assert list(forms.row_chunks(np.array([0]))) == []


@pytest.mark.parametrize(
    ("values", "n_different"),
    [
        ([1.0, 2.0, 1.0, 1.0, 0.0], 3),  # (0, 1), (1, 2) and (1, 1); a stored 0 is one, too
        ([1.5, 2.0, 1.5, 1.0, 1.0], None),
        ([-1.0, 2.0, -1.0, 1.0, 1.0], None),
        ([np.nan, 2.0, np.nan, 1.0, 1.0], None),
        ([2.0**20, 2.0, 2.0**20, 1.0, 1.0], None),
        ([2.0**20 - 1, 2.0, 2.0**20 - 1, 1.0, 1.0], 4),
        ([100.0, 2.0, 100.0, 1.0, 1.0], 4),
    ],
    ids=str,
)
def test_different_cells_are_found_where_they_are_counts(values, n_different):
    rows = SparseRows(np.array([0, 2, 4, 5]), np.array([0, 1, 0, 1, 2]), np.array(values), 3)
    value, column, which = forms._distinct_cells(rows)
    np.testing.assert_array_equal(value[which], values)
    np.testing.assert_array_equal(column[which], rows.indices)
    distinct = len({(c, v) for c, v in zip(rows.indices.tolist(), values, strict=True)})
    assert len(value) == (5 if n_different is None else distinct)
    empty = SparseRows(np.array([0, 0]), np.zeros(0, dtype=int), np.zeros(0), 3)
    assert [len(part) for part in forms._distinct_cells(empty)] == [0, 0, 0]


def test_a_missing_cell_takes_an_impossible_zero_away():
    form = log_prob_form(tb.Bernoulli(), np.array([[1.0, 0.5], [0.25, 0.5]])).cells
    found = form.score(one_row([np.nan, 1.0]))[0]
    np.testing.assert_allclose(found, np.log([0.5, 0.5]))
    unknown = log_prob_form(tb.Bernoulli(), np.array([[np.nan, 0.5], [0.25, 0.5]])).cells
    assert np.isnan(unknown.score(one_row([0.0, 1.0]))[0]).tolist() == [True, False]
    assert np.isnan(unknown.score(one_row([1.0, 1.0]))[0]).tolist() == [True, False]


def test_columns_without_levels_and_with_one():
    none = LogTableForm(np.zeros((2, 0)), Segments([0, 0]))
    assert none.evaluate(np.full((3, 2), -1)).tolist() == np.zeros((3, 2, 2)).tolist()
    one = LogTableForm(np.log([[0.5]]), Segments([1]))
    np.testing.assert_allclose(one.evaluate(np.array([[0], [-1]]))[:, 0, 0], [np.log(0.5), 0.0])


@pytest.mark.parametrize("predictive", [False, True])
@pytest.mark.parametrize("name", ["bernoulli", "gaussian", "tied"])
def test_a_silent_column_adds_nothing_at_all(name, predictive):
    case = CASES[name]
    form = form_of(case.family, learned(case, predictive), predictive)
    if hasattr(form, "without_columns"):
        np.testing.assert_array_equal(form.without_columns(np.array([1])).evaluate(case.rows)[..., 1], [[0.0] * 3] * 16)


@pytest.mark.parametrize("name", ["multivariate", "tied multivariate"])
def test_silent_columns_of_whole_rows_stand_apart_from_the_others(name):
    case = CASES[name]
    point = learned(case, False)
    form = form_of(case.family, point, False)
    silent = form.without_columns(np.array([1]))
    rows = case.rows.copy()
    rows[:, 1] = np.nan
    np.testing.assert_allclose(silent.evaluate(case.rows), case.family.log_prob(point, rows))
    expected = np.array(form.covariance)
    expected[:, 1, :] = expected[:, :, 1] = 0.0
    expected[:, 1, 1] = 1.0
    np.testing.assert_array_equal(silent.covariance, expected)
    assert silent.shared == form.shared == (name == "tied multivariate")
    assert not silent.mean[:, 1].any()


def test_only_sums_over_cells_score_sparse_rows():
    linear = log_prob_form(tb.Poisson(), np.array([[1.0]]))
    assert as_cells(linear) is linear.cells
    assert as_cells(SPARSE_FORMS["urn"]) is SPARSE_FORMS["urn"]
    assert (
        as_cells(log_prob_form(tb.Gaussian(), CASES["gaussian"].family.maximum_likelihood(tb.Moments.of(FEW)))) is None
    )
    assert as_cells(None) is None
