"""Comparison: models of the same rows ranked by log evidence."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tallybayes.errors import DataError, EstimateError, printable
from tallybayes.results.result import Result, ResultTable

# Kass and Raftery (1995): Bayes factors from 3, 20 and 150 on, in bits.
_SCALE = (
    (math.log2(3), "not worth more than a bare mention"),
    (math.log2(20), "positive"),
    (math.log2(150), "strong"),
    (math.inf, "very strong"),
)


_FORMATS = {
    "model": "{model}",
    "bits": "{bits:.1f}",
    "excess": "{excess_loss:.1f}",
    "per row": "{per_row:.4f}",
    "probability": "{probability:.3g}",
    "parameters": "{parameters}",
}


@dataclass(eq=False, repr=False)
class Comparison(Result):
    """The log evidence of models of the same rows. Returned by `compare`.

    Attributes
    ----------
    log_evidence : dict
        log p(X, y) under every model, in nats, the best first.
    n_parameters : dict
        The number of free parameters of every model.
    n_rows : float
        The weight of the rows.
    excluded_columns : list
        Columns left out of all models because they are constant.
    mixed : list
        Columns with a density in one model and probabilities in another.
    bounds : list
        Models, such as mixtures, whose log evidence is a lower bound.
    open_bins : list
        Columns that one model discretizes into bins without an end, whose density is a convention.

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

    log_evidence: dict[Any, float]
    n_parameters: dict[Any, int]
    n_rows: float
    excluded_columns: Sequence[Any] = ()
    mixed: Sequence[Any] = ()
    bounds: Sequence[Any] = ()
    open_bins: Sequence[Any] = ()

    def __post_init__(self) -> None:
        self.log_evidence = dict(sorted(self.log_evidence.items(), key=lambda item: -item[1]))
        if not np.isfinite(self.log_evidence[self.best]):
            raise EstimateError(
                "every model gives these rows probability 0; expected at least one with a finite log evidence.\n"
                "    Check class_prior= and prior= for classes or values that they exclude."
            )

    @property
    def best(self) -> Any:
        """The name of the model with the highest log evidence."""
        return next(iter(self.log_evidence))

    @property
    def description_length(self) -> dict[Any, float]:
        """The description length of the data under every model, −log₂ p(X, y) in bits, the best first.

        With densities it depends on the units of the columns, and may be negative; differences do not.
        """
        return {name: -value / math.log(2) for name, value in self.log_evidence.items()}

    @property
    def probabilities(self) -> dict[Any, float]:
        """The posterior probability of every model under equal prior probabilities, if one of them is true."""
        highest = self.log_evidence[self.best]
        weights = {name: math.exp(value - highest) for name, value in self.log_evidence.items()}
        return {name: weight / sum(weights.values()) for name, weight in weights.items()}

    def bayes_factor(self, first: Hashable, second: Hashable) -> float:
        """Return the Bayes factor of two models in bits: log₂ p(X, y | first) − log₂ p(X, y | second).

        Parameters
        ----------
        first, second : names of models

        Returns
        -------
        float
            Positive if the data favor the first: the difference of the description lengths.
        """
        for name in (first, second):
            if name not in self.log_evidence:
                raise DataError(f"there is no model {name!r}; expected one of {list(self.log_evidence)}.")
        return (self.log_evidence[first] - self.log_evidence[second]) / math.log(2)

    def interpretation(self, first: Hashable, second: Hashable) -> str:
        """Return a Bayes factor as text, on the scale of Kass and Raftery (1995) and as a difference in code length.

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
        return (
            f"{printable(first)} against {printable(second)}: {factor:.1f} bits, {words}; its code for the data is "
            f"{self._per_row(factor):.3g} bits a row shorter."
        )

    def _per_row(self, bits: float) -> float:
        return bits / self.n_rows if self.n_rows else 0.0

    def _frame_data(self) -> list[dict[str, Any]]:
        bits = self.description_length
        probabilities = self.probabilities
        return [
            {
                "model": name,
                "bits": value,
                "excess_loss": value - bits[self.best],
                "probability": probabilities[name],
                "parameters": self.n_parameters[name],
            }
            for name, value in bits.items()
        ]

    def _content(self) -> list[str | ResultTable]:
        title = f"Comparison of {len(self.log_evidence)} models of {self.n_rows:.12g} rows by evidence, best first"
        records = [record | {"per_row": self._per_row(record["excess_loss"])} for record in self._frame_data()]
        return [ResultTable.of(records, _FORMATS, title, "lr"), "\n".join(self._notes())]

    def _notes(self) -> list[str]:
        """Return the Bayes factor of the best two models, and notes on columns and models."""
        best, second = list(self.log_evidence)[:2]
        notes = {
            "left out of all models, being constant": self.excluded_columns,
            "probabilities compared to densities, comparable only if the standard deviation is above 1": self.mixed,
            "bins without an end, taken to be three times as wide as their neighbors": self.open_bins,
            "upper bounds of the bits, from lower bounds of the log evidence": self.bounds,
        }
        shown = [f"{note}: {', '.join(map(printable, names))}" for note, names in notes.items() if names]
        return [self.interpretation(best, second), *shown]
