"""Rows of a Bayesian network of which some labels are missing, component by component."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallybayes._utils.memory import available_memory
from tallybayes.errors import TooLargeError
from tallybayes.kernels.incomplete_rows import IncompleteRows
from tallybayes.models.network.inference.evidence import Evidence
from tallybayes.models.network.inference.network_inference import NetworkInference
from tallybayes.tally.factor import Name

_CELLS = 1 << 22  # of the probabilities of measured nodes under all combinations of their parents' levels, at a time


class IncompleteDiscreteRows:
    """Some rows, sorted once by what is missing in them and what is known about that.

    Parameters
    ----------
    network : NetworkInference
        Its structure; the numbers come later.
    known : Known
    weight : ndarray of shape (n,), optional
    """

    def __init__(self, network: NetworkInference, known: Evidence, weight: np.ndarray | None = None) -> None:
        self.known, levels = known, network.levels
        self.weight = np.ones(known.n_rows) if weight is None else np.ascontiguousarray(weight)
        families = [(*network.graph.parents[node], node) for node in levels]
        above = (network.graph.parents[node] for node in known.cells)
        codes = np.full((known.n_rows, len(levels)), -1, dtype=np.int32)
        for place, node in enumerate(levels):
            if node in known.codes:
                codes[:, place] = known.codes[node]
        lacking = {
            parents: np.flatnonzero((codes[:, network.scope(parents)] < 0).any(axis=1)) for parents in above if parents
        }
        self.lacking = {parents: rows for parents, rows in lacking.items() if len(rows)}
        self.given = list(self.lacking)  # of measured nodes that some row lacks a parent of
        scopes = [network.scope(nodes) for nodes in (*families, *self.given)]
        self.rows = IncompleteRows(
            codes,
            network.sizes,
            scopes,
            network.order,
            by_row=len(self.given),
            weight=np.ascontiguousarray(self.weight),
        )
        needed, here = int(16 * min(self.rows.cells, 2.0**100)), available_memory()
        if needed > here:
            raise TooLargeError.of(
                "what is missing in some row", needed, here, "Leave out edges, merge levels, or rows that lack much."
            )

    def expect(self, network: NetworkInference) -> tuple[list[np.ndarray], dict[tuple[Name, ...], np.ndarray], float]:
        """What the numbers of a network expect.

        Returns
        -------
        counts : list of ndarray
            Of every node with labels, over the rows that lack it or a parent.
        shares : dict
            By the parents of measured nodes: the weight of every combination of their levels, (rows that lack one,
            combinations).
        log_likelihood : float
            Of the tables that were counted, and of measured nodes whose parents are not all known.
        """
        tables, value = [network.tables[node] for node in network.levels], 0.0
        for parents in self.given:
            logs, offset = self._measured(network, parents)
            lacking = self.lacking[parents]
            value += float((self.weight[lacking] * offset).sum())
            table = np.zeros((self.known.n_rows, *(len(network.levels[name]) for name in parents)))
            table[lacking] = logs.reshape(-1, *table.shape[1:])
            tables.append(table)
        counts, log_likelihood = self.rows.expected_counts(tables)
        n_labels = len(network.levels)
        pairs = zip(self.given, counts[n_labels:], strict=True)
        shares = {
            parents: count[self.lacking[parents]].reshape(len(self.lacking[parents]), -1) for parents, count in pairs
        }
        return counts[:n_labels], shares, value + log_likelihood

    def _measured(self, network: NetworkInference, parents: tuple[Name, ...]) -> tuple[np.ndarray, np.ndarray]:
        """Log p(measured cells | every combination of their parents' levels), up to what is divided out, and that."""
        rows = self.lacking[parents]
        total: Any = 0.0
        for node, cells in self.known.take(rows).cells.items():
            if network.graph.parents[node] == parents:
                total = total + network.leaf_logs(node, cells)
        top = np.asarray(total).max(axis=1)
        finite = np.where(np.isneginf(top), 0.0, top)
        return total - finite[:, None], finite


def in_parts(network: NetworkInference, known: Evidence, weight: np.ndarray) -> list[IncompleteDiscreteRows]:
    """The rows as they may be looked at together: all, or fewer where measured nodes take memory by row."""
    combinations = sum(network.n_groups(node) for node in known.cells)
    step = max(1, _CELLS // max(combinations, 1)) if combinations else max(known.n_rows, 1)
    starts = range(0, known.n_rows, step)
    places = [np.arange(start, min(start + step, known.n_rows)) for start in starts]
    return [IncompleteDiscreteRows(network, known.take(rows), weight[rows]) for rows in places]
