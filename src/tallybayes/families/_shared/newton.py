"""Newton's method on many small problems at once, guarded by bounds and by the value itself."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Evaluate = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]]

_LONGEST = 2.0  # step: a factor 7, where the numbers are logarithms
_CLOSE = 1e-9


def newton_maximize(
    evaluate: Evaluate, start: np.ndarray, low: np.ndarray, high: np.ndarray, n_steps: int = 40
) -> tuple[np.ndarray, np.ndarray]:
    """The places of the maxima of several functions, each of a few numbers.

    Parameters
    ----------
    evaluate : callable
        From places (problems, p) to values (problems,), gradients (problems, p) and Hessians (problems, p, p).
    start : ndarray of shape (problems, p)
    low, high : ndarrays broadcasting to (problems, p)
        Bounds; equal ones hold a number fast.
    n_steps : int, default 40

    Returns
    -------
    place : ndarray of shape (problems, p)
    done : ndarray of bool of shape (problems,)
        Where the last step was too short to matter.
    """
    place = np.clip(start, low, high)
    done = np.zeros(len(place), dtype=bool)
    if not place.size:
        return place, ~done
    value, slope, bend = evaluate(place)
    damping = np.zeros(len(place))
    for _ in range(n_steps):
        # What lies on a bound and would leave it stays there, and takes no part in the step.
        stuck = ((place <= low) & (slope <= 0)) | ((place >= high) & (slope >= 0))
        slope_free = np.where(stuck, 0.0, slope)
        apart = stuck[:, :, None] | stuck[:, None, :]
        curvature = np.where(apart, np.eye(place.shape[1]), -bend)
        sizes, axes = np.linalg.eigh(curvature)
        sizes = np.abs(sizes)  # a step up even where the function bends the wrong way
        sizes = np.maximum(sizes, 1e-12 * sizes.max(axis=1, keepdims=True) + 1e-300) + damping[:, None]
        along = (axes * slope_free[:, :, None]).sum(axis=1) / sizes
        step = np.clip((axes * along[:, None, :]).sum(axis=2), -_LONGEST, _LONGEST)
        trial = np.clip(place + step, low, high)
        done = np.abs(trial - place).max(axis=1) < _CLOSE
        if done.all():
            break
        new_value, new_slope, new_bend = evaluate(trial)
        better = new_value >= value - 1e-13 * np.abs(value)  # but for rounding
        place = np.where(better[:, None], trial, place)
        value = np.where(better, new_value, value)
        slope = np.where(better[:, None], new_slope, slope)
        bend = np.where(better[:, None, None], new_bend, bend)
        scale = np.abs(curvature).max(axis=(1, 2))
        damping = np.where(better, np.where(damping > 1e-3 * scale, damping / 10, 0.0), damping * 10 + 1e-1 * scale)
    return place, done
