"""CountedRows: coded rows with their classes, weights and keys."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tallybayes.errors import DataError
from tallybayes.kernels.forest import GrowthRows, LabeledRows

WEIGHT_UNIT = 2**16  # weights are counted in multiples of its inverse
_MOST_WEIGHT = 2**31 - 1
_MOST_COPIES = 64
_MIX = np.uint64(0xBF58476D1CE4E5B9)
_STEP = np.uint64(0x9E3779B97F4A7C15)


class CountedRows(NamedTuple):
    """Labeled rows as trees count them, all of positive weight.

    Attributes
    ----------
    codes : uint8 array of shape (n, columns)
    y : int32 array of shape (n,)
        Class codes.
    weight : int64 array of shape (n,)
        In multiples of 2⁻¹⁶.
    keys : uint64 array of shape (n,)
        Hash of the codes and the class label of each row; equal rows have equal keys.
    copy : int64 array of shape (n,)
        Numbers of equal rows, from 0.
    n_classes : int
    """

    codes: np.ndarray
    y: np.ndarray
    weight: np.ndarray
    keys: np.ndarray
    copy: np.ndarray
    n_classes: int

    @classmethod
    def of(
        cls, codes: np.ndarray, y: np.ndarray, weight: np.ndarray | None, labels: Sequence[Any]
    ) -> tuple[CountedRows, np.ndarray]:
        """Return the rows of positive weight, and their numbers."""
        fixed = np.full(len(y), WEIGHT_UNIT) if weight is None else np.rint(weight * WEIGHT_UNIT)
        if fixed.sum() >= 2.0**62:
            raise DataError(f"the weights sum to {fixed.sum() / WEIGHT_UNIT:.3g}; expected less than 7e13.")
        kept = np.flatnonzero(fixed > 0)
        names = np.array([_hash_of_label(label) for label in labels], dtype=np.uint64)
        codes, y = codes[kept], y[kept].astype(np.int32)
        keys = row_keys(codes, names[y])
        return cls(codes, y, fixed[kept].astype(np.int64), keys, _occurrences(keys), len(labels)), kept

    @property
    def labeled(self) -> LabeledRows:
        """The rows as the kernels count them."""
        return LabeledRows(self.codes, self.y, self.weight, self.n_classes)

    def take(self, rows: np.ndarray) -> CountedRows:
        """Return some rows."""
        codes, y, weight, keys, copy = (part[rows] for part in self[:5])
        return CountedRows(codes, y, weight, keys, copy, self.n_classes)

    def growth(self, categorical: np.ndarray) -> tuple[GrowthRows, np.ndarray]:
        """Return the rows as trees are grown from them, in coarser weights if need be, and their numbers."""
        unit = 1 if not (self.weight % WEIGHT_UNIT).any() else WEIGHT_UNIT
        total = float(self.weight.sum()) / WEIGHT_UNIT
        while total * unit >= _MOST_WEIGHT and unit > 1:
            unit //= 2
        scale = max(1.0, 2 * total * unit / _MOST_WEIGHT)
        weight = np.rint(self.weight * (unit / WEIGHT_UNIT / scale)).astype(np.int32)
        kept = np.flatnonzero(weight > 0)
        rows = GrowthRows(self.codes[kept], categorical, self.y[kept], weight[kept], self.n_classes, unit)
        return rows, kept

    def copy_keys(self) -> np.ndarray:
        """Return keys that also differ between equal rows, so that samples of the rows have some of them."""
        return _mixed(self.keys + self.copy.astype(np.uint64) * _STEP)

    def by_copy(self) -> CountedRows:
        """Return the rows in the order of their keys, a row of weight w as w rows of weight 1.

        Trees that are grown from these rows depend neither on the order of the rows, nor on whether repeated rows are
        given as weights. Of a weight above 64 there are 64 rows.
        """
        order = np.argsort(self.keys, kind="stable")
        ordered = self.keys[order]
        starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))
        total = np.add.reduceat(self.weight[order], starts)
        n_copies = np.minimum(-(-total // WEIGHT_UNIT), _MOST_COPIES)
        base = np.maximum(WEIGHT_UNIT, total // n_copies)
        ends = np.cumsum(n_copies)
        weight = np.repeat(base, n_copies)
        weight[ends - 1] = total - (n_copies - 1) * base
        copy = np.arange(ends[-1]) - np.repeat(ends - n_copies, n_copies)
        return self.take(np.repeat(order[starts], n_copies))._replace(weight=weight, copy=copy)


def _occurrences(keys: np.ndarray) -> np.ndarray:
    """Return how many equal keys come before each."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])) if len(keys) else np.zeros(0, np.intp)
    out = np.empty(len(keys), dtype=np.int64)
    out[order] = np.arange(len(keys)) - np.repeat(starts, np.diff(np.append(starts, len(keys))))
    return out


def row_keys(codes: np.ndarray, salt: np.ndarray) -> np.ndarray:
    """Return 64-bit hashes of rows of codes, (n,), each with its own salt."""
    n, d = codes.shape
    padded = np.zeros((n, -(-d // 8) * 8), dtype=np.uint8)
    padded[:, :d] = codes
    keys = salt.copy()
    for word in padded.view("<u8").T:
        keys = _mixed((keys ^ word.astype(np.uint64)) + _STEP)
    return keys


def _mixed(keys: np.ndarray) -> np.ndarray:
    """Return a random-looking bijection of 64-bit numbers."""
    keys = (keys ^ (keys >> np.uint64(30))) * _MIX
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(keys ^ (keys >> np.uint64(31)))


def _hash_of_label(label: Any) -> int:
    """Return a 64-bit hash of a class label that is the same in every process."""
    text = f"{int(label) if isinstance(label, bool) else label}"
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
