"""prior="empirical": the evidence is at its largest, what made the data is recovered, and nothing odd breaks it."""

import time

import numpy as np
import pytest
from scipy import stats
from scipy.special import digamma, polygamma

import tallybayes as tb
from tallybayes.distributions.log_gamma import digamma_rising, trigamma_rising
from tallybayes.errors import PriorError
from tallybayes.families._shared import empirical_dirichlet, empirical_prior
from tallybayes.families._shared.empirical_dirichlet import fit_dirichlet
from tallybayes.families._shared.newton import newton_maximize
from tallybayes.statistics.counts import Segments
from tests.unit.families.family_cases import CASES

GAUSSIANS = ("gaussian", "tied", "spherical", "tied spherical", "multivariate", "tied multivariate")


def prior_of(learned, estimate="bayes"):
    return learned.family.resolve_prior("empirical", learned.statistics, estimate)


def evidence(belief, learned):
    return float(np.sum(learned.family.log_evidence(belief, learned.statistics)))


def slopes(learned, belief, moves):
    """Derivatives of the log evidence by the logs of what `moves` change, by finite differences."""
    step = 1e-4
    return [
        (evidence(move(belief, np.exp(step)), learned) - evidence(move(belief, np.exp(-step)), learned)) / (2 * step)
        for move in moves
    ]


def field(name, index=...):
    """Multiply one parameter of a belief, or one of its numbers."""

    def move(belief, factor):
        values = np.array(getattr(belief, name), dtype=float)
        values[index] *= factor
        return belief.replace(**{name: values})

    return move


def freedom(belief, factor):
    """More degrees of freedom at the same typical covariance."""
    d = belief.n_columns
    return belief.replace(
        degrees_of_freedom=(belief.degrees_of_freedom - d + 1) * factor + d - 1, scale=belief.scale * factor
    )


def grouped(draw, n_groups, n_rows):
    """Rows of every group from ``draw(rng, n_groups, n_rows)``, and their groups."""
    rng = np.random.default_rng(5)
    rows = draw(rng, n_groups, n_rows)
    return np.concatenate(list(rows)), np.repeat(np.arange(n_groups), n_rows)


def draw_coins(rng, n_groups, n_rows):
    theta = np.stack([rng.beta(2, 6, n_groups), rng.beta(30, 10, n_groups)], -1)
    return rng.random((n_groups, n_rows, 2)) < theta[:, None]


def draw_levels(rng, n_groups, n_rows):
    theta = rng.dirichlet([2.0, 0.5, 4.0], n_groups)
    return np.stack([rng.choice(3, n_rows, p=p) for p in theta])


def draw_words(rng, n_groups, n_rows):
    return np.stack([rng.multinomial(30, p, n_rows) for p in rng.dirichlet([0.1, 0.3, 2.0, 1.0], n_groups)])


def draw_events(rng, n_groups, n_rows):
    rate = np.stack([rng.gamma(3, 1 / 2, n_groups), rng.gamma(2, 1 / 0.004, n_groups)], -1)
    return rng.poisson(rate[:, None], (n_groups, n_rows, 2))


def draw_numbers(rng, n_groups, n_rows):
    variance = np.stack([6 / rng.gamma(4, 1, n_groups), 200 / rng.gamma(2, 1, n_groups)], -1)
    mean = rng.normal([10, -300], np.sqrt(variance / [0.2, 2.0]))
    return rng.normal(mean[:, None], np.sqrt(variance)[:, None], (n_groups, n_rows, 2))


def draw_tied(rng, n_groups, n_rows):
    mean = rng.normal([0, 5], [2.0, 6.0], (n_groups, 2))
    return rng.normal(mean[:, None], [1.0, 2.0], (n_groups, n_rows, 2))


def draw_vectors(rng, n_groups, n_rows):
    spreads = stats.invwishart(9, np.diag([1.0, 4.0, 900.0])).rvs(n_groups, random_state=rng)
    means = [rng.multivariate_normal([1, 2, 3], spread / 0.1) for spread in spreads]
    return np.stack([rng.multivariate_normal(m, s, n_rows) for m, s in zip(means, spreads, strict=True)])


NIG = [field("strength"), field("shape"), field("scale")]
MODELS = {
    # family, draw, moves along which the evidence is flat, what is recovered, and how exactly
    "bernoulli": (
        tb.Bernoulli(),
        draw_coins,
        [field(name, i) for name in ("alpha", "beta") for i in (0, 1)],
        {"alpha": [2, 30], "beta": [6, 10]},
    ),
    "categorical": (
        tb.Categorical(),
        draw_levels,
        [field("concentration", i) for i in range(3)],
        {"concentration": [2.0, 0.5, 4.0]},
    ),
    "multinomial": (
        tb.Multinomial(),
        draw_words,
        [field("concentration", i) for i in range(4)],
        {"concentration": [0.1, 0.3, 2.0, 1.0]},
    ),
    "poisson": (
        tb.Poisson(),
        draw_events,
        [field(name, i) for name in ("shape", "rate") for i in (0, 1)],
        {"shape": [3, 2], "rate": [2, 0.004]},
    ),
    "gaussian": (
        tb.Gaussian(),
        draw_numbers,
        [field(name, i) for name in ("strength", "shape", "scale") for i in (0, 1)],
        {"strength": [0.2, 2.0], "shape": [4, 2], "scale": [6, 200]},
    ),
    "spherical": (tb.SphericalGaussian(), draw_numbers, NIG, {}),
    "tied": (tb.TiedGaussian(), draw_tied, [field("strength", 0), field("strength", 1)], {"strength": [1 / 4, 1 / 9]}),
    "tied spherical": (tb.TiedSphericalGaussian(), draw_tied, [field("strength")], {}),
    "multivariate": (
        tb.MultivariateGaussian(),
        draw_vectors,
        [field("strength"), freedom, field("scale")],
        {"strength": 0.1, "degrees_of_freedom": 9, "scale": np.diag([1.0, 4.0, 900.0])},
    ),
    "tied multivariate": (tb.TiedMultivariateGaussian(), draw_vectors, [field("strength")], {}),
}


@pytest.fixture(scope="module", params=list(MODELS))
def model(request):
    family, draw, moves, recovered = MODELS[request.param]
    rows, group = grouped(draw, 600, 25)
    return tb.fit_distribution(rows, family, group=group), moves, recovered


@pytest.mark.slow_after(1)
def test_the_evidence_is_at_its_largest(model):
    learned, moves, _ = model
    belief = prior_of(learned)
    # of hundreds of groups, each with a slope of its own; the sums of events are in the millions
    np.testing.assert_allclose(slopes(learned, belief, moves), 0.0, atol=2e-3)
    best = evidence(belief, learned)
    for move in moves:
        for factor in (0.3, 0.8, 0.95, 1.05, 1.25, 3.0):
            assert evidence(move(belief, factor), learned) < best


@pytest.mark.slow_after(1)
def test_what_made_the_data_is_recovered(model):
    learned, _, recovered = model
    belief = prior_of(learned)
    for name, value in recovered.items():
        np.testing.assert_allclose(getattr(belief, name), value, rtol=0.2, atol=1e-12)
    default = learned.family.resolve_prior(None, learned.statistics, "bayes")
    assert evidence(belief, learned) > evidence(default, learned)


@pytest.mark.slow
def test_no_grid_finds_a_better_beta_or_dirichlet():
    for table in ([[30, 70], [60, 40]], [[3, 9], [8, 2], [5, 5]], [[1, 0], [4, 2], [0, 7]]):
        counts = tb.Counts(np.array(table, dtype=float))
        best = np.sum(tb.Dirichlet(fit_dirichlet(counts.table, counts.segments)).log_evidence(counts))
        grid = np.exp(np.linspace(-4, 6, 51))
        rows, low = counts.table.sum(), 2 / len(table)
        other = [np.sum(tb.Dirichlet([a, b]).log_evidence(counts)) for a in grid for b in grid if low <= a + b <= rows]
        assert max(other) <= best + 1e-9
        assert max(other) > best - 0.2


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("name", list(CASES))
def test_weight_two_is_twice_and_the_order_of_groups_is_nothing(name):
    case = CASES[name]
    once = tb.fit_distribution(case.rows, case.family, group=case.groups)
    twice = tb.fit_distribution(np.concatenate([case.rows, case.rows]), case.family, group=np.tile(case.groups, 2))
    heavy = tb.fit_distribution(case.rows, case.family, group=case.groups, weight=np.full(len(case.rows), 2.0))
    other = tb.fit_distribution(case.rows, case.family, group=2 - case.groups)
    empty = tb.fit_distribution(
        np.concatenate([case.rows, case.rows[:1]]),
        case.family,
        group=np.append(case.groups, 3),
        weight=np.append(np.ones(len(case.rows)), 0.0),
    )
    for a, b in ((twice, heavy), (once, other), (once, empty)):
        for first, second in zip(fields_of(prior_of(a)), fields_of(prior_of(b)), strict=True):
            np.testing.assert_allclose(first, second, rtol=1e-6)


def fields_of(belief):
    return [
        value
        for name, value in belief._fields().items()
        if name not in ("tied_over", "sizes", "root", "precision_cholesky")
    ]


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("name", GAUSSIANS)
@pytest.mark.parametrize("estimate", ["bayes", "map"])
def test_scale_and_offset_change_no_prediction(name, estimate):
    case = CASES[name]
    scale = 1e3 if "spherical" in name else np.array([1e3, 1e-4, 7.0])
    covariance = {
        "gaussian": "diagonal",
        "tied": "tied_diagonal",
        "multivariate": "full",
        "tied multivariate": "tied",
        "spherical": "spherical",
        "tied spherical": "tied_spherical",
    }[name]
    moved = case.rows * scale + np.array([1e9, 0.0, -5.0]) * scale
    rows = (moved - np.array([1e9, 0.0, -5.0]) * scale) / scale  # as the offset has rounded them
    made = [
        tb.GaussianDiscriminant(covariance, prior="empirical", estimate=estimate).fit(x, case.groups)
        for x in (rows, moved)
    ]
    np.testing.assert_allclose(made[0].predict_proba(rows), made[1].predict_proba(moved), rtol=1e-5, atol=1e-8)


@pytest.mark.slow_after(1)
@pytest.mark.parametrize("name", list(CASES))
def test_under_map_the_mode_has_the_same_pseudo_counts(name):
    case = CASES[name]
    learned = tb.fit_distribution(case.rows, case.family, group=case.groups)
    mean, mode = (learned.estimate(e, prior="empirical") for e in ("bayes", "map"))
    if name in ("bernoulli", "binomial", "poisson", "multinomial", "dirichlet multinomial"):
        np.testing.assert_allclose(mean, mode, rtol=1e-12)
    else:
        np.testing.assert_allclose(mean.mean, mode.mean)
        # the mode of the prior is the typical variance
        prior = prior_of(learned, "map")
        plain = prior_of(learned)
        if name in ("multivariate", "tied multivariate"):
            typical = plain.scale / (plain.degrees_of_freedom - plain.n_columns + 1)
            shaped = prior.update(learned.statistics.scale(0.0)).mode().covariance[0]
        else:
            typical = np.broadcast_to(plain.scale / plain.shape, (3,))
            shaped = prior.update(learned.statistics.scale(0.0)).mode().variance[0]
        np.testing.assert_allclose(shaped, typical, rtol=1e-9)


def beta_of(*table):
    table = np.array(table, dtype=float)
    return fit_dirichlet(table, Segments([table.shape[1]]))


def test_bounds_where_the_evidence_has_no_maximum():
    alike = beta_of([30, 70], [31, 69], [29, 71])
    assert alike.sum() == pytest.approx(300)
    assert alike[0] / alike.sum() == pytest.approx(0.3, abs=1e-3)
    np.testing.assert_allclose(beta_of([10, 0], [0, 10]), [0.5, 0.5])  # pure groups: 2 / groups, no less
    np.testing.assert_allclose(beta_of([5, 0], [7, 0]).sum(), 12)  # a level nobody has seen
    assert 0.4 < beta_of([5, 0], [7, 0])[1] < 0.7
    unseen = beta_of([5, 3, 0, 0, 0], [2, 4, 0, 0, 0])
    assert unseen[2] == unseen[3] == unseen[4]
    assert unseen[2:].sum() == pytest.approx(unseen.sum() * 0.5 / (14.5), rel=0.2)


def test_a_single_group_gives_its_levels_one_concentration():
    counts = np.array([[5.0, 1, 0, 3, 8, 2]])
    found = fit_dirichlet(counts, Segments([6]))
    assert np.ptp(found) == 0
    grid = np.exp(np.linspace(-3, 1.15, 400))  # up to as many pseudo-rows as rows
    best = grid[np.argmax([tb.Dirichlet(np.full(6, a)).log_evidence(tb.Counts(counts[0])) for a in grid])]
    assert found[0] == pytest.approx(best, rel=0.02)
    assert tb.fit_distribution([1, 1], tb.Bernoulli()).posterior("empirical") == tb.Beta(3, 1)  # as by default
    gaussian = tb.fit_distribution([1.0, 2.0, 4.0], tb.Gaussian())
    assert gaussian.posterior("empirical") == gaussian.posterior()
    poisson = tb.fit_distribution([1, 2, 4], tb.Poisson())
    assert poisson.posterior("empirical") == poisson.posterior()


def test_large_small_and_missing_counts():
    np.testing.assert_allclose(beta_of([1e6, 2e6], [3e6, 1e6]), beta_of([1e9, 2e9], [3e9, 1e9]), rtol=1e-4)
    tiny = beta_of([0.01, 0.02], [0.03, 0.01])
    assert tiny.sum() == pytest.approx(1)
    np.testing.assert_array_equal(fit_dirichlet(np.zeros((3, 2)), Segments([2])), [1, 1])
    np.testing.assert_array_equal(fit_dirichlet(np.zeros((0, 2)), Segments([2])), [1, 1])
    columns = Segments([2, 0, 1, 3])
    table = np.array([[30.0, 70, 5, 1, 2, 3], [60, 40, 0, 0, 0, 0]])
    found = fit_dirichlet(table, columns)
    np.testing.assert_allclose(found[:2], beta_of([30, 70], [60, 40]), rtol=1e-6)
    np.testing.assert_allclose(found[3:], fit_dirichlet(table[:1, 3:], Segments([3])), rtol=1e-6)
    rows = np.array([[1.0, np.nan, np.nan], [0.0, 1.0, np.nan], [1.0, 0.0, np.nan], [1.0, 1.0, np.nan]])
    for family in (tb.Bernoulli(), tb.Poisson()):
        whole = tb.fit_distribution(rows, family, group=[0, 0, 1, 1])
        single = tb.fit_distribution(rows[:, 1], family, group=[0, 0, 1, 1])
        for first, second in zip(fields_of(prior_of(whole)), fields_of(prior_of(single)), strict=True):
            assert first[1] == pytest.approx(second[0], rel=1e-6)
    assert np.isfinite(tb.fit_distribution(rows, tb.Poisson(), group=[0, 0, 1, 1]).estimate(prior="empirical")).all()


@pytest.mark.slow_after(1)
@pytest.mark.parametrize(
    "family", [tb.Gaussian(), tb.TiedGaussian(), tb.SphericalGaussian(), tb.TiedSphericalGaussian()]
)
def test_gaussian_edges(family):
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(12, 3))
    one_each = tb.fit_distribution(rows, family, group=np.arange(12))  # no spread within any group: the default
    default = family.resolve_prior(None, one_each.statistics, "bayes")
    for found, expected in zip(fields_of(prior_of(one_each)), fields_of(default), strict=True):
        np.testing.assert_allclose(np.broadcast_to(found, np.shape(expected) or found.shape), expected, rtol=1e-12)
    rows[:6, 0] = 3.0  # one group without spread in one column
    some = tb.fit_distribution(rows, family, group=[0] * 6 + [1] * 6)
    prior = prior_of(some)
    assert all(np.isfinite(part).all() for part in fields_of(prior))
    if family == tb.Gaussian():
        assert prior.shape.tolist() == pytest.approx([1.5, *prior.shape[1:]])
        np.testing.assert_allclose(prior.scale / prior.shape, pooled_variances(rows))
    far = tb.fit_distribution(np.where(np.arange(12)[:, None] < 6, rows, rows + 1e7), family, group=[0] * 6 + [1] * 6)
    assert (prior_of(far).strength < 0.1).all()
    alike = tb.fit_distribution(np.concatenate([rows, rows]), family, group=[0] * 12 + [1] * 12)
    np.testing.assert_allclose(prior_of(alike).strength, 24)


def pooled_variances(rows):
    within = sum(((part - part.mean(0)) ** 2).sum(0) for part in (rows[:6], rows[6:]))
    return within / 10 * (rows.var(0) / (within / 10)) ** (8 / 18)


def test_an_unknown_word_names_the_one_there_is():
    learned = tb.fit_distribution([1, 0], tb.Bernoulli())
    with pytest.raises(PriorError, match="'empirical'"):
        learned.estimate(prior="emprical")
    with pytest.raises(tb.EstimateError, match="'empirical'"):
        tb.NaiveBayes(prior="flat").fit([[1.0], [2.0]], [0, 1])


def test_slopes_of_log_gamma():
    start = np.array([1e-3, 0.5, 3.0, 19.0, 21.0, 49.0, 51.0, 400.0])
    for steps in (0.0, 0.3, 1.0, 25.0, 3000.0):
        expected = digamma(start + steps) - digamma(start)
        np.testing.assert_allclose(digamma_rising(start, steps), expected, rtol=1e-9, atol=1e-14)
        expected = polygamma(1, start + steps) - polygamma(1, start)
        np.testing.assert_allclose(trigamma_rising(start, steps), expected, rtol=1e-6, atol=1e-14)
    big = np.array([1e6, 1e9, 1e13])  # where the difference of two digammas has lost its digits
    np.testing.assert_allclose(digamma_rising(big, 2.0), 1 / big + 1 / (big + 1), rtol=1e-13)
    np.testing.assert_allclose(trigamma_rising(big, 2.0), -1 / big**2 - 1 / (big + 1) ** 2, rtol=1e-13)


def test_climb_meets_bounds_and_bends():
    def evaluate(place):  # −(x − 3)⁴ − (y + 1)², and its mirror image with a saddle at the start
        x, y = place[:, 0] - [3, 3], place[:, 1] + 1
        zero = np.zeros_like(x)
        second = np.stack([np.stack([-12 * x**2, zero], -1), np.stack([zero, zero - 2], -1)], -2)
        return -(x**4) - y**2, np.stack([-4 * x**3, -2 * y], -1), second

    found, _ = newton_maximize(evaluate, np.zeros((2, 2)), np.array([[-9, -9], [-9, -0.5]]), np.array([[9, 9], [2, 9]]))
    np.testing.assert_allclose(found, [[3, -1], [2, -0.5]], atol=1e-3)

    def wave(place):
        return np.cos(place[:, 0]), -np.sin(place), -np.cos(place)[..., None]

    # from where it bends upwards it still goes up
    found, done = newton_maximize(wave, np.array([[2.5]]), np.array([[-9.0]]), np.array([[9.0]]))
    np.testing.assert_allclose(found, 0.0, atol=1e-8)
    assert done.all()
    assert not newton_maximize(wave, np.array([[2.5]]), np.array([[-9.0]]), np.array([[9.0]]), 1)[1].any()


@pytest.mark.slow
def test_a_hundred_thousand_words_are_quick():
    rng = np.random.default_rng(0)
    words = rng.dirichlet(np.full(100_000, 0.05))
    total = np.stack([rng.multinomial(100_000, rng.dirichlet(3000 * words + 1e-9)) for _ in range(20)]).astype(float)
    seconds = []
    for _ in range(3):
        start = time.process_time()
        found = fit_dirichlet(total, Segments([100_000]))
        seconds.append(time.process_time() - start)
    assert min(seconds) < 0.4  # 0.05, whatever else the machine does
    assert found.sum() == pytest.approx(3000, rel=0.1)


def test_no_order_of_groups_levels_or_columns_matters_to_the_bit():
    rng = np.random.default_rng(4)
    sizes = np.array([1, 7, 300, 2, 2, 0, 40])
    table = rng.poisson(rng.gamma(0.3, 3.0, (6, sizes.sum()))).astype(float)
    table[:, -40:] = 0  # nothing was counted
    table[1:, 1:8] = 0  # one group
    plain = Segments(sizes)
    found = fit_dirichlet(table, plain)
    parts = np.split(np.arange(sizes.sum()), plain.offsets[1:-1])
    for _ in range(5):
        columns = rng.permutation(len(sizes))
        cells = np.concatenate([rng.permutation(parts[column]) for column in columns])
        moved = fit_dirichlet(table[rng.permutation(6)][:, cells], Segments(sizes[columns]))
        np.testing.assert_array_equal(moved, found[cells])
    alone = [fit_dirichlet(table[:, part], Segments([len(part)])) for part in parts]
    np.testing.assert_allclose(np.concatenate(alone), found, rtol=1e-13)  # nor which columns there are beside


def test_levels_and_columns_that_are_alike_are_solved_for_once(monkeypatch):
    solved, climb_all = [], empirical_dirichlet.fit_dirichlet_newton

    def watch(counts, rows, *rest):
        solved.append((len(rows), len(counts)))
        return climb_all(counts, rows, *rest)

    monkeypatch.setattr(empirical_dirichlet, "fit_dirichlet_newton", watch)
    table = np.array([[2.0, 0, 1, 5, 3, 1, 0, 2], [0, 2, 1, 3, 1, 3, 5, 0]])
    segments = Segments([4, 4])  # {2 and 0, twice; 1 and 1; 5 and 3}, {1 and 3, twice; 0 and 5; 2 and 0}
    found = fit_dirichlet(table, segments)
    assert solved[0] == (2, 6)
    twice = fit_dirichlet(np.tile(table, (1, 50)), Segments([4] * 100))
    assert max(solved) == (2, 6)
    np.testing.assert_array_equal(twice, np.tile(found, 50))


def test_logarithms_and_bins_are_gaussians_and_levels():
    rows, group = grouped(draw_numbers, 30, 8)
    logs = rows[:, 0] / 10
    normal = prior_of(tb.fit_distribution(logs, tb.Gaussian(), group=group))
    for found, expected in zip(
        fields_of(prior_of(tb.fit_distribution(np.exp(logs), tb.LogNormal(), group=group))),
        fields_of(normal),
        strict=True,
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    edges = (-np.inf, 0.8, 1.2, np.inf)
    binned = prior_of(tb.fit_distribution(logs, tb.Binned((-5.0, 0.8, 1.2, 5.0)), group=group))
    levels = prior_of(tb.fit_distribution(np.digitize(logs, edges), tb.Categorical(levels=(1, 2, 3)), group=group))
    np.testing.assert_allclose(binned.concentration, levels.concentration, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_any_statistics_have_a_prior(seed):
    rng = np.random.default_rng(seed)
    n_groups, n_columns = rng.integers(1, 6), rng.integers(1, 5)
    for _ in range(8):
        shape = (n_groups, n_columns)
        weight = rng.choice([0.0, 1e-6, 1.0, 7.0, 1e7], shape) * rng.random(shape)
        total = weight * rng.choice([0.0, 0.5, 1.0, rng.random()], shape)
        totals = tb.Totals(weight, total)
        for family in (tb.Bernoulli(), tb.Poisson(), tb.Multinomial()):
            for estimate in ("bayes", "map"):
                belief = family.resolve_prior("empirical", totals, estimate)
                assert all(np.isfinite(part).all() for part in fields_of(belief))
        x = rng.choice([0.0, 1.0, 1e9, 1e-9, np.nan], (12, n_columns)) + rng.choice([0.0, 1.0], (12, n_columns))
        x[:2] = [[3.0], [5.0]]  # some spread, or not even the default has a prior
        moments = tb.Gaussian().collect(x, rng.integers(0, n_groups, 12), int(n_groups), rng.random(12) * 3)
        for family in (tb.Gaussian(), tb.TiedGaussian(), tb.SphericalGaussian(), tb.TiedSphericalGaussian()):
            belief = family.resolve_prior("empirical", moments, "bayes")
            assert all(np.isfinite(part).all() for part in fields_of(belief.update(moments)))


EVENTS = np.array([[3.0, 0.0, 40.0], [9.0, 1.0, 25.0], [1.0, 0.0, 70.0], [0.0, 4.0, 33.0]])
TIMES = np.array([[2.0, 1.0, 3.0], [4.0, 1.0, 2.5], [1.0, 2.0, 4.0], [3.0, 1.0, 3.0]])


def test_what_is_climbed_for_rates_is_the_evidence_with_its_own_slopes():
    evaluate = empirical_prior._gamma_evidence(EVENTS, TIMES)
    totals = tb.Totals(TIMES, EVENTS)

    def evidence_at(place):
        return tb.Gamma(*np.exp(place).T).log_evidence(totals).sum(axis=0)

    for place in (np.zeros((3, 2)), np.array([[1.0, -0.5], [-1.0, 0.3], [2.0, -1.5]])):
        value, slope, bend = evaluate(place)
        start = evaluate(np.zeros((3, 2)))[0]
        np.testing.assert_allclose(
            value - start, evidence_at(place) - evidence_at(np.zeros((3, 2))), rtol=1e-9, atol=1e-9
        )
        for axis in range(2):
            move = 1e-5 * np.eye(2)[axis]
            up, down = evaluate(place + move), evaluate(place - move)
            np.testing.assert_allclose(slope[:, axis], (up[0] - down[0]) / 2e-5, rtol=1e-6, atol=1e-6)
            np.testing.assert_allclose(bend[:, axis], (up[1] - down[1]) / 2e-5, rtol=1e-5, atol=1e-5)


def test_no_prior_of_rates_near_the_one_found_is_better():
    totals = tb.Totals(TIMES, EVENTS)
    prior = tb.Poisson().resolve_prior("empirical", totals, "bayes")
    best = prior.log_evidence(totals).sum(axis=0)
    for shape, rate in ((1.05, 1.0), (1 / 1.05, 1.0), (1.0, 1.05), (1.0, 1 / 1.05)):
        moved = tb.Gamma(np.maximum(prior.shape * shape, 0.5), np.minimum(prior.rate * rate, TIMES.sum(axis=0)))
        assert (moved.log_evidence(totals).sum(axis=0) <= best + 1e-9).all()
    held = tb.Poisson().resolve_prior("empirical", totals, "map")
    np.testing.assert_allclose(held.shape, prior.shape + 1, rtol=1e-14)
    np.testing.assert_array_equal(held.rate, prior.rate)


def test_bounds_of_priors_of_rates():
    alike = tb.Totals([[10.0], [10.0], [10.0]], [[20.0], [20.0], [20.0]])
    found = tb.Poisson().resolve_prior("empirical", alike, "bayes")
    assert found.rate[0] == pytest.approx(30.0)  # no prior is worth more rows than were counted
    assert found.mean()[0] == pytest.approx(2.0, rel=0.01)
    apart = tb.Totals([[1.0]] * 8, [[0.0], [0.0], [0.0], [1e6], [0.0], [0.0], [0.0], [0.0]])
    assert tb.Poisson().resolve_prior("empirical", apart, "bayes").shape[0] == pytest.approx(
        2 / 8
    )  # nor less than 2 / groups


def test_rates_that_tell_nothing_of_groups_have_the_default():
    weight = np.array([[2.0, 2.0, 0.0, 0.5], [3.0, 3.0, 4.0, 0.25]])
    total = np.array([[1.0, 0.0, 0.0, 0.5], [9.0, 0.0, 7.0, 0.25]])
    totals = tb.Totals(weight, total)
    default = tb.Poisson().default_prior(totals, "bayes")
    found = tb.Poisson().resolve_prior("empirical", totals, "bayes")
    shape, rate = (np.broadcast_to(part, 4) for part in (default.shape, default.rate))
    told = [0, 3]  # in the others there are no events, or rows of one group alone
    silent = [1, 2]
    np.testing.assert_array_equal(found.shape[silent], shape[silent])
    np.testing.assert_array_equal(found.rate[silent], rate[silent])
    for column in told:
        alone = tb.Totals(weight[:, [column]], total[:, [column]])
        one = tb.Poisson().resolve_prior("empirical", alone, "bayes")
        np.testing.assert_allclose([found.shape[column], found.rate[column]], [one.shape[0], one.rate[0]], rtol=1e-7)
        assert (found.shape[column], found.rate[column]) != (shape[column], rate[column])


def test_columns_that_are_alike_are_found_once():
    first = np.array([[1.0, 2.0, 1.0, -0.0, 0.0], [3.0, 4.0, 3.0, 0.0, -0.0]])
    second = np.array([[5.0, 5.0, 5.0, 5.0, 5.0], [6.0, 6.0, 6.0, 6.0, 6.0]])
    different, again = empirical_prior._distinct(first, second)
    assert different.shape == (2, 2, 3)  # −0 is 0
    np.testing.assert_array_equal(different[..., again], np.stack([first, second]))
    apart, again = empirical_prior._distinct(first, second + np.array([0, 0, 1, 0, 0]))
    assert apart.shape[-1] == 4
    none, again = empirical_prior._distinct(np.zeros((2, 0)), np.zeros((2, 0)))
    assert none.shape == (2, 2, 0)
    assert len(again) == 0
    empty = tb.Poisson().resolve_prior("empirical", tb.Totals(np.ones((2, 1)), np.zeros((2, 0))), "bayes")
    assert empty.shape.shape == (0,)
    nobody = tb.Poisson().resolve_prior("empirical", tb.Totals(np.ones((0, 1)), np.zeros((0, 2))), "bayes")
    assert nobody.shape.shape == (2,)


def test_groups_may_be_given_in_several_axes():
    totals = tb.Totals(TIMES.reshape(2, 2, 3), EVENTS.reshape(2, 2, 3))
    flat = tb.Poisson().resolve_prior("empirical", tb.Totals(TIMES, EVENTS), "bayes")
    found = tb.Poisson().resolve_prior("empirical", totals, "bayes")
    np.testing.assert_allclose(found.shape, flat.shape, rtol=1e-12)
    assert empirical_prior._with_flat_groups(tb.Totals([2.0], [1.0])).total.shape == (1, 1)


def two_columns(first, second):
    """Counts of two columns with levels, in groups."""
    return tb.Counts(np.concatenate([np.array(first, float), np.array(second, float)], axis=1), (2, 3))


def test_levels_are_compared_between_groups_where_two_have_counts():
    rule, family = empirical_prior.EmpiricalOrAddOne(), tb.Categorical()
    spoken, silent = [[30, 70], [60, 40], [0, 0]], [[0, 0, 0], [5, 1, 0], [0, 0, 0]]
    found = rule.resolve(family, two_columns(spoken, silent), "bayes").concentration
    np.testing.assert_allclose(found[:2], beta_of([30, 70], [60, 40]), rtol=1e-6)
    np.testing.assert_array_equal(found[2:], 1.0)  # one group tells nothing of how groups vary
    held = rule.resolve(family, two_columns(spoken, silent), "map").concentration
    np.testing.assert_allclose(held, found + 1, rtol=1e-12)
    nothing = two_columns([[0, 0], [1, 0]], [[0, 0, 0], [5, 1, 0]])
    assert rule.resolve(family, nothing, "bayes") == family.default_prior(nothing, "bayes")
    light = two_columns([[0.3, 0.4], [0.1, 0.5]], [[0.2, 0.1, 0], [0.5, 0.1, 0]])  # fractions of rows are counts too
    assert not (rule.resolve(family, light, "bayes").concentration == 1).any()
    alone = rule.resolve(tb.Categorical(), tb.Counts(np.array([[3.0, 4.0], [5.0, 1.0]]), (2,)), "bayes")
    np.testing.assert_allclose(alone.concentration, beta_of([3, 4], [5, 1]), rtol=1e-6)


def test_families_are_resolved_together_as_each_alone():
    rule = empirical_prior.EmpiricalOrAddOne()
    levels = two_columns([[30, 70], [60, 40]], [[5, 1, 2], [1, 1, 9]])
    yes = tb.Totals([[9.0, 9.0], [8.0, 8.0]], [[3.0, 8.0], [7.0, 1.0]]).with_failures()
    words = tb.Totals([[9.0], [8.0]], [[3.0, 8.0, 1.0], [7.0, 1.0, 0.0]])
    quiet = tb.Totals([[9.0], [0.0]], [[3.0, 8.0], [0.0, 0.0]])
    asked = [(tb.Categorical(), levels), (tb.Bernoulli(), yes), (tb.Multinomial(), quiet), (tb.Multinomial(), words)]
    for estimate in ("bayes", "map"):
        together = rule.resolve_all(asked, estimate)
        for found, (family, statistics) in zip(together, asked, strict=True):
            alone = rule.resolve(family, statistics, estimate)
            for first, second in zip(fields_of(found), fields_of(alone), strict=True):
                np.testing.assert_allclose(first, second, rtol=1e-9)
    assert together[2] == tb.Multinomial().default_prior(quiet, "map")


def test_labels_and_words_are_compared_between_groups_unless_a_mode_is_taken():
    for family, compared in (
        (tb.Categorical(), True),
        (tb.Bernoulli(), True),
        (tb.Poisson(), False),
        (tb.Gaussian(), False),
    ):
        assert (
            isinstance(empirical_prior.default_group_prior(family, "bayes"), empirical_prior.EmpiricalOrAddOne)
            == compared
        )
        assert empirical_prior.default_group_prior(family, "map") is None
    assert empirical_prior.is_data_dependent("empirical")
    assert empirical_prior.is_data_dependent(empirical_prior.EmpiricalOrAddOne())
    assert not empirical_prior.is_data_dependent(tb.Beta(1, 1))


def test_of_a_beta_successes_and_failures_are_the_levels():
    yes = tb.Totals([[9.0, 9.0], [8.0, 8.0]], [[3.0, 8.0], [7.0, 1.0]]).with_failures()
    prior = tb.Bernoulli().resolve_prior("empirical", yes, "bayes")
    for column in range(2):
        hits = yes.total[:, column]
        expected = beta_of(*np.stack([hits, [9 - hits[0], 8 - hits[1]]], axis=-1).tolist())
        np.testing.assert_allclose([prior.alpha[column], prior.beta[column]], expected, rtol=1e-6)
