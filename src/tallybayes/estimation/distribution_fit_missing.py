"""FittedWithMissing: a distribution of values that may be missing, fitted as the pair of presence and value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tallybayes._utils.parameter_checks import random_generator
from tallybayes.data.missing_indicators import indicator_name
from tallybayes.data.table import open_table
from tallybayes.distributions.parameter_distribution import as_float
from tallybayes.errors import PriorError, short_repr
from tallybayes.estimation.distribution_fit import DescriptionLength, FittedDistribution
from tallybayes.estimation.predictive import Predictive
from tallybayes.families.family import Family
from tallybayes.families.with_missing import WithMissing
from tallybayes.tally.tally import Tally
from tallybayes.typing import Column, Prior, RandomState

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from tallybayes.plotting.plot import Plot


class Both(NamedTuple):
    """A result for the presence of values, and the same result for the observed values."""

    there: Any
    values: Column


class FittedWithMissing(FittedDistribution):
    """Result of `fit_distribution` in `WithMissing(family)`: the distributions of presence and of observed values.

    p(value) = p(there) · p(value | there), and p(missing) = 1 − p(there). Each part is a `FittedDistribution`. Methods
    return a pair of results or, for log probabilities, their sum.

    Attributes
    ----------
    there : FittedDistribution
        Whether values are observed, in the family `Bernoulli`.
    values : FittedDistribution
        The observed values.

    Examples
    --------
    >>> import tallybayes as tb
    >>> salary = tb.fit_distribution([20.0, None, None, 31.0, 24.0], tb.WithMissing(tb.Gaussian()))
    >>> salary
    FittedWithMissing: WithMissing(Gaussian()), weight 5
      mle    there 0.6; mean 25, variance 20.6667, std 4.54606
      bayes  there 0.571429; mean 25, variance 32.3093, std 5.68413
    >>> salary.estimate("mle").there, salary.values.estimate("mle").mean
    (0.6, 25.0)
    >>> round(salary.predictive().log_prob(None), 4)  # log 3/7: two of five are missing, and add-one smoothing
    -0.8473
    """

    def __init__(self, tally: Tally, *, single: bool) -> None:
        super().__init__(tally, single=single)
        self.values, self.there = (
            FittedDistribution(Tally([factor], [part], tally.domains, tally.schema), single=single)
            for factor, part in zip(tally.factors, tally.statistics, strict=True)
        )

    @property
    def family(self) -> Family:
        """The family of the values."""
        return WithMissing(self.values.family)

    @property
    def statistics(self) -> Any:
        """The sufficient statistics of both parts."""
        return Both(self.there.statistics, self.values.statistics)

    @property
    def levels(self) -> Any:
        """The levels of the observed values."""
        return self.values.levels

    def estimate(self, estimate: str = "bayes", *, prior: Prior | Mapping[str, Prior] = None) -> Any:
        """Return the parameters of both parts; see `FittedDistribution.estimate`.

        Parameters
        ----------
        estimate : {"bayes", "mle", "unbiased", "map"}
        prior : mapping with "there", "values" or both, or None
            The prior of each part; None is the default prior of the family.
        """
        there, values = _priors(prior)
        return Both(self.there.estimate(estimate, prior=there), self.values.estimate(estimate, prior=values))

    def posterior(self, prior: Prior | Mapping[str, Prior] = None) -> Any:
        """Return the posterior distributions of both parts; see `estimate` for `prior`."""
        there, values = _priors(prior)
        return Both(self.there.posterior(there), self.values.posterior(values))

    def predictive(self, prior: Prior | Mapping[str, Prior] = None) -> PredictiveWithMissing:
        """Return the posterior predictive distribution of the next value, which may be missing.

        See `estimate` for `prior`.
        """
        there, values = _priors(prior)
        return PredictiveWithMissing(self, self.there.predictive(there), self.values.predictive(values))

    def log_evidence(self, prior: Prior | Mapping[str, Prior] = None) -> Any:
        """Return the log marginal likelihood of presence and observed values."""
        there, values = _priors(prior)
        return as_float(np.asarray(self.there.log_evidence(there)) + self.values.log_evidence(values))

    def log_likelihood(self, parameters: Any) -> Any:
        """Return log p(data | parameters), computed from the sufficient statistics.

        Parameters
        ----------
        parameters : pair of the parameters of both parts, as `estimate` returns it
        """
        there, values = parameters
        return as_float(np.asarray(self.there.log_likelihood(there)) + self.values.log_likelihood(values))

    def description_length(self, prior: Prior | Mapping[str, Prior] = None) -> DescriptionLength:
        """Return the code lengths of both parts together."""
        there, values = _priors(prior)
        parts = zip(self.there.description_length(there), self.values.description_length(values), strict=True)
        return DescriptionLength(*(as_float(np.asarray(one) + other) for one, other in parts))

    def plot(self, prior: Prior | Mapping[str, Prior] = None, ax: Axes | None = None) -> Plot:
        """Plot the posterior of the observed values; ``there.plot()`` plots that of the presence."""
        return self.values.plot(_priors(prior)[1], ax)

    def _estimates(self) -> list[tuple[str, str]]:
        pairs = zip(self.there._estimates(), self.values._estimates(), strict=True)
        return [(name, f"there {there}; {values}") for (name, there), (_, values) in pairs]

    def _row_weight(self) -> np.ndarray:
        return self.there._row_weight()

    def _pooled_weight(self) -> np.ndarray:
        return self.there._pooled_weight()


class PredictiveWithMissing(Predictive):
    """The posterior predictive distribution of a value that may be missing.

    Returned by `FittedWithMissing.predictive`.
    """

    def __init__(self, learned: FittedDistribution, there: Predictive, values: Predictive) -> None:
        self._learned = learned
        self.there = there
        self.values = values

    def log_prob(self, values: Column) -> Any:
        """Return log p(value | data) of every row, as `Predictive.log_prob`.

        Of a missing value, the log probability of missing.

        Parameters
        ----------
        values : array-like of shape (n,) or (n, columns), or a single value

        Returns
        -------
        ndarray or float
        """
        one = (np.ndim(values) == 0 and not hasattr(values, "__len__")) or isinstance(values, str)
        table = open_table([values] if one else values)
        names = tuple(table.columns)
        wanted = self._learned.tally.factors[0].columns
        if not self._learned.single and all(isinstance(name, str) for name in (*names, *wanted)):
            names = wanted  # columns are found by their names, as in `Predictive`
        there: Any = np.stack([np.asarray(table.column(indicator_name(name))) for name in names], axis=-1)
        known = self.there.log_prob(there[:, 0] if self._learned.single else there)
        found = known + np.asarray(self.values.log_prob([values] if one else values))
        return as_float(found[0]) if one else found

    def sample(self, n: int, *, random_state: RandomState = None) -> np.ndarray:
        """Draw `n` rows; missing values are NaN, or None in categorical columns.

        Parameters
        ----------
        n : int
        random_state : int, Generator or None
        """
        rng = random_generator(random_state)
        there, values = (part.sample(n, random_state=rng) for part in (self.there, self.values))
        labels = self._learned.tally.factors[0].family.cell_type == "codes"
        nothing: Any = None if labels else np.nan
        return np.where(there == 1, values.astype(object) if labels else values, nothing)


def _priors(prior: Prior | Mapping[str, Prior]) -> tuple[Any, Any]:
    """Return the priors of both parts."""
    if prior is None:
        return None, None
    if not isinstance(prior, Mapping) or set(prior) - {"there", "values"}:
        raise PriorError(
            f"prior has {short_repr(prior)}; expected a mapping with 'there', 'values' or both, since absence "
            "is a value.\n"
            "    Pass prior={'there': tb.Beta(1, 1), 'values': ...}."
        )
    return prior.get("there"), prior.get("values")
