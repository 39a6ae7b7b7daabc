"""Laws of the optional protocols of a family: closed forms agree with the general definitions."""

from __future__ import annotations

import contextlib
from typing import Any

import numpy as np

from tallybayes.families._shared.leave_one_out_counts import GroupStatistics, RemovedRows
from tallybayes.families.estimates import read_estimate
from tallybayes.families.family import Family
from tallybayes.families.protocols.cell_checks import first_invalid_cell, out_of_support
from tallybayes.families.protocols.distribution_functions import cdf, kl_divergence
from tallybayes.families.protocols.leave_one_out import leave_one_out_log_prob
from tallybayes.families.protocols.scoring_forms import form_of, log_jacobian, transform

_DRAWS = 4096


def check_protocols(family: Family, rows: np.ndarray, *, tolerance: float = 1e-8) -> None:
    """Check that the optional protocols of a family of numbers agree with its methods.

    The log likelihood is the sum of log probabilities, and the log evidence of one row is its prior predictive.
    Scoring forms, closed-form leave-one-out, distribution functions, divergences and cell checks agree with
    `log_prob`, `log_predictive`, `sample` and `collect`.

    Parameters
    ----------
    family : Family
    rows : array of shape (n, columns)
        At least two rows that the family can count, without missing cells.
    tolerance : float, default 1e-8
        Relative tolerance.

    Examples
    --------
    >>> import numpy as np, tallybayes as tb
    >>> from tallybayes.testing import check_protocols
    >>> check_protocols(tb.Poisson(), np.array([[2.0, 0.0], [3.0, 1.0], [7.0, 1.0]]))
    """
    rows = np.asarray(rows, dtype=float)
    statistics = family.collect(rows)
    prior = family.resolve_prior(None, statistics, "bayes")
    parameters = family.parameters_from(prior.update(statistics), "mean")
    log_prob = family.log_prob(parameters, rows)
    total = family.log_likelihood(parameters, statistics)
    _check(np.sum(total), log_prob.sum(), tolerance * (1 + np.abs(log_prob).sum()), "log_likelihood = Σ log_prob")
    _check_form(family, parameters, log_prob, rows, tolerance, predictive=False)
    with contextlib.suppress(NotImplementedError):  # a family may have no closed-form predictive
        _check_predictive(family, statistics, prior, rows, tolerance)
    _check_distribution(family, parameters, rows)
    invalid = out_of_support(family, rows)
    if first_invalid_cell(family, rows) is not None or (invalid is not None and invalid.any()):
        raise AssertionError(f"the cell checks of {family!r} reject rows that it counts")


def _check_predictive(family: Family, statistics: Any, prior: Any, rows: np.ndarray, tolerance: float) -> None:
    """Check the predictive against the evidence, its scoring form, and leave-one-out."""
    posterior = prior.update(statistics)
    if not family.is_bag_of_words:  # its predictive is that of single tokens
        evidence = np.sum(family.log_evidence(prior, family.collect(rows[:1])))
        predictive = family.log_predictive(prior.update(statistics.scale(0.0)), rows[:1]).sum()
        _check(
            evidence,
            predictive,
            tolerance * (1 + abs(predictive)),
            "log_evidence of one row = log_predictive of the prior",
        )
    _check_form(family, posterior, family.log_predictive(posterior, rows), rows, tolerance, predictive=True)
    _check_leave_one_out(family, statistics, prior, rows, tolerance)


def _check_form(
    family: Family, parameters: Any, expected: np.ndarray, rows: np.ndarray, tolerance: float, *, predictive: bool
) -> None:
    """Check that a scoring form has the log probabilities of rows, up to a term equal in all groups."""
    form = form_of(family, parameters, predictive)
    evaluate = getattr(form, "evaluate", None)  # sums over cells score whole rows
    if evaluate is None or family.is_bag_of_words:  # these forms omit the multinomial coefficient
        return
    cells = np.asarray(transform(family, rows))
    scores = evaluate(cells).reshape(len(rows), -1).sum(axis=-1)
    jacobian = log_jacobian(family, cells)
    scores = scores if jacobian is None else scores + jacobian
    difference = scores - expected.reshape(len(rows), -1).sum(axis=-1)
    _check(difference, np.zeros(len(rows)), tolerance * (1 + np.abs(scores)), "the scoring form = the log probability")


def _check_leave_one_out(family: Family, statistics: Any, prior: Any, rows: np.ndarray, tolerance: float) -> None:
    """Check that the closed form of leave-one-out has the scores of statistics without the row."""
    n = len(rows)
    removed = RemovedRows(rows, np.zeros(n, dtype=np.intp), np.ones(n), np.zeros(0, dtype=np.intp))
    scores = leave_one_out_log_prob(family, GroupStatistics(statistics, prior, read_estimate("bayes")), removed)
    if scores is None:
        return
    for row, score in enumerate(scores[:, 0]):
        if not np.isnan(score):
            rest = prior.update(statistics - family.collect(rows[row : row + 1], like=statistics))
            expected = family.log_predictive(rest, rows[row : row + 1]).sum()
            _check(score, expected, tolerance * (1 + abs(expected)), "leave-one-out = the predictive without the row")


def _check_distribution(family: Family, parameters: Any, rows: np.ndarray) -> None:
    """Check that the distribution function and the divergence agree with random rows."""
    if not family.columnwise:
        return
    draws = family.sample(parameters, _DRAWS, np.random.default_rng(1))
    expected = np.stack([(draws <= row).mean(axis=0) for row in rows])
    slack = 6 * np.sqrt(0.25 / _DRAWS)
    _check(cdf(family, parameters, rows), expected, slack, "cdf = the distribution function of samples")
    _check(kl_divergence(family, parameters, parameters), 0.0, 1e-8, "kl_divergence of equal parameters = 0")


def _check(found: Any, expected: Any, slack: float | np.ndarray, law: str) -> None:
    """Raise AssertionError with the largest difference unless two arrays agree."""
    difference = np.abs(np.asarray(found, dtype=float) - np.asarray(expected, dtype=float))
    if not (difference <= slack).all():
        raise AssertionError(f"the law {law!r} does not hold: {found!r}, expected {expected!r}")
