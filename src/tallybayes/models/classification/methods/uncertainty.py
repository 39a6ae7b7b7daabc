"""Credible intervals of predicted probabilities, and credible sets of classes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tallybayes._utils.parameter_checks import is_integer_at_least, random_generator
from tallybayes.data.table import Table
from tallybayes.distributions.parameter_distribution import Interval, tail_probabilities
from tallybayes.errors import EstimateError
from tallybayes.estimation.scoring.factor_scorer import FactorScorer
from tallybayes.estimation.scoring.row_scorer import RowScorer
from tallybayes.statistics.counts import Counts
from tallybayes.typing import RandomState

if TYPE_CHECKING:
    from tallybayes.models.classification.estimated_classifier import EstimatedClassifier

_CELLS = 16_000_000  # probabilities in memory at a time; rows are processed in chunks


def predict_proba_interval(
    estimates: EstimatedClassifier, table: Table, mass: float, n_draws: int, random_state: RandomState
) -> Interval:
    """Return credible intervals of the predicted probabilities: their uncertainty given the training rows.

    Parameters
    ----------
    estimates : EstimatedClassifier
        Under ``estimate="bayes"``, so that its scorers have the posterior distributions.
    table : Table
        The rows.
    mass, n_draws, random_state
        As for `IndependentBlocksMixin.predict_proba_interval`.
    """
    ends = tail_probabilities(mass)
    _check_draws(n_draws, mass)
    table = _read_once(estimates.scorers, table)
    estimates.joint(table, whole=False)  # raises for invalid cells, with the row among all rows
    rng = random_generator(random_state)
    log_priors = _draw_log_priors(estimates, n_draws, rng)
    # Each draw has its own seed, so that every chunk of rows uses the same parameters, and only one draw is in
    # memory at a time.
    seeds = rng.integers(2**63, size=n_draws)
    shape = (table.n_rows, len(estimates.classes.levels))
    low = np.empty(shape)
    high = np.empty(shape)
    step = max(1, _CELLS // (n_draws * shape[1]))
    for start in range(0, table.n_rows, step):
        part = slice(start, start + step)
        probabilities = _sampled_proba(estimates, table.rows(part), log_priors, seeds)
        # Position p · (draws + 1): one more draw from the posterior falls between the ends with probability `mass`.
        low[part], high[part] = np.quantile(probabilities, ends, axis=0, method="weibull", overwrite_input=True)
    return Interval(low, high)


def smallest_set(log_proba: np.ndarray, mass: float) -> np.ndarray:
    """Return the smallest set of classes with a total probability of at least `mass`: a credible set for each row."""
    tail_probabilities(mass)
    order = np.argsort(-log_proba, axis=1, kind="stable")
    sorted_p = np.exp(np.take_along_axis(log_proba, order, axis=1))
    before = np.cumsum(sorted_p, axis=1) - sorted_p
    chosen = before < mass - 1e-12  # tolerance for rounding: 0.6 + 0.3 reaches 0.9
    chosen[:, :1] = True
    out = np.zeros_like(chosen)
    np.put_along_axis(out, order, chosen, axis=1)
    return out


def _check_draws(n_draws: int, mass: float) -> None:
    """Raise EstimateError if there are too few draws for the interval."""
    least = int(np.ceil(2 / (1 - mass) - 1 - 1e-9))
    if not is_integer_at_least(n_draws, least):
        raise EstimateError(
            f"n_draws is {n_draws!r}; expected a whole number of at least {least}, so that some draws lie beyond each "
            f"end of an interval of mass {mass}."
        )


def _sampled_proba(
    estimates: EstimatedClassifier, table: Table, log_priors: np.ndarray, seeds: np.ndarray
) -> np.ndarray:
    """Return p(class | row) under the parameters of each draw: (draws, n, classes)."""
    out = np.empty((len(seeds), table.n_rows, log_priors.shape[1]))
    domains = [estimates.level_domains(part) for part in estimates.scorers]
    for seed, log_prior, probabilities in zip(seeds, log_priors, out, strict=True):
        rng = np.random.default_rng(seed)
        scored = [
            part._replace(
                parameters=part.family.parameters_from(part.parameters, "sample", random_state=rng), predictive=False
            )
            for part in estimates.scorers
        ]
        joint = RowScorer(scored, log_prior, domains, estimates.unseen).joint(table, whole=False)
        best = joint.max(axis=1, keepdims=True)
        joint = np.where(np.isneginf(best), log_prior, joint - np.where(np.isneginf(best), 0.0, best))
        np.exp(joint, out=probabilities)
        probabilities /= probabilities.sum(axis=1, keepdims=True)
    return out


def _draw_log_priors(estimates: EstimatedClassifier, n_draws: int, rng: np.random.Generator) -> np.ndarray:
    """Return draws of log p(class) from its posterior, (draws, classes), or the fixed class prior. Zeros stay zeros."""
    out = np.tile(estimates.class_log_prior, (n_draws, 1))
    prior = estimates.class_prior_distribution
    if prior is not None:
        possible = np.isfinite(estimates.class_log_prior)
        posterior = prior.update(Counts(estimates.class_counts.table[possible]))
        with np.errstate(divide="ignore"):
            out[:, possible] = np.log(posterior.sample(n_draws, random_state=rng))
    return out


def _read_once(scorers: Sequence[FactorScorer], table: Table) -> Table:
    """Return the table with numeric columns as arrays, so that each draw does not parse them again."""
    if table.matrix is not None:
        return table
    columns = dict(table.columns)
    for part in scorers:
        if part.family.cell_type != "codes":
            for name in part.factor.columns:
                block = table.numbers((name,))
                columns[name] = block[0] if isinstance(block, list) else block
    return Table(columns)
