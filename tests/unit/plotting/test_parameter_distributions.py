"""Pictures of beliefs and of what was learned: what is drawn is what they say."""

import matplotlib as mpl
import numpy as np
import pytest
from scipy import stats

import tallybayes as tb
from tallybayes.errors import DataError
from tests.unit.plotting.readable import assert_readable, legend_of

mpl.use("Agg")
import matplotlib.pyplot as plt


@pytest.fixture(autouse=True)
def _no_figures_left():
    yield
    plt.close("all")


BAGS = {"none": 0.0, "¼": 0.25, "½": 0.5, "all, and a long name at that, longer than fits beside a picture": 1.0}
COIN = [1, 1, 0, 1, 1, 1]
rng = np.random.default_rng(0)


def beliefs():
    yield tb.Beta(3, 2)
    yield tb.Beta(0.5, 0.5)  # no end to its density
    yield tb.Beta([0.5, 2, 8], [0.5, 3, 4])
    yield tb.Beta(np.arange(1, 31), 3)
    yield tb.Gamma(3, 2)
    yield tb.Gamma(0.3, 2)
    yield tb.NormalInverseGamma(0, 1, 2, 3)
    yield tb.NormalInverseGamma(0, 1, 0.4, 3)  # no mean of the variance
    yield tb.NormalInverseWishart([0, 0], 1, 4, np.eye(2))
    yield tb.Dirichlet([1, 2, 3.0])
    yield tb.Dirichlet(np.ones(300))
    yield tb.Hypotheses(BAGS)
    yield tb.Hypotheses.grid(np.linspace(0, 1, 101), prior=lambda p: p * (1 - p))


@pytest.mark.slow_after(5)
@pytest.mark.parametrize("belief", list(beliefs()), ids=lambda belief: type(belief).__name__)
def test_beliefs_can_be_read(belief):
    picture = belief.plot()
    assert_readable(picture)
    assert len(picture.to_frame())


def test_a_density_is_that_of_the_belief():
    belief = tb.Beta(3, 2)
    frame = belief.plot().to_frame()
    np.testing.assert_allclose(frame["density"], np.exp(belief.log_prob(frame["value"].to_numpy())), rtol=1e-12)
    both = tb.NormalInverseGamma(1, 2, 3, 4).plot().to_frame()
    drawn = both[both["parameter"] == "mean"]
    expected = stats.t(6, loc=1, scale=np.sqrt(4 / 6)).pdf(drawn["value"])
    np.testing.assert_allclose(drawn["density"], expected, rtol=1e-12)


def learnt():
    yield tb.fit_distribution(COIN, tb.Bernoulli()), None
    yield tb.fit_distribution([1, 1, 1], tb.Bernoulli()), tb.Beta(0.5, 0.5)
    yield tb.fit_distribution([2, 3, 1, 0, 5], tb.Poisson()), None
    yield tb.fit_distribution([2.0, 3, 1, 0, 5], tb.Gaussian()), None
    yield tb.fit_distribution([2.0, 2.0], tb.Gaussian()), tb.NormalInverseGamma(0, 1, 2, 3)  # no spread, no likelihood
    yield tb.fit_distribution([2.0, 2.5], tb.LogNormal()), None
    yield tb.fit_distribution(list("aababcca"), tb.Categorical()), None
    yield tb.fit_distribution([f"a level that goes on and on, number {k}" for k in range(120)], tb.Categorical()), None
    yield tb.fit_distribution([2.0, 3, 1, 0, 5, 9], tb.Gaussian(), group=list("aabbcc")), None
    yield tb.fit_distribution(rng.normal(size=(60, 1)), tb.Gaussian(), group=np.arange(60) // 2), None
    yield tb.fit_distribution(rng.normal(size=(30, 3)), tb.MultivariateGaussian()), None
    yield tb.fit_distribution(rng.poisson(2, size=(30, 5)), tb.Multinomial()), None
    yield tb.fit_distribution(list("aababcca"), tb.Categorical(), group=[0, 0, 0, 0, 1, 1, 1, 1]), None
    yield tb.fit_distribution([], tb.Bernoulli()), None
    yield tb.fit_distribution(COIN, tb.Bernoulli()), tb.Hypotheses(BAGS)
    yield tb.fit_distribution(COIN, tb.Bernoulli()), tb.Hypotheses.grid(np.linspace(0, 1, 101))


@pytest.mark.slow_after(5)
@pytest.mark.parametrize(("learned", "prior"), list(learnt()), ids=str)
def test_what_was_learned_can_be_read(learned, prior):
    picture = learned.plot(prior)
    assert_readable(picture)
    assert len(picture.to_frame())


def test_prior_likelihood_posterior_and_estimates():
    learned = tb.fit_distribution(COIN, tb.Bernoulli())
    picture = learned.plot(tb.Beta(2, 2))
    assert legend_of(picture) == [
        "prior",
        "likelihood, scaled",
        "posterior",
        "maximum likelihood 0.8333",
        "posterior mode 0.75",
        "posterior mean 0.7",
    ]
    frame = picture.to_frame()
    curve = {name: part.set_index("value")["density"] for name, part in frame.groupby("curve")}
    at = curve["posterior"].index.to_numpy()
    np.testing.assert_allclose(curve["posterior"], stats.beta(7, 3).pdf(at), rtol=1e-10)
    np.testing.assert_allclose(curve["likelihood"], stats.beta(6, 2).pdf(at), atol=1e-3)  # θ⁵(1 − θ), of area 1
    assert curve["posterior"].idxmax() == pytest.approx(0.75, abs=0.003)


def test_the_mode_is_marked_where_the_posterior_is_highest():
    picture = tb.fit_distribution([2, 3, 1, 0, 5], tb.Poisson()).plot()
    posterior = picture.to_frame().query("curve == 'posterior'")
    (mode,) = [float(text.split()[-1]) for text in legend_of(picture) if text.startswith("posterior mode")]
    assert posterior.loc[posterior["density"].idxmax(), "value"] == pytest.approx(mode, abs=0.01)


def test_hypotheses_before_and_after():
    coin, bags = tb.fit_distribution(COIN, tb.Bernoulli()), tb.Hypotheses(BAGS, prior=[0.1, 0.3, 0.5, 0.1])
    after = coin.posterior(bags)
    frame = after.plot().to_frame()
    np.testing.assert_allclose(frame["prior"], [0.1, 0.3, 0.5, 0.1])
    np.testing.assert_allclose(frame["posterior"], list(after.probabilities.values()))
    with_data = coin.plot(bags).to_frame()
    likely = np.array([theta**5 * (1 - theta) for theta in BAGS.values()])
    np.testing.assert_allclose(with_data["likelihood"], likely / likely.sum(), atol=1e-12)
    assert list(bags.plot().to_frame()) == ["hypothesis", "probability"]
    grouped = tb.fit_distribution(COIN, tb.Bernoulli(), group=[0, 0, 0, 1, 1, 1]).posterior(bags)
    with pytest.raises(DataError, match="several groups"):
        grouped.plot()
