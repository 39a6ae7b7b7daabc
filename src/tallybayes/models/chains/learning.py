"""ChainLearner: counting sequences of states and steps. The base of hidden Markov models."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tallybayes.errors import DataError, FileError, LabelError
from tallybayes.families.bernoulli import Bernoulli
from tallybayes.families.categorical import Categorical
from tallybayes.families.estimates import read_estimate
from tallybayes.families.family import Family
from tallybayes.inference.em import check_settings, is_whole
from tallybayes.models.chains.chain import Chain, read_prior, with_singletons
from tallybayes.models.chains.names import PARTS, free_names, names_in, state_schema
from tallybayes.models.fitted.fitted import Fitted
from tallybayes.models.fitted.scoring import Scored
from tallybayes.models.fitted.soft_counting import with_holes
from tallybayes.models.inputs.column_priors import check_priors, prior_for
from tallybayes.models.inputs.columns import read_columns
from tallybayes.models.inputs.sequences import Sequences, open_labels, open_sequences, step_weights
from tallybayes.models.model import Tallied
from tallybayes.sources.collect import count
from tallybayes.sources.table import Table
from tallybayes.store import refuse_rest
from tallybayes.tally.domain import Domain, labels_of
from tallybayes.tally.factor import Factor
from tallybayes.tally.tally import Tally


class ChainLearner(Tallied):
    """Starts, transitions, ends and emissions, counted or expected."""

    n_states: int | None
    emission: Any
    estimate: str
    prior: Any
    unseen: str
    end_state: bool
    _names: dict[str, str]

    def fit(
        self,
        X: Any,
        y: Any = None,
        lengths: Any = None,
        *,
        sequence: str | None = None,
        order: str | None = None,
        sample_weight: Any = None,
    ) -> Self:
        """Count labelled sequences, or learn from those without labels by EM; forget any learned before.

        Parameters
        ----------
        X : list of sequences, or one array with `lengths`, or a frame with `sequence`
            A sequence is an array of values or of rows, a list, a frame or a dictionary of columns; it may be empty.
        y : the state of every step, shaped like X, or the name of a column, optional
            None or NaN where a state is not known.
        lengths : array-like of int, optional
        sequence, order : str, optional
            The columns of a frame that say to which sequence a step belongs, and where in it.
        sample_weight : array-like of shape (sequences,), optional

        Returns
        -------
        self
        """
        read_estimate(self.estimate)
        check_settings(self)
        sequences, y = self._open(X, y, lengths, sequence, order)
        weight = step_weights(sample_weight, sequences)
        if weight is not None and not weight.all():  # a sequence of weight 0 is absent, whatever it holds
            if not weight.any():
                raise DataError("the weight of every sequence is zero; expected at least one that counts.")
            steps, sequences = sequences.some(np.flatnonzero(weight))
            y, weight = None if y is None else Table({"state": y}).rows(steps).columns["state"], weight[weight > 0]
        names = free_names(sequences.table)
        emissions = [
            Factor(columns, (names["state"],), family)
            for columns, family in read_columns(self.emission, sequences.table, [])
        ]
        labels, domain = self._labels(y)
        n_more, known = self._n_unnamed(domain), labels is not None and len(labels) > 0 and (labels >= 0).all()
        if known and n_more:
            raise DataError(
                f"n_states is {self.n_states!r}, but every step has a state and these show {len(domain.levels)}.\n"
                "    Leave n_states out, or leave some steps without their state."
            )
        self._check_prior(emissions)
        if known and not with_holes(sequences.table, emissions).any():
            assert labels is not None
            tally, climbed = self._count(sequences, labels, domain, weight, names, emissions), None
        else:
            from tallybayes.models.chains.baum_welch import learn_chain

            tally, climbed = learn_chain(self, sequences, labels, domain, weight, names, emissions)
        self._names = names
        return self._adopt(tally, climbed)

    def partial_fit(
        self,
        X: Any,
        y: Any,
        lengths: Any = None,
        *,
        sequence: str | None = None,
        order: str | None = None,
        sample_weight: Any = None,
    ) -> Self:
        """Count more labelled sequences; new states and labels may appear.

        Parameters
        ----------
        X, y, lengths, sequence, order, sample_weight
            As for `fit`; every step has its state.

        Returns
        -------
        self
        """
        if not hasattr(self, "tally_"):
            return self.fit(X, y, lengths, sequence=sequence, order=order, sample_weight=sample_weight)
        return self._adopt(self.tally_ + self._counted(X, y, lengths, sequence, order, sample_weight))

    def forget(
        self,
        X: Any,
        y: Any,
        lengths: Any = None,
        *,
        sequence: str | None = None,
        order: str | None = None,
        sample_weight: Any = None,
    ) -> Self:
        """Take labelled sequences out again, exactly.

        Parameters
        ----------
        X, y, lengths, sequence, order, sample_weight
            Sequences that were learned, as for `fit`.

        Returns
        -------
        self
        """
        check_is_fitted(self, "tally_")
        return self._adopt(self.tally_ - self._counted(X, y, lengths, sequence, order, sample_weight))

    def fit_tally(self, tally: Tally) -> Self:
        """Learn from a tally counted elsewhere: by another model, in a file or a shard.

        Parameters
        ----------
        tally : Tally
            As a fitted `HiddenMarkovModel` has it, whatever its columns are called; with ``end_state``, its last factor
            is p(end | state).

        Returns
        -------
        self
        """
        self._check_prior(self._with_prior(tally))
        self._names = names_in(tally, self.end_state)
        return self._adopt(tally)

    def _open(self, X: Any, y: Any, lengths: Any, sequence: Any, order: Any) -> tuple[Sequences, Any]:
        """The sequences without the column of their states, and the states."""
        sequences = open_sequences(X, lengths, sequence, order)
        if y is None:
            return sequences, None
        labels = open_labels(y, sequences, X)
        if isinstance(y, str):
            sequences = sequences._replace(table=sequences.table.without(y))
        return sequences, labels

    def _labels(self, y: Any) -> tuple[np.ndarray | None, Domain]:
        """The states as codes, −1 where unknown."""
        if y is None:
            return None, Domain([], "state", ordered=True)
        found, (local,) = Table({"state": y}).levels(["state"], lambda _: True)
        codes = np.asarray(found.columns[0]).astype(np.int64)
        used = np.unique(codes[codes >= 0])
        domain = Domain([local.levels[k] for k in used], "state", ordered=True)
        where = np.full(len(local.levels) + 1, -1)
        where[used] = domain.positions_of([local.levels[k] for k in used])
        return where[codes], domain

    def _n_unnamed(self, domain: Domain) -> int:
        """How many states there are besides those that have labels."""
        n_named = len(domain.levels)
        if self.n_states is None:
            if not n_named:
                raise DataError("no step has a state, so how many there are is not known.\n    Pass n_states.")
            return 0
        given: Any = self.n_states
        if not is_whole(given, max(n_named, 1)):
            hint = "Families are given as emission=." if isinstance(given, Family | Mapping) else ""
            raise DataError.wrong_type("n_states", repr(given), f"a whole number of at least {max(n_named, 1)}", hint)
        return int(given) - n_named

    def _counted(self, X: Any, y: Any, lengths: Any, sequence: Any, order: Any, sample_weight: Any) -> Tally:
        sequences, y = self._open(X, y, lengths, sequence, order)
        labels, domain = self._labels(y)
        if labels is None or (labels < 0).any():
            where = "" if labels is None else f" ({int((labels < 0).sum())} of {len(labels)} are missing)"
            raise LabelError(
                f"every step needs its state here{where}; without, the model has to be learned as a whole.\n"
                "    Use fit on all sequences."
            )
        emissions = [factor for factor, _ in self._emission_factors()]
        weight = step_weights(sample_weight, sequences)
        return self._count(sequences, labels, domain, weight, self._names, emissions, self.tally_)

    def _count(
        self,
        sequences: Sequences,
        labels: np.ndarray,
        domain: Domain,
        weight: np.ndarray | None,
        names: dict[str, str],
        emissions: list[Factor],
        like: Tally | None = None,
    ) -> Tally:
        """The tally of labelled sequences: starts, transitions, ends and steps."""
        first, last = sequences.offsets[:-1], sequences.offsets[1:]
        some = last > first
        per_step = None if weight is None else np.repeat(weight, sequences.lengths)
        follows = np.ones(len(labels), dtype=bool)
        follows[first[some]] = False
        after = np.flatnonzero(follows)
        schema = state_schema(names)

        def table(n_rows: int, **codes: np.ndarray) -> Table:
            found = Table({"row": np.zeros(n_rows)})
            for part, column in codes.items():
                found = found.with_codes(names[part.rstrip("_")], column, domain)
            return found

        starts = table(int(some.sum()), start=labels[first[some]])
        tally = count(
            starts,
            [Factor(names["start"], (), Categorical())],
            weight=None if weight is None else weight[some],
            schema=schema,
        )
        pairs = table(len(after), from_=labels[after - 1], to=labels[after])
        tally |= count(
            pairs,
            [Factor(names["to"], (names["from"],), Categorical())],
            weight=None if per_step is None else per_step[after],
            schema=schema,
        )
        steps, factors = sequences.table.with_codes(names["state"], labels, domain), list(emissions)
        if self.end_state:
            is_last = np.zeros(len(labels))
            is_last[last[some] - 1] = 1.0
            steps = steps.with_column(names["end"], is_last)
            factors.append(Factor(names["end"], (names["state"],), Bernoulli()))
        anchors = None
        if like is not None:
            chosen = [place for place, factor in enumerate(like.factors) if factor in factors]
            anchors = Tally(
                [like.factors[k] for k in chosen], [like.statistics[k] for k in chosen], like.domains, like.schema
            )
            factors = list(anchors.factors)
        return tally | count(steps, factors, weight=per_step, schema=schema, like=anchors)

    def _with_prior(self, tally: Tally) -> list[Factor]:
        names = names_in(tally, self.end_state)
        return [f for f in tally.factors if f.given == (names["state"],) and f.columns != (names["end"],)]

    def _take_from(self, other: Any) -> Self:
        self._names = dict(other._names)
        return self

    def _shape_to_json(self) -> dict[str, Any]:
        """What was learnt about the shape of the input, for a file."""
        return {"names": self._names}

    def _shape_from_json(self, state: dict[str, Any], tally: Tally) -> None:
        names = state.pop("names")
        self._names = {name: str(names.pop(name)) for name in PARTS}
        refuse_rest("the names of the model's parts", names)
        columns = {column for factor in tally.factors for column in factor.columns}
        needed = {self._names["start"], self._names["to"], *([self._names["end"]] if self.end_state else [])}
        if not needed <= columns or tally.schema.domain(self._names["state"]) not in tally.domains:
            raise FileError(f"the model's factors {sorted(needed)} are not all in its tally.")

    def _check_loaded(self) -> None:
        """Refuse a tally that is no chain."""
        _ = self._chain

    # ---- Parameters -------------------------------------------------------------------------------------------------

    @property
    def states_(self) -> np.ndarray:
        """The states, sorted."""
        check_is_fitted(self, "tally_")
        return labels_of(self._state_domain.levels, None)

    @property
    def _state_domain(self) -> Domain:
        return self.tally_.domains[self.tally_.schema.domain(self._names["state"])]

    @property
    def start_(self) -> np.ndarray:
        """p(first state)."""
        return np.exp(self._chain.start)

    @property
    def transition_(self) -> np.ndarray:
        """p(next state | state), a row for every state; given that the sequence goes on, where its end is modelled."""
        return np.exp(self._chain.transition)

    @property
    def end_(self) -> np.ndarray | None:
        """p(end | state), where it is modelled."""
        return None if self._chain.end is None else np.exp(self._chain.end)

    @property
    def emission_(self) -> dict[Any, Any]:
        """p(step | state) by column: of a column of labels {label: its probability in every state}.

        Of others the parameters of their family, states first; a block of several columns stands under their tuple.
        What ``unseen="smooth"`` keeps for other labels is not listed.
        """
        found: dict[Any, Any] = {}
        for scored, domains in zip(self._chain.scored, self._chain.domains, strict=True):
            names, parameters = scored.factor.columns, scored.parameters
            if scored.family.reads == "codes":
                for name, domain, table in zip(
                    names, domains, parameters.segments.split(parameters.table), strict=True
                ):
                    found[name] = dict(zip(domain.levels, table.T, strict=False))
            else:
                found[names if len(names) > 1 else names[0]] = parameters
        return found

    @property
    def _chain(self) -> Chain:
        check_is_fitted(self, "tally_")
        return self._derive("chain", self._make_chain)

    def _make_chain(self) -> Chain:
        if self.unseen not in ("missing", "smooth", "error"):
            raise DataError(f"unseen is {self.unseen!r}; expected 'missing', 'smooth' or 'error'.")
        start, transition, *end = [_logs(part.point) for part in self._fitted.scored[: self._n_parts]]
        scored, domains = self._emissions()
        if self.unseen == "smooth":
            counted = (statistics for _, statistics in self._emission_factors())
            pairs = zip(scored, counted, strict=True)
            scored = [with_singletons(p, s, s.pooled()) if p.family.reads == "codes" else p for p, s in pairs]
        return Chain(start, transition, end[0][:, 0] if end else None, scored, domains, self.unseen)

    def _emissions(self) -> tuple[list[Scored], list[list[Domain]]]:
        """The emissions of every state over the levels that were seen, and these levels."""
        scored = self._fitted.scored[self._n_parts :]
        return scored, [[self.tally_.domains[str(name)] for name in part.factor.level_columns] for part in scored]

    @property
    def _n_parts(self) -> int:
        """How many factors there are besides the emissions: start, transition and perhaps end."""
        return 3 if self.end_state else 2

    @property
    def _part_names(self) -> list[str]:
        return ["start", "transition", "end"][: self._n_parts]

    def _pairs(self) -> list[tuple[Factor, Any]]:
        """Start, transition and end, then the emissions, as they were counted."""
        columns = [self._names[part] for part in ("start", "to", "end")[: self._n_parts]]
        pairs = list(zip(self.tally_.factors, self.tally_.statistics, strict=True))
        by_name = {factor.columns: (factor, counted) for factor, counted in pairs}
        emissions = [pair for pair in pairs if pair[0].given == (self._names["state"],)]
        return [by_name[name,] for name in columns] + [p for p in emissions if p[0].columns != (self._names["end"],)]

    def _emission_factors(self) -> list[tuple[Factor, Any]]:
        return self._pairs()[self._n_parts :]

    @property
    def prior_(self) -> dict[Any, Any]:
        """The prior of every part as resolved: "start", "transition", "end" if modelled, and blocks of columns."""
        keys = [*self._part_names, *(factor.columns for factor, _ in self._fitted.pairs[self._n_parts :])]
        return dict(zip(keys, self._fitted.beliefs, strict=True))

    @property
    def _fitted(self) -> Fitted:
        """Start, transition, end and emissions after estimating; the predictive of a sequence has no closed form."""
        check_is_fitted(self, "tally_")
        return self._derive("fitted", self._fit)

    def _fit(self) -> Fitted:
        given, pairs = read_prior(self.prior), self._pairs()
        emissions = [factor for factor, _ in pairs[self._n_parts :]]
        self._check_prior(emissions)
        priors = [given[part] for part in self._part_names] + [prior_for(given["emission"], f) for f in emissions]
        return Fitted(pairs, priors, self.estimate, groups=self._state_domain.levels, plug_in=True)

    def _check_prior(self, factors: list[Factor]) -> None:
        check_priors(read_prior(self.prior)["emission"], factors)

    def _held(self, tally: Tally) -> Self:
        """The same model over other counts of the same levels, its priors held fixed."""
        other = copy.copy(self)._adopt(tally)
        other._derived["fitted"] = self._fitted.over(other._pairs())
        return other

    @property
    def n_parameters_(self) -> int:
        """The number of free parameters."""
        check_is_fitted(self, "tally_")
        return self._fitted.n_parameters


def _logs(parameters: Any) -> np.ndarray:
    """The logs of shares; where nothing was counted, there are none."""
    shares = np.asarray(parameters.table if hasattr(parameters, "table") else parameters)
    with np.errstate(divide="ignore"):
        return np.log(np.where(np.isnan(shares), 0.0, shares))
