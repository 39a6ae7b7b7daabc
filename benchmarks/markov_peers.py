"""Hidden Markov models of dynamax (JAX on the CPU, float64) and pomegranate (PyTorch, float32), where there are any.

``pip install dynamax pomegranate``: neither is needed, and what is missing is left out of the tables.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from harness import Contender

LONG, MANY = 10_000, 5e8  # steps of a sequence, and transitions of all steps: more take pomegranate minutes
Tables = tuple[np.ndarray, np.ndarray, np.ndarray]  # start, transition and emission: (states, levels)


def dynamax(tables: Tables, steps: np.ndarray) -> dict[str, Contender]:
    """What is asked, of sequences of equal length: (sequences, steps); compiled before it is timed."""
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    try:
        import jax
        import jax.numpy as jnp
        from dynamax.hidden_markov_model import hmm_filter, hmm_posterior_mode, hmm_smoother
    except ImportError:
        return {}
    jax.config.update("jax_enable_x64", True)
    start, moves = jnp.asarray(tables[0]), jnp.asarray(tables[1])
    table, codes = jnp.log(jnp.asarray(tables[2].T)), jnp.asarray(steps)

    def expected(one: Any) -> Any:
        found = hmm_smoother(start, moves, table[one])
        return found.trans_probs, jnp.zeros(table.shape).at[one].add(found.smoothed_probs)

    asked = {
        "log-likelihood": lambda one: hmm_filter(start, moves, table[one]).marginal_loglik,
        "Viterbi": lambda one: hmm_posterior_mode(start, moves, table[one]),
        "expected counts": expected,
    }
    compiled = {what: jax.jit(jax.vmap(work)) for what, work in asked.items()}
    return {what: lambda work=work: jax.block_until_ready(work(codes)) for what, work in compiled.items()}


def pomegranate(tables: Tables, steps: np.ndarray, sparse: bool = False) -> dict[str, Contender]:
    """As `dynamax`, but for Viterbi; left out where it would take minutes."""
    n_moves = np.count_nonzero(tables[1]) if sparse else tables[1].size
    if steps.shape[1] > LONG or n_moves * steps.size > MANY:
        return {}
    try:
        import torch
        from pomegranate.distributions import Categorical
        from pomegranate.hmm import DenseHMM, SparseHMM
    except ImportError:
        return {}
    start, moves, emits = (one.astype(np.float32) for one in tables)
    few = np.float32(1e-6)  # every sequence must be able to end
    states, ends = [Categorical([row.tolist()]) for row in emits], np.full(len(start), few)
    if sparse:
        edges = [
            (states[i], states[j], float(moves[i, j] * (1 - few))) for i, j in zip(*np.nonzero(moves), strict=True)
        ]
        model = SparseHMM(states, edges=edges, starts=start, ends=ends)
    else:
        model = DenseHMM(states, edges=moves * (1 - few), starts=start, ends=ends)
    given = torch.tensor(steps)[:, :, None]
    return {
        "log-likelihood": lambda: model.log_probability(given),
        "expected counts": lambda: model.forward_backward(given),
    }
