"""Pictures of Bayesian networks: where boxes and arrows go, and that what is drawn is what the network says."""

from itertools import combinations, pairwise

import matplotlib as mpl
import numpy as np
import pytest
from scipy.stats import entropy
from sklearn.exceptions import NotFittedError

import tallybayes as tb
from tallybayes.errors import DataError, ImpossibleEvidenceError
from tallybayes.plots.layered import lay_out
from tallybayes.plots.network import _BLUE, _PALE

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.colors import to_hex
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle


@pytest.fixture(autouse=True)
def _no_figures_left():
    yield
    plt.close("all")


def fire_alarm():
    tables = {
        "tampering": [0.98, 0.02],
        "fire": [0.99, 0.01],
        "alarm": [[[0.9999, 0.0001], [0.01, 0.99]], [[0.15, 0.85], [0.5, 0.5]]],
        "smoke": [[0.99, 0.01], [0.1, 0.9]],
        "leaving": [[0.999, 0.001], [0.12, 0.88]],
        "report": [[0.99, 0.01], [0.25, 0.75]],
    }
    parents = {"alarm": ["tampering", "fire"], "smoke": "fire", "leaving": "alarm", "report": "leaving"}
    return tb.BayesianNetwork.from_tables(parents, dict.fromkeys(tables, (False, True)), tables)


def random_graph(n, seed, most=3):
    rng = np.random.default_rng(seed)
    return {k: sorted(rng.choice(k, min(k, rng.integers(0, most + 1)), replace=False).tolist()) for k in range(n)}


def random_network(n, seed, n_levels=3):
    rng = np.random.default_rng(seed)
    parents = {f"node {k}": [f"node {j}" for j in above] for k, above in random_graph(n, seed, 2).items()}
    levels = {node: [f"level {k}" for k in range(n_levels)] for node in parents}
    tables = {node: rng.dirichlet(np.ones(n_levels), [n_levels] * len(above)) for node, above in parents.items()}
    return tb.BayesianNetwork.from_tables(parents, levels, tables)


def mixed_network(**parameters):
    rng = np.random.default_rng(5)
    kind = rng.choice(["a", "b"], 80)
    rows = {
        "kind": kind,
        "shop": rng.choice(list("pqrstuvwxyz"), 80),
        "weight": rng.normal(np.where(kind == "a", 0.0, 3.0)),
    }
    return tb.BayesianNetwork({"weight": ["kind"], "shop": ["kind"]}, **parameters).fit(rows)


# ---- The layout ------------------------------------------------------------------------------------------------------

GRAPHS = {
    "one": {"a": []},
    "two apart": {"a": [], "b": []},
    "chain": {k: [k - 1] if k else [] for k in range(6)},
    "every pair": {k: list(range(k)) for k in range(7)},
    "wide star": {k: [0] if k else [] for k in range(40)},
    "many roots": {**{k: [] for k in range(9)}, 9: list(range(9))},
    "a few": random_graph(12, 1),
    "as many as ALARM": random_graph(37, 2, 2),
    "crowded": random_graph(60, 3, 4),
}


def drawn(name):
    parents = GRAPHS[name]
    rng = np.random.default_rng(len(name))
    sizes = {node: (float(rng.uniform(20, 150)), float(rng.uniform(12, 90))) for node in parents}
    return parents, sizes, lay_out(parents, sizes)


def edges_of(sizes, layout, node):
    (x, y), (width, height) = layout.centres[node], sizes[node]
    return x - width / 2, x + width / 2, y - height / 2, y + height / 2


@pytest.mark.parametrize("name", GRAPHS)
def test_boxes_are_apart_and_below_their_parents(name):
    parents, sizes, layout = drawn(name)
    boxes = {node: edges_of(sizes, layout, node) for node in parents}
    for first, second in combinations(boxes.values(), 2):
        apart = first[1] + 5 <= second[0] or second[1] + 5 <= first[0] or first[3] <= second[2] or second[3] <= first[2]
        assert apart
    for node, above in parents.items():
        assert all(boxes[parent][3] < boxes[node][2] for parent in above)
    left, right, top, bottom = np.transpose(list(boxes.values()))
    assert left.min() >= -1e-9
    assert top.min() >= -1e-9
    assert right.max() <= layout.width + 1e-9
    assert bottom.max() <= layout.height + 1e-9


@pytest.mark.parametrize("name", GRAPHS)
def test_arrows_run_from_parents_to_children_and_through_no_box(name):
    parents, sizes, layout = drawn(name)
    assert set(layout.routes) == {(parent, node) for node, above in parents.items() for parent in above}
    boxes = {node: edges_of(sizes, layout, node) for node in parents}
    for (parent, child), route in layout.routes.items():
        start, end = boxes[parent], boxes[child]
        assert route[0] == pytest.approx((layout.centres[parent][0], start[3]))
        assert start[0] <= route[0][0] <= start[1]
        assert route[-1][1] == pytest.approx(end[2])
        assert end[0] <= route[-1][0] <= end[1]
        assert all(y <= next_y + 1e-9 for (_, y), (_, next_y) in pairwise(route))
        for place, ((x, y), (next_x, next_y)) in enumerate(pairwise(route)):
            for left, right, top, bottom in boxes.values():
                beside = next_y <= top + 1e-9 or y >= bottom - 1e-9  # the curve stays between its ends in height
                if place % 2 == 0:
                    assert x == next_x
                    beside |= x <= left or x >= right
                assert beside


def test_long_arrows_keep_clear_of_the_boxes_they_pass():
    layout = lay_out({"a": [], "b": ["a"], "c": ["a", "b"]}, dict.fromkeys("abc", (80.0, 20.0)))
    passing = [x for x, y in layout.routes["a", "c"] if abs(y - layout.centres["b"][1]) <= 10]
    assert len(passing) == 2
    assert min(abs(x - layout.centres["b"][0]) for x in passing) >= 40 + 8


def test_arrows_that_need_not_cross_do_not():
    pairs = {**{f"parent {k}": [] for k in range(6)}, **{f"child {k}": [f"parent {5 - k}"] for k in range(6)}}
    tree = {k: [(k - 1) // 2] if k else [] for k in range(31)}
    rng = np.random.default_rng(0)
    shuffled = {0: []} | {
        int(k): tree[int(k)] for k in sorted(range(1, 31), key=lambda k: (k.bit_length(), rng.random()))
    }
    for parents in (pairs, shuffled):
        layout = lay_out(parents, dict.fromkeys(parents, (30.0, 12.0)))
        ways = list(layout.routes.values())
        for first, second in combinations(ways, 2):
            for (a, b), (c, d) in zip(pairwise(first), pairwise(second), strict=False):
                if a[1] == c[1]:
                    assert (a[0] - c[0]) * (b[0] - d[0]) >= -1e-6


def test_an_only_child_stands_below_its_parent_and_a_star_is_wrapped():
    layout = lay_out(GRAPHS["chain"], dict.fromkeys(range(6), (30.0, 12.0)))
    assert np.ptp([x for x, _ in layout.centres.values()]) < 1e-6
    layout = lay_out(GRAPHS["wide star"], dict.fromkeys(range(40), (30.0, 12.0)))
    assert layout.width < 14 * 46
    root = layout.centres[0][0]
    assert abs(root - layout.width / 2) < 0.25 * layout.width


def test_the_same_graph_is_drawn_the_same():
    assert drawn("crowded")[2] == drawn("crowded")[2]


# ---- Graphs with tables ----------------------------------------------------------------------------------------------


def boxes_in(ax):
    return [patch for patch in ax.patches if isinstance(patch, FancyBboxPatch)]


def bars_in(ax, colour):
    return [p for p in ax.patches if isinstance(p, Rectangle) and to_hex(p.get_facecolor()) == colour.lower()]


def texts_in(ax):
    return [text.get_text() for text in ax.texts]


def assert_words_are_in_boxes(ax):
    ax.figure.canvas.draw()
    frames = [box.get_window_extent() for box in boxes_in(ax)]
    whole = ax.figure.bbox
    for text in ax.texts:
        found = text.get_window_extent()
        assert any(
            frame.x0 - 0.5 <= found.x0
            and found.x1 <= frame.x1 + 0.5
            and frame.y0 - 0.5 <= found.y0
            and found.y1 <= frame.y1 + 0.5
            for frame in frames
        ), text.get_text()
    for frame in frames:
        assert whole.x0 <= frame.x0
        assert whole.y0 <= frame.y0
        assert frame.x1 <= whole.x1
        assert frame.y1 <= whole.y1


def test_tables_are_written_into_the_boxes():
    model = fire_alarm()
    ax = model.plot()
    alarm = ["alarm", "tampering", "fire", "False", "True", "False", "False", "0.9999", "0.0001", "False", "True"]
    alarm += ["0.01", "0.99", "True", "False", "0.15", "0.85", "True", "True", "0.5", "0.5"]
    texts = texts_in(ax)
    start = texts.index("alarm")
    assert texts[start : start + len(alarm)] == alarm
    cells = bars_in(ax, _BLUE)
    shares = np.concatenate([model.table(node).values.ravel() for node in model.graph_.nodes])
    np.testing.assert_allclose([cell.get_alpha() for cell in cells], 0.45 * shares)
    assert len(boxes_in(ax)) == 6
    assert sum(isinstance(patch, FancyArrowPatch) for patch in ax.patches) == 5
    assert_words_are_in_boxes(ax)
    assert texts_in(model.plot(tables=False)) == list(model.graph_.nodes)


def test_large_tables_say_how_large_they_are_and_small_numbers_stay_small():
    rows = {"a": list(range(5)) * 4, "b": [0, 1] * 10, "c": [0] * 19 + [1]}
    texts = texts_in(tb.BayesianNetwork({"b": ["a"], "c": ["a", "b"]}).fit(rows).plot())
    assert texts == ["a", "5 levels", "b", "a", *texts[4:21], "c", "5 × 2 × 2 levels"]
    rare = tb.BayesianNetwork.from_tables({"a": []}, {"a": ["no", "yes", "never"]}, {"a": [1 - 2e-6, 2e-6, 0]})
    assert texts_in(rare.plot())[-3:] == ["≈ 1", "2e-06", "0"]


def test_networks_of_many_nodes_show_names_alone():
    assert len(texts_in(random_network(16, 4).plot())) > 16
    model = random_network(37, 4)
    ax = model.plot()
    assert texts_in(ax) == list(model.graph_.nodes)
    assert_words_are_in_boxes(ax)
    assert min(text.get_fontsize() for text in ax.texts) > 8


def test_unfitted_networks_are_graphs():
    model = tb.BayesianNetwork({"wet": ["rain", "sprinkler"]})
    assert texts_in(model.plot()) == ["rain", "sprinkler", "wet"]
    with pytest.raises(NotFittedError):
        model.plot(evidence={"wet": 1})


def test_rows_maximum_likelihood_does_not_know():
    rows = {"a": [0, 0, 1], "b": [0, 1, 0], "c": [0, 1, 1], "d": [0, 1, 1]}
    model = tb.BayesianNetwork({"c": ["a", "b"], "d": ["c"]}, estimate="mle").fit(rows)
    assert texts_in(model.plot()).count("unknown") == 2
    texts = texts_in(model.plot(evidence={"a": 1}))
    assert texts[texts.index("c") + 1] == texts[texts.index("d") + 1] == "not known"
    assert "not known" not in texts_in(model.reestimate(estimate="map").plot(evidence={"a": 1}))


# ---- Before and after ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["seen", "hinted at", "set", "both"])
def test_bars_are_the_probabilities_before_and_after(how):
    model = fire_alarm()
    soft = {"smoke": {False: 1.0, True: 5.0}}
    evidence = {"seen": {"report": True}, "hinted at": soft, "set": None, "both": {"report": True}}[how]
    do = {"alarm": True} if how in ("set", "both") else None
    ax = model.plot(evidence=evidence, do=do)
    full = bars_in(ax, "#F0F0F0")[0].get_width()
    before = np.concatenate([model.query(node).probabilities for node in model.graph_.nodes])
    after = np.concatenate([model.query(node, evidence, do=do).probabilities for node in model.graph_.nodes])
    lengths = [np.array([bar.get_width() for bar in bars_in(ax, colour)]) for colour in (_PALE, _BLUE)]
    backs = np.array([bar.get_width() for bar in bars_in(ax, "#F0F0F0")])
    np.testing.assert_allclose(lengths[0] / backs, before, atol=1e-12)
    np.testing.assert_allclose(lengths[1] / backs, after, atol=1e-12)
    assert full > 40
    assert_words_are_in_boxes(ax)
    dashed = [p for p in ax.patches if isinstance(p, FancyArrowPatch) and p.get_linestyle() != "-"]
    assert len(dashed) == (2 if do else 0)


def test_what_is_known_is_marked():
    ax = fire_alarm().plot(evidence={"report": True, "smoke": {False: 1, True: 2}}, do={"alarm": False})
    looks = {to_hex(box.get_edgecolor()) for box in boxes_in(ax)}
    assert len(looks) == 3
    for title in ("report = True", "smoke: hinted at", "do(alarm = False)"):
        assert title in texts_in(ax)
    assert ax.get_title() == "pale: before, strong: given report = True, smoke hinted at, do(alarm = False)"
    many = {"report": True, "smoke": False, "alarm": True, "leaving": True}
    assert fire_alarm().plot(evidence=many).get_title().endswith("given report = True, smoke = False, 2 more")


def test_measured_nodes_show_their_parameters_and_means():
    model = mixed_network(estimate="mle")
    texts = texts_in(model.plot())
    mean, variance = model.table("weight").values[0]
    start = texts.index("weight")
    assert texts[start + 1 : start + 7] == ["kind", "mean", "variance", "a", f"{mean:.4g}", f"{variance:.4g}"]
    texts = texts_in(model.plot(evidence={"kind": "b"}))
    before = model.predict({"kind": [None]}, "weight")[0]
    after = model.predict({"kind": ["b"]}, "weight")[0]
    assert f"mean {before:.5g} → {after:.5g}" in texts
    texts = texts_in(model.plot(evidence={"weight": 1.25}))
    assert "weight = 1.25" in texts
    assert f"{model.query('kind', {'weight': 1.25})['a']:.3f}" in texts
    assert texts.count("6 others") == 1


def test_many_levels_become_the_most_probable_and_the_others():
    model = mixed_network()
    ax = model.plot_posteriors({"kind": "a"}, "shop")
    before, after = model.query("shop"), model.query("shop", {"kind": "a"})
    kept = sorted(before, key=lambda level: -max(before[level], after[level]))[:5]
    labels = [tick.get_text() for tick in ax.get_yticklabels()]
    assert set(labels) == {*kept, "6 others"}
    bars = [bar.get_width() for bar in bars_in(ax, _BLUE)]
    assert bars[-1] == pytest.approx(sum(after[level] for level in after if level not in kept))
    assert sum(bars) == pytest.approx(1.0)


def test_pictures_of_any_size_keep_words_in_their_boxes():
    figure, axes = plt.subplots(2, 2, figsize=(7, 5), layout="constrained")
    model = fire_alarm()
    for ax in axes[0]:
        assert model.plot(ax) is ax
        assert_words_are_in_boxes(ax)
    assert model.plot(axes[1, 0], evidence={"report": True}) is axes[1, 0]
    assert model.plot_posteriors({"report": True}, ax=axes[1, 1]) is axes[1, 1]
    figure.canvas.draw()
    assert axes[0, 0].texts[0].get_fontsize() < 8
    big = random_network(37, 4).plot(evidence={"node 3": "level 1"})
    assert_words_are_in_boxes(big)


def test_dollars_and_long_names_are_just_names():
    long = "a name that goes on and on and has $two$ dollars in it, _^{}"
    model = tb.BayesianNetwork({"b": [long]}).fit({long: ["$x$", "y", "$x$"], "b": ["$", "$$", "$"]})
    for ax in (model.plot(), model.plot(evidence={long: "$x$"}), model.plot_posteriors({"b": "$"})):
        ax.figure.canvas.draw()
        assert any("…" in text.get_text() for text in ax.texts)


def test_questions_that_have_no_answer_have_no_picture():
    model = fire_alarm()
    with pytest.raises(DataError, match="no node 'smell'"):
        model.plot(evidence={"smell": True})
    sure = tb.BayesianNetwork.from_tables(
        {"b": ["a"]}, {"a": [0, 1], "b": [0, 1]}, {"a": [1.0, 0.0], "b": [[1.0, 0.0], [0.0, 1.0]]}
    )
    for draw in (lambda: sure.plot(evidence={"b": 1}), lambda: sure.plot_posteriors({"b": 1})):
        with pytest.raises(ImpossibleEvidenceError):
            draw()


# ---- What moved ------------------------------------------------------------------------------------------------------


def headings(ax):
    return [text.get_text() for text in ax.texts if not text.get_text().endswith(" bits")]


def test_what_moved_most_comes_first():
    model, evidence = random_network(20, 7), {"node 19": "level 2", "node 4": {f"level {k}": k + 1 for k in range(3)}}
    ax = model.plot_posteriors(evidence)
    free = [node for node in model.graph_.nodes if node != "node 19"]
    bits = {
        node: entropy(model.query(node, evidence).probabilities, model.query(node).probabilities, base=2)
        for node in free
    }
    order = sorted(free, key=lambda node: -bits[node].round(10))[:12]
    assert headings(ax) == order
    shown = [text.get_text() for text in ax.texts if text.get_text().endswith(" bits")]
    assert shown == [f"{abs(bits[node]):.3f} bits" for node in order]
    after = np.concatenate([model.query(node, evidence).probabilities for node in order])
    before = np.concatenate([model.query(node).probabilities for node in order])
    np.testing.assert_allclose([bar.get_width() for bar in bars_in(ax, _BLUE)], after)
    np.testing.assert_allclose([bar.get_width() for bar in bars_in(ax, _PALE)], before)
    legend = [text.get_text() for text in ax.get_legend().get_texts()]
    assert legend == ["before", "given node 19 = level 2, node 4 hinted at"]


def test_named_nodes_are_drawn_as_they_are_named():
    model = fire_alarm()
    ax = model.plot_posteriors({"report": True}, ["tampering", "report", "fire"])
    assert headings(ax) == ["tampering", "report", "fire"]
    surprise = -np.log2(model.probability_of_evidence({"report": True}))
    assert ax.texts[3].get_text() == f"{surprise:.3f} bits"  # what is seen tells −log₂ of its probability
    assert headings(model.plot_posteriors({"report": True}, "fire")) == ["fire"]
