"""The built site: it needs nothing from elsewhere, and its search finds the terms that courses use."""

import json
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec

import pages
import pytest
import search_terms
import subjects

import tallybayes as tb

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("zensical") is None, reason="needs Zensical: pip install 'tallybayes[docs]'"),
]
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="needs Node.js, which runs the site's search")

# Terms as people type them, and the section each has to lead to: the page, and a pattern for its anchor.
TERMS = {
    "data sparsity": "(priors-and-smoothing|naive-bayes).html#",
    "MAP as regularization": "ml-map-and-bayesian-estimates.html#.*regularization",
    "maximum likelihood estimation": "(bernoulli-model|ml-map-and-bayesian-estimates).html#.*maximum-likelihood",
    "i.i.d.": "(bernoulli-model|sufficient-statistics).html",
    "hypothesis space": "finite-hypotheses.html",
    "shared covariance": "gaussian-discriminants.html",
    "LDA direction": "gaussian-discriminants.html#.*direction",
    "feature importance": "(naive-bayes|evaluation-metrics).html",
    "plate notation": "(naive-bayes|bayesian-networks|network-analysis).html",
    "missing values": "missing-data.html",
    "SQL": "(exporting-models|data-sources).html",
    "posterior averaging": "finite-hypotheses.html#.*averag",
    "Laplace smoothing": "priors-and-smoothing.html",
    "add-one": "priors-and-smoothing.html",
    "pseudo counts": "(priors-and-smoothing|bernoulli-model).html",
    "zero frequency": "(bernoulli-model|naive-bayes|priors-and-smoothing).html#.*zero-frequency",
    "MDL": "model-comparison.html#.*mdl",
    "Kullback-Leibler": "ml-map-and-bayesian-estimates.html#.*kullback-leibler",
    "Ng and Jordan": "generative-or-discriminative.html#.*ng-and-jordan",
    "bag of words": "text.html",
    "nearest centroid": "nearest-class-mean.html",
    "confusion matrix": "evaluation-metrics.html",
    "CPT": "bayesian-networks.html#.*cpt",
    "explaining away": "bayesian-networks.html#.*explaining-away",
    "d-separation": "network-analysis.html#.*d-separation",
    "sensitivity analysis": "network-analysis.html#.*sensitivity",
    "forward algorithm": "hidden-markov-models.html#.*forward",
    "Viterbi": "hidden-markov-models.html#.*viterbi",
    "Baum-Welch": "hidden-markov-models.html#.*baum-welch",
    "unlearning": "(streaming-drift-and-unlearning|sufficient-statistics).html",
    "incremental learning": "(sufficient-statistics|streaming-drift-and-unlearning|naive-bayes).html#.*incremental",
    "merge models": "(sufficient-statistics|cookbook).html",
    "Spark": "data-sources.html#spark",
    "spam": "spam-filter.html",
    # What newcomers look for.
    "fit a CSV": "command-line.html#fit",
    "missing cells": "missing-data.html#",
    "explain prediction": "naive-bayes.html#explain-a-prediction",
    "remove rows": "(cookbook|streaming-drift-and-unlearning).html#",
    "add-one prior": "priors-and-smoothing.html#.*add-one",
    "MAP Beta(2, 2)": "bernoulli-model.html#",
    "credible interval": "(bernoulli-model|uncertainty-and-decisions).html#",
    "QDA LDA": "gaussian-discriminants.html",
    "decision boundary": "gaussian-discriminants.html#",
    "short texts": "text.html#",
    "decode sequence": "hidden-markov-models.html#.*viterbi",
    "HMM without labels": "hidden-markov-models.html#.*without",
    "alarm burglary": "(first-network|bayesian-networks).html",
    "learn structure": "(network-learning|reference/learn_structure).html",
    "cross-validate groups": "(cross-validation|reference/cross_validate).html",
    "calibrate": "calibration.html#",
    "PostgreSQL": "data-sources.html#",
    "export SQL": "exporting-models.html#",
    "Maildir": "spam-filter.html#",
    "QDA vs LDA": "gaussian-discriminants.html",
    "naive Bayes vs logistic regression": "generative-or-discriminative.html#",
    "compare models": "(cross-validation.html#model-selection|model-comparison.html#)",
    "why this prediction?": "naive-bayes.html#explain-a-prediction",
    "how to explain a prediction": "naive-bayes.html#explain-a-prediction",
    "SHAP": "naive-bayes.html#explain-a-prediction",
    "GroupKFold": "cross-validation.html#grouped-and-ordered-rows",
    "95 %": "(bernoulli-model|evaluation-metrics).html#",
    "95%": "(bernoulli-model|evaluation-metrics).html#",
    "delete a customer": "streaming-drift-and-unlearning.html#machine-unlearning",
    "GDPR": "streaming-drift-and-unlearning.html#machine-unlearning",
    "combine models": "sufficient-statistics.html#.*merging",
    "sentiment analysis": "text.html#",
    "text classification": "text.html#",
    "SQLAlchemy": "data-sources.html#sql-databases",
    "leave out id column": "naive-bayes.html#mixed-columns",
    "XGBoost": "count-forests.html",
    "random forest": "count-forests.html",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The built site, with the terms in its search."""
    folder = tmp_path_factory.mktemp("site")
    pages.write(folder)
    command = [sys.executable, "-m", "zensical", "build", "--strict", "--config-file", str(folder / "mkdocs.yml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    search_terms.add(folder / "site")
    return folder / "site"


def test_the_site_fetches_nothing(site):
    made = list(site.rglob("*.html"))
    references = [page for every in subjects.pages().values() for page in every]
    assert len(made) > len(pages.origins()) + len(references)
    fetched = re.compile(r"<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=[\"']?(https?:[^\"'\s>]*)")
    for page in made:
        assert not fetched.findall(page.read_text(encoding="utf-8")), page


@pytest.fixture(scope="module")
def answers(site):
    """The locations of the first three answers to every term."""
    items = json.loads((site / "search.json").read_text(encoding="utf-8"))["items"]
    script = pages.HERE / "search_answers.js"
    command = ["node", str(script), str(site)]
    done = subprocess.run(command, input=json.dumps(list(TERMS)), capture_output=True, text=True, check=True)
    return {
        term: [items[index]["location"] for index in found[:3]]
        for term, found in zip(TERMS, json.loads(done.stdout), strict=True)
    }


@needs_node
@pytest.mark.parametrize("term", TERMS)
def test_the_search_leads_to_the_section_of_a_term(answers, term):
    assert any(re.match(TERMS[term], location) for location in answers[term]), answers[term]


@pytest.fixture(scope="module")
def axe(tmp_path_factory):
    """A folder with axe and what drives the browser, which npm installs."""
    if CHROMIUM is None or shutil.which("npm") is None:
        pytest.skip("needs Chromium and npm")
    folder = tmp_path_factory.mktemp("axe")
    command = ["npm", "install", "--silent", "--prefix", str(folder), "axe-core@4", "puppeteer-core@24"]
    if subprocess.run(command, capture_output=True, check=False, timeout=120).returncode:
        pytest.skip("npm cannot install axe-core")
    return folder / "node_modules"


def test_axe_finds_no_violations(site, axe, tmp_path):
    """On the home page, a chapter, a page of the reference and a report, at both widths, light and dark."""
    rows = {"sky": ["sun", "sun", "rain", "rain", None] * 12, "wind": [float(k % 7) for k in range(60)]}
    labels = ["yes", "yes", "no", "no", "no"] * 12
    tb.NaiveBayes().fit(rows, labels).report(rows, labels).save(tmp_path / "report.html")
    shown = [site / name for name in ("index.html", "ml-map-and-bayesian-estimates.html", "reference/NaiveBayes.html")]
    urls = [page.as_uri() for page in (*shown, tmp_path / "report.html")]
    command = ["node", str(pages.HERE / "axe_violations.js"), str(axe), CHROMIUM, *urls]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=240)
    assert json.loads(done.stdout) == []
