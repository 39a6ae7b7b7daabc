"""Terms of joint densities of rows, as written in textbooks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tallybayes.families._shared.log_prob_forms import CellSumForm, Form, MultivariateNormalForm, MultivariateTForm


class DensityTerms(NamedTuple):
    """Terms of log p(row | group) of a joint density.

    Attributes
    ----------
    note : str
        Name of the density and its formula.
    parts : dict
        Terms of the log probability by name, each of shape (groups,).
    means : ndarray of shape (groups, columns)
    """

    note: str
    parts: dict[str, np.ndarray]
    means: np.ndarray


class WordTerms(NamedTuple):
    """Terms of log p(row | group) of a Dirichlet-multinomial: per word (groups, columns), and of the row sum."""

    terms: np.ndarray
    of_sum: np.ndarray


def is_joint(form: Form | None) -> bool:
    """Return whether a form is a joint density of the columns."""
    return isinstance(form, MultivariateNormalForm | MultivariateTForm)


def density_terms(form: MultivariateNormalForm | MultivariateTForm, row: np.ndarray) -> DensityTerms:
    """Return the terms of the density of one row, shape (columns,), with NaN at missing cells."""
    mean = np.asarray(form.mean if isinstance(form, MultivariateNormalForm) else form.location)
    known, total = np.flatnonzero(~np.isnan(row)), form.evaluate(row[None])[0]
    k = len(known)
    if not k:
        return DensityTerms("no observed cells", {}, mean)
    groups = np.arange(len(mean))
    whitened = form.whitened(row[known] - mean[:, known], known)[0]  # by every group, of every group's deviation
    squared_norms = (np.broadcast_to(whitened, (len(mean), len(mean), k))[groups, groups] ** 2).sum(axis=-1)
    if isinstance(form, MultivariateNormalForm):
        parts = {"−½ log det(2πΣ)": total + 0.5 * squared_norms, "−½ (x − μ)ᵀ Σ⁻¹ (x − μ)": -0.5 * squared_norms}
        return DensityTerms(f"N(x | μ, Σ) by its quadratic form, {k} columns together", parts, mean)
    log_kernel = -(form.shape + k / 2) * np.log1p(squared_norms)
    parts = {
        "log norm": total - log_kernel,
        "q = (x − m)ᵀ S⁻¹ (x − m)": squared_norms,
        "degrees of freedom ν": 2 * form.shape,
        f"−½ (ν + {k}) log(1 + q)": log_kernel,
    }
    return DensityTerms(
        f"Student's t by its quadratic form, {k} columns together, parameters integrated out", parts, mean
    )


def word_terms(form: Form | None, row: np.ndarray) -> WordTerms | None:
    """Return the terms of one row of counts, shape (columns,); None if words are independent."""
    if not isinstance(form, CellSumForm) or form.row_term is None:
        return None
    terms = form.at_zero + form.term(row, np.arange(len(row)))
    return WordTerms(terms, form.row_term(row.sum(keepdims=True))[..., 0])
