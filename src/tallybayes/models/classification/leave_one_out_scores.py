"""Leave-one-out scores of a classifier: every row is scored by the counts of all other rows."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes._utils.progress import progress
from tallybayes.data.counting import count
from tallybayes.data.table import Table
from tallybayes.estimation.resampling.folds import rows_by_code
from tallybayes.estimation.resampling.held_out import subtract_tally
from tallybayes.estimation.resampling.leave_one_out import is_cellwise, leave_one_out_log_prob, leave_one_out_tables
from tallybayes.estimation.scoring.bayes_rule import ClassPosterior, apply_bayes_rule
from tallybayes.estimation.scoring.factor_scorer import FactorScorer, chunk_of, chunk_rows
from tallybayes.estimation.scoring.leave_one_out_scorer import LeaveOneOutScorer
from tallybayes.estimation.scoring.row_scorer import RowScorer, posterior_by_part
from tallybayes.families._shared.blocks import Codes, SparseRows
from tallybayes.families.protocols.leave_one_out import leave_one_out_changes_all_groups
from tallybayes.statistics.counts import Counts

if TYPE_CHECKING:
    from tallybayes.models.classification.estimated_classifier import EstimatedClassifier
    from tallybayes.models.classification.held_out_rows import CountedRows


def leave_rows_out(rows: CountedRows, estimates: EstimatedClassifier) -> ClassPosterior:
    """Return the scores of every row without its own counts, by closed forms of the families where they have one."""
    scores = scores_in_closed_form(rows, estimates)
    counted = estimates.counted
    for row in progress(np.flatnonzero(np.isnan(scores.log_density)).tolist(), "leaving rows out"):
        at = np.array([row])
        gone = count(
            rows.table.rows(at), counted.factors, weight=rows.some_weight(at), schema=counted.schema, like=counted
        )
        rest = estimates.with_tally(subtract_tally(counted, gone.reindex_like(counted).statistics))
        rest.row_scorer.posterior_of(at, rows.table, scores, rows.log_base)
    return scores


def scores_in_closed_form(rows: CountedRows, estimates: EstimatedClassifier) -> ClassPosterior:
    """Return the scores of every row without its own counts; NaN where no closed form is precise."""
    scores = rows.empty_scores()
    if not estimates.rows_are_independent:
        scores.log_density[:] = np.nan
        return scores
    estimates.check_defined(estimates.class_log_prior)
    left = _score_by_class(rows, estimates, scores)
    step = _step(estimates, rows.table)
    whole = left.all()
    index = np.flatnonzero(left)
    for start in range(0, len(index), step):
        part = slice(start, min(start + step, len(left))) if whole else index[start : start + step]
        log_prior = estimates.log_prior_without(rows.codes[part], rows.some_weight(part))
        found = apply_bayes_rule(_joint_left_out(estimates, rows, part, log_prior), log_prior)
        scores.log_proba[part], scores.log_density[part] = found
    return scores


def _score_by_class(rows: CountedRows, estimates: EstimatedClassifier, out: ClassPosterior) -> np.ndarray:
    """Score rows by one table per class from which a row is left out; return the rows that need more."""
    n_rows = rows.table.n_rows
    n_classes = len(estimates.classes.levels)
    everything = np.ones(n_rows, dtype=bool)
    if rows.weight is not None or n_rows == 0:
        return everything
    own = []
    for scored, statistics, resolved in estimates.scoring_factors.counted_scorers:
        tables = leave_one_out_tables(scored.family, statistics, resolved.prior, estimates.estimate, resolved.constant)
        if tables is None:
            return everything
        own.append(tables)
    n_cells = sum(tables[0].size for tables in own) * n_classes
    if n_cells > max(1_000_000, n_rows * sum(len(scored.factor.columns) for scored in estimates.scorers)):
        return everything  # the tables would be larger than the rows
    log_prior = estimates.log_prior_without(np.arange(n_classes), None)
    unknown = np.zeros(n_classes, dtype=bool)
    for array in itertools.chain.from_iterable(own):
        unknown |= np.isnan(array).any(axis=0)
    plans: list[RowScorer] = []
    place = np.full(n_classes, -1, dtype=np.int32)
    for code in np.flatnonzero(~unknown):
        plan = LeaveOneOutScorer(estimates.row_scorer, log_prior[code], own, int(code))
        if plan.uses_kernels(rows.table):
            place[code] = len(plans)
            plans.append(plan)
    part = place[rows.codes]
    where = rows.table, out, rows.log_base
    together = bool(plans) and plans[0].uses_kernels(rows.table, len(plans))
    if plans and not (together and posterior_by_part(plans, part, *where)):
        for each, test in zip(plans, rows_by_code(part, len(plans)), strict=True):
            each.posterior_of(test, *where)
    return part < 0


def _step(estimates: EstimatedClassifier, table: Table) -> int:
    """Return the number of rows to score at a time, limited by the widest factor."""
    width = 1
    for scored in estimates.scorers:
        sparse = table.kind(scored.factor.columns[0]) in ("sparse", "text") if scored.factor.columns else False
        if not is_cellwise(scored.family, sparse):
            continue
        statistics: Any = estimates.tally[scored.factor.columns]
        cells = statistics.table.shape[-1] if isinstance(statistics, Counts) else statistics.n_columns
        cells = cells * 8 if sparse else cells  # the statistics of every row, in several arrays
        n_groups = len(estimates.classes.levels) if leave_one_out_changes_all_groups(scored.family) else 1
        width = max(width, cells * n_groups)
    return min(chunk_rows(1, width), 65536)


def _joint_left_out(
    estimates: EstimatedClassifier, rows: CountedRows, part: slice | np.ndarray, log_prior: np.ndarray
) -> np.ndarray:
    """Return log p(class, row) without each row; NaN for rows that need other counts."""
    group = rows.codes[part]
    table = rows.table if len(group) == rows.table.n_rows else rows.table.rows(part)  # its levels are encoded already
    own = np.zeros(len(group))
    together = np.zeros(log_prior.shape)
    apart: list[FactorScorer] = []
    for scored, statistics, resolved in estimates.scoring_factors.counted_scorers:
        cells = estimates.cells(table, scored)
        if scored.family.cell_type == "codes":
            cells = Codes(cells, statistics.segments.sizes)
        elif not isinstance(cells, SparseRows):
            cells = chunk_of(cells, slice(None))
        counted = scored.family, statistics, resolved.prior, estimates.estimate
        terms = leave_one_out_log_prob(*counted, cells, group, rows.some_weight(part), resolved.constant)
        if leave_one_out_changes_all_groups(scored.family):
            together += terms
        else:
            apart.append(scored)
            own += terms[:, 0]
    if apart:
        no_prior = np.zeros(log_prior.shape[1])
        domains = [estimates.level_domains(scored) for scored in apart]
        scores = RowScorer(apart, no_prior, domains, estimates.unseen).joint(table)
        scores[np.arange(len(group)), group] = own
        together += scores
    return together + log_prior
