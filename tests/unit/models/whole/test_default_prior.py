"""By default, labels and words in groups have the prior that the groups suggest: a function of the tally alone."""

import numpy as np
import pytest
from scipy import sparse

import tallybayes as tb
from tallybayes.families._shared import empirical_prior
from tallybayes.families.prior_rules import pseudo_count_prior

RNG = np.random.default_rng(3)
Y = RNG.integers(0, 3, 120)
CODES = (RNG.integers(0, 3, (120, 4)) + Y[:, None] * (np.arange(4) % 2)) % 5
NAMES = np.array(["kiwi", "fig", "date", "apple", "lime"])[CODES]
WORDS = RNG.poisson(0.4 + 0.8 * (np.arange(30) % 3 == Y[:, None]))
CASES = {
    "labels": (tb.Categorical(), NAMES),
    "yes or no": (tb.Bernoulli(), CODES > 1),
    "trials": (tb.Binomial(4), CODES),
    "bins": (tb.Binned((0, 1, 2, 6)), CODES + 0.5),
    "words": (tb.Multinomial(), WORDS),
    "sparse words": (tb.Multinomial(), sparse.csr_array(WORDS)),
    "compound": (tb.DirichletMultinomial(), WORDS),
}
every_case = pytest.mark.parametrize("name", CASES)


@every_case
def test_it_is_the_empirical_one_under_bayes_and_add_one_under_map(name):
    family, X = CASES[name]
    model = tb.NaiveBayes(family).fit(X, Y)
    for one in (model, model.reestimate(estimate="mle")):
        assert one.prior_ == model.reestimate(prior="empirical").prior_
    np.testing.assert_array_equal(model.predict_proba(X), model.reestimate(prior="empirical").predict_proba(X))
    assert list(model.reestimate(estimate="map").prior_.values()) == [pseudo_count_prior(family, 1.0, "map")]
    assert model.log_evidence() > model.reestimate(prior=1).log_evidence()
    assert np.isfinite(model.description_length()).all()


@every_case
def test_where_groups_say_nothing_it_is_add_one(name):
    family, X = CASES[name]
    one = tb.NaiveBayes(family).fit(X, np.zeros(120, dtype=int))
    assert one.prior_ == one.reestimate(prior=1).prior_
    declared = tb.NaiveBayes(family).partial_fit(X, np.zeros(120, dtype=int), classes=[0, 1])
    assert declared.prior_ == declared.reestimate(prior=1).prior_


def test_every_column_by_itself():
    rows = {"both": list("aabbab"), "once": ["u", "v", "u", None, None, None], "never": [None] * 6}
    columns = {("both", "once"): tb.Categorical(), "never": tb.Categorical(levels=("x", "y"))}
    model = tb.NaiveBayes(columns).fit(rows, [0, 0, 0, 1, 1, 1])
    both, once = np.split(model.prior_["both", "once"].concentration, [2])
    assert once.tolist() == [1.0, 1.0]
    assert (both != 1.0).all()
    assert model.prior_["never"] == tb.Dirichlet(1.0)


def test_single_columns_tables_and_networks_stay_add_one():
    for group in (None, Y):
        found = tb.fit_distribution(NAMES[:, 0], tb.Categorical(), group=group)
        assert found.posterior() == found.posterior(1)
    rows = {"y": Y, "a": NAMES[:, 0], "b": NAMES[:, 1]}
    network = tb.BayesianNetwork({"a": ["y"], "b": ["y"]}).fit(rows)
    assert set(network.prior_.values()) == {tb.Dirichlet(1.0)}


def test_numbers_and_other_priors_are_as_ever():
    rows = {"size": RNG.normal(Y, 1.0), "calls": RNG.poisson(1 + Y), "name": NAMES[:, 1]}
    columns = {"size": tb.Gaussian(), "calls": tb.Poisson(), "name": tb.Categorical()}
    model = tb.NaiveBayes(columns).fit(rows, Y)
    added = model.reestimate(prior=1)
    assert [model.prior_[name] for name in ("size", "calls")] == [added.prior_[name] for name in ("size", "calls")]
    mapped = model.reestimate(prior={"calls": tb.Gamma(2.0, 1.0)})
    assert mapped.prior_ == model.prior_ | {"calls": tb.Gamma(2.0, 1.0)}


# ---- A function of the tally alone ----------------------------------------------------------------------------------


@every_case
def test_any_split_and_order_is_the_same_to_the_bit(name):
    family, X = CASES[name]
    whole = tb.NaiveBayes(family).fit(X, Y)
    order = np.argsort(Y[::-1], kind="stable")[::-1]  # levels come in another order
    parts = [order[:50], order[50:51], order[51:]]
    grown = tb.NaiveBayes(family)
    for part in parts:
        grown.partial_fit(X[part], Y[part]).predict(X[:2])  # what is asked on the way leaves no trace
    added = sum(tb.NaiveBayes(family).fit(X[part], Y[part]) for part in parts)
    for other in (grown, added):
        np.testing.assert_array_equal(other.predict_log_proba(X), whole.predict_log_proba(X))


@every_case
def test_forgotten_is_never_seen_to_the_bit(name):
    family, X = CASES[name]
    model = tb.NaiveBayes(family).fit(X, Y)
    model.predict(X[:2])
    model.forget(X[:40], Y[:40])
    fresh = tb.NaiveBayes(family).fit(X[40:], Y[40:])
    np.testing.assert_array_equal(model.predict_log_proba(X[40:]), fresh.predict_log_proba(X[40:]))


def test_sequences_too():
    X, y = [list(part) for part in np.split(NAMES[:, 1], 8)], [list(part) for part in np.split(Y, 8)]
    whole = tb.HiddenMarkovModel().fit(X, y)
    assert whole.prior_["start"] == whole.prior_["transition"] == tb.Dirichlet(1.0)
    emission = tb.fit_distribution(NAMES[:, 1], tb.Categorical(), group=Y)
    expected = emission.family.resolve_prior("empirical", emission.statistics, "bayes")
    assert list(whole.prior_.values())[-1] == expected
    back = tb.HiddenMarkovModel().fit(X[::-1], y[::-1])
    np.testing.assert_array_equal(back.score_samples(X), whole.score_samples(X))
    back.forget(X[:3], y[:3])
    fresh = tb.HiddenMarkovModel().fit(X[3:], y[3:])
    np.testing.assert_array_equal(back.score_samples(X[3:]), fresh.score_samples(X[3:]))


def test_a_stream_holds_it():
    model = tb.NaiveBayes(tb.Categorical()).fit(NAMES[:60], Y[:60])
    held = model.reestimate(prior=model.prior_)
    np.testing.assert_array_equal(held.predict_proba(NAMES), model.predict_proba(NAMES))
    held.partial_fit(NAMES[60:], Y[60:])
    assert held.prior_ == model.prior_
    model.partial_fit(NAMES[60:], Y[60:])
    assert held.prior_ != model.prior_


def test_only_who_asks_pays(monkeypatch):
    asked = []
    monkeypatch.setattr(empirical_prior, "fit_dirichlet", lambda *table: asked.append(1) or np.ones(table[0].shape[1]))
    model = tb.NaiveBayes(tb.Categorical()).fit(NAMES, Y)
    model.partial_fit(NAMES, Y).forget(NAMES[:5], Y[:5])
    tb.NaiveBayes().fit(RNG.normal(size=(120, 3)), Y).predict(RNG.normal(size=(5, 3)))
    assert not asked
    for _ in range(3):
        model.predict(NAMES)
    assert len(asked) == 1


# ---- EM --------------------------------------------------------------------------------------------------------------


def check_climb(model, resolved):
    history = np.array(model.history_)
    assert len(history) > 2
    assert (np.diff(history) >= -1e-9 * max(1.0, np.abs(history[-1]))).all()
    assert model.objective_ == "log posterior"
    for factor, statistics in zip(model.tally_.factors, model.tally_.statistics, strict=True):
        if factor.columns in resolved or factor.columns[0] in resolved:
            found = resolved.get(factor.columns, resolved.get(factor.columns[0]))
            assert found == factor.family.resolve_prior("empirical", statistics, "bayes")  # of what EM ended with


@pytest.mark.slow_after(5)
@pytest.mark.parametrize("name", ["labels", "yes or no", "bins", "sparse words", "compound"])
@pytest.mark.parametrize("seed", range(3))
def test_the_objective_of_em_never_falls(name, seed):
    family, X = CASES[name]
    mixture = tb.Mixture(3, family, random_state=seed, max_iter=500).fit(X)
    check_climb(mixture, mixture.prior_)
    some = np.where(np.random.default_rng(seed).random(120) < 0.3, Y, -1)
    taught = tb.NaiveBayes(family, unlabeled="em", missing_label=-1, max_iter=500).fit(X, some)
    check_climb(taught, taught.prior_)


@pytest.mark.parametrize("seed", range(3))
def test_the_objective_of_baum_welch_never_falls(seed):
    X = [list(part) for part in np.split(NAMES[:, 1], 8)]
    model = tb.HiddenMarkovModel(2, random_state=seed, max_iter=1000).fit(X)
    check_climb(model, {key: prior for key, prior in model.prior_.items() if key not in ("start", "transition")})
