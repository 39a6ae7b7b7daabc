"""tb.predictive_check: posterior predictive checks of a model on some rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tallybayes._utils.parameter_checks import check_count, random_generator
from tallybayes.errors import DataError
from tallybayes.evaluation.checks.replicated_data import ReplicatedFactor, make_replicated_factor, sources
from tallybayes.evaluation.checks.summary_statistics import TokenCounts
from tallybayes.models.classification.class_conditional import ClassConditionalModel
from tallybayes.models.hmm.hidden_markov_model import HiddenMarkovModel
from tallybayes.models.network.bayesian_network import BayesianNetwork
from tallybayes.results.predictive_check import Check, PredictiveCheck
from tallybayes.typing import Labels, RandomState, Rows

if TYPE_CHECKING:
    from tallybayes.models.estimator import Estimator


def predictive_check(
    model: Estimator, data: Rows, target: Labels | None = None, *, n_draws: int = 200, random_state: RandomState = 0
) -> PredictiveCheck:
    """Compare statistics of the data with those of data sets drawn from a fitted model, to detect unsuitable families.

    This is a posterior predictive check (Rubin 1984; Gelman, Meng and Stern 1996). For every draw, parameters are
    sampled from the posterior (a point estimate is kept), and then as many rows of every class as the data have, with
    the same cells missing. The statistics of every column and class are: for numbers mean, standard deviation,
    skewness, minimum, maximum and the proportion of zeros; for counts mean, dispersion (variance over mean), maximum
    and the proportion of zeros; for binary columns the proportion of ones; for categorical columns the proportion of
    the most frequent level and the entropy in bits; for blocks of words, given the lengths of the rows, the mean number
    of different words of a row and the probability that two words of a row are equal.

    Every node of a `BayesianNetwork` is drawn given its observed parents: discrete nodes are compared over all rows,
    continuous nodes for every combination of their parents' levels. Linear Gaussian nodes are left out, since their
    mean differs in every row. Of a `Mixture` whole rows are drawn, of a `HiddenMarkovModel` without states whole
    sequences of the same lengths (at its point estimate), and columns are compared over all rows.

    At most 2,000 random rows of every class are compared, and fewer of wide data (of words, 200,000 tokens of a class),
    to limit time and memory.

    Parameters
    ----------
    model : any fitted model of this package but NearestClassMean
    data, target
        Rows as for ``model.fit``: the training rows, or new ones. Rows without a label are left out. For a
        `HiddenMarkovModel`, sequences: with their states, time steps are drawn given these.
    n_draws : int, default 200
        The number of data sets drawn.
    random_state : int, Generator or None, default 0

    Returns
    -------
    PredictiveCheck
        It prints as a table, in descending order of the gap, and has ``table``, ``to_frame`` and ``plot``.

    Examples
    --------
    >>> import numpy as np, tallybayes as tb
    >>> rng = np.random.default_rng(0)
    >>> bursts = rng.poisson(rng.gamma(0.5, 6, 300))  # overdispersed: a Poisson distribution does not fit
    >>> rows = {"bursts": bursts, "steady": rng.poisson(3, 300), "y": rng.integers(0, 2, 300)}
    >>> model = tb.NaiveBayes({("bursts", "steady"): tb.Poisson()}).fit(rows, "y")
    >>> tb.predictive_check(model, rows, "y").failed_checks[0].column
    'bursts'
    """
    if not isinstance(model, ClassConditionalModel | BayesianNetwork | HiddenMarkovModel):
        expected = "a generative model of rows, such as tb.NaiveBayes or tb.BayesianNetwork"
        raise DataError.wrong_type("model", type(model).__name__, expected)
    check_is_fitted(model, "tally_")
    check_count("n_draws", n_draws)
    rng = random_generator(random_state)
    checks: list[Check] = []
    parts: list[ReplicatedFactor] = []
    n_rows: dict[Any, int] = {}
    for source in sources(model, data, target, rng):
        part = make_replicated_factor(source, int(n_draws), rng)
        parts.append(part)
        checks += _compare(part, int(n_draws), rng)
        for code, n in zip(*np.unique(part.codes, return_counts=True), strict=True):
            label = part.labels.tolist()[code]
            n_rows[label] = max(int(n), n_rows.get(label, 0))
    if not parts:
        raise DataError(
            "no row has a node together with all its parents; expected at least one.\n"
            "    Pass rows with the columns of the network."
        )
    return PredictiveCheck(checks, int(n_draws), n_rows, parts, int(rng.integers(2**32)))


def _compare(part: ReplicatedFactor, n_draws: int, rng: np.random.Generator) -> Iterator[Check]:
    """Yield every statistic of every column in every class, compared with drawn data sets."""
    summaries = part.summaries
    groups = [(code, np.flatnonzero(part.codes == code)) for code in np.unique(part.codes)]

    def statistics(cells: np.ndarray | TokenCounts) -> np.ndarray:
        """Return the statistics by class: (classes, statistics, columns)."""
        taken = [cells.take(rows) if isinstance(cells, TokenCounts) else cells[rows] for _, rows in groups]
        return np.array([summaries.compute(rows) for rows in taken])

    observed = statistics(part.cells)
    drawn = np.array([statistics(part.draw(rng)) for _ in range(n_draws)])
    expected = drawn.mean(axis=0)
    std = drawn.std(axis=0)
    low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
    # Statistics that differ by rounding only are equal: of constant columns, or if all draws agree.
    equal = np.isclose(drawn, observed, rtol=1e-14, atol=0.0)
    p = ((drawn > observed) | equal).mean(axis=0)
    n_rows = np.array([len(rows) for _, rows in groups])[:, None, None]
    is_proportion = np.array([name.startswith("proportion") for name in summaries.names])[None, :, None]
    std = np.where(is_proportion, np.maximum(std, 1 / n_rows), std)  # a difference of one row is not large
    with np.errstate(divide="ignore", invalid="ignore"):
        gap = np.where(equal.all(axis=0), 0.0, (observed - expected) / std)
    labels = part.labels.tolist()
    numbers = np.stack([observed, expected, low, high, p, gap], axis=-1)
    for k, (code, _) in enumerate(groups):
        for s, statistic in enumerate(summaries.names):
            for column, name in enumerate(part.names):
                if not np.isnan(observed[k, s, column]):  # undefined for columns without observed cells
                    yield Check(name, labels[code], statistic, *numbers[k, s, column].tolist())
