"""Hidden Markov models as the textbooks reckon them: ice creams eaten on hot and on cold days."""

import itertools

import numpy as np
import pandas as pd
import pytest

import tallybayes as tb
from tests.textbook.course import near

DIARY = [[3, 3, 2], [1, 1, 2], [1, 2, 3]]
WEATHER = [["hot", "hot", "cold"], ["cold", "cold", "cold"], ["cold", "hot", "hot"]]


def diaries(**options):
    options = {"estimate": "mle", **options}
    return tb.HiddenMarkovModel(columns=tb.Categorical(), **options).fit(DIARY, WEATHER)


START = {"hot": 0.8, "cold": 0.2}
MOVES = {"hot": {"hot": 0.6, "cold": 0.4}, "cold": {"hot": 0.5, "cold": 0.5}}
EATEN = {"hot": {1: 0.2, 2: 0.4, 3: 0.4}, "cold": {1: 0.5, 2: 0.4, 3: 0.1}}


def machine():
    return tb.HiddenMarkovModel.from_tables(START, MOVES, EATEN)


def test_T29_sequences_however_they_come():
    model = diaries()
    flat, sky = np.ravel(DIARY), np.ravel(WEATHER)
    frame = pd.DataFrame({"who": np.repeat([1, 2, 3], 3), "day": [1, 2, 3] * 3, "eaten": flat, "sky": sky})
    once = tb.HiddenMarkovModel(columns=tb.Categorical(), estimate="mle").fit(flat, sky, [3, 3, 3])
    named = tb.HiddenMarkovModel(columns={"eaten": tb.Categorical()}, estimate="mle")
    named.fit(frame.iloc[::-1], "sky", sequence="who", order="day")
    assert once.tally_ == model.tally_
    near(named.transition_, model.transition_)


def test_T30_what_the_third_symbol_may_depend_on():
    levels = {**{f"y{t}": [0, 1] for t in (1, 2, 3)}, **{f"x{t}": [1, 2, 3] for t in (1, 2, 3)}}
    for parents, expected in ((["y3"], 4), (["y1", "y2", "y3"], 16), (["y1", "y2", "y3", "x1", "x2"], 144)):
        graph = {name: parents if name == "x3" else [] for name in levels}
        shapes = {name: [len(levels[above]) for above in graph[name]] for name in levels}
        tables = {name: np.full((*shapes[name], len(levels[name])), 1 / len(levels[name])) for name in levels}
        model = tb.BayesianNetwork.from_tables(graph, levels, tables)
        assert model.n_parameters_ - (3 * 1 + 2 * 2) == expected  # less the others, which depend on nothing


@pytest.mark.slow
def test_T31_what_is_drawn():
    model = diaries()
    X, y = model.sample([100] * 1000, random_state=0)
    states, symbols = np.searchsorted(model.states_, y), np.array(X)
    for s in (0, 1):
        moves = states[:, 1:][states[:, :-1] == s]
        shares = [(np.mean(moves == 1), model.transition_[s, 1], moves.size)]
        here = symbols[states == s]
        shares += [(np.mean(here == k), model.emission_[0][k][s], here.size) for k in (1, 2, 3)]
        for found, p, n in shares:
            assert abs(found - p) <= 4 * np.sqrt(p * (1 - p) / n)


def test_T32_how_many_numbers():
    model = diaries()
    assert model.n_parameters_ == 7
    assert model.start_.size - 1 + 2 * (2 - 1) + 2 * (3 - 1) == 7


def test_T33_a_state_machine_typed_in():
    model = machine()
    near(model.start_, [0.2, 0.8])
    near(model.transition_, [[0.5, 0.5], [0.4, 0.6]])
    near([model.emission_[0][k] for k in (1, 2, 3)], [[0.5, 0.2], [0.4, 0.4], [0.1, 0.4]])
    assert model.n_parameters_ == 7


def test_T34_T35_forward():
    alpha = machine().forward([[3, 1, 3]])[0]
    near(np.exp(alpha.log), [[0.02, 0.32], [0.069, 0.0404], [0.005066, 0.023496]])
    near(np.exp(machine().log_likelihood([[3, 1, 3]])), 0.028562)
    model = diaries()
    alpha = model.forward([[1, 2, 3]])[0]
    near(np.exp(alpha.log), [[2 / 5, 0], [8 / 75, 1 / 30], [0, 13 / 300]])
    near(np.exp(model.log_likelihood([[1, 2, 3]])), 13 / 300)
    paths = [["cold", "cold", "hot"], ["cold", "hot", "hot"]]
    near(np.exp(model.log_joint([[1, 2, 3]] * 2, paths)), [2 / 75, 1 / 60])
    every = list(itertools.product(["cold", "hot"], repeat=3))
    near(np.exp(model.log_joint([[1, 2, 3]] * 8, every)).sum(), 13 / 300)


def test_T35b_backward():
    near(np.exp(machine().backward([[3, 1, 3]])[0].log), [[0.0905, 0.0836], [0.25, 0.28], [1, 1]])
    near(machine().predict_proba([[3, 1, 3]])[0][:, 1], np.array([13376, 5656, 11748]) / 14281)
    model = diaries()
    beta = model.backward([[1, 2, 3]])[0]
    near(np.exp(beta.log), [[13 / 120, 7 / 60], [1 / 4, 1 / 2], [1, 1]])
    near(model.predict_proba([[1, 2, 3]])[0][1, 1], 5 / 13)
    near(model.filter_proba([[1, 2, 3]])[0][1, 1], 5 / 21)
    near(model.forward([[1, 2, 3]])[0].scaled * beta.scaled, model.predict_proba([[1, 2, 3]])[0])


def test_T36_decoding():
    best = machine().trellis([[3, 1, 3]])[0]
    assert best.path.tolist() == ["hot", "cold", "hot"]
    near(np.exp(best.log_prob), 8 / 625)
    model = diaries()
    first, second = model.trellis([[1, 2, 3], [3, 2, 3]])
    assert first.path.tolist() == ["cold", "cold", "hot"]
    assert second.path.tolist() == ["hot", "hot", "hot"]
    near(np.exp([first.log_prob, second.log_prob]), [2 / 75, 1 / 48])
    near(np.exp(model.log_joint([[3, 2, 3]], [["hot", "cold", "hot"]])), 1 / 120)
    assert [path.tolist() for path in model.predict([[1, 2, 3], [3, 2, 3]])] == [first.path.tolist(), ["hot"] * 3]


def test_E_T4_the_best_path_is_of_both_together():
    # p(x | y) alone favors hot, cold, hot.
    model = diaries()
    place = {"cold": 0, "hot": 1}
    given = {
        path: np.prod([model.emission_[0][x][place[state]] for x, state in zip([3, 2, 3], path, strict=True)])
        for path in itertools.product(place, repeat=3)
    }
    assert max(given, key=given.get) == ("hot", "cold", "hot")
    near([given["hot", "cold", "hot"], given["hot", "hot", "hot"]], [9 / 40, 9 / 64])


def test_E_T5_the_likelihood_begins_with_a_probability():
    near(np.exp(diaries().log_joint(DIARY[:1], WEATHER[:1])), 1 / 3 * 2 / 3 * 1 / 3 * 3 / 4 * 3 / 4 * 2 / 5)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_T37_one_step_of_baum_and_welch():
    given = machine()
    near(np.exp(given.log_likelihood([[3, 1, 3]])), 0.028562)
    model = tb.HiddenMarkovModel(columns=given.columns_, estimate="mle", max_iter=1).fit([[3, 1, 3]], initial=given)
    near(model.start_[1], 13376 / 14281)
    near(model.transition_[:, 1], [718 / 953, 426 / 793])
    near(model.emission_[0][3][1], 6281 / 7695)
    near(model.emission_[0][1][0], 2875 / 4021)
    near(model.emission_[0][2], [0, 0])
    np.testing.assert_allclose(np.exp(model.log_likelihood([[3, 1, 3]])), 0.220007, atol=6e-7)
    near(np.exp(model.history_), [0.028562])


def test_E_T11_state_probabilities_are_one_thing_learning_is_another():
    given = machine()
    before = given.predict_proba([[3, 1, 3]])[0]
    near(given.forward([[3, 1, 3]])[0].scaled * given.backward([[3, 1, 3]])[0].scaled, before)
    near(given.transition_, [[0.5, 0.5], [0.4, 0.6]])  # nothing was learned by it
    model = tb.HiddenMarkovModel(columns=given.columns_, estimate="mle").fit([[3, 1, 3]], initial=given)
    assert (np.diff(model.history_) > 0).all()
    assert model.log_likelihood([[3, 1, 3]]) > given.log_likelihood([[3, 1, 3]])


def test_T38_T39_E_T3_counting_the_diaries():
    model = diaries()
    near(model.start_, [2 / 3, 1 / 3])
    near(model.transition_, [[2 / 3, 1 / 3], [1 / 3, 2 / 3]])  # of the steps that have a successor
    near([model.emission_[0][k] for k in (1, 2, 3)], [[3 / 5, 0], [2 / 5, 1 / 4], [0, 3 / 4]])
    near(model.log_likelihood(DIARY, WEATHER), np.log(1 / 84375))
    added = diaries(estimate="bayes", prior=1)
    near(added.start_[0], 3 / 5)
    near(np.diag(added.transition_), 3 / 5)
    near([added.emission_[0][k] for k in (1, 2, 3)], [[1 / 2, 1 / 7], [3 / 8, 2 / 7], [1 / 8, 4 / 7]])
