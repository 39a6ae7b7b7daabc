"""Models of different kinds compared by evidence: beside enumeration, the chain rule, and each other."""

import itertools

import numpy as np
import pytest
from scipy.special import betaln, gammaln

import tallybayes as tb
from tests.unit.evaluation.every_model import CASES

ROWS = CASES["network"].data
GAPS = CASES["network, gaps"].data
STAR = {"one": ["y"], "two": ["y"], "size": ["y"]}


def bayes(rows=ROWS, target="y", **options):
    columns = {name: tb.Gaussian() if name == "size" else tb.Categorical() for name in rows if name != target}
    return tb.NaiveBayes(columns, **{"prior": 1, **options}).fit(rows, target)


def network(parents, rows=ROWS, **options):
    return tb.BayesianNetwork(parents, **options).fit(rows)


def test_a_star_is_naive_bayes():
    found = tb.compare(
        {"star": network(STAR), "bayes": bayes(), "chain": network({"one": ["y"], "two": ["one"], "size": ["y"]})}
    )
    assert found.bayes_factor("star", "bayes") == pytest.approx(0, abs=1e-9)
    assert found.n_parameters["star"] == found.n_parameters["bayes"]
    assert found.n_rows == 40
    assert found.log_evidence["chain"] == pytest.approx(
        network({"one": ["y"], "two": ["one"], "size": ["y"]}).log_evidence()
    )
    own = {"class_prior": tb.Dirichlet(0.5)}
    other = tb.compare([network(STAR, prior={"y": tb.Dirichlet(0.5)}), bayes(**own)])
    assert other.bayes_factor(0, 1) == pytest.approx(0, abs=1e-9)


def test_networks_are_compared_by_the_chain_rule():
    rows = {"a": [0, 1, 1, 0, 1, 1], "b": [1, 1, 0, 0, 1, 1]}
    models = {"apart": {"a": [], "b": []}, "arrow": {"b": ["a"]}}
    found = tb.compare({name: network(parents, rows) for name, parents in models.items()})
    for name in models:
        total = 0.0
        # add-one: p(next | counts) = (n + 1) / (N + 2), given the parent's level
        seen: dict = {}
        for a, b in zip(rows["a"], rows["b"], strict=True):
            for key, value in (("a", a), (("b", a) if name == "arrow" else "b", b)):
                counted = seen.setdefault(key, [0, 0])
                total += np.log((counted[value] + 1) / (sum(counted) + 2))
                counted[value] += 1
        assert found.log_evidence[name] == pytest.approx(total)


def test_either_target_of_the_same_columns():
    rows = {name: ROWS[name] for name in ("y", "one", "two")}
    found = tb.compare([bayes(rows), bayes(rows, "one")])
    # p(y, one, two) both ways: the same columns, other assumptions
    assert found.n_rows == 40
    by_hand = [bayes(rows).log_evidence(), bayes(rows, "one").log_evidence()]
    assert [found.log_evidence[k] for k in (0, 1)] == pytest.approx(by_hand)


def test_chains_are_compared_with_each_other_and_with_independent_steps():
    rng = np.random.default_rng(0)
    states = [(np.cumsum(rng.random(30) < 0.1) % 2).tolist() for _ in range(5)]
    steps = [(np.array(s) + (rng.random(30) < 0.2)).tolist() for s in states]
    family = tb.Categorical(levels=(0, 1, 2))
    chain = tb.HiddenMarkovModel(columns=family).fit(steps, states)
    flat, labels = np.concatenate(steps)[:, None], np.concatenate(states)
    found = tb.compare(
        {
            "chain": chain,
            "other": chain.reestimate(prior=tb.Dirichlet(3.0)),
            "steps": tb.NaiveBayes(family).fit(flat, labels),
        }
    )
    assert found.best in ("chain", "other")
    assert found.log_evidence["chain"] == pytest.approx(chain.log_evidence())
    starts = np.bincount([s[0] for s in states], minlength=2)
    moves = np.zeros((2, 2))
    for s in states:
        np.add.at(moves, (s[:-1], s[1:]), 1)
    own = sum(betaln(*(row + 1)) for row in (starts, *moves))
    alone = betaln(*(np.bincount(labels) + 1))
    assert found.log_evidence["chain"] - found.log_evidence["steps"] == pytest.approx(own - alone)
    other = [states[0][::-1], *states[1:]]
    with pytest.raises(ValueError, match=r"class|column|follow"):
        tb.compare([chain, tb.HiddenMarkovModel(columns=family).fit(steps, other)])
    swapped = [[0, 1, 0, 1, 1, 0], [0, 0, 1, 1, 0, 1]]
    same = [tb.HiddenMarkovModel(columns=family).fit([[1] * 6], [one]) for one in swapped]
    with pytest.raises(ValueError, match="another order"):
        tb.compare(same)
    with pytest.raises(ValueError, match="only 1 has the columns 'end'"):
        tb.compare([chain, tb.HiddenMarkovModel(columns=family, end_state=True).fit(steps, states)])


def test_mixtures_are_compared_by_a_bound_that_holds():
    rows = {"a": ["u", "u", "v", "v", "u"], "b": ["r", "r", "s", "s", "s"]}
    models = {k: tb.Mixture(k, random_state=0, tol=1e-9, max_iter=2000).fit(rows) for k in (1, 2)}
    found = tb.compare(models)
    assert found.bounds == [1, 2]
    assert "from lower bounds of the log evidence: 1, 2" in repr(found)
    for k, model in models.items():
        assert found.log_evidence[k] == pytest.approx(model.evidence_lower_bound_)

    def complete(components):
        """log p(rows, components), all parameters integrated out under add-one."""
        counts = np.bincount(components, minlength=2)
        total = gammaln(2) - gammaln(2 + len(components)) + gammaln(counts + 1).sum()
        for name in rows:
            values = np.unique(rows[name], return_inverse=True)[1]
            for c in (0, 1):
                total += betaln(*(np.bincount(values[np.array(components) == c], minlength=2) + 1))
        return total

    exact = np.logaddexp.reduce([complete(c) for c in itertools.product((0, 1), repeat=5)])
    assert found.log_evidence[2] <= exact + 1e-9
    independent = network({"a": [], "b": []}, rows)
    mixed = tb.compare({"one": models[1], "network": independent})
    assert mixed.bayes_factor("one", "network") == pytest.approx(0, abs=1e-6)
    assert mixed.bounds == ["one"]


def test_constant_columns_are_left_out_of_every_kind():
    rows = {"y": ["a", "b"] * 5, "x": np.ones(10), "z": np.arange(10.0)}
    columns = {"x": tb.Gaussian(), "z": tb.Gaussian()}
    found = tb.compare([tb.NaiveBayes(columns).fit(rows, "y"), network({"x": ["y"], "z": ["y"]}, rows)])
    assert found.excluded_columns == ["x"]
    assert found.bayes_factor(0, 1) == pytest.approx(0, abs=1e-9)


@pytest.mark.slow_after(2)
@pytest.mark.parametrize(
    ("other", "words"),
    [
        (lambda: network({"one": ["y"]}), "has the columns 'two', 'size'"),
        (lambda: network(STAR, GAPS), "known cells of column"),
        (lambda: network(STAR, {**ROWS, "y": [ROWS["y"][1], *ROWS["y"][1:]]}), "column 'y' has other levels"),
        (lambda: tb.Mixture(random_state=0).fit({k: v for k, v in ROWS.items() if k != "y"}), "has the columns 'y'"),
        (lambda: network(STAR, GAPS, missing="em"), "EM filled in"),
        (lambda: CASES["chain, hidden"].fit(np.arange(6)), "HiddenMarkovModel has no evidence: EM filled in"),
        (lambda: CASES["nearest mean"].fit(np.arange(40)), "generative model of rows"),
        (lambda: CASES["discriminant, gaps"].fit(np.arange(40)), "EM filled in"),
        (lambda: tb.BayesianNetwork.from_tables({"y": []}, {"y": [0, 1]}, {"y": [0.5, 0.5]}), "are user-specified"),
    ],
)
def test_what_cannot_be_compared_is_refused_with_its_reason(other, words):
    with pytest.raises(ValueError, match=words):
        tb.compare([bayes(), other()])
