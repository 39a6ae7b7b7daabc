"""Posteriors of rows: equal to sums over the joint distribution, for any evidence."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallybayes.models.network.graph import Graph
from tallybayes.models.network.inference import network_inference
from tallybayes.models.network.inference.evidence import Evidence
from tallybayes.models.network.inference.network_inference import NetworkInference
from tallybayes.tally.domain import Domain
from tests.examples import examples


def _network(rng):
    """A network with random CPTs, some of whose entries are 0, and its joint distribution."""
    n = int(rng.integers(1, 6))
    nodes = [f"x{k}" for k in range(n)]
    sizes = rng.integers(1, 4, n).tolist()
    parents, tables = {}, {}
    joint = np.ones(sizes)
    for k, node in enumerate(nodes):
        above = sorted(rng.permutation(k)[: rng.integers(0, 3)].tolist())
        table = rng.random([sizes[j] for j in (*above, k)])
        table = np.where(rng.random(table.shape) < 0.15, 0.0, table)
        total = table.sum(axis=-1, keepdims=True)
        tables[node] = np.where(total > 0, table / np.where(total > 0, total, 1.0), 1 / sizes[k])
        parents[node] = tuple(nodes[j] for j in above)
        joint = joint * tables[node].reshape([sizes[j] if j in (*above, k) else 1 for j in range(n)])
    domains = {node: Domain(range(size), node, declared=range(size)) for node, size in zip(nodes, sizes, strict=True)}
    return NetworkInference(Graph(parents), domains, tables, {}), joint


@pytest.mark.slow
@examples(150)
@given(st.integers(0, 2**32 - 1), st.booleans())
def test_posteriors_equal_enumeration(seed, is_small):
    rng = np.random.default_rng(seed)
    inference, joint = _network(rng)
    nodes, n_rows = list(inference.levels), 4
    codes, likelihoods = {}, {}
    posterior = np.repeat(joint[None], n_rows, axis=0)
    for axis, (node, size) in enumerate(zip(nodes, joint.shape, strict=True), start=1):
        kind = rng.integers(2 if is_small else 3)
        shape = [size if k == axis else 1 for k in range(joint.ndim + 1)]
        if kind == 1:
            codes[node] = rng.integers(-1, size, n_rows)
            agrees = (codes[node][:, None] == np.arange(size)) | (codes[node] < 0)[:, None]
            posterior = posterior * agrees.reshape([n_rows, *shape[1:]])
        elif kind == 2:
            likelihoods[node] = np.where(rng.random(size) < 0.2, 0.0, rng.random(size))
            posterior = posterior * likelihoods[node].reshape(shape)
    evidence = Evidence(n_rows, codes, likelihoods, {})
    scopes = [(node,) for node in nodes] + [tuple(rng.permutation(nodes)[: rng.integers(0, 4)].tolist())]
    many = network_inference._MANY_ROWS
    try:
        network_inference._MANY_ROWS = 1 if is_small else many
        ((rows, found),) = inference.posteriors(evidence, scopes)
    finally:
        network_inference._MANY_ROWS = many
    total = posterior.reshape(n_rows, -1).sum(axis=1)
    assert rows == slice(0, n_rows)
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(found.log_likelihood, np.log(total), atol=1e-10)
    possible = total > 0
    for scope in scopes:
        kept = [nodes.index(node) + 1 for node in scope]
        summed = posterior.sum(axis=tuple(k for k in range(1, posterior.ndim) if k not in kept))
        expected = summed.transpose(0, *(1 + np.argsort(np.argsort(kept)))).reshape(n_rows, -1)
        expected = expected / np.where(possible, total, 1.0)[:, None]
        np.testing.assert_allclose(found.joint(scope)[possible], expected[possible], atol=1e-12)


def test_underflow_of_many_likelihoods():
    """A chain with 400 steps of soft evidence of 1e-3: the likelihood is far below the smallest number."""
    n = 400
    parents = {k: (k - 1,) if k else () for k in range(n)}
    domains = {k: Domain(range(2), str(k), declared=range(2)) for k in range(n)}
    tables = {k: np.array([[0.9, 0.1], [0.1, 0.9]]) if k else np.array([0.5, 0.5]) for k in range(n)}
    evidence = Evidence(1, {}, {k: np.array([1e-3, 1e-3]) for k in range(n)}, {})
    ((_, found),) = NetworkInference(Graph(parents), domains, tables, {}).posteriors(evidence, [(n - 1,)])
    np.testing.assert_allclose(found.log_likelihood, n * np.log(1e-3))
    np.testing.assert_allclose(found.joint((n - 1,)), [[0.5, 0.5]])
