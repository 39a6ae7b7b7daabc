"""Plots of Bayesian networks: boxes with CPTs or posteriors."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import FancyArrowPatch
from sklearn.exceptions import NotFittedError

import tallybayes as tb
from tallybayes.errors import DataError, ImpossibleError
from tallybayes.plotting.network.node_boxes import AFTER, BEFORE
from tests.unit.plotting.network_pictures import (
    assert_words_are_in_boxes,
    bars_in,
    boxes_in,
    fire_alarm,
    mixed_network,
    random_network,
    texts_in,
    unseen_network,
)


@pytest.fixture(autouse=True)
def _no_figures_left():
    yield
    plt.close("all")


# ---- Graphs with tables ----------------------------------------------------------------------------------------------


def test_boxes_show_cpts():
    model = fire_alarm()
    ax = model.plot().axes[0]
    alarm = ["alarm", "tampering", "fire", "False", "True", "False", "False", "0.9999", "0.0001", "False", "True"]
    alarm += ["0.01", "0.99", "True", "False", "0.15", "0.85", "True", "True", "0.5", "0.5"]
    texts = texts_in(ax)
    start = texts.index("alarm")
    assert texts[start : start + len(alarm)] == alarm
    cells = bars_in(ax, AFTER)
    shares = np.concatenate([model.cpt(node).values.ravel() for node in model.graph_.nodes])
    np.testing.assert_allclose([cell.get_alpha() for cell in cells], 0.45 * shares)
    assert len(boxes_in(ax)) == 6
    assert sum(isinstance(patch, FancyArrowPatch) for patch in ax.patches) == 5
    assert_words_are_in_boxes(ax)
    assert texts_in(model.plot(tables=False).axes[0]) == list(model.graph_.nodes)


def test_large_cpts_show_their_size():
    rows = {"a": list(range(5)) * 4, "b": [0, 1] * 10, "c": [0] * 19 + [1]}
    texts = texts_in(tb.BayesianNetwork({"b": ["a"], "c": ["a", "b"]}).fit(rows).plot().axes[0])
    assert texts == ["a", "5 levels", "b", "a", *texts[4:21], "c", "5 × 2 × 2 levels"]
    rare = tb.BayesianNetwork.from_tables({"a": []}, {"a": ["no", "yes", "never"]}, {"a": [1 - 2e-6, 2e-6, 0]})
    assert texts_in(rare.plot().axes[0])[-3:] == ["≈ 1", "2e-06", "0"]


@pytest.mark.slow
def test_networks_of_many_nodes_show_names_only():
    assert len(texts_in(random_network(16, 4).plot().axes[0])) > 16
    model = random_network(37, 4)
    ax = model.plot().axes[0]
    assert texts_in(ax) == list(model.graph_.nodes)
    assert_words_are_in_boxes(ax)
    assert min(text.get_fontsize() for text in ax.texts) > 8


def test_unfitted_networks_are_graphs():
    model = tb.BayesianNetwork({"wet": ["rain", "sprinkler"]})
    assert texts_in(model.plot().axes[0]) == ["rain", "sprinkler", "wet"]
    with pytest.raises(NotFittedError):
        model.plot(given={"wet": 1})


def test_undefined_rows_of_cpts():
    rows = {"a": [0, 0, 1], "b": [0, 1, 0], "c": [0, 1, 1], "d": [0, 1, 1]}
    model = tb.BayesianNetwork({"c": ["a", "b"], "d": ["c"]}, estimate="mle").fit(rows)
    assert texts_in(model.plot().axes[0]).count("undefined") == 2
    texts = texts_in(model.plot(given={"a": 1}).axes[0])
    assert texts[texts.index("c") + 1] == texts[texts.index("d") + 1] == "undefined"
    assert "undefined" not in "".join(texts_in(model.reestimate(estimate="map").plot(given={"a": 1}).axes[0]))


# ---- Before and after ------------------------------------------------------------------------------------------------


@pytest.mark.slow_after(2)
@pytest.mark.parametrize("how", ["seen", "hinted at", "set", "both"])
def test_bars_show_probabilities_before_and_after(how):
    model = fire_alarm()
    soft = {"smoke": {False: 1.0, True: 5.0}}
    observed = {"seen": {"report": True}, "hinted at": soft, "set": None, "both": {"report": True}}[how]
    do = {"alarm": True} if how in ("set", "both") else None
    ax = model.plot(given=observed, do=do).axes[0]
    full = bars_in(ax, "#F0F0F0")[0].get_width()
    before = np.concatenate([model.query(node).probabilities for node in model.graph_.nodes])
    after = np.concatenate([model.query(node, observed, do=do).probabilities for node in model.graph_.nodes])
    lengths = [np.array([bar.get_width() for bar in bars_in(ax, color)]) for color in (BEFORE, AFTER)]
    backs = np.array([bar.get_width() for bar in bars_in(ax, "#F0F0F0")])
    np.testing.assert_allclose(lengths[0] / backs, before, atol=1e-12)
    np.testing.assert_allclose(lengths[1] / backs, after, atol=1e-12)
    assert full > 40
    assert_words_are_in_boxes(ax)
    dashed = [p for p in ax.patches if isinstance(p, FancyArrowPatch) and p.get_linestyle() != "-"]
    assert len(dashed) == (2 if do else 0)


def test_observed_nodes_are_marked():
    ax = fire_alarm().plot(given={"report": True, "smoke": {False: 1, True: 2}}, do={"alarm": False}).axes[0]
    looks = {to_hex(box.get_edgecolor()) for box in boxes_in(ax)}
    assert len(looks) == 3
    for title in ("report = True", "smoke: soft evidence", "do(alarm = False)"):
        assert title in texts_in(ax)
    assert ax.get_title() == "pale: before, strong: given report = True, smoke: soft evidence, do(alarm = False)"
    many = {"report": True, "smoke": False, "alarm": True, "leaving": True}
    assert fire_alarm().plot(given=many).axes[0].get_title().endswith("given report = True, smoke = False, 2 more")


def test_continuous_nodes_show_parameters_and_means():
    model = mixed_network(estimate="mle")
    texts = texts_in(model.plot().axes[0])
    table, start = model.cpt("weight"), texts.index("weight")
    heads, numbers = list(table.columns), [f"{value:.4g}" for value in table.values[0]]
    assert texts[start + 1 : start + 3 + 2 * len(heads)] == ["kind", *heads, "a", *numbers]
    texts = texts_in(model.plot(given={"kind": "b"}).axes[0])
    before = model.predict({"kind": [None]}, "weight")[0]
    after = model.predict({"kind": ["b"]}, "weight")[0]
    assert f"mean {before:.5g} → {after:.5g}" in texts
    texts = texts_in(model.plot(given={"weight": 1.25}).axes[0])
    assert "weight = 1.25" in texts
    assert f"{model.query('kind', {'weight': 1.25})['a']:.3f}" in texts
    assert texts.count("6 others") == 1


def test_blocks_show_their_number_of_columns():
    block = np.random.default_rng(0).normal(size=(4, 3))
    model = unseen_network(block=block)
    for observed, words in (({"a": 0}, ", undefined before"), ({"a": 1}, ", undefined"), ({"d": 0, "c": 0}, None)):
        texts = texts_in(model.plot(given=observed).axes[0])
        assert texts[texts.index("block") + 1] == "3 columns" + (", undefined before" if words is None else words)
    texts = texts_in(model.reestimate(estimate="bayes").plot(given={"a": 0}).axes[0])
    assert texts[texts.index("block") + 1] == "3 columns"
    wide = tb.BayesianNetwork({"wide": []}).fit({"wide": np.tile(block, 2)})
    assert texts_in(wide.plot().axes[0]) == ["wide", "6 columns"]
    given = tb.BayesianNetwork({"wide": ["a"]}).fit({"wide": np.tile(block, 2), "a": [0, 0, 1, 1]})
    assert texts_in(given.plot().axes[0])[-2:] == ["wide", "6 columns, given 2 levels"]


def test_many_levels_show_the_most_probable():
    model = mixed_network()
    ax = model.plot_posteriors({"kind": "a"}, "shop").axes[0]
    before, after = model.query("shop"), model.query("shop", {"kind": "a"})
    kept = sorted(before, key=lambda level: -max(before[level], after[level]))[:5]
    labels = [tick.get_text() for tick in ax.get_yticklabels()]
    assert set(labels) == {*kept, "6 others"}
    bars = [bar.get_width() for bar in bars_in(ax, AFTER)]
    assert bars[-1] == pytest.approx(sum(after[level] for level in after if level not in kept))
    assert sum(bars) == pytest.approx(1.0)


@pytest.mark.slow
def test_text_fits_into_boxes_at_any_size():
    figure, axes = plt.subplots(2, 2, figsize=(7, 5), layout="constrained")
    model = fire_alarm()
    for ax in axes[0]:
        assert model.plot(ax).axes[0] is ax
        assert_words_are_in_boxes(ax)
    assert model.plot(axes[1, 0], given={"report": True}).axes[0] is axes[1, 0]
    assert model.plot_posteriors({"report": True}, ax=axes[1, 1]).axes[0] is axes[1, 1]
    figure.canvas.draw()
    assert axes[0, 0].texts[0].get_fontsize() < 8
    big = random_network(37, 4).plot(given={"node 3": "level 1"}).axes[0]
    assert_words_are_in_boxes(big)


def test_special_and_long_names():
    long = "a name that goes on and on and has $two$ dollars in it, _^{}"
    model = tb.BayesianNetwork({"b": [long]}).fit({long: ["$x$", "y", "$x$"], "b": ["$", "$$", "$"]})
    for picture in (model.plot(), model.plot(given={long: "$x$"}), model.plot_posteriors({"b": "$"})):
        (ax,) = picture.axes
        ax.figure.canvas.draw()
        assert any("…" in text.get_text() for text in ax.texts)


def test_invalid_evidence_raises():
    model = fire_alarm()
    with pytest.raises(DataError, match="no node 'smell'"):
        model.plot(given={"smell": True})
    sure = tb.BayesianNetwork.from_tables(
        {"b": ["a"]}, {"a": [0, 1], "b": [0, 1]}, {"a": [1.0, 0.0], "b": [[1.0, 0.0], [0.0, 1.0]]}
    )
    for draw in (lambda: sure.plot(given={"b": 1}), lambda: sure.plot_posteriors({"b": 1})):
        with pytest.raises(ImpossibleError):
            draw()


def edge_colors(ax):
    """The boxes' edges, by what is written into them first."""
    ax.figure.canvas.draw()
    found = {}
    for box in boxes_in(ax):
        frame = box.get_window_extent()
        inside = [text for text in ax.texts if frame.contains(*text.get_window_extent().get_points().mean(axis=0))]
        found[max(inside, key=lambda text: text.get_window_extent().y1).get_text()] = to_hex(box.get_edgecolor())
    return found


@pytest.mark.slow
@pytest.mark.parametrize("given", [None, {"report": True}])
def test_highlighted_paths_blankets_and_effects(given):
    network = fire_alarm()
    plain = edge_colors(network.plot().axes[0])["fire"]
    for shown, words in (
        (network.active_path("tampering", "smoke", "report"), ["ends", "active path", "given"]),
        (network.markov_blanket("fire"), ["node", "children", "spouses"]),
        (network.causal_effect("alarm", "smoke"), ["treatment", "outcome"]),
        ({"a cause": "fire", "others": ["smoke", "report"]}, ["a cause", "others"]),
        (["fire", "smoke"], ["highlighted"]),
    ):
        ax = network.plot(highlight=shown, given=given).axes[0]
        assert [text.get_text() for text in ax.get_legend().get_texts()] == words
        colors = edge_colors(ax)
        marks = getattr(shown, "marks", shown)
        nodes = marks.values() if isinstance(marks, dict) else [marks]
        marked = {node for some in nodes for node in ([some] if isinstance(some, str) else some)}
        names = {node: next(name for name in colors if name.split(" ")[0] == node) for node in network.graph_.nodes}
        if given is None:
            assert {node for node, name in names.items() if colors[name] != plain} == marked
        assert len({colors[names[node]] for node in marked}) == len(words)
        assert_words_are_in_boxes(ax)


def test_edges_of_a_path_are_thick():
    network = fire_alarm()
    path = network.active_path("tampering", "smoke", "report")
    arrows = [patch for patch in network.plot(highlight=path).axes[0].patches if isinstance(patch, FancyArrowPatch)]
    widths = sorted(arrow.get_linewidth() for arrow in arrows)
    assert sum(width > 2 * widths[0] for width in widths) == len(path.edges) == 3


@pytest.mark.slow
def test_highlight_of_many_and_unknown_nodes():
    network = random_network(80, 1)
    ax = network.plot(highlight=network.markov_blanket("node 5")).axes[0]
    assert_words_are_in_boxes(ax)
    assert len(boxes_in(ax)) == 80
    assert network.plot(highlight=[]).axes[0].get_legend() is None
    with pytest.raises(DataError, match="no node 'flood'"):
        network.plot(highlight={"water": "flood"})
