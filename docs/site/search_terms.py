"""Add the glossary's terms to the search index of a built site: ``python docs/site/search_terms.py build/site``.

Every line of the glossary becomes an answer titled by its terms, which leads to the section that explains them.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

GLOSSARY = Path(__file__).parents[1] / "glossary.md"
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]*)(#[^)\s]*)?\)")
# Words that people type, beside the terms of the glossary.
SYNONYMS = [
    ("i.i.d.: independent and identically distributed rows", "bernoulli-model.html#one-parameter-two-outcomes", ""),
    (
        "merge or combine models fitted on separate data",
        "sufficient-statistics.html#sums-add-incremental-learning-and-merging",
        "the sum of two models or tallies",
    ),
    ("SQL: fit in a database", "data-sources.html#sql-databases", "DuckDB, PostgreSQL, SQLite, SQLAlchemy, Spark"),
    ("SQL: export a model as a query", "exporting-models.html#sql-score-inside-the-database", "to_sql"),
    (
        "decision boundary plot",
        "gaussian-discriminants.html#six-covariances-from-the-same-moments",
        "plot_decision_boundary",
    ),
    (
        "classify short texts or documents: text classification",
        "text.html#text-as-a-column",
        "tb.Text, sentiment analysis of reviews",
    ),
    ("decode a sequence", "hidden-markov-models.html#forward-algorithm-viterbi-forward-backward", "Viterbi, predict"),
    ("calibrate probabilities", "calibration.html#automatic-choice", "calibrate, calibration="),
    (
        "missing cells, probabilities with missing values",
        "missing-data.html#naive-bayes-skip-the-cell",
        "None, NaN",
    ),
    (
        "GDPR, right to erasure: delete or remove a customer's rows",
        "streaming-drift-and-unlearning.html#machine-unlearning-and-receipts",
        "forget, receipt",
    ),
    (
        "MAP estimate and 95 % interval of a coin under Beta(2, 2)",
        "bernoulli-model.html#mean-or-mode-posterior-mean-and-map",
        "tb.fit_distribution",
    ),
    (
        "explain a prediction: why this class, SHAP values",
        "naive-bayes.html#explain-a-prediction",
        "explain, contributions of columns",
    ),
    ("compare models on held-out rows", "cross-validation.html#model-selection", "candidates=, best model"),
    (
        "naive Bayes vs logistic regression: compare generative and discriminative models",
        "generative-or-discriminative.html#when-to-prefer-which",
        "",
    ),
    (
        "GroupKFold, StratifiedKFold, TimeSeriesSplit",
        "cross-validation.html#grouped-and-ordered-rows",
        "folds by group or in order of time: groups=, order=",
    ),
    (
        "95 % (95%) credible or confidence interval of a metric",
        "evaluation-metrics.html#credible-intervals-of-metrics",
        "tb.evaluate",
    ),
    ("ignore or leave out a column, such as an id", "naive-bayes.html#mixed-columns", "columns="),
    ("random forest, gradient boosting, XGBoost, LightGBM", "count-forests.html", "tb.CountForest, tb.CountBoosting"),
]
GREEK = {"α": "alpha", "β": "beta", "γ": "gamma", "ε": "epsilon", "λ": "lambda", "μ": "mu", "σ": "sigma", "χ": "chi"}
# Typographic characters by their ASCII spellings.
ASCII = str.maketrans({"–": "-", "—": "-", "’": "'", "é": "e", "ö": "o", "ó": "o", **GREEK})


def glossary() -> list[tuple[str, str, str]]:
    """Return the terms of the glossary, the first place that explains each of them, and the rest of its line."""
    found = []
    for line in GLOSSARY.read_text(encoding="utf-8").splitlines():
        cells = [cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        link = LINK.search(cells[-1]) if len(cells) > 2 else None
        if link:
            file = link[1] or GLOSSARY.name
            found.append(
                (plain(cells[0]), file.replace(".md", ".html") + (link[2] or ""), plain("; ".join(cells[1:-1])))
            )
    return found


def plain(text: str) -> str:
    """Return Markdown without its marks."""
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text).replace("`", "").replace("*", "")


def entries(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return an answer for every term, with the section that it leads to, which has to be in the index."""
    sections = {item["location"]: item for item in items}
    found = []
    for term, place, text in [*glossary(), *SYNONYMS]:
        section = sections[place]
        spelled = term.translate(ASCII)
        words = f"{term}: {text}" + (f" ({spelled})" if spelled != term else "")
        found.append({**section, "title": term, "text": words, "path": [*section["path"], section["title"], term]})
    return found


def add(site: Path) -> int:
    """Add the entries to the index of a site, before all others of the same rank, and return their number."""
    index = json.loads((site / "search.json").read_text(encoding="utf-8"))
    items = [item for item in index["items"] if not item.get("term")]
    new = [{**entry, "term": True} for entry in entries(items)]
    text = json.dumps({**index, "items": [*new, *items]}, ensure_ascii=False, separators=(",", ":"))
    (site / "search.json").write_text(text, encoding="utf-8")
    (site / "search.js").write_text(f"var __index = {text}", encoding="utf-8")
    return len(new)


if __name__ == "__main__":
    sys.stderr.write(f"{add(Path(sys.argv[1]))} terms of the glossary and synonyms in the search\n")
