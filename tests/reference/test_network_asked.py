"""Questions to networks of the public repository: each against plain queries to the same, or to a changed network."""

import numpy as np
import pytest

import tallybayes as tb
from tests.shared import DATA, needs

pytestmark = needs("networks")


def network(name):
    return tb.BayesianNetwork.from_bif(DATA / "networks" / f"{name}.bif.gz")


CASES = [
    ("asia", {"dysp": "yes"}, "lung", ("bronc", "dysp")),
    ("alarm", {"BP": "LOW", "HRBP": "HIGH"}, "LVFAILURE", ("HYPOVOLEMIA", "BP")),
    ("insurance", {"Accident": "Severe"}, "Age", ("DrivQuality", "MedCost")),
    ("hepar2", {"fatigue": "present", "jaundice": "present"}, "Cirrhosis", ("ChHepatitis", "bilirubin")),
]


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(("name", "known", "target", "pair"), CASES, ids=[case[0] for case in CASES])
def test_questions_agree_with_plain_queries(name, known, target, pair):
    model = network(name)
    of, on = pair
    effect = model.causal_effect(of, on)
    for level in effect:
        expected = list(model.query(on, do={of: level}).values())
        np.testing.assert_allclose(list(effect[level].values()), expected, rtol=1e-7)

    asked = model.value_of_information(target, known)
    prior = model.query(target, known).probabilities
    for node in list(asked)[:3]:
        joint = model.query([target, node], known).probabilities
        alone = np.outer(prior, joint.sum(axis=0))
        some = joint > 0
        assert asked.bits[node] == pytest.approx(np.sum(joint[some] * np.log2(joint[some] / alone[some])), abs=1e-10)

    best = model.most_probable(known, [target, next(iter(asked))])
    joint = model.query([target, next(iter(asked))], known)
    assert tuple(best.values()) == joint.best
    # nodes without a say are left out here and summed there: lines of the files sum to 1 to seven digits only
    assert np.exp(best.log_probability) == pytest.approx(joint[joint.best], rel=1e-7)

    found = model.sensitivity({target: model.levels_[target][0]}, known)
    assert found.probability == pytest.approx(prior[0], abs=1e-12)
    tables = {node: np.array(model.cpt(node).values) for node in model.levels_}
    for entry in (found[0], found[len(found) // 2]):
        levels, parents = model.levels_, model.graph_.parents[entry.node]
        place = tuple(levels[parent].index(entry.given[parent]) for parent in parents)
        line, k = tables[entry.node][place].copy(), levels[entry.node].index(entry.level)
        value = 0.5 * entry.value + 0.2
        moved = {node: table.copy() for node, table in tables.items()}
        moved[entry.node][place] = np.where(np.arange(len(line)) == k, value, line * (1 - value) / (1 - line[k]))
        changed = tb.BayesianNetwork.from_tables(model.graph_.parents, levels, moved)
        assert entry.answer(value) == pytest.approx(changed.query(target, known).probabilities[0], abs=1e-9)


def test_the_blanket_of_a_disease_makes_the_rest_irrelevant():
    model = network("hepar2")
    blanket = model.markov_blanket("Cirrhosis")
    assert set(blanket.parents) == {"fibrosis", "Steatosis"}
    rest = [node for node in model.graph_.nodes if node != "Cirrhosis" and node not in blanket]
    assert model.d_separated("Cirrhosis", rest, blanket)
    assert not model.d_separated("Cirrhosis", rest)
