"""bnlearn's clgaussian.test, 5,000 rows of a conditional linear Gaussian network: learned, asked, its arrows told."""

from functools import cache

import numpy as np
import pytest
from scipy import stats

import tallybayes as tb
from tests.shared import DATA, needs

pytestmark = needs("network-samples")
pd = pytest.importorskip("pandas")
# As bnlearn's documentation has it: [A][B][C][H][D|A:H][F|B:C][E|B:D][G|A:D:E:F].
PARENTS = {
    "A": [],
    "B": [],
    "C": [],
    "H": [],
    "D": ["A", "H"],
    "F": ["B", "C"],
    "E": ["B", "D"],
    "G": ["A", "D", "E", "F"],
}


@cache
def rows():
    return pd.read_csv(DATA / "network-samples" / "clgaussian.test.csv.gz")


@cache
def learned():
    return tb.BayesianNetwork(PARENTS, estimate="mle").fit(rows())


def test_log_likelihood_is_the_sum_over_nodes():
    frame, total = rows(), 0.0
    for node, parents in PARENTS.items():
        labels, inputs = [p for p in parents if p in "ABCF"], [p for p in parents if p in "DEGH"]
        for _, part in frame.groupby(labels) if labels else [((), frame)]:
            if node in "ABCF":
                counts = part[node].value_counts().to_numpy()
                total += float((counts * np.log(counts / counts.sum())).sum())
                continue
            design = np.column_stack([np.ones(len(part)), part[inputs].to_numpy()])
            weights, *_ = np.linalg.lstsq(design, part[node].to_numpy(), rcond=None)
            left = part[node].to_numpy() - design @ weights
            total += float(stats.norm(0, left.std()).logpdf(left).sum())
    assert learned().log_likelihood(frame) == pytest.approx(total, rel=1e-10)
    assert learned().score_samples(frame).sum() == pytest.approx(total, rel=1e-10)


@pytest.mark.parametrize("edge", [(parent, node) for node, above in PARENTS.items() for parent in above])
def test_every_arrow_is_worth_its_parameters(edge):
    parent, node = edge
    without = PARENTS | {node: [name for name in PARENTS[node] if name != parent]}
    other = tb.BayesianNetwork(without, estimate="mle").fit(rows())
    assert other.bic_ > learned().bic_ + 10
    assert other.reestimate(estimate="bayes").log_evidence() < learned().reestimate(estimate="bayes").log_evidence()


def test_arrows_that_are_not_there_are_not():
    for parent, node in (("A", "E"), ("B", "G"), ("H", "E"), ("H", "G")):
        more = tb.BayesianNetwork(PARENTS | {node: [*PARENTS[node], parent]}, estimate="mle").fit(rows())
        assert more.bic_ > learned().bic_


@pytest.mark.slow
def test_rows_that_were_not_seen_are_told():
    frame = rows()
    model = tb.BayesianNetwork(PARENTS).fit(frame.iloc[:4000])
    test = frame.iloc[4000:]
    told = model.predict(test.drop(columns="G"), "G")
    assert np.std(told - test["G"]) < 0.02 * np.std(test["G"])
    assert (model.predict(test.drop(columns="A"), "A") == test["A"]).mean() > 0.99
    holes = frame.copy()
    rng = np.random.default_rng(0)
    for column in frame:
        holes.loc[rng.random(len(frame)) < 0.05, column] = None
    expected = tb.BayesianNetwork(PARENTS, missing="em", max_iter=30, tol=1e-4).fit(holes)
    np.testing.assert_allclose(expected.cpt("G").values[..., 1:3], learned().cpt("G").values[..., 1:3], rtol=0.02)
    assert (np.diff(expected.history_) > -1e-6).all()
