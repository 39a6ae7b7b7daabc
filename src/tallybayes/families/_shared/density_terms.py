"""Densities of whole rows, taken apart as a textbook writes them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tallybayes.families._shared.log_prob_forms import CellSumForm, MultivariateNormalForm, MultivariateTForm


class DensityTerms(NamedTuple):
    """log p(row | group) of columns that vary together.

    Attributes
    ----------
    note : str
        Which density it is, and by what it is shown.
    parts : dict
        By what they are called, numbers of shape (groups,) that the log probability is made of.
    means : ndarray of shape (groups, columns)
    """

    note: str
    parts: dict[str, np.ndarray]
    means: np.ndarray


class WordTerms(NamedTuple):
    """log p(row | group) of words that make themselves likelier: terms (groups, columns), and one of the row's sum."""

    terms: np.ndarray
    of_sum: np.ndarray


def is_joint(form: Any) -> bool:
    """Whether a form is of columns that vary together."""
    return isinstance(form, MultivariateNormalForm | MultivariateTForm)


def density_terms(form: Any, row: np.ndarray) -> DensityTerms:
    """A row, shape (columns,), NaN where a cell is missing, by the quadratic form of its density."""
    mean = np.asarray(form.mean if isinstance(form, MultivariateNormalForm) else form.location)
    known, whole = np.flatnonzero(~np.isnan(row)), form.evaluate(row[None])[0]
    k = len(known)
    if not k:
        return DensityTerms("no cell is known", {}, mean)
    each = np.arange(len(mean))
    at = np.broadcast_to(form.whitened(mean[:, known], known)[0], (len(mean), len(mean), k))[each, each]
    lengths = ((form.whitened(row[None, known], known)[0][0] - at) ** 2).sum(axis=-1)
    if isinstance(form, MultivariateNormalForm):
        parts = {"−½ log det(2πΣ)": whole + 0.5 * lengths, "−½ (x − μ)ᵀ Σ⁻¹ (x − μ)": -0.5 * lengths}
        return DensityTerms(f"N(x | μ, Σ) by its quadratic form, {k} columns together", parts, mean)
    bent = -(form.shape + k / 2) * np.log1p(lengths)
    parts = {
        "log norm": whole - bent,
        "q = (x − m)ᵀ S⁻¹ (x − m)": lengths,
        "degrees of freedom ν": 2 * form.shape,
        f"−½ (ν + {k}) log(1 + q)": bent,
    }
    return DensityTerms(
        f"Student's t by its quadratic form, {k} columns together, parameters integrated out", parts, mean
    )


def word_terms(form: Any, row: np.ndarray) -> WordTerms | None:
    """A row of counts, shape (columns,), by the terms of its urn; None where words are independent."""
    if not isinstance(form, CellSumForm) or form.row_term is None:
        return None
    terms = form.at_zero + form.term(row, np.arange(len(row)))
    return WordTerms(terms, form.row_term(row.sum(keepdims=True))[..., 0])
