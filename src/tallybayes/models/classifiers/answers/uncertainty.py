"""Uncertainty: how sure a classifier is of its own probabilities, and the classes a row may well belong to."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes.beliefs.belief import Interval, tails
from tallybayes.beliefs.dirichlet import Dirichlet
from tallybayes.errors import EstimateError
from tallybayes.families.estimates import read_estimate
from tallybayes.models.fitted.plan import Plan
from tallybayes.sources.table import Table
from tallybayes.statistics.counts import Counts

if TYPE_CHECKING:
    from tallybayes.models.classifiers.classifier import FactoredClassifier

_CELLS = 16_000_000  # probabilities held at a time: rows come in chunks, so that memory does not grow with them


def predict_interval(model: FactoredClassifier, X: Any, mass: float, n_draws: int, random_state: Any) -> Interval:
    """Equal-tailed credible intervals of p(class | row, θ), θ drawn from its posterior; see `GenerativeClassifier`."""
    ends = tails(mass)
    _check_draws(n_draws, mass)
    if not read_estimate(model.estimate).integrates:
        model = model._derive("posterior", lambda: model.reestimate(estimate="bayes"))
    model._check_estimated(model.class_log_prior_)
    table = _read_once(model, model._open(X))
    model._plan.joint(table, whole=False)  # a cell that cannot be scored is named here, by its row among all
    rng = np.random.default_rng(random_state)
    log_priors = _draw_log_priors(model, n_draws, rng)
    # A seed for every draw, not one stream: each chunk of rows meets the same parameters, however many there are, and
    # one draw of them is held at a time.
    seeds = rng.integers(2**63, size=n_draws)
    shape = (table.n_rows, len(model._class_domain.levels))
    low, high = np.empty(shape), np.empty(shape)
    step = max(1, _CELLS // (n_draws * shape[1]))
    for start in range(0, table.n_rows, step):
        part = slice(start, start + step)
        shares = _shares(model, table.rows(part), log_priors, seeds)
        # Position p · (draws + 1): one more draw from the posterior falls between the ends with probability `mass`.
        low[part], high[part] = np.quantile(shares, ends, axis=0, method="weibull", overwrite_input=True)
    return Interval(low, high)


def credible_set(log_proba: np.ndarray, mass: float) -> np.ndarray:
    """Which classes are among the fewest that reach `mass` together, (n, classes); equals go to the first."""
    tails(mass)
    order = np.argsort(-log_proba, axis=1, kind="stable")
    sorted_p = np.exp(np.take_along_axis(log_proba, order, axis=1))
    before = np.cumsum(sorted_p, axis=1) - sorted_p
    chosen = before < mass - 1e-12  # 0.6 and 0.3 reach 0.9, whatever their last bits
    chosen[:, :1] = True
    out = np.zeros_like(chosen)
    np.put_along_axis(out, order, chosen, axis=1)
    return out


def _check_draws(n_draws: int, mass: float) -> None:
    least = int(np.ceil(2 / (1 - mass) - 1 - 1e-9))
    whole = isinstance(n_draws, int | np.integer) and not isinstance(n_draws, bool)
    if not whole or n_draws < least:
        raise EstimateError(
            f"n_draws is {n_draws!r}; expected a whole number of at least {least}, so that some draws lie beyond each "
            f"end of an interval of mass {mass}."
        )


def _shares(model: FactoredClassifier, table: Table, log_priors: np.ndarray, seeds: np.ndarray) -> np.ndarray:
    """p(class | row) under the parameters of every draw: (draws, n, classes)."""
    out = np.empty((len(seeds), table.n_rows, log_priors.shape[1]))
    domains = [model._level_domains(part) for part in model._scored]
    for seed, log_prior, shares in zip(seeds, log_priors, out, strict=True):
        rng = np.random.default_rng(seed)
        scored = [
            part._replace(parameters=part.family.from_belief(part.parameters, "sample", rng), predictive=False)
            for part in model._scored
        ]
        joint = Plan(scored, log_prior, domains, model.unseen).joint(table, whole=False)
        best = joint.max(axis=1, keepdims=True)
        joint = np.where(np.isneginf(best), log_prior, joint - np.where(np.isneginf(best), 0.0, best))
        np.exp(joint, out=shares)
        shares /= shares.sum(axis=1, keepdims=True)
    return out


def _draw_log_priors(model: FactoredClassifier, n_draws: int, rng: np.random.Generator) -> np.ndarray:
    """log p(class) drawn from its posterior, (draws, classes), or as the user gave it. What cannot be stays so."""
    out = np.tile(model.class_log_prior_, (n_draws, 1))
    if model.class_prior is None or isinstance(model.class_prior, Dirichlet):
        belief = Dirichlet(1.0) if model.class_prior is None else model.class_prior
        counts: Any = model.tally_[model._target]
        possible = np.isfinite(model.class_log_prior_)
        with np.errstate(divide="ignore"):
            out[:, possible] = np.log(belief.update(Counts(counts.table[possible])).sample(rng, n_draws))
    return out


def _read_once(model: FactoredClassifier, table: Table) -> Table:
    """The table with its numeric columns as arrays of numbers, so that no draw reads lists or objects again."""
    if table.matrix is not None:
        return table
    columns = dict(table.columns)
    for part in model._scored:
        if part.family.reads != "codes":
            for name in part.factor.columns:
                block = table.numbers((name,))
                columns[name] = block[0] if isinstance(block, list) else block
    return Table(columns)
