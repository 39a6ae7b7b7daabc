"""Small conditional linear Gaussian networks drawn by Hypothesis, and their joint distribution."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from hypothesis import strategies as st
from scipy import stats

Nodes = dict[str, dict[str, Any]]


@st.composite
def line_networks(draw: Any, most_labels: int = 3, most_measured: int = 4) -> Nodes:
    """A few nodes with labels and some measured ones, linear in each other; as `from_parameters` takes them."""
    n_labels = draw(st.integers(0, most_labels))
    n_measured = draw(st.integers(1, most_measured))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    labels, measured = [f"L{k}" for k in range(n_labels)], [f"x{k}" for k in range(n_measured)]
    nodes: Nodes = {}
    sizes: dict[str, int] = {}
    for place, node in enumerate(labels):
        parents = [name for name in labels[:place] if rng.random() < 0.5]
        sizes[node] = int(rng.integers(2, 4))
        table = rng.dirichlet(np.ones(sizes[node]), [sizes[name] for name in parents])
        nodes[node] = {"parents": parents, "levels": ["r", "s", "t"][: sizes[node]], "probabilities": table}
    for place, node in enumerate(measured):
        given = [name for name in labels if rng.random() < 0.5]
        inputs = [name for name in measured[:place] if rng.random() < 0.6]
        shape = [sizes[name] for name in given]
        nodes[node] = {
            "parents": [given[k] for k in rng.permutation(len(given))] + inputs,
            "coefficients": {name: rng.normal(0, 1.0, shape) for name in inputs},
            "intercept": rng.normal(0, 2.0, shape),
            "std": rng.uniform(0.3, 2.0, shape),
        }
        order = [given.index(name) for name in nodes[node]["parents"][: len(given)]]
        for key in ("intercept", "std"):
            nodes[node][key] = np.transpose(nodes[node][key], order)
        nodes[node]["coefficients"] = {
            name: np.transpose(part, order) for name, part in nodes[node]["coefficients"].items()
        }
    return nodes


def labels_of(nodes: Nodes) -> list[str]:
    return [node for node, said in nodes.items() if "levels" in said]


def measured_of(nodes: Nodes) -> list[str]:
    return [node for node, said in nodes.items() if "levels" not in said]


def settings(
    nodes: Nodes, do: dict[str, Any] | None = None
) -> list[tuple[dict[str, Any], float, np.ndarray, np.ndarray]]:
    """Every combination of labels: the levels, their probability, and mean and covariance of the measured nodes."""
    do, labels, measured = do or {}, labels_of(nodes), measured_of(nodes)
    found = []
    for levels in product(*(nodes[node]["levels"] for node in labels)):
        row, p = dict(zip(labels, levels, strict=True)), 1.0
        for node in labels:
            said = nodes[node]
            if node in do:
                p *= float(do[node] == row[node])
                continue
            place = tuple(nodes[name]["levels"].index(row[name]) for name in (*said["parents"], node))
            p *= float(np.asarray(said["probabilities"])[place])
        k = len(measured)
        weights, level, noise = np.zeros((k, k)), np.zeros(k), np.zeros(k)
        for j, node in enumerate(measured):
            said = nodes[node]
            place = tuple(nodes[n]["levels"].index(row[n]) for n in said["parents"] if n in labels)
            if node in do:
                level[j] = do[node]
                continue
            level[j], noise[j] = np.asarray(said["intercept"])[place], np.asarray(said["std"])[place] ** 2
            for name, part in said["coefficients"].items():
                weights[j, measured.index(name)] = np.asarray(part)[place]
        total = np.linalg.inv(np.eye(k) - weights)
        found.append((row, p, total @ level, total @ np.diag(noise) @ total.T))
    return found


def weigh(
    nodes: Nodes, known: dict[str, Any], do: dict[str, Any] | None = None
) -> list[tuple[dict, float, np.ndarray, np.ndarray]]:
    """p(labels, known) of every combination, and mean and covariance of all measured nodes given what is known."""
    measured, found = measured_of(nodes), []
    seen = {node: value for node, value in known.items() if node in measured}
    o = [measured.index(node) for node in seen]
    values = np.array(list(seen.values()))
    for row, p, mean, covariance in settings(nodes, do):
        p *= float(all(known.get(node, level) == level for node, level in row.items()))
        if o:
            among = covariance[np.ix_(o, o)]
            p *= stats.multivariate_normal(mean[o], among).pdf(values)
            gain = covariance[:, o] @ np.linalg.inv(among)
            mean, covariance = mean + gain @ (values - mean[o]), covariance - gain @ covariance[o]
        found.append((row, p, mean, covariance))
    return found
