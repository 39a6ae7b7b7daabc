"""Labels and names of strangers, in text and pictures: they steer no terminal, tear no table, and are no formulas."""

import matplotlib as mpl
import numpy as np
import pytest

import tallybayes as tb
from tallybayes.errors import DataError, FileError, LabelError, printable
from tallybayes.plotting.style import words

mpl.use("Agg")
STEERING = ["\x1b[31mred\x1b[0m", "two\nlines", "turned\u202eround", "\x9b1m\x07", "tab\tand\rback", "bell\u2028\u200b"]
FORMULAS = ["$10-$20", "$\\frac{1}$", "_hidden", "", "\\$5", "a_b^{c"]
rng = np.random.default_rng(0)
N = 60


def rows_of(labels: list[str]) -> tuple[dict, list, str]:
    """A table whose every name and label is odd: {name: column}, classes, the name of the target."""
    classes = [labels[k % 3] for k in range(N)]
    shift = np.arange(N) % 3
    number, other = f"{labels[0]} n", f"{labels[1]} m"
    columns = {number: shift + rng.normal(size=N), other: rng.normal(size=N)}
    columns[f"{labels[2]} label"] = [labels[3 + (k // 2) % 3] for k in range(N)]
    target = f"{labels[3]} y"
    return columns | {target: classes}, classes, target


def texts(labels: list[str]):
    """Everything that prints itself, made of such labels."""
    rows, classes, target = rows_of(labels)
    names = [name for name in rows if name != target]
    model = tb.NaiveBayes().fit(rows, target)
    one = {name: rows[name][:1] for name in names}
    yield model.tally_
    yield model
    yield model.explain({name: rows[name][:2] for name in names})
    yield model.show_work(one)
    evaluation = tb.evaluate(model, rows, target, by=names[2])
    yield evaluation
    yield tb.cross_validate(tb.NaiveBayes(), rows, target, folds=3, candidates=[{}, {"estimate": "map"}])
    yield tb.dependence(rows, target)
    yield tb.suggest_families(rows, target)
    yield tb.predictive_check(model, rows, target, n_draws=20)
    weak = tb.NormalInverseGamma(0, 1, 2, 1)
    yield tb.compare({labels[0]: model, labels[1]: model.reestimate(prior=[weak])})
    yield tb.fit_distribution(classes, tb.Categorical())
    network = tb.BayesianNetwork({names[2]: [target], names[0]: [target]}).fit(rows)
    yield network
    yield network.tally_
    yield network.query([target, names[2]])
    yield network.query(target, {names[2]: labels[3]})
    yield network.most_probable({names[2]: labels[3]})
    yield network.cpt(names[2])
    yield network.cpt(names[0])
    chain = tb.HiddenMarkovModel().fit([classes], [classes])
    yield chain.tally_


def test_what_is_printed_steers_no_terminal_and_tears_no_table():
    plain = [f"p{k}" for k in range(6)]
    for strange, usual in zip(texts(STEERING), texts(plain), strict=True):
        shown = strange if isinstance(strange, str) else repr(strange)
        assert all(c == "\n" or c.isprintable() for c in shown), shown
        assert shown.count("\n") == (usual if isinstance(usual, str) else repr(usual)).count("\n"), shown


def test_errors_carry_no_raw_escapes():
    rows, classes, target = rows_of(STEERING)
    model = tb.NaiveBayes(unseen="error").fit(rows, target)
    names = [name for name in rows if name != target]
    cases = [
        (lambda: tb.NaiveBayes().fit(rows, "no\x1b such"), DataError),
        (lambda: model.drop_class("no\x1b such"), LabelError),
        (lambda: model.predict({name: ["\x9bm"] if "label" in name else [0.0] for name in names}), LabelError),
        (lambda: tb.BayesianNetwork({STEERING[0]: [STEERING[1]], STEERING[1]: [STEERING[0]]}).graph_, DataError),
        (lambda: tb.BayesianNetwork({"a": []}).fit({"a": classes}).query("a", {"\x1b": 1}), DataError),
        (lambda: model.tally_ + tb.NaiveBayes().fit({names[0]: rows[names[0]]}, classes).tally_, ValueError),
    ]
    for ask, kind in cases:
        with pytest.raises(kind) as caught:
            ask()
        assert all(c == "\n" or c.isprintable() for c in str(caught.value)), str(caught.value)


def test_paths_in_errors_are_printable(tmp_path):
    path = tmp_path / "odd\x1b[31m"
    path.write_bytes(b"nothing")
    with pytest.raises(FileError) as caught:
        tb.load(path)
    assert "\\x1b[31m" in str(caught.value)
    assert "\x1b" not in str(caught.value)


def test_what_can_be_printed_stays_as_it_is():
    for text in ("", "a b", "naïve – Bayes", "日本", "😀", "\\n", 1, True, None, 0.5):
        assert printable(text) == str(text)
    assert printable("a\nb\x1b\u202e\ud800") == "a\\nb\\x1b\\u202e\\ud800"


def pictures(labels: list[str]):
    rows, classes, target = rows_of(labels)
    names = [name for name in rows if name != target]
    model = tb.NaiveBayes().fit(rows, target)
    yield model.explain({name: rows[name][:2] for name in names}).plot()
    yield model.plot_columns()
    evaluation = tb.evaluate(model, rows, target, by=names[2])
    yield evaluation.plot_confusion()
    yield evaluation.plot_reliability()
    yield evaluation.plot_precision_recall()
    yield tb.dependence(rows, target).plot()
    yield tb.predictive_check(model, rows, target, n_draws=20).plot(names[0])
    yield tb.predictive_check(model, rows, target, n_draws=20).plot(names[2])
    pair = np.stack([rows[names[0]], rows[names[1]]], axis=1)
    discriminant = tb.GaussianDiscriminant(covariance="tied").fit(pair, classes)
    yield discriminant.plot_decision_boundary(pair, classes)
    yield discriminant.plot_projection(pair, classes)
    chain = tb.HiddenMarkovModel().fit([classes], [classes])
    yield chain.plot_states(classes)
    yield chain.plot_transitions()
    network = tb.BayesianNetwork({names[2]: [target], names[0]: [target]}).fit(rows)
    yield network.plot()
    yield network.plot(given={names[2]: labels[3]})
    yield network.plot_posteriors({names[2]: labels[3]})


@pytest.mark.slow
@pytest.mark.parametrize("labels", [FORMULAS, STEERING], ids=["formulas", "steering"])
def test_pictures_show_labels_as_they_are(labels):
    import matplotlib.pyplot as plt
    from matplotlib.text import Text

    for found in pictures(labels):
        figure = found.figure
        figure.canvas.draw()  # a formula that is none raises here
        for text in figure.findobj(Text):
            shown = text.get_text()
            assert all(c == "\n" or c.isprintable() for c in shown), shown
            formula = text.get_parse_math() and text._preprocess_math(shown)[1]
            assert not formula or "\\mathdefault" in shown, shown  # matplotlib's own numbers
        plt.close(figure)


def test_legends_show_every_class():
    import matplotlib.pyplot as plt

    pair, classes = rng.normal(size=(6, 2)), ["_a", "", "$b$"] * 2
    ax = tb.GaussianDiscriminant(covariance="tied").fit(pair, classes).plot_projection(pair, classes).axes[0]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["''", "\\$b\\$", " _a"]
    plt.close(ax.figure)
    assert words("a$b") == "a\\$b"
