"""Naive Bayes of texts as the textbooks reckon it: five texts of six words."""

from math import log

import numpy as np
import pytest

import tallybayes as tb
from tests.textbook.course import DAYS, HAM_TEXTS, SPAM_TEXTS, VOCABULARY, counts, digits, near, texts

MESSAGE = counts("Click to win win")


def test_T15_bag_of_words():
    assert [MESSAGE[word][0] for word in VOCABULARY] == [1, 0, 0, 0, 1, 2]


def test_T16_E_T7_multinomial():
    model = texts(estimate="mle")
    joint = np.exp(model.predict_joint_log_proba(MESSAGE))[0] / 12  # the coefficient
    near(joint, [1 / 3645, 18 / 12005])
    near(model.predict_proba(MESSAGE)[0, 1], 13122 / 15523)
    added = texts(prior=1, class_prior="frequency")
    near(added.parameters_[tuple(VOCABULARY)].values[1], np.array([2, 1, 3, 1, 2, 4]) / 13)
    near(added.parameters_[tuple(VOCABULARY)].values[0], np.array([2, 2, 1, 4, 4, 2]) / 15)
    near([added.parameter_table(word)["spam", "share"] for word in ("click", "win")], [2 / 13, 4 / 13])
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
    near([model.parameter_table(word)["spam", 1] for word in VOCABULARY], [1 / 2, 1 / 4, 3 / 4, 1 / 4, 1 / 2, 3 / 4])
    near([model.parameter_table(word)["ham", 1] for word in VOCABULARY], [2 / 5, 2 / 5, 1 / 5, 4 / 5, 4 / 5, 2 / 5])
    near(model.predict_proba(here)[0, 1], 46875 / 79643)
    assert np.isneginf(model.reestimate(estimate="mle").predict_joint_log_proba(here)).all()


@pytest.mark.parametrize(
    ("family", "settings", "spam"),
    [
        (tb.Multinomial(), {"estimate": "mle"}, 13122 / 15523),
        (tb.Multinomial(), {"prior": 1}, 67500 / 96061),
        (tb.Bernoulli(), {"prior": 1}, 46875 / 79643),
        (tb.DirichletMultinomial(), {"prior": 1}, 170 / 261),
    ],
    ids=["T16-mle", "T16", "C10b", "T16b"],
)
def test_raw_strings(family, settings, spam):
    model = tb.NaiveBayes(tb.Text(family), class_prior="frequency", **settings)
    model.fit([*SPAM_TEXTS, *HAM_TEXTS], ["spam"] * 2 + ["ham"] * 3)
    near(model.predict_proba(["Click to win win"])[0, 1], spam)


def test_T16c_raw_strings():
    model = tb.NaiveBayes(tb.Text(), prior=1, class_prior="frequency")
    model.fit([*SPAM_TEXTS, *HAM_TEXTS], ["spam"] * 2 + ["ham"] * 3)
    found = model.explain(["Click to win win"])
    near(found.log_odds[0], log(67500 / 28561))
    expected = {"win": 2 * log(30 / 13), "to": log(15 / 26), "(class prior)": log(2 / 3), "click": log(15 / 13)}
    assert {name: round(weight, 9) for name, weight in found.to_dict().items()} == {
        name: round(weight, 9) for name, weight in expected.items()
    }


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
    near([model.parameter_table("zebra")[label, "share"] for label in ("spam", "ham")], [1 / 14, 1 / 16])
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
    with pytest.raises(tb.LabelError, match=r"(?s)snow.*sky|sky.*snow"):
        tb.NaiveBayes(prior=1, unseen="error").fit(DAYS, "picnic").predict(snow)


def test_T16c_which_words_decided():
    found = texts(prior=1, class_prior="frequency").explain(MESSAGE).to_dict()
    meant = {"win": 1.672, "to": -0.550, "(class prior)": -0.405, "click": 0.143}
    for word, weight in meant.items():
        assert found[word] == pytest.approx(weight, abs=6e-4)
    assert sum(found.values()) == pytest.approx(0.860, abs=6e-4)
    assert list(found)[:4] == list(meant)


def test_T16d_multinomial_is_linear():
    form = texts(prior=1, class_prior="frequency").to_linear()
    assert form.columns == tuple(VOCABULARY)
    digits(form.coef[0], [0.143101, -0.550046, 1.241713, -1.243194, -0.550046, 0.836248])
    near(form.intercept, [log(2 / 3)])


def test_E_C3_share_of_tokens_and_of_mails():
    model = texts(estimate="mle")
    near(model.parameter_table("win")["spam", "share"], 3 / 7)
    rows = {word: [n > 0 for n in column] for word, column in counts(*SPAM_TEXTS).items()}
    once = tb.NaiveBayes(tb.Bernoulli(), estimate="mle").fit(rows, ["spam"] * 2)
    near(once.parameter_table("win")["spam", True], 2 / 2)
