"""Missing cells: skipped when counting, marginalized when predicting."""

import numpy as np
import pytest
from scipy import stats

import tallybayes as tb
from tallybayes.errors import DataError
from tests.unit.families.family_cases import CASES, WHOLE_ROWS

CELLWISE = [name for name in CASES if name not in WHOLE_ROWS]
HOLES = np.zeros((16, 3), dtype=bool)
HOLES[[0, 3, 5, 9], [0, 1, 1, 2]] = True
HOLES[7] = True


def with_holes(rows):
    return np.where(HOLES, np.nan, rows)


@pytest.mark.parametrize("name", CELLWISE)
def test_statistics_skip_missing_cells(name):
    case = CASES[name]
    together = tb.fit_distribution(with_holes(case.rows), case.family)
    for j in range(3):
        alone = tb.fit_distribution(case.rows[~HOLES[:, j], j], case.family)
        for estimate in ("mle", "unbiased"):
            both, one = together.estimate(estimate), alone.estimate(estimate)
            if isinstance(both, tuple):
                np.testing.assert_allclose([part[j] for part in both], one, rtol=1e-12)
            else:
                assert both[j] == pytest.approx(one, rel=1e-14)
        prior = case.prior.column(j)
        assert together.log_evidence(case.prior)[j] == pytest.approx(alone.log_evidence(prior), rel=1e-12)
        assert together.log_likelihood(together.estimate("mle"))[j] == pytest.approx(
            alone.log_likelihood(alone.estimate("mle")), rel=1e-12
        )


@pytest.mark.parametrize("name", ["spherical", "tied spherical"])
def test_shared_variance_pools_the_cells_there_are(name):
    case = CASES[name]
    rows = with_holes(case.rows)
    found = tb.fit_distribution(rows, case.family).estimate("mle")
    means = np.nanmean(rows, axis=0)
    np.testing.assert_allclose(found.mean, means, rtol=1e-13)
    np.testing.assert_allclose(found.variance, np.nansum((rows - means) ** 2) / (~HOLES).sum(), rtol=1e-13)


@pytest.mark.parametrize("name", CELLWISE)
def test_a_missing_cell_adds_nothing(name):
    case = CASES[name]
    predictive = tb.fit_distribution(case.rows, case.family, group=case.groups).predictive(case.prior)
    whole, part = predictive.log_prob(case.rows), predictive.log_prob(with_holes(case.rows))
    shown = np.broadcast_to(HOLES[:, None, :], part.shape)
    assert (part[shown] == 0).all()
    np.testing.assert_array_equal(part[~shown], whole[~shown])


@pytest.mark.parametrize("name", ["multivariate", "tied multivariate", "spherical", "tied spherical"])
def test_a_row_with_missing_cells_is_scored_by_its_marginal(name):
    case = CASES[name]
    learned = tb.fit_distribution(case.rows, case.family, group=case.groups)
    posterior = case.family.resolve_prior(case.prior, learned.statistics, "bayes").update(learned.statistics)
    scored = learned.predictive(case.prior).log_prob(with_holes(case.rows))
    parameters = learned.estimate("mle")
    plain = case.family.log_prob(parameters, with_holes(case.rows))
    for i, g in np.ndindex(16, 3):
        known = np.flatnonzero(~HOLES[i])
        if len(known) == 0:
            assert scored[i, g] == plain[i, g] == 0
            continue
        row = case.rows[i, known]
        if "multivariate" in name:
            freedom = np.broadcast_to(posterior.degrees_of_freedom, 3)[g] - 2
            scale = np.broadcast_to(posterior.scale, (3, 3, 3))[g] * (1 + 1 / posterior.strength[g]) / freedom
            covariance = parameters.covariance[g]
        else:
            shape = np.broadcast_to(posterior.shape, (3, 3))[g, 0]
            freedom, strength = 2 * shape, posterior.strength[g]
            scale = np.diag(np.broadcast_to(posterior.scale, (3, 3))[g] / shape * (1 + 1 / strength))
            covariance = np.diag(parameters.variance[g])
        part = np.ix_(known, known)
        expected = stats.multivariate_t.logpdf(row, posterior.location[g, known], scale[part], df=freedom)
        assert scored[i, g] == pytest.approx(expected, rel=1e-10)
        expected = stats.multivariate_normal.logpdf(row, parameters.mean[g, known], covariance[part])
        assert plain[i, g] == pytest.approx(expected, rel=1e-10)


def test_missing_labels_are_skipped():
    rows = [["a", None], [None, "x"], ["b", "x"], ["a", None]]
    letters = tb.fit_distribution(rows, tb.Categorical())
    assert letters.estimate("mle") == [{"a": 2 / 3, "b": 1 / 3}, {"x": 1.0}]
    scored = letters.predictive().log_prob([["a", None], [None, None]])
    np.testing.assert_allclose(scored, [[np.log(3 / 5), 0], [0, 0]])


def test_a_column_of_nothing_but_missing_labels():
    letters = tb.fit_distribution([["a", None], ["b", None]], tb.Categorical())
    assert letters.estimate("bayes") == [{"a": 0.5, "b": 0.5}, {}]
    np.testing.assert_allclose(letters.log_evidence(), [np.log(1 / 6), 0])
    np.testing.assert_allclose(letters.predictive().log_prob([["a", None]]), [[np.log(0.5), 0]])
    with pytest.raises(DataError, match="column 1 is undefined: nothing was counted"):
        letters.estimate("mle")


@pytest.mark.parametrize("name", CELLWISE)
def test_all_missing_is_no_data(name):
    case = CASES[name]
    empty = tb.fit_distribution(np.full((4, 3), np.nan), case.family)
    np.testing.assert_array_equal(empty.log_evidence(case.prior), np.zeros(3))
    posterior, prior = empty.posterior(case.prior), case.prior
    for ours, theirs in zip(np.ravel(posterior.mean()), np.ravel(prior.mean()), strict=True):
        assert ours == pytest.approx(theirs)
    with pytest.raises(DataError, match="nothing was counted"):
        empty.estimate("mle")


@pytest.mark.parametrize("family", [tb.MultivariateGaussian(), tb.TiedMultivariateGaussian(), tb.Multinomial()])
def test_where_missing_is_not_allowed(family):
    with pytest.raises(DataError, match=r"found nan in row 1, column 0; expected .*missing cells"):
        tb.fit_distribution([[1.0, 2.0], [np.nan, 3.0]], family)


def test_a_multinomial_row_cannot_be_predicted_around_a_hole():
    urn = tb.fit_distribution([[2, 1], [1, 0]], tb.Multinomial())
    with pytest.raises(DataError, match=r"found nan in row 0, column 1"):
        urn.predictive().log_prob([[2, np.nan]])
