"""Every model says how much memory it would take, and refuses by name what cannot fit, before any of it is taken."""

import time
import tracemalloc

import numpy as np
import pytest
from scipy import sparse

import tallybayes as tb
from tallybayes._utils import memory
from tallybayes.data.counting import check_size
from tallybayes.errors import TooLargeError
from tallybayes.families.protocols.memory_use import memory_use

GIGANTIC = sparse.csr_array((np.ones(3), (np.arange(3), np.array([1, 5, 10**9 - 1]))), (3, 10**9))
LABELS = [0, 1, 1]


@pytest.fixture(scope="module", autouse=True)
def imported():
    """What is imported at the first fit takes memory, too: it is imported before any is measured."""
    for family in (tb.Multinomial(), tb.Gaussian()):
        tb.NaiveBayes(family).fit(np.eye(3), LABELS)
        tb.Mixture(2, columns=family).fit(np.eye(3))


@pytest.fixture
def free(monkeypatch):
    """Some GiB that seem to be free."""

    def set_free(gibibytes):
        monkeypatch.setattr(memory, "available_memory", lambda: int(gibibytes * 2**30))

    set_free(8)
    return set_free


def refused(work):
    """The message of a refusal, which took next to no memory."""
    tracemalloc.start()
    try:
        with pytest.raises(TooLargeError) as found:
            work()
        assert tracemalloc.get_traced_memory()[1] < 2**26
    finally:
        tracemalloc.stop()
    return str(found.value)


@pytest.mark.parametrize(
    "family", [tb.Multinomial(), tb.DirichletMultinomial(), tb.Poisson(), tb.Bernoulli()], ids=repr
)
@pytest.mark.parametrize(
    "fit",
    [
        lambda family: tb.NaiveBayes(family).fit(GIGANTIC, LABELS),
        lambda family: tb.fit_distribution(GIGANTIC, family),
        lambda family: tb.count(GIGANTIC, [tb.Factor("x", (), family)]),
        lambda family: tb.Mixture(2, columns=family).fit(GIGANTIC),
        lambda family: tb.NaiveBayes(family, unlabeled="em").fit(GIGANTIC, np.array([0, 1, np.nan])),
        lambda family: tb.HiddenMarkovModel(columns=family).fit(GIGANTIC, LABELS),
        lambda family: tb.HiddenMarkovModel(2, columns=family).fit(GIGANTIC),
        lambda family: tb.BayesianNetwork({"x": ["y"]}, columns={"x": family, "y": tb.Categorical()}).fit(
            {"y": LABELS, "x": GIGANTIC}
        ),
        lambda family: tb.cross_validate(tb.NaiveBayes(family), GIGANTIC, LABELS, folds=np.arange(3)),
    ],
    ids=["naive Bayes", "learn", "count", "mixture", "em", "chain", "Baum-Welch", "network", "folds"],
)
def test_a_thousand_million_columns(free, family, fit):
    message = refused(lambda: fit(family))
    assert f"{family!r} of 'x' (1000000000 columns)" in message
    assert "8 GiB are free" in message
    assert "hash them" in message


def test_full_covariances(free):
    rows, y = np.zeros((100, 3000)), np.arange(100) % 50
    message = refused(lambda: tb.GaussianDiscriminant().fit(rows, y))
    assert message.startswith("GaussianDiscriminant: MultivariateGaussian() of 0, 1, 2, … (3000 columns) in 50 groups")
    assert "would need 26.8 GiB" in message
    assert "tb.NaiveBayes(tb.Gaussian())" in message
    assert "3000 columns" in refused(lambda: tb.Mixture(50, columns=tb.MultivariateGaussian()).fit(rows))


def test_states_and_levels(free):
    message = refused(lambda: tb.HiddenMarkovModel(10**9).fit(np.zeros(9)))
    assert message.startswith("HiddenMarkovModel: Categorical() of 'to' (1000000000 levels)")
    assert "smaller n_states" in message
    free(1e-6)
    many = np.arange(4000)
    with pytest.raises(TooLargeError, match=r"4000 levels\) in 4000 groups by 'class' would need"):
        tb.NaiveBayes(tb.Categorical()).fit(many[:, None], many)
    with pytest.raises(TooLargeError, match=r"\(4000 levels\) in 4000 groups by 'from'"):
        tb.HiddenMarkovModel().fit(np.zeros(4000), many)


def test_sparse_rows_of_a_model_of_dense_ones(free):
    model = tb.NaiveBayes(tb.Poisson()).fit(np.eye(3000), np.arange(3000) % 2)
    free(0.1)
    with pytest.raises(TooLargeError, match="5000 sparse rows of 3000 columns, made dense"):
        model.predict(sparse.csr_array((5000, 3000)))


def test_what_fits_is_not_refused_and_pays_little(monkeypatch):
    def never():
        raise AssertionError("asked for nothing")

    monkeypatch.setattr(memory, "available_memory", never)
    tb.NaiveBayes().fit(np.zeros((4, 30)) + np.arange(4)[:, None], [0, 1, 0, 1])
    factor = tb.Factor("x", ("y",), tb.Gaussian())
    start = time.process_time()
    for _ in range(1000):
        check_size(factor, 3, 30)
    assert time.process_time() - start < 0.05  # microseconds each


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "n_columns"),
    [(tb.Multinomial(), 100_000), (tb.Poisson(), 100_000), (tb.Bernoulli(), 100_000), (tb.MultivariateGaussian(), 300)],
    ids=repr,
)
def test_what_is_said_is_what_it_takes(family, n_columns):
    y = np.arange(40) % 10
    rng = np.random.default_rng(0)
    if isinstance(family, tb.MultivariateGaussian):
        model, X = tb.GaussianDiscriminant(), rng.normal(size=(40, n_columns))
    else:
        model = tb.NaiveBayes(family)
        X = sparse.csr_array((np.ones(400), (np.repeat(np.arange(40), 10), np.arange(400))), (40, n_columns))

    def work():
        model.fit(X, y).predict(X)

    work()
    tracemalloc.start()
    try:
        work()
        taken = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    use = memory_use(family, n_columns)
    said = 8 * 10 * (use.statistics + use.scoring)
    assert 0.4 < taken / said < 1.5
