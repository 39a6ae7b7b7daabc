"""What a notebook shows: run in a real one, as nbclient runs it, and looked at as HTML."""

from html.parser import HTMLParser

import numpy as np
import pytest

import tallybayes as tb

X = np.random.default_rng(0).normal([[0.0, 0.0], [3.0, 1.0]] * 20)
Y = np.array(["<b>", "b"] * 20)  # a label that must stay text
ROWS = {"sky": ["sun", "rain", "sun", "rain"], "wind": ["calm", "calm", "storm", "storm"]}

SHOWN = {
    "a model": lambda: tb.NaiveBayes().fit(X, Y),
    "a discriminant": lambda: tb.GaussianDiscriminant().fit(X, Y),
    "a network": lambda: tb.BayesianNetwork({"wind": ["sky"]}).fit(ROWS),
    "a chain": lambda: tb.HiddenMarkovModel().fit([X], [Y]),
    "a mixture": lambda: tb.Mixture(2, random_state=0).fit(X),
    "distances": lambda: tb.NearestClassMean().fit(X, Y),
    "what was chosen": lambda: tb.AutoClassifier(folds=2).fit(X, Y),
    "its summary": lambda: tb.AutoClassifier(folds=2).fit(X, Y).summary(),
    "its report": lambda: tb.AutoClassifier(folds=2).fit(X, Y).leaderboard_,
    "a tally": lambda: tb.NaiveBayes().fit(X, Y).tally_,
    "a learned value": lambda: tb.fit_distribution([1, 1], tb.Bernoulli()),
    "learned groups": lambda: tb.fit_distribution(X, tb.Gaussian(), group=Y),
    "an evaluation": lambda: tb.evaluate(tb.NaiveBayes().fit(X, Y), X, Y),
    "an evaluation by group": lambda: tb.evaluate(tb.NaiveBayes().fit(X, Y), X, Y, by=["a", "b"] * 20),
    "of densities": lambda: tb.evaluate(tb.Mixture(2, random_state=0).fit(X), X),
    "a cross-validation": lambda: tb.cross_validate(tb.NaiveBayes(), X, Y),
    "a selection": lambda: tb.cross_validate(tb.NaiveBayes(), X, Y, candidates={"estimate": ["mle", "bayes"]}),
    "a comparison": lambda: tb.compare(
        {"naive": tb.NaiveBayes().fit(X, Y), "full": tb.GaussianDiscriminant(estimate="bayes").fit(X, Y)}
    ),
    "a path of priors": lambda: tb.prior_path(tb.NaiveBayes(), X, Y),
    "dependence": lambda: tb.dependence(X, Y),
    "a predictive check": lambda: tb.predictive_check(tb.NaiveBayes().fit(X, Y), X, Y, n_draws=20),
    "a suggestion": lambda: tb.suggest_families(X, Y),
    "an explanation": lambda: tb.NaiveBayes().fit(X, Y).explain(X[:5]),
    "an answer": lambda: tb.BayesianNetwork({"wind": ["sky"]}).fit(ROWS).query("wind", {"sky": "sun"}),
    "what is most probable": lambda: tb.BayesianNetwork({"wind": ["sky"]}).fit(ROWS).most_probable({"sky": "sun"}),
}


class Balanced(HTMLParser):
    """The text of a page whose tags are all closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open, self.text, self.tags = [], [], set()
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        if tag not in ("input", "br", "link", "meta", "path"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag != "path":
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


@pytest.mark.parametrize("name", SHOWN)
def test_everything_is_shown_as_a_table(name):
    found = SHOWN[name]()
    page = found._repr_html_()
    is_model = hasattr(found, "__sklearn_is_fitted__")
    read = Balanced(found._summary_html() if is_model else page)
    assert read.tags & {"table", "pre"}
    assert "b" not in read.tags, "a label became a tag"
    if is_model:  # below scikit-learn's diagram
        assert "sk-top-container" in page
        assert page.endswith(found._summary_html())
        return
    text = "".join(read.text)
    for word in repr(found).replace("│", " ").split():  # what the text says, the table says, too
        assert word.strip("()–'+:,") in text or set(word) <= set("█…more"), f"{word} is not shown"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the packages that run it
def test_a_notebook_runs_and_shows_tables():
    nbformat = pytest.importorskip("nbformat", reason="needs the notebook packages of the test extra")
    nbclient = pytest.importorskip("nbclient", reason="needs the notebook packages of the test extra")
    pytest.importorskip("ipykernel", reason="needs the notebook packages of the test extra")
    cells = [
        "import numpy as np, tallybayes as tb\nX = np.eye(6)[:, :2]\ny = list('ababab')",
        "tb.GaussianDiscriminant().fit(X, y)",
        "tb.NaiveBayes(estimate='mle').fit(X, y)",
        "tb.NaiveBayes().fit(X, y).tally_",
        "tb.fit_distribution([1, 1], tb.Bernoulli())",
        "from sklearn.pipeline import make_pipeline\nmake_pipeline(tb.NaiveBayes()).fit(X, y)",
        "tb.NaiveBayes().fit(X, y).explain(X[:1])",
        "model = tb.BayesianNetwork({'b': ['a']}).fit({'a': [0, 1], 'b': [1, 0]})\nmodel.query('a')",
        "from IPython.core.completer import provisionalcompleter\nwith provisionalcompleter():\n"
        "    names = [one.text for one in get_ipython().Completer.completions('model.que', 9)]\nnames",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    for cell in notebook.cells[1:-1]:
        (output,) = cell.outputs
        assert "<table" in output.data["text/html"], cell.source
        assert output.data["text/plain"]
    assert "query" in notebook.cells[-1].outputs[0].data["text/plain"]
