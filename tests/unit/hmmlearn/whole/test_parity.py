"""Every public attribute and every answer of the drop-ins is hmmlearn's, over kinds of steps and parameters."""

import inspect
import pickle

import numpy as np
import pytest
from sklearn.base import clone

theirs = pytest.importorskip("hmmlearn.hmm", reason="hmmlearn, to compare with, is not installed")

import tallybayes.hmmlearn as ours  # noqa: E402

LENGTHS = [40, 1, 60, 99]
ATTRIBUTES = ("startprob_", "transmat_", "emissionprob_", "means_", "covars_", "lambdas_", "weights_", "n_features")


def steps(kind, n_states=3, n_columns=2):
    rng = np.random.default_rng(3)
    n = sum(LENGTHS)
    states = np.repeat(rng.integers(0, n_states, n), rng.integers(1, 6, n))[:n]
    if kind == "CategoricalHMM":
        table = rng.dirichlet(np.ones(5), n_states)
        return np.array([[rng.choice(5, p=table[state])] for state in states])
    if kind == "PoissonHMM":
        return rng.poisson(rng.gamma(2.0, 3.0, (n_states, n_columns))[states])
    if kind == "MultinomialHMM":
        return rng.multinomial(6, rng.dirichlet(np.ones(4), n_states)[states])
    if kind == "GMMHMM":  # of two heaps in every state; enough, so that no Gaussian falls in on a single step
        means = 4 * rng.normal(size=(n_states, 2, n_columns))
        return means[states, rng.integers(0, 2, n)] + rng.normal(size=(n, n_columns))
    means = 3 * rng.normal(size=(n_states, n_columns))
    return means[states] + rng.normal(size=(n, n_columns)) * rng.uniform(0.5, 2.0, (n_states, 1))[states]


def case(kind, **options):
    name = "-".join([kind, *(f"{key}={value}" for key, value in options.items() if np.ndim(value) == 0)])
    return pytest.param(kind, options, id=name)


COVARIANCES = ("spherical", "diag", "full", "tied")
CASES = [
    case("CategoricalHMM"),
    case("CategoricalHMM", n_features=7, startprob_prior=2.0, transmat_prior=1.5, emissionprob_prior=1.1),
    case("CategoricalHMM", transmat_prior=0.5, emissionprob_prior=0.9),
    case("CategoricalHMM", implementation="scaling", algorithm="map"),
    case("CategoricalHMM", params="st"),
    *[case("GaussianHMM", covariance_type=kind) for kind in COVARIANCES],
    *[
        case(
            "GaussianHMM",
            covariance_type=kind,
            means_prior=0.5,
            means_weight=3.0,
            covars_prior=0.3,
            covars_weight=6.0,
            transmat_prior=2.0,
        )
        for kind in COVARIANCES
    ],
    case("GaussianHMM", params="stm", algorithm="map"),
    *[case("GMMHMM", n_mix=2, covariance_type=kind) for kind in COVARIANCES],
    *[
        case("GMMHMM", n_mix=2, covariance_type=kind, weights_prior=1.5, means_prior=0.3, means_weight=2.0)
        for kind in COVARIANCES
    ],
    case("GMMHMM", n_mix=3, covars_prior=1.0, covars_weight=0.5, transmat_prior=2.0),
    case("GMMHMM", n_mix=3, covariance_type="full", covars_prior=0.0, covars_weight=2.0, algorithm="map"),
    case("GMMHMM", n_mix=2, params="stmw"),
    case("GMMHMM"),
    case("MultinomialHMM"),
    case("MultinomialHMM", n_trials=6, startprob_prior=3.0, transmat_prior=1.5),
    case("MultinomialHMM", implementation="scaling", algorithm="map", params="te"),
    case("PoissonHMM"),
    case("PoissonHMM", lambdas_prior=2.0, lambdas_weight=0.5, startprob_prior=3.0),
]


def both(kind, options):
    X, found = steps(kind), []
    for home in (ours, theirs):
        model = getattr(home, kind)(3, random_state=5, n_iter=7, tol=1e-12, **options)
        found.append(model.fit(X, LENGTHS))
    return X, *found


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(("kind", "options"), CASES)
def test_learned_attributes_are_theirs(kind, options):
    _, mine, its = both(kind, options)
    for name in ATTRIBUTES:
        assert hasattr(mine, name) == hasattr(its, name), name
        if not hasattr(its, name):
            continue
        value = getattr(its, name)
        if name == "covars_" and kind == "GaussianHMM" and options.get("covariance_type") == "spherical":
            value = value[:: mine.n_features]  # theirs repeats every state by its columns
        np.testing.assert_allclose(getattr(mine, name), value, rtol=1e-8, atol=1e-10, err_msg=name)
    np.testing.assert_allclose(mine.monitor_.history, its.monitor_.history, rtol=1e-10)
    assert mine.monitor_.iter == its.monitor_.iter
    assert mine.monitor_.converged == its.monitor_.converged


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(("kind", "options"), CASES)
def test_answers_are_theirs(kind, options):
    X, mine, its = both(kind, options)
    for lengths in (LENGTHS, None):
        assert mine.score(X, lengths) == pytest.approx(its.score(X, lengths), rel=1e-10)
        for one, other in zip(mine.score_samples(X, lengths), its.score_samples(X, lengths), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(mine.predict_proba(X, lengths), its.predict_proba(X, lengths), atol=1e-10)
        np.testing.assert_array_equal(mine.predict(X, lengths), its.predict(X, lengths))
        for algorithm in ("viterbi", "map"):
            one, other = mine.decode(X, lengths, algorithm), its.decode(X, lengths, algorithm)
            assert one[0] == pytest.approx(other[0], rel=1e-10)
            np.testing.assert_array_equal(one[1], other[1])
        assert mine.aic(X, lengths) == pytest.approx(its.aic(X, lengths))
        assert mine.bic(X, lengths) == pytest.approx(its.bic(X, lengths))
    np.testing.assert_allclose(mine.get_stationary_distribution(), its.get_stationary_distribution(), rtol=1e-7)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(("kind", "options"), CASES)
def test_samples_are_theirs(kind, options):
    _, mine, its = both(kind, options)
    if kind == "GaussianHMM" and options.get("covariance_type") == "spherical":
        its.covars_ = mine.covars_[:, 0, 0]  # theirs has the variances of other states after it was fitted
    for one, other in zip(mine.sample(30, random_state=1), its.sample(30, random_state=1), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-7)
    assert mine.sample(4, random_state=2, currstate=1)[1][0] == 1


@pytest.mark.parametrize("kind", ours.__all__)
def test_it_is_one_of_theirs(kind):
    mine, its = getattr(ours, kind), getattr(theirs, kind)
    assert issubclass(mine, its)
    assert inspect.signature(mine) == inspect.signature(its)
    assert repr(mine(n_components=2)) == repr(its(n_components=2))
    model = clone(mine(3, random_state=0, n_iter=3)).fit(steps(kind), LENGTHS)
    again = pickle.loads(pickle.dumps(model))
    assert again.score(steps(kind)) == model.score(steps(kind))


def set_by_hand(home, kind):
    model = getattr(home, kind)(2, init_params="", n_iter=3)
    model.startprob_, model.transmat_ = [1.0, 0.0], [[0.5, 0.5], [0.0, 1.0]]
    if kind == "CategoricalHMM":
        model.emissionprob_ = [[0.1, 0.2, 0.3, 0.2, 0.2], [0.3, 0.3, 0.1, 0.1, 0.2]]
    elif kind == "PoissonHMM":
        model.lambdas_ = [[1.0, 2.0], [4.0, 3.0]]
    elif kind == "GaussianHMM":
        model.means_, model.covars_ = [[0.0, 1.0], [2.0, 2.0]], [[1.0, 2.0], [3.0, 1.0]]
    return model


@pytest.mark.parametrize("kind", ["CategoricalHMM", "GaussianHMM", "PoissonHMM"])
def test_parameters_that_were_set_answer_and_are_climbed_from(kind):
    X = steps(kind)[:20]
    mine, its = set_by_hand(ours, kind), set_by_hand(theirs, kind)
    assert mine.score(X) == pytest.approx(its.score(X), rel=1e-12)
    np.testing.assert_array_equal(mine.predict(X), its.predict(X))
    mine.fit(X), its.fit(X)
    for name in ATTRIBUTES:
        if hasattr(its, name):
            np.testing.assert_allclose(getattr(mine, name), getattr(its, name), rtol=1e-9, err_msg=name)
    assert mine.startprob_[1] == 0
    assert mine.transmat_[1, 0] == 0


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("covariance_type", COVARIANCES)
def test_large_numbers_keep_their_digits(covariance_type):
    # hmmlearn subtracts squares of large numbers, and its variances are off here, or below 0.
    X = steps("GaussianHMM")
    options = {"covariance_type": covariance_type, "n_iter": 5, "random_state": 0, "covars_prior": 1e-6}
    here, far = (ours.GaussianHMM(3, **options).fit(X + shift, LENGTHS) for shift in (0.0, 2.0**27))
    np.testing.assert_allclose(far.covars_, here.covars_, rtol=1e-6)


def test_refusals_are_theirs():
    X = steps("GaussianHMM")
    model = ours.GaussianHMM(2, n_iter=1, random_state=0).fit(X)
    with pytest.raises(ValueError, match="doesn't sum"):
        model.score(X, [3])
    with pytest.raises(ValueError, match="Unknown decoder"):
        model.decode(X, algorithm="best")
    with pytest.raises(ValueError, match="Unexpected number of dimensions"):
        model.score(X[:, :1])
    with pytest.raises(ValueError, match="expected 'log' or 'scaling'"):
        ours.GaussianHMM(2, implementation="fast").fit(X)
    with pytest.raises(ValueError, match="infinity"):
        model.score([[np.inf, 0.0]])
    with pytest.raises(ValueError, match="integers"):
        ours.CategoricalHMM(2).fit([[0.5], [1.0]])
    with pytest.raises(ValueError, match="nonnegative"):
        ours.CategoricalHMM(2).fit([[-1], [1]])
    with pytest.raises(ValueError, match="Largest symbol"):
        ours.CategoricalHMM(2, n_features=2).fit([[0], [2]])
    known = ours.CategoricalHMM(2, n_iter=1, random_state=0).fit([[0], [1], [2]])
    with pytest.raises(IndexError):
        known.score([[3]])
