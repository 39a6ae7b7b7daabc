"""EM for classifiers and mixtures: rows without a label, or with missing values under a full covariance."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import nullcontext
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tallybayes._utils.parameter_checks import random_generator
from tallybayes.data.table import Table
from tallybayes.distributions.dirichlet import Dirichlet
from tallybayes.errors import DataError
from tallybayes.estimation.em.compiled_em import CompiledEM, CompiledRun, CompiledSums, is_supported
from tallybayes.estimation.em.em_loop import EMResult, EMSummary
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
from tallybayes.families.protocols.em_support import columnwise_statistics
from tallybayes.models.classification.class_prior import log_class_prior
from tallybayes.statistics.counts import Counts
from tallybayes.tally.domain import Domain, Schema
from tallybayes.tally.factor import Factor
from tallybayes.tally.tally import Tally
from tallybayes.typing import ClassPrior
from tallybayes.warnings import warn

_MOST_LABELED = 5  # labeled rows are scored by compiled EM if these times the unlabeled rows are more than all rows
_CELLS = (
    1 << 21
)  # elements of the responsibilities of a block of rows: they are computed, used and dropped block by block

if TYPE_CHECKING:
    from tallybayes.models.classification.class_conditional import ClassConditionalModel
    from tallybayes.models.classification.estimated_classifier import EstimatedClassifier
Responsibilities = Callable[[slice, Table], np.ndarray]


class ExpectedStatistics(NamedTuple):
    """Result of the E-step: expected class weights and sufficient statistics, and the entropy of responsibilities."""

    classes: np.ndarray
    statistics: list[Any]
    entropy: float = 0.0
    is_complete: bool = False  # whether the entropy includes that of the responsibilities


class MStepResult(NamedTuple):
    """Result of the M-step: log p(class), and the scorer of every factor."""

    log_prior: np.ndarray
    scored: list[FactorScorer]


class EMModel(NamedTuple):
    """The model that EM fits.

    Attributes
    ----------
    settings : Classifier or Mixture
        The parameters of EM, the estimate and the class prior.
    factors : list of Factor
        The factor of the class, then those of the features given the class, as they are counted.
    scored : list of Factor
        The factors of the features in the families that score rows.
    estimates_of : callable
        From a tally to the estimates under the priors of the model.
    initial : EstimatedClassifier or None
        The estimates that EM starts from.
    """

    settings: ClassConditionalModel
    factors: list[Factor]
    scored: list[Factor]
    estimates_of: Callable[[Tally], EstimatedClassifier]
    initial: EstimatedClassifier | None


class ClassEM:
    """EM (Dempster, Laird and Rubin 1977) for one model and one table.

    Complete labeled rows are counted once. All other rows are counted in every iteration, with the responsibilities of
    the classes as weights and expected sufficient statistics for missing values.

    Parameters
    ----------
    model : EMModel
    table : Table
        The features of rows with positive weight.
    codes : ndarray of int of shape (n,)
        The class of every row; −1 for an unlabeled row.
    classes : Domain
    named : ndarray of bool of shape (classes,)
        Whether a class has labeled rows; the others are initialized by k-means++.
    weight : ndarray of shape (n,), or None
    """

    def __init__(
        self,
        model: EMModel,
        table: Table,
        codes: np.ndarray,
        classes: Domain,
        named: np.ndarray,
        weight: np.ndarray | None,
    ) -> None:
        self.model = model
        self.settings = model.settings
        self.classes = classes
        self.named = named
        table, self.features, self.words = expand_text(table, model.factors[1:])
        self.n_classes = len(classes.levels)
        self.counter = SoftCounter(self.features, table, self.n_classes)
        unlabeled = codes < 0
        weights = np.broadcast_to(1.0, table.n_rows) if weight is None else np.asarray(weight, dtype=float)
        if self.settings.unlabeled_weight != 1:
            weights = np.where(unlabeled, weights * self.settings.unlabeled_weight, weights)
        incomplete = rows_with_missing(table, self.features)
        self.unlabeled = bool(unlabeled.any())
        self.incomplete = bool(incomplete.any())
        whole = ~(unlabeled | incomplete)
        fixed = np.flatnonzero(whole)
        self.fixed = self._counted(table.rows(fixed), codes[fixed], weights[fixed])
        rest = np.flatnonzero(~whole) if len(fixed) else slice(None)
        self.table = table.rows(rest) if len(fixed) else table
        self.codes = codes[rest]
        self.weights = weights[rest]
        self.objective = EMObjective(self.settings, model.scored, float(weights.sum()))
        self.rows = table, codes, weights
        self.settled = False  # whether the priors are resolved
        self.start_log_prior = 0.0  # log prior density at the parameters of the initial model
        self.measuring = False  # whether to compute the entropy of the responsibilities
        self.weighted = self.weights.strides != (0,) and bool((self.weights != 1).any())
        self.compiled: CompiledEM | None = None
        self.runs: list[tuple[AssignNearest, int, EMResult]] = []  # of compiled EM, by start
        self.continuous = all(factor.family.is_continuous for factor in self.features)
        self.found: MStepResult | None = None  # the last parameters of the current run

    def run(self) -> tuple[Tally, EMSummary]:
        """Run EM from the labeled rows or, if some class has none, from several k-means++ initializations."""
        starts: Iterable[Callable[[], Any]] = self._starts([self._from_labels], 1)
        is_worth = len(self.codes) * _MOST_LABELED > len(self.rows[1])
        if self.unlabeled and is_worth and not self.incomplete and is_supported(self.model.scored):
            self.compiled = CompiledEM(self.counter, self.model.scored, *self.rows)
        if not self.named.all():
            # The priors are resolved from the first initialization and then fixed, so it should be the best one.
            rng = random_generator(self.settings.random_state)
            seeds = self.counter.kmeans_assigners(*self.rows, self.settings.n_init, rng)
            starts = self._starts([partial(self._from_seeds, nearest) for nearest in seeds], 1 - self.continuous)
        if self.model.initial is not None:
            starts = [partial(self._from_model, self.model.initial)]
        has_class_prior = self.unlabeled and isinstance(self.settings.class_prior, Dirichlet)
        best, summary = self.objective.run_restarts(self, starts, has_prior=has_class_prior)
        expected, log_likelihood = best.expected, summary.log_likelihood
        if not expected.is_complete:
            self.measuring = True
            expected, _ = self.expect(best.parameters)
        seen = expected.classes > 0
        if not self.unlabeled:  # known labels are not part of the objective
            log_likelihood += float(expected.classes[seen] @ best.parameters.log_prior[seen])
        return self._tally(expected), summary._replace(entropy=expected.entropy, log_likelihood=log_likelihood)

    def _starts(self, starts: Iterable[Callable[[int], Any]], fewest: int) -> Iterator[Callable[[], Any]]:
        """Yield the starts after the fewest iterations under default priors and, if needed, after their convergence.

        Maximum likelihood needs the latter for discrete columns, because it cannot leave a probability of zero and
        should not end lower than under a prior, and if the former failed.
        """
        ways = (1,) if self.objective.has_prior or not self.unlabeled else (fewest, self.objective.max_iter)
        for start in starts:
            for n_steps in ways:
                self.found = None
                yield partial(start, n_steps)
                if self.continuous and _has_all_classes(self.found):
                    break

    # ---- E-step and M-step ----------------------------------------------------------------------------------------

    def maximize(self, expected: ExpectedStatistics | MStepResult) -> tuple[MStepResult, float]:
        """Return the M-step: the parameters that maximize the expected log posterior, and their log prior density."""
        if isinstance(expected, MStepResult):
            return expected, self.start_log_prior
        log_prior, density = self._maximize_classes(expected.classes)
        scored, density = self.objective.maximize(
            expected.statistics, [self.classes.levels] * len(self.features), density
        )
        for code, column in chain.from_iterable(map(undefined_parameters, scored)):
            if log_prior[code] > -np.inf:
                where = f"column {column!r} in class {self.classes.levels[code]!r}"
                raise DataError.no_data(where, self.settings.estimate)
        self.found = MStepResult(log_prior, scored)
        return self.found, density

    def expect(self, found: MStepResult) -> tuple[ExpectedStatistics, float]:
        """Return the E-step: expected sufficient statistics, and the log-likelihood of the observed values."""
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
        observed = [value]
        entropy = []

        def responsibilities_of(part: slice, table: Table) -> np.ndarray:
            weights = self.weights[part]
            codes = self.codes[part]
            unknown = np.flatnonzero(codes < 0)
            responsibilities: np.ndarray | None = None
            if len(unknown) == len(codes):  # all rows are unlabeled
                scores = plan.posterior(table, whole=True)
            else:
                joint = plan.joint(table)
                responsibilities = self._labeled_responsibilities(part)
                known = np.flatnonzero(codes >= 0)
                observed.append(float(weights[known] @ joint[known, codes[known]]))
                scores = apply_bayes_rule(joint[unknown], log_prior)
            weights = weights if responsibilities is None else weights[unknown]
            observed.append(_dot(weights, scores.log_density))
            if self.measuring:
                surprise = np.maximum(scores.log_proba, -1e300)  # 0 · log 0 is 0
                entropy.append(_dot(weights, -(np.exp(scores.log_proba) * surprise).sum(axis=1)))
            soft = np.exp(scores.log_proba, out=scores.log_proba)
            if self.weighted:
                soft *= weights[:, None]
            if responsibilities is None:
                return soft
            responsibilities[unknown] = soft
            return responsibilities

        expected = self._gathered(responsibilities_of, wide)
        return expected._replace(entropy=expected.entropy + sum(entropy)), sum(observed)

    def _maximize_classes(self, weights: np.ndarray) -> tuple[np.ndarray, float]:
        """Return log p(class) and its log prior density; by default with one pseudo-count per class."""
        counts = Counts(weights, (self.n_classes,))
        prior = self._class_prior_distribution()
        if prior is None:
            given = "frequency" if self.settings.class_prior is None else self.settings.class_prior
            return log_class_prior(given, self.classes.levels, counts, "map"), 0.0
        mode = prior.update(counts).mode_or_boundary()
        with np.errstate(divide="ignore"):
            return np.log(mode), self._at(prior, mode)

    def _class_prior_distribution(self) -> Dirichlet | None:
        """Return the prior of the class probabilities; None if they are fixed."""
        given = self.settings.class_prior
        if not self.unlabeled or not _has_class_prior(given) or (given is None and not self.objective.has_prior):
            return None
        prior = Dirichlet(np.full(self.n_classes, 2.0)) if given is None else given
        return prior if given is None or read_estimate(self.settings.estimate).takes_mode else prior.mode_matched()

    def _at(self, prior: Dirichlet, responsibilities: np.ndarray) -> float:
        """Return the log prior density of class probabilities."""
        nothing = Counts(np.zeros(self.n_classes), (self.n_classes,))
        return float(prior.update(nothing).log_prob(responsibilities))

    # ---- Expected statistics --------------------------------------------------------------------------------------

    def _gathered(self, responsibilities_of: Responsibilities, scored: list[FactorScorer] | None) -> ExpectedStatistics:
        """Return the sufficient statistics of all rows; without parameters, of the observed values only."""
        total = self.fixed if scored is not None else self._known(self.fixed)
        step = max(1024, min(65536, _CELLS // self.n_classes))
        for start in range(0, self.table.n_rows, step):
            part = slice(start, start + step)
            table = self.table.rows(part)
            responsibilities = responsibilities_of(part, table)
            statistics, entropy = self.counter.count_soft(table, responsibilities, scored)
            sums = [a + b for a, b in zip(total.statistics, statistics, strict=True)]
            total = ExpectedStatistics(
                total.classes + np.einsum("ij->j", responsibilities), sums, total.entropy + entropy
            )
        return total

    def _known(self, expected: ExpectedStatistics) -> ExpectedStatistics:
        pairs = zip(self.features, expected.statistics, strict=True)
        return expected._replace(statistics=[columnwise_statistics(factor.family, s) for factor, s in pairs])

    def _labeled_responsibilities(self, part: slice) -> np.ndarray:
        """Return the responsibilities of labeled rows: the row weight for its class; zeros for unlabeled rows."""
        codes = self.codes[part]
        responsibilities = np.zeros((len(codes), self.n_classes))
        known = np.flatnonzero(codes >= 0)
        responsibilities[known, codes[known]] = self.weights[part][known]
        return responsibilities

    def _counted(self, table: Table, codes: np.ndarray, weights: np.ndarray) -> ExpectedStatistics:
        """Return the sufficient statistics of complete rows."""
        return ExpectedStatistics(
            np.bincount(codes, weights, self.n_classes), self.counter.count_hard(table, codes, weights)
        )

    def _tally(self, expected: ExpectedStatistics) -> Tally:
        target = str(self.model.factors[0].columns[0])
        classes = Counts(expected.classes, (self.n_classes,))
        domains = {**self.counter.domains, **self.words, target: self.classes}
        schema = Schema(sorted_domains=(target,))
        return Tally(self.model.factors, [classes, *expected.statistics], domains, schema, soft=True)

    # ---- Initialization -------------------------------------------------------------------------------------------

    def _from_labels(self, n_steps: int) -> ExpectedStatistics | EMResult:
        """Initialize from the labeled rows, then take ``n_steps`` iterations under default priors."""
        done = self._run_compiled(self._begin_at_labels, n_steps)
        if done:
            return done
        start = self._started(lambda part, _: self._labeled_responsibilities(part))
        if not self.unlabeled:
            return start
        self._warn_prior_dominates(start)
        expected = self._after_e_steps(start, n_steps)
        self._resolve(self._known(expected))  # the prior is resolved from all rows
        return expected

    def _from_model(self, initial: EstimatedClassifier) -> MStepResult:
        """Initialize from the parameters of another model; priors are resolved from its expected statistics."""
        check_same_vocabulary(initial.tally, self.words)
        scorers = initial.factors.checked_scorers
        levels = [initial.level_domains(scorer) for scorer in scorers]
        scored = parameters_from_model(scorers, levels, self.objective.factors, self.counter)
        found = MStepResult(initial.class_log_prior, scored)
        expected, _ = self.expect(found)
        self._resolve(self._known(expected))
        if self.objective.has_constant_columns:  # before the first iteration, as in all later ones
            found = MStepResult(found.log_prior, self.objective.without_constant_columns(scored))
            expected, _ = self.expect(found)
            self._resolve(self._known(expected))
        if self.objective.has_prior:
            density = self._class_prior_distribution()
            with np.errstate(divide="ignore"):
                classes = 0.0 if density is None else self._at(density, np.exp(found.log_prior))
            self.start_log_prior = self.objective.log_prior(found.scored, expected.statistics) + classes
        return found

    def _warn_prior_dominates(self, start: ExpectedStatistics) -> None:
        """Warn if the prior of a vocabulary outweighs the labeled rows."""
        for factor, prior, statistics in zip(
            self.features, self.objective.prior_distributions, start.statistics, strict=True
        ):
            found = is_data_dependent(self.estimates.prior_of(factor))
            if not factor.family.columnwise and isinstance(prior, Dirichlet) and not found:
                total = np.asarray(statistics.total)
                worth = float((np.broadcast_to(prior.concentration, total.shape) - 1).sum(axis=-1).mean())
                tokens = float(total.sum(axis=-1).mean())
                if worth > tokens:
                    warn(
                        f"The prior of column {factor.columns[0]!r} has {worth:.0f} pseudo-counts per class, and "
                        f"labeled rows have {tokens:.0f} counts: unlabeled rows follow the prior, not labels.\n"
                        "    Pass prior='empirical', or a Dirichlet with smaller parameters."
                    )

    def _from_seeds(self, nearest: AssignNearest, n_steps: int) -> ExpectedStatistics | EMResult:
        """Initialize from labeled rows in their classes, and unlabeled rows in the class of the nearest center.

        Compiled EM runs until convergence, if it can, and once for initializations with the same centers.
        """
        same = (done for other, n, done in self.runs if n == n_steps and nearest.has_same_centers(other))
        done = next(same, None) or self._run_compiled(partial(self._begin_at_centers, nearest), n_steps)
        if done:
            self.found = done.parameters
            self.runs.append((nearest, n_steps, done))
            return done

        def responsibilities_of(part: slice, table: Table) -> np.ndarray:
            responsibilities = self._labeled_responsibilities(part)
            unknown = np.flatnonzero(self.codes[part] < 0)
            responsibilities[unknown, nearest(table.rows(unknown))] = self.weights[part][unknown]
            return responsibilities

        start = self._started(responsibilities_of)
        return start if self.objective.has_prior or n_steps == 0 else self._after_e_steps(start, n_steps)

    def _begin_at_labels(self, em: CompiledEM, n_steps: int) -> bool:
        """Take iterations of compiled EM from the labeled rows; return False if it failed."""
        known = self._known(self.fixed)
        self._resolve(known)
        with nullcontext() if self.objective.has_prior else self.objective.with_default_priors(known.statistics):
            found, _ = self.maximize(self.fixed)
            begun = not self.objective.has_constant_columns and em.expect(
                found.log_prior, [scored.parameters for scored in found.scored]
            )
            begun = begun and (n_steps == 1 or self._iterate(em, n_steps - 1) is not None)
        if begun:
            self._resolve(self._known(_expected(em.sums())))  # the prior is resolved from all rows
        return begun

    def _begin_at_centers(self, nearest: AssignNearest, em: CompiledEM, n_steps: int) -> bool:
        """Assign the rows to centers; without a prior, take iterations of compiled EM. Return False if it failed.

        Default priors, also under maximum likelihood, give positive variances to classes with one or two rows.
        """
        if not em.expect(np.full(self.n_classes, -np.log(self.n_classes)), nearest.parameters(), hard=True):
            return False
        known = self._known(_expected(em.sums()))
        if not self.settled:
            self._resolve(known)
        if self.objective.has_prior or n_steps == 0:
            return True
        with self.objective.with_default_priors(known.statistics):
            return self._iterate(em, n_steps) is not None

    def _iterate(self, em: CompiledEM, n_steps: int) -> CompiledRun | None:
        """Run compiled EM; return None if a class lost its rows or its variance, or a prior is not supported."""
        return em.iterate(n_steps, **self.objective.settings) if self._set_priors(em) else None

    def _run_compiled(self, begin: Callable[[CompiledEM, int], bool], n_steps: int) -> EMResult | None:
        """Return the result of compiled EM; None if it does not support the model, or failed."""
        em = self.compiled
        if em is None or not begin(em, n_steps):
            return None
        done = self._iterate(em, self.objective.max_iter)
        if done is None:
            return None
        log_prior, parameters = em.parameters()
        scored = [FactorScorer(factor, part) for factor, part in zip(self.objective.factors, parameters, strict=True)]
        sums = em.sums()
        expected = _expected(sums)
        constant = self.objective.log_prior(scored, expected.statistics) - em.log_prior
        density = self._class_prior_distribution()
        constant += 0.0 if density is None else self._at(density, np.exp(log_prior))
        history = [value + constant for value in done.history]
        self.found = MStepResult(log_prior, scored)
        return EMResult(expected, self.found, history, done.converged, sums.log_likelihood)

    def _set_priors(self, em: CompiledEM) -> bool:
        """Set the priors of compiled EM, and return whether it supports them."""
        pseudo_counts, log_prior = np.zeros(self.n_classes), None
        density = self._class_prior_distribution()
        if density is not None:
            pseudo_counts = np.broadcast_to(density.concentration, (self.n_classes,)) - 1.0
        elif self.settings.class_prior not in (None, "frequency"):
            log_prior, _ = self._maximize_classes(pseudo_counts)
        return not self.objective.has_constant_columns and em.set_priors(
            self.objective.prior_distributions, pseudo_counts, log_prior
        )

    def _after_e_steps(self, start: ExpectedStatistics, n_steps: int) -> ExpectedStatistics:
        """Return the expected statistics after some iterations from initial statistics.

        Default priors, also under maximum likelihood, give positive variances to classes with one or two rows.
        """
        if self.objective.has_prior:
            return self.objective.run(self, start, n_steps)
        with self.objective.with_default_priors(self._known(start).statistics):
            return self.objective.run(self, start, n_steps)

    def _started(self, responsibilities_of: Responsibilities) -> ExpectedStatistics:
        """Return the initial statistics, and resolve the priors once, from the observed values."""
        known = self._gathered(responsibilities_of, None)
        if not self.settled:  # all initializations maximize the same objective
            self._resolve(known)
        if not self.incomplete and not any(f.family.requires_complete_rows for f in self.features):
            return known
        filled = []
        for number, factor in enumerate(self.features):
            parameters = (
                diagonal_moments_estimate(known.statistics[number]) if factor.family.requires_complete_rows else None
            )
            filled.append(
                FactorScorer(self.objective.factors[number], parameters, False, self.objective.constant_columns[number])
            )
        return self._gathered(responsibilities_of, filled)

    def _resolve(self, known: ExpectedStatistics) -> None:
        """Resolve the priors of all factors, and find the constant columns."""
        self.settled = True
        self.estimates = self.model.estimates_of(self._tally(known))
        if self.objective.has_prior:
            self.objective.fix_priors(
                known.statistics, [self.estimates.prior_of(factor) for factor in self.objective.factors]
            )
        else:
            self._check_observed(known)

    def _check_observed(self, known: ExpectedStatistics) -> None:
        """Raise DataError if a column has no observed value in a class and no prior: EM cannot estimate it."""
        for factor, statistics in zip(self.features, known.statistics, strict=True):
            if factor.family.requires_complete_rows and not self.unlabeled:
                weight = np.broadcast_to(statistics.weight, statistics.first_sum.shape)
                for code, column in np.argwhere(weight == 0):
                    where = f"column {factor.column(int(column))!r} in class {self.classes.levels[code]!r}"
                    raise DataError.no_data(where, self.settings.estimate)


def _has_all_classes(found: MStepResult | None) -> bool:
    """Return whether EM did not fail, and every class has a positive probability."""
    return found is not None and not np.isneginf(found.log_prior).any()


def _expected(sums: CompiledSums) -> ExpectedStatistics:
    """Return the expected sufficient statistics of an E-step of compiled EM."""
    return ExpectedStatistics(sums.classes, sums.statistics, sums.entropy, True)


def _has_class_prior(class_prior: ClassPrior) -> bool:
    return class_prior is None or isinstance(class_prior, Dirichlet)


def _dot(weights: np.ndarray, values: np.ndarray) -> float:
    """Return a weighted sum, without BLAS, whose threads cost more time than the sum."""
    return float((weights * values).sum())
