"""Count rows with missing labels or missing values: raise, skip, or use EM."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tallybayes.data.counting import check_weight
from tallybayes.data.encoding import count_levels
from tallybayes.data.table import Table
from tallybayes.errors import DataError
from tallybayes.estimation.em.em_loop import EMSummary, is_integer_at_least, warn_unless_converged
from tallybayes.estimation.em.soft_counts import rows_with_missing
from tallybayes.models.classification.class_em import ClassEM
from tallybayes.models.classification.classifier_fit import count_rows
from tallybayes.models.inputs.labels import Labels, new_names, read_labels
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Factor, Name
from tallybayes.tally.tally import Tally
from tallybayes.typing import SampleWeights

if TYPE_CHECKING:
    from tallybayes.models.classification.classifier import Classifier
    from tallybayes.models.mixture.mixture_model import Mixture


def count_first(
    model: Classifier | Mixture, factors: list[Factor], table: Table, weight: SampleWeights
) -> tuple[Tally, EMSummary | None]:
    """Return the tally of the first rows and, if EM was needed, its summary."""
    target = factors[0].columns[0]
    labels = _labels(model, target, table, model.unlabeled == "em")
    weights = check_weight(weight, table.n_rows)
    if labels.n_missing:  # the data type is object only because of None
        model.input_format_ = model.input_format_.without_object_labels()
    if weights is not None and not weights.any():
        raise DataError("the weight of every row is zero; expected at least one row that counts.")
    if labels.n_missing or (weights is not None and not weights.all()):
        table, labels, weights = _that_count(model, table, labels, weights)
    named = np.flatnonzero(labels.rows)
    n_more = 0 if model.n_classes is None and len(named) else _n_unnamed(model, len(named), labels.n_missing)
    if not labels.n_missing:
        try:
            return count_rows(model, table, weights, factors), None
        except DataError:
            if not rows_with_missing(table, factors).any():
                raise
    levels = [labels.domain.levels[k] for k in named]
    names = new_names(levels, n_more, model.missing_label)
    domain = Domain([*levels, *names], str(target), is_sorted=True)
    where = np.full(len(labels.domain.levels) + 1, -1)
    where[named] = domain.positions_of(levels)
    has_rows = np.isin(np.arange(len(domain.levels)), where[named])
    tally, done = ClassEM(model._em_model(factors), table, where[labels.codes], domain, has_rows, weights).run()
    warn_unless_converged(done)
    return tally, done


def count_more(model: Classifier, table: Table, weight: SampleWeights) -> Tally:
    """Return the tally of rows to add or to subtract; EM is not possible."""
    labels = _labels(model, model.target_, table, False)
    weights = check_weight(weight, table.n_rows)
    if labels.n_missing:
        known = np.flatnonzero(labels.codes >= 0)
        table = table.rows(known)
        weights = None if weights is None else weights[known]
    try:
        return count_rows(model, table, weights, list(model.tally_.factors), model.tally_)
    except DataError:
        if not rows_with_missing(table, model.tally_.factors).any():
            raise
        raise DataError(
            "some of these rows have missing cells, which under a full covariance are filled in by EM over all "
            "rows at once.\n    Use fit on all rows, or leave the incomplete ones out."
        ) from None


def _labels(model: Classifier | Mixture, target: Name, table: Table, missing: bool) -> Labels:
    """Return the labels of the rows; raise LabelError if some are missing and neither EM nor skipping is set."""
    labels = read_labels(table, target, model.missing_label)
    if labels.n_missing and not missing and model.unlabeled != "skip":
        how = "Use fit with all rows at once" if model.unlabeled == "em" else "Pass unlabeled='em' or 'skip'"
        labels.check_complete(f"{how}, or leave the unlabeled rows out.", model.missing_label)
    return labels


def _that_count(
    model: Classifier | Mixture, table: Table, labels: Labels, weights: np.ndarray | None
) -> tuple[Table, Labels, np.ndarray | None]:
    """Return the rows with positive weight and, if unlabeled rows are skipped, a label."""
    skip = model.unlabeled == "skip" and labels.n_missing > 0
    if skip and not labels.rows.any():
        raise DataError("no row has a label; expected at least one that does.\n    Pass unlabeled='em'.")
    if not skip and (weights is None or weights.all()):
        return table, labels, weights
    codes, domain, _ = labels
    counts = np.ones(len(codes), dtype=bool) if weights is None else weights > 0
    kept = np.flatnonzero(counts & (codes >= 0) if skip else counts)
    codes = codes[kept]
    labels = Labels(codes, domain, count_levels(codes, len(domain.levels)))
    return table.rows(kept), labels, None if weights is None else weights[kept]


def _n_unnamed(model: Classifier | Mixture, n_named: int, n_unlabeled: int) -> int:
    """Return the number of classes without labeled rows."""
    if model.n_classes is None:
        if n_unlabeled and not n_named:
            raise DataError(
                "no row has a label, and n_classes is None; expected the number of classes.\n"
                "    Pass n_classes, or use tb.Mixture."
            )
        return 0
    if model.unlabeled != "em":
        raise DataError(f"n_classes={model.n_classes!r} needs rows without labels.\n    Pass unlabeled='em'.")
    if not is_integer_at_least(model.n_classes, max(n_named, 1)):
        raise DataError(
            f"n_classes is {model.n_classes!r}; expected a whole number of at least {max(n_named, 1)}"
            + (", the classes that have labels." if n_named else ".")
        )
    if model.n_classes > n_named and not n_unlabeled:
        raise DataError(
            f"n_classes is {model.n_classes!r}, but every row has a label and these show {n_named} classes.\n"
            "    Leave n_classes out, or declare the others: partial_fit(..., classes=...)."
        )
    return int(model.n_classes) - n_named
