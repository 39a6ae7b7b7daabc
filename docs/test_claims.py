"""What README.md claims is true: the matrix of models, and a test or a measured row for every other claim."""

import re
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import tallybayes as tb

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
LEVELS = ("AveragedOneDependence", "TreeAugmentedNaiveBayes", "BayesianNetwork", "HiddenMarkovModel")
FORESTS = {"CountForest": {"n_trees": 20}, "CountBoosting": {"max_trees": 20}}


def matrix():
    """The cells of README's table of models, by model and capability."""
    lines = [line for line in README.split("\n## Models\n")[1].split("\n## ")[0].splitlines() if line.startswith("|")]
    heads = [cell.strip() for cell in lines[0].strip("|").split("|")][1:]
    return {
        (model, head): cell.strip()
        for line in lines[2:]
        for model in re.findall(r"`(\w+)`", line.split("|")[1])
        for head, cell in zip(heads, line.strip("|").split("|")[1:], strict=True)
    }


MATRIX = matrix()


def rows(model, seed=0, n=120):
    """Columns of numbers or of levels, whichever the model is for, and what is predicted from them."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    x = rng.normal(y[:, None], 1.0, (n, 2))
    columns = {"a": x[:, 0], "b": x[:, 1]}
    if model in LEVELS:
        columns = {name: np.array(["low", "middle", "high"])[np.digitize(x, [0, 1])] for name, x in columns.items()}
    return columns, x.sum(axis=1) if model == "LinearRegression" else np.array(["no", "yes"])[y]


@cache
def choice():
    """What AutoClassifier chooses, so that two of them can be merged."""
    return tb.AutoClassifier().fit(*rows("AutoClassifier")).spec_


def new(model, **parameters):
    if model == "AutoClassifier":
        return tb.AutoClassifier(spec=choice(), **parameters)
    if model == "BayesianNetwork":
        return tb.BayesianNetwork({"kind": [], "a": ["kind"], "b": ["kind"]}, **parameters)
    return getattr(tb, model)(**FORESTS.get(model, {}), **parameters)


def fitted(model, columns, y):
    """A model that is fitted to rows; `y` is None for rows without labels."""
    if model == "HiddenMarkovModel":
        table = [list(zip(*columns.values(), strict=True))]
        made = new(model, n_states=2, random_state=0) if y is None else new(model)
        return made.fit(table, None if y is None else [list(y)])
    if model == "BayesianNetwork":
        kind = [None] * len(columns["a"]) if y is None else list(y)
        made = new(model, columns={"kind": tb.Categorical(levels=["no", "yes"]), ...: "auto"}, missing="em")
        return made.fit({**columns, "kind": kind})
    if model == "Mixture":
        return new(model, random_state=0).fit(columns)
    return new(model).fit(columns, y)


def fitted_like(first, model, columns, y):
    """A model that can be merged with the first: the trees of a forest are grown once."""
    return first.without_rows().partial_fit(columns, y) if model in FORESTS else fitted(model, columns, y)


def tally_of(model):
    """The tally of a model, or those of the members of an ensemble and the counts of their trees."""
    models = [member.model for member in model.members_] if hasattr(model, "members_") else [model]
    return [one.counts_ if hasattr(one, "counts_") else one.tally_ for one in models]


def same(first, second):
    pairs = zip(tally_of(first), tally_of(second), strict=True)
    return all(a.isclose(b) if hasattr(a, "isclose") else a == b for a, b in pairs)


def joined(first, second):
    return {name: np.concatenate([first[name], second[name]]) for name in first}


def merges(model):
    (x1, y1), (x2, y2) = rows(model, 0), rows(model, 1, n=100)
    one = fitted(model, x1, y1)
    two = fitted_like(one, model, x2, y2)
    try:
        merged = one + two
    except (tb.TallybayesError, TypeError):
        return False
    if model == "HiddenMarkovModel":
        return merged.tally_.isclose(one.tally_ + two.tally_)
    return same(merged, fitted_like(one, model, joined(x1, x2), np.concatenate([y1, y2])))


def forgets(model):
    (x1, y1), (x2, y2) = rows(model, 0), rows(model, 1, n=100)
    one = fitted(model, x1, y1)
    try:
        both = one + fitted_like(one, model, x2, y2)
        if model == "HiddenMarkovModel":
            both.forget([list(zip(*x2.values(), strict=True))], [list(y2)])
        elif model == "BayesianNetwork":
            both.forget({**x2, "kind": y2})
        else:
            both.forget(x2, y2)
    except (tb.TallybayesError, TypeError, AttributeError):
        return False
    return same(both, one)


def uses_unlabeled(model):
    columns, y = rows(model)
    if model in ("HiddenMarkovModel", "BayesianNetwork", "Mixture"):
        return fitted(model, columns, None).tally_ is not None
    some = [label if k % 3 else None for k, label in enumerate(y)]
    try:
        new(model, unlabeled="em").fit(columns, some)
    except (tb.TallybayesError, TypeError):
        return False
    return True


def accepts_missing(model):
    columns, y = rows(model)
    made = fitted(model, columns, y)
    row = {"a": [None], "b": [columns["b"][0]]}
    try:
        if model == "HiddenMarkovModel":
            made.score_samples([[(None, columns["b"][0])]])
        elif model == "BayesianNetwork":
            made.predict_proba(row, "kind")
        else:
            made.predict(row)
    except tb.TallybayesError:
        return False
    return True


def explains(model):
    columns, y = rows(model)
    made = fitted(model, columns, y)
    return hasattr(made, "explain") and "a" in made.explain({name: x[:1] for name, x in columns.items()}).to_dict(0)


def exports(model):
    formats = {"SQL": "to_sql", "ONNX": "to_onnx", "BIF": "to_bif", "JSON": "to_json"}
    return ", ".join(name for name, method in formats.items() if hasattr(getattr(tb, model), method))


CHECKS = {
    "merge, add rows": merges,
    "forget rows": forgets,
    "unlabeled rows (EM)": uses_unlabeled,
    "missing values": accepts_missing,
    "explain": explains,
}


@pytest.mark.parametrize(("model", "head"), [key for key in MATRIX if key[1] in CHECKS])
def test_the_matrix_of_models(model, head):
    if (model, head) == ("LinearRegression", "missing values"):
        columns, y = rows(model)
        columns["a"][0] = np.nan
        with pytest.warns(tb.TallybayesWarning, match="1 of 120 rows are not counted"):
            fitted(model, columns, y)
        return
    assert CHECKS[head](model) == (MATRIX[model, head] != "no")


@pytest.mark.parametrize("model", sorted({model for model, _ in MATRIX}))
def test_the_formats_of_the_matrix(model):
    assert MATRIX[model, "export"] == (exports(model) or "no")


def test_forgetting_keeps_what_was_chosen():
    columns, y = rows("AutoClassifier")
    model = tb.AutoClassifier().fit(columns, y)
    spec = model.spec_
    some = {name: column[:20] for name, column in columns.items()}
    assert model.forget(some, y[:20]).spec_ == spec
    assert model.n_rows_ == len(y) - 20


# The beginning of every sentence of the sections below, and the test or the measured row that shows it.
CLAIMS = {
    "Without a compiler the package installs with NumPy kernels": "tests/unit/test_install.py",
    '`pip install ".[cli]"` adds the command': "tests/unit/test_install.py",
    "`AutoClassifier` cross-validates": "tests/unit/models/ensemble/test_auto_classifier.py",
    "`model.leaderboard_` shows the candidates": "tests/unit/models/ensemble/test_auto_classifier.py",
    "`fit` also accepts data frames": "tests/unit/data/sql/test_databases.py",
    "**Models can be merged": "tests/laws/test_counting_laws.py",
    "A model stores counts and moments": "tests/laws/test_statistics_laws.py",
    "No row is read again": "tests/laws/test_one_tally.py",
    "**Cross-validation needs no refits": "tests/unit/models/classification/test_held_out_rows.py",
    "The model of a fold is": "tests/unit/models/classification/test_held_out_rows.py",
    "**Maximum likelihood, MAP": "tests/laws/test_belief_laws.py",
    '`model.reestimate(estimate="map")` needs no data': "tests/unit/models/classification/test_classifier_fit.py",
    "**Models are fitted where the data are": "tests/unit/data/sql/test_databases.py",
    "Files are read in batches": "tests/laws/test_source_laws.py",
    "**The same design covers sequences": "tests/laws/test_own_family_in_models.py",
    "There are hidden Markov models": "docs/test_claims.py",
    "A model fitted by EM cannot forget rows": "tests/unit/estimation/em/test_missing_cells.py",
    "Full covariances with missing values": "tests/unit/estimation/em/test_missing_cells.py",
    "Inference in Bayesian networks is exact": "tests/unit/models/network/inference/test_likelihood_weighting.py",
    "A network whose cliques exceed": "tests/unit/models/network/test_continuous_components.py",
    "`forget` removes rows from all counts.": "docs/test_claims.py",
    "Trees, bins, families and weights that were chosen": "docs/test_claims.py",
    "Windows runs on the NumPy kernels": "tests/unit/test_install.py",
    "macOS has not been tested": "",  # says what is not shown
    "Nothing is released on PyPI yet": "",
    "Formats of files and names may change": "",
}


def claims():
    """The sentences of the sections that claim something."""
    text = re.sub(r"```.*?```", "", README, flags=re.DOTALL)
    parts = dict(zip(*[iter(re.split(r"^## (.*)$", text, flags=re.MULTILINE)[1:])] * 2, strict=True))
    prose = "\n\n".join(parts[name] for name in ("Install", "First classifier", "What is different", "Limits"))
    prose = re.sub(r" \((?:\[[^\]]*\]\([^)]*\)[,\s]*)+\)", "", prose)
    prose = re.sub(r"^(?:\d\.|-) ", "\n\n", prose, flags=re.MULTILINE)
    paragraphs = [" ".join(paragraph.split()) for paragraph in prose.split("\n\n")]
    return [s for paragraph in paragraphs for s in re.split(r"(?<=\.)\**\s+(?=[A-Z`*]|macOS)", paragraph) if s]


def test_every_claim_has_a_test_or_a_measured_row():
    found = claims()
    assert [claim for claim in found if not any(claim.startswith(start) for start in CLAIMS)] == []
    assert [start for start in CLAIMS if not any(claim.startswith(start) for claim in found)] == []
    assert [file for file in CLAIMS.values() if not (ROOT / file).exists()] == []
