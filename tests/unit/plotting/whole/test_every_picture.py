"""Every picture that the package draws can be read with 2 and 30 classes, 3 and 300 columns; none is left out."""

import importlib
import inspect
import pkgutil
import warnings
from functools import cache

import matplotlib as mpl
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import tallybayes as tb
from tests.unit.plotting.readable import assert_readable
from tests.unit.plotting.whole.test_readable import LONG, chain, evaluated, labels, numbers

mpl.use("Agg")
import matplotlib.pyplot as plt

CLASSIFIERS = {
    "NaiveBayes": tb.NaiveBayes(),
    "GaussianDiscriminant": tb.GaussianDiscriminant("tied_diagonal"),
    "NearestClassMean": tb.NearestClassMean("euclidean"),
    "AveragedOneDependence": tb.AveragedOneDependence(),
    "TreeAugmentedNaiveBayes": tb.TreeAugmentedNaiveBayes(),
    "AutoClassifier": tb.AutoClassifier(single=True, folds=2),
    "Mixture": None,
}
BASES = {
    "ModelCurves",
    "ParameterDistribution",
    "ClassConditionalModel",
    "Classifier",
    "PlottedResult",
    "OneDependenceClassifier",
}  # drawn as their subclasses


@pytest.fixture(autouse=True)
def _no_figures_left():
    yield
    plt.close("all")


def methods():
    """All methods that draw, by the name of their class."""
    found = set()
    for module in pkgutil.walk_packages(tb.__path__, "tallybayes."):
        if module.name.startswith("tallybayes.plotting") or module.name.endswith("_compiled"):
            continue
        for kind in vars(importlib.import_module(module.name)).values():
            if inspect.isclass(kind) and kind.__module__.startswith("tallybayes.") and kind.__name__ not in BASES:
                found |= {
                    (kind.__name__, name) for name in dir(kind) if name.startswith("plot") and name != "plot_grid"
                }
    return found


@cache
def fitted(kind, n_classes, n_columns):
    rows, y = numbers(n_classes, n_columns, 120)
    if kind == "Mixture":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return tb.Mixture(n_classes, max_iter=2, random_state=0).fit(rows), rows, None
    return clone(CLASSIFIERS[kind]).fit(rows, y), rows, y


def worded(kind, n_classes, n_words):
    rng = np.random.default_rng(0)
    texts = [" ".join(f"word{(k * 7 + w) % n_words}" for w in rng.integers(0, 5, 20)) for k in range(120)]
    y = np.array([f"{LONG} {k % n_classes}" for k in range(120)])
    if kind == "Mixture":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            return tb.Mixture(n_classes, columns=tb.Text(), max_iter=2, random_state=0).fit(texts), texts, None
    return tb.NaiveBayes(tb.Text()).fit(texts, y), texts, y


ARGUMENTS = {
    "plot_words": lambda rows, y: {},
    "plot_columns": lambda rows, y: {"X": rows, "y": y} if y is not None else {},
    "plot_decision_boundary": lambda rows, y: {"X": rows, "y": y},
    "plot_joint": lambda rows, y: {"X": rows, "y": y},
    "plot_class_means": lambda rows, y: {"shape": (15, 20) if len(rows) == 300 else (1, 3)},
    "plot_graph": lambda rows, y: {},
    "plot_explanation": lambda rows, y: {"row": {name: column[:1] for name, column in rows.items()}},
    "plot_projection": lambda rows, y: {"X": rows, "y": y},
}
OF_CLASSIFIERS = sorted(pair for pair in methods() if pair[0] in CLASSIFIERS and pair[1] != "plot_convergence")


def sizes():
    """Few classes and many columns, many and few, for every function; small for models that share it with others."""
    found, seen = [], set()
    for kind, method in sorted(OF_CLASSIFIERS, key=lambda pair: list(CLASSIFIERS).index(pair[0])):
        function = getattr(getattr(tb, kind), method)
        found += [(kind, method, *size) for size in ([(4, 3)] if function in seen else [(2, 300), (30, 3)])]
        seen.add(function)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "method", "n_classes", "n_columns"), sizes(), ids=str)
def test_pictures_of_classifiers(kind, method, n_classes, n_columns):
    model, rows, y = (worded if method == "plot_words" else fitted)(kind, n_classes, n_columns)
    picture = getattr(model, method)(**ARGUMENTS[method](rows, y))
    assert_readable(picture)
    assert len(picture.to_frame())


def learned(n):
    values = {f"{LONG} {k}": k + 1 for k in range(n)}
    return tb.fit_distribution([name for name, times in values.items() for _ in range(times)], tb.Categorical())


def network(n):
    rows = {f"{LONG} {k}": np.arange(60) // (k + 1) % 2 for k in range(n)}
    names = list(rows)
    parents = {name: [names[(k - 1) // 2]] if k else [] for k, name in enumerate(names)}
    return tb.BayesianNetwork(parents).fit(rows), rows


def path(n):
    rows, y = labels(n, 3, 4, 300)
    return tb.prior_path(tb.NaiveBayes(prior=1), rows, y, [0.1, 1.0, 10.0])


def curve(n):
    rows, y = numbers(n, 3, 600)
    return tb.learning_curves({f"{LONG} {k}": tb.NaiveBayes() for k in range(3)}, rows, y, [120, 480], n_repeats=2)


def states(n):
    model, steps = chain(n, 3)
    return model, steps


def numbers_of_states(n):
    steps = np.random.default_rng(0).normal(size=200)
    model = tb.HiddenMarkovModel(columns=tb.Gaussian(), max_iter=2, tol=1e9, random_state=0)
    return tb.select_n_states(model, steps, range(1, n + 1), by="bic")


def streamed(n):
    rng = np.random.default_rng(0)
    rows = {f"{LONG} {k}": rng.normal(size=60) for k in range(n)} | {"y": np.arange(60) % 2}
    models = {f"{LONG} {k}": tb.NaiveBayes() for k in range(min(n, 9))}
    return tb.prequential(models, rows, "y", batch_size=10, drift=True)


def check(n):
    rows, y = labels(n, 3, 4)
    return tb.predictive_check(tb.NaiveBayes().fit(rows, y), rows, y, n_draws=5)


def in_sequence(n):
    rng = np.random.default_rng(0)
    state = np.arange(3 * n) // 3
    steps, names = [{"x": rng.normal(state)} for _ in range(4)], np.array([f"{LONG} {k}" for k in state])
    return tb.cross_validate(tb.HiddenMarkovModel(), steps, [names] * 4, folds=2)


def evidence(n):
    model, rows, _ = fitted("NaiveBayes", n, 3)
    return model.explain({name: column[:1] for name, column in rows.items()})


def lines(n):
    """A line for every group of a few, and panels of several degrees."""
    rng = np.random.default_rng(0)
    rows = {LONG: rng.normal(size=20 * n), "group": np.array([f"{LONG} {k % n}" for k in range(20 * n)])}
    rows["y"] = rows[LONG] * 2 + rng.normal(size=20 * n)
    if n == 2:
        return tb.LinearRegression(by="group").fit(rows, "y").plot(rows, "y")
    del rows["group"]
    return tb.LinearRegression(4).fit(rows, "y").plot(rows, "y", candidates={"degree": [1, 2, 4], "prior": [0.1, 1e6]})


def some_labeled(model, n):
    rows, y = numbers(n, 3, 120)
    return climbed(model.set_params(unlabeled="em"), rows, np.where(np.arange(120) % 4, None, y))


def climbed(model, *data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.set_params(max_iter=4).fit(*data)


def audited(n):
    rows, y = numbers(2, n, 300)
    model = tb.NaiveBayes().fit({name: column[:150] for name, column in rows.items()}, y[:150])
    first = next(iter(rows))
    late = {name: column[150:] + (name == first) for name, column in rows.items()}
    return tb.audit(model, late, y[150:])


DRAWN = {
    ("Mixture", "plot_convergence"): lambda n: climbed(
        tb.Mixture(2, n_init=n, random_state=0), numbers(2, 3)[0]
    ).plot_convergence(),
    ("HiddenMarkovModel", "plot_convergence"): lambda n: climbed(
        tb.HiddenMarkovModel(2, n_init=n, random_state=0), [chain(2, 3)[1]]
    ).plot_convergence(),
    ("NaiveBayes", "plot_convergence"): lambda n: some_labeled(tb.NaiveBayes(), n).plot_convergence(),
    ("GaussianDiscriminant", "plot_convergence"): lambda n: some_labeled(
        tb.GaussianDiscriminant("tied"), n
    ).plot_convergence(),
    ("BayesianNetwork", "plot_convergence"): lambda n: climbed(
        tb.BayesianNetwork({"b": ["a"]}, missing="em"),
        {"a": [None, *"xyyyx"] * n, "b": [*"xyxyx", None] * n},
    ).plot_convergence(),
    ("Audit", "plot"): lambda n: audited(n).plot(),
    ("Beta", "plot"): lambda n: tb.Beta(np.arange(1, n + 1.0), 2.0).plot(),
    ("Dirichlet", "plot"): lambda n: tb.Dirichlet(np.arange(1.0, n + 1)).plot(),
    ("Gamma", "plot"): lambda n: tb.Gamma(np.arange(1, n + 1.0), 2.0).plot(),
    ("NormalInverseGamma", "plot"): lambda n: (
        tb.fit_distribution(np.arange(4.0 * n) % 7, tb.Gaussian(), group=np.arange(4 * n) % n).posterior().plot()
    ),
    ("NormalInverseWishart", "plot"): lambda n: (
        tb.fit_distribution(np.random.default_rng(0).normal(size=(99, min(n, 5))), tb.MultivariateGaussian())
        .posterior()
        .plot()
    ),
    ("LinearNormalInverseGamma", "plot"): lambda n: (
        tb.fit_distribution(np.random.default_rng(0).normal(size=(99, min(n, 5))), tb.LinearGaussian())
        .posterior()
        .plot()
    ),
    ("LinearRegression", "plot"): lambda n: lines(n),
    ("Hypotheses", "plot"): lambda n: tb.Hypotheses({f"{LONG} {k}": (k + 1) / (n + 1) for k in range(n)}).plot(),
    ("FittedDistribution", "plot"): lambda n: learned(n).plot(),
    ("FittedWithMissing", "plot"): lambda n: tb.fit_distribution(
        [*(f"{LONG} {k}" for k in range(n)), None], tb.WithMissing(tb.Categorical())
    ).plot(),
    ("Structure", "plot"): lambda n: tb.learn_structure(
        {f"{LONG} {k}": (np.arange(60) + k // 2) // 3 % 2 for k in range(n)}, score="bic", n_restarts=0
    ).plot(),
    ("BayesianNetwork", "plot"): lambda n: network(n)[0].plot(),
    ("BayesianNetwork", "plot_graph"): lambda n: network(n)[0].plot_graph(),
    ("BayesianNetwork", "plot_posteriors"): lambda n: network(n)[0].plot_posteriors({f"{LONG} 0": 1}),
    ("Sensitivity", "plot"): lambda n: network(n)[0].sensitivity({f"{LONG} 0": 1}, {f"{LONG} 1": 1}).plot(),
    ("Dependence", "plot"): lambda n: tb.dependence(*numbers(2, n)).plot(),
    ("Evaluation", "plot_confusion"): lambda n: evaluated(n).plot_confusion(),
    ("Evaluation", "plot_reliability"): lambda n: evaluated(n).plot_reliability(),
    ("Evaluation", "plot_precision_recall"): lambda n: evaluated(n).plot_precision_recall(),
    ("SequenceEvaluation", "plot_confusion"): lambda n: in_sequence(n).plot_confusion(),
    ("SequenceEvaluation", "plot_reliability"): lambda n: in_sequence(n).plot_reliability(),
    ("SequenceEvaluation", "plot_precision_recall"): lambda n: in_sequence(n).plot_precision_recall(),
    ("Explanation", "plot"): lambda n: evidence(n).plot(),
    ("FeatureImportance", "plot"): lambda n: (
        tb.NaiveBayes().fit(*numbers(3, n, 300)).feature_importance(*numbers(3, n, 300)).plot()
    ),
    ("HiddenMarkovModel", "plot_graph"): lambda n: states(n)[0].plot_graph(),
    ("HiddenMarkovModel", "plot_states"): lambda n: states(n)[0].plot_states(states(n)[1]),
    ("HiddenMarkovModel", "plot_transitions"): lambda n: states(n)[0].plot_transitions(),
    ("Forecast", "plot"): lambda n: states(n)[0].forecast([states(n)[1]], n)[0].plot(),
    ("StateSelection", "plot"): lambda n: numbers_of_states(n).plot(),
    ("Trellis", "plot"): lambda n: states(n)[0].trellis([states(n)[1]])[0].plot(),
    ("BiasVariance", "plot"): lambda n: tb.bias_variance(
        tb.LinearRegression(), np.arange(6.0)[:, None], np.ravel, candidates={"prior": list(range(1, n + 1))}, n_draws=3
    ).plot(),
    ("LearningCurves", "plot"): lambda n: curve(n).plot(),
    ("PredictiveCheck", "plot"): lambda n: check(n).plot(),
    ("Prequential", "plot"): lambda n: streamed(n).plot(),
    ("Prequential", "plot_drift"): lambda n: streamed(n).plot_drift(),
    ("PriorPath", "plot"): lambda n: path(n).plot(),
}


@pytest.mark.slow
@pytest.mark.parametrize("n", [2, 30])
@pytest.mark.parametrize(("kind", "method"), sorted(DRAWN), ids=str)
def test_pictures_of_all_else(kind, method, n):
    picture = DRAWN[kind, method](n)
    assert_readable(picture)
    assert len(picture.to_frame())


def test_no_picture_is_left_out():
    assert methods() - set(OF_CLASSIFIERS) == set(DRAWN)
    assert {method for _, method in OF_CLASSIFIERS} == set(ARGUMENTS)
