"""Naive Bayes as the textbooks reckon it: ten e-mails, word counts, six days, labels of three levels."""

from math import log

import numpy as np
import pytest

import tallybayes as tb

WORDS = ["card", "winner", "winter", "you"]
SPAM, HAM = ["1101", "1101", "0101", "1001"], ["0011", "1000", "0010", "0001", "0111", "0000"]
CLASS = ["spam"] * 4 + ["ham"] * 6
VOCABULARY = ["click", "me", "money", "read", "to", "win"]
HAM_TEXTS = ["click to read", "read to me", "to win read"]
LABELS = {"x1": [1, 1, 2, 3, 2, 3], "x2": [1, 2, 2, 2, 1, 1]}
THREE = dict.fromkeys(LABELS, tb.Categorical())
AB = list("AAAABB")
DAYS = {
    "sky": ["sun", "sun", "rain", "rain", "sun", "rain"],
    "wind": ["calm", "storm", "calm", "storm", "calm", "storm"],
    "picnic": ["yes", "yes", "yes", "no", "no", "no"],
}


def near(found, expected, rtol=1e-12):
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=1e-14)


def digits(found, expected):
    """Equal to the six digits that are printed."""
    np.testing.assert_allclose(found, expected, rtol=0, atol=5.1e-7)


def columns(*mails):
    return {word: [int(mail[k]) for mail in mails] for k, word in enumerate(WORDS)}


def mails(**options):
    return tb.NaiveBayes(tb.Bernoulli(), **options).fit(columns(*SPAM, *HAM), CLASS)


def spam(model, mail):
    """p(spam | a mail)."""
    return model.predict_proba(columns(mail))[0, 1]


def counts(*texts):
    return {word: [text.lower().split().count(word) for text in texts] for word in VOCABULARY}


def texts(spam=("win money win", "click to win money"), family=None, **options):
    rows = counts(*spam, *HAM_TEXTS)
    return tb.NaiveBayes(family or tb.Multinomial(), **options).fit(rows, ["spam"] * 2 + ["ham"] * 3)


def labels(**options):
    return tb.NaiveBayes(THREE, **options).fit(LABELS, AB)


# ---- The model -------------------------------------------------------------------------------------------------------


def test_C11_bayes_rule():
    near(spam(mails(estimate="mle"), "1101"), 54 / 55)


def test_C12_how_many_numbers():
    model = mails()
    assert (model.n_parameters_, model.n_parameters_joint_) == (9, 31)
    wide = tb.NaiveBayes(tb.Bernoulli()).fit(np.eye(20, dtype=int), [0, 1] * 10)
    assert (wide.n_parameters_, wide.n_parameters_joint_) == (41, 2_097_151)
    days = tb.NaiveBayes().fit(DAYS, "picnic")
    assert (days.n_parameters_, days.n_parameters_joint_) == (5, 7)


def test_B11_the_naive_assumption():
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
    near(model.table("x1").values, [[1 / 2, 1 / 4, 1 / 4], [0, 1 / 2, 1 / 2]])
    near(model.table("x2").values, [[1 / 4, 3 / 4], [1, 0]])
    assert model.parameters_["x1"]["A", 2] == 1 / 4
    for table in model.parameters_.values():
        near(table.values.sum(axis=-1), 1)


def test_B13_the_log_likelihood_falls_apart():
    model = mails(estimate="mle")
    rows, where = columns(*SPAM, *HAM), [1] * 4 + [0] * 6
    joint = model.predict_joint_log_proba(rows)[np.arange(10), where]
    assert joint.sum() == pytest.approx(-24.953299, abs=5e-7)
    assert model.log_likelihood(rows, CLASS) == pytest.approx(-24.953299, abs=5e-7)
    found = np.log(model.class_prior_.values)[where].sum()
    assert found == pytest.approx(-6.730117, abs=5e-7)
    for word, meant in zip(WORDS, [-4.952708, -4.952708, -4.158883, -4.158883], strict=True):
        table = model.table(word)
        term = sum(log(table[label, cell]) for label, cell in zip(CLASS, rows[word], strict=True))
        assert term == pytest.approx(meant, abs=5e-7)


def test_C14_each_term_by_itself():
    model = mails(estimate="mle")
    for word in WORDS:
        alone = tb.NaiveBayes({word: tb.Bernoulli()}, estimate="mle").fit(columns(*SPAM, *HAM), CLASS)
        near(alone.table(word).values, model.table(word).values)


def test_B14_class_prior():
    model = mails(estimate="mle")
    near([model.class_prior_["spam"], model.class_prior_["ham"]], [4 / 10, 6 / 10])


def test_B15_columns_and_what_they_predict():
    model = labels(estimate="mle")
    near(np.exp(model.predict_joint_log_proba({"x1": [1, 3], "x2": [1, 1]})), [[1 / 12, 0], [1 / 24, 1 / 6]])
    near(model.predict_proba({"x1": [3], "x2": [1]})[0, 0], 1 / 5)


def test_C16_yes_no_columns():
    model = mails(estimate="mle")
    near([model.table(word)["spam", 1] for word in WORDS], [3 / 4, 3 / 4, 0, 1])
    near([model.table(word)["ham", 1] for word in WORDS], [1 / 6, 1 / 6, 1 / 2, 1 / 2])
    near(model.parameters_[tuple(WORDS)].values, [[1 / 6, 1 / 6, 1 / 2, 1 / 2], [3 / 4, 3 / 4, 0, 1]])


def test_C17_predict_the_largest():
    model = mails(estimate="mle")
    near([spam(model, mail) for mail in ("1101", "1001", "1111", "0010")], [54 / 55, 18 / 23, 0, 0])
    assert model.predict(columns("1101", "0010")).tolist() == ["spam", "ham"]


def test_M9_54_measurements():
    r = np.sqrt(2)
    blue = [(2 * r, r), (-2 * r, -r), (0, r), (0, -r)]
    green, red = (
        [(6 + r, 1), (6 - r, 1), (6, 1 + 2 * r), (6, 1 - 2 * r)],
        [(2 + r, 6), (2 - r, 6), (2, 6 + r), (2, 6 - r)],
    )
    rows, y = np.array(blue + green + red), np.repeat(["blue", "green", "red"], 4)
    model = tb.NaiveBayes(tb.Gaussian(), estimate="mle").fit(rows, y)
    near(model.means_, [[0, 0], [6, 1], [2, 6]])
    near(model.covariances_, [np.diag([4, 2]), np.diag([1, 4]), np.diag([1, 1])])
    digits(model.predict_proba([[3, 3]])[0], [0.544833, 0.151722, 0.303445])
    twin = tb.GaussianDiscriminant("diagonal", estimate="mle").fit(rows, y)
    near(twin.predict_proba([[3, 3]]), model.predict_proba([[3, 3]]))


def test_T19_a_variance_shared_by_the_classes():
    model = tb.NaiveBayes(tb.TiedGaussian(), estimate="mle").fit([[-1], [1], [1], [3], [1], [3]], [0, 0, 1, 1, 1, 1])
    near(model.class_prior_[1], 2 / 3)
    near(model.means_[:, 0], [0, 2])
    near(model.table(0).values[:, 1:], 1)


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
    found = tb.NaiveBayes(levels, prior=tb.Dirichlet(1)).fit([[x] for x in rows], [0] * 3).table(0)
    near(found.values[0], [3 / 6, 2 / 6, 1 / 6])
    mode = tb.NaiveBayes(levels, prior=tb.Dirichlet(1), estimate="map").fit([[x] for x in rows], [0] * 3).table(0)
    near(mode.values[0], [2 / 3, 1 / 3, 0])


def test_T28_map_for_every_parameter():
    model = mails(estimate="map", class_prior=tb.Dirichlet(2))
    near([model.table(word)["spam", 1] for word in WORDS], [4 / 6, 4 / 6, 1 / 6, 5 / 6])
    near([model.table(word)["ham", 1] for word in WORDS], [2 / 8, 2 / 8, 4 / 8, 4 / 8])
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
    near(labels(prior=1).table("x1").values[0], [3 / 7, 2 / 7, 2 / 7])


def test_M9_58_yes_no_predictive():
    model = mails(prior=1)
    near([model.table(word)["spam", 1] for word in WORDS], [4 / 6, 4 / 6, 1 / 6, 5 / 6])


def test_M9_59_all_parameters_integrated_out():
    model = labels(prior=1, class_prior=tb.Dirichlet(1))
    row = {"x1": [1], "x2": [1]}
    near(np.exp(model.predict_joint_log_proba(row))[0], [5 / 56, 9 / 160])
    near(model.predict_proba(row)[0, 0], 100 / 163)


# ---- Text ------------------------------------------------------------------------------------------------------------

MESSAGE = counts("Click to win win")


def test_T15_bag_of_words():
    assert [MESSAGE[word][0] for word in VOCABULARY] == [1, 0, 0, 0, 1, 2]


def test_T16_multinomial():
    model = texts(estimate="mle")
    joint = np.exp(model.predict_joint_log_proba(MESSAGE))[0] / 12  # the coefficient
    near(joint, [1 / 3645, 18 / 12005])
    near(model.predict_proba(MESSAGE)[0, 1], 13122 / 15523)
    added = texts(prior=1, class_prior="frequency")
    near(added.parameters_[tuple(VOCABULARY)].values[1], np.array([2, 1, 3, 1, 2, 4]) / 13)
    near(added.parameters_[tuple(VOCABULARY)].values[0], np.array([2, 2, 1, 4, 4, 2]) / 15)
    near([added.table(word)["spam", "share"] for word in ("click", "win")], [2 / 13, 4 / 13])
    near(added.predict_proba(MESSAGE)[0, 1], 67500 / 96061)
    digits(texts(prior=0.1, class_prior="frequency").predict_proba(MESSAGE)[0, 1], 0.827082)


def test_C10b_bernoulli_on_the_same_texts():
    rows = {
        word: [min(n, 1) for n in column]
        for word, column in counts("win money win", "click to win money", *HAM_TEXTS).items()
    }
    here = {word: [min(n, 1) for n in column] for word, column in MESSAGE.items()}
    y = ["spam"] * 2 + ["ham"] * 3
    model = tb.NaiveBayes(tb.Bernoulli(), prior=1, class_prior="frequency").fit(rows, y)
    near([model.table(word)["spam", 1] for word in VOCABULARY], [1 / 2, 1 / 4, 3 / 4, 1 / 4, 1 / 2, 3 / 4])
    near([model.table(word)["ham", 1] for word in VOCABULARY], [2 / 5, 2 / 5, 1 / 5, 4 / 5, 4 / 5, 2 / 5])
    near(model.predict_proba(here)[0, 1], 46875 / 79643)
    assert np.isneginf(model.reestimate(estimate="mle").predict_joint_log_proba(here)).all()


def test_T16b_a_repeated_word_makes_itself_likelier():
    model = texts(family=tb.DirichletMultinomial(), prior=1, class_prior="frequency")
    near(model.predict_proba(MESSAGE)[0, 1], 170 / 261)


def test_T17_a_word_never_seen_with_spam():
    other = ("money money", "click to money")
    assert texts(other, estimate="mle").predict_proba(MESSAGE)[0, 1] == 0
    near(texts(other, prior=1, class_prior="frequency").predict_proba(MESSAGE)[0, 1], 16875 / 75439)
    digits(texts(other, prior=0.1, class_prior="frequency").predict_proba(MESSAGE)[0, 1], 0.016604)


def test_T17b_a_word_seen_in_no_class():
    rows = counts("win money win", "click to win money", *HAM_TEXTS) | {"zebra": [0] * 5}
    zebra = {word: [0] for word in VOCABULARY} | {"zebra": [1]}
    y = ["spam"] * 2 + ["ham"] * 3
    model = tb.NaiveBayes(tb.Multinomial(), prior=1, class_prior="frequency").fit(rows, y)
    near([model.table("zebra")[label, "share"] for label in ("spam", "ham")], [1 / 14, 1 / 16])
    near(model.predict_proba(zebra)[0, 1], 16 / 37)
    with pytest.warns(UserWarning, match="impossible in every class"):
        near(model.reestimate(estimate="mle").predict_proba(zebra)[0], [0.6, 0.4])


def test_T17c_a_text_that_is_impossible_in_every_class():
    with pytest.warns(UserWarning, match="impossible in every class"):
        near(texts(estimate="mle").predict_proba(counts("read money"))[0], [0.6, 0.4])


def test_T17d_a_label_outside_the_known_levels():
    snow = {"sky": ["snow"], "wind": ["calm"]}
    for unseen in ("missing", "smooth"):
        near(tb.NaiveBayes(prior=1, unseen=unseen).fit(DAYS, "picnic").predict_proba(snow)[0, 1], 3 / 5)
    with pytest.raises(tb.LabelError, match="snow"):
        tb.NaiveBayes(prior=1, unseen="error").fit(DAYS, "picnic").predict(snow)


def test_T16c_which_words_decided():
    found = texts(prior=1, class_prior="frequency").explain(MESSAGE).to_dict()
    meant = {"win": 1.672, "to": -0.550, "click": 0.143}
    for word, weight in meant.items():
        assert found[word] == pytest.approx(weight, abs=6e-4)
    assert sum(found.values()) == pytest.approx(0.860, abs=6e-4)


# ---- Linear forms ----------------------------------------------------------------------------------------------------


def test_T18_yes_no_naive_bayes_is_linear():
    form = mails(estimate="map", class_prior="frequency").to_linear()
    near(form.coef[0], [log(6), log(6), -log(5), log(5)])
    near(form.intercept, [log(160 / 2187)])
    with pytest.raises(tb.NotLinearError, match="not finite"):
        mails(estimate="mle").to_linear()


def test_T16d_multinomial_is_linear():
    form = texts(prior=1, class_prior="frequency").to_linear()
    assert form.columns == tuple(VOCABULARY)
    digits(form.coef[0], [0.143101, -0.550046, 1.241713, -1.243194, -0.550046, 0.836248])
    near(form.intercept, [log(2 / 3)])


def shared():
    model = tb.NaiveBayes(tb.TiedGaussian(), estimate="mle", class_prior="frequency")
    return model.fit([[-1], [1], [1], [3], [1], [3]], [0, 0, 1, 1, 1, 1])


def test_T20_gaussians_that_share_a_variance_are_logistic():
    form = shared().to_linear()
    near([form.coef[0, 0], form.intercept[0]], [2, -(log(1 / 2) + 2)])
    theirs = form.odds(0)  # 1 / (1 + exp(w · x + b)): the weights of the other class
    near([theirs.coef[0, 0], theirs.intercept[0]], [-2, log(1 / 2) + 2])
    near(form.predict_proba([[1]])[0, 1], 2 / 3)
    near(1 / (1 + np.exp(theirs.coef[0, 0] * 1 + theirs.intercept[0])), 2 / 3)


def test_T21_a_linear_boundary():
    model, edge = shared(), 1 - log(2) / 2
    assert edge == pytest.approx(0.653426, abs=5e-7)
    assert model.predict([[edge - 1e-9], [edge + 1e-9]]).tolist() == [0, 1]


def test_T21b_not_linear_if_variances_differ():
    model = tb.NaiveBayes(tb.Gaussian(), estimate="mle").fit([[-1], [1], [-2], [2]], [1, 1, 2, 2])
    edge = np.sqrt(8 / 3 * log(2))
    assert edge == pytest.approx(1.359556, abs=5e-7)
    rows = [[-edge - 1e-9], [-edge + 1e-9], [edge - 1e-9], [edge + 1e-9]]
    assert model.predict(rows).tolist() == [2, 1, 1, 2]
    with pytest.raises(tb.NotLinearError):
        model.to_linear()


def test_T20b_the_same_form_by_optimisation():
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


def test_E_C3_share_of_tokens_and_of_mails():
    model = texts(estimate="mle")
    near(model.table("win")["spam", "share"], 3 / 7)


def test_E_M2_theta_is_a_vector():
    near(labels(estimate="mle").table("x1")["A"][1], 1 / 2)
    near(list(labels(estimate="mle").table("x1")["A"].values()), [1 / 2, 1 / 4, 1 / 4])
