"""What is not observed, expected: rows without a label, or with missing cells under a full covariance, by EM."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tallybayes.beliefs.belief import Belief
from tallybayes.beliefs.dirichlet import Dirichlet
from tallybayes.beliefs.normal_inverse_gamma import Normal
from tallybayes.beliefs.normal_inverse_wishart import MultivariateNormal
from tallybayes.errors import DataError
from tallybayes.families.block import Codes, Sparse
from tallybayes.families.gaussian import Gaussian, pooled_spread
from tallybayes.families.multivariate_gaussian import MultivariateGaussian
from tallybayes.inference.em import climb
from tallybayes.inference.missing_cells import expected_moments
from tallybayes.inference.seeding import Ruler, seed_centres, squared_gaps
from tallybayes.models.class_prior import log_class_prior
from tallybayes.models.classifier import normalised
from tallybayes.models.plan import Plan
from tallybayes.models.scoring import Scored, check_spread_within, chunk_of, rows_of
from tallybayes.sources.collect import count
from tallybayes.sources.table import Table
from tallybayes.statistics.counts import Counts
from tallybayes.statistics.moments import Moments
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Factor, Schema
from tallybayes.tally.tally import Tally

_CELLS = 1 << 21  # of the shares of a block of rows: they are made, used and dropped block by block
_SEEDING_ROWS = 10_000
Shares = Callable[[slice, Table], np.ndarray]


class Climbed(NamedTuple):
    """How EM ended."""

    history: list[float]  # the objective after every step, in nats
    objective: str
    converged: bool
    log_likelihood: float  # of what was observed, under the last parameters
    entropy: float  # of what was not, given what was


class Expected(NamedTuple):
    """What an E-step expects: the weight of every class, the statistics of every factor, and how unsure it is."""

    classes: np.ndarray
    statistics: list[Any]
    entropy: float = 0.0


class Estimated(NamedTuple):
    """What an M-step finds: log p(class), the parameters of every factor, their log prior."""

    log_prior: np.ndarray
    scored: list[Scored]
    density: float


class Expectation:
    """EM for one model and one table.

    Rows that are complete are counted once. The others are gone through at every step: each counts in every class as
    much as it is expected to be of it, with missing cells as the parameters of the class expect them.

    Parameters
    ----------
    model : FactoredClassifier
        Its estimate, priors and EM settings. On the way it is given a tally, for the priors that need one.
    table : Table
        The features of rows with weight.
    codes : ndarray of int of shape (n,)
        The class of every row, −1 where there is no label.
    classes : Domain
    named : ndarray of bool of shape (classes,)
        Which of them have labelled rows; the others start from seeds.
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
        self.features, self.n_classes = factors[1:], len(classes.levels)
        self.readings = [model._reading(factor) for factor in self.features]
        self.how = "map" if model.estimate in ("bayes", "map") else "mle"
        pooled = count(table, [_alone(factor) for factor in self.features])  # for the levels, and the anchors
        self.like, self.domains = pooled.statistics, pooled.domains
        weights = np.ones(table.n_rows) if weight is None else np.array(weight, dtype=float)
        weights[codes < 0] *= model.unlabelled_weight
        holed = self._with_holes(table)
        self.unlabelled, self.holed = bool((codes < 0).any()), bool(holed.any())
        whole = (codes >= 0) & ~holed
        fixed, rest = np.flatnonzero(whole), np.flatnonzero(~whole)
        self.fixed = self._counted(table.rows(fixed), codes[fixed], weights[fixed])
        self.table = table if len(rest) == table.n_rows else table.rows(rest)
        self.codes, self.weights, self.total = codes[rest], weights[rest], float(weights.sum())
        self.labelled = table, codes, np.flatnonzero(codes >= 0)
        self.flat = [np.zeros(0, dtype=np.intp) for _ in self.features]
        self.beliefs: list[Any] = [None for _ in self.features]

    def run(self) -> tuple[Tally, Climbed]:
        """Take turns: from the labelled rows or, where classes have none, from the best of several seeded starts."""
        seeded = not self.named.all()
        rng = np.random.default_rng(self.model.random_state)
        best = None
        for _ in range(self.model.n_init if seeded else 1):
            start = self._from_seeds(rng) if seeded else self._from_labels()
            tol = self.model.tol * max(self.total, 1.0)
            done = climb(start, self.maximise, self.expect, n_iter=self.model.n_iter, tol=tol)
            best = done if best is None or done.history[-1] > best.history[-1] else best
        assert best is not None
        name = "log posterior" if self.how == "map" else "log likelihood"
        log_likelihood = best.history[-1] - best.parameters.density
        climbed = Climbed(best.history, name, best.converged, log_likelihood, best.expected.entropy)
        return self._tally(best.expected), climbed

    # ---- The steps ------------------------------------------------------------------------------------------------

    def maximise(self, expected: Expected) -> tuple[Estimated, float]:
        """The M-step: the most probable parameters, and their log prior."""
        log_prior, density = self._maximise_classes(expected.classes)
        scored = []
        for reading, belief, flat, statistics in zip(
            self.readings, self.beliefs, self.flat, expected.statistics, strict=True
        ):
            used = _varied(statistics, flat)
            parameters: Any
            if not used.n_columns:
                parameters = _nothing(reading, self.n_classes)
            elif belief is None:
                parameters = reading.family.maximum_likelihood(used)
            else:
                posterior = belief.update(used)
                parameters = reading.family.from_belief(posterior, "mode")
                density += float(np.sum(belief.update(used.scale(0.0)).log_prob(posterior.mode())))
            scored.append(Scored(reading, parameters, False, flat))
            check_spread_within(scored[-1], used, self.classes.levels)
        return Estimated(log_prior, scored, density), density

    def expect(self, found: Estimated) -> tuple[Expected, float]:
        """The E-step: the statistics that the parameters expect, and the log likelihood of what was observed."""
        log_prior = found.log_prior if self.unlabelled else np.zeros(self.n_classes)
        here = self.fixed.classes > 0
        value = float(self.fixed.classes[here] @ log_prior[here])
        for scored, statistics in zip(found.scored, self.fixed.statistics, strict=True):
            used = _varied(statistics, scored.constant)
            if here.any() and used.n_columns:
                value += float(np.sum(scored.family.log_likelihood(scored.parameters, used)))
        wide = [_widened(scored, like) for scored, like in zip(found.scored, self.like, strict=True)]
        plan = Plan(wide, log_prior, [self._level_domains(number) for number in range(len(wide))], "missing")
        observed, entropy = [value], []

        def shares_of(part: slice, table: Table) -> np.ndarray:
            joint, weights, codes = plan.joint(table), self.weights[part], self.codes[part]
            shares = self._labelled_shares(part)
            known = np.flatnonzero(codes >= 0)
            observed.append(float(weights[known] @ joint[known, codes[known]]))
            unknown = np.flatnonzero(codes < 0)
            if len(unknown):
                scores = normalised(joint[unknown], log_prior)
                soft = np.exp(scores.log_proba)
                unsure = -(soft * np.where(soft > 0, scores.log_proba, 0.0)).sum(axis=1)
                entropy.append(float(weights[unknown] @ unsure))
                observed.append(float(weights[unknown] @ scores.log_density))
                shares[unknown] = soft * weights[unknown, None]
            return shares

        expected = self._gathered(shares_of, wide)
        return expected._replace(entropy=expected.entropy + sum(entropy)), sum(observed)

    def _maximise_classes(self, weights: np.ndarray) -> tuple[np.ndarray, float]:
        """log p(class), and the log prior of it. One pseudo-row a class, where none is given, keeps each alive."""
        given, counts = self.model.class_prior, Counts(weights, (self.n_classes,))
        if not self.unlabelled or (given is None and self.how == "mle") or not _is_belief(given):
            return log_class_prior(given, self.classes.levels, counts, "map"), 0.0
        belief = Dirichlet(np.full(self.n_classes, 2.0)) if given is None else given
        belief = belief.for_mode() if given is not None and self.model.estimate == "bayes" else belief
        mode = belief.update(counts).mode()
        with np.errstate(divide="ignore"):
            return np.log(mode), float(belief.update(counts.scale(0.0)).log_prob(mode))

    # ---- The rows -------------------------------------------------------------------------------------------------

    def _gathered(self, shares_of: Shares, scored: list[Scored] | None) -> Expected:
        """The statistics of all rows; with no parameters given, of their known cells alone."""
        total = self.fixed if scored is not None else self._known(self.fixed)
        step = max(1024, min(65536, _CELLS // self.n_classes))
        for start in range(0, self.table.n_rows, step):
            part = slice(start, start + step)
            table = self.table.rows(part)
            shares, entropy = shares_of(part, table), total.entropy
            statistics: list[Any] = []
            for number, factor in enumerate(self.features):
                cells, family = self._cells(table, number), factor.family
                like: Any = self.like[number]
                if isinstance(family, MultivariateGaussian) and scored is None:
                    family = Gaussian()
                if isinstance(family, MultivariateGaussian) and np.isnan(cells).any():
                    assert scored is not None
                    moments, unsure = expected_moments(cells, shares, *_matrices(scored[number]), like)
                    statistics.append(moments)
                    entropy += unsure
                else:
                    block = self._block(cells, number)
                    statistics.append(family.collect(block, None, self.n_classes, shares, like=like))
            sums = [a + b for a, b in zip(total.statistics, statistics, strict=True)]
            total = Expected(total.classes + shares.sum(axis=0), sums, entropy)
        return total

    def _known(self, expected: Expected) -> Expected:
        return expected._replace(
            statistics=[s.diagonal() if isinstance(s, Moments) else s for s in expected.statistics]
        )

    def _labelled_shares(self, part: slice) -> np.ndarray:
        """All of a labelled row in its class; nothing of the others."""
        codes = self.codes[part]
        shares, known = np.zeros((len(codes), self.n_classes)), np.flatnonzero(codes >= 0)
        shares[known, codes[known]] = self.weights[part][known]
        return shares

    def _counted(self, table: Table, codes: np.ndarray, weights: np.ndarray) -> Expected:
        """The statistics of complete rows."""
        statistics = [
            factor.family.collect(
                self._block(self._cells(table, number), number), codes, self.n_classes, weights, like=self.like[number]
            )
            for number, factor in enumerate(self.features)
        ]
        return Expected(np.bincount(codes, weights, self.n_classes), statistics)

    def _cells(self, table: Table, number: int) -> Any:
        """The cells of one factor: numbers, codes of levels, or sparse rows."""
        factor = self.features[number]
        cells = rows_of(table, factor.columns, factor.family, self._level_domains(number), "missing")
        return cells if isinstance(cells, Sparse) else chunk_of(cells, slice(None))

    def _block(self, cells: Any, number: int) -> Any:
        domains = self._level_domains(number)
        return Codes(cells, np.array([len(domain.levels) for domain in domains])) if domains else cells

    def _level_domains(self, number: int) -> list[Domain]:
        return [self.domains[str(name)] for name in self.features[number].level_columns]

    def _with_holes(self, table: Table) -> np.ndarray:
        """Which rows lack cells that only the rest of their row can tell."""
        holed = np.zeros(table.n_rows, dtype=bool)
        for number, factor in enumerate(self.features):
            if isinstance(factor.family, MultivariateGaussian):
                holed |= np.isnan(self._cells(table, number)).any(axis=1)
        return holed

    def _tally(self, expected: Expected) -> Tally:
        target = str(self.factors[0].columns[0])
        classes = Counts(expected.classes, (self.n_classes,))
        domains, schema = {**self.domains, target: self.classes}, Schema(ordered=(target,))
        return Tally(self.factors, [classes, *expected.statistics], domains, schema, soft=True)

    # ---- The start ------------------------------------------------------------------------------------------------

    def _from_labels(self) -> Expected:
        """What the labelled rows say, and then what they make of the others."""
        start = self._started(lambda part, _: self._labelled_shares(part))
        if not self.unlabelled:
            return start
        found, _ = self.maximise(start)
        expected, _ = self.expect(found)
        self._resolve(self._known(expected))  # the prior is that of all rows
        return expected

    def _from_seeds(self, rng: np.random.Generator) -> Expected:
        """The labelled rows in their classes, the others in that of the nearest centre."""
        sample = np.arange(self.table.n_rows)
        if len(sample) > _SEEDING_ROWS:
            sample = np.sort(rng.choice(len(sample), _SEEDING_ROWS, replace=False))
        table, seed = self.table.rows(sample), int(rng.integers(2**31))
        rulers = []
        for number, factor in enumerate(self.features):
            sizes = [len(domain.levels) for domain in self._level_domains(number)]
            rulers.append(Ruler(factor.family, sizes, self._cells(table, number), seed))

        def measured(rows: Table) -> np.ndarray:
            return np.concatenate([ruler(self._cells(rows, number)) for number, ruler in enumerate(rulers)], axis=1)

        whole, codes, labelled = self.labelled
        labelled = rng.permutation(labelled)[:_SEEDING_ROWS]
        examples, of = measured(whole.rows(labelled)), codes[labelled]
        rows = measured(table)[self.codes[sample] < 0]
        seen = [int(k) for k in np.flatnonzero(self.named) if (of == k).any()]
        means = np.array([_known_mean(examples[of == k]) for k in seen]).reshape(-1, rows.shape[1])
        found = seed_centres(rows, self.n_classes - len(seen), means, rng)
        centres = np.empty_like(found)
        centres[[*seen, *(k for k in range(self.n_classes) if k not in seen)]] = found

        def shares_of(part: slice, block: Table) -> np.ndarray:
            shares, unknown = self._labelled_shares(part), np.flatnonzero(self.codes[part] < 0)
            nearest = squared_gaps(measured(block)[unknown], centres).argmin(axis=1)
            shares[unknown, nearest] = self.weights[part][unknown]
            return shares

        return self._started(shares_of)

    def _started(self, shares_of: Shares) -> Expected:
        """The statistics of a start, and the priors: found once, from the cells that are known, and held."""
        known = self._gathered(shares_of, None)
        self._resolve(known)
        if not self.holed and not any(isinstance(f.family, MultivariateGaussian) for f in self.features):
            return known
        filled = []
        for reading, flat, statistics in zip(self.readings, self.flat, known.statistics, strict=True):
            parameters = _uncorrelated(statistics) if isinstance(statistics, Moments) else None
            filled.append(Scored(reading, parameters, False, flat))
        return self._gathered(shares_of, filled)

    def _resolve(self, known: Expected) -> None:
        """The priors of all factors, and which columns have no spread to speak of."""
        self.model._adopt(self._tally(known))
        self.model._check_prior()
        if self.how == "mle":
            self._refuse_unknown(known)
            return
        for number, (factor, reading) in enumerate(zip(self.features, self.readings, strict=True)):
            prior, statistics = self.model._prior_of(factor), known.statistics[number]
            if isinstance(statistics, Moments) and (prior is None or isinstance(prior, str)):
                self.flat[number] = _without_spread(statistics, reading.family)
            if len(self.flat[number]) == statistics.n_columns:
                continue
            belief = reading.family.prior(prior, _varied(statistics, self.flat[number]), "map")
            point = isinstance(prior, Belief) and self.model.estimate == "bayes"
            self.beliefs[number] = belief.for_mode() if point else belief

    def _refuse_unknown(self, known: Expected) -> None:
        """Without a prior, a column that no row of a class has cannot be expected either."""
        for factor, statistics in zip(self.features, known.statistics, strict=True):
            if isinstance(factor.family, MultivariateGaussian) and not self.unlabelled:
                weight = np.broadcast_to(statistics.weight, statistics.first_sum.shape)
                for code, column in np.argwhere(weight == 0):
                    where = f"column {factor.column(int(column))!r} in class {self.classes.levels[code]!r}"
                    raise DataError.no_data(where, self.model.estimate)


def _alone(factor: Factor) -> Factor:
    """A factor without its class, in a family that skips missing cells."""
    return Factor(factor.columns, (), Gaussian() if isinstance(factor.family, MultivariateGaussian) else factor.family)


def _is_belief(class_prior: Any) -> bool:
    return class_prior is None or isinstance(class_prior, Dirichlet)


def _without_spread(known: Moments, family: Any) -> np.ndarray:
    """Columns the same in every row; where columns share a variance, only if all are."""
    flat = np.flatnonzero(~(pooled_spread(known)[1] > 0))
    shared = "columns" in getattr(family, "shared", ()) and len(flat) < known.n_columns
    return np.zeros(0, dtype=np.intp) if shared else flat


def _varied(statistics: Any, flat: np.ndarray) -> Any:
    """The statistics of the columns that vary."""
    return statistics.columns(np.setdiff1d(np.arange(statistics.n_columns), flat)) if len(flat) else statistics


def _nothing(reading: Factor, n_groups: int) -> Any:
    """The parameters of no columns."""
    mean = np.zeros((n_groups, 0))
    whole = isinstance(reading.family, MultivariateGaussian)
    return MultivariateNormal(mean, np.zeros((n_groups, 0, 0))) if whole else Normal(mean, mean)


def _known_mean(rows: np.ndarray) -> np.ndarray:
    """The mean of the known cells of every column, 0 where there are none."""
    known = ~np.isnan(rows)
    return np.where(known, rows, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)


def _widened(scored: Scored, like: Any) -> Scored:
    """The parameters with those columns in their places that have no spread: their value, and a unit of it."""
    if not len(scored.constant):
        return scored
    mean, spread = (np.asarray(part) for part in scored.parameters)
    n_groups, width = len(mean), int(like.n_columns)
    varied = np.setdiff1d(np.arange(width), scored.constant)
    wide = np.tile(like.mean, (n_groups, 1))
    wide[:, varied] = mean
    if spread.ndim == 3:
        covariance = np.tile(np.eye(width), (n_groups, 1, 1))
        covariance[:, varied[:, None], varied] = spread
        return scored._replace(parameters=MultivariateNormal(wide, covariance))
    variance = np.ones((n_groups, width))
    variance[:, varied] = spread
    return scored._replace(parameters=Normal(wide, variance))


def _matrices(scored: Scored) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means, covariance matrices, and which columns have no spread, of any Gaussian family."""
    mean, spread = (np.asarray(part, dtype=float) for part in scored.parameters)
    covariance = spread if spread.ndim == 3 else spread[..., None] * np.eye(mean.shape[-1])
    return mean, covariance, np.isin(np.arange(mean.shape[-1]), scored.constant)


def _uncorrelated(known: Moments) -> Normal:
    """Means and variances of the cells that are known; the pooled ones where a class has none."""
    pooled = known.pooled()
    weight = np.broadcast_to(known.weight, known.first_sum.shape)
    mean = np.where(weight > 0, known.mean, pooled.mean)
    spread = pooled.scatter / np.maximum(pooled.weight, 1.0)
    spread = np.where(spread > 0, spread, 1.0)
    variance = np.where(weight > 1, known.scatter / np.maximum(weight, 1.0), spread)
    return Normal(mean, np.where(variance > 0, variance, spread))
