"""Naive Bayes beside logistic regression: ``python docs/experiments/generative_or_discriminative.py``.

Names on the command line run only these experiments. Every table prints means over splits, the same for all models;
what is chosen is chosen by training rows alone. Logistic regression stands behind a pipeline: gaps filled in by means
or the most frequent label, numbers scaled, labels one-hot.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable
from math import erfc
from typing import Any

import numpy as np
import pandas as pd
from adult import adult
from holes import arff, split_columns
from real_data import DATA
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import make_column_transformer
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.impute import IterativeImputer, SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, PolynomialFeatures, StandardScaler

import tallybayes as tb

REPEATS = 10
MOST = 2000  # rows of a table, drawn once
NAIVE, LOGISTIC, FREE = "naive Bayes", "logistic regression", "logistic regression, free"


# ---- Tables and models ----------------------------------------------------------------------------------------------


def table(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """The features and the classes of a table, at most `MOST` rows of it."""
    if name == "votes":
        rows = pd.read_csv(DATA / "tables" / "house-votes-84.data", header=None).astype(object)
        X, y = rows.iloc[:, 1:].mask(rows.iloc[:, 1:] == "?"), rows[0]
        X.columns = [f"vote {k}" for k in range(1, 17)]
    elif name == "adult":
        X, y = adult("adult.data.gz")
    else:
        rows = arff(name)
        target = "num" if name == "heart.c" else rows.columns[-1] if name != "wine" else "class"
        rows = rows[rows[target].notna()].reset_index(drop=True)
        X, y = rows.drop(columns=target), rows[target]
    X, y = X.reset_index(drop=True), np.asarray(y).astype(str)
    if len(X) > MOST:
        some = np.sort(np.random.default_rng(0).permutation(len(X))[:MOST])
        X, y = X.iloc[some].reset_index(drop=True), y[some]
    return X, y


def naive_bayes(X: pd.DataFrame, **settings: Any) -> tb.NaiveBayes:
    """The twin of logistic regression: numbers share a variance, so that both models are linear."""
    numbers, _ = split_columns(X)
    return tb.NaiveBayes({tuple(numbers): tb.TiedGaussian(), ...: "auto"} if numbers else "auto", **settings)


def logistic(X: pd.DataFrame, C: float = 1.0, imputer: Any = None, more: Any = None) -> Any:
    """Logistic regression behind what it needs; `more` comes between, such as products of columns."""
    numbers, labels = split_columns(X)
    fill = SimpleImputer(keep_empty_features=True) if imputer is None else imputer
    hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    steps = [(make_pipeline(fill, StandardScaler()), numbers)] if numbers else []
    steps += [(make_pipeline(SimpleImputer(strategy="most_frequent"), hot), labels)] if labels else []
    between = [] if more is None else [more, StandardScaler()]
    return make_pipeline(make_column_transformer(*steps), *between, LogisticRegression(C=C, max_iter=2000))


def sizes_of(n: int, first: int = 20) -> list[int]:
    """Each twice the one before, and all."""
    most, found = n - -(-n // 5), [first]
    while 2 * found[-1] <= 0.8 * most:
        found.append(2 * found[-1])
    return [*found, most]


def curves(models: dict[str, Any], X: Any, y: np.ndarray, sizes: list[int] | None = None) -> tb.LearningCurves:
    """Learning curves, without the warnings of optimizers and imputers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return tb.learning_curves(models, X, y, sizes or sizes_of(len(y)), n_repeats=REPEATS)


def line(*cells: Any) -> None:
    """A row of a table."""
    print("| " + " | ".join(map(str, cells)) + " |", flush=True)


def head(*cells: str) -> None:
    """The head of a table."""
    line(*cells)
    line(*["---"] * len(cells))


# ---- Ng and Jordan's shape ------------------------------------------------------------------------------------------

TABLES = (
    "votes",
    "breast.w",
    "heart.c",
    "credit.a",
    "diabetes",
    "ionosphere",
    "vehicle",
    "kr.vs.kp",
    "waveform5000",
    "spambase",
)
TABLES = (*TABLES, "adult")


def near_its_end(mean: np.ndarray, sizes: np.ndarray, within: float = 0.01) -> int:
    """The first size from which on the error stays within .01 of that of all rows."""
    far = np.flatnonzero(mean > mean[-1] + within)
    return int(sizes[far[-1] + 1]) if len(far) else int(sizes[0])


def shape_of_curves() -> None:
    """Errors after few rows and after all, when each model is near its end, and who is ahead."""
    head("table", "rows, columns", "after 20 rows", "after all", "near its end from", "fewest errors, C = 1", "C = 10⁴")
    for name in TABLES:
        X, y = table(name)
        found = curves({NAIVE: naive_bayes(X), LOGISTIC: logistic(X), FREE: logistic(X, 1e4)}, X, y)
        mean = found.error.mean(axis=-1)
        pairs = [
            tb.LearningCurves([NAIVE, LOGISTIC], found.sizes, *(part[[0, m]] for part in (found.error, found.log_loss)))
            for m in (1, 2)
        ]
        line(
            name,
            f"{len(y):,}, {X.shape[1]}",
            " · ".join(f"{value:.3f}" for value in mean[:, 0]),
            " · ".join(f"{value:.3f}" for value in mean[:, -1]),
            " · ".join(f"{near_its_end(each, found.sizes):,}" for each in mean),
            *(pair.leader() for pair in pairs),
        )


# ---- D15: closed forms ----------------------------------------------------------------------------------------------


def pairs_of_columns(
    n: int, apart: np.ndarray, rng: np.random.Generator, correlation: float = 0.3
) -> tuple[np.ndarray, np.ndarray]:
    """Two classes, equally many rows of each; columns 2k and 2k + 1 are correlated, which naive Bayes does not see."""
    y = rng.permutation(np.arange(n) % 2)
    noise = rng.normal(size=(n, len(apart) // 2, 2)) @ np.linalg.cholesky([[1.0, correlation], [correlation, 1.0]]).T
    return noise.reshape(n, -1) + (y[:, None] - 0.5) * apart, y


def exact_error(w: np.ndarray, b: float, apart: np.ndarray, correlation: float = 0.3) -> float:
    """The error of the rule w·x + b > 0, over all rows that there could be."""
    even, odd = w[::2], w[1::2]
    spread = np.sqrt(w @ w + 2 * correlation * even @ odd)
    return float(np.mean([erfc((w @ apart / 2 + sign * b) / spread / np.sqrt(2)) / 2 for sign in (1, -1)]))


def rule_of(k: int, X: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, float]:
    """Weights and intercept of naive Bayes, 0, or of logistic regression that is hardly held back, 1."""
    if k == 0:
        ours = tb.NaiveBayes(tb.TiedGaussian(), estimate="mle").fit(X, y).to_linear().odds(1)
        return ours.coef[0], float(ours.intercept[0])
    theirs = LogisticRegression(C=1e4, max_iter=2000).fit(X, y)
    return theirs.coef_[0], float(theirs.intercept_[0])


def errors_of(k: int, m: int, apart: np.ndarray, draws: int) -> np.ndarray:
    """The exact errors of the rules that so many draws of m rows give."""
    rows = (pairs_of_columns(m, apart, np.random.default_rng([seed, m])) for seed in range(draws))
    return np.array([exact_error(*rule_of(k, X, y), apart) for X, y in rows])


def closed_forms() -> None:
    """The figure of the textbook: the exact error of the rule that m rows give, a mean of 40 draws."""
    apart = np.array([0.5, 0.25] * 20)
    sizes = [20, 80, 320, 1280, 2560]
    head("rows", *(f"{m:,}" for m in sizes))
    for k, name in enumerate((NAIVE, FREE)):
        found = np.array([errors_of(k, m, apart, 40) for m in sizes])
        noise = found.std(axis=1, ddof=1) / np.sqrt(40)
        line(name, *(f"{value:.4f} ± {each:.4f}" for value, each in zip(found.mean(axis=1), noise, strict=True)))


def floors(apart: np.ndarray, correlation: float = 0.3) -> tuple[float, float]:
    """The errors that unlimited rows leave: naive Bayes' and the least there is."""
    even, odd = apart[::2], apart[1::2]
    best = np.empty(len(apart))
    best[::2], best[1::2] = even - correlation * odd, odd - correlation * even
    return exact_error(apart, 0.0, apart, correlation), exact_error(best, 0.0, apart, correlation)


def rows_to_come_near(apart: np.ndarray, draws: int = 8) -> list[int]:
    """The rows that each model needs to come within .01 of its own floor: on the mean, by steps of a quarter."""
    needed: list[int] = []
    for k, floor in enumerate(floors(apart)):
        m = 8 if k == 0 else needed[0]  # logistic regression has never needed fewer
        while True:
            if errors_of(k, m, apart, draws).mean() <= floor + 0.01:
                break
            m = int(np.ceil(m * 1.25 / 2)) * 2
        needed.append(m)
    return needed


def rows_by_columns() -> None:
    """How many rows it takes as columns become more: where each tells as much as ever, and where all together do."""
    head(
        "columns d",
        "each column tells the same: naive Bayes",
        "logistic regression",
        "all together tell the same: naive Bayes",
        "logistic regression",
        "bound of the textbook",
    )
    for d in (10, 20, 40, 80, 160):
        each = np.tile([0.5, 0.25], d // 2)
        all_together = each * np.sqrt(40 / d)
        bound = np.log(2 * d / 0.05) / (2 * 0.1**2)
        line(d, *rows_to_come_near(each), *rows_to_come_near(all_together), int(np.ceil(bound)))


# ---- One family -----------------------------------------------------------------------------------------------------


def one_family() -> None:
    """The weights of both, in units of the columns' spread, on votes and on D15."""
    apart = np.array([0.5, 0.25] * 20)
    X, y = pairs_of_columns(20_000, apart, np.random.default_rng(0))
    (ours, b), (theirs, c) = (rule_of(k, X, y) for k in (0, 1))
    head("D15, 20,000 rows", "first of a pair", "second of a pair", "intercept")
    line(NAIVE, f"{ours[::2].mean():.3f}", f"{ours[1::2].mean():.3f}", f"{b:.3f}")
    line(FREE, f"{theirs[::2].mean():.3f}", f"{theirs[1::2].mean():.3f}", f"{c:.3f}")
    line("by hand: δ / σ²", "0.500", "0.250", "0")
    line("by hand: Σ⁻¹δ", f"{(0.5 - 0.3 * 0.25) / 0.91:.3f}", f"{(0.25 - 0.3 * 0.5) / 0.91:.3f}", "0")


# ---- Ease of fitting ------------------------------------------------------------------------------------------------


def best_seconds(work: Callable[[], Any], times: int = 3) -> float:
    """Processor time of all threads, the best of some."""
    found = []
    for _ in range(times):
        begun = time.process_time()
        work()
        found.append(time.process_time() - begun)
    return min(found)


def ease_of_fitting() -> None:
    """Processor time to fit the whole of Adult, and to learn one more row."""
    X, y = adult("adult.data.gz")
    y = np.asarray(y).astype(str)
    head("Adult, 32,561 rows", "fit", "one more row", "all of seven sizes")
    ours, theirs = naive_bayes(X), logistic(X)
    model = clone(ours).fit(X, y)
    one = X.iloc[:1], y[:1]
    sizes = [500, 1000, 2000, 4000, 8000, 16_000, 32_000]
    steps = [(0 if k == 0 else sizes[k - 1], size) for k, size in enumerate(sizes)]

    def ours_by_stretches() -> None:
        counted = clone(ours)
        for start, stop in steps:
            counted.partial_fit(X.iloc[start:stop], y[start:stop]).predict_proba(X.iloc[:1])

    def theirs_again() -> None:
        for _, stop in steps:
            clone(theirs).fit(X.iloc[:stop], y[:stop])

    fit = best_seconds(lambda: clone(ours).fit(X, y).predict_proba(X.iloc[:1]))
    line(
        NAIVE,
        f"{fit:.2f} s",
        f"{best_seconds(lambda: model.partial_fit(*one)):.4f} s",
        f"{best_seconds(ours_by_stretches):.2f} s",
    )
    fit = best_seconds(lambda: clone(theirs).fit(X, y), 2)
    line(LOGISTIC, f"{fit:.2f} s", f"{fit:.2f} s, all again", f"{best_seconds(theirs_again, 1):.2f} s")


def classes_apart() -> None:
    """The tenth digit comes later: the error on all digits, and the rows that had to be read for it."""
    X, y = table("optdigits")
    train, test, y_train, answers = train_test_split(X, y, test_size=0.3, random_state=0, stratify=y)
    nine = y_train != "9"
    head(
        "optdigits, 1,400 rows", "error before", "error after", "rows read for the tenth digit", "error of all at once"
    )
    for name, model in (
        (NAIVE, tb.NaiveBayes(tb.TiedGaussian())),
        ("tied covariance", tb.GaussianDiscriminant("tied")),
    ):
        fitted = clone(model).fit(train[nine], y_train[nine])
        before = 1 - fitted.score(test, answers)
        after = 1 - fitted.add_class("9", train[~nine]).score(test, answers)
        whole = clone(model).fit(train, y_train)
        assert np.allclose(whole.predict_proba(test), fitted.predict_proba(test))
        line(name, f"{before:.3f}", f"{after:.3f}", int((~nine).sum()), f"{1 - whole.score(test, answers):.3f}")
    fitted = logistic(X).fit(train[nine], y_train[nine])
    whole = logistic(X).fit(train, y_train)
    score = 1 - whole.score(test, answers)
    line(LOGISTIC, f"{1 - fitted.score(test, answers):.3f}", f"{score:.3f}", len(train), f"{score:.3f}")


# ---- Missing features -----------------------------------------------------------------------------------------------


def loss_of(model: Any, X: Any, y: np.ndarray) -> tuple[float, float]:
    """Log loss and error."""
    p = np.maximum(model.predict_proba(X), 1e-15)
    return float(-np.log(p[np.arange(len(y)), np.searchsorted(model.classes_, y)]).mean()), float(
        np.mean(model.classes_[p.argmax(axis=1)] != y)
    )


def split(X: Any, y: np.ndarray, seed: int, share: float = 1 / 3) -> tuple[Any, Any, np.ndarray, np.ndarray]:
    """Rows to learn from and rows to test on."""
    return train_test_split(X, y, test_size=share, random_state=seed, stratify=y)


def missing_features() -> None:
    """Models of complete rows, asked about rows that lack cells: log loss by the share of cells that is gone."""
    shares = (0.0, 0.2, 0.4, 0.6)
    for name in ("diabetes", "vehicle", "wine", "column2C"):
        X, y = table(name)
        models = {
            f"{NAIVE}: leaves terms out": naive_bayes(X),
            "tied covariance: marginalizes": tb.GaussianDiscriminant("tied"),
            "logistic, cells by their mean": logistic(X),
            "logistic, cells by regression": logistic(X, imputer=IterativeImputer(random_state=0, max_iter=5)),
        }
        X = X.fillna(X.mean())
        found = {each: np.zeros((len(shares), REPEATS)) for each in models}
        for seed in range(REPEATS):
            train, test, y_train, answers = split(X, y, seed)
            gone = np.random.default_rng(seed).random(test.shape)
            for each, model in models.items():
                fitted = clone(model).fit(train, y_train)
                for k, share in enumerate(shares):
                    found[each][k, seed] = loss_of(fitted, test.mask(gone < share), answers)[0]
        head(name, *(f"{share:.0%} gone" for share in shares))
        for each, values in found.items():
            line(each, *(f"{value:.3f}" for value in values.mean(axis=1)))
        print()


# ---- Rows without labels --------------------------------------------------------------------------------------------


class WithPool(ClassifierMixin, BaseEstimator):
    """Naive Bayes that knows rows without labels beside those that it is given."""

    def __init__(self, model: Any, pool: Any) -> None:
        self.model, self.pool = model, pool

    def fit(self, X: pd.DataFrame, y: np.ndarray) -> WithPool:
        """Learn from both."""
        rows = pd.concat([X, self.pool], ignore_index=True)
        labels = np.concatenate([np.asarray(y, dtype=object), np.full(len(self.pool), None)])
        self.fitted_ = clone(self.model).set_params(unlabeled="em", tol=1e-4).fit(rows, labels)
        self.classes_ = self.fitted_.classes_
        return self

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        """By Bayes' rule."""
        return self.fitted_.predict_proba(X)


def pooled_curves(name: str) -> tb.LearningCurves:
    """Learning curves with half of the rows for a pool without labels; those that are held out are in no pool."""
    X, y = table(name)
    rows, pool, labels, _ = train_test_split(X, y, test_size=0.5, random_state=0, stratify=y)
    model = naive_bayes(X)
    models = {
        NAIVE: model,
        "naive Bayes, and pool": WithPool(model, pool),
        LOGISTIC: logistic(X),
    }
    return curves(models, rows.reset_index(drop=True), labels, [10, 20, 40, 80, 160])


def rows_without_labels() -> None:
    """Errors by the number of labels."""
    for name in ("votes", "breast.w", "diabetes", "waveform5000"):
        found = pooled_curves(name)
        head(name, *(f"{size} labels" for size in found.sizes))
        for each, mean in zip(found.names, found.error.mean(axis=-1), strict=True):
            line(each, *(f"{value:.3f}" for value in mean))
        print()


# ---- Shift ----------------------------------------------------------------------------------------------------------


def with_background(
    X: pd.DataFrame, y: np.ndarray, follows: float, rng: np.random.Generator, columns: int = 5
) -> pd.DataFrame:
    """The rows, and columns of a background that has the side of the class with this probability, with some noise."""
    side = np.where(rng.random(len(y)) < follows, y == np.unique(y)[1], y != np.unique(y)[1])
    shown = side[:, None] + rng.normal(0, 0.3, (len(y), columns))
    return X.assign(**{f"background {k}": shown[:, k] for k in range(columns)})


def shift() -> None:
    """A background that follows the class while learning, and does not afterwards; then classes that become rare."""
    head(
        "table",
        "model",
        "background as learned",
        "follows nothing",
        "follows the other class",
        "told to leave it out",
        "never had it",
    )
    for name in ("diabetes", "ionosphere", "column2C"):
        X, y = table(name)
        X = X.fillna(X.mean())
        shown = with_background(X, y, 0.95, np.random.default_rng(0))
        for which, model in (
            (NAIVE, naive_bayes(shown)),
            ("tied covariance", tb.GaussianDiscriminant("tied")),
            (LOGISTIC, logistic(shown)),
        ):
            found = []
            for seed in range(REPEATS):
                train, test, y_train, answers = split(X, y, seed)
                rng = np.random.default_rng(seed)
                fitted = clone(model).fit(with_background(train, y_train, 0.95, rng), y_train)
                errors = [
                    loss_of(fitted, with_background(test, answers, follows, rng), answers)[1]
                    for follows in (0.95, 0.5, 0.05)
                ]
                out = with_background(test, answers, 0.5, rng)
                out[[column for column in out if column.startswith("background")]] = np.nan
                errors.append(loss_of(fitted, out, answers)[1])
                plain = {NAIVE: naive_bayes(X), LOGISTIC: logistic(X)}.get(which, model)
                errors.append(loss_of(clone(plain).fit(train, y_train), test, answers)[1])
                found.append(errors)
            line(name, which, *(f"{value:.3f}" for value in np.mean(found, axis=0)))
    print()
    head("class 1 three in four, then one in ten", "as learned", "told the new shares")
    for name in ("breast.w", "diabetes"):
        X, y = table(name)
        y = np.where(y == np.unique(y)[1], "1", "0")
        found = {NAIVE: [], LOGISTIC: []}
        for seed in range(REPEATS):
            train, test, y_train, answers = split(X, y, seed, 0.5)
            rng = np.random.default_rng(seed)
            then, now = _shares(y_train, 0.75, rng), _shares(answers, 0.1, rng)
            for which, model in ((NAIVE, naive_bayes(X)), (LOGISTIC, logistic(X))):
                fitted = clone(model).fit(train.iloc[then], y_train[then])
                before = loss_of(fitted, test.iloc[now], answers[now])[0]
                if which == NAIVE:
                    after = loss_of(fitted.reestimate(class_prior={"0": 0.9, "1": 0.1}), test.iloc[now], answers[now])[
                        0
                    ]
                else:  # by hand: the odds of before divided out
                    odds = fitted.predict_log_proba(test.iloc[now]) + np.log(
                        [0.9 / np.mean(y_train[then] == "0"), 0.1 / np.mean(y_train[then] == "1")]
                    )
                    odds -= np.logaddexp.reduce(odds, axis=1)[:, None]
                    after = float(-odds[np.arange(len(now)), (answers[now] == "1").astype(int)].mean())
                found[which].append((before, after))
        for which, values in found.items():
            line(f"{name}, {which}: log loss", *(f"{value:.3f}" for value in np.mean(values, axis=0)))


def _shares(y: np.ndarray, of_ones: float, rng: np.random.Generator) -> np.ndarray:
    """Rows of which this share is of class 1, as many as there can be."""
    ones, zeros = rng.permutation(np.flatnonzero(y == "1")), rng.permutation(np.flatnonzero(y == "0"))
    n = int(min(len(ones) / of_ones, len(zeros) / (1 - of_ones)))
    return np.concatenate([ones[: round(n * of_ones)], zeros[: n - round(n * of_ones)]])


# ---- Interactions and expansions ------------------------------------------------------------------------------------


def with_products(X: pd.DataFrame) -> Any:
    """Logistic regression on all columns and all products of two."""
    return logistic(X, more=PolynomialFeatures(2, interaction_only=True, include_bias=False))


def interactions() -> None:
    """Errors of models that believe in interactions and of models that do not, after few rows and after all."""
    head("table", "rows", NAIVE, LOGISTIC, "logistic, all products", "trees of pairs (generative)")
    for name in ("votes", "heart.c", "breast.w", "diabetes", "tic-tac-toe"):
        X, y = table(name)
        models = {
            NAIVE: naive_bayes(X),
            LOGISTIC: logistic(X),
            "products": with_products(X),
            "tree": tb.TreeAugmentedNaiveBayes(),
        }
        n = len(y)
        found = curves(models, X, y, [40, 160, n - -(-n // 5)])
        for k, size in enumerate(found.sizes):
            line(name if not k else "", f"{size:,}", *(f"{value:.3f}" for value in found.error[:, k].mean(axis=-1)))


def expansions() -> None:
    """Columns copied, and squares and products added: log loss and error of both after two thirds of the rows."""
    head("table", "columns", "naive Bayes: log loss", "error", "logistic regression: log loss", "error")
    for name in ("diabetes", "vehicle", "wine", "column2C"):
        X, y = table(name)
        X = X.fillna(X.mean())
        squares = PolynomialFeatures(2, include_bias=False).fit(X)
        kinds = {
            "as they are": X,
            "each five times": pd.concat([X.add_suffix(f" {k}") for k in range(5)], axis=1),
            "and all squares and products": pd.DataFrame(squares.transform(X)).add_prefix("c"),
        }
        for kind, rows in kinds.items():
            found = {NAIVE: [], LOGISTIC: []}
            for seed in range(5):
                train, test, y_train, answers = split(rows, y, seed)
                for which, model in ((NAIVE, naive_bayes(rows)), (LOGISTIC, logistic(rows))):
                    found[which].append(loss_of(model.fit(train, y_train), test, answers))
            cells = [f"{value:.3f}" for values in found.values() for value in np.mean(values, axis=0)]
            line(name if kind == "as they are" else "", f"{kind} ({rows.shape[1]})", *cells)


def calibration() -> None:
    """Calibration error after all rows: as they come, and naive Bayes calibrated leave-one-out."""
    head("table", NAIVE, "the same, temperature", "the same, isotonic", LOGISTIC, FREE)
    for name in ("votes", "breast.w", "heart.c", "credit.a", "diabetes", "vehicle", "waveform5000", "adult"):
        X, y = table(name)
        models = {NAIVE: naive_bayes(X)} | {
            kind: naive_bayes(X, calibration=kind) for kind in ("temperature", "isotonic")
        }
        found = curves({**models, LOGISTIC: logistic(X), FREE: logistic(X, 1e4)}, X, y, [len(y) - -(-len(y) // 5)])
        line(name, *(f"{value:.3f}" for value in found.calibration_error[:, 0].mean(axis=-1)))


EXPERIMENTS = {
    "curves": shape_of_curves,
    "closed": closed_forms,
    "columns": rows_by_columns,
    "family": one_family,
    "fitting": ease_of_fitting,
    "classes": classes_apart,
    "missing": missing_features,
    "unlabeled": rows_without_labels,
    "shift": shift,
    "interactions": interactions,
    "expansions": expansions,
    "calibration": calibration,
}


def main() -> None:
    """Run all experiments, or those that are named."""
    if not (DATA / "tables").is_dir():
        print(f"no data at {DATA / 'tables'}: nothing to measure.")
        return
    for name in sys.argv[1:] or EXPERIMENTS:
        begun = time.process_time()
        print(f"\n## {name}: {EXPERIMENTS[name].__doc__}\n")
        EXPERIMENTS[name]()
        print(f"({time.process_time() - begun:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
