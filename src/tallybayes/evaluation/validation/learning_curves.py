"""tb.learning_curves: how error, log-loss and calibration of several models change as rows come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import _safe_indexing

from tallybayes._utils.html import html_table
from tallybayes._utils.progress import progress
from tallybayes._utils.text_table import text_table
from tallybayes.data.open_source import open_source
from tallybayes.errors import DataError, LabelError, printable
from tallybayes.estimation.resampling.folds import random_folds
from tallybayes.evaluation.metrics.classification_metrics import ScoredRows, calibration_gap, reliability
from tallybayes.evaluation.validation.prefix_models import models_of_prefixes
from tallybayes.models.inputs.features import check_target, is_name, only_column
from tallybayes.typing import EstimatorLike, Labels, RandomState, Rows

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

    from tallybayes.plotting.plot import Plot

_LEAST = 1e-15  # a probability below is as good as none: the log-loss of models that rule classes out stays finite
_FOLDS = 5  # a fifth of the rows is held out
MEASURES = {
    "error": "error",
    "log_loss": "log-loss in nats",
    "calibration_error": "calibration error",
    "fit_seconds": "seconds to fit",
}


class LearningCurves:
    """How models do by the number of rows that they learned from; made by `learning_curves`.

    Attributes
    ----------
    names : list of str
        The models.
    sizes : ndarray of int of shape (sizes,)
    error, log_loss : ndarray of shape (models, sizes, repeats)
        On rows that were held out: the share that is predicted wrong, and the mean of −log p(true class) in nats.
    calibration_error : ndarray of shape (models, sizes, repeats), or None
        How far the probability of the predicted class is from the share that is right, as in `Evaluation`.
    fit_seconds : ndarray of shape (models, sizes, repeats), or None
        What it took to learn so many rows and to answer the first.
    penalties : list of str
        What holds the weights of each model back, where it is a linear one of scikit-learn, such as ``"C = 1"``.
    refitted : list of bool
        Whether a model was fitted again at every size; otherwise all sizes were counted in one pass.

    Examples
    --------
    >>> import tallybayes as tb
    >>> from sklearn.datasets import load_wine
    >>> X, y = load_wine(return_X_y=True)
    >>> models = {"naive": tb.NaiveBayes(), "tied": tb.GaussianDiscriminant(covariance="tied")}
    >>> curves = tb.learning_curves(models, X, y, [20, 140])
    >>> curves.leader()
    'tied at every size'
    """

    def __init__(
        self,
        names: Sequence[str],
        sizes: np.ndarray,
        error: np.ndarray,
        log_loss: np.ndarray,
        calibration_error: np.ndarray | None = None,
        fit_seconds: np.ndarray | None = None,
        *,
        penalties: Sequence[str] | None = None,
        refitted: Sequence[bool] | None = None,
    ) -> None:
        self.names, self.sizes, self.error, self.log_loss = list(names), sizes, error, log_loss
        self.calibration_error, self.fit_seconds = calibration_error, fit_seconds
        self.penalties = [""] * len(self.names) if penalties is None else list(penalties)
        self.refitted = [True] * len(self.names) if refitted is None else list(refitted)

    @property
    def measures(self) -> list[str]:
        """What was measured, by the names that `crossings` and `plot` take."""
        return [what for what in MEASURES if getattr(self, what) is not None]

    def crossings(self, what: str = "error") -> list[tuple[int, str]]:
        """From how many rows on which model is ahead: pairs of a size and a name, the first with the smallest size.

        A model is ahead of another where its mean is less by more than the standard error of their difference, split by
        split: what is less than noise is no crossing. The first is whoever is first ahead of all others.

        Parameters
        ----------
        what : {"error", "log_loss", "calibration_error", "fit_seconds"}
        """
        values = getattr(self, self._measure(what))
        first = [m for k in range(len(self.sizes)) for m in self._ahead_of(values[:, k])]
        found = [(0, first[0] if first else int(values[:, 0].mean(axis=-1).argmin()))]
        for k in range(1, len(self.sizes)):
            gained = values[found[-1][1], k] - values[:, k]
            ahead = np.flatnonzero(_beyond_noise(gained))
            if len(ahead):
                found.append((k, int(ahead[gained[ahead].mean(axis=-1).argmax()])))
        return [(int(self.sizes[k]), self.names[m]) for k, m in found]

    def _ahead_of(self, values: np.ndarray) -> list[int]:
        """The model that is ahead of all others at a size, if any."""
        best = int(values.mean(axis=-1).argmin())
        return [best] if _beyond_noise(np.delete(values, best, axis=0) - values[best]).all() else []

    def _measure(self, what: str) -> str:
        if what not in self.measures:
            raise DataError.wrong_type("what", repr(what), " or ".join(map(repr, self.measures)))
        return what

    def to_frame(self) -> pd.DataFrame:
        """A line for every model and size, as a pandas data frame: means over the splits, and their standard errors."""
        import pandas as pd

        lines = []
        for m, name in enumerate(self.names):
            for k, size in enumerate(self.sizes):
                line: dict[str, Any] = {"model": name, "rows": int(size)}
                for what in self.measures:
                    values = getattr(self, what)[m, k]
                    line |= {what: float(values.mean()), f"{what}_se": float(_standard_error(values))}
                lines.append(line)
        return pd.DataFrame(lines)

    def plot(self, what: str | Sequence[str] | None = None, ax: Axes | None = None) -> Plot:
        """Curves over the number of rows, with bands of one standard error and the crossings; needs matplotlib.

        Parameters
        ----------
        what : str or list of them, optional
            What to draw, of ``"error"``, ``"log_loss"``, ``"calibration_error"`` and ``"fit_seconds"``; all by default.
        ax : as many matplotlib Axes, optional

        Returns
        -------
        Picture
        """
        from tallybayes.plotting.evaluation.learning_curves import plot_learning_curves

        wanted = self.measures if what is None else [what] if isinstance(what, str) else list(what)
        return plot_learning_curves(self, [self._measure(each) for each in wanted], ax)

    def leader(self, what: str = "error") -> str:
        """Who is ahead, in words: at every size, or from how many rows on.

        Parameters
        ----------
        what : as for `crossings`
        """
        (_, first), *rest = self.crossings(what)
        if not rest:
            return f"{printable(first)} at every size" if len(self.names) > 1 else printable(first)
        return ", ".join([printable(first), *(f"{printable(name)} from {size:,} rows on" for size, name in rest)])

    def notes(self) -> list[str]:
        """What the crossings depend on: the penalty of linear models."""
        held = [f"{printable(name)}, {one}" for name, one in zip(self.names, self.penalties, strict=True) if one]
        return [f"Crossings depend on the penalty: {'; '.join(held)}"] if held else []

    def _lines(self) -> tuple[list[str], list[list[str]]]:
        digits = {"fit_seconds": ".2g"}
        head = ["rows", "model", *(MEASURES[what] for what in self.measures)]
        frame = self.to_frame().sort_values("rows", kind="stable")
        lines = []
        for _, line in frame.iterrows():
            cells = []
            for what in self.measures:
                value, spread = line[what], line[f"{what}_se"]
                shown = f"{value:{digits.get(what, '.4f')}}"
                cells.append(shown if what == "fit_seconds" or np.isnan(spread) else f"{shown} ± {spread:.4f}")
            lines.append([f"{line['rows']:,}", printable(line["model"]), *cells])
        return head, lines

    def _said(self) -> str:
        n = self.error.shape[-1]
        split = "1 split" if n == 1 else f"{n} splits"
        return "\n".join([f"Means of {split}; fewest errors: {self.leader()}", *self.notes()])

    def __repr__(self) -> str:
        head, rows = self._lines()
        right = [place for place in range(len(head)) if place != 1]
        return "\n".join([self._said(), *text_table([head, *rows], right)])

    def _repr_html_(self) -> str:
        return html_table(self._said(), *self._lines())


def learning_curves(
    models: EstimatorLike | Mapping[str, EstimatorLike],
    data: Rows,
    target: Labels,
    sizes: Sequence[int] | None = None,
    *,
    n_repeats: int = 10,
    random_state: RandomState = 0,
) -> LearningCurves:
    """How models do after few rows and after many: generative ones are often ahead first, and overtaken later.

    A fifth of the rows is held out, with every class in proportion; of the others, in a random order, every model
    learns from the first few, then from more, and so on. That is done for several splits, the same for all models.

    Classifiers of this package count only the rows that came since the size before, so all sizes cost one pass; the
    result is that of fitting the first rows. Where something is chosen from values (``columns="suggest"``, bins,
    calibration, learned metrics, `AutoClassifier`), where EM expects what is missing, and for scikit-learn's estimators and
    pipelines, a copy is fitted anew at every size: see ``refitted``.

    Parameters
    ----------
    models : classifier, or mapping from names to classifiers
        Of this package or of scikit-learn; with ``predict_proba``. They are not changed.
    data : array, data frame, mapping of columns, list of texts, or a file
    target : array-like of shape (n,), or the name of a column of data
    sizes : sequence of int, optional
        Numbers of rows to learn from; by default each twice the one before, up to all.
    n_repeats : int, default 10
        How many splits. Every five of them hold each row out once.
    random_state : int, Generator or None

    Returns
    -------
    LearningCurves

    Notes
    -----
    A class that the first rows do not show has the probability 1/(n + K) after n rows of K classes, whatever the model,
    and those that they show share the rest. Splits overlap, so their standard errors are somewhat too small. Where the
    curves cross depends on how much is held back by priors and penalties; the result states scikit-learn's ``C`` and
    ``alpha``. Models are compared by evidence, without rows held out, by `compare`.

    Examples
    --------
    >>> import tallybayes as tb
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> tb.learning_curves(tb.GaussianDiscriminant(covariance="tied"), X, y, [15, 120]).error.shape
    (1, 2, 10)
    """
    named = {str(name): each for name, each in _named(models).items()}
    if isinstance(n_repeats, bool) or not isinstance(n_repeats, int) or n_repeats < 1:
        raise DataError.wrong_type("repeats", repr(n_repeats), "a whole number of at least 1")
    X, labels = _opened(data, target)
    classes, codes = np.unique(labels, return_inverse=True)
    rng = np.random.default_rng(random_state)
    dealt = [random_folds(codes, _FOLDS, rng) for _ in range(-(-n_repeats // _FOLDS))]
    wanted = _sizes(sizes, len(codes) - int(max(np.bincount(fold).max() for fold in dealt)), len(classes))
    found = np.empty((len(MEASURES), len(named), len(wanted), n_repeats))
    held_out = [dealt[split // _FOLDS] == split % _FOLDS for split in range(n_repeats)]
    orders = [rng.permutation(np.flatnonzero(~out)) for out in held_out]
    refitted = dict.fromkeys(named, False)
    places = [(split, m) for split in range(n_repeats) for m in range(len(named))]
    for split, m in progress(places, "learning curves"):
        test = np.flatnonzero(held_out[split])
        asked = _safe_indexing(X, test)
        name, model = list(named.items())[m]
        learned = models_of_prefixes(model, X, labels, orders[split], wanted, _safe_indexing(X, test[:1]))
        for k, (one, seconds, again) in enumerate(learned):
            proba = _over_all(classes, one.classes_, one.predict_proba(asked), int(wanted[k]))
            scores = ScoredRows(codes[test], np.log(np.maximum(proba, _LEAST)), None)
            refitted[name] |= again
            error, loss = 1 - scores.is_correct.mean(), -scores.true_class_log_proba.mean()
            found[:, m, k, split] = error, loss, calibration_gap(reliability(scores, 0.95)), seconds
    held = [penalty_of(model) for model in named.values()]
    return LearningCurves(list(named), wanted, *found, penalties=held, refitted=list(refitted.values()))


def penalty_of(model: Any) -> str:
    """What holds the weights of a linear model of scikit-learn back, as its parameters say; "" of any other model."""
    searched = getattr(model, "param_grid", None) or getattr(model, "param_distributions", None) or {}
    grids = [searched] if isinstance(searched, Mapping) else searched
    if any(str(name).rsplit("__", 1)[-1] in ("C", "alpha") for grid in grids for name in grid):
        return "penalty by cross-validation"
    for inside in ("steps", "estimator"):  # of a pipeline the last; of what wraps another, that one
        part = getattr(model, inside, None)
        if part is not None:
            return penalty_of(part[-1][1] if inside == "steps" else part)
    if not type(model).__module__.startswith(("sklearn.linear_model", "sklearn.svm")):
        return ""
    settings = model.get_params(deep=False)
    if settings.get("penalty", "l2") is None or settings.get("C") == np.inf:
        return "no penalty"
    for name in ("C", "alpha"):
        if name in settings:
            return f"{name} = {settings[name]:g}"
    return "penalty by cross-validation" if "Cs" in settings or "alphas" in settings else ""


def _named(models: Any) -> dict[Any, Any]:
    named = dict(models) if isinstance(models, Mapping) else {type(models).__name__: models}
    if not named:
        raise DataError("there is no model; expected at least one.")
    for name, model in named.items():
        of = f"{model.__name__}, a class" if isinstance(model, type) else type(model).__name__
        if isinstance(model, type) or not hasattr(model, "fit") or not is_classifier(model):
            hint = (
                "Write brackets after it."
                if isinstance(model, type)
                else "Pass several as a mapping from names to them."
            )
            raise DataError.wrong_type(f"model {printable(name)!r}", of, "a classifier", hint)
        if not hasattr(model, "predict_proba"):
            hint = "Wrap it in scikit-learn's CalibratedClassifierCV."
            raise DataError.wrong_type(f"model {printable(name)!r}", of, "a classifier with predict_proba", hint)
    return named


def _over_all(classes: np.ndarray, known: np.ndarray, proba: np.ndarray, n_rows: int) -> np.ndarray:
    """Probabilities of all classes, where a model knows some: each other one is worth one row."""
    share = 1 / (n_rows + len(classes))
    out = np.full((len(proba), len(classes)), share)
    out[:, np.searchsorted(classes, known)] = proba * (1 - (len(classes) - len(known)) * share)
    return out


def _opened(data: Any, target: Any) -> tuple[Any, np.ndarray]:
    """Rows that can be taken by number, and their labels as an array."""
    source = open_source(data)
    if source is not None:
        data = source.read("learning curves").to_pandas()
    if isinstance(data, Mapping) or (isinstance(data, list) and data and isinstance(data[0], Mapping)):
        import pandas as pd

        data = pd.DataFrame(dict(data) if isinstance(data, Mapping) else data)
    if hasattr(data, "tocsr"):
        data = data.tocsr()
    if is_name(target):
        import narwhals as nw

        frame = nw.from_native(data, eager_only=True)
        if target not in frame.columns:
            raise DataError.unknown_column([target], frame.columns)
        data, target = frame.drop(target).to_native(), frame.get_column(target).to_numpy()
    n_rows = data.shape[0] if hasattr(data, "shape") else len(data)
    labels = np.asarray(check_target(only_column(target), n_rows))
    missing = np.array([_is_missing(one) for one in labels]) if labels.dtype.kind in "Of" else np.zeros(n_rows, bool)
    if missing.any():
        raise LabelError(
            f"the labels of {int(missing.sum()):,} rows are missing, the first that of row {int(missing.argmax())}; "
            "expected one for every row, since all of them are held out once.\n    Leave these rows out."
        )
    if n_rows < _FOLDS:
        raise DataError(f"there are {n_rows} rows; expected at least {_FOLDS}, since a fifth of them is held out.")
    return data, labels.astype(str) if labels.dtype == object else labels


def _is_missing(label: Any) -> bool:
    return label is None or type(label).__name__ in ("NAType", "NaTType") or bool(label != label)


def _sizes(sizes: Sequence[int] | None, most: int, n_classes: int) -> np.ndarray:
    if sizes is None:
        found, size = [], most
        while size >= max(10, 2 * n_classes):
            found.append(size)
            size //= 2
        return np.array(found[::-1] or [most], dtype=np.intp)
    wanted = np.unique(np.asarray(sizes, dtype=float))
    if not len(wanted) or wanted[0] < 1 or wanted[-1] > most or (wanted % 1).any():
        raise DataError(f"sizes are {sizes!r:.60}; expected whole numbers from 1 to {most}, four fifths of the rows.")
    return wanted.astype(np.intp)


def _beyond_noise(gained: np.ndarray) -> np.ndarray:
    """Whether the mean over the last axis is above 0 by more than its standard error; of a single value, at all."""
    mean = gained.mean(axis=-1)
    return (mean > 0) & ~(mean <= _standard_error(gained))


def _standard_error(values: np.ndarray) -> np.ndarray:
    """Of the mean over the last axis; NaN of a single value."""
    n = values.shape[-1]
    return values.std(axis=-1, ddof=1) / np.sqrt(n) if n > 1 else np.full(values.shape[:-1], np.nan)
