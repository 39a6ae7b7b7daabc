"""Hypotheses: posteriors by hand, grids against conjugate posteriors, predictions and code lengths."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import tallybayes as tb
from tallybayes.errors import PriorError, TallybayesError

TOSSES = [1, 1, 1, 0]


def test_posterior_by_hand():
    prior = {"fair": Fraction(8, 10), "biased": Fraction(2, 10)}
    claims = {"fair": Fraction(1, 2), "biased": Fraction(9, 10)}
    joint = {name: prior[name] * claims[name] ** 3 * (1 - claims[name]) for name in prior}
    total = sum(joint.values())
    coins = tb.Hypotheses({name: float(p) for name, p in claims.items()}, {name: float(p) for name, p in prior.items()})
    data = tb.fit_distribution(TOSSES, tb.Bernoulli())
    posterior = data.posterior(coins)
    for name, weight in joint.items():
        assert posterior.probabilities[name] == pytest.approx(float(weight / total), rel=1e-13)
    assert data.log_evidence(coins) == pytest.approx(float(np.log(float(total))), rel=1e-13)
    mean = sum(weight * claims[name] for name, weight in joint.items()) / total
    assert posterior.mean() == pytest.approx(float(mean), rel=1e-13)
    # the averaged prediction of a head is the mean of θ, of a tail the rest
    log_prob = data.predictive(coins).log_prob([1, 0])
    np.testing.assert_allclose(np.exp(log_prob), [float(mean), float(1 - mean)], rtol=1e-13)
    assert posterior.log_prob(0.9) == pytest.approx(np.log(float(joint["biased"] / total)))
    assert posterior.log_prob(0.7) == -np.inf


def test_most_likely_and_most_probable_may_differ():
    coins = tb.Hypotheses({"fair": 0.5, "biased": 0.9}, prior={"fair": 0.95, "biased": 0.05})
    data = tb.fit_distribution([1, 1, 1], tb.Bernoulli())
    # by hand: .9³ > .5³, but .05 · .9³ = .03645 < .95 · .5³ = .11875
    assert coins.most_likely(data) == "biased"
    assert data.posterior(coins).best == "fair"
    assert data.posterior(coins).mode() == 0.5
    assert data.estimate("map", prior=coins) == pytest.approx(0.5)


def test_ties_go_to_the_first():
    assert tb.fit_distribution([1, 0], tb.Bernoulli()).posterior(tb.Hypotheses({"low": 0.3, "high": 0.7})).best == "low"


def test_grid_approaches_the_beta_posterior():
    grid = np.linspace(0, 1, 2001)
    belief = tb.Hypotheses.grid(grid, prior=lambda p: p * (1 - p))  # Beta(2, 2), not normalized
    data = tb.fit_distribution([1] * 7 + [0] * 3, tb.Bernoulli())
    posterior = data.posterior(belief)
    reference = stats.beta(9, 5)
    assert posterior.mean() == pytest.approx(reference.mean(), abs=1e-6)
    assert posterior.mode() == pytest.approx(8 / 12, abs=1 / 4000)
    low, high = posterior.interval(0.9)
    assert (low, high) == pytest.approx(reference.interval(0.9), abs=1 / 2000)
    weights = np.array(list(posterior.probabilities.values()))
    np.testing.assert_allclose(weights, reference.pdf(grid) / 2000, atol=1e-8)
    np.testing.assert_allclose(np.exp(data.predictive(belief).log_prob(1)), reference.mean(), atol=1e-6)


def test_every_form_of_prior():
    names = {"a": 0.2, "b": 0.5, "c": 0.8}
    expected = {"a": 0.1, "b": 0.6, "c": 0.3}
    forms = [expected, {"c": 3, "b": 6, "a": 1}, [0.1, 0.6, 0.3], (1, 6, 3), np.array([10, 60, 30.0])]
    forms.append(lambda p: {0.2: 1, 0.5: 6, 0.8: 3}[p])
    for prior in forms:
        assert tb.Hypotheses(names, prior).probabilities == pytest.approx(expected)
    assert tb.Hypotheses(names).probabilities == pytest.approx(dict.fromkeys(names, 1 / 3))


def test_no_data_leaves_the_prior():
    coins = tb.Hypotheses({"fair": 0.5, "biased": 0.9}, prior=[3, 1])
    assert tb.fit_distribution([], tb.Bernoulli()).posterior(coins).probabilities == pytest.approx(coins.probabilities)


def test_learning_in_two_steps_equals_one():
    coins = tb.Hypotheses({"fair": 0.5, "biased": 0.9}, prior=[3, 1])
    first, second = tb.fit_distribution([1, 1], tb.Bernoulli()), tb.fit_distribution([0, 1, 1], tb.Bernoulli())
    steps = second.posterior(first.posterior(coins)).probabilities
    assert steps == pytest.approx((first + second).posterior(coins).probabilities, rel=1e-13)


def test_hypotheses_of_prior_zero_stay_at_zero():
    coins = tb.Hypotheses({"fair": 0.5, "biased": 0.9, "two heads": 1.0}, prior=[0.5, 0.5, 0])
    posterior = tb.fit_distribution([1] * 30, tb.Bernoulli()).posterior(coins)
    assert posterior.probabilities["two heads"] == 0
    assert posterior.best == "biased"


def test_code_lengths_are_shortest_for_the_map_hypothesis():
    coins = tb.Hypotheses({"fair": 0.5, "biased": 0.9, "tails": 0.1}, prior=[0.6, 0.3, 0.1])
    for tosses in ([1, 1, 1], [1, 0], [0, 0, 0, 0], [1] * 9 + [0]):
        data = tb.fit_distribution(tosses, tb.Bernoulli())
        lengths = coins.code_lengths(data)
        assert min(lengths, key=lambda name: lengths[name].total) == data.posterior(coins).best
        for name, length in lengths.items():
            claim = coins.hypotheses[name]
            heads = sum(tosses)
            by_hand = -heads * np.log2(claim) - (len(tosses) - heads) * np.log2(1 - claim)
            assert length.data == pytest.approx(by_hand)
            assert length.model == pytest.approx(-np.log2(coins.probabilities[name]))
            assert length.total == pytest.approx(length.model + length.data)


def test_code_lengths_satisfy_krafts_inequality_with_equality():
    coins = tb.Hypotheses({"fair": 0.5, "biased": 0.9, "tails": 0.1}, prior=[0.6, 0.3, 0.1])
    sequences = [[i >> k & 1 for k in range(4)] for i in range(16)]
    lengths = [coins.code_lengths(tb.fit_distribution(tosses, tb.Bernoulli())) for tosses in sequences]
    assert sum(2 ** -lengths[0][name].model for name in coins.names) == pytest.approx(1)
    for name in coins.names:
        assert sum(2 ** -length[name].data for length in lengths) == pytest.approx(1)
    # one code for data and hypothesis together, and one by the evidence
    assert sum(2 ** -length[name].total for length in lengths for name in coins.names) == pytest.approx(1)
    evidences = [tb.fit_distribution(tosses, tb.Bernoulli()).log_evidence(coins) for tosses in sequences]
    assert np.exp(evidences).sum() == pytest.approx(1)


def test_bits_of_hypotheses():
    coins = tb.Hypotheses({"fair": 0.5, "biased": 0.9}, prior=[0.75, 0.25])
    data = tb.fit_distribution(TOSSES, tb.Bernoulli())
    shortest = min(coins.code_lengths(data).values(), key=lambda length: length.total)
    bits = data.description_length(coins)
    assert (bits.data, bits.model) == pytest.approx((shortest.data, shortest.model))
    assert bits.evidence == pytest.approx(-data.log_evidence(coins) / np.log(2))


def test_impossible_data():
    always = tb.Hypotheses({"heads": 1.0, "tails": 0.0})
    with pytest.raises(PriorError, match="impossible under every hypothesis"):
        tb.fit_distribution([1, 0], tb.Bernoulli()).posterior(always)
    assert tb.fit_distribution([1, 0], tb.Bernoulli()).log_evidence(always) == -np.inf
    posterior = tb.fit_distribution([1, 1], tb.Bernoulli()).posterior(always)
    assert posterior.probabilities == {"heads": 1.0, "tails": 0.0}
    np.testing.assert_array_equal(
        tb.fit_distribution([1], tb.Bernoulli()).predictive(always).log_prob([1, 0]), [0, -np.inf]
    )


def test_groups_are_judged_apart():
    coins = tb.Hypotheses({"fair": 0.5, "biased": 0.9}, prior=[0.7, 0.3])
    tosses, groups = [1, 1, 1, 0, 0, 1], ["x", "x", "x", "y", "y", "z"]
    together = tb.fit_distribution(tosses, tb.Bernoulli(), group=groups)
    posterior = together.posterior(coins)
    assert len(posterior.best) == 3
    for g, name in enumerate("xyz"):
        alone = tb.fit_distribution(
            [t for t, other in zip(tosses, groups, strict=True) if other == name], tb.Bernoulli()
        )
        for hypothesis in coins.names:
            assert posterior.probabilities[hypothesis][g] == pytest.approx(
                alone.posterior(coins).probabilities[hypothesis]
            )
        assert posterior.best[g] == alone.posterior(coins).best
        assert coins.most_likely(together)[g] == coins.most_likely(alone)
        assert together.log_evidence(coins)[g] == pytest.approx(alone.log_evidence(coins))
        assert coins.code_lengths(together)["fair"].data[g] == pytest.approx(coins.code_lengths(alone)["fair"].data)
        # as many rows as groups, more and fewer: rows and groups are never confused
        for rows in ([1, 0, 1], [1], [0, 1, 1, 0]):
            both = together.predictive(coins).log_prob(rows)
            assert both.shape == (len(rows), 3)
            np.testing.assert_allclose(both[:, g], alone.predictive(coins).log_prob(rows))


def test_groups_that_share_a_variance_are_judged_together():
    claims = tb.Hypotheses({"low": (0.0, 1.0), "high": (3.0, 2.0)})
    data = tb.fit_distribution([0.5, 2.0, 1.0, 4.0], tb.TiedGaussian(), group=["x", "x", "y", "y"])
    by_hand = [stats.norm.logpdf([0.5, 2, 1, 4], m, np.sqrt(v)).sum() for m, v in claims.hypotheses.values()]
    weights = np.exp(by_hand) / np.exp(by_hand).sum()
    assert list(data.posterior(claims).probabilities.values()) == pytest.approx(list(weights))
    predicted = data.predictive(claims).log_prob([1.0, 2.0, 3.0])
    by_hand = np.log(
        sum(w * stats.norm.pdf([1, 2, 3], m, np.sqrt(v)) for w, (m, v) in zip(weights, [(0, 1), (3, 2)], strict=True))
    )
    np.testing.assert_allclose(predicted, np.stack([by_hand, by_hand], axis=-1))


def test_parameters_of_every_kind_of_family():
    dice = tb.Hypotheses({"even": {"a": 0.5, "b": 0.5}, "odd": {"a": 0.9, "b": 0.1}})
    letters = tb.fit_distribution(["a", "a", "b"], tb.Categorical())
    joint = np.array([0.125, 0.081])
    assert list(letters.posterior(dice).probabilities.values()) == pytest.approx(list(joint / joint.sum()))
    assert np.exp(letters.predictive(dice).log_prob("b")) == pytest.approx((joint * [0.5, 0.1]).sum() / joint.sum())

    rates = tb.Hypotheses({"slow": 1.0, "fast": 5.0}, prior=[1, 3])
    counts = tb.fit_distribution([2, 4], tb.Poisson())
    joint = np.array([stats.poisson.pmf([2, 4], r).prod() for r in (1, 5)]) * [0.25, 0.75]
    assert list(counts.posterior(rates).probabilities.values()) == pytest.approx(list(joint / joint.sum()))
    assert np.exp(counts.log_evidence(rates)) == pytest.approx(joint.sum())

    shapes = tb.Hypotheses({"round": ([0, 0], np.eye(2)), "lean": ([0, 0], [[1, 0.9], [0.9, 1]])})
    rows = [[1.0, 1.2], [-0.5, -0.4]]
    joint = np.array(
        [np.exp(stats.multivariate_normal.logpdf(rows, m, c).sum()) for m, c in shapes.hypotheses.values()]
    )
    found = tb.fit_distribution(rows, tb.MultivariateGaussian()).posterior(shapes)
    assert list(found.probabilities.values()) == pytest.approx(list(joint / joint.sum()))

    mixes = tb.Hypotheses({"even": [0.5, 0.5], "odd": [0.9, 0.1]})
    joint = np.array([stats.multinomial.pmf([[2, 1], [1, 0]], [3, 1], p).prod() for p in mixes.hypotheses.values()])
    found = tb.fit_distribution([[2, 1], [1, 0]], tb.Multinomial()).posterior(mixes)
    assert list(found.probabilities.values()) == pytest.approx(list(joint / joint.sum()))


def test_several_columns_are_judged_together():
    claims = tb.Hypotheses({"alike": [0.5, 0.5], "apart": [0.9, 0.1]})
    data = tb.fit_distribution([[1, 0], [1, 1]], tb.Bernoulli())
    joint = np.array([0.5**4, (0.9**2) * (0.9 * 0.1)])
    assert list(data.posterior(claims).probabilities.values()) == pytest.approx(list(joint / joint.sum()))
    weights = joint / joint.sum()
    row = weights @ [0.25, 0.81]  # independent under each hypothesis, not on average
    assert np.exp(data.predictive(claims).log_prob([[1, 0]]).sum()) == pytest.approx(row)


def test_samples_follow_the_belief():
    coins = tb.Hypotheses({"fair": 0.5, "biased": 0.9}, prior=[0.7, 0.3])
    draws = np.array(coins.sample(4000, random_state=0))
    assert abs((draws == 0.5).mean() - 0.7) < 4 * np.sqrt(0.21 / 4000)
    assert coins.sample(random_state=0) in (0.5, 0.9)
    tosses = tb.fit_distribution([], tb.Bernoulli()).predictive(coins).sample(3000, random_state=1)
    chance = 0.7 * 0.5 + 0.3 * 0.9
    assert abs(tosses.mean() - chance) < 4 * np.sqrt(chance * (1 - chance) / 3000)


@pytest.mark.parametrize(
    ("hypotheses", "prior", "match"),
    [
        ({}, None, "expected a dict from names to parameters"),
        ([0.5, 0.9], None, "expected a dict from names to parameters"),
        ({"a": 0.5, "b": 0.9}, [1, 2, 3], "expected 2 numbers"),
        ({"a": 0.5, "b": 0.9}, [1, -1], "at least 0"),
        ({"a": 0.5, "b": 0.9}, [1, np.nan], "at least 0"),
        ({"a": 0.5, "b": 0.9}, [0, 0], "above 0"),
        ({"a": 0.5, "b": 0.9}, {"a": 1}, r"expected one weight for each of \['a', 'b'\]"),
        ({"a": 0.5, "b": 0.9}, {"a": 1, "c": 1}, "prior of Hypotheses is {.a.: 1, .c.: 1}"),
        ({"a": 0.5, "b": 0.9}, "uniform", "expected a dict, numbers or a function"),
        ({"a": 0.5, "b": 0.9}, lambda p: -p, "at least 0"),
    ],
)
def test_bad_hypotheses_are_refused(hypotheses, prior, match):
    with pytest.raises(PriorError, match=match):
        tb.Hypotheses(hypotheses, prior)


def test_questions_that_need_a_family_or_numbers():
    coins = tb.Hypotheses({"fair": 0.5, "biased": 0.9})
    with pytest.raises(PriorError, match="have no family"):
        coins.update(tb.Totals(weight=[1.0], total=[1.0]))
    with pytest.raises(PriorError, match="numbers only"):
        tb.Hypotheses({"low": (0.0, 1.0), "high": (3.0, 2.0)}).mean()
    grouped = tb.fit_distribution([1, 0], tb.Bernoulli(), group=["x", "y"]).posterior(coins)
    for question in ("mode", "interval", "sample"):
        with pytest.raises(TallybayesError, match="several groups"):
            getattr(grouped, question)()


def test_an_interval_is_of_single_numbers():
    one = tb.Hypotheses({"a": 0.2, "b": [0.5], "c": 0.9})
    assert tuple(np.ravel(one.interval(0.5))) == (0.2, 0.9)
    for value in ({"x": 0.5}, [0.2, 0.8]):
        with pytest.raises(PriorError, match="single numbers only"):
            tb.Hypotheses({"a": value, "b": value}).interval()


def test_shown_are_the_first_six():
    for n, text in ((6, "more"), (7, "… 1 more"), (9, "… 3 more")):
        shown = repr(tb.Hypotheses.grid(np.arange(n) / 6))
        assert (text in shown) == (n > 6)
        assert shown.count(":") == 6
    grouped = tb.fit_distribution([1, 0], tb.Bernoulli(), group=["x", "y"]).posterior(
        tb.Hypotheses({"a": 0.2, "b": 0.7})
    )
    assert repr(grouped) == "Hypotheses({'a', 'b'})"


def test_ends_of_an_interval_are_the_first_to_reach_their_share():
    three = tb.Hypotheses({"c": 0.9, "a": 0.1, "b": 0.5}, prior=[0.25, 0.25, 0.5])
    assert three.interval(0.5) == (0.1, 0.5)  # a quarter lies at 0.1, three quarters up to 0.5: reached exactly
    assert three.interval(0.4) == (0.5, 0.5)
    assert three.interval(0.99) == (0.1, 0.9)
    assert tb.Hypotheses({"only": 0.3}).interval() == (0.3, 0.3)


def test_several_that_claim_the_same_are_added_up():
    told = tb.Hypotheses({"a": 0.5, "b": 0.9, "c": 0.5}, prior=[0.2, 0.5, 0.3])
    assert told.log_prob(0.5) == pytest.approx(np.log(0.5))
    words = tb.Hypotheses({"a": {"x": 0.5, "y": 0.5}, "b": {"x": 0.9, "y": 0.1}}, prior=[0.2, 0.8])
    assert words.log_prob({"x": 0.9, "y": 0.1}) == pytest.approx(np.log(0.8))
    assert words.log_prob({"x": 0.8, "y": 0.2}) == -np.inf


def test_draws_in_several_axes_are_a_list_of_parameters():
    coins = tb.Hypotheses({"fair": 0.5, "biased": 0.9})
    drawn = coins.sample((2, 3), random_state=0)
    assert len(drawn) == 6
    assert set(drawn) <= {0.5, 0.9}
    assert isinstance(coins.sample(1, random_state=0), list)


def test_the_average_of_vectors_and_of_groups():
    mixes = tb.Hypotheses({"even": [0.5, 0.5], "odd": [0.9, 0.1]}, prior=[1, 3])
    np.testing.assert_allclose(mixes.mean(), [0.8, 0.2], rtol=1e-14)
    coins = tb.Hypotheses({"fair": 0.5, "biased": 0.9})
    grouped = tb.fit_distribution([1, 0], tb.Bernoulli(), group=["x", "y"]).posterior(coins)
    weights = np.array([[0.5, 0.9], [0.5, 0.1]])
    weights /= weights.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(np.ravel(grouped.mean()), weights @ [0.5, 0.9], rtol=1e-13)


def test_nearly_all_of_the_mass_lies_between_the_outermost():
    nearly_1 = float(np.nextafter(1.0, 0.0))
    for n in (2, 7, 9, 10):  # sevenths, added up, fall short of 1
        assert tb.Hypotheses.grid(np.arange(n) / 10).interval(nearly_1) == (0.0, (n - 1) / 10)


@pytest.mark.parametrize(
    ("family", "claims"),
    [
        (tb.Multinomial(), {"even": [0.5, 0.5], "odd": [0.9, 0.1]}),
        (tb.Bernoulli(), {"even": [0.5, 0.5], "odd": [0.9, 0.1]}),
        (tb.SphericalGaussian(), {"low": ([0.0, 1.0], [1.0, 1.0]), "high": ([3.0, 1.0], [2.0, 2.0])}),
    ],
    ids=str,
)
def test_groups_of_rows_are_predicted_as_if_they_were_alone(family, claims):
    rows, group = np.array([[1, 0], [0, 1], [1, 1], [1, 0], [0, 0]]), np.array([0, 1, 2, 0, 1])
    belief = tb.Hypotheses(claims)
    together = tb.fit_distribution(rows, family, group=group)
    found = np.asarray(together.predictive(belief).log_prob(rows[:2]))
    for place in range(3):
        alone = tb.fit_distribution(rows[group == place], family)
        expected = np.asarray(alone.predictive(belief).log_prob(rows[:2]))
        np.testing.assert_allclose(found[:, place].reshape(expected.shape), expected, rtol=1e-12)
        np.testing.assert_allclose(together.log_evidence(belief)[place], alone.log_evidence(belief), rtol=1e-12)


@pytest.mark.parametrize("group", [None, [0, 0, 1, 1, 1]], ids=["all rows", "by group"])
@pytest.mark.parametrize("width", [1, 2])
@pytest.mark.parametrize("family", [tb.Gaussian(), tb.TiedGaussian(), tb.MultivariateGaussian()], ids=repr)
def test_code_lengths_of_gaussian_hypotheses_agree_with_the_evidence(family, width, group):
    rows = np.random.default_rng(0).normal(size=(5, width))
    fitted = tb.fit_distribution(rows[:, 0] if width == 1 and family.columnwise else rows, family, group=group)
    spread = (lambda v: np.full(width, v)) if family.columnwise else (lambda v: v * np.eye(width))
    hypotheses = tb.Hypotheses({f"variance {v}": (np.zeros(width), spread(v)) for v in (1.0, 4.0)})
    lengths = hypotheses.code_lengths(fitted)
    evidence = np.logaddexp.reduce([-length.total * np.log(2) for length in lengths.values()], axis=0)
    np.testing.assert_allclose(evidence, fitted.log_evidence(hypotheses))
