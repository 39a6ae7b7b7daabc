"""Forms: what a family says its log probability looks like is what it is, dense and sparse."""

from dataclasses import dataclass

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.special import gammaln

import tallybayes as tb
from tallybayes.families.block import Codes, Sparse
from tallybayes.families.form import Bell, Cells, LevelTable, Linear, RowBell, RowStudent, Student, form_of
from tallybayes.models.fitted.plan import Plan
from tests.unit.families.family_cases import CASES

# The form of every family's log probability, and of its predictive; None where only the family itself can say it.
KINDS = {
    "bernoulli": (Linear, Linear),
    "binomial": (LevelTable, LevelTable),
    "poisson": (Linear, Cells),
    "multinomial": (Linear, Linear),
    "dirichlet multinomial": (Linear, Cells),
    "gaussian": (Bell, Student),
    "tied": (Bell, Student),
    "spherical": (Bell, RowStudent),
    "tied spherical": (Bell, RowStudent),
    "multivariate": (RowBell, RowStudent),
    "tied multivariate": (RowBell, RowStudent),
}


def learned(case, predictive, weight=None):
    statistics = case.family.collect(case.rows, case.groups, 3, weight)
    if predictive:
        return case.family.prior(case.prior, statistics, "bayes").update(statistics)
    return case.family.maximum_likelihood(statistics)


def truth(family, parameters, rows, predictive):
    """The log probability of every row and group, by the family itself."""
    terms = (family.log_predictive if predictive else family.log_prob)(parameters, rows)
    return terms.sum(axis=-1) if family.columnwise else terms


def compressed(rows):
    matrix = csr_array(rows)
    return Sparse(matrix.indptr, matrix.indices, matrix.data, matrix.shape[1])


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
    if isinstance(form, Linear | Bell | Student):
        found = form.evaluate(case.rows).sum(axis=-1)
        if getattr(form, "base", None) == "multinomial":
            found = found + gammaln(case.rows.sum(axis=1) + 1)[:, None]
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    if isinstance(form, RowBell | RowStudent):
        np.testing.assert_array_equal(form.evaluate(case.rows), expected)
        known = np.arange(case.rows.shape[1])
        mean = form.mean if isinstance(form, RowBell) else form.location
        (y, log_det), (at, _) = (form.turned(rows, known) for rows in (case.rows, mean))
        at = np.broadcast_to(at, (3, 3, len(known)))[np.arange(3), np.arange(3)]
        squares, k = ((y - at) ** 2).sum(axis=-1), len(known)
        if isinstance(form, RowBell):
            found = -0.5 * (log_det + k * np.log(2 * np.pi) + squares)
        else:
            a = form.shape
            found = gammaln(a + k / 2) - gammaln(a) - k / 2 * np.log(np.pi) - log_det / 2
            found = found - (a + k / 2) * np.log1p(squares)
        np.testing.assert_allclose(found, expected, rtol=1e-10)
    cells = form.cells if isinstance(form, Linear) else form
    if isinstance(cells, Cells):
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
        parameters = family.prior(None, statistics, "bayes").update(statistics)
    rows = rows.copy()
    rows[0, 1] = np.nan
    moved = family.transform(rows if columns == "array" else list(rows.T))
    moved = np.asarray(moved) if columns == "array" else np.stack(moved, axis=-1)
    form, base = form_of(family, parameters, predictive), family.log_base(moved)
    found = form.evaluate(moved).sum(axis=-1) + (0.0 if base is None else base[:, None])
    np.testing.assert_allclose(found, truth(family, parameters, rows, predictive), rtol=1e-12)


def test_binomials_of_many_trials_are_not_looked_up():
    assert type(form_of(tb.Binomial(255), np.array([[0.5]]), False)) is LevelTable
    assert form_of(tb.Binomial(256), np.array([[0.5]]), False) is None


@pytest.mark.parametrize("name", TRANSFORMED)
def test_kernels_score_transformed_cells(name, monkeypatch):
    family, rows = TRANSFORMED[name]
    y = np.arange(12) % 2
    model = tb.NaiveBayes(family).fit(rows, y)
    expected = truth(family, model._scored[0].parameters, rows, True) + np.log(0.5)

    def refuse(*arguments):
        raise AssertionError("scored by NumPy")

    monkeypatch.setattr(Plan, "_add_terms", refuse)
    np.testing.assert_allclose(model.predict_joint_log_proba(rows), expected, rtol=1e-10)
    assert model.predict(rows).tolist() == expected.argmax(axis=1).tolist()


@pytest.mark.parametrize("name", ["bernoulli", "poisson", "gaussian"])
def test_missing_cells_and_silent_columns_add_nothing(name):
    case = CASES[name]
    form, rows = form_of(case.family, learned(case, False), False), case.rows.astype(float)
    rows[0, 1] = np.nan
    assert (form.evaluate(rows)[0, :, 1] == 0).all()
    silent = form.without(np.array([1])).evaluate(case.rows)
    np.testing.assert_array_equal(np.delete(silent, 1, axis=-1), np.delete(form.evaluate(case.rows), 1, axis=-1))


def test_certain_values_are_not_lost():
    form = tb.Bernoulli().form(np.array([[1.0, 0.0], [0.5, 0.5]]))
    found = form.evaluate(np.array([[1, 0], [0, 1]])).sum(axis=-1)
    np.testing.assert_allclose(found, [[0.0, 2 * np.log(0.5)], [-np.inf, 2 * np.log(0.5)]])
    np.testing.assert_allclose(form.cells.score(compressed(np.array([[1, 0], [0, 1]]))), found)


def test_labels_are_looked_up():
    family, codes = tb.Categorical(), np.array([[0, 1], [2, -1], [1, 0]])
    statistics = family.collect(Codes(codes, np.array([3, 2])), np.array([0, 1, 0]), 2, None)
    posterior = tb.Dirichlet(1.0).update(statistics)
    form = form_of(family, posterior, True)
    assert isinstance(form, LevelTable)
    expected = np.log([[2 / 5, 1 / 2], [1 / 5, 1.0], [2 / 5, 1 / 2]])
    np.testing.assert_allclose(form.evaluate(codes)[:, 0], expected)


def test_a_family_that_scores_otherwise_has_no_form_until_it_says_so():
    @dataclass(frozen=True, eq=False, repr=False)
    class Shifted(tb.Poisson):
        def log_prob(self, parameters, x):
            return super().log_prob(parameters, x) - 1.0

    assert form_of(Shifted(), np.array([[1.0]]), False) is None
    assert type(form_of(tb.Poisson(), np.array([[1.0]]), False)) is Linear
