"""Naive Bayes as the textbooks reckon it: ten e-mails, six days, labels of three levels."""

from math import log

import numpy as np
import pytest

import tallybayes as tb
from tests.textbook.course import (
    AB,
    CLASS,
    DAYS,
    HAM,
    LABELS,
    SHARED,
    SHARED_CLASS,
    SPAM,
    WORDS,
    X,
    Y,
    columns,
    digits,
    mails,
    near,
    spam,
)


def labels(**options):
    return tb.NaiveBayes(dict.fromkeys(LABELS, tb.Categorical()), **options).fit(LABELS, AB)


# ---- The model -------------------------------------------------------------------------------------------------------


def test_C11_T3_M9_1_M9_47_C8_bayes_rule():
    near(spam(mails(estimate="mle"), "1101"), 54 / 55)


def test_C12_T11_how_many_numbers():
    model = mails()
    assert (model.n_parameters_, model.n_parameters_joint_) == (9, 31)
    wide = tb.NaiveBayes(tb.Bernoulli()).fit(np.eye(20, dtype=int), [0, 1] * 10)
    assert (wide.n_parameters_, wide.n_parameters_joint_) == (41, 2_097_151)
    days = tb.NaiveBayes().fit(DAYS, "picnic")
    assert (days.n_parameters_, days.n_parameters_joint_) == (5, 7)
    for d, cells in ((4, 16), (20, 1_048_576)):  # p(class | x) as a table: the class below all its columns
        names = [f"x{k}" for k in range(d)]
        turned = tb.BayesianNetwork({"class": names}).fit({name: [0, 1] for name in [*names, "class"]})
        assert turned.n_parameters_ - d == cells == 2**d


def test_C10_a_mail_as_yes_no_columns():
    text = ["you", "are", "the", "winner", "of", "a", "gift", "card"]
    mail = {word: [int(word in text)] for word in reversed(WORDS)}
    assert mail == {"you": [1], "winter": [0], "winner": [1], "card": [1]}
    near(mails(estimate="mle").predict_proba(mail)[0, 1], 54 / 55)


def test_B11_C13_M9_46_the_naive_assumption():
    joint = mails(estimate="mle").predict_joint_log_proba(columns("1101"))[0]
    near(joint, [log(1 / 240), log(9 / 40)])


def test_C18_one_pass_in_any_parts():
    whole, parts = mails(), tb.NaiveBayes(tb.Bernoulli())
    for mail, label in zip(SPAM + HAM, CLASS, strict=True):
        parts.partial_fit(columns(mail), [label])
    assert parts.tally_ == whole.tally_
    halves = [
        tb.NaiveBayes(tb.Bernoulli()).fit(columns(*some), [c] * len(some)) for some, c in ((SPAM, "spam"), (HAM, "ham"))
    ]
    assert (halves[0] + halves[1]).tally_ == whole.tally_


def test_T5_draw_the_class_then_each_feature():
    model = mails(estimate="map")
    for label, shares in (("spam", [2 / 3, 2 / 3, 1 / 6, 5 / 6]), ("ham", [1 / 4, 1 / 4, 1 / 2, 1 / 2])):
        X, _ = model.sample(100_000, given=label, random_state=0)
        for word, p in zip(WORDS, shares, strict=True):
            assert abs(np.mean(X[word]) - p) < 4 * np.sqrt(p * (1 - p) / 100_000)


# ---- Learning it -----------------------------------------------------------------------------------------------------


def test_B12_parameters_of_labels():
    model = labels(estimate="mle")
    assert model.class_prior_["A"] == pytest.approx(4 / 6, rel=1e-12)
    assert model.class_prior_["B"] == pytest.approx(2 / 6, rel=1e-12)
    near(model.parameter_table("x1").values, [[1 / 2, 1 / 4, 1 / 4], [0, 1 / 2, 1 / 2]])
    near(model.parameter_table("x2").values, [[1 / 4, 3 / 4], [1, 0]])
    assert model.parameters_["x1"]["A", 2] == 1 / 4
    for table in model.parameters_.values():
        near(table.values.sum(axis=-1), 1)


def test_B13_P8_M9_48_M9_49_the_log_likelihood_falls_apart():
    model = mails(estimate="mle")
    rows, where = columns(*SPAM, *HAM), [1] * 4 + [0] * 6
    joint = model.predict_joint_log_proba(rows)[np.arange(10), where]
    assert joint.sum() == pytest.approx(-24.953299, abs=5e-7)
    assert model.log_likelihood(rows, CLASS) == pytest.approx(-24.953299, abs=5e-7)
    found = np.log(model.class_prior_.values)[where].sum()
    assert found == pytest.approx(-6.730117, abs=5e-7)
    for word, meant in zip(WORDS, [-4.952708, -4.952708, -4.158883, -4.158883], strict=True):
        table = model.parameter_table(word)
        term = sum(log(table[label, cell]) for label, cell in zip(CLASS, rows[word], strict=True))
        assert term == pytest.approx(meant, abs=5e-7)


def test_C14_T7_P9_M9_50_M9_51_each_term_by_itself():
    model = mails(estimate="mle")
    for word in WORDS:
        alone = tb.NaiveBayes({word: tb.Bernoulli()}, estimate="mle").fit(columns(*SPAM, *HAM), CLASS)
        near(alone.parameter_table(word).values, model.parameter_table(word).values)


def test_B14_C15_P10_class_prior():
    model = mails(estimate="mle")
    near([model.class_prior_["spam"], model.class_prior_["ham"]], [4 / 10, 6 / 10])


def test_B15_P11_M9_52_columns_and_what_they_predict():
    model = labels(estimate="mle")
    near(np.exp(model.predict_joint_log_proba({"x1": [1, 3], "x2": [1, 1]})), [[1 / 12, 0], [1 / 24, 1 / 6]])
    near(model.predict_proba({"x1": [3], "x2": [1]})[0, 0], 1 / 5)


def test_C16_T13_M9_53_yes_no_columns():
    model = mails(estimate="mle")
    near([model.parameter_table(word)["spam", 1] for word in WORDS], [3 / 4, 3 / 4, 0, 1])
    near([model.parameter_table(word)["ham", 1] for word in WORDS], [1 / 6, 1 / 6, 1 / 2, 1 / 2])
    near(model.parameters_[tuple(WORDS)].values, [[1 / 6, 1 / 6, 1 / 2, 1 / 2], [3 / 4, 3 / 4, 0, 1]])


def test_C17_predict_the_largest():
    model = mails(estimate="mle")
    near([spam(model, mail) for mail in ("1101", "1001", "1111", "0010")], [54 / 55, 18 / 23, 0, 0])
    assert model.predict(columns("1101", "0010")).tolist() == ["spam", "ham"]


def test_M9_54_M9_55_measurements():
    model = tb.NaiveBayes(tb.Gaussian(), estimate="mle").fit(X, Y)
    near(model.means_, [[0, 0], [6, 1], [2, 6]])
    near(model.covariances_, [np.diag([4, 2]), np.diag([1, 4]), np.diag([1, 1])])
    digits(model.predict_proba([[3, 3]])[0], [0.544833, 0.151722, 0.303445])
    twin = tb.GaussianDiscriminant("diagonal", estimate="mle").fit(X, Y)
    near(twin.predict_proba([[3, 3]]), model.predict_proba([[3, 3]]))


def test_T19_a_variance_shared_by_the_classes():
    model = tb.NaiveBayes(tb.TiedGaussian(), estimate="mle").fit(SHARED, SHARED_CLASS)
    near(model.class_prior_[1], 2 / 3)
    near(model.means_[:, 0], [0, 2])
    near(model.parameter_table(0).values[:, 1:], 1)


def test_M9_3_1_mixed_columns():
    rows = {"yes": [1, 0, 1, 1], "label": ["u", "v", "v", "u"], "x": [1.0, 2.0, 4.0, 3.0]}
    families = {"yes": tb.Bernoulli(), "label": tb.Categorical(), "x": tb.Gaussian()}
    model = tb.NaiveBayes(families).fit(rows, list("aabb"))
    first = {name: column[:1] for name, column in rows.items()}
    parts = [
        tb.NaiveBayes({name: families[name]}).fit(rows, list("aabb")).predict_joint_log_proba(first) for name in rows
    ]
    near(sum(parts) - 2 * np.log(model.class_prior_.values), model.predict_joint_log_proba(first))


def test_B15b_a_label_table_by_hand():
    today, rain = {"sky": ["sun"], "wind": ["calm"]}, {"sky": ["rain"], "wind": [None]}
    for estimate, meant in (("mle", (4 / 5, 1 / 3)), ("map", (9 / 13, 2 / 5))):
        model = tb.NaiveBayes(estimate=estimate).fit(DAYS, "picnic")
        near([model.predict_proba(row)[0, 1] for row in (today, rain)], meant)


def test_C15b_a_class_added_later():
    model = tb.NaiveBayes(tb.Bernoulli()).fit(columns(*SPAM), ["spam"] * 4).add_class("ham", columns(*HAM))
    assert model.tally_ == mails().tally_


# ---- Zeros and smoothing ---------------------------------------------------------------------------------------------


def test_B16_one_zero_vetoes_the_class():
    assert spam(mails(estimate="mle"), "1111") == 0
    near(spam(mails(estimate="map", class_prior="frequency"), "1111"), 640 / 883)


def test_B17_add_alpha():
    rows, levels = list("aab"), tb.Categorical(levels=("a", "b", "c"))
    found = tb.NaiveBayes(levels, prior=tb.Dirichlet(1)).fit([[x] for x in rows], [0] * 3).parameter_table(0)
    near(found.values[0], [3 / 6, 2 / 6, 1 / 6])
    mode = (
        tb.NaiveBayes(levels, prior=tb.Dirichlet(1), estimate="map")
        .fit([[x] for x in rows], [0] * 3)
        .parameter_table(0)
    )
    near(mode.values[0], [2 / 3, 1 / 3, 0])


def test_T28_P20_map_for_every_parameter():
    model = mails(estimate="map", class_prior=tb.Dirichlet(2))
    near([model.parameter_table(word)["spam", 1] for word in WORDS], [4 / 6, 4 / 6, 1 / 6, 5 / 6])
    near([model.parameter_table(word)["ham", 1] for word in WORDS], [2 / 8, 2 / 8, 4 / 8, 4 / 8])
    near(model.class_prior_["spam"], 5 / 12)
    near(spam(model, "1101"), 8000 / 8567)
    near(spam(model.reestimate(class_prior="frequency"), "1101"), 3200 / 3443)


def test_P20b_more_than_two_classes():
    model = tb.NaiveBayes(tb.Bernoulli(), estimate="map", class_prior=tb.Dirichlet(2)).fit([[1]] * 4, list("aabc"))
    near(model.class_prior_.values, [3 / 7, 2 / 7, 2 / 7])


def test_M9_56_posteriors():
    model = labels(prior=1, class_prior=tb.Dirichlet(1))
    near(model.posterior_["class"].concentration, [5, 3])
    near(model.posterior_["x1"].concentration, [[3, 2, 2], [1, 2, 2]])
    near(model.posterior_["x2"].concentration, [[2, 4], [3, 1]])


def test_M9_57_predictive_of_a_feature():
    near(labels(prior=1).parameter_table("x1").values[0], [3 / 7, 2 / 7, 2 / 7])


def test_M9_58_yes_no_predictive():
    model = mails(prior=1)
    near([model.parameter_table(word)["spam", 1] for word in WORDS], [4 / 6, 4 / 6, 1 / 6, 5 / 6])
    near([model.parameter_table(word)["ham", 1] for word in WORDS], [2 / 8, 2 / 8, 4 / 8, 4 / 8])


def test_M9_59_all_parameters_integrated_out():
    model = labels(prior=1, class_prior=tb.Dirichlet(1))
    row = {"x1": [1], "x2": [1]}
    near(np.exp(model.predict_joint_log_proba(row))[0], [5 / 56, 9 / 160])
    near(model.predict_proba(row)[0, 0], 100 / 163)


# ---- Linear forms ----------------------------------------------------------------------------------------------------


def test_T18_yes_no_naive_bayes_is_linear():
    form = mails(estimate="map", class_prior="frequency").to_linear()
    near(form.coef[0], [log(6), log(6), -log(5), log(5)])
    near(form.intercept, [log(160 / 2187)])
    with pytest.raises(tb.NotLinearError, match="not finite"):
        mails(estimate="mle").to_linear()


def shared():
    model = tb.NaiveBayes(tb.TiedGaussian(), estimate="mle", class_prior="frequency")
    return model.fit(SHARED, SHARED_CLASS)


def test_T20_gaussians_that_share_a_variance_are_logistic():
    form = shared().to_linear()
    near([form.coef[0, 0], form.intercept[0]], [2, -(log(1 / 2) + 2)])
    theirs = form.log_odds_coefficients(0)  # 1 / (1 + exp(w · x + b)): the weights of the other class
    near([theirs.coef[0, 0], theirs.intercept[0]], [-2, log(1 / 2) + 2])
    near(form.predict_proba([[1]])[0, 1], 2 / 3)
    near(1 / (1 + np.exp(theirs.coef[0, 0] * 1 + theirs.intercept[0])), 2 / 3)


def test_T21_a_linear_boundary():
    model, edge = shared(), 1 - log(2) / 2
    assert edge == pytest.approx(0.653426, abs=5e-7)
    assert model.predict([[edge - 1e-9], [edge + 1e-9]]).tolist() == [0, 1]


def test_T21b_E_T8_not_linear_if_variances_differ():
    model = tb.NaiveBayes(tb.Gaussian(), estimate="mle").fit([[-1], [1], [-2], [2]], [1, 1, 2, 2])
    edge = np.sqrt(8 / 3 * log(2))
    assert edge == pytest.approx(1.359556, abs=5e-7)
    rows = [[-edge - 1e-9], [-edge + 1e-9], [edge - 1e-9], [edge + 1e-9]]
    assert model.predict(rows).tolist() == [2, 1, 1, 2]
    with pytest.raises(tb.NotLinearError):
        model.to_linear()


def test_T20b_the_same_form_by_optimization():
    from sklearn.linear_model import LogisticRegression

    rows = np.random.default_rng(0).normal(size=(60_000, 2)) + np.repeat([[0, 0], [1, 2]], 30_000, axis=0)
    y = np.repeat([0, 1], 30_000)
    form = tb.NaiveBayes(tb.TiedGaussian(), estimate="mle").fit(rows, y).to_linear()
    found = form.compare(LogisticRegression(C=1e6).fit(rows, y))
    near(found.values["logistic regression"], found.values["this model"], rtol=0.1)
    assert found.cosine > 0.999


# ---- Three distributions, missing cells ------------------------------------------------------------------------------


def test_T1_three_distributions():
    model, mail = mails(estimate="mle"), columns("1101")
    near(np.exp(model.predict_joint_log_proba(mail))[0, 1], 9 / 40)
    near(np.exp(model.score_samples(mail)), [11 / 48])
    near(spam(model, "1101"), 54 / 55)


def test_M9_65_leave_the_term_out():
    row = {"card": [None], "winner": [1], "winter": [None], "you": [None]}
    near(mails(estimate="mle").predict_proba(row)[0, 1], 3 / 4)
    near(mails(estimate="map", class_prior="frequency").predict_proba(row)[0, 1], 16 / 25)
    nothing = {word: [None] for word in WORDS}
    near(mails(estimate="mle").predict_proba(nothing)[0], [6 / 10, 4 / 10])


def test_E_C1_winners_is_no_winner():
    model = mails(estimate="mle")
    near([spam(model, "1101"), spam(model, "1001")], [54 / 55, 18 / 23])


def test_E_M2_theta_is_a_vector():
    near(labels(estimate="mle").parameter_table("x1")["A"][1], 1 / 2)
    near(list(labels(estimate="mle").parameter_table("x1")["A"].values()), [1 / 2, 1 / 4, 1 / 4])
