"""HiddenMarkovModel: sequences whose steps depend on a state that is seen, partly seen, or not seen at all."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tallybayes.errors import DataError, LabelError, StatisticsError
from tallybayes.families.bernoulli import Bernoulli
from tallybayes.families.categorical import Categorical
from tallybayes.families.estimates import check_estimate, estimate_parameters
from tallybayes.kernels import chain as kernels
from tallybayes.models.chain import Chain, log_shares, read_prior, with_singletons
from tallybayes.models.column_priors import check_priors, prior_for
from tallybayes.models.columns import read_columns
from tallybayes.models.features import free_name, labels_of
from tallybayes.models.scoring import Resolved, Scored, check_spread_within, chunk_of, resolve, rows_of, with_spread
from tallybayes.models.sequences import Sequences, open_labels, open_sequences, step_weights
from tallybayes.models.tallied import Tallied
from tallybayes.sources.collect import count
from tallybayes.sources.table import Table
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Factor, Schema
from tallybayes.tally.tally import Tally


class HiddenMarkovModel(Tallied):
    """A hidden Markov model: p(start) Π p(next state | state) Π p(step | state).

    With labelled states it is counted in one pass; it adds, forgets and is re-estimated like every model here. Without
    labels it is learned by EM (Baum and Welch); with some, by EM that keeps to those. Missing steps and cells are
    marginalised everywhere.

    Parameters
    ----------
    n_states : int, optional
        How many states there are, where labels do not say.
    emission : "auto", a Family, or a mapping from columns to families, default "auto"
        What a step is in every state; columns are independent given the state. ``"auto"`` reads types, as `NaiveBayes`.
    estimate : {"bayes", "mle", "map", "unbiased"}, default "bayes"
        ``"bayes"`` plugs in the posterior means of all parameters: integrating them out over whole sequences has no
        closed form.
    prior : mapping from "start", "transition", "end" and "emission" to beliefs, a Dirichlet, "empirical" or None
        A Dirichlet alone is that of start and transition. None takes the families' defaults, add-one.
    unseen : {"missing", "smooth", "error"}, default "missing"
        What a label is that no step had at fitting: a missing step; as likely as labels seen only once were in each
        state; or an error.
    end_state : bool, default False
        Whether the end of a sequence is modelled too: p(end | state).
    n_iter, tol : int and float
        EM takes at most so many steps, and stops when one raises the objective by less than `tol` a step of the data.
    n_init : int, default 1
        From how many starts; the one that climbs highest counts.
    random_state : int, Generator or None

    Attributes
    ----------
    tally_ : Tally
        All that was learnt.
    states_ : ndarray
        The states, sorted.

    Examples
    --------
    >>> import tallybayes as tb
    >>> diary = [[3, 3, 2], [1, 1, 2], [1, 2, 3]]                     # ice creams eaten
    >>> weather = [["hot", "hot", "cold"], ["cold"] * 3, ["cold", "hot", "hot"]]
    >>> model = tb.HiddenMarkovModel(emission=tb.Categorical(), estimate="mle").fit(diary, weather)
    >>> model.transition_.round(3)
    array([[0.667, 0.333],
           [0.333, 0.667]])
    >>> model.predict([[3, 1, 1]])
    [array(['hot', 'cold', 'cold'], dtype=object)]
    """

    def __init__(
        self,
        n_states: int | None = None,
        emission: Any = "auto",
        *,
        estimate: str = "bayes",
        prior: Any = None,
        unseen: str = "missing",
        end_state: bool = False,
        n_iter: int = 100,
        tol: float = 1e-6,
        n_init: int = 1,
        random_state: Any = None,
    ) -> None:
        self.n_states = n_states
        self.emission = emission
        self.estimate = estimate
        self.prior = prior
        self.unseen = unseen
        self.end_state = end_state
        self.n_iter = n_iter
        self.tol = tol
        self.n_init = n_init
        self.random_state = random_state

    # ---- Learning ---------------------------------------------------------------------------------------------------

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
        check_estimate(self.estimate)
        sequences, y = self._open(X, y, lengths, sequence, order)
        weight = step_weights(sample_weight, sequences)
        names = _free_names(sequences.table)
        emissions = [
            Factor(columns, (names["state"],), family)
            for columns, family in read_columns(self.emission, sequences.table, [])
        ]
        labels, domain = self._labels(y, sequences)
        if labels is not None and (labels >= 0).all() and not self._n_unnamed(domain):
            tally, climbed = self._count(sequences, labels, domain, weight, names, emissions), None
        else:
            from tallybayes.models.baum_welch import learn_chain

            tally, climbed = learn_chain(self, sequences, labels, domain, weight, names, emissions)
        self._names, self._climb = names, climbed
        return self._adopt(tally)

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
        more = self._counted(X, y, lengths, sequence, order, sample_weight)
        self._climb = None
        return self._adopt(self.tally_ + more)

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
        rest = self.tally_ - self._counted(X, y, lengths, sequence, order, sample_weight)
        self._climb = None
        return self._adopt(rest)

    def fit_tally(self, tally: Tally) -> Self:
        """Learn from a tally counted elsewhere: by another model, in a file or a shard.

        Parameters
        ----------
        tally : Tally
            As a fitted `HiddenMarkovModel` has it.

        Returns
        -------
        self
        """
        found = {factor.columns: factor for factor in tally.factors}
        if ("start",) not in found or ("to",) not in found or "state" not in tally.domains:
            raise StatisticsError(
                "this tally is not a hidden Markov model's: expected factors p(start), p(to | from) and p(… | state), "
                "found\n" + "\n".join("    " + line for line in repr(tally).splitlines())
            )
        self._names, self._climb = dict(_NAMES), None
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

    def _labels(self, y: Any, sequences: Sequences) -> tuple[np.ndarray | None, Domain]:
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
        if self.n_states < max(n_named, 1):
            raise DataError.wrong_type("n_states", repr(self.n_states), f"at least {max(n_named, 1)}")
        return int(self.n_states) - n_named

    def _counted(self, X: Any, y: Any, lengths: Any, sequence: Any, order: Any, sample_weight: Any) -> Tally:
        sequences, y = self._open(X, y, lengths, sequence, order)
        labels, domain = self._labels(y, sequences)
        if labels is None or (labels < 0).any():
            where = "" if labels is None else f" ({int((labels < 0).sum())} of {len(labels)} are missing)"
            raise LabelError(
                f"every step needs its state here{where}; without, the model has to be learned as a whole.\n"
                "    Use fit on all sequences."
            )
        emissions = [factor for factor in self.tally_.factors if factor.given == (self._names["state"],)]
        emissions = [factor for factor in emissions if factor.columns != (self._names["end"],)]
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
        schema = Schema({names[part]: "state" for part in ("start", "from", "to", "state")}, ordered=("state",))

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
            anchors = Tally([like.factors[k] for k in chosen], [like.statistics[k] for k in chosen], like.domains, like.schema)
            factors = list(anchors.factors)
        return tally | count(steps, factors, weight=per_step, schema=schema, like=anchors)

    def _take_from(self, other: Any) -> Self:
        self._names, self._climb = dict(other._names), other._climb
        return self

    # ---- Parameters -------------------------------------------------------------------------------------------------

    @property
    def states_(self) -> np.ndarray:
        """The states, sorted."""
        check_is_fitted(self, "tally_")
        return labels_of(self.tally_.domains["state"].levels, None)

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
    def _chain(self) -> Chain:
        check_is_fitted(self, "tally_")
        return self._derive("chain", self._make_chain)

    def _make_chain(self) -> Chain:
        if self.unseen not in ("missing", "smooth", "error"):
            raise DataError(f"unseen is {self.unseen!r}; expected 'missing', 'smooth' or 'error'.")
        tally, names, priors = self.tally_, self._names, read_prior(self.prior)
        start: Any = tally[names["start"]]
        moves: Any = tally[names["to"]]
        end = None
        if self.end_state:
            ends, family = tally[names["end"]], Bernoulli()
            if self.estimate in ("mle", "unbiased"):
                share = family.maximum_likelihood(ends)
            else:
                posterior = family.prior(priors["end"], ends, self.estimate).update(ends)
                share = np.asarray(posterior.mode() if self.estimate == "map" else posterior.mean())
            with np.errstate(divide="ignore"):
                end = np.log(np.where(np.isnan(share), 0.0, share))[:, 0]
        scored, domains = self._emissions(priors["emission"])
        return Chain(
            log_shares(start, priors["start"], self.estimate),
            log_shares(moves, priors["transition"], self.estimate),
            end,
            scored,
            domains,
            self.unseen,
        )

    def _emission_factors(self) -> list[tuple[Factor, Any]]:
        pairs = zip(self.tally_.factors, self.tally_.statistics, strict=True)
        state, end = self._names["state"], self._names["end"]
        return [(f, statistics) for f, statistics in pairs if f.given == (state,) and f.columns != (end,)]

    def _emissions(self, prior: Any) -> tuple[list[Scored], list[list[Domain]]]:
        """The emissions of every state, and the levels of columns of labels."""
        pairs = self._emission_factors()
        factors = [factor for factor, _ in pairs]
        check_priors(prior, factors)
        scored, domains = [], []
        for factor, statistics in pairs:
            resolved = Resolved(None, np.zeros(0, dtype=np.intp))
            if self.estimate in ("map", "bayes"):
                resolved = resolve(factor, statistics, prior_for(prior, factor, factors), self.estimate)
            spread = with_spread(statistics, resolved.constant, factor.family)
            parameters = estimate_parameters(factor.family, resolved.prior, spread, self.estimate)
            scored.append(Scored(factor, parameters, False, resolved.constant))
            check_spread_within(scored[-1], statistics, self.tally_.domains["state"].levels)
            domains.append([self.tally_.domains[str(name)] for name in factor.level_columns])
            if self.unseen == "smooth" and isinstance(factor.family, Categorical):
                scored[-1] = with_singletons(scored[-1], statistics, statistics.pooled())
        return scored, domains

    @property
    def n_parameters_(self) -> int:
        """The number of free parameters."""
        check_is_fitted(self, "tally_")
        n_states = len(self.states_)
        chain = n_states - 1 + n_states * (n_states - 1) + (n_states if self.end_state else 0)
        return chain + sum(factor.family.n_parameters(statistics) for factor, statistics in self._emission_factors())

    # ---- Answers ----------------------------------------------------------------------------------------------------

    def _asked(self, X: Any, lengths: Any, sequence: Any, order: Any) -> tuple[Sequences, tuple[Any, ...]]:
        """The sequences, and what the kernels take."""
        chain = self._chain
        sequences = open_sequences(X, lengths, sequence, order)
        known = [name for factor, _ in self._emission_factors() for name in factor.columns]
        absent = [name for name in known if name not in sequences.table.columns]
        if absent and sequences.table.n_rows:
            raise DataError.unknown_column(absent, sequences.table.columns)
        emission = chain.emission(sequences.table) if sequences.table.n_rows else np.zeros((0, len(chain.start)))
        return sequences, (*chain.arguments, emission, sequences.offsets)

    def log_likelihood(
        self, X: Any, lengths: Any = None, *, sequence: str | None = None, order: str | None = None
    ) -> np.ndarray:
        """log p(sequence), states summed out: one number a sequence, −inf for an impossible one.

        Parameters
        ----------
        X, lengths, sequence, order
            As for `fit`.

        Returns
        -------
        ndarray of shape (sequences,)
        """
        sequences, arguments = self._asked(X, lengths, sequence, order)
        found = kernels.log_likelihood(*arguments)
        self._warn_impossible(sequences, found, arguments)
        return found

    def score(self, X: Any, y: Any = None, lengths: Any = None, **where: Any) -> float:
        """Without states, the mean log p(sequence); with them, the share of steps whose state is decoded.

        Parameters
        ----------
        X, y, lengths, **where
            As for `fit`.
        """
        if y is None:
            return float(self.log_likelihood(X, lengths, **where).mean())
        sequences, y = self._open(X, y, lengths, where.get("sequence"), where.get("order"))
        codes, domain = self._labels(y, sequences)
        assert codes is not None
        path = kernels.viterbi(*self._asked_of(sequences))[0]
        truth = np.append(self.tally_.domains["state"].positions_of(domain.levels), -2)[codes]
        known = codes >= 0
        return float(np.mean(path[known] == truth[known]))

    def _asked_of(self, sequences: Sequences) -> tuple[Any, ...]:
        chain = self._chain
        return (*chain.arguments, chain.emission(sequences.table), sequences.offsets)

    def predict(
        self, X: Any, lengths: Any = None, *, sequence: str | None = None, order: str | None = None
    ) -> list[np.ndarray]:
        """The most probable path of states of every sequence (Viterbi).

        Parameters
        ----------
        X, lengths, sequence, order
            As for `fit`.

        Returns
        -------
        list of ndarray
            The states of every sequence; None at every step of an impossible one.
        """
        sequences, arguments = self._asked(X, lengths, sequence, order)
        path, score = kernels.viterbi(*arguments)
        self._warn_impossible(sequences, score, arguments)
        states = np.empty(len(self.states_) + 1, dtype=object)
        states[:-1] = self.tally_.domains["state"].levels
        return sequences.split(states[path])

    def predict_proba(
        self, X: Any, lengths: Any = None, *, sequence: str | None = None, order: str | None = None
    ) -> list[np.ndarray]:
        """p(state | whole sequence) at every step: smoothed.

        Parameters
        ----------
        X, lengths, sequence, order
            As for `fit`.

        Returns
        -------
        list of ndarray of shape (steps, states)
        """
        sequences, arguments = self._asked(X, lengths, sequence, order)
        smoothed, score = kernels.posterior(*arguments)
        self._warn_impossible(sequences, score, arguments)
        return sequences.split(smoothed)

    def filter_proba(
        self, X: Any, lengths: Any = None, *, sequence: str | None = None, order: str | None = None
    ) -> list[np.ndarray]:
        """p(state | the sequence so far) at every step.

        Parameters
        ----------
        X, lengths, sequence, order
            As for `fit`.

        Returns
        -------
        list of ndarray of shape (steps, states)
        """
        sequences, arguments = self._asked(X, lengths, sequence, order)
        filtered, score = kernels.filter(*arguments)
        self._warn_impossible(sequences, score, arguments)
        return sequences.split(filtered)
