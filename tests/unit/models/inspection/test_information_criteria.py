"""One name for one thing: evidence, criteria, likelihoods and priors of every model."""

import math

import numpy as np
import pytest

import tallybayes as tb

RNG = np.random.default_rng(0)
CLASSES = RNG.choice(["p", "q"], 80)
ROWS = {
    "size": RNG.normal(CLASSES == "p"),
    "width": RNG.normal(size=80),
    "color": RNG.choice(["red", "green"], 80),
    "class": CLASSES,
}
FEATURES = {name: column for name, column in ROWS.items() if name != "class"}
NUMBERS = np.stack([ROWS["size"], ROWS["width"]], axis=1)
STEPS = [RNG.choice([1, 2, 3], n) for n in (5, 9, 14)]
STATES = [np.where(part > 1, "high", "low") for part in STEPS]

# Of each: how to fit it, what to ask of it, and how many of its rows there are.
MODELS = {
    "NaiveBayes": (tb.NaiveBayes(), lambda m: m.fit(ROWS, "class"), (ROWS, "class")),
    "uniform": (tb.NaiveBayes(class_prior="uniform"), lambda m: m.fit(ROWS, "class"), (ROWS, "class")),
    "GaussianDiscriminant": (tb.GaussianDiscriminant(), lambda m: m.fit(NUMBERS, CLASSES), (NUMBERS, CLASSES)),
    "diagonal": (tb.GaussianDiscriminant("diagonal"), lambda m: m.fit(NUMBERS, CLASSES), (NUMBERS, CLASSES)),
    "Mixture": (tb.Mixture(2, random_state=0), lambda m: m.fit(FEATURES), (FEATURES,)),
    "HiddenMarkovModel": (
        tb.HiddenMarkovModel(columns=tb.Categorical()),
        lambda m: m.fit(STEPS, STATES),
        (STEPS, STATES),
    ),
    "Baum-Welch": (
        tb.HiddenMarkovModel(2, tb.Categorical(), max_iter=1000, random_state=0),
        lambda m: m.fit(STEPS),
        (STEPS,),
    ),
    "BayesianNetwork": (tb.BayesianNetwork({"color": ["class"], "size": ["class"]}), lambda m: m.fit(ROWS), (ROWS,)),
}
COUNTED = [name for name in MODELS if name not in ("Mixture", "Baum-Welch")]


def fitted(name, **parameters):
    model, fit, rows = MODELS[name]
    return fit(tb_clone(model).set_params(**parameters)), rows


def tb_clone(model):
    from sklearn.base import clone

    return clone(model)


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("estimate", ["bayes", "map"])
def test_the_prior_that_was_resolved_is_a_prior(name, estimate):
    model, rows = fitted(name, estimate=estimate)
    again, _ = fitted(name, estimate=estimate, prior=model.prior_)
    assert list(again.prior_) == list(model.prior_)
    for key, belief in model.prior_.items():
        assert again.prior_[key] == belief
    if name in COUNTED:
        assert again.log_evidence() == pytest.approx(model.log_evidence(), rel=1e-12)
        assert again.log_likelihood(*rows) == pytest.approx(model.log_likelihood(*rows), rel=1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_the_likelihood_of_all_rows_is_that_of_each(name):
    model, rows = fitted(name)
    plain = {"class": None} | FEATURES if name == "BayesianNetwork" else rows[0]
    alone = {k: v for k, v in plain.items() if k != "class"} if isinstance(plain, dict) else plain
    assert model.log_likelihood(alone) == pytest.approx(model.score_samples(alone).sum(), rel=1e-12)
    if len(rows) == 2 and name != "HiddenMarkovModel":
        labels = ROWS["class"]
        joint = model.predict_joint_log_proba(alone)
        each = joint[np.arange(80), np.searchsorted(model.classes_, labels)]
        weight = np.arange(80.0)
        assert model.log_likelihood(*rows) == pytest.approx(each.sum(), rel=1e-12)
        assert model.log_likelihood(*rows, sample_weight=weight) == pytest.approx(weight @ each, rel=1e-12)


def test_the_likelihood_of_sequences_and_states():
    model, (steps, states) = fitted("HiddenMarkovModel")
    assert model.log_likelihood(steps, states) == pytest.approx(model.log_joint(steps, states).sum())
    twice = model.log_likelihood(steps, states, sample_weight=[2, 0, 1])
    assert twice == pytest.approx(np.array([2, 0, 1]) @ model.log_joint(steps, states))


@pytest.mark.parametrize("name", COUNTED)
def test_criteria_at_the_most_likely_parameters(name):
    model, rows = fitted(name)
    best = model.reestimate(estimate="mle").log_likelihood(*rows)
    assert model.aic_ == pytest.approx(-2 * best + 2 * model.n_parameters_, rel=1e-10)
    assert model.reestimate(estimate="map").aic_ == model.aic_
    if name != "HiddenMarkovModel":  # its starts are fewer than its steps
        assert model.bic_ == pytest.approx(-2 * best + model.n_parameters_ * math.log(80), rel=1e-10)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["Mixture", "Baum-Welch"])
def test_criteria_where_em_ended(name):
    model, rows = fitted(name, estimate="mle")
    best = model.log_likelihood(*rows)
    assert model.aic_ == pytest.approx(-2 * best + 2 * model.n_parameters_, abs=1e-3)  # where the last step began
    assert model.bic_ > model.aic_
    for measure in (model.log_evidence, model.description_length):
        with pytest.raises(tb.EstimateError, match="EM filled in unobserved values"):
            measure()


def test_criteria_of_rows_with_gaps():
    rows = np.where(np.random.default_rng(1).random(NUMBERS.shape) < 0.1, np.nan, NUMBERS)
    model = tb.GaussianDiscriminant(estimate="mle", tol=1e-12, max_iter=2000).fit(rows, CLASSES)
    assert model.tally_.soft
    assert model.aic_ == pytest.approx(-2 * model.log_likelihood(rows, CLASSES) + 2 * model.n_parameters_, abs=1e-6)


def test_given_class_probabilities_are_no_parameters():
    free, given = fitted("NaiveBayes")[0], fitted("uniform")[0]
    assert free.n_parameters_ == given.n_parameters_ + 1
    counts = np.unique(CLASSES, return_counts=True)[1]
    labels = tb.Dirichlet(1.0).log_evidence(tb.Counts(counts.astype(float)))
    assert free.log_evidence() - given.log_evidence() == pytest.approx(float(labels) + 80 * math.log(2))
    assert given.description_length().evidence == pytest.approx(-given.log_evidence() / math.log(2))


@pytest.mark.parametrize("name", COUNTED)
def test_code_lengths_are_the_evidence_in_bits(name):
    model, _ = fitted(name)
    assert model.description_length().evidence == pytest.approx(-model.log_evidence() / math.log(2), rel=1e-12)


def test_labels_that_are_missing_have_no_likelihood():
    model, _ = fitted("NaiveBayes")
    labels = CLASSES.astype(object)
    labels[3] = None
    with pytest.raises(tb.LabelError, match="y is missing in row 3"):
        model.log_likelihood(ROWS, labels)


def test_labels_passed_apart_count_before_a_column_called_the_same():
    model, _ = fitted("NaiveBayes")
    other = np.where(CLASSES == "p", "q", "p")
    joint = model.predict_joint_log_proba(FEATURES)
    each = joint[np.arange(80), np.searchsorted(model.classes_, other)]
    assert model.log_likelihood(ROWS, other) == pytest.approx(each.sum(), rel=1e-12)
    more = fitted("NaiveBayes")[0].partial_fit(ROWS, other).tally_["class"]
    assert more.table.tolist() == [80.0, 80.0]
