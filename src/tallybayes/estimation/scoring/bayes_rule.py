"""Bayes' rule: log p(class | row) and log p(row) from log p(class, row)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from tallybayes import kernels


class ClassPosterior(NamedTuple):
    """log p(class | row) of shape (n, classes), and log p(row).

    Rows that are impossible in every class get the class prior.
    """

    log_proba: np.ndarray
    log_density: np.ndarray

    @property
    def impossible(self) -> np.ndarray:
        """Whether a row is impossible in every class."""
        return self.log_density == -np.inf


def apply_bayes_rule(joint: np.ndarray, log_prior: np.ndarray) -> ClassPosterior:
    """Apply Bayes' rule to log p(class, row) of shape (n, classes), which is overwritten.

    ``log_prior``, for impossible rows, has shape (classes,), or (n, classes) if it differs by row.
    """
    n_rows, n_classes = joint.shape
    own = log_prior.ndim == 2
    scorer = kernels.Scorer(np.zeros(n_classes), [("terms",)])
    joint = np.ascontiguousarray(joint)
    prior = np.zeros(n_classes) if own else log_prior
    found = ClassPosterior(*scorer.posterior([joint], n_rows, prior, log_proba=joint))
    if own and found.impossible.any():
        rows = np.flatnonzero(found.impossible)
        found.log_proba[rows] = log_prior[rows] - logsumexp(log_prior[rows], axis=1, keepdims=True)
    return found
