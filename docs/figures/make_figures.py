"""Draw the pictures of the handbook: ``python docs/figures/make_figures.py`` writes them next to this file.

Each is one call that readers have, too. Names on the command line draw only these. Real data are read from
``../shared/data``; without these, their pictures stay.
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import tallybayes as tb
from tallybayes.apps.spam import spam_calibration, spam_prequential, spam_score
from tallybayes.datasets import make_penguins

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent / "experiments"))
import generative_or_discriminative as pairs  # noqa: E402
from adult import adult  # noqa: E402
from hidden_markov import climbed, ice_cream, quakes  # noqa: E402
from networks import ALARM, clinic, fire_alarm, workers  # noqa: E402
from real_data import DATA, mnist  # noqa: E402

# ---- What is drawn --------------------------------------------------------------------------------------------------

COLUMNS = {("island", "sex"): tb.Categorical(), ("bill_mm", "mass_g"): tb.Gaussian(), "eggs": tb.Poisson()}
BIRD = {"island": ["Dream"], "bill_mm": [44.5], "mass_g": [None], "sex": ["female"], "eggs": [2]}
IRIS, DIGITS, CELLS = load_iris(), load_digits(), load_breast_cancer(as_frame=True)
SPECIES = IRIS.target_names[IRIS.target]
TUMOUR = CELLS.target.map({0: "malignant", 1: "benign"})
TIERS = [["family"], ["mental work", "physical work"], ["smoking"], ["pressure", "proteins"]]
FIVE, OF_FIVE = {"x": [-2.0, -1.0, 0.0, 1.0, 2.0]}, [5.0, 0.0, 1.0, 1.0, 4.0]
DOZEN = np.linspace(-2, 2, 12)[:, None]
WAVE = {"x": np.sort(np.random.default_rng(3).uniform(-1, 1, 15))}
OF_WAVE = np.sin(3 * WAVE["x"]) + 0.2 * np.random.default_rng(4).normal(size=15)


def tossed(heads: int, tails: int) -> tb.FittedDistribution:
    """A coin."""
    return tb.fit_distribution([1] * heads + [0] * tails, tb.Bernoulli())


def bags() -> tb.Hypotheses:
    """The five bags of finite-hypotheses.md."""
    shares = {"none": 0, "a quarter": 1 / 4, "half": 1 / 2, "three quarters": 3 / 4, "all": 1}
    return tb.Hypotheses(shares, prior=[0.1, 0.2, 0.4, 0.2, 0.1])


def strange(theta: float) -> float:
    """Three quarters of the mass close to fair, one quarter spread over coins filed to favor heads."""
    return float(np.exp(-0.5 * ((theta - 0.5) / 0.02) ** 2) + 0.06 * (0.6 <= theta <= 0.9))


def birds() -> tb.NaiveBayes:
    """The model of naive-bayes.md."""
    return tb.NaiveBayes(COLUMNS).fit(make_penguins(300), "species")


def measured_birds() -> tb.Evaluation:
    """The penguins of evaluation-metrics.md."""
    return tb.evaluate(birds(), make_penguins(1000, seed=1), "species")


def leaning() -> tuple[np.ndarray, np.ndarray]:
    """Two classes whose columns are correlated."""
    y = np.repeat([0, 1], 5000)
    noise = np.random.default_rng(2).multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], len(y))
    return np.where(y[:, None] == 1, 0.7, -0.7) + noise, y


def digits_of_mnist() -> tb.NaiveBayes:
    """A Bernoulli for every pixel."""
    images, digits = mnist("train")
    return tb.NaiveBayes(tb.Bernoulli()).fit(images > 127, digits)


def petals(covariance: str) -> tb.Plot:
    """Two columns in which the species differ in shape, under one of the covariances."""
    X = pd.DataFrame(IRIS.data[:, [1, 2]], columns=["sepal width, cm", "petal length, cm"])
    return tb.GaussianDiscriminant(covariance, estimate="unbiased").fit(X, SPECIES).plot_decision_boundary(X, SPECIES)


@cache
def three_clouds() -> tuple[tb.GaussianDiscriminant, pd.DataFrame, np.ndarray]:
    """The three stated Gaussians of gaussian-discriminants.md, and a hundred draws from each."""
    means = pd.DataFrame({"tilted": [0, 0], "upright": [6, 1], "round": [2, 6]}, index=["x₁", "x₂"]).T
    spreads = {"tilted": [[4, 2], [2, 2]], "upright": [[1, 0], [0, 4]], "round": [[1, 0], [0, 1]]}
    model = tb.GaussianDiscriminant.from_parameters(means, spreads)
    drawn = [model.sample(100, given=label, random_state=0) for label in spreads]
    return model, pd.concat([pd.DataFrame(rows) for rows, _ in drawn]), np.repeat(list(spreads), 100)


def ring_and_core(polar: bool) -> tb.Plot:
    """A core within a ring: a full covariance in the plane, a tied one where columns are radius and angle."""
    angle = np.linspace(0, 2 * np.pi, 60, endpoint=False)
    circle, which = np.stack([np.cos(angle), np.sin(angle)], axis=1), np.repeat(["core", "ring"], 60)
    x, y = (np.concatenate([circle, 3 * circle]) + np.random.default_rng(0).normal(0, 0.1, (120, 2))).T
    columns = {"radius": np.hypot(x, y), "angle": np.arctan2(y, x)} if polar else {"x₁": x, "x₂": y}
    return (
        tb.GaussianDiscriminant("tied" if polar else "full").fit(columns, which).plot_decision_boundary(columns, which)
    )


def bumps() -> tuple[np.ndarray, np.ndarray]:
    """Class 0 about 0, class 1 about 2 and about 6."""
    rng = np.random.default_rng(0)
    zero, one = rng.normal(0, 1, 200_000), rng.normal(np.repeat([2, 6], 100_000), 1)
    return np.concatenate([zero, one]), np.repeat([0, 1], 200_000)


def two_bumps() -> tb.Plot:
    """p(x | class), as the bins of so many rows have it."""
    x, y = bumps()
    return tb.NaiveBayes({"x": tb.Binned(np.linspace(-4, 10, 57))}).fit({"x": x}, y).plot_columns()


def one_step() -> tb.Plot:
    """p(class | x), of the same bins."""
    x, y = bumps()
    here = abs(x - 3) < 6
    return tb.NaiveBayes({"x": tb.Binned(np.linspace(-3, 9, 49))}).fit({"x": x[here]}, y[here]).plot_decision_boundary()


def star() -> tb.BayesianNetwork:
    """The ten mails of naive-bayes.md, as a graph whose edges all leave the class."""
    mails = ["1101", "1101", "0101", "1001", "0011", "1000", "0010", "0001", "0111", "0000"]
    words = dict(
        zip(("card", "winner", "winter", "you"), np.array([list(map(int, mail)) for mail in mails]).T, strict=True)
    )
    return tb.BayesianNetwork({word: ["kind"] for word in words}, estimate="mle").fit(
        words | {"kind": ["spam"] * 4 + ["ham"] * 6}
    )


def judged_digits() -> tb.Plot:
    """Six test digits of naive-bayes.md, each titled with its predicted class."""
    ink, shown = DIGITS.data > 7, slice(1006, 1012)
    model = tb.NaiveBayes(tb.Bernoulli()).fit(ink[:1000], DIGITS.target[:1000])
    sure = model.predict_proba(ink[shown]).max(axis=1)
    told = zip(DIGITS.target[shown], model.predict(ink[shown]), sure, strict=True)
    names = [f"{truth} as {taken}, {p:.2f}" for truth, taken, p in told]
    return tb.NaiveBayes(tb.Bernoulli(), estimate="mle").fit(ink[shown], names).plot_class_means((8, 8))


def linked_irises() -> tb.BayesianNetwork:
    """The conditional linear Gaussians of bayesian-networks.md."""
    names = ["sepal length", "sepal width", "petal length", "petal width"]
    flowers = dict(zip(names, IRIS.data.T, strict=True)) | {"species": IRIS.target_names[IRIS.target]}
    above = {"sepal length": ["species"], "petal length": ["species", "sepal length"]}
    return tb.BayesianNetwork(above | {"petal width": ["species", "petal length"]}).fit(flowers)


def nearest(metric: str) -> tb.Plot:
    """Three classes side by side along x₁, spread far along x₂; one row in twelve is mismeasured in x₁."""
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1, 2], 400)
    centers = np.array([[-2.0, 3.0], [0.0, -4.0], [2.0, 3.0]])
    spread = np.stack([np.where(rng.random(len(y)) < 1 / 12, 8.0, 0.45), np.full(len(y), 6.0)], axis=1)
    X = pd.DataFrame(centers[y] + rng.normal(0, 1, (len(y), 2)) * spread, columns=["x₁", "x₂"])
    shown = np.flatnonzero(X["x₁"].abs() < 4.5)[::3]
    return tb.NearestClassMean(metric).fit(X, y).plot_decision_boundary(X.iloc[shown], y[shown])


def confused() -> tb.Evaluation:
    """Naive Bayes of half of scikit-learn's digits, measured on the other half, as in evaluation-metrics.md."""
    model = tb.NaiveBayes().fit(DIGITS.data[:900], DIGITS.target[:900])
    return tb.evaluate(model, DIGITS.data[900:], DIGITS.target[900:])


@cache
def census(calibration: str | None) -> tb.Evaluation:
    """The Adult test rows."""
    model = tb.NaiveBayes(calibration=calibration).fit(*adult("adult.data.gz"))
    return tb.evaluate(model, *adult("adult.test.gz"))


def families() -> tb.Plot:
    """One column under three families, as if it were three columns."""
    column = CELLS.data[["area error"]]
    found = tb.suggest_families(column, TUMOUR).details["area error"]
    binned = next(one.family for one in found.candidates if isinstance(one.family, tb.Binned))
    under = {"Gaussian": tb.Gaussian(), "LogNormal": tb.LogNormal(), "Binned": binned}
    X = pd.DataFrame({f"area error as {name}": column["area error"] for name in under})
    return tb.NaiveBayes(dict(zip(X, under.values(), strict=True))).fit(X, TUMOUR).plot_columns(X=X, y=TUMOUR)


def strengths() -> tb.results.PriorPath:
    """The digits under priors of several strengths."""
    model = tb.NaiveBayes(tb.Bernoulli(), prior=1)
    return tb.prior_path(model, DIGITS.data > 7, DIGITS.target, np.geomspace(0.01, 100, 9))


def geyser(n_components: int, **settings: Any) -> tuple[tb.Mixture, pd.DataFrame]:
    """Old Faithful."""
    rows = pd.read_csv(DATA / "series" / "faithful.csv")
    return tb.Mixture(n_components, tb.MultivariateGaussian(), random_state=0, **settings).fit(rows), rows


def eruptions() -> tb.Plot:
    """Two kinds of eruptions."""
    model, rows = geyser(2)
    return model.plot_decision_boundary(rows, model.predict(rows))


def machine() -> tb.HiddenMarkovModel:
    """The stated ice cream machine of hidden-markov-models.md."""
    return tb.HiddenMarkovModel.from_tables(
        start={"hot": 0.8, "cold": 0.2},
        transition={"hot": {"hot": 0.6, "cold": 0.4}, "cold": {"hot": 0.5, "cold": 0.5}},
        emission={"hot": {1: 0.2, 2: 0.4, 3: 0.4}, "cold": {1: 0.5, 2: 0.4, 3: 0.1}},
    )


def messages() -> tb.NaiveBayes:
    """Text messages, some of them spam."""
    rows = pd.read_csv(DATA / "sms-spam" / "SMSSpamCollection", sep="\t", names=["kind", "text"], quoting=3)
    return tb.NaiveBayes({"text": tb.Text()}).fit(rows, "kind")


@cache
def filtered() -> tuple[list[spam_prequential.PrequentialResult], spam_prequential.InMemoryFilter]:
    """SpamAssassin's mails, each judged before it is learned; and what was learned."""
    counter, folders = (
        spam_prequential.InMemoryFilter(),
        {"ham": ["easy-ham-1", "easy-ham-2", "hard-ham-1"], "spam": ["spam-1", "spam-2"]},
    )
    with tempfile.TemporaryDirectory() as place:
        with tarfile.open(DATA / "spamassassin" / "spamassassin-2003.tar.xz") as archive:
            archive.extractall(place, filter="data")
        paths = {kind: [str(Path(place) / name) for name in names] for kind, names in folders.items()}
        return list(spam_prequential.prequential_verdicts(paths, spam_score.Thresholds(), counter)), counter


def learned_mails() -> tb.LearningCurves:
    """How its errors become fewer."""
    sizes, *parts = spam_prequential.learning_curve(filtered()[0])
    return tb.LearningCurves(["classified, then learned"], sizes, *(part[None, :, None] for part in parts))


def honest(calibration: spam_score.SpamCalibration | None) -> tb.Evaluation:
    """Mails that were left out one by one, under a calibration or the one that was learned."""
    kept = filtered()[1].kept()
    odds = spam_calibration.leave_one_out_log_odds(kept, calibration or filtered()[1].calibration)
    return tb.Evaluation(["ham", "spam"], kept.is_spam.astype(int), -np.logaddexp(0, np.stack([odds, -odds], axis=1)))


def correlated() -> tb.LearningCurves:
    """The textbook's figure: forty columns in correlated pairs."""
    X, y = pairs.pairs_of_columns(8000, np.array([0.5, 0.25] * 20), np.random.default_rng(0))
    models = {pairs.NAIVE: tb.NaiveBayes(tb.TiedGaussian()), pairs.LOGISTIC: LogisticRegression(C=1e4, max_iter=1000)}
    return pairs.curves(models, X, y, [20, 40, 80, 160, 320, 640, 1280, 2560, 5120])


def twins(name: str, gaps: float = 0.0, **more: Any) -> tb.LearningCurves:
    """Naive Bayes and logistic regression on a table, beside others; some cells may be removed."""
    X, y = pairs.table(name)
    X = X.mask(np.random.default_rng(0).random(X.shape) < gaps)
    others = {label.replace("_", " "): make(X) for label, make in more.items()}
    return pairs.curves({pairs.NAIVE: pairs.naive_bayes(X), pairs.LOGISTIC: pairs.logistic(X), **others}, X, y)


def copied(X: pd.DataFrame) -> pd.DataFrame:
    """Every column five times."""
    return pd.concat([X.add_suffix(f" {k}") for k in range(5)], axis=1)


def copies() -> tb.LearningCurves:
    """Both models on columns that say everything five times."""
    X, y = pairs.table("diabetes")
    models = {"naive Bayes": pairs.naive_bayes(X), "logistic regression": pairs.logistic(X)}
    five = {"naive Bayes, copies": pairs.naive_bayes(copied(X)), "logistic, copies": pairs.logistic(copied(X))}
    again = {name: make_pipeline(FunctionTransformer(copied), model) for name, model in five.items()}
    return pairs.curves({**models, **again}, X, y)


def misled() -> tb.Plot:
    """A row whose background is that of the other class."""
    X, y = pairs.table("column2C")
    rows = pairs.with_background(X, y, 0.95, np.random.default_rng(0))
    model = pairs.naive_bayes(rows).fit(rows, y)
    strange = pairs.with_background(X, y, 0.0, np.random.default_rng(0))[y == "Abnormal"]
    return model.plot_explanation(strange.iloc[[0]])


@cache
def streamed() -> tb.results.Prequential:
    """Classes that change places half-way, and a column that drifts."""
    rng, n = np.random.default_rng(0), 4000
    stream: dict[str, Any] = {f"c{k:02}": rng.normal(size=n) for k in range(20)}
    label = rng.choice(["ham", "spam"], n)
    stream["c03"] += 2.5 * np.where(np.arange(n) < n / 2, label == "ham", label == "spam")
    stream["c07"] += np.linspace(0, 3, n)
    models = {
        "all rows": tb.NaiveBayes(),
        "the last 400": tb.Window(tb.NaiveBayes(), rows=400),
        "half-life 200": tb.Decayed(tb.NaiveBayes(), half_life=200),
    }
    return tb.prequential(models, stream | {"label": label}, "label", batch_size=50, drift=True)


def late_digit() -> tb.NaiveBayes:
    """Nine digits, and the tenth later."""
    images, digits = DIGITS.data, DIGITS.target
    return (
        tb.NaiveBayes(tb.TiedGaussian()).fit(images[digits < 9], digits[digits < 9]).add_class(9, images[digits == 9])
    )


# ---- The pictures ---------------------------------------------------------------------------------------------------

PICTURES: dict[str, Callable[[], tb.Plot]] = {
    "beta-priors": lambda: tb.Beta([1, 2, 10, 2], [1, 2, 10, 3]).plot(),
    "two-tosses": lambda: tossed(2, 0).plot(tb.Beta(2, 2)),
    "hundred-tosses": lambda: tossed(55, 45).plot(tb.Beta(2, 2)),
    "bags": lambda: tossed(3, 0).plot(bags()),
    "strange-prior": lambda: tossed(8, 2).plot(tb.Hypotheses.grid(np.linspace(0, 1, 101).round(2), prior=strange)),
    "penguin-columns": lambda: birds().plot_columns(),
    "naive-bayes-graph": lambda: birds().plot_graph(),
    "explanation": lambda: birds().plot_explanation(BIRD),
    "product-of-marginals": lambda: tb.NaiveBayes().fit(*leaning()).plot_joint(*(part[::10] for part in leaning())),
    "judged-digits": judged_digits,
    "mnist": lambda: digits_of_mnist().plot_class_means((28, 28)),
    "decisions-full": lambda: petals("full"),
    "decisions-tied": lambda: petals("tied"),
    "decisions-diagonal": lambda: petals("diagonal"),
    "three-clouds": lambda: three_clouds()[0].plot_joint(*three_clouds()[1:]),
    "three-clouds-alone": lambda: three_clouds()[0].plot_columns(None, *three_clouds()[1:]),
    "ring-and-core": lambda: ring_and_core(polar=False),
    "ring-in-polar": lambda: ring_and_core(polar=True),
    "projection": lambda: tb.GaussianDiscriminant("tied").fit(IRIS.data, SPECIES).plot_projection(IRIS.data, SPECIES),
    "nearest-euclidean": lambda: nearest("euclidean"),
    "nearest-mahalanobis": lambda: nearest("mahalanobis"),
    "nearest-learned": lambda: nearest("learned"),
    "confusion": lambda: confused().plot_confusion(),
    "reliability": lambda: measured_birds().plot_reliability(),
    "precision-recall": lambda: measured_birds().plot_precision_recall(),
    "not-calibrated": lambda: census(None).plot_reliability(),
    "calibrated": lambda: census("isotonic").plot_reliability(),
    "families": families,
    "prior-path": lambda: strengths().plot(),
    "dependence": lambda: tb.dependence(CELLS.data.iloc[:, :20], TUMOUR).plot(),
    "predictive-check": lambda: tb.predictive_check(tb.NaiveBayes().fit(CELLS.data, TUMOUR), CELLS.data, TUMOUR).plot(
        "area error"
    ),
    "geyser": eruptions,
    "geyser-convergence": lambda: geyser(3, estimate="mle", n_init=8, max_iter=1000)[0].plot_convergence(),
    "hidden-markov-graph": lambda: ice_cream().plot_graph(),
    "ice-cream-machine": lambda: machine().plot_transitions(),
    "trellis": lambda: ice_cream().trellis([[1, 2, 3]])[0].plot(),
    "earthquakes": lambda: climbed(3, 0, n_init=20).plot_states(quakes()),
    "earthquake-transitions": lambda: climbed(3, 0, n_init=20).plot_transitions(),
    "earthquake-forecast": lambda: climbed(3, 0, n_init=20).forecast([quakes()], 20)[0].plot(),
    "earthquake-choice": lambda: tb.select_n_states(
        tb.HiddenMarkovModel(columns=tb.Poisson(), max_iter=1000), [quakes()], range(1, 6)
    ).plot(),
    "earthquake-convergence": lambda: climbed(4, 0, n_init=20).plot_convergence(),
    "fire-alarm": lambda: fire_alarm().plot(),
    "fire-alarm-reported": lambda: fire_alarm().plot(given={"report": True}),
    "what-moved": lambda: fire_alarm().plot_posteriors({"report": True, "smoke": True}),
    "star": lambda: star().plot(),
    "words": lambda: messages().plot_words(),
    "spam-learned": lambda: learned_mails().plot(),
    "spam-before": lambda: honest(
        spam_score.SpamCalibration(0.0, (1.0,) * len(spam_score.TOKEN_KINDS))
    ).plot_reliability(),
    "spam-after": lambda: honest(None).plot_reliability(),
    "correlated-pairs": lambda: correlated().plot(["error", "log_loss", "calibration_error"]),
    "two-bumps": two_bumps,
    "one-step": one_step,
    "curves-waveform": lambda: twins("waveform5000").plot(["error", "log_loss"]),
    "curves-votes": lambda: twins("votes").plot(["error", "log_loss"]),
    "curves-gaps": lambda: twins("wine", 0.3, tied_covariance=lambda _: tb.GaussianDiscriminant("tied")).plot(
        ["error", "log_loss"]
    ),
    "curves-unlabeled": lambda: pairs.pooled_curves("breast.w").plot(["error", "log_loss"]),
    "curves-products": lambda: twins("diabetes", logistic_all_products=pairs.with_products).plot(["error", "log_loss"]),
    "curves-copies": lambda: copies().plot("log_loss"),
    "curves-calibration": lambda: twins(
        "credit.a", naive_Bayes_calibrated=lambda X: pairs.naive_bayes(X, calibration="temperature")
    ).plot("calibration_error"),
    "under-and-overfitting": lambda: (
        tb.LinearRegression(4, estimate="mle").fit(FIVE, OF_FIVE).plot(FIVE, OF_FIVE, candidates={"degree": [1, 2, 4]})
    ),
    "weight-decay": lambda: (
        tb.LinearRegression(9).fit(WAVE, OF_WAVE).plot(WAVE, OF_WAVE, candidates={"prior": [1e4, 0.1, 1e-9]})
    ),
    "bias-and-variance": lambda: tb.bias_variance(
        tb.LinearRegression(estimate="mle"),
        DOZEN,
        lambda x: np.sin(2 * x[:, 0]),
        candidates={"degree": range(1, 10)},
        noise=0.5,
    ).plot(),
    "stream": lambda: streamed().plot(),
    "drift": lambda: streamed().plot_drift(),
    "misled": misled,
    "late-digit": lambda: late_digit().plot_class_means((8, 8)),
    "iris-lines": lambda: linked_irises().plot(given={"petal width": 1.6}),
    "asia-effect": lambda: clinic().plot(highlight=clinic().causal_effect("bronc", "dysp")),
    "asia-tornado": lambda: clinic().sensitivity({"lung": "yes"}, {"xray": "yes", "dysp": "yes"}).plot(),
    "workers": lambda: tb.learn_structure(
        workers()[0], sample_weight=workers()[1], method="exact", tiers=TIERS, n_bootstrap=100
    ).plot(),
    "alarm-network": lambda: tb.BayesianNetwork.from_bif(ALARM).plot(given={"HRBP": "HIGH", "BP": "LOW"}),
}


def main() -> None:
    """Draw them all, or those that are named."""
    warnings.filterwarnings("ignore", message="More than 20 figures")
    for name in sys.argv[1:] or PICTURES:
        path = HERE / f"{name}.png"
        try:
            PICTURES[name]().save(path, dpi=90)
        except FileNotFoundError as error:
            print(f"{name}.png stays as it is: {error}")
            continue
        # A palette of 128 colors keeps the lines smooth and the file a third of the size.
        Image.open(path).convert("RGB").quantize(128).save(path, optimize=True)


if __name__ == "__main__":
    main()
