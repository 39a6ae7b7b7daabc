"""prior=α: a number is added to every level's count under bayes; under map it is ambiguous, and an error."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.naive_bayes import BernoulliNB, CategoricalNB, MultinomialNB

import tallybayes as tb
from tallybayes.errors import PriorError

RNG = np.random.default_rng(0)
Y = RNG.integers(0, 3, 90)
CODES = (RNG.integers(0, 4, (90, 3)) + Y[:, None]) % 4
WORDS = RNG.poisson(0.5 + Y[:, None] % 2, (90, 5))
ALPHAS = [1, 0.3, np.float32(2.5), np.int64(4)]


@pytest.mark.parametrize("estimate", ["bayes", "map"])
@pytest.mark.parametrize("alpha", ALPHAS, ids=repr)
def test_it_is_the_alpha_of_scikit_learn(alpha, estimate):
    settings = {"estimate": estimate, "class_prior": "frequency"}
    cases = [
        (tb.Categorical(), CategoricalNB, CODES),
        (tb.Bernoulli(), BernoulliNB, CODES > 1),
        (tb.Multinomial(), MultinomialNB, WORDS),
    ]
    for family, peer, rows in cases:
        one_more = tb.Beta(alpha + 1, alpha + 1) if family == tb.Bernoulli() else tb.Dirichlet(alpha + 1)
        model = tb.NaiveBayes(family, prior=alpha if estimate == "bayes" else one_more, **settings)
        found = model.fit(rows, Y).predict_joint_log_proba(rows)
        expected = peer(alpha=float(alpha)).fit(rows, Y).predict_joint_log_proba(rows)
        if family != tb.Multinomial():
            np.testing.assert_allclose(found, expected, rtol=1e-11)
        else:  # scikit-learn leaves the coefficients of the rows out
            np.testing.assert_allclose(found - found[:, :1], expected - expected[:, :1], rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(
    ("family", "belief"),
    [
        (tb.Bernoulli(), tb.Beta(0.5, 0.5)),
        (tb.Categorical(), tb.Dirichlet(0.5)),
        (tb.Binned((0, 1, 2, 5)), tb.Dirichlet(0.5)),
        (tb.Multinomial(), tb.Dirichlet(0.5)),
        (tb.DirichletMultinomial(), tb.Dirichlet(0.5)),
    ],
    ids=repr,
)
def test_the_prior_it_stands_for(family, belief):
    rows = CODES > 1 if family == tb.Bernoulli() else CODES
    model = tb.NaiveBayes(family, prior=0.5).fit(rows, Y)
    assert list(model.prior_.values()) == [belief]
    np.testing.assert_array_equal(
        model.predict_proba(rows), tb.NaiveBayes(family, prior=belief).fit(rows, Y).predict_proba(rows)
    )
    likely = tb.NaiveBayes(family, estimate="mle")
    if family != tb.DirichletMultinomial():
        with_prior = clone(likely).set_params(prior=0.5).fit(rows, Y)
        np.testing.assert_array_equal(with_prior.predict_proba(rows), likely.fit(rows, Y).predict_proba(rows))


def test_other_families_take_their_default():
    rows = {"color": list("rgbrgb"), "size": [1.0, 2.0, 3.0, 4.0, 5.0, 7.0], "calls": [0, 1, 4, 2, 0, 9]}
    columns = {"color": tb.Categorical(), "size": tb.Gaussian(), "calls": tb.Poisson()}
    y = list("aabbab")
    model = tb.NaiveBayes(columns, prior=0.25).fit(rows, y)
    plain = tb.NaiveBayes(columns).fit(rows, y)
    assert model.prior_["color"] == tb.Dirichlet(0.25)
    assert [model.prior_[name] for name in ("size", "calls")] == [plain.prior_[name] for name in ("size", "calls")]
    listed = tb.NaiveBayes(columns, prior=[tb.Gamma(3.0, 1.0), 0.25]).fit(rows, y)
    assert (listed.prior_["color"], listed.prior_["calls"]) == (tb.Dirichlet(0.25), tb.Gamma(3.0, 1.0))
    named = tb.NaiveBayes(columns, prior={"color": 0.25}).fit(rows, y)
    np.testing.assert_array_equal(named.predict_proba(rows), model.predict_proba(rows))
    with pytest.raises(PriorError, match=r"prior is 1, a pseudo-count, but Gaussian\(\) has no levels"):
        tb.NaiveBayes(columns, prior={"size": 1}).fit(rows, y)


@pytest.mark.parametrize("prior", [0, -1.0, np.inf, np.nan, True, np.bool_(True)], ids=repr)
def test_what_is_no_number_of_counts_is_refused(prior):
    for model in (tb.NaiveBayes(tb.Categorical(), prior=prior), tb.Mixture(2, tb.Categorical(), prior=prior)):
        with pytest.raises(PriorError, match="expected a positive, finite number \\(pseudo-counts per level\\)"):
            model.fit(CODES, Y)
    with pytest.raises(PriorError, match="expected a positive, finite number \\(pseudo-counts per level\\)"):
        tb.NaiveBayes(tb.Categorical(), prior={0: prior}).fit(CODES[:, :1], Y)
    with pytest.raises(PriorError, match="expected a positive, finite number \\(pseudo-counts per level\\)"):
        tb.fit_distribution([1, 0], tb.Bernoulli()).posterior(prior)


def test_where_no_column_can_use_it_it_is_refused():
    rows = RNG.normal(size=(90, 2))
    for model in (tb.NaiveBayes(prior=1), tb.GaussianDiscriminant(prior=1), tb.Mixture(2, prior=1)):
        with pytest.raises(PriorError, match=r"(?s)has no levels.*Bernoulli \(0 and 1, if columns= says so\)"):
            model.fit(rows, Y)
    with pytest.raises(PriorError, match="has no levels"):
        tb.fit_distribution([1.0, 2.0], tb.Gaussian()).posterior(1)
    model = tb.NaiveBayes().fit(rows, Y)
    with pytest.raises(PriorError, match="has no levels"):
        model.set_params(prior=1)
    assert model.prior is None


AMBIGUOUS = r"prior is 2, ambiguous under estimate='map'; expected tb.Dirichlet\(3\), which adds 2 .* or "
AMBIGUOUS += r"tb.Dirichlet\(2\), which adds 1"
STEPS, STATES = [list("abcab"), list("bca")], [list("xyxyx"), list("yyx")]
FITTED = {
    "NaiveBayes": lambda **settings: tb.NaiveBayes(tb.Categorical(), **settings).fit(CODES, Y),
    "NaiveBayes of words": lambda **settings: tb.NaiveBayes(tb.Multinomial(), **settings).fit(WORDS, Y),
    "Mixture": lambda **settings: tb.Mixture(2, tb.Categorical(), random_state=0, **settings).fit(CODES),
    "HiddenMarkovModel": lambda **settings: tb.HiddenMarkovModel(**settings).fit(STEPS, STATES),
    "HiddenMarkovModel by EM": lambda **settings: tb.HiddenMarkovModel(2, random_state=0, **settings).fit(STEPS),
    "BayesianNetwork": lambda **settings: tb.BayesianNetwork({"b": ["a"]}, **settings).fit(
        {"a": list("xyx"), "b": list("uvv")}
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FITTED)
def test_a_number_under_map_raises(name):
    make = FITTED[name]
    with pytest.raises(PriorError, match=AMBIGUOUS):
        make(prior=2, estimate="map")
    model = make(prior=2)
    with pytest.raises(PriorError, match=AMBIGUOUS):
        model.reestimate(estimate="map")
    with pytest.raises(PriorError, match=AMBIGUOUS):
        model.set_params(estimate="map")
    assert model.estimate == "bayes"
    assert make(prior=2, estimate="mle").estimate == "mle"
    assert make(prior=tb.Dirichlet(3), estimate="map").estimate == "map"
    by_name = {
        "HiddenMarkovModel": {"transition": 2},
        "BayesianNetwork": {"a": 2},
        "NaiveBayes": dict.fromkeys(range(3), 2),
    }
    if name in by_name:
        with pytest.raises(PriorError, match=AMBIGUOUS):
            make(prior=by_name[name], estimate="map")


def test_both_spellings_add_what_the_error_says():
    coin = tb.fit_distribution([True, True, False], tb.Bernoulli())
    with pytest.raises(PriorError, match=r"tb.Beta\(3, 3\) or tb.Beta\(2, 2\)"):
        coin.estimate("map", prior=2)
    assert coin.estimate("map", prior=tb.Beta(3, 3)) == pytest.approx((2 + 2) / (3 + 4))
    assert coin.estimate("map", prior=tb.Beta(2, 2)) == pytest.approx((2 + 1) / (3 + 2))


def test_everywhere(tmp_path):
    tokens = sparse.csr_array(WORDS)
    mixture = tb.Mixture(2, tb.Multinomial(), prior=0.5, random_state=0).fit(tokens)
    same = tb.Mixture(2, tb.Multinomial(), prior=tb.Dirichlet(0.5), random_state=0).fit(tokens)
    assert mixture.history_ == same.history_
    np.testing.assert_array_equal(mixture.predict_proba(tokens), same.predict_proba(tokens))
    steps, states = [list("abcab"), list("bca")], [list("xyxyx"), list("yyx")]
    chain = tb.HiddenMarkovModel(prior=0.5).fit(steps, states)
    assert set(map(type, chain.prior_.values())) == {tb.Dirichlet}
    assert all(belief == tb.Dirichlet(0.5) for belief in chain.prior_.values())
    measured = tb.HiddenMarkovModel(prior=2).fit([[[1.0], [2.0]], [[4.0], [5.0]]], [list("xy"), list("yx")])
    assert measured.prior_["start"] == tb.Dirichlet(2.0)
    network = tb.BayesianNetwork({"b": ["a"]}, prior=0.5).fit({"a": [0, 1, 1], "b": [0, 1, 0]})
    assert network.prior_ == {"a": tb.Dirichlet(0.5), "b": tb.Dirichlet(0.5)}
    assert tb.fit_distribution([1, 1, 0], tb.Bernoulli()).estimate(prior=0.5) == pytest.approx(2.5 / 4)
    with pytest.raises(PriorError, match="ambiguous"):
        tb.fit_distribution([1, 1, 0], tb.Bernoulli()).estimate("map", prior=0.5)
    for model in (mixture, chain, measured, network):
        model.save(tmp_path / "it.tally")
        again = tb.load(tmp_path / "it.tally")
        assert again.prior == model.prior
        assert again.prior_ == model.prior_
