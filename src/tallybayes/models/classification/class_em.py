"""What is not observed, expected: rows without a label, or with missing cells under a full covariance, by EM."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from tallybayes.data.table import Table
from tallybayes.distributions.dirichlet import Dirichlet
from tallybayes.errors import DataError
from tallybayes.estimation.em.em_loop import EMSummary
from tallybayes.estimation.em.em_objective import (
    EMObjective,
    parameters_from_model,
    varying_columns,
    with_constant_columns,
)
from tallybayes.estimation.em.soft_counts import (
    AssignNearest,
    SoftCounter,
    check_same_vocabulary,
    diagonal_moments_estimate,
    expand_text,
    rows_with_missing,
)
from tallybayes.estimation.scoring.bayes_rule import apply_bayes_rule
from tallybayes.estimation.scoring.factor_scorer import FactorScorer, undefined_parameters
from tallybayes.estimation.scoring.row_scorer import RowScorer
from tallybayes.families._shared.empirical_prior import is_data_dependent
from tallybayes.families.estimates import read_estimate
from tallybayes.models.classification.class_prior import log_class_prior
from tallybayes.statistics.counts import Counts
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Factor
from tallybayes.tally.schema import Schema
from tallybayes.tally.tally import Tally
from tallybayes.warnings import warn

_CELLS = 1 << 21  # of the shares of a block of rows: they are made, used and dropped block by block
Shares = Callable[[slice, Table], np.ndarray]


class ExpectedStatistics(NamedTuple):
    """What an E-step expects: the weight of every class, the statistics of every factor, and how unsure it is."""

    classes: np.ndarray
    statistics: list[Any]
    entropy: float = 0.0


class MStepResult(NamedTuple):
    """What an M-step finds: log p(class), and the parameters of every factor."""

    log_prior: np.ndarray
    scored: list[FactorScorer]


class ClassEM:
    """EM for one model and one table.

    Rows that are complete are counted once. The others are gone through at every step: each counts in every class as
    much as it is expected to be of it, with missing cells as the parameters of the class expect them.

    Parameters
    ----------
    model : Classifier or Mixture
        Its estimate, priors and EM settings. On the way it is given a tally, for the priors that need one.
    table : Table
        The features of rows with weight.
    codes : ndarray of int of shape (n,)
        The class of every row, −1 where there is no label.
    classes : Domain
    named : ndarray of bool of shape (classes,)
        Which of them have labeled rows; the others start from seeds.
    weight : ndarray of shape (n,), or None
    factors : list of Factor
        That of the class, then those of the features given the class.
    """

    def __init__(
        self,
        model: Any,
        table: Table,
        codes: np.ndarray,
        classes: Domain,
        named: np.ndarray,
        weight: np.ndarray | None,
        factors: list[Factor],
    ) -> None:
        self.model, self.classes, self.named, self.factors = model, classes, named, factors
        table, self.features, self.words = expand_text(table, factors[1:])
        self.n_classes = len(classes.levels)
        self.counter = SoftCounter(self.features, table, self.n_classes)
        weights = np.ones(table.n_rows) if weight is None else np.array(weight, dtype=float)
        weights[codes < 0] *= model.unlabeled_weight
        holed = rows_with_missing(table, self.features)
        self.unlabeled, self.holed = bool((codes < 0).any()), bool(holed.any())
        whole = (codes >= 0) & ~holed
        fixed, rest = np.flatnonzero(whole), np.flatnonzero(~whole)
        self.fixed = self._counted(table.rows(fixed), codes[fixed], weights[fixed])
        self.table = table if len(rest) == table.n_rows else table.rows(rest)
        self.codes, self.weights = codes[rest], weights[rest]
        self.hill = EMObjective(
            model, [model._factor_for_scoring(factor) for factor in self.features], float(weights.sum())
        )
        self.rows = table, codes, weights
        self.settled = False  # whether the priors are found
        self.start_log_prior = 0.0  # of the model that EM starts from
        self.measuring = False  # whether to find out how unsure the classes of the rows are
        self.weighted = bool((self.weights != 1).any())

    def run(self) -> tuple[Tally, EMSummary]:
        """Take turns: from the labeled rows or, where classes have none, from the best of several seeded starts."""
        ways = self.hill.warm_up_iterations if self.unlabeled else (1,)
        starts: list[Callable[[], Any]] = [partial(self._from_labels, n_steps) for n_steps in ways]
        if not self.named.all():
            # The priors are found from the first start and held for all, so it had better be the best one.
            rng = np.random.default_rng(self.model.random_state)
            seeds = self.counter.kmeans_assigners(*self.rows, self.model.n_init, rng)
            starts = [partial(self._from_seeds, nearest, n_steps) for nearest in seeds for n_steps in ways]
        if self.model._initial is not None:
            starts = [partial(self._from_model, self.model._initial)]
        belief = self.unlabeled and isinstance(self.model.class_prior, Dirichlet)
        best, climbed = self.hill.run_restarts(self, starts, has_prior=belief)
        self.measuring = True
        expected, _ = self.expect(best.parameters)
        log_likelihood, seen = climbed.log_likelihood, expected.classes > 0
        if not self.unlabeled:  # labels that are all known are no part of the climb
            log_likelihood += float(expected.classes[seen] @ best.parameters.log_prior[seen])
        return self._tally(expected), climbed._replace(entropy=expected.entropy, log_likelihood=log_likelihood)

    # ---- The steps ------------------------------------------------------------------------------------------------

    def maximize(self, expected: ExpectedStatistics | MStepResult) -> tuple[MStepResult, float]:
        """The M-step: the most probable parameters, and their log prior; those to start from are found."""
        if isinstance(expected, MStepResult):
            return expected, self.start_log_prior
        log_prior, density = self._maximize_classes(expected.classes)
        scored, density = self.hill.maximize(expected.statistics, [self.classes.levels] * len(self.features), density)
        for code, column in chain.from_iterable(map(undefined_parameters, scored)):
            if log_prior[code] > -np.inf:
                where = f"column {column!r} in class {self.classes.levels[code]!r}"
                raise DataError.no_data(where, self.model.estimate)
        return MStepResult(log_prior, scored), density

    def expect(self, found: MStepResult) -> tuple[ExpectedStatistics, float]:
        """The E-step: the statistics that the parameters expect, and the log likelihood of what was observed."""
        log_prior = found.log_prior if self.unlabeled else np.zeros(self.n_classes)
        here = self.fixed.classes > 0
        value = float(self.fixed.classes[here] @ log_prior[here])
        for scored, statistics in zip(found.scored, self.fixed.statistics, strict=True):
            used = varying_columns(statistics, scored.constant)
            if here.any() and used.n_columns:
                value += float(np.sum(scored.family.log_likelihood(scored.parameters, used)))
        wide = [
            with_constant_columns(scored, like) for scored, like in zip(found.scored, self.counter.like, strict=True)
        ]
        plan = RowScorer(
            wide, log_prior, [self.counter.level_domains(number) for number in range(len(wide))], "missing"
        )
        observed, entropy = [value], []

        def shares_of(part: slice, table: Table) -> np.ndarray:
            weights, codes = self.weights[part], self.codes[part]
            unknown = np.flatnonzero(codes < 0)
            shares: np.ndarray | None = None
            if len(unknown) == len(codes):  # none is labeled
                scores = plan.posterior(table, whole=True)
            else:
                joint, shares, known = plan.joint(table), self._labeled_shares(part), np.flatnonzero(codes >= 0)
                observed.append(float(weights[known] @ joint[known, codes[known]]))
                scores = apply_bayes_rule(joint[unknown], log_prior)
            weights = weights if shares is None else weights[unknown]
            observed.append(_dot(weights, scores.log_density))
            if self.measuring:
                surprise = np.maximum(scores.log_proba, -1e300)  # 0 · log 0 is 0
                entropy.append(_dot(weights, -(np.exp(scores.log_proba) * surprise).sum(axis=1)))
            soft = np.exp(scores.log_proba, out=scores.log_proba)
            if self.weighted:
                soft *= weights[:, None]
            if shares is None:
                return soft
            shares[unknown] = soft
            return shares

        expected = self._gathered(shares_of, wide)
        return expected._replace(entropy=expected.entropy + sum(entropy)), sum(observed)

    def _maximize_classes(self, weights: np.ndarray) -> tuple[np.ndarray, float]:
        """log p(class), and the log prior of it. One pseudo-row a class, where none is given, keeps each alive."""
        counts, belief = Counts(weights, (self.n_classes,)), self._class_prior_distribution()
        if belief is None:
            given = "frequency" if self.model.class_prior is None else self.model.class_prior
            return log_class_prior(given, self.classes.levels, counts, "map"), 0.0
        mode = belief.update(counts).mode_or_boundary()
        with np.errstate(divide="ignore"):
            return np.log(mode), self._at(belief, mode)

    def _class_prior_distribution(self) -> Dirichlet | None:
        """What is believed of the shares of classes, where they are climbed with the rest."""
        given = self.model.class_prior
        if not self.unlabeled or not _is_belief(given) or (given is None and not self.hill.has_prior):
            return None
        belief = Dirichlet(np.full(self.n_classes, 2.0)) if given is None else given
        return belief if given is None or read_estimate(self.model.estimate).takes_mode else belief.mode_matched()

    def _at(self, belief: Dirichlet, shares: np.ndarray) -> float:
        """The log density of shares of the classes."""
        nothing = Counts(np.zeros(self.n_classes), (self.n_classes,))
        return float(belief.update(nothing).log_prob(shares))

    # ---- The rows -------------------------------------------------------------------------------------------------

    def _gathered(self, shares_of: Shares, scored: list[FactorScorer] | None) -> ExpectedStatistics:
        """The statistics of all rows; with no parameters given, of their known cells alone."""
        total = self.fixed if scored is not None else self._known(self.fixed)
        step = max(1024, min(65536, _CELLS // self.n_classes))
        for start in range(0, self.table.n_rows, step):
            part = slice(start, start + step)
            table = self.table.rows(part)
            shares = shares_of(part, table)
            statistics, entropy = self.counter.count_soft(table, shares, scored)
            sums = [a + b for a, b in zip(total.statistics, statistics, strict=True)]
            total = ExpectedStatistics(total.classes + np.einsum("ij->j", shares), sums, total.entropy + entropy)
        return total

    def _known(self, expected: ExpectedStatistics) -> ExpectedStatistics:
        pairs = zip(self.features, expected.statistics, strict=True)
        return expected._replace(statistics=[factor.family.columnwise_statistics(s) for factor, s in pairs])

    def _labeled_shares(self, part: slice) -> np.ndarray:
        """All of a labeled row in its class; nothing of the others."""
        codes = self.codes[part]
        shares, known = np.zeros((len(codes), self.n_classes)), np.flatnonzero(codes >= 0)
        shares[known, codes[known]] = self.weights[part][known]
        return shares

    def _counted(self, table: Table, codes: np.ndarray, weights: np.ndarray) -> ExpectedStatistics:
        """The statistics of complete rows."""
        return ExpectedStatistics(
            np.bincount(codes, weights, self.n_classes), self.counter.count_hard(table, codes, weights)
        )

    def _tally(self, expected: ExpectedStatistics) -> Tally:
        target = str(self.factors[0].columns[0])
        classes = Counts(expected.classes, (self.n_classes,))
        domains = {**self.counter.domains, **self.words, target: self.classes}
        schema = Schema(sorted_domains=(target,))
        return Tally(self.factors, [classes, *expected.statistics], domains, schema, soft=True)

    # ---- The start ------------------------------------------------------------------------------------------------

    def _from_labels(self, n_steps: int) -> ExpectedStatistics:
        """What the labeled rows say, and then what they make of the others."""
        start = self._started(lambda part, _: self._labeled_shares(part))
        if not self.unlabeled:
            return start
        self._warn_prior_dominates(start)
        expected = self._after_e_steps(start, n_steps)
        self._resolve(self._known(expected))  # the prior is that of all rows
        return expected

    def _from_model(self, initial: Any) -> MStepResult:
        """The parameters of another model, over the levels that there are; priors are found from what it expects."""
        check_same_vocabulary(initial, self.words)
        levels = [initial._level_domains(scored) for scored in initial._estimated.checked_scorers]
        scored = parameters_from_model(initial._estimated.checked_scorers, levels, self.hill.factors, self.counter)
        found = MStepResult(initial.class_log_prior_, scored)
        expected, _ = self.expect(found)
        self._resolve(self._known(expected))
        if self.hill.has_constant_columns:  # from the start, as in all steps after it
            found = MStepResult(found.log_prior, self.hill.without_constant_columns(scored))
            expected, _ = self.expect(found)
            self._resolve(self._known(expected))
        if self.hill.has_prior:
            density = self._class_prior_distribution()
            with np.errstate(divide="ignore"):
                classes = 0.0 if density is None else self._at(density, np.exp(found.log_prior))
            self.start_log_prior = self.hill.log_prior(found.scored, expected.statistics) + classes
        return found

    def _warn_prior_dominates(self, start: ExpectedStatistics) -> None:
        """Say when a prior over many words is worth more than all that the labeled rows say."""
        for factor, belief, statistics in zip(
            self.features, self.hill.prior_distributions, start.statistics, strict=True
        ):
            found = is_data_dependent(self.model._prior_of(factor))
            if not factor.family.columnwise and isinstance(belief, Dirichlet) and not found:
                total = np.asarray(statistics.total)
                worth = float((np.broadcast_to(belief.concentration, total.shape) - 1).sum(axis=-1).mean())
                tokens = float(total.sum(axis=-1).mean())
                if worth > tokens:
                    warn(
                        f"the prior of {factor.columns[0]!r} is worth {worth:.0f} counts a class, labeled rows have "
                        f"{tokens:.0f}: unlabeled rows will follow the prior, not the labels.\n"
                        "    Pass prior='empirical', or a Dirichlet of less.",
                        UserWarning,
                    )

    def _from_seeds(self, nearest: AssignNearest, n_steps: int) -> ExpectedStatistics:
        """What the rows say: labeled ones in their classes, the others in that of the nearest center."""

        def shares_of(part: slice, table: Table) -> np.ndarray:
            shares, unknown = self._labeled_shares(part), np.flatnonzero(self.codes[part] < 0)
            shares[unknown, nearest(table.rows(unknown))] = self.weights[part][unknown]
            return shares

        start = self._started(shares_of)
        return start if self.hill.has_prior else self._after_e_steps(start, n_steps)

    def _after_e_steps(self, start: ExpectedStatistics, n_steps: int) -> ExpectedStatistics:
        """What the statistics of a start expect of all rows, after so many steps.

        Default priors, even for maximum likelihood, let classes of a row or two start with some spread.
        """
        if self.hill.has_prior:
            return self.hill.run(self, start, n_steps)
        with self.hill.with_default_priors(self._known(start).statistics):
            return self.hill.run(self, start, n_steps)

    def _started(self, shares_of: Shares) -> ExpectedStatistics:
        """The statistics of a start, and the priors: found once, from the cells that are known, and held."""
        known = self._gathered(shares_of, None)
        if not self.settled:  # all starts climb the same hill
            self._resolve(known)
        if not self.holed and not any(f.family.requires_complete_rows for f in self.features):
            return known
        filled = []
        for number, factor in enumerate(self.features):
            parameters = (
                diagonal_moments_estimate(known.statistics[number]) if factor.family.requires_complete_rows else None
            )
            filled.append(
                FactorScorer(self.hill.factors[number], parameters, False, self.hill.constant_columns[number])
            )
        return self._gathered(shares_of, filled)

    def _resolve(self, known: ExpectedStatistics) -> None:
        """The priors of all factors, and which columns have no spread to speak of."""
        self.settled = True
        model = self.model._set_tally(self._tally(known))
        model._cache["kept"] = dict.fromkeys(model._selected_words)  # all words
        self.model._check_prior(self.features)
        if self.hill.has_prior:
            self.hill.fix_priors(known.statistics, [self.model._prior_of(factor) for factor in self.hill.factors])
        else:
            self._refuse_unknown(known)

    def _refuse_unknown(self, known: ExpectedStatistics) -> None:
        """Without a prior, a column that no row of a class has cannot be expected either."""
        for factor, statistics in zip(self.features, known.statistics, strict=True):
            if factor.family.requires_complete_rows and not self.unlabeled:
                weight = np.broadcast_to(statistics.weight, statistics.first_sum.shape)
                for code, column in np.argwhere(weight == 0):
                    where = f"column {factor.column(int(column))!r} in class {self.classes.levels[code]!r}"
                    raise DataError.no_data(where, self.model.estimate)


def _is_belief(class_prior: Any) -> bool:
    return class_prior is None or isinstance(class_prior, Dirichlet)


def _dot(weights: np.ndarray, values: np.ndarray) -> float:
    """A weighted sum; not by BLAS, whose threads would wait for each other longer than this takes."""
    return float((weights * values).sum())
