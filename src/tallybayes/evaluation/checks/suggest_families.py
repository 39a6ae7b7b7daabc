"""tb.suggest_families: a family for every column, by the log evidence of the column given the target."""

from __future__ import annotations

from collections.abc import Iterator

from tallybayes.data.counting import check_weight
from tallybayes.data.open_source import open_source
from tallybayes.data.source_batches import sample_of
from tallybayes.models.inputs.batching import check_names
from tallybayes.models.inputs.family_evidence import MOST_ROWS
from tallybayes.models.inputs.family_selection import select_families
from tallybayes.models.inputs.input_format import read_initial_rows
from tallybayes.models.inputs.labels import read_labels
from tallybayes.results.family_suggestions import FamilySuggestions
from tallybayes.typing import Labels, Rows, SampleWeights


def suggest_families(data: Rows, target: Labels, *, sample_weight: SampleWeights = None) -> FamilySuggestions:
    """Suggest a family for every column: the one with the highest log evidence (shortest code) given the target.

    Nothing is applied: pass ``columns`` of the result to a model, or let a model choose with ``columns="suggest"``. The
    type and the values of a column determine its candidates:

    - categorical columns: `Categorical`; booleans also `Bernoulli`;
    - numbers: `Gaussian`; if positive also `LogNormal`; and `Binned` at 4, 8 and 16 quantiles, with a bin of its own
      for every value that fills a bin;
    - integers also `Poisson` (if not negative), `Bernoulli` (0 and 1) and `Categorical` (at most 50 different values).

    The code length of a family is −log₂ of its marginal likelihood under its default prior. An integer is a cell of
    width 1, over which a continuous family is integrated: its variance increases by 1/12. Bin edges, and integers as
    levels, are chosen from the data, so that the choice among all possible ones is part of the code. The default priors
    of `Poisson` and the Gaussians also depend on the data, without cost. Missing cells are skipped. Values in the outer
    bins, which are open, have an exponential distribution beyond the edge.

    If the classes differ in the probability of a missing value, by evidence too, the family is `WithMissing`.

    Columns without information are dropped: constants, identifiers (nearly every level occurs once, or consecutive
    integers) and columns that repeat an earlier one under any level names. Of more than 20,000 rows a random sample of
    that size is used, drawn with a fixed seed from all rows of a table, file or database.

    Parameters
    ----------
    data : array, data frame, list of dicts, or mapping of columns and blocks; path or source
    target : array-like of shape (n,), or the name of a column
    sample_weight : array-like of shape (n,), or the name of a column, optional
        The weight of every row.

    Returns
    -------
    FamilySuggestions
        It prints as a table; ``columns`` is a parameter of `NaiveBayes`.

    Examples
    --------
    >>> import numpy as np, tallybayes as tb
    >>> rng = np.random.default_rng(0)
    >>> kind = rng.choice(["a", "b"], 400)
    >>> rows = {"price": np.exp(rng.normal(3 + (kind == "a"))), "calls": rng.poisson(2, 400), "kind": kind}
    >>> suggestion = tb.suggest_families(rows, "kind")
    >>> suggestion.columns
    {'price': LogNormal(), 'calls': Poisson()}
    >>> model = tb.NaiveBayes(suggestion.columns).fit(rows, "kind")
    """
    source = None if isinstance(data, Iterator) else open_source(data)  # an iterator cannot be read twice
    if source is not None:
        check_names(source, target=target, sample_weight=sample_weight)
    shape, table, weight = read_initial_rows(data if source is None else sample_of(source), target, sample_weight)
    read_labels(table, shape.target).check_complete("Leave the unlabeled rows out.")
    names = [name for name in table.columns if name != shape.target]
    suggestions = select_families(table, names, shape.target, check_weight(weight, table.n_rows))
    return FamilySuggestions(suggestions, min(table.n_rows, MOST_ROWS), table.n_sampled_from or table.n_rows)
