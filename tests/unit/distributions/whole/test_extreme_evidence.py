"""Evidences of huge counts, tiny scales and far-away data, against mpmath 1.4.1 with 60 digits (log Γ, log det)."""

import numpy as np
import pytest

import tallybayes as tb
from tallybayes.statistics.double_double import DoubleDouble


def moments(weight, mean, scatter):
    one = [DoubleDouble.of(np.array([float(value)])) for value in (weight, 0.0, scatter)]
    return tb.Moments(np.array([float(mean)]), *one)


SHARES = [
    ([1, 1], [1e15, 2], -102.92318200417212),
    ([1e15, 2], [1e15, 2], -70.058382042833099),
    ([0.5, 0.5, 0.5], [3e9, 2e9, 1], -3365058380.7514105),
    ([1e12, 3e12], [1, 1], -1.6739764335719215),
    ([1e-200, 1], [1e10, 3], -550.82866284994291),
]


@pytest.mark.parametrize(("prior", "counts", "expected"), SHARES)
def test_dirichlet(prior, counts, expected):
    assert tb.Dirichlet(prior).log_evidence(tb.Counts(counts)) == pytest.approx(expected, rel=1e-13)


@pytest.mark.parametrize(("prior", "counts", "expected"), [case for case in SHARES if len(case[0]) == 2])
def test_beta(prior, counts, expected):
    totals = tb.Totals([sum(counts)], [counts[0]], failures=[counts[1]])
    assert tb.Beta(*prior).log_evidence(totals)[0] == pytest.approx(expected, rel=1e-13)


def test_several_columns_and_one_without_levels():
    two = tb.Dirichlet(1.0).log_evidence(tb.Counts([1e15, 2, 1e15, 2], [2, 0, 2]))
    np.testing.assert_allclose(two, [-102.92318200417212, 0.0, -102.92318200417212], rtol=1e-13)


@pytest.mark.parametrize(
    ("prior", "rows", "expected"),
    [
        ((0, 1, 1, 1e-300), (2, 1.5e9, 5e17), -776.05577445674275),
        ((0.5, 1, 2, 3), (1e15, 0.25, 1e14), -267645986707706.68),
        ((0, 1e12, 1e12, 2e12), (3, 0.5, 1), -4.2340363704550592),
    ],
)
def test_normal_inverse_gamma(prior, rows, expected):
    found = tb.NormalInverseGamma(*prior).log_evidence(moments(*rows))
    assert found[0] == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize(
    ("prior", "rows", "expected"),
    [((2, 3), (1e15, 1e15), -1000000000000017.2), ((1e14, 1e14), (2, 3), -2.00000000000001)],
)
def test_gamma(prior, rows, expected):
    weight, total = rows
    assert tb.Gamma(*prior).log_evidence(tb.Totals([weight], [total]))[0] == pytest.approx(expected, rel=1e-15)


def test_normal_inverse_wishart_far_from_its_location():
    rows = np.array([[1e9, 1e9], [1e9 + 1, 1e9 + 2], [1e9 + 3, 1e9 - 1]])
    prior = tb.NormalInverseWishart([0, 0], 1, 4, np.eye(2))
    assert prior.log_evidence(tb.Moments.of(rows, full=True)) == pytest.approx(-156.56561513684204, rel=1e-12)


class TestPredictive:
    @pytest.mark.parametrize(
        ("shape", "rate", "x", "expected"),
        [(2.0, 0.5, 1e14, -40546510810786.399), (2.0, 1e-12, 1e12, -28.631021115929048)],
    )
    def test_poisson(self, shape, rate, x, expected):
        found = tb.Poisson().log_predictive(tb.Gamma([shape], [rate]), np.array([[x]]))
        assert found[0, 0] == pytest.approx(expected, rel=1e-13)

    def test_binomial_and_dirichlet_multinomial(self):
        binomial = tb.Binomial(4 * 10**12).log_predictive(tb.Beta([2.0], [0.5]), np.array([[1e12]]))
        urn = tb.DirichletMultinomial().log_predictive(tb.Dirichlet([2.0, 0.5]), np.array([[1e12, 3e12]]))
        assert binomial[0, 0] == pytest.approx(-30.54745087439373, rel=1e-13)
        assert urn[0] == pytest.approx(-30.54745087439373, rel=1e-13)


class TestFarFromThePriorMean:
    """Three rows a thousand million units from a prior N(0, Σ) with Ψ = 1: Ψ + S + κ·gap·gapᵀ is flat in float64."""

    ROWS = np.array([[1e9, 1e9], [1e9 + 1, 1e9 + 2], [1e9 + 3, 1e9 - 1]])
    PRIOR = tb.NormalInverseWishart([0, 0], 1, 4, np.eye(2))

    @pytest.mark.parametrize(
        ("row", "expected"), [([1e9, 1e9 + 1], -23.180535422654237), ([1e9 + 5, 1e9 - 5], -28.764993052868502)]
    )
    def test_predictive(self, row, expected):
        posterior = self.PRIOR.update(tb.Moments.of(self.ROWS, full=True))
        found = tb.MultivariateGaussian().log_predictive(posterior, np.array([row]))
        assert found[0] == pytest.approx(expected, rel=1e-7)

    def test_one_row_after_another(self):
        whole = self.PRIOR.update(tb.Moments.of(self.ROWS, full=True))
        parts = self.PRIOR
        evidence = 0.0
        for row in self.ROWS:
            moments = tb.Moments.of(row[None], full=True)
            evidence += parts.log_evidence(moments)
            parts = parts.update(moments)
        assert evidence == pytest.approx(-156.56561513684204, rel=1e-8)
        np.testing.assert_allclose(parts.root, whole.root, rtol=1e-6)

    def test_marginals_and_samples(self):
        posterior = self.PRIOR.update(tb.Moments.of(self.ROWS, full=True))
        one = tb.MultivariateGaussian().log_predictive(posterior, np.array([[1e9, np.nan]]))
        assert one[0] == pytest.approx(
            float(np.squeeze(tb.Gaussian().log_predictive(posterior.column(0), np.array([[1e9]])))), rel=1e-9
        )
        assert np.isfinite(posterior.sample(random_state=3).covariance).all()
        assert posterior.scaled(2.0).log_evidence(tb.Moments.of(self.ROWS, full=True)) > -100

    @pytest.mark.parametrize("covariance", ["full", "tied"])
    def test_a_class_far_away(self, covariance):
        rng = np.random.default_rng(0)
        rows, labels = rng.normal(size=(40, 2)), np.repeat([0, 1], 20)
        rows[20:] += 1e9
        model = tb.GaussianDiscriminant(covariance, prior=self.PRIOR).fit(rows, labels)
        assert (model.predict(rows) == labels).all()
        assert np.isfinite(model.log_evidence())
