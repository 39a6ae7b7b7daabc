"""learn: the numbers a user sees, groups, weights, frames, adding and forgetting, and every refusal."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse, stats

import tallybayes as tb
from tallybayes.errors import DataError, EstimateError, LabelError, PriorError, StatisticsError, TallybayesError

COIN = tb.fit_distribution([1, 1], tb.Bernoulli())


def coin_of(heads, tails):
    return tb.fit_distribution([1] * heads + [0] * tails, tb.Bernoulli())


# ---- numbers from textbooks, and by hand ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("heads", "tails", "likely", "mean", "mode"),
    [(2, 0, 1, 4 / 6, 3 / 4), (55, 45, 0.55, 57 / 104, 56 / 102), (0, 3, 0, 2 / 7, 1 / 5)],
)
def test_a_coin_under_beta_2_2(heads, tails, likely, mean, mode):
    coin, prior = coin_of(heads, tails), tb.Beta(2, 2)
    assert coin.estimate("mle") == pytest.approx(likely)
    assert coin.estimate("bayes", prior=prior) == pytest.approx(mean)
    assert coin.posterior(prior).mean() == pytest.approx(mean)
    assert coin.estimate("map", prior=prior) == pytest.approx(mode)
    assert coin.posterior(prior).interval(0.95) == pytest.approx(stats.beta(2 + heads, 2 + tails).interval(0.95))
    np.testing.assert_allclose(coin.predictive(prior).log_prob([1, 0]), np.log([mean, 1 - mean]))
    flat = coin.estimate("map", prior=tb.Beta(1, 1))
    assert flat == coin.estimate("mle")


def test_three_tails():
    tails = coin_of(0, 3)
    best = tails.estimate("mle")
    assert tails.log_likelihood(best) == 0
    assert coin_of(1, 0).log_likelihood(best) == -np.inf
    assert tails.cross_entropy(best) == 0


def test_evidence_of_55_heads_in_100():
    prior = tb.Beta(2, 2)
    assert tb.fit_distribution([55], tb.Binomial(100)).log_evidence(prior) == pytest.approx(
        stats.betabinom.logpmf(55, 100, 2, 2)
    )
    assert tb.fit_distribution([55], tb.Binomial(100)).log_evidence(prior) == pytest.approx(-4.229, abs=5e-4)
    assert coin_of(55, 45).log_evidence(prior) == pytest.approx(-70.517, abs=5e-4)


def test_bits_of_two_heads():
    bits = COIN.description_length(tb.Beta(2, 2))
    # by hand: −log₂ (¾)², −log₂ of 6 · ¾ · ¼, −log₂ of 4/6 · 9/20 … = 2·3 / (4·5)
    assert bits == pytest.approx((-2 * np.log2(3 / 4), -np.log2(6 * 3 / 4 / 4), -np.log2(2 * 3 / (4 * 5))))
    assert [round(part, 3) for part in bits] == [0.83, -0.17, 1.737]


def test_gaussian_maximum_likelihood_divides_by_m():
    values = [1.0, 2.0, 6.0]
    assert tb.fit_distribution(values, tb.Gaussian()).estimate("mle") == pytest.approx((3, 14 / 3))
    assert tb.fit_distribution(values, tb.Gaussian()).estimate("unbiased") == pytest.approx((3, 7))


def test_bits_are_the_parts_of_bayes_rule():
    """Data + model − posterior density at the mode = evidence, in bits, in every family."""
    rows = np.random.default_rng(1).normal(size=(9, 2))
    group = list("aabbbaabb")
    cases = [
        (COIN, tb.Beta(2, 3)),
        (tb.fit_distribution([3, 1, 2], tb.Poisson()), tb.Gamma(2, 1)),
        (tb.fit_distribution(["a", "b", "a"], tb.Categorical(), group=["x", "y", "x"]), tb.Dirichlet([2, 3])),
        (tb.fit_distribution([[2, 1], [1, 0]], tb.Multinomial()), tb.Dirichlet([2, 3])),
        (tb.fit_distribution(rows, tb.Gaussian(), group=group), tb.NormalInverseGamma(0, 1, 2, 3)),
        (
            tb.fit_distribution(rows, tb.TiedMultivariateGaussian(), group=group),
            tb.NormalInverseWishart([0, 0], 1, 4, np.eye(2)),
        ),
    ]
    for learned, prior in cases:
        bits = learned.description_length(prior)
        posterior = learned.posterior(prior)
        at_mode = -np.asarray(posterior.log_prob(posterior.mode())) / np.log(2)
        np.testing.assert_allclose(np.asarray(bits.data) + bits.model - at_mode, bits.evidence, rtol=1e-10)


# ---- groups, weights, shapes ----------------------------------------------------------------------------------------

VALUES = np.array([1.0, 2.0, 4.0, 8.0, 9.0, 3.0])
COUNTS = VALUES.astype(int)
FAMILIES = [
    (tb.Gaussian(), VALUES),
    (tb.TiedGaussian(), VALUES),
    (tb.Poisson(), COUNTS),
    (tb.Binomial(9), COUNTS),
    (tb.Bernoulli(), COUNTS % 2),
    (tb.Categorical(), np.array(list("abcaba"))),
]
ROW_FAMILIES = [
    (tb.SphericalGaussian(), np.stack([VALUES, VALUES**0.5], axis=1)),
    (tb.MultivariateGaussian(), np.stack([VALUES, VALUES % 3], axis=1)),
    (tb.Multinomial(), np.stack([COUNTS, COUNTS % 3], axis=1)),
    (tb.Gaussian(), np.stack([VALUES, VALUES % 3], axis=1)),
    (tb.Categorical(), np.array([list("ax"), list("bx"), list("by"), list("cy"), list("ax"), list("bz")])),
]


def assert_alike(ours, theirs, rtol=1e-12):
    """Parameters, beliefs' answers and numbers of any form agree."""
    if isinstance(ours, dict):
        assert ours.keys() == theirs.keys()
        for key in ours:
            assert_alike(ours[key], theirs[key], rtol)
    elif isinstance(ours, list | tuple):
        for one, other in zip(ours, theirs, strict=True):
            assert_alike(one, other, rtol)
    else:
        np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=1e-13)


@pytest.mark.slow_after(10)
@pytest.mark.parametrize(
    ("labels", "sorted_labels"),
    [
        (["b", "a", "b", "a", "b", "c"], ("a", "b", "c")),
        ([10, -3, 10, -3, 10, 700], (-3, 10, 700)),
        ([1, 0, 1, 0, 1, 2], (0, 1, 2)),
        (np.array([1, 0, 1, 0, 1, 2], dtype=np.uint8), (0, 1, 2)),
        ([1.0, 0.0, 1.0, 0.0, 1.0, 2.0], (0, 1, 2)),
        ([True, False, True, False, True, True], (False, True)),
        (pd.Series(["b", "a", "b", "a", "b", "c"], dtype="category"), ("a", "b", "c")),
        (pl.Series(["b", "a", "b", "a", "b", "c"]), ("a", "b", "c")),
        (pd.DataFrame({"g": ["b", "a", "b", "a", "b", "c"]}), ("a", "b", "c")),
    ],
)
@pytest.mark.parametrize(("family", "values"), FAMILIES)
def test_groups_by_labels(family, values, labels, sorted_labels):
    learned = tb.fit_distribution(values, family, group=labels)
    assert learned.groups == sorted_labels
    plain = [label.item() if hasattr(label, "item") else label for label in np.asarray(labels).ravel()]
    if isinstance(family, tb.TiedGaussian):
        return  # its groups are not independent: see the families' own tests
    declared = tb.Categorical(tuple("abc")) if isinstance(family, tb.Categorical) else family
    for g, label in enumerate(sorted_labels):
        alone = tb.fit_distribution([v for v, other in zip(values, plain, strict=True) if other == label], declared)
        both, one = learned.estimate("mle"), alone.estimate("mle")
        if isinstance(both, dict):
            assert {level: both[level][g] for level in both} == pytest.approx(one)
        elif isinstance(both, tuple):
            assert [part[g] for part in both] == pytest.approx(list(one))
        else:
            assert both[g] == pytest.approx(one)


def one_hot(codes, n):
    return np.eye(n)[codes]


@pytest.mark.parametrize(("family", "values"), FAMILIES + ROW_FAMILIES)
def test_soft_groups_of_ones_and_zeros_are_hard(family, values):
    codes = np.array([0, 1, 0, 2, 1, 0])
    hard = tb.fit_distribution(values, family, group=codes)
    forms = [one_hot(codes, 3), one_hot(codes, 3).astype(int), one_hot(codes, 3) > 0, one_hot(codes, 3).tolist()]
    forms.append(pd.DataFrame(one_hot(codes, 3)))
    for soft in forms:
        learned = tb.fit_distribution(values, family, group=soft)
        assert learned.groups == hard.groups == (0, 1, 2)
        assert_alike(learned.estimate("mle"), hard.estimate("mle"))
    weight = np.array([1, 2, 0.5, 3, 1, 4])
    assert_alike(
        tb.fit_distribution(values, family, group=one_hot(codes, 3), weight=weight).estimate("mle"),
        tb.fit_distribution(values, family, group=codes, weight=weight).estimate("mle"),
    )


@pytest.mark.parametrize(("family", "values"), FAMILIES + ROW_FAMILIES)
def test_soft_groups_are_weights(family, values):
    shares = np.random.default_rng(0).uniform(0.1, 1, (6, 2))
    learned = tb.fit_distribution(values, family, group=shares)
    if "groups" in getattr(family, "tied_over", ()):
        return
    for g in range(2):
        alone = tb.fit_distribution(values, family, weight=shares[:, g])
        both, one = learned.estimate("mle"), alone.estimate("mle")
        if isinstance(both, dict):
            both = {level: both[level][g] for level in both}
        elif isinstance(both, list):
            both = [{level: column[level][g] for level in column} for column in both]
        elif isinstance(both, tuple):
            both = tuple(part[g] for part in both)
        else:
            both = both[g]
        assert_alike(both, one, rtol=1e-10)


@pytest.mark.parametrize(("family", "values"), FAMILIES + ROW_FAMILIES)
def test_weight_0_is_absent_and_2_is_twice(family, values):
    weight = np.array([2, 0, 1, 1, 0, 2])
    group = np.array(["x", "w", "y", "x", "w", "y"])  # group w has no weight at all
    weighted = tb.fit_distribution(values, family, weight=weight, group=group)
    repeated = tb.fit_distribution(np.repeat(values, weight, axis=0), family, group=np.repeat(group, weight))
    assert weighted.groups == ("x", "y")
    assert weighted.levels == repeated.levels
    assert weighted.tally.isclose(repeated.tally)
    assert_alike(
        weighted.log_evidence(repeated.family.resolve_prior(None, repeated.statistics, "bayes")),
        repeated.log_evidence(),
    )


def test_rows_without_a_group_are_left_out():
    some = tb.fit_distribution([1.0, 2.0, 4.0, 100.0], tb.Gaussian(), group=["a", "a", "b", None])
    assert some == tb.fit_distribution([1.0, 2.0, 4.0], tb.Gaussian(), group=["a", "a", "b"])


def test_one_column_has_no_column_axis():
    one, block = (
        tb.fit_distribution(VALUES, tb.Gaussian()),
        tb.fit_distribution(np.stack([VALUES, VALUES], axis=1), tb.Gaussian()),
    )
    for ask in ("log_evidence", "estimate"):
        assert_alike(
            getattr(one, ask)(), tuple(p[0] for p in block.estimate()) if ask == "estimate" else block.log_evidence()[0]
        )
    assert isinstance(one.estimate().mean, float)
    assert one.posterior().mean() == pytest.approx(one.estimate("bayes"))
    assert one.predictive().log_prob(3.0) == pytest.approx(block.predictive().log_prob([[3.0, 3.0]])[0, 1])
    assert isinstance(one.predictive().log_prob(3.0), float)
    assert one.predictive().log_prob([3.0]).shape == (1,)
    grouped = tb.fit_distribution(VALUES, tb.Gaussian(), group=list("aabbab"))
    assert grouped.predictive().log_prob([3.0, 4.0, 5.0]).shape == (3, 2)
    assert grouped.posterior().mean().mean.shape == (2,)


@pytest.mark.parametrize("family", [tb.MultivariateGaussian(), tb.SphericalGaussian(), tb.Multinomial()])
def test_whole_rows_may_have_one_column(family):
    for values in ([[1.0], [2.0], [4.0]], np.array([[1.0], [2.0], [4.0]]), pd.DataFrame({"x": [1.0, 2.0, 4.0]})):
        learned = tb.fit_distribution(values, family)
        assert np.shape(learned.log_evidence()) == ()
        assert learned.predictive().log_prob([[2.0]]).shape == (1,)


def test_frames_and_arrays_learn_alike():
    array = np.stack([VALUES, VALUES % 3], axis=1)
    mapping = {"x": array[:, 0], "y": array[:, 1]}
    expected = tb.fit_distribution(array, tb.Gaussian()).estimate()
    for frame in (mapping, pd.DataFrame(mapping), pl.DataFrame(mapping), pd.DataFrame(mapping, dtype="Float64")):
        learned = tb.fit_distribution(frame, tb.Gaussian())
        assert_alike(learned.estimate(), expected)
        assert_alike(learned.predictive().log_prob(array), learned.predictive().log_prob(frame))


def test_named_columns_are_found_by_name():
    frame = pd.DataFrame({"x": [1.0, 2.0, 4.0], "y": [100.0, 300.0, 200.0]})
    predictive = tb.fit_distribution(frame, tb.Gaussian()).predictive()
    expected = predictive.log_prob(frame)
    np.testing.assert_array_equal(predictive.log_prob(frame[["y", "x"]]), expected)
    np.testing.assert_array_equal(predictive.log_prob(frame.assign(z=0.0)), expected)
    with pytest.raises(DataError, match="no column 'y' in the data"):
        predictive.log_prob(frame[["x"]])


def test_a_column_may_be_called_group():
    frame = pd.DataFrame({"group": [1.0, 2.0, 4.0], "x": [3.0, 5.0, 9.0]})
    learned = tb.fit_distribution(frame, tb.Gaussian(), group=["a", "b", "b"])
    np.testing.assert_array_equal(learned.estimate("mle").mean, [[1, 3], [3, 7]])
    assert learned.groups == ("a", "b")
    assert (learned - learned).groups == ()


def test_sparse_and_dense_learn_alike():
    dense = np.array([[1, 0, 2], [0, 3, 0], [1, 1, 0]])
    for family, block in ((tb.Multinomial(), dense), (tb.Poisson(), dense), (tb.Bernoulli(), dense > 0)):
        few = tb.fit_distribution(sparse.csr_array(block.astype(float)), family, group=[0, 1, 1])
        many = tb.fit_distribution(block, family, group=[0, 1, 1])
        for estimate in ("mle", "bayes", "map"):
            np.testing.assert_allclose(few.estimate(estimate), many.estimate(estimate), rtol=1e-14)
        np.testing.assert_allclose(few.log_evidence(), many.log_evidence(), rtol=1e-13)
        for rows in (block, sparse.csr_array(block.astype(float))):
            np.testing.assert_allclose(few.predictive().log_prob(rows), many.predictive().log_prob(block), rtol=1e-13)
        with pytest.raises(DataError, match=r"shape \(3, 2\); expected \(rows, 3\)"):
            few.predictive().log_prob(block[:, :2])


def test_levels_and_probabilities_by_label():
    letters = tb.fit_distribution(["b", "a", "b"], tb.Categorical())
    assert letters.levels == ("b", "a")
    assert letters.estimate("mle") == pytest.approx({"b": 2 / 3, "a": 1 / 3})
    np.testing.assert_allclose(np.exp(letters.predictive().log_prob(["a", "b"])), [2 / 5, 3 / 5])
    assert np.exp(letters.predictive().log_prob("a")) == pytest.approx(2 / 5)
    numbers = tb.fit_distribution([7, 7, -2], tb.Categorical())
    assert numbers.estimate("mle") == pytest.approx({-2: 1 / 3, 7: 2 / 3})
    yes = tb.fit_distribution([True, False, True], tb.Categorical())
    assert yes.estimate("mle") == pytest.approx({False: 1 / 3, True: 2 / 3})
    declared = tb.fit_distribution(["a"], tb.Categorical(("a", "b")))
    assert declared.estimate("mle") == {"a": 1.0, "b": 0.0}
    assert declared.estimate("bayes") == pytest.approx({"a": 2 / 3, "b": 1 / 3})
    # any order, and levels left out of a dictionary have probability 0
    assert letters.log_likelihood({"a": 0.25, "b": 0.75}) == pytest.approx(np.log(0.25) + 2 * np.log(0.75))
    assert letters.log_likelihood({"b": 1.0}) == -np.inf


def test_samples_are_labels():
    letters = tb.fit_distribution(["u", "v"], tb.Categorical())
    assert set(letters.predictive().sample(40, random_state=0)) == {"u", "v"}
    mixed = (
        tb.fit_distribution(pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}), tb.Categorical())
        .predictive()
        .sample(40, random_state=0)
    )
    assert set(mixed[:, 0]) == {1, 2}
    assert set(mixed[:, 1]) == {"x", "y"}
    grouped = tb.fit_distribution(["u", "v"], tb.Categorical(), group=[0, 1]).predictive().sample(5, random_state=0)
    assert grouped.shape == (5, 2)


# ---- adding and forgetting ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("family", "values"), FAMILIES + ROW_FAMILIES)
def test_adding_and_forgetting(family, values):
    group = np.array(["x", "y", "x", "z", "y", "x"])
    whole = tb.fit_distribution(values, family, group=group)
    first, rest = (
        tb.fit_distribution(values[:2], family, group=group[:2]),
        tb.fit_distribution(values[2:], family, group=group[2:]),
    )
    assert (first + rest).tally.isclose(whole.tally)
    assert (rest + first).tally.isclose(whole.tally)
    assert sum([first, rest]).tally.isclose(whole.tally)
    assert (whole - rest).tally.isclose(first.tally)
    assert (whole - rest).groups == first.groups
    assert (whole - rest).levels == first.levels


def test_forgetting_what_was_not_learned_changes_nothing():
    coin = tb.fit_distribution([1, 1, 0], tb.Bernoulli())
    before = coin.estimate("mle")
    with pytest.raises(StatisticsError, match=r"would have failures -1 \(1 counted, 2 to remove\)"):
        coin - tb.fit_distribution([0, 0], tb.Bernoulli())
    with pytest.raises(StatisticsError, match=r"group 'b'.*would have"):
        tb.fit_distribution([1, 0], tb.Bernoulli(), group=["a", "a"]) - tb.fit_distribution(
            [1], tb.Bernoulli(), group=["b"]
        )
    with pytest.raises(StatisticsError, match="cannot forget"):
        tb.fit_distribution(["a", "b"], tb.Categorical()) - tb.fit_distribution(["c"], tb.Categorical())
    with pytest.raises(StatisticsError, match="scatter"):
        tb.fit_distribution([1.0, 2.0, 3.0], tb.Gaussian()) - tb.fit_distribution([50.0, 70.0], tb.Gaussian())
    assert coin.estimate("mle") == before
    assert coin == tb.fit_distribution([1, 1, 0], tb.Bernoulli())


def test_only_like_adds_to_like():
    with pytest.raises(StatisticsError, match="families differ"):
        tb.fit_distribution([1], tb.Bernoulli()) + tb.fit_distribution([1], tb.Poisson())
    with pytest.raises(StatisticsError, match="families differ"):
        tb.fit_distribution([1], tb.Binomial(2)) + tb.fit_distribution([1], tb.Binomial(3))
    with pytest.raises(StatisticsError):
        tb.fit_distribution([1], tb.Bernoulli()) + tb.fit_distribution([1], tb.Bernoulli(), group=["a"])
    with pytest.raises(LabelError, match="expected one kind"):
        tb.fit_distribution(["a"], tb.Categorical()) + tb.fit_distribution([1], tb.Categorical())
    with pytest.raises(TypeError):
        COIN + 3
    with pytest.raises(TypeError):
        COIN - "x"


def test_repr_tells_the_estimates():
    assert repr(COIN) == "FittedDistribution: Bernoulli(), weight 2\n  mle    1\n  bayes  0.75"
    assert "none: the 'mle' estimate of the values is undefined" in repr(tb.fit_distribution([], tb.Gaussian()))
    assert "2 groups" in repr(tb.fit_distribution([1.0, 2.0, 4.0], tb.Gaussian(), group=[0, 0, 1]))


# ---- bad input ------------------------------------------------------------------------------------------------------

BAD_VALUES = [
    (tb.Gaussian(), [1.0, np.inf], DataError, r"found inf in row 1, column 'value'; expected a finite number"),
    (tb.Gaussian(), [-np.inf], DataError, r"found -inf in row 0"),
    (tb.Gaussian(), [[1.0, 2.0], [3.0, np.inf]], DataError, r"found inf in row 1, column 1"),
    (tb.MultivariateGaussian(), [[1.0, np.inf]], DataError, r"found inf in row 0, column 1"),
    (tb.MultivariateGaussian(), [[1.0, np.nan]], DataError, r"missing cells cannot be counted"),
    (tb.Gaussian(), ["a", "b"], DataError, r"partly 'a' \(str\); expected numbers"),
    (tb.Poisson(), [3, -1], DataError, r"found -1 in row 1.*whole number of at least 0"),
    (tb.Poisson(), [0.5], DataError, r"found 0.5 in row 0"),
    (tb.Poisson(), [np.inf], DataError, r"found inf"),
    (tb.Bernoulli(), [0, 2], DataError, r"found 2 in row 1.*expected 0 or 1"),
    (tb.Bernoulli(), [0.5], DataError, r"found 0.5"),
    (tb.Bernoulli(), [-1], DataError, r"found -1"),
    (tb.Binomial(3), [1, 4], DataError, r"found 4 in row 1.*from 0 to 3"),
    (tb.Binomial(3), [-1], DataError, r"found -1"),
    (tb.Binomial(3), [1.5], DataError, r"found 1.5"),
    (tb.Multinomial(), [[1, -2]], DataError, r"found -2 in row 0, column 1"),
    (tb.Multinomial(), [[1, np.nan]], DataError, r"missing cells are not allowed"),
    (tb.Multinomial(), [[1, np.inf]], DataError, r"found inf"),
    (tb.Multinomial(), [1, 2], DataError, r"shape \(2,\); expected \(rows, columns\)"),
    (tb.MultivariateGaussian(), [1.0, 2.0], DataError, r"shape \(2,\); expected \(rows, columns\)"),
    (tb.Gaussian(), np.zeros((2, 2, 2)), DataError, r"shape \(2, 2, 2\); expected"),
    (tb.Gaussian(), [[1.0, 2.0], [3.0]], DataError, r"ragged"),
    (tb.Gaussian(), 3.0, DataError, r"expected rows of values"),
    (tb.Gaussian(), "abc", DataError, r"(?s)there is no file 'abc'.*list\('abc'\)"),
    (tb.Categorical(), [1, 0.5], LabelError, r"found 0.5 \(float\) as a level.*whole numbers, strings or booleans"),
    (tb.Categorical(), [1, "a"], LabelError, r"expected one kind"),
    (tb.Categorical(), [np.inf], LabelError, r"found inf"),
    (tb.Categorical(("a", "b")), ["a", "c"], LabelError, r"level 'c'.*not among the declared levels"),
    (tb.Categorical(("a", "a")), ["a"], LabelError, r"declared twice"),
]  # fmt: skip


@pytest.mark.parametrize(("family", "values", "error", "message"), BAD_VALUES)
def test_bad_values(family, values, error, message):
    with pytest.raises(error, match=message):
        tb.fit_distribution(values, family)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"weight": [1, -1]}, r"weight is -1.0 in row 1; expected 0, or finite numbers from 1e-150 to 1e150"),
        ({"weight": [1, np.nan]}, r"weight is nan in row 1"),
        ({"weight": [np.inf, 1]}, r"weight is inf in row 0"),
        ({"weight": [1, 2, 3]}, r"weight has shape \(3,\); expected \(2,\)"),
        ({"weight": 2.0}, r"weight has shape \(\); expected \(2,\)"),
        ({"weight": [[1], [2]]}, r"weight has shape \(2, 1\)"),
        ({"weight": ["a", "b"]}, r"weight is 'a' in row 0; expected finite numbers"),
        ({"group": ["a", "b", "c"]}, r"different numbers of rows"),
        ({"group": [[0.5, -0.5], [1, 0]]}, r"weight is -0.5 in row 0"),
        ({"group": [[0.5, np.nan], [1, 0]]}, r"weight is nan in row 0"),
        ({"group": [[0.5, 0.5]]}, r"different numbers of rows"),
        ({"group": [["a", "b"], ["a", "b"]]}, r"expected numbers"),
        ({"group": [0.5, 1.0]}, r"found 0.5 \(float\) as a level of column 'group'"),
    ],
)
def test_bad_weights_and_groups(arguments, message):
    with pytest.raises(TallybayesError, match=message):
        tb.fit_distribution([1, 0], tb.Bernoulli(), **arguments)


def test_what_is_no_family():
    for wrong in ("gaussian", tb.Gaussian, None, tb.Beta(1, 1)):
        with pytest.raises(DataError, match=r"expected a family such as"):
            tb.fit_distribution([1.0], wrong)


@pytest.mark.parametrize("family", [tb.Bernoulli(), tb.Gaussian(), tb.Poisson(), tb.Binomial(3), tb.Categorical()])
def test_no_data(family):
    for values in ([], np.zeros(0), [None, None] if not isinstance(family, tb.Categorical) else []):
        empty = tb.fit_distribution(values, family)
        for estimate in ("mle", "unbiased"):
            with pytest.raises(DataError, match=r"nothing was counted there.\n    Fit at least one row"):
                empty.estimate(estimate)


def test_no_data_in_one_group():
    soft = tb.fit_distribution([1, 0], tb.Bernoulli(), group=[[1, 0], [1, 0]])
    with pytest.raises(DataError, match="of group 1 is undefined: nothing was counted"):
        soft.estimate("mle")
    np.testing.assert_array_equal(soft.estimate("bayes"), [0.5, 0.5])


def test_no_data_leave_the_prior():
    assert tb.fit_distribution([], tb.Bernoulli()).estimate() == 0.5
    assert tb.fit_distribution([], tb.Bernoulli()).posterior(tb.Beta(2, 3)) == tb.Beta(2, 3)
    assert tb.fit_distribution([], tb.Categorical(("a", "b", "c"))).estimate() == pytest.approx(
        dict.fromkeys("abc", 1 / 3)
    )
    prior = tb.NormalInverseGamma(1, 2, 3, 4)
    assert tb.fit_distribution([], tb.Gaussian()).posterior(prior) == prior
    assert tb.fit_distribution([], tb.Gaussian()).log_evidence(prior) == 0
    assert tb.fit_distribution([], tb.Categorical()).log_evidence() == 0


@pytest.mark.parametrize(
    ("prior", "message"),
    [
        (tb.Gamma(1, 1), r"the prior of Bernoulli\(\) is Gamma\(1, 1\); expected a Beta, or None"),
        (tb.Dirichlet(1), r"expected a Beta"),
        ("uniform", r"is 'uniform'; expected a Beta"),
        ([1.0], r"expected a Beta"),
        (-1.0, r"prior is -1.0; expected a positive, finite number \(pseudo-counts per level\)"),
        (tb.Beta([1, 2], 1), r"shape \(2,\), which do not broadcast to the statistics' \(1,\)"),
    ],
)
def test_bad_priors(prior, message):
    for ask in (
        COIN.posterior,
        COIN.predictive,
        COIN.log_evidence,
        COIN.description_length,
        lambda p: COIN.estimate("map", prior=p),
    ):
        with pytest.raises(PriorError, match=message):
            ask(prior)
    assert COIN.estimate("map", prior=tb.Beta(2, 2)) == 0.75


def test_unknown_estimates():
    with pytest.raises(EstimateError, match=r"estimate is 'ml'; expected 'mle', 'unbiased', 'map' or 'bayes'"):
        COIN.estimate("ml")


@pytest.mark.parametrize(
    ("learned", "value", "message"),
    [
        (COIN, 2, r"found 2.0 in row 0, column 'value'; expected 0 or 1"),
        (COIN, np.inf, r"found inf"),
        (COIN, 0.5, r"found 0.5"),
        (tb.fit_distribution([1, 2], tb.Poisson()), -1, r"found -1.0.*whole number"),
        (tb.fit_distribution([1, 2], tb.Poisson()), np.inf, r"found inf"),
        (tb.fit_distribution([1, 2], tb.Binomial(2)), 3, r"found 3.0.*from 0 to 2"),
        (tb.fit_distribution([1.0, 2.0], tb.Gaussian()), np.inf, r"found inf.*finite"),
        (tb.fit_distribution([1.0, 2.0], tb.Gaussian()), "a", r"expected numbers"),
        (
            tb.fit_distribution(["a", "b"], tb.Categorical()),
            "c",
            r"level 'c' of column 'value' was never seen.*known: 'a', 'b'",
        ),
    ],
)
def test_bad_rows_to_predict(learned, value, message):
    with pytest.raises(TallybayesError, match=message):
        learned.predictive().log_prob([value])


def test_rows_of_another_width():
    block = tb.fit_distribution([[1.0, 2.0], [3.0, 5.0]], tb.Gaussian())
    for rows in ([[1.0]], [[1.0, 2.0, 3.0]], [1.0, 2.0]):
        with pytest.raises(DataError, match=r"expected \(rows, 2\)"):
            block.predictive().log_prob(rows)
    letters = tb.fit_distribution([["a", "x"], ["b", "y"]], tb.Categorical())
    with pytest.raises(DataError, match=r"expected \(rows, 2\)"):
        letters.predictive().log_prob([["a"]])


def test_input_is_not_touched():
    values, weight, group = VALUES.copy(), np.ones(6), np.eye(6)[:, :3].copy()
    for array in (values, weight, group):
        array.setflags(write=False)
    learned = tb.fit_distribution(values, tb.Gaussian(), weight=weight)
    tb.fit_distribution(values, tb.Gaussian(), group=group)
    with pytest.raises(ValueError, match="read-only"):
        learned.posterior().location[...] = 0


# ---- Counts instead of values, labels of a coin, limits of priors ----------------------------------------------------


def test_counts_are_values_that_occurred_so_often():
    coin = tb.fit_distribution(counts={"H": 55, "T": 45}, family=tb.Bernoulli(success="H"))
    assert coin == tb.fit_distribution(["H"] * 55 + ["T"] * 45, tb.Bernoulli(success="H"))
    assert coin.posterior(tb.Beta(2, 2)) == tb.Beta(57, 47)
    assert np.exp(coin.predictive(tb.Beta(2, 2)).log_prob("H")) == pytest.approx(57 / 104, rel=1e-12)
    assert tb.fit_distribution(counts={True: 3, False: 1}, family=tb.Bernoulli()).estimate("mle") == 0.75
    assert tb.fit_distribution(counts={0: 3, 1: 2, 5: 1}, family=tb.Poisson()) == tb.fit_distribution(
        [0, 0, 0, 1, 1, 5], tb.Poisson()
    )
    assert tb.fit_distribution(counts={1.0: 2, 3.0: 1}, family=tb.Gaussian()).isclose(
        tb.fit_distribution([1.0, 1.0, 3.0], tb.Gaussian())
    )
    assert tb.fit_distribution(counts={55: 1}, family=tb.Binomial(100)) == tb.fit_distribution([55], tb.Binomial(100))
    assert tb.fit_distribution(counts={"a": 0.5, "b": 1.5}, family=tb.Categorical()).estimate("mle") == {
        "a": 0.25,
        "b": 0.75,
    }
    rows = tb.fit_distribution(counts={(0.0, 1.0): 2, (2.0, 5.0): 1}, family=tb.MultivariateGaussian())
    assert rows.isclose(tb.fit_distribution([[0.0, 1.0], [0.0, 1.0], [2.0, 5.0]], tb.MultivariateGaussian()))


def test_counts_of_series_words_and_groups():
    counted = pd.Series(list("HHT")).value_counts()
    assert tb.fit_distribution(counts=counted, family=tb.Bernoulli(success="H")).estimate("mle") == pytest.approx(2 / 3)
    words = tb.fit_distribution(counts={"win": 3, "money": 2, "me": 0}, family=tb.Multinomial())
    np.testing.assert_allclose(words.estimate("mle"), [0.6, 0.4, 0.0])
    assert words == tb.fit_distribution({"win": [3], "money": [2], "me": [0]}, tb.Multinomial())
    coins = tb.fit_distribution(
        counts={"old": {"H": 3, "T": 1}, "new": {"H": 0, "T": 2}}, family=tb.Bernoulli(success="H")
    )
    assert dict(zip(coins.groups, coins.estimate("mle"), strict=True)) == {"old": 0.75, "new": 0.0}


def test_what_occurred_0_times_is_a_level():
    learned = tb.fit_distribution(counts={"a": 2, "b": 1, "c": 0}, family=tb.Categorical())
    assert learned.estimate("mle") == {"a": pytest.approx(2 / 3), "b": pytest.approx(1 / 3), "c": 0.0}
    assert learned.estimate("bayes", prior=1)["c"] == pytest.approx(1 / 6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"counts": {"H": -1}}, "counts has -1 for 'H'; expected a number of at least 0"),
        ({"counts": {"H": "many"}}, "counts has 'many' for 'H'"),
        ({"counts": {"H": True}}, "counts has True for 'H'"),
        ({"counts": {"H": np.nan}}, "counts has nan for 'H'"),
        ({"counts": [55, 45]}, "expected a mapping from value to its number of occurrences"),
        ({"counts": {"H": 1}, "weight": [1]}, "counts is given together with values"),
        ({"counts": {"H": 1}, "values": ["H"]}, "counts is given together with values"),
        ({}, "or how often each occurred"),
    ],
)
def test_counts_that_are_none(options, message):
    with pytest.raises(DataError, match=message):
        tb.fit_distribution(family=tb.Bernoulli(success="H"), **options)


def test_a_coin_has_labels():
    coin = tb.fit_distribution(["T", "T", None, "T"], tb.Bernoulli(success="H"))
    assert (coin.estimate("mle"), float(coin.statistics.weight[0])) == (0.0, 3.0)
    assert repr(coin.family) == "Bernoulli(success='H')"
    assert tb.fit_distribution([True, False, True], tb.Bernoulli(success=False)).estimate("mle") == pytest.approx(1 / 3)
    np.testing.assert_allclose(
        tb.fit_distribution({"a": ["H", "T"], "b": ["H", "H"]}, tb.Bernoulli(success="H")).estimate("mle"), [0.5, 1.0]
    )
    with pytest.raises(StatisticsError, match="families differ"):
        _ = coin + tb.fit_distribution(["H"], tb.Bernoulli(success="T"))
    with pytest.raises(DataError, match=r"which is for tb\.fit_distribution"):
        tb.NaiveBayes(tb.Bernoulli(success="H")).fit({"x": ["H", "T"]}, [0, 1])
    with pytest.raises(DataError, match=r"which is for tb\.fit_distribution"):
        tb.BayesianNetwork({"x": []}, columns={"x": tb.Bernoulli(success=0)}).fit({"x": [0, 1]})
    with pytest.raises(DataError, match="success of Binomial"):
        tb.Binomial(3, success="H")
    with pytest.raises(DataError, match=r"Bernoulli\(success=\.\.\.\)"):
        tb.fit_distribution(["H", "T"], tb.Bernoulli())


def test_the_deviation_stands_beside_the_variance():
    learned = tb.fit_distribution([1.0, 2.0, 6.0], tb.Gaussian())
    assert "mean 3, variance 4.66667, std 2.16025" in repr(learned)
    assert learned.estimate("mle").std == pytest.approx(np.sqrt(14 / 3), rel=1e-15)
    rows = tb.fit_distribution([[0.0, 1.0], [2.0, 5.0]], tb.MultivariateGaussian()).estimate("mle")
    np.testing.assert_allclose(rows.std, [1.0, 2.0])


def test_limits_of_priors_where_the_posterior_is_a_distribution():
    coin = tb.fit_distribution([1, 1, 0], tb.Bernoulli())
    assert coin.estimate("bayes", prior=tb.Beta(0, 0)) == pytest.approx(2 / 3, rel=1e-15)
    assert coin.posterior(tb.Beta(0, 0)) == tb.Beta(2, 1)
    labels = tb.fit_distribution(list("aabc"), tb.Categorical())
    assert labels.estimate("bayes", prior=tb.Dirichlet(0)) == {"a": 0.5, "b": 0.25, "c": 0.25}
    for learned, prior in ((coin, tb.Beta(0, 0)), (labels, tb.Dirichlet(0))):
        with pytest.raises(PriorError, match="is improper, a limit of distributions: it has no log_evidence"):
            learned.log_evidence(prior)
        with pytest.raises(PriorError, match="is improper"):
            learned.description_length(prior)
    with pytest.raises(PriorError, match="is improper"):  # no failure was seen
        tb.fit_distribution([1, 1], tb.Bernoulli()).estimate("bayes", prior=tb.Beta(0, 0))
    with pytest.raises(PriorError, match=r"prior has Dirichlet\(0\), which is improper"):
        tb.NaiveBayes(prior=tb.Dirichlet(0)).fit([["a"], ["b"]], [0, 1])


def test_a_posterior_without_a_mode_has_no_map():
    with pytest.raises(PriorError, match="has no mode"):
        tb.fit_distribution([], tb.Bernoulli()).estimate("map", prior=tb.Beta(0.5, 0.5))
    assert tb.fit_distribution([1, 1, 1, 0, 0], tb.Bernoulli()).estimate("map", prior=tb.Beta(0.5, 0.5)) == 0.625
