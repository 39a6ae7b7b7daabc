"""Bayesian networks as the textbooks reckon them: an anti-spam filter, and twelve days of the alarm network."""

import numpy as np
import pytest

import tallybayes as tb
from tests.textbook.course import near

DAYS = [
    "000000",
    "000000",
    "000000",
    "000001",
    "001000",
    "011111",
    "011110",
    "010000",
    "100111",
    "100100",
    "000011",
    "100000",
]
ROWS = {node: [day[k] == "1" for day in DAYS] for k, node in enumerate("TFSALR")}
PARENTS = {"A": ["T", "F"], "S": ["F"], "L": ["A"], "R": ["L"]}
MAILS = ["1101", "1101", "0101", "1001", "0011", "1000", "0010", "0001", "0111", "0000"]
WORDS = ["card", "winner", "winter", "you"]


def alarm(estimate="mle"):
    return tb.BayesianNetwork(PARENTS, estimate=estimate).fit(ROWS)


def test_P7_naive_bayes_is_a_star():
    rows = {word: [int(mail[k]) for mail in MAILS] for k, word in enumerate(WORDS)} | {"spam": [True] * 4 + [False] * 6}
    model = tb.BayesianNetwork({word: ["spam"] for word in WORDS}, estimate="mle").fit(rows)
    found = model.query("spam", {"card": 1, "winner": 1, "winter": 0, "you": 1})
    near(found[True], 54 / 55)
    near(model.cpt("card")[True, 1], 3 / 4)
    near(model.cpt("spam")[True], 4 / 10)
    words = {word: rows[word] for word in WORDS}
    naive = tb.NaiveBayes(tb.Categorical(), prior=1, class_prior=tb.Dirichlet(1)).fit(words, rows["spam"])
    star = model.reestimate(estimate="bayes")
    assert all((star.tally_[(word,)].table == naive.tally_[(word,)].table).all() for word in WORDS)
    near(star.predict_proba(words, "spam"), naive.predict_proba(words))


def test_P7b_shares_of_rows_and_of_rows_of_a_class():
    rows = {word: [int(mail[k]) for mail in MAILS] for k, word in enumerate(WORDS)} | {"spam": [True] * 4 + [False] * 6}
    model = tb.BayesianNetwork({word: ["spam"] for word in WORDS}, estimate="mle").fit(rows)
    near([model.cpt("spam")[True], model.cpt("spam")[False]], [4 / 10, 6 / 10])
    near([model.cpt(word)[True, 1] for word in WORDS], [3 / 4, 3 / 4, 0, 1])
    near([model.cpt(word)[False, 1] for word in WORDS], [1 / 6, 1 / 6, 1 / 2, 1 / 2])
    assert model.log_likelihood(rows) == pytest.approx(-24.953299, abs=5.1e-7)


def test_P12_node_by_node():
    model, logs = alarm(), {}
    for node, parents in model.graph_.parents.items():
        table = model.cpt(node)
        logs[node] = sum(
            np.log(table[(*(ROWS[parent][k] for parent in parents), ROWS[node][k])]) for k in range(len(DAYS))
        )
    meant = {"T": -6.748022, "F": -6.748022, "S": -5.049031, "A": -3.819085, "L": -5.263502, "R": -5.263502}
    assert logs == pytest.approx(meant, abs=5.1e-7)
    assert model.log_likelihood(ROWS) == pytest.approx(-32.891164, abs=5.1e-7)


def test_P13_tables():
    model = alarm()
    near([model.cpt("T")[True], model.cpt("F")[True]], [1 / 4, 1 / 4])
    near([model.cpt("S")[False, True], model.cpt("S")[True, True]], [1 / 9, 2 / 3])
    near([model.cpt("A")[t, f, True] for t, f in ((False, False), (False, True), (True, False))], [0, 2 / 3, 2 / 3])
    assert np.isnan(model.cpt("A")[True, True, True])
    assert model.unseen_configurations_["A"] == [{"T": True, "F": True}]
    near([model.cpt("L")[a, True] for a in (False, True)], [1 / 8, 3 / 4])
    near([model.cpt("R")[a, True] for a in (False, True)], [1 / 8, 3 / 4])
    assert (model.n_parameters_, model.n_parameters_joint_) == (12, 63)


def test_P13b_refuse_only_what_depends_on_it():
    model = alarm()
    near(model.query("S", {"F": True})[True], 2 / 3)
    near(model.query("R", {"A": True})[True], 19 / 32)
    with pytest.raises(tb.TallybayesError):
        model.query("F", {"A": True})


def test_P21_map_of_each_node():
    model = alarm("map")
    near([model.cpt("T")[True], model.cpt("F")[True]], [4 / 14, 4 / 14])
    near([model.cpt("S")[False, True], model.cpt("S")[True, True]], [2 / 11, 3 / 5])
    every = [(False, False), (False, True), (True, False), (True, True)]
    near([model.cpt("A")[t, f, True] for t, f in every], [1 / 8, 3 / 5, 3 / 5, 1 / 2])
    for node in "LR":
        near([model.cpt(node)[a, True] for a in (False, True)], [1 / 5, 2 / 3])


def test_P21b_ask_in_any_direction():
    model = alarm("map")
    near(model.query("F", {"A": True})[True], 64 / 137)
    near(model.query("F", {"A": True, "T": True})[True], 1 / 4)
    near(model.query("F", {"R": True})[True], 1504 / 4655)
    near(model.query("F", {"R": True, "S": True})[True], 24816 / 40571)
    near(model.query("R", {"F": True})[True], 94 / 225)


def test_P15b_a_combination_never_seen_has_the_prior():
    near(alarm("map").cpt("A")[True, True, True], 1 / 2)
    near(alarm("bayes").posterior_["A"].mean()[1, 1], [1 / 2, 1 / 2])


def test_P22_in_steps():
    first, rest = ({node: column[part] for node, column in ROWS.items()} for part in (slice(6), slice(6, None)))
    model = tb.BayesianNetwork(PARENTS, columns=tb.Categorical(levels=(False, True)), estimate="map").fit(first)
    near(model.cpt("F")[True], 2 / 8)
    near([model.cpt("A")[False, False, True], model.cpt("A")[False, True, True]], [1 / 7, 2 / 3])
    near([model.cpt("A")[True, f, True] for f in (False, True)], [1 / 2, 1 / 2])
    model.partial_fit(rest)
    whole = tb.BayesianNetwork(PARENTS, columns=tb.Categorical(levels=(False, True)), estimate="map").fit(ROWS)
    assert model.tally_ == whole.tally_
    apart = [tb.BayesianNetwork(PARENTS, columns=model.columns_, estimate="map").fit(part) for part in (first, rest)]
    assert (apart[0] + apart[1]).tally_ == whole.tally_
    assert (apart[0] + apart[1]).forget(rest).tally_ == apart[0].tally_
    for node in ROWS:
        near(model.cpt(node).values, whole.cpt(node).values)


def test_E_P2_what_the_alarm_depends_on():
    other = tb.BayesianNetwork({**PARENTS, "A": ["S", "F"]}, estimate="mle").fit(ROWS)
    near(other.cpt("A")[True, True, True], 1)
    near(alarm().cpt("A")[False, True, True], 2 / 3)
