"""Estimates side by side are those that `estimate` and `posterior` give one by one."""

import numpy as np
import pytest

import tallybayes as tb
from tallybayes.errors import EstimateError

COIN = tb.fit_distribution([1] * 55 + [0] * 45, tb.Bernoulli())
ONE_PARAMETER = {
    "Bernoulli": (tb.fit_distribution([1, 1, 0], tb.Bernoulli()), tb.Beta(2, 2), "probability"),
    "Binomial": (tb.fit_distribution([3, 4], tb.Binomial(5)), tb.Beta(2, 3), "probability"),
    "Poisson": (tb.fit_distribution([3, 4, 8], tb.Poisson()), tb.Gamma(2, 1), "rate"),
}


@pytest.mark.parametrize("mass", [0.5, 0.95])
@pytest.mark.parametrize("name", ONE_PARAMETER)
def test_one_parameter(name, mass):
    learned, prior, parameter = ONE_PARAMETER[name]
    (row,) = learned.estimates(prior, mass=mass).rows
    interval = learned.posterior(prior).interval(mass)
    assert row.parameter == parameter
    assert row.mle == learned.estimate("mle")
    assert row.map == pytest.approx(learned.estimate("map", prior=prior))
    assert row.mean == pytest.approx(learned.estimate("bayes", prior=prior))
    assert (row.low, row.high) == pytest.approx(tuple(interval))


def test_levels_of_several_columns():
    learned = tb.fit_distribution({"sky": ["sun", "rain", "sun"], "wind": ["no", "no", None]}, tb.Categorical())
    frame = learned.estimates(tb.Dirichlet(2)).to_frame()
    assert frame.columns.tolist() == ["column", "parameter", "mle", "map", "mean", "low", "high"]
    assert frame[["column", "parameter"]].to_numpy().tolist() == [["sky", "sun"], ["sky", "rain"], ["wind", "no"]]
    np.testing.assert_allclose(frame["mle"], [2 / 3, 1 / 3, 1.0])
    np.testing.assert_allclose(frame["map"], [3 / 5, 2 / 5, 1.0])
    np.testing.assert_allclose(frame["mean"], [4 / 7, 3 / 7, 1.0])


@pytest.mark.parametrize("family", [tb.Gaussian(), tb.LogNormal(), tb.TiedGaussian()], ids=repr)
def test_mean_and_variance_by_group(family):
    values, group = [3.0, 4.0, 5.0, 9.0, 12.0], ["a", "a", "a", "b", "b"]
    learned, prior = tb.fit_distribution(values, family, group=group), tb.NormalInverseGamma(5.0, 1.0, 3.0, 4.0)
    prior = prior.tied(("groups",)) if family == tb.TiedGaussian() else prior
    rows = learned.estimates(prior).rows
    assert [(row.group, row.parameter) for row in rows] == [(g, p) for g in "ab" for p in ("mean", "variance")]
    for field, estimate in (("mle", "mle"), ("map", "map"), ("mean", "bayes")):
        known = learned.estimate(estimate, prior=prior)
        for row in rows:
            wanted = np.broadcast_to(getattr(known, row.parameter), (2,))["ab".index(row.group)]
            assert getattr(row, field) == pytest.approx(wanted)
    assert all(row.low < row.mean < row.high for row in rows)


def test_text_and_html():
    table = tb.fit_distribution([1, 0, 1, 1], tb.Bernoulli(), group=["x", "x", "y", "y"]).estimates(
        tb.Beta(2, 2), mass=0.9
    )
    assert repr(table).splitlines()[:2] == [
        "Estimates under the prior Beta(2, 2)",
        "  group  parameter    ML   MAP   posterior mean  90 % credible interval",
    ]
    assert "90 % credible interval" in table._repr_html_()
    many = tb.fit_distribution([f"{number:03}" for number in range(99)], tb.Categorical()).estimates()
    assert len(repr(many).splitlines()) == 43
    assert repr(many).endswith("… 59 more")


def test_what_does_not_exist_is_nan():
    (nothing,) = tb.fit_distribution([], tb.Bernoulli()).estimates().rows
    assert np.isnan(nothing.mle)
    assert nothing.mean == 0.5
    (flat,) = tb.fit_distribution([], tb.Bernoulli()).estimates(tb.Beta(0.5, 0.5)).rows
    assert np.isnan(flat.map)


MATRIX = tb.fit_distribution([[1.0, 2.0], [3.0, 5.0], [4.0, 4.0]], tb.MultivariateGaussian())
MISSING = tb.fit_distribution([1, None], tb.WithMissing(tb.Bernoulli()))


@pytest.mark.parametrize("learned", [MATRIX, MISSING], ids=["matrix", "missing"])
def test_other_distributions_raise(learned):
    with pytest.raises(EstimateError, match="Use "):
        learned.estimates()
