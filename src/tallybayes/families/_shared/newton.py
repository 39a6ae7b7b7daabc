"""Newton's method for many small problems at once, with bounds and a Levenberg-Marquardt damping."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

Evaluate = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]]
Gradient = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]

_MAX_STEP = 2.0  # a factor of 7 for logarithms
_TOLERANCE = 1e-9
_DIFFERENCE = 1e-7  # step of the differences of gradients


def with_hessian(evaluate: Gradient) -> Evaluate:
    """Return a function of value and gradient with the Hessian, by differences of gradients.

    The fixed points of Newton's method depend on the gradient only, so an approximate Hessian suffices.
    """

    def evaluate_all(point: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        value, gradient = evaluate(point)
        moved = [evaluate(point + step)[1] for step in _DIFFERENCE * np.eye(point.shape[1])]
        hessian = (np.stack(moved, axis=-1) - gradient[..., None]) / _DIFFERENCE
        return value, gradient, (hessian + np.swapaxes(hessian, -1, -2)) / 2

    return evaluate_all


def newton_maximize(
    evaluate: Evaluate, start: np.ndarray, low: np.ndarray, high: np.ndarray, n_steps: int = 40
) -> tuple[np.ndarray, np.ndarray]:
    """Return the maxima of several functions of a few variables each.

    Parameters
    ----------
    evaluate : callable
        Maps points (problems, p) to values (problems,), gradients (problems, p) and Hessians (problems, p, p).
    start : ndarray of shape (problems, p)
    low, high : ndarrays broadcasting to (problems, p)
        Bounds; equal bounds fix a variable.
    n_steps : int, default 40

    Returns
    -------
    point : ndarray of shape (problems, p)
    done : ndarray of bool of shape (problems,)
        Whether the last step was below the tolerance.
    """
    point = np.clip(start, low, high)
    done = np.zeros(len(point), dtype=bool)
    if not point.size:
        return point, ~done
    value, gradient, hessian = evaluate(point)
    damping = np.zeros(len(point))
    for _ in range(n_steps):
        # Variables at a bound whose gradient points outside are excluded from the step.
        at_bound = ((point <= low) & (gradient <= 0)) | ((point >= high) & (gradient >= 0))
        free_gradient = np.where(at_bound, 0.0, gradient)
        excluded = at_bound[:, :, None] | at_bound[:, None, :]
        curvature = np.where(excluded, np.eye(point.shape[1]), -hessian)
        eigenvalues, eigenvectors = np.linalg.eigh(curvature)
        eigenvalues = np.abs(eigenvalues)  # an ascent direction even if the Hessian is not negative definite
        eigenvalues = (
            np.maximum(eigenvalues, 1e-12 * eigenvalues.max(axis=1, keepdims=True) + 1e-300) + damping[:, None]
        )
        direction = (eigenvectors * free_gradient[:, :, None]).sum(axis=1) / eigenvalues
        step = np.clip((eigenvectors * direction[:, None, :]).sum(axis=2), -_MAX_STEP, _MAX_STEP)
        trial = np.clip(point + step, low, high)
        done = np.abs(trial - point).max(axis=1) < _TOLERANCE
        if done.all():
            break
        new_value, new_gradient, new_hessian = evaluate(trial)
        better = new_value >= value - 1e-13 * np.abs(value)  # up to rounding
        point = np.where(better[:, None], trial, point)
        value = np.where(better, new_value, value)
        gradient = np.where(better[:, None], new_gradient, gradient)
        hessian = np.where(better[:, None, None], new_hessian, hessian)
        scale = np.abs(curvature).max(axis=(1, 2))
        damping = np.where(better, np.where(damping > 1e-3 * scale, damping / 10, 0.0), damping * 10 + 1e-1 * scale)
    return point, done
