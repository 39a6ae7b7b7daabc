"""E-step of discrete nodes: expected counts of rows with missing cells."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallybayes._utils.memory import available_memory
from tallybayes.errors import TooLargeError
from tallybayes.kernels.incomplete_rows import IncompleteRows
from tallybayes.models.network.inference.evidence import Evidence
from tallybayes.models.network.inference.network_inference import NetworkInference
from tallybayes.tally.factor import Name

_MAX_CELLS = 1 << 22  # scores of a batch of rows of continuous nodes, for all combinations of their parents' levels


class IncompleteDiscreteRows:
    """Rows with missing discrete nodes, sorted once by what is missing and by the evidence on it.

    Parameters
    ----------
    inference : NetworkInference
        Its structure is used, not its parameters.
    evidence : Evidence
    weight : ndarray of shape (n,), optional
    """

    def __init__(self, inference: NetworkInference, evidence: Evidence, weight: np.ndarray | None = None) -> None:
        self.evidence = evidence
        self.weight = np.ones(evidence.n_rows) if weight is None else np.ascontiguousarray(weight)
        families = [(*inference.graph.parents[node], node) for node in inference.levels]
        codes = np.full((evidence.n_rows, len(families)), -1, dtype=np.int32)
        for column, node in enumerate(inference.levels):
            if node in evidence.codes:
                codes[:, column] = evidence.codes[node]
        self.incomplete: dict[tuple[Name, ...], np.ndarray] = {}  # rows with a missing parent of continuous nodes
        for parents in dict.fromkeys(inference.graph.parents[node] for node in evidence.cells):
            rows = np.flatnonzero((codes[:, inference.scope(parents)] < 0).any(axis=1))
            if len(rows):
                self.incomplete[parents] = rows
        self.rows = IncompleteRows(
            codes,
            inference.sizes,
            [inference.scope(nodes) for nodes in (*families, *self.incomplete)],
            inference.order,
            by_row=len(self.incomplete),
            weight=self.weight,
        )
        needed, available = int(16 * min(self.rows.cells, 2.0**100)), available_memory()
        if needed > available:
            hint = "Remove edges, merge levels, or drop rows with many missing cells."
            raise TooLargeError.of("the missing cells of some row", needed, available, hint)

    def expect(self, inference: NetworkInference) -> tuple[list[np.ndarray], dict[tuple[Name, ...], np.ndarray], float]:
        """Return the expected counts under the parameters of a network.

        Returns
        -------
        counts : list of ndarray
            For every discrete node, over the rows in which it or a parent is missing.
        group_weights : dict
            By the parents of continuous nodes: the weight of every combination of their levels, (rows with a missing
            parent, combinations).
        log_likelihood : float
            Of the counted CPTs, and of continuous nodes with a missing parent.
        """
        tables = [inference.tables[node] for node in inference.levels]
        log_likelihood = 0.0
        for parents, rows in self.incomplete.items():
            logs, offset = self._continuous_scores(inference, parents)
            log_likelihood += float((self.weight[rows] * offset).sum())
            table = np.zeros((self.evidence.n_rows, *(len(inference.levels[name]) for name in parents)))
            table[rows] = logs.reshape(-1, *table.shape[1:])
            tables.append(table)
        counts, of_tables = self.rows.expected_counts(tables)
        n_discrete = len(inference.levels)
        group_weights = {
            parents: weights[rows].reshape(len(rows), -1)
            for (parents, rows), weights in zip(self.incomplete.items(), counts[n_discrete:], strict=True)
        }
        return counts[:n_discrete], group_weights, log_likelihood + of_tables

    def _continuous_scores(
        self, inference: NetworkInference, parents: tuple[Name, ...]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return log p(continuous cells | combination of parents' levels) minus its maximum, and the maximum."""
        total: Any = 0.0
        for node, cells in self.evidence.take(self.incomplete[parents]).cells.items():
            if inference.graph.parents[node] == parents:
                total = total + inference.leaf_log_prob(node, cells)
        largest = np.asarray(total).max(axis=1)
        finite = np.where(np.isneginf(largest), 0.0, largest)
        return total - finite[:, None], finite


def in_batches(inference: NetworkInference, evidence: Evidence, weight: np.ndarray) -> list[IncompleteDiscreteRows]:
    """Return the rows in batches, whose size is limited by the scores of continuous nodes."""
    n_combinations = sum(inference.n_groups(node) for node in evidence.cells)
    step = max(1, _MAX_CELLS // n_combinations) if n_combinations else max(evidence.n_rows, 1)
    starts = range(0, evidence.n_rows, step)
    batches = [np.arange(start, min(start + step, evidence.n_rows)) for start in starts]
    return [IncompleteDiscreteRows(inference, evidence.take(rows), weight[rows]) for rows in batches]
