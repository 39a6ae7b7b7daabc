"""Target leakage: single columns that predict the target almost perfectly on held-out rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tallybayes._utils.parameter_checks import check_count
from tallybayes.data.sampling import sampled_rows
from tallybayes.data.table import Table
from tallybayes.errors import DataError, TallybayesError, printable
from tallybayes.estimation.resampling.folds import random_folds
from tallybayes.families.family import Family
from tallybayes.models.ensemble.candidate_folds import CountedFolds
from tallybayes.models.ensemble.feature_views import check_columns
from tallybayes.models.ensemble.naive_bayes_by_fold import naive_scores
from tallybayes.models.ensemble.stacking import bounded
from tallybayes.models.inputs.family_selection import select_families_by_fold
from tallybayes.models.inputs.input_format import read_initial_rows
from tallybayes.models.inputs.labels import read_labels
from tallybayes.models.name_hints import with_parameter_hints
from tallybayes.tally.factor import Name
from tallybayes.typing import Labels, Rows

# Of 45 tables, most from UCI, the largest share of the class entropy that one column explains is 0.906 (the odor of
# mushrooms), then 0.891 (petals of iris), 0.763 (votes). A copy of the target, 3 % of it missing, explains 0.963.
_LEAK = 0.95
_OTHERS = 0.8  # if other columns explain more, the classes are easy to separate and no column stands out
_MOST_ROWS = 20_000  # sampled at random from more
LEAST_ACCURACY = 0.95  # of a model that reads a leaking column


class Leak(NamedTuple):
    """A column that predicts the target almost by itself.

    Attributes
    ----------
    column : name
    target : name
    information : float
        The fraction of the target's entropy that the column explains on held-out rows; 1 is all of it.
    accuracy : float
        The accuracy of the column alone on held-out rows.
    others : float
        The highest accuracy of another single column.

    Examples
    --------
    >>> import tallybayes as tb
    >>> print(tb.results.Leak("alive", "survived", 0.998, 1.0, 0.789))
    Possible target leakage: column 'alive' alone predicts 'survived' with accuracy 100.0% on held-out rows, ...
    """

    column: Name
    target: Name
    information: float
    accuracy: float
    others: float

    def __str__(self) -> str:
        return printable(
            f"Possible target leakage: column {self.column!r} alone predicts {self.target!r} with accuracy "
            f"{self.accuracy:.1%} on held-out rows, the next best column {self.others:.1%}. "
            "Drop it if it is not known when predictions are made."
        )


@with_parameter_hints
def find_leakage(data: Rows, target: Labels, *, folds: int = 5, random_state: int = 0) -> list[Leak]:
    """Return the columns that predict the target almost by themselves, by cross-validation.

    Each column alone predicts held-out rows, in the family that the other rows suggest. A column is listed if it
    explains at least 95 % of the entropy of the target while no column that is not listed explains 80 %. Such a column
    is often recorded after the target, or is a copy of it. Of more than 20,000 rows a random sample is used.

    Parameters
    ----------
    data : array, data frame, list of dicts, or mapping of columns
    target : array-like of shape (n,), or the name of a column of data
    folds : int, default 5
    random_state : int, default 0
        For the folds, and the sample of rows.

    Returns
    -------
    list of Leak
        The column with the most information first. Each prints as a warning.

    Examples
    --------
    >>> import numpy as np, tallybayes as tb
    >>> rng = np.random.default_rng(0)
    >>> survived = rng.integers(0, 2, 300)
    >>> rows = {"age": rng.normal(30 + 5 * survived, 10), "alive": np.array(["no", "yes"])[survived]}
    >>> [leak.column for leak in tb.find_leakage(rows, survived)]
    ['alive']
    """
    shape, table, _ = read_initial_rows(data, target, None)
    if table.n_rows < 2:
        raise DataError(f"data has {table.n_rows} rows; expected at least 2, to hold rows out.")
    if table.n_rows > _MOST_ROWS:
        table = table.rows(sampled_rows(table.n_rows, _MOST_ROWS, random_state))
    labels = read_labels(table, shape.target)
    labels.check_complete("Drop the unlabeled rows.")
    check_columns(table, shape.target)
    codes = np.unique(labels.codes, return_inverse=True)[1]
    fold = random_folds(codes, min(check_count("folds", folds, 2), table.n_rows), random_state)
    names = tuple(name for name in table.columns if name != shape.target and table.kind(name) != "text")
    families = select_families_by_fold(table, names, shape.target, None, fold).by_fold
    return leaks(table, shape.target, families, CountedFolds(codes, fold, None))


def leaks(table: Table, target: Name, chosen: Sequence[dict[Name, Family]], folds: CountedFolds) -> list[Leak]:
    """Return the leaking columns among those with families selected without each fold."""
    weight = np.ones(len(folds.codes)) if folds.weight is None else folds.weight
    class_frequency = np.bincount(folds.codes, weight) / weight.sum()
    entropy = -float(class_frequency @ np.log(class_frequency))
    entries: list[tuple[float, float, Name]] = []
    for name in dict.fromkeys(name for entry in chosen for name in entry):
        try:
            alone = [{name: entry[name]} if name in entry else {} for entry in chosen]
            scores = bounded(naive_scores(table, alone, folds))
        except (TallybayesError, ValueError):  # a fold has no family that reads its rows
            continue
        loss = -np.average(scores[np.arange(len(scores)), folds.codes], weights=weight)
        accuracy = np.average(scores.argmax(axis=1) == folds.codes, weights=weight)
        entries.append((1 - float(loss) / entropy if entropy > 0 else 0.0, float(accuracy), name))
    entries.sort(key=lambda entry: -entry[0])
    leaking, others_sorted = ([entry for entry in entries if (entry[0] >= _LEAK) == high] for high in (True, False))
    if not others_sorted or others_sorted[0][0] >= _OTHERS or len(leaking) > len(others_sorted):
        return []
    others = max(accuracy for _, accuracy, _ in others_sorted)
    return [Leak(name, target, information, accuracy, others) for information, accuracy, name in leaking]
