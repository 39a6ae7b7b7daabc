"""Plots of posteriors of Bayesian networks, and undefined nodes under maximum likelihood."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex
from scipy.stats import entropy

import tallybayes as tb
from tallybayes.errors import DataError, EstimateError, ImpossibleError
from tallybayes.models.network.inference.network_inference import NetworkInference
from tallybayes.plotting.network.node_boxes import AFTER, BEFORE
from tallybayes.plotting.network.posteriors import Change, node_posteriors
from tests.unit.plotting.network_pictures import (
    assert_words_are_in_boxes,
    bars_in,
    boxes_in,
    fire_alarm,
    headings,
    random_network,
    texts_in,
    unseen_network,
)


@pytest.fixture(autouse=True)
def _no_figures_left():
    yield
    plt.close("all")


# ---- What maximum likelihood knows -----------------------------------------------------------------------------------


def test_posteriors_defined_on_one_side():
    ax = unseen_network().plot(given={"a": 0}).axes[0]
    texts = texts_in(ax)
    for node in ("c", "d"):
        assert texts[texts.index(node) :][:6] == [node, "undefined before", "0", "0.750", "1", "0.250"]
    assert texts[texts.index("a = 0") :][:5] == ["a = 0", "0", "1.000", "1", "0.000"]
    assert texts[texts.index("size") + 1] == "mean 3.25 → 1.5"
    assert texts[texts.index("shade") + 1] == "mean undefined → 3.75"
    assert len(bars_in(ax, BEFORE)) == 6  # of a, b and e
    assert len(bars_in(ax, AFTER)) == 10
    assert_words_are_in_boxes(ax)


def test_observed_nodes_with_undefined_prior():
    ax = unseen_network().plot(given={"c": 1}).axes[0]
    texts = texts_in(ax)
    assert texts[texts.index("c = 1") :][:6] == ["c = 1", "undefined before", "0", "0.000", "1", "1.000"]
    for node in ("a", "b"):  # their posteriors depend on the undefined row
        assert texts[texts.index(node) :][:4] == [node, "undefined after", "0", "1"]
    assert texts[texts.index("d") :][:6] == ["d", "undefined before", "0", "0.000", "1", "1.000"]
    assert texts[texts.index("size") + 1] == "mean 3.25 → undefined"
    assert texts[texts.index("shade") + 1] == "mean undefined → 3"
    assert [to_hex(box.get_facecolor()) for box in boxes_in(ax)].count("#fff4dd") == 1
    assert_words_are_in_boxes(ax)


@pytest.mark.parametrize(
    ("observed", "words"),
    [
        ({"a": 0}, {"c": "undefined before", "d": "undefined before", "e": "0.000 bits", "b": "0.000 bits"}),
        ({"c": 1}, {"a": "undefined after", "b": "undefined after", "d": "undefined before", "e": "0.000 bits"}),
        ({"a": 1}, {"e": "0.000 bits", "b": "0.000 bits", "c": "undefined", "d": "undefined"}),
    ],
    ids=["known after", "known on one side", "known on neither"],
)
def test_plot_posteriors_of_undefined_nodes(observed, words):
    model = unseen_network()
    ax = model.plot_posteriors(observed).axes[0]
    assert texts_in(ax) == [text for pair in words.items() for text in pair]
    after = [
        model.query(node, observed).probabilities for node in words if words[node] in ("0.000 bits", "undefined before")
    ]
    np.testing.assert_allclose([bar.get_width() for bar in bars_in(ax, AFTER)], np.concatenate(after))
    before = [model.query(node).probabilities for node in words if words[node] in ("0.000 bits", "undefined after")]
    np.testing.assert_allclose([bar.get_width() for bar in bars_in(ax, BEFORE)], np.concatenate(before))
    ax.figure.canvas.draw()


def test_plot_of_an_undefined_node():
    ax = unseen_network().plot_posteriors({"a": 1}, "d").axes[0]
    assert texts_in(ax) == ["d", "undefined"]
    assert len(ax.get_legend().get_texts()) == 2


def result_or_none(question, node):
    try:
        return question(node)
    except ImpossibleError:
        raise
    except EstimateError:
        return None


@pytest.mark.parametrize("seed", [2, 3, 4, 8])
def test_node_posteriors_equal_single_queries(seed):
    true = random_network(8, seed)
    rows = true.sample(8, random_state=seed)
    seen = {node: str(values[0]) for node, values in rows.items()}
    columns = {node: tb.Categorical(levels=true.levels_[node]) for node in seen}
    rows["size"] = np.random.default_rng(seed).normal(size=8)
    parents = {**true.graph_.parents, "size": ("node 1",)}
    model = tb.BayesianNetwork(parents, estimate="mle", columns={**columns, "size": tb.Gaussian()}).fit(rows)
    some = {node: seen[node] for node in ("node 4", "node 7")}
    hint = {"node 3": {"level 0": 1.0, "level 1": 3.0, "level 2": 0.5}, "node 6": seen["node 6"]}
    answers = []
    for observed in ({}, some, hint):
        for do in ({}, {"node 2": seen["node 2"]}, {"node 2": "level 1", "size": 1.5}):
            posteriors = node_posteriors(model._estimated_network, observed, do)
            for node in model.levels_:
                answers.append(result_or_none(lambda node: model.query(node, observed, do=do).probabilities, node))  # noqa: B023
                assert (node in posteriors) == (answers[-1] is not None)
                if node in posteriors:
                    np.testing.assert_allclose(posteriors[node], answers[-1], atol=1e-12)
        if observed is not hint:
            row = {node: [value] for node, value in observed.items()} or {"node 1": [None]}
            mean = result_or_none(lambda node: model.predict(row, node), "size")  # noqa: B023
            assert node_posteriors(model._estimated_network, observed).get("size") == (
                None if mean is None else pytest.approx(mean)
            )
    assert 0 < sum(answer is None for answer in answers) < len(answers)


def test_plot_propagates_twice(monkeypatch):
    model, calls = random_network(30, 4), []
    plain = NetworkInference.posteriors

    def counted(self, *arguments, **options):
        calls.append(self)
        return plain(self, *arguments, **options)

    monkeypatch.setattr(NetworkInference, "posteriors", counted)
    soft = {"node 3": "level 1", "node 4": {f"level {k}": k + 1 for k in range(3)}}
    for draw in (
        lambda: model.plot(given=soft, do={"node 9": "level 0"}),
        lambda: model.plot_posteriors(soft, do={"node 9": "level 0"}),
    ):
        calls.clear()
        draw()
        assert len(calls) == 2


# ---- What moved ------------------------------------------------------------------------------------------------------


def test_nodes_are_sorted_by_information():
    model, observed = random_network(20, 7), {"node 19": "level 2", "node 4": {f"level {k}": k + 1 for k in range(3)}}
    ax = model.plot_posteriors(observed).axes[0]
    free = [node for node in model.graph_.nodes if node != "node 19"]
    bits = {
        node: entropy(model.query(node, observed).probabilities, model.query(node).probabilities, base=2)
        for node in free
    }
    order = sorted(free, key=lambda node: -bits[node].round(10))[:12]
    assert headings(ax) == order
    shown = [text.get_text() for text in ax.texts if text.get_text().endswith(" bits")]
    assert shown == [f"{abs(bits[node]):.3f} bits" for node in order]
    after = np.concatenate([model.query(node, observed).probabilities for node in order])
    before = np.concatenate([model.query(node).probabilities for node in order])
    np.testing.assert_allclose([bar.get_width() for bar in bars_in(ax, AFTER)], after)
    np.testing.assert_allclose([bar.get_width() for bar in bars_in(ax, BEFORE)], before)
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert legend == ["before", "given node 19 = level 2, node 4: soft evidence"]


def test_named_nodes_keep_their_order():
    model = fire_alarm()
    ax = model.plot_posteriors({"report": True}, ["tampering", "report", "fire"]).axes[0]
    assert headings(ax) == ["tampering", "report", "fire"]
    surprise = -np.log2(model.probability({"report": True}))
    assert ax.texts[3].get_text() == f"{surprise:.3f} bits"  # the evidence has −log₂ p bits of information
    assert headings(model.plot_posteriors({"report": True}, "fire").axes[0]) == ["fire"]


@pytest.mark.parametrize("observed", [None, {"report": True}], ids=["set", "both"])
def test_interventions(observed):
    model, do = fire_alarm(), {"alarm": True}
    ax = model.plot_posteriors(observed, do=do).axes[0]
    free = [node for node in model.graph_.nodes if node not in {"alarm", *(observed or {})}]
    assert sorted(headings(ax)) == sorted(free)
    after = np.concatenate([model.query(node, observed, do=do).probabilities for node in headings(ax)])
    np.testing.assert_allclose([bar.get_width() for bar in bars_in(ax, AFTER)], after)
    bits = dict(zip(headings(ax), [text for text in texts_in(ax) if text.endswith(" bits")], strict=True))
    assert bits["fire"] == "0.000 bits"  # setting an alarm off lights no fire
    assert ax.get_legend().get_texts()[1].get_text().endswith("do(alarm = True)")


def test_intervention_on_an_impossible_level_has_infinite_information():
    never = tb.BayesianNetwork.from_tables(
        {"b": ["a"]}, {"a": [0, 1], "b": [0, 1]}, {"a": [1.0, 0.0], "b": [[1.0, 0.0], [0.0, 1.0]]}
    )
    assert texts_in(never.plot_posteriors(None, do={"a": 1}).axes[0]) == ["b", "∞ bits"]


def test_information_is_never_negative():
    rng = np.random.default_rng(0)
    before = rng.dirichlet(np.ones(4), 200)
    after = before * (1 + 4e-16 * rng.normal(size=before.shape))
    assert (np.sum(after * np.log2(after / before), axis=1) < 0).any()
    assert {Change(*pair).information for pair in zip(before, after, strict=True)} == {"0.000 bits"}


@pytest.mark.parametrize(
    "observed", [None, "fire", ["fire"], 3, np.ones(2)], ids=["none", "name", "list", "3", "array"]
)
def test_invalid_evidence_raises_as_in_query(observed):
    model = fire_alarm()
    with pytest.raises(DataError, match=r"given is .*; expected a mapping, as in"):
        model.plot_posteriors(observed)
    if observed is not None:
        for call in (lambda: model.query("fire", observed), lambda: model.plot(given=observed)):
            with pytest.raises(DataError, match=r"given is .*; expected a mapping, as in"):
                call()


def test_all_nodes_observed_raises():
    model = fire_alarm()
    known = dict.fromkeys(model.graph_.nodes, False)
    with pytest.raises(DataError, match="all discrete nodes are observed"):
        model.plot_posteriors(known)
    fire = {"fire": known.pop("fire")}
    with pytest.raises(DataError, match="all discrete nodes are observed"):
        model.plot_posteriors(known, do=fire)
    assert headings(model.plot_posteriors({**known, **fire}, "fire").axes[0]) == ["fire"]
    with pytest.raises(DataError, match=r"nodes is .*; expected at least one"):
        model.plot_posteriors(fire, [])
    with pytest.raises(DataError, match="no node 'smell'"):
        model.plot_posteriors(fire, "smell")
    measured = tb.BayesianNetwork({"size": []}).fit({"size": [1.0, 2.0, 4.0]})
    with pytest.raises(DataError, match="all discrete nodes are observed"):
        measured.plot_posteriors({"size": 2.0})
    assert texts_in(measured.plot(given={"size": 2.0}).axes[0]) == ["size = 2.0"]
