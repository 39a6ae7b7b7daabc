"""Held-out scores: every row scored by the counts of other rows, which come by subtraction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from tallybayes.errors import DataError, LabelError, NotForgettableError
from tallybayes.families.block import Codes, Sparse
from tallybayes.families.categorical import Categorical
from tallybayes.families.multinomial import Multinomial
from tallybayes.families.multivariate_gaussian import MultivariateGaussian
from tallybayes.inference.leave_one_out import is_together, without_row
from tallybayes.models.bayes_rule import Normalised, normalised
from tallybayes.models.calibration import Calibration, calibrate
from tallybayes.models.classifier import FactoredClassifier
from tallybayes.models.features import free_name
from tallybayes.models.plan import Plan, posterior_by_part
from tallybayes.models.scoring import Scored, chunk_of, chunk_rows, rows_of, with_spread
from tallybayes.progress import progress
from tallybayes.sources.collect import check_weight, count
from tallybayes.sources.table import Table
from tallybayes.statistics.counts import Counts
from tallybayes.statistics.statistics import Statistics
from tallybayes.tally.factor import Factor, Schema
from tallybayes.tally.tally import Tally


class Opened(NamedTuple):
    """Rows to learn from and be scored on: a model of their shape, their table, labels as codes, and weights."""

    model: FactoredClassifier
    table: Table
    labels: np.ndarray
    weight: np.ndarray | None


class Rows(NamedTuple):
    """Rows that were counted: a model of all of them, their classes as codes, and the statistics of every fold."""

    model: FactoredClassifier
    table: Table
    codes: np.ndarray
    weight: np.ndarray | None
    parts: list[list[Statistics]]
    log_base: dict[int, np.ndarray]  # what the classes have in common, see Plan.posterior_of

    def without(self, fold: int) -> list[Statistics]:
        """The statistics of all rows less those of a fold, which are known to be among them."""
        pairs = zip(self.model.tally_.statistics, self.parts[fold], strict=True)
        return [whole._subtract(part) for whole, part in pairs]


def open_rows(model: Any, X: Any, y: Any, sample_weight: Any) -> Opened:
    """Read the rows, as `fit` would."""
    if not isinstance(model, FactoredClassifier):
        raise DataError.wrong_type(
            "model", type(model).__name__, "a NaiveBayes or a GaussianDiscriminant", "Others have to be refitted."
        )
    fresh = clone(model)
    table, weight = fresh._read(X, y, sample_weight, first=True)
    missing = np.flatnonzero(fresh._labels(table, fresh._target)[0] < 0)
    if len(missing):
        raise LabelError(
            f"the label of row {int(missing[0])} is missing ({len(missing)} of {table.n_rows} are); expected labels to "
            "score every row against.\n    Pass the labelled rows only: EM takes all rows at once, so none can be "
            "left out by subtraction."
        )
    found, _ = table.levels([fresh._target], lambda _: True)
    return Opened(fresh, table, np.asarray(found.columns[0]), check_weight(weight, table.n_rows))


def count_rows(opened: Opened, fold: np.ndarray | None = None) -> Rows:
    """Count the rows once, each fold apart: a fold is one more thing that is given."""
    model, table, labels, weight = opened
    factors = [Factor(model._target, (), Categorical()), *model._make_factors(table, model._target)]
    schema = Schema(ordered=(str(model._target),))
    name = free_name("fold", list(table.columns))
    given = factors if fold is None else [Factor(f.columns, (name, *f.given), f.family) for f in factors]
    try:
        tally = count(table if fold is None else table.with_column(name, fold), given, weight=weight, schema=schema)
    except DataError as error:
        if any(isinstance(factor.family, MultivariateGaussian) for factor in factors):
            raise NotForgettableError.missing_cells(error) from None
        raise
    if not tally.domains[str(model._target)].levels:
        raise DataError("there is no row with a weight to learn from; expected at least 1.")
    parts: list[list[Statistics]] = []
    if fold is not None:
        where = tally.domains[name].positions_of(range(int(fold.max()) + 1))
        parts = [[s.take(0, one).reshape_groups(s.given_shape[1:]) for s in tally.statistics] for one in where[:, None]]
        domains = {key: domain for key, domain in tally.domains.items() if key != name}
        tally = Tally(factors, [sum(found) for found in zip(*parts, strict=True)], domains, schema)
    _, (local,) = table.levels([model._target], lambda _: True)
    codes = _codes_of(labels, tally.domains[str(model._target)].positions_of(local.levels))
    return Rows(model._adopt(tally), table, codes, weight, parts, {})


def _codes_of(labels: np.ndarray, where: np.ndarray) -> np.ndarray:
    """The classes of the rows; those of rows without weight, which may have none, count as the first."""
    if np.array_equal(where, np.arange(len(where))):
        return labels.astype(np.intp, copy=False)
    return np.maximum(where, 0)[labels.astype(np.intp)]


def score_folds(
    rows: Rows,
    models: Sequence[FactoredClassifier],
    train: Callable[[int], list[Statistics]],
    fold: np.ndarray,
) -> list[Normalised]:
    """The scores of every row by each of the models, learnt from what its fold may learn from.

    ``train`` gives the statistics to learn a fold's model from; fold −1 is only learned from, and scored NaN.
    """
    n_folds, n_classes = int(fold.max()) + 1, len(rows.model.classes_)
    out = [Normalised(np.empty((len(fold), n_classes)), np.empty(len(fold))) for _ in models]
    apart = []
    for model, scores in zip(models, out, strict=True):
        if fold.min() < 0:
            scores.log_proba[fold < 0], scores.log_density[fold < 0] = np.nan, np.nan
        plans = (_plan(model, train(k)) for k in range(n_folds))
        if not posterior_by_part(plans, n_folds, fold, rows.table, scores, rows.log_base):
            apart.append((model, scores))
    if apart:
        tests = rows_by_code(fold)
        for k in progress(range(n_folds), "cross-validating"):
            here = train(k)
            for model, scores in apart:
                _plan(model, here).posterior_of(tests[k], rows.table, scores, rows.log_base)
    return out


def rows_by_code(codes: np.ndarray) -> list[np.ndarray]:
    """The numbers of the rows of every code from 0 up, rising."""
    codes = codes.astype(np.intp, copy=False)
    most = int(codes.max(initial=0))
    kind = np.uint8 if most < 2**8 - 1 else np.uint16 if most < 2**16 - 1 else np.int64
    order = np.argsort(codes.astype(kind), kind="stable")  # short codes are sorted by counting; −1 is the last of them
    return np.split(
        order[: int((codes >= 0).sum())], np.cumsum(np.bincount(codes[codes >= 0], minlength=most + 1))[:-1]
    )


def _plan(model: FactoredClassifier, train: list[Statistics]) -> Plan:
    """How the model scores after learning from `train`; its priors and levels are held."""
    held = model._held(_tally(model, train))
    held._check_estimated(held.class_log_prior_)
    return held._plan


def _tally(model: FactoredClassifier, statistics: list[Statistics]) -> Tally:
    return Tally(model.tally_.factors, statistics, model.tally_.domains, model.tally_.schema)


def score_left_out(rows: Rows, model: FactoredClassifier) -> Normalised:
    """The scores of every row by the model of all other rows."""
    n_rows, n_classes = rows.table.n_rows, len(model.classes_)
    counts = model.tally_[model._target]
    assert isinstance(counts, Counts)
    scores = Normalised(np.empty((n_rows, n_classes)), np.empty(n_rows))
    again = []
    step = _step(model, n_classes)
    for start in range(0, n_rows, step):
        part = slice(start, min(start + step, n_rows))
        weight = np.ones(part.stop - start) if rows.weight is None else rows.weight[part]
        removed = np.zeros((len(weight), n_classes))
        removed[np.arange(len(weight)), rows.codes[part]] = weight
        rest = np.maximum(counts.table - removed, 0.0)
        log_prior = model._log_prior(model.class_prior, Counts(rest, (n_classes,)))
        joint = _joint_left_out(model, rows, part, log_prior)
        again.append(start + np.flatnonzero(np.isnan(joint).any(axis=1)))
        scores.log_proba[part], scores.log_density[part] = normalised(joint, log_prior)
    for row in progress(np.concatenate(again).tolist() if again else [], "leaving rows out"):
        one = rows.table.rows(np.array([row]))
        its = None if rows.weight is None else rows.weight[row : row + 1]
        gone = count(one, model.tally_.factors, weight=its, schema=model.tally_.schema, like=model.tally_)
        gone = gone.over(model.tally_)
        train = [held - out for held, out in zip(model.tally_.statistics, gone.statistics, strict=True)]
        _plan(model, train).posterior_of(np.array([row]), rows.table, scores, rows.log_base)
    return scores


def _step(model: FactoredClassifier, n_classes: int) -> int:
    """How many rows to take at a time: few enough for what the widest factor makes of them."""
    width = 1
    for scored in model._scored:
        if isinstance(scored.family, MultivariateGaussian | Multinomial):
            continue
        statistics = model.tally_[scored.factor.columns]
        cells = statistics.table.shape[-1] if isinstance(statistics, Counts) else len(scored.factor.columns)
        width = max(width, cells * (n_classes if is_together(scored.family) else 1))
    return min(chunk_rows(1, width), 65536)


def _joint_left_out(model: FactoredClassifier, rows: Rows, part: slice, log_prior: np.ndarray) -> np.ndarray:
    """log p(class, row) without each row; NaN in rows that have to be counted out."""
    table, group = rows.table.rows(part), rows.codes[part]
    weight = None if rows.weight is None else rows.weight[part]
    own, together = np.zeros(len(group)), np.zeros(log_prior.shape)
    apart: list[Scored] = []
    if not model._forgets_by_row():
        return np.full(log_prior.shape, np.nan)
    smooth = model.unseen == "smooth"
    for scored, (_, statistics), resolved in zip(
        model._scored, model._feature_factors(), model._resolved(smooth), strict=True
    ):
        domains = model._level_domains(scored)
        cells: Any = rows_of(table, scored.factor.columns, scored.family, domains, model.unseen)
        if isinstance(scored.family, Categorical):
            assert isinstance(statistics, Counts)
            statistics = statistics.with_unseen() if smooth else statistics
            cells = Codes(cells, statistics.segments.sizes)
        elif not isinstance(cells, Sparse):
            cells = chunk_of(cells, slice(None))
        terms = without_row(
            scored.family,
            with_spread(statistics, resolved.constant, scored.family),
            resolved.prior,
            model.estimate,
            cells,
            group,
            weight,
            resolved.constant,
        )
        if is_together(scored.family):
            together += terms
        else:
            apart.append(scored)
            own += terms[:, 0]
    if apart:
        joint = Plan(apart, np.zeros(log_prior.shape[1]), [model._level_domains(s) for s in apart], model.unseen)
        scores = joint.joint(table)
        scores[np.arange(len(group)), group] = own
        together += scores
    return together + log_prior


def calibration_of(model: FactoredClassifier, X: Any, y: Any, method: str, sample_weight: Any) -> Calibration:
    """How to mend a fitted model's probabilities, from some of its own rows, each left out in turn."""
    if model.tally_.soft:
        raise NotForgettableError.soft()
    table, weight = model._read(X, y, sample_weight)
    weight = check_weight(weight, table.n_rows)
    counted = count(table, model.tally_.factors, weight=weight, schema=model.tally_.schema, like=model.tally_)
    _ = model.tally_ - counted  # refuses rows that the model cannot have learned from
    found, (local,) = table.levels([model._target], lambda _: True)
    codes = _codes_of(np.asarray(found.columns[0]), model._class_domain.positions_of(local.levels))
    scores = score_left_out(Rows(model, table, codes, weight, [], {}), model)
    return calibrate(scores.log_proba, codes, weight, method, model._weight())
