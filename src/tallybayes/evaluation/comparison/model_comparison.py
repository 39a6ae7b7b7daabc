"""Models compared by evidence: Bayes factors, code lengths, probabilities of the models."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tallybayes._utils.html import html_parts
from tallybayes._utils.text_table import text_table
from tallybayes.errors import DataError, EstimateError, printable
from tallybayes.estimation.estimated_factors import LogEvidence
from tallybayes.evaluation.comparison.same_rows import check_same, describe
from tallybayes.models.classification.class_conditional import ClassConditionalModel
from tallybayes.models.hmm.hidden_markov_model import HiddenMarkovModel
from tallybayes.models.inspection.information_criteria import evidence_of
from tallybayes.models.mixture.mixture_model import Mixture
from tallybayes.models.network.bayesian_network import BayesianNetwork

if TYPE_CHECKING:
    import pandas as pd

# Kass and Raftery (1995): Bayes factors from 3, 20 and 150 on, in bits.
_SCALE = (
    (math.log2(3), "not worth more than a bare mention"),
    (math.log2(20), "positive"),
    (math.log2(150), "strong"),
    (math.inf, "very strong"),
)


def compare(models: Mapping[Any, Any] | Sequence[Any]) -> Comparison:
    """Compare models of the same rows by their evidence: which explains the data best, complexity paid for.

    The models may differ in kind, families, structure and priors (naive Bayes, tied, full, a network, a chain), but
    must have counted the same rows: the same classes, columns and weights. Each is judged by log p(X, y) under its own
    ``prior_`` (`NaiveBayes.log_evidence`), so state the priors where they matter; a `Mixture` by ``evidence_lower_bound_``,
    which is below its evidence. Columns that have no finite density in one
    model, because they are the same in every row, are left out of all. Of a column of whole numbers, a density
    (`Gaussian`) and a probability (`Poisson`) compare as if every number were a cell of width 1: fair where the spread
    is well above 1, else not. The comparison says so where it applies.

    Parameters
    ----------
    models : mapping from name to fitted model, or list of fitted models
        `NaiveBayes`, `GaussianDiscriminant`, `BayesianNetwork`, `HiddenMarkovModel` of labeled sequences, `Mixture`;
        those of a list are named 0, 1, …

    Returns
    -------
    Comparison
        It prints as a table.

    Examples
    --------
    >>> import tallybayes as tb
    >>> from sklearn.datasets import load_iris
    >>> full = tb.GaussianDiscriminant().fit(*load_iris(return_X_y=True))
    >>> found = tb.compare({name: full.reestimate(covariance=name) for name in ("full", "tied", "diagonal")})
    >>> found.best
    'full'
    >>> found.bayes_factor("full", "diagonal") > 100
    True
    """
    named = dict(models.items() if isinstance(models, Mapping) else enumerate(models))
    if len(named) < 2:
        raise DataError.wrong_type("models", f"a collection of {len(named)}", "at least two fitted models")
    for name, model in named.items():
        if not isinstance(model, ClassConditionalModel | BayesianNetwork | HiddenMarkovModel):
            expected = "a fitted model that says how rows come about, such as tb.NaiveBayes or tb.BayesianNetwork"
            raise DataError.wrong_type(f"model {name!r}", type(model).__name__, expected)
        check_is_fitted(model, "tally_")
    found = {name: _evidence(model) for name, model in named.items()}
    tables = {name: describe(model) for name, model in named.items()}
    first, *others = tables
    for other in others:
        check_same(first, tables[first], other, tables[other])
    left_out = list(dict.fromkeys(column for evidence in found.values() for column in evidence.excluded_columns))
    log_evidence = {name: _evidence(model, left_out).log_evidence for name, model in named.items()}
    return Comparison(
        log_evidence,
        {name: model.n_parameters_ for name, model in named.items()},
        tables[first].n_rows,
        left_out,
        _mixed(named),
        [name for name, model in named.items() if isinstance(model, Mixture)],
        _open_bins(named),
    )


class Comparison:
    """The evidence of some models of the same rows. Made by `compare`.

    Attributes
    ----------
    log_evidence : dict
        log p(X, y) of every model, in nats, the best first.
    n_parameters : dict
        The free parameters of every model.
    n_rows : float
        The weight of the rows.
    left_out : list
        Columns that were left out of all models, because they are the same in every row.
    mixed : list
        Columns with a density in one model and probabilities in another.
    bounds : list
        Models, such as mixtures, whose evidence is at least what is told here.
    open_bins : list
        Columns that one model cuts into bins without an end, which flatters it where values lie far out.

    Examples
    --------
    >>> import numpy as np, tallybayes as tb
    >>> rng = np.random.default_rng(0)
    >>> prices, sold = np.exp(rng.normal(3, 1, 200)), rng.integers(0, 2, 200)
    >>> rows = {"price": prices}
    >>> tb.compare({
    ...     "normal": tb.NaiveBayes({"price": tb.Gaussian()}).fit(rows, sold),
    ...     "log-normal": tb.NaiveBayes({"price": tb.LogNormal()}).fit(rows, sold),
    ... })
    Comparison of 2 models of 200 rows by evidence, best first
      model         bits  excess  per row  probability  parameters
      log-normal  1489.6     0.0   0.0000            1           5
      normal      1605.8   116.2   0.5812     1.02e-35           5
    log-normal against normal: 116.2 bits, very strong; its code for the data is 0.581 bits a row shorter.
    """

    def __init__(
        self,
        log_evidence: Mapping[Any, float],
        n_parameters: Mapping[Any, int],
        n_rows: float,
        excluded_columns: Sequence[Any] = (),
        mixed: Sequence[Any] = (),
        bounds: Sequence[Any] = (),
        open_bins: Sequence[Any] = (),
    ) -> None:
        self.log_evidence = dict(sorted(log_evidence.items(), key=lambda item: -item[1]))
        self.n_parameters = {name: n_parameters[name] for name in self.log_evidence}
        self.n_rows = n_rows
        self.excluded_columns, self.mixed = list(excluded_columns), list(mixed)
        self.bounds, self.open_bins = list(bounds), list(open_bins)
        if not np.isfinite(next(iter(self.log_evidence.values()))):
            raise EstimateError(
                "every one of the models gives these rows probability 0, so none is better than another.\n"
                "    Check class_prior= and prior= for classes or values that they exclude."
            )

    @property
    def best(self) -> Any:
        """The name of the model with the most evidence."""
        return next(iter(self.log_evidence))

    @property
    def description_length(self) -> dict[Any, float]:
        """The description length of the data under every model: −log₂ p(X, y), the best first.

        Where columns have densities it depends on their units, and may be negative; differences do not.
        """
        return {name: -value / math.log(2) for name, value in self.log_evidence.items()}

    @property
    def probabilities(self) -> dict[Any, float]:
        """The probability of every model given the data, if all were as probable before and one of them is true."""
        top = self.log_evidence[self.best]
        weights = {name: math.exp(value - top) for name, value in self.log_evidence.items()}
        return {name: weight / sum(weights.values()) for name, weight in weights.items()}

    def bayes_factor(self, first: Hashable, second: Hashable) -> float:
        """The Bayes factor between two models in bits: log₂ p(X, y | first) − log₂ p(X, y | second).

        Parameters
        ----------
        first, second : names of models

        Returns
        -------
        float
            Positive where the data speak for the first: by how many bits it describes them more briefly.
        """
        for name in (first, second):
            if name not in self.log_evidence:
                raise DataError(f"there is no model {name!r}; expected one of {list(self.log_evidence)}.")
        return (self.log_evidence[first] - self.log_evidence[second]) / math.log(2)

    def interpretation(self, first: Hashable, second: Hashable) -> str:
        """A Bayes factor in words, on the scale of Kass and Raftery, and as lengths of code.

        Parameters
        ----------
        first, second : names of models

        Returns
        -------
        str
        """
        factor = self.bayes_factor(first, second)
        if factor < 0:
            return self.interpretation(second, first)
        words = next(word for limit, word in _SCALE if factor < limit or limit == math.inf)
        row = factor / self.n_rows if self.n_rows else 0.0
        return (
            f"{printable(first)} against {printable(second)}: {factor:.1f} bits, {words}; its code for the data is "
            f"{row:.3g} bits a row shorter."
        )

    def to_frame(self) -> pd.DataFrame:
        """One line per model, the best first, as a pandas data frame."""
        import pandas as pd

        bits = self.description_length
        return pd.DataFrame(
            {
                "model": list(bits),
                "bits": list(bits.values()),
                "excess_loss": [value - bits[self.best] for value in bits.values()],
                "probability": list(self.probabilities.values()),
                "parameters": list(self.n_parameters.values()),
            }
        )

    def _lines(self) -> list[tuple[str, ...]]:
        """The table, its head first."""
        bits, probabilities = self.description_length, self.probabilities
        lines: list[tuple[str, ...]] = [("model", "bits", "excess", "per row", "probability", "parameters")]
        for name, value in bits.items():
            behind = value - bits[self.best]
            row = behind / self.n_rows if self.n_rows else 0.0
            lines.append(
                (
                    printable(name),
                    f"{value:.1f}",
                    f"{behind:.1f}",
                    f"{row:.4f}",
                    f"{probabilities[name]:.3g}",
                    str(self.n_parameters[name]),
                )
            )
        return lines

    def _title(self) -> str:
        return f"Comparison of {len(self.description_length)} models of {self.n_rows:.12g} rows by evidence, best first"

    def __repr__(self) -> str:
        lines = self._lines()
        return "\n".join([self._title(), *text_table(lines, right=range(1, len(lines[0]))), *self._notes()])

    def _repr_html_(self) -> str:
        head, *rows = self._lines()
        return html_parts((self._title(), head, rows), "\n".join(self._notes()))

    def _notes(self) -> list[str]:
        """How to read the table."""
        best, second = list(self.description_length)[:2]
        out = [self.interpretation(best, second)]
        if self.excluded_columns:
            out.append(
                f"left out of all, being the same in every row: {', '.join(map(printable, self.excluded_columns))}"
            )
        if self.mixed:
            out.append(
                f"probabilities against densities, fair for whole numbers of a spread above 1 only: "
                f"{', '.join(map(printable, self.mixed))}"
            )
        if self.open_bins:
            shown = ", ".join(map(printable, self.open_bins))
            out.append(
                f"bins without an end, taken to be three times as wide as their neighbors, against others: {shown}"
            )
        if self.bounds:
            out.append(f"at most so many bits, by a bound of the evidence: {', '.join(map(printable, self.bounds))}")
        return out


def _evidence(model: Any, without: Sequence[Any] = ()) -> LogEvidence:
    """The log evidence of a model, or the bound of a mixture, and the columns that have no part in it."""
    if not isinstance(model, Mixture):
        return evidence_of(model, without)
    whole, rest = (model._all_factors.evidence(names).log_evidence for names in ((), without))
    return LogEvidence(model.evidence_lower_bound_ + rest - whole, model._all_factors.evidence().excluded_columns)


def _open_bins(models: Mapping[Any, Any]) -> list[Any]:
    """Columns that are bins without an end in one model, and something else in another."""
    widths: dict[Any, set[Any]] = {}
    for model in models.values():
        for factor in model.tally_.factors:
            for name in factor.columns:
                widths.setdefault(name, set()).add(tuple(factor.family.open_bins))
    return [name for name, found in widths.items() if len(found) > 1]


def _mixed(models: Mapping[Any, Any]) -> list[Any]:
    """The columns to which some models give probabilities and others densities."""
    kinds: dict[Any, set[bool]] = {}
    for model in models.values():
        for factor, statistics in zip(model.tally_.factors, model.tally_.statistics, strict=True):
            for place in range(int(statistics.n_columns)):
                name = factor.column(place, int(statistics.n_columns))
                kinds.setdefault(name, set()).add(factor.family.is_continuous)
    return [name for name, kind in kinds.items() if len(kind) > 1]
