"""The laws serve families that others write, and notice the ones that break them."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import gammaln

import tallybayes as tb
from tallybayes import testing
from tallybayes.families.family import Family
from tallybayes.families.protocols.cell_checks import out_of_support
from tallybayes.families.protocols.distribution_functions import cdf
from tallybayes.families.protocols.leave_one_out import leave_one_out_log_prob
from tallybayes.families.protocols.scoring_forms import log_prob_form
from tallybayes.testing import strategies
from tests.laws.catalog import FAMILIES


@dataclass(frozen=True, eq=False, repr=False)
class Exponential(Family):
    """Waiting times: p(x) = λ e^(−λx). Events are the total, the time waited for them the weight."""

    conjugate_prior = tb.Gamma
    allowed_values: ClassVar[str] = "a time of at least 0 (or missing)"

    def collect(self, block, group=None, n_groups=1, weight=None, *, like=None):
        x = np.stack(block, axis=1) if isinstance(block, list) else block
        weight = np.ones(len(x)) if weight is None else weight
        codes = np.zeros(len(x), dtype=int) if group is None else group
        share = weight if weight.ndim == 2 else weight[:, None] * (codes[:, None] == np.arange(n_groups))
        known = ~np.isnan(x)
        return tb.Totals(share.T @ np.where(known, x, 0.0), share.T @ known.astype(float))

    def maximum_likelihood(self, statistics):
        return statistics.total / statistics.weight

    def default_prior(self, statistics, estimate):
        return tb.Gamma(2.0, 1.0)

    def row_weight(self, statistics):
        return statistics.total

    def mean(self, parameters):
        return 1 / super().mean(parameters)

    def log_likelihood(self, parameters, statistics):
        return statistics.total * np.log(parameters) - parameters * statistics.weight

    def log_prob(self, parameters, x):
        return np.where(np.isnan(x), 0.0, np.log(parameters) - parameters * x)

    def sample(self, parameters, n, rng):
        return rng.exponential(1 / parameters, (n, *parameters.shape))


def waiting_times(rng, n):
    times = rng.exponential(2.0, (n, 2))
    times[rng.random((n, 2)) < 0.1] = np.nan
    return times


def test_a_family_of_ones_own_keeps_the_laws():
    testing.check_family(Exponential(), waiting_times, parameters=np.array([0.5, 3.0]))


@given(
    strategies.rows(Exponential(), elements=st.sampled_from([0.5, 1.0, 3.25, 1e-3])), st.randoms(use_true_random=False)
)
def test_strategies_draw_rows_for_it(rows, random):
    order = list(range(len(rows)))
    random.shuffle(order)
    testing.check_order(rows, order)


def test_its_evidence_is_the_integral():
    times = np.array([0.3, 2.0, 0.7])
    found = tb.fit_distribution(times, Exponential()).log_evidence(tb.Gamma(2.0, 1.5))
    # ∫ λ^n e^(−λΣx) Gamma(λ; a, b) dλ = Γ(a + n) / Γ(a) · b^a / (b + Σx)^(a + n)
    expected = gammaln(5.0) - gammaln(2.0) + 2 * np.log(1.5) - 5 * np.log(1.5 + times.sum())
    assert found == pytest.approx(expected, rel=1e-12)


class IgnoresWeights(Exponential):
    def collect(self, block, group=None, n_groups=1, weight=None, *, like=None):
        soft = weight is not None and weight.ndim == 2
        return super().collect(block, group, n_groups, weight if soft else None)


class Averages(Exponential):
    """Keeps means where sums belong."""

    def collect(self, block, group=None, n_groups=1, weight=None, *, like=None):
        sums = super().collect(block, group, n_groups, weight)
        return tb.Totals(sums.weight / np.maximum(sums.total, 1.0), np.minimum(sums.total, 1.0))


class LooksAtTheFirstRow(Exponential):
    def collect(self, block, group=None, n_groups=1, weight=None, *, like=None):
        sums = super().collect(block, group, n_groups, weight)
        first = np.nan_to_num(block[0][:1]).sum() if isinstance(block, list) and len(block[0]) else 0.0
        return tb.Totals(sums.weight * (1.0 + first), sums.total)


class LooksAtTheNumberOfGroups(Exponential):
    def collect(self, block, group=None, n_groups=1, weight=None, *, like=None):
        sums = super().collect(block, group, n_groups, weight)
        return tb.Totals(sums.weight, sums.total * n_groups)


class SamplesTooWidely(Exponential):
    def sample(self, parameters, n, rng):
        return 1.1 * super().sample(parameters, n, rng)


class ExpectsItsRate(Exponential):
    def mean(self, parameters):
        return 1 / super().mean(parameters)


class Rounds(Exponential):
    def collect(self, block, group=None, n_groups=1, weight=None, *, like=None):
        sums = super().collect(block, group, n_groups, weight)
        return tb.Totals(sums.weight.astype(np.float32), sums.total)


@pytest.mark.parametrize(
    ("family", "law"),
    [
        (IgnoresWeights(), "weight|one-hot"),
        (Averages(), "split"),
        (LooksAtTheFirstRow(), "split|permutation"),
        (LooksAtTheNumberOfGroups(), "split"),
        (SamplesTooWidely(), "do not look like"),
        (ExpectsItsRate(), "have the mean"),
        (Rounds(), "split|permutation"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Family) else value,
)
def test_a_family_that_breaks_a_law_is_caught(family, law):
    with pytest.raises(AssertionError, match=law):
        testing.check_family(family, waiting_times, parameters=np.array([0.5, 3.0]))


DRAWS = {
    tb.Bernoulli: lambda rng, n: rng.integers(0, 2, (n, 2)),
    tb.Binomial: lambda rng, n: rng.integers(0, 8, n),
    tb.Poisson: lambda rng, n: rng.poisson(3.0, (n, 3)),
    tb.Multinomial: lambda rng, n: rng.poisson(1.0, (n, 4)),
    tb.DirichletMultinomial: lambda rng, n: rng.poisson(1.0, (n, 4)),
}


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_every_family_passes_the_check_that_others_use(family):
    if isinstance(family, tb.Categorical):
        levels = np.array(family.levels or ["x", "y", "z"], dtype=object)
        draw = lambda rng, n: {"first": rng.choice(levels, n), "second": rng.choice(levels[:2], n)}  # noqa: E731
    else:
        draw = DRAWS.get(type(family), lambda rng, n: rng.normal(1e3, 2.0, (n, 2)))
    testing.check_family(family, draw, n_examples=3)


def test_a_belief_that_breaks_the_chain_rule_is_caught():
    class Forgetful(tb.Beta):
        def update(self, statistics):
            return Forgetful(*(getattr(super(Forgetful, self).update(statistics), n) for n in ("beta", "alpha")))

    with pytest.raises(AssertionError, match="update"):
        testing.check_posterior(Forgetful(1.0, 2.0), tb.Totals([3.0], [1.0]), tb.Totals([2.0], [2.0]))


def test_strategies_say_what_they_need(monkeypatch):
    import importlib
    import sys

    monkeypatch.setitem(sys.modules, "hypothesis", None)
    monkeypatch.delitem(sys.modules, "tallybayes.testing.strategies")
    with pytest.raises(ImportError, match="pip install"):
        importlib.import_module("tallybayes.testing.strategies")


class WrongLikelihood(tb.Poisson):
    def log_likelihood(self, parameters, statistics):
        return 2 * super().log_likelihood(parameters, statistics)


class WrongForm(tb.Poisson):
    """Registers the form of other parameters."""


class WrongLeaveOneOut(tb.Poisson):
    """Registers the score of one half."""


class WrongDistribution(tb.Poisson):
    """Registers a distribution function without jumps."""


class WrongSupport(tb.Poisson):
    """Registers that no cell is valid."""


log_prob_form.register(WrongForm)(lambda family, parameters: log_prob_form(tb.Poisson(), 2 * parameters))
leave_one_out_log_prob.register(WrongLeaveOneOut)(lambda family, counted, rows: np.full((len(rows.group), 1), -0.7))
cdf.register(WrongDistribution)(lambda family, parameters, x: np.clip(x[:, None] / 9, 0.0, 1.0))
out_of_support.register(WrongSupport)(lambda family, x: np.ones(x.shape, dtype=bool))


@pytest.mark.parametrize(
    ("family", "law"),
    [
        (WrongLikelihood(), "Σ log_prob"),
        (WrongForm(), "scoring form"),
        (WrongLeaveOneOut(), "leave-one-out"),
        (WrongDistribution(), "cdf"),
        (WrongSupport(), "reject rows that it counts"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Family) else value,
)
def test_a_protocol_that_disagrees_is_caught(family, law):
    rows = np.array([[2.0, 0.0], [3.0, 1.0], [7.0, 1.0]])
    testing.check_protocols(tb.Poisson(), rows)
    with pytest.raises(AssertionError, match=law):
        testing.check_protocols(family, rows)
