"""Sampling of sequences from a hidden Markov model, and imputation of missing cells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tallybayes._utils.parameter_checks import check_count, random_generator
from tallybayes.data.array_input import unmerged
from tallybayes.data.data_frames import as_frame
from tallybayes.data.encoding import is_missing
from tallybayes.data.indicator_columns import with_absences
from tallybayes.data.table import Table
from tallybayes.estimation.factor_sampling import counts_to_text, expected_cells, sample_factor
from tallybayes.estimation.scoring.factor_scorer import chunk_of, factor_cells
from tallybayes.families.protocols.distribution_functions import sampling_options
from tallybayes.families.text import Text
from tallybayes.kernels import hmm as kernels
from tallybayes.models.hmm.lagged_columns import check_no_lags
from tallybayes.models.inputs.sequences import Sequences
from tallybayes.tally.domain import Domain, labels_at, labels_of
from tallybayes.tally.factor import Name
from tallybayes.typing import RandomState

if TYPE_CHECKING:
    from tallybayes.models.hmm.estimated_hmm import EstimatedEmission, EstimatedHMM
    from tallybayes.models.hmm.hmm_parameters import HMMParameters


def sample(
    hmm: EstimatedHMM, n: int | Sequence[int] | np.ndarray, frame: str | None, random_state: RandomState
) -> tuple[list[Any], list[np.ndarray]]:
    """Return sequences drawn from the model, in the format `frame` (see `_as_sequence`), and their states."""
    rng = random_generator(random_state)
    lengths: Any = n if isinstance(n, list | tuple | range) or np.ndim(n) else [n]
    paths = [_draw_path(hmm.checked_parameters, check_count("n", length, 0), rng) for length in lengths]
    sequences = [_as_sequence(with_absences(_draw_steps(hmm, path, rng)), frame) for path in paths]
    return sequences, [hmm.state_labels[path] for path in paths]


def _draw_path(parameters: HMMParameters, length: int, rng: np.random.Generator) -> np.ndarray:
    """Draw a state path of at most `length` time steps; shorter only if the end is modeled."""
    path: list[int] = []
    for step in range(length):
        p = np.exp(parameters.start if step == 0 else parameters.transition[path[-1]])
        path.append(int(rng.choice(len(p), p=p / p.sum())))
        if parameters.end is not None and rng.random() < np.exp(parameters.end[path[-1]]):
            break
    return np.array(path, dtype=np.intp)


def _draw_steps(hmm: EstimatedHMM, path: np.ndarray, rng: np.random.Generator) -> dict[Any, Any]:
    """Draw the observations of one state path, by column."""
    columns: dict[Any, Any] = {}
    mixed = hmm.checked_parameters.mixed
    emitting = path if mixed is None else mixed.draw(path, rng)
    for emission in hmm.estimated_emissions:
        family: Any = emission.family
        name = emission.columns[0]
        if family.order:  # the lags of the first time step are drawn from their distribution in the training data
            mean, covariance = sampling_options(family, emission.statistics)["inputs"]
            lags = rng.multivariate_normal(mean, covariance)
            columns[name] = family.sample_steps(emission.scorer.parameters, emitting, lags, rng)
            continue
        cells = sample_factor(emission.scorer, emitting, emission.statistics, rng)
        if emission.is_text:
            columns[name] = counts_to_text(cells, hmm.words(name))
        elif emission.is_coded:
            drawn = zip(emission.columns, emission.domains, cells.T.astype(int), strict=True)
            columns |= {name: labels_at(domain.levels, codes) for name, domain, codes in drawn}
        else:
            columns |= dict(zip(emission.columns, cells.T, strict=False))
    return columns


def impute(hmm: EstimatedHMM, sequences: Sequences, frame: str | None) -> list[Any]:
    """Return the sequences with missing cells replaced by predictions from the whole sequence."""
    check_no_lags(
        hmm.emission_factors,
        "impute",
        "steps before and after a missing step depend on its value",
        "Fill the missing steps first, or use Gaussian() for the column.",
    )
    parameters = hmm.checked_parameters
    proba = np.concatenate(
        [
            parameters.component_posterior(block.joint, kernels.posterior(block.inputs)[0])
            for block in parameters.blocks(sequences)
        ]
    )
    table = sequences.table
    columns: dict[Name, np.ndarray] = {}
    for emission in hmm.estimated_emissions:
        name = emission.columns[0]
        if table.source_of(name) is not None:  # a missing-value indicator is not imputed
            continue
        if emission.is_text:  # missing text stays missing
            columns[name] = np.array(table.texts(name, Text()).strings.to_pylist(), dtype=object)
        elif emission.is_coded:
            for name, domain, probabilities in emission.level_tables():
                columns[name] = _impute_levels(table.column(name), domain, proba, probabilities)
        else:
            columns |= dict(zip(emission.columns, _impute_numbers(table, emission, proba).T, strict=False))
    parts = zip(*map(sequences.split, columns.values()), strict=True)
    return [_as_sequence(dict(zip(columns, part, strict=True)), frame) for part in parts]


def _impute_levels(column: object, domain: Domain, proba: np.ndarray, table: np.ndarray) -> np.ndarray:
    """Return a categorical column with missing cells replaced by their most probable level."""
    levels = labels_of(domain.levels, np.dtype(object))
    imputed = np.array(column, dtype=object)
    missing = np.array([is_missing(value) for value in imputed], dtype=bool)
    if len(levels):
        imputed[missing] = levels[(proba[missing] @ table).argmax(axis=1)]
    return imputed


def _impute_numbers(table: Table, emission: EstimatedEmission, proba: np.ndarray) -> np.ndarray:
    """Return numeric columns with missing cells replaced by their expectation."""
    numbers = factor_cells(table, emission.columns, emission.family, emission.domains, "missing")
    cells = chunk_of(numbers, slice(None))
    expected = np.einsum("ns,nsd->nd", proba, expected_cells(emission.scorer, emission.statistics, cells))
    return np.where(np.isnan(cells), expected, cells)


def _as_sequence(columns: dict[Any, np.ndarray], frame: str | None) -> Any:
    """Return the columns of a sequence as a data frame of the library `frame`, an array, or a dictionary."""
    if frame is not None:
        return as_frame(columns, frame)
    if len(columns) == 1:
        return next(iter(columns.values()))
    if all(isinstance(name, int) for name in columns):
        return np.stack(unmerged([columns[name] for name in sorted(columns)]), axis=-1)
    return columns
