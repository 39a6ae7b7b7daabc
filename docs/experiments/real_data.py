"""Real data that stands beside the project and is not part of it: where it is, and how to read it."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np

# The public files as published: MNIST (idx, gz) in mnist/, the UCI Adult table (data and test, gz) in tables/.
DATA = Path(__file__).resolve().parents[3] / "shared" / "data"


def mnist(part: str) -> tuple[np.ndarray, np.ndarray]:
    """The images (n, 784) as bytes and their digits, of ``"train"`` or ``"t10k"``."""
    images, labels = (DATA / "mnist" / f"{part}-{name}-ubyte.gz" for name in ("images-idx3", "labels-idx1"))
    return _idx(images).reshape(-1, 784), _idx(labels).astype(int)


def _idx(path: Path) -> np.ndarray:
    """An array in the idx format: its number of axes, their lengths, then bytes."""
    content = gzip.decompress(path.read_bytes())
    shape = np.frombuffer(content, ">u4", count=content[3], offset=4)
    return np.frombuffer(content, np.uint8, offset=4 + 4 * len(shape)).reshape(shape)
