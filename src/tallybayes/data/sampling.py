"""Random samples of rows with a fixed seed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa

SAMPLE = 50_000  # rows of a source from which families and bins are chosen
_PRIME = 2**31 - 1  # its square is a 64-bit integer


def sampled_rows(n_rows: int, most: int, seed: int = 0) -> np.ndarray:
    """Return the sorted row numbers of a simple random sample, or all rows if there are no more.

    Parameters
    ----------
    n_rows, most : int
    seed : int, default 0

    Examples
    --------
    >>> from tallybayes.data.sampling import sampled_rows
    >>> sampled_rows(3, 5)
    array([0, 1, 2])
    >>> len(set(sampled_rows(1000, 5).tolist()))
    5
    """
    if n_rows <= most:
        return np.arange(n_rows)
    return np.sort(np.random.default_rng(seed).choice(n_rows, most, replace=False, shuffle=False))


class Reservoir:
    """A simple random sample of rows that come in batches: the rows with the smallest random keys.

    The sample depends on the rows and their order, not on the sizes of batches.

    Parameters
    ----------
    most : int
        Maximum size of the sample.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.n_rows = 0
        self._rng = np.random.default_rng(0)
        self._bound = 1.0
        self._keys: list[np.ndarray] = []
        self._kept: list[pa.Table] = []

    def add(self, batch: pa.Table) -> None:
        """Add the rows of a batch to the population."""
        keys = self._rng.random(len(batch))
        self.n_rows += len(batch)
        rows = np.flatnonzero(keys < self._bound)
        self._keys.append(keys[rows])
        self._kept.append(batch if len(rows) == len(batch) else batch.take(rows))
        if sum(map(len, self._keys)) > 2 * self.most:
            self._shrink()

    def _shrink(self) -> None:
        """Remove rows until at most `most` are left."""
        keys = np.concatenate(self._keys)
        if len(keys) <= self.most:
            return
        self._bound = float(np.partition(keys, self.most)[self.most])
        self._kept = [
            table.take(np.flatnonzero(own < self._bound)) for table, own in zip(self._kept, self._keys, strict=True)
        ]
        self._keys = [own[own < self._bound] for own in self._keys]

    def table(self) -> pa.Table | None:
        """Return the sample, in the order of the rows; None if there was no batch."""
        import pyarrow as pa

        if not self._kept:
            return None
        self._shrink()
        return pa.concat_tables(self._kept, promote_options="permissive")


def hashed(number: str, fraction: float) -> str:
    """Return an SQL condition that selects a fraction of the rows by a quadratic hash of their numbers.

    Databases have no common random number generator with a seed, but the same integer arithmetic.

    Parameters
    ----------
    number : str
        The expression for the number of the row.
    fraction : float
    """
    mixed = f"(({number} % {_PRIME}) * 48271 + 11) % {_PRIME}"
    return f"(({mixed}) * ({mixed})) % {_PRIME} < {round(fraction * _PRIME)}"
