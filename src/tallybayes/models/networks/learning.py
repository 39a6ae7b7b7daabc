"""NetworkLearner: the tables of a Bayesian network, counted."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tallybayes.errors import DataError, FileError, StatisticsError, TooLargeError
from tallybayes.families.categorical import Categorical
from tallybayes.families.estimates import read_estimate
from tallybayes.families.family import Family
from tallybayes.families.gaussian import Gaussian
from tallybayes.families.multinomial import Multinomial
from tallybayes.inference.em import Climbed, check_settings
from tallybayes.memory import available_memory
from tallybayes.models.networks.graph import Graph
from tallybayes.models.networks.parameters import NetworkParameters
from tallybayes.models.networks.prior import BDe
from tallybayes.models.networks.tables import NetworkTables
from tallybayes.sources.collect import check_weight, count
from tallybayes.sources.table import Table, open_table
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Factor, Name, Schema
from tallybayes.tally.tally import Tally

_MOST_PARENTS = 60  # NumPy's arrays have 64 axes at most


class NetworkLearner(NetworkParameters):
    """Tables by counting: one factor p(node | parents) for every node, or for nodes that are alike."""

    columns: Any
    missing: str

    def fit(self, X: Any, *, sample_weight: Any = None, names: Any = None) -> Self:
        """Count the rows, forgetting any counted before.

        Parameters
        ----------
        X : data frame, mapping of columns, list of dicts, or array
            Columns that are no nodes are ignored. None and NaN are missing.
        sample_weight : array-like of shape (n,), or the name of a column, optional
        names : sequence, optional
            The names of an array's columns; without, its nodes are called 0, 1, 2, …

        Returns
        -------
        self
        """
        return self._learn(self._open(X, names), sample_weight)

    def partial_fit(self, X: Any, *, sample_weight: Any = None, names: Any = None) -> Self:
        """Count more rows; new levels may appear. Any order, any split gives what `fit` on all gives.

        Parameters
        ----------
        X, sample_weight, names
            As for `fit`. With ``missing="em"`` no cell may be missing here.

        Returns
        -------
        self
        """
        table = self._open(X, names)
        if not hasattr(self, "tally_"):
            return self._learn(table, sample_weight)
        self._refuse_given("more rows cannot be added to")
        return self._adopt(self._sum(self._count_more(table, sample_weight)))

    def forget(self, X: Any, *, sample_weight: Any = None, names: Any = None) -> Self:
        """Take rows out again, exactly: as if they had never been seen.

        Parameters
        ----------
        X, sample_weight, names
            Rows that were learned, as for `fit`.

        Returns
        -------
        self
        """
        check_is_fitted(self, "tally_")
        self._refuse_given("no row can be taken out of")
        return self._adopt(self.tally_ - self._count_more(self._open(X, names), sample_weight))

    def fit_tally(self, tally: Tally) -> Self:
        """Learn from a tally counted elsewhere: by another model, in a file, a shard, a database.

        Parameters
        ----------
        tally : Tally
            A factor p(columns | parents) for every node; several nodes with the same parents may be in one.

        Returns
        -------
        self
        """
        if not isinstance(tally, Tally):
            raise DataError.wrong_type("tally", repr(tally)[:60], "a Tally, as tb.count or a fitted model has it")
        self._check_structure(tally)
        self._check_prior(list(tally.factors))
        self._adopt(self._in_order(tally))._given = None
        return self

    def __add__(self, other: Self) -> Self:
        for model in (self, other):
            if isinstance(model, NetworkLearner):
                model._refuse_given("nothing can be added to")
        if isinstance(other, NetworkLearner) and hasattr(self, "tally_") and hasattr(other, "tally_"):
            self._sum(other.tally_, check_only=True)
        return super().__add__(other)

    def _learn(self, table: Table, sample_weight: Any) -> Self:
        read_estimate(self.estimate)
        check_settings(self)
        for name, known in (("missing", ("available", "em")), ("unseen", ("missing", "error"))):
            if getattr(self, name) not in known:
                raise DataError(f"{name} is {getattr(self, name)!r}; expected {known[0]!r} or {known[1]!r}.")
        weight = check_weight(named_weights(table, sample_weight), table.n_rows)
        if table.n_rows == 0 or (weight is not None and not (weight > 0).any()):
            found = "there are 0 rows to learn from" if table.n_rows == 0 else "the weight of every row is zero"
            raise DataError(f"{found}; expected at least 1 that counts.")
        graph = Graph.read(self.parents)
        table = self._with_hidden(graph, table)
        factors = self._make_factors(graph, table)
        self._check_prior(factors)
        tally = self._with_all_levels(self._count(table, weight, factors), table, weight)
        climbed = None
        if self.missing == "em":
            from tallybayes.models.networks.em import learn_network

            tally, climbed = learn_network(self, table, weight, tally)
        self._given = None
        return self._adopt(tally, climbed)

    def _with_hidden(self, graph: Graph, table: Table) -> Table:
        """The table with columns for nodes that are never seen, if EM can expect them."""
        absent = [node for node in graph.nodes if node not in table.columns]
        declared = self.columns if isinstance(self.columns, Mapping) else {}
        for node in absent if self.missing == "em" else ():
            if getattr(declared.get(node), "levels", None) is not None:
                table = table.with_column(node, np.full(table.n_rows, None))
        absent = [node for node in absent if node not in table.columns]
        if absent:
            error = DataError.unknown_column(absent, table.columns)
            raise DataError(f"{error}\n    A node that is never seen needs missing='em' and {_declared(absent[0])}.")
        return table

    def _with_all_levels(self, tally: Tally, table: Table, weight: Any) -> Tally:
        """The tally with levels that occur only beside missing parents, where EM expects these; else they are lost."""
        labels = tuple(name for factor in tally.factors for name in factor.level_columns)
        if any(_may_miss(table.columns[name]) for name in labels):
            seen = count(table, [Factor(labels, (), Categorical())], weight=weight).domains
            more = {n: d.union(Domain(seen[n].levels, n, ordered=d.ordered)) for n, d in tally.domains.items()}
            if self.missing == "em":
                tally = tally.align(more)
            for name, domain in more.items():
                lost = [level for level in domain.levels if level not in tally.domains[name].index]
                if lost and tally.domains[name].levels:
                    warnings.warn(
                        f"level {lost[0]!r} of {name!r} occurs only where a parent is missing: no table counts it.\n"
                        f"    Pass {_declared(name)}, or missing='em'.",
                        UserWarning,
                        stacklevel=4,
                    )
        empty = [name for name, domain in tally.domains.items() if not domain.levels]
        if empty:
            beside, other = ("", "") if self.missing == "em" else (" together with its parents", ", or missing='em'")
            raise DataError(
                f"no row shows {empty[0]!r}{beside}, so its levels are not known.\n"
                f"    Pass {_declared(empty[0])}{other}."
            )
        return tally

    def _open(self, X: Any, names: Any = None) -> Table:
        table = open_table(X, None if names is None else list(names))
        if names is None and list(table.columns) == list(range(len(table.columns))):
            unnamed = [node for node in Graph.read(self.parents).nodes if isinstance(node, str)]
            if unnamed:
                raise DataError(
                    f"the data have no column names, so which column is {unnamed[0]!r} is not known.\n"
                    "    Pass names=[...], one for every column, or a data frame or mapping of columns."
                )
        return table

    def _count(self, table: Table, weight: Any, factors: list[Factor], like: Tally | None = None) -> Tally:
        free = {name for f in factors if getattr(f.family, "levels", None) is None for name in f.level_columns}
        schema = Schema(ordered=tuple(str(name) for name in table.columns if name in free))
        table = self._check_tables(table, factors, free)
        return count(table, factors, weight=weight, schema=schema, like=like)

    def _count_more(self, table: Table, sample_weight: Any) -> Tally:
        """The tally of rows that are added to others, or taken out of them."""
        if self.missing == "em":
            for factor in self.tally_.factors:
                for name in factor.level_columns:
                    if (np.asarray(table.levels([name], lambda _: True)[0].columns[0]) < 0).any():
                        raise DataError(
                            f"column {name!r} has missing cells, which under missing='em' are expected from all rows "
                            "at once.\n    Use fit on all rows, or leave the incomplete ones out."
                        )
        return self._count(table, named_weights(table, sample_weight), list(self.tally_.factors), self.tally_)

    def _make_factors(self, graph: Graph, table: Table) -> list[Factor]:
        """One factor for the nodes that have the same parents and family."""
        families = self._families(graph, table)
        blocks: dict[Any, list[Name]] = {}
        for node, parents in graph.parents.items():
            alone = not families[node].columnwise or table.is_block(node)
            blocks.setdefault((parents, families[node], node if alone else None), []).append(node)
        return [Factor(tuple(nodes), parents, family) for (parents, family, _), nodes in blocks.items()]

    def _families(self, graph: Graph, table: Table) -> dict[Name, Family]:
        """What every node is: as `columns` says; else floats without children are Gaussian, all else labels."""
        given: Mapping[Name, Any] = {}
        if isinstance(self.columns, Mapping):
            given = self.columns
            graph.require(given)
        elif isinstance(self.columns, Family):
            given = dict.fromkeys(graph.nodes, self.columns)
        elif self.columns != "auto":
            raise DataError.wrong_type("columns", repr(self.columns), "'auto', a family, or {node: family}")
        children = graph.children()
        found: dict[Name, Family] = {}
        for node in graph.nodes:
            measured = not children[node] and is_measured(table, node)
            default = (Multinomial() if table.kind(node) == "sparse" else Gaussian()) if measured else Categorical()
            found[node] = given.get(node, default)
            if not isinstance(found[node], Family):
                raise DataError.wrong_type(
                    f"the family of {node!r}", repr(found[node]), "a family such as tb.Poisson()"
                )
            if children[node] and found[node].reads != "codes":
                raise DataError(
                    f"node {node!r} is {found[node]!r} and has the child {children[node][0]!r}; expected labels: only "
                    "then are all questions answered exactly.\n    Cut it into bins, or turn the edge round."
                )
        return found

    def _check_tables(self, table: Table, factors: list[Factor], free: set[Name]) -> Table:
        """Refuse tables that memory cannot hold, before they are made; the table, its labels as they are counted."""
        labels = {name: factor.family for factor in factors for name in factor.level_columns}
        absent = [name for name in labels if name not in table.columns]
        if absent:
            raise DataError.unknown_column(absent, table.columns)
        names = [name for name in table.columns if name in labels]
        sets = [(*f.given, column) for f in factors for column in f.level_columns or f.given[:1] if f.given]
        table = table.compacted(sets, lambda name: name in free)
        domains = table.levels(names, lambda name: name in free)[1]
        declared = {name: len(getattr(labels[name], "levels", None) or ()) for name in names}
        _check_sizes(
            factors, {name: max(1, len(d.levels), declared[name]) for name, d in zip(names, domains, strict=True)}
        )
        return table

    def _sum(self, more: Tally, *, check_only: bool = False) -> Tally:
        """The counts of this and of more rows, if memory can hold them."""
        mine = self.tally_
        united = {name: d.union(more.domains[name]) if name in more.domains else d for name, d in mine.domains.items()}
        names = {name for factor in mine.factors for name in (*factor.given, *factor.level_columns)}
        _check_sizes(mine.factors, {name: max(1, len(united[str(name)].levels)) for name in names})
        return mine if check_only else mine + more

    def _in_order(self, tally: Tally) -> Tally:
        """The same counts with the parents of every node in the order of the model."""
        wanted = Graph.read(self.parents).parents
        factors, statistics = [], []
        for factor, part in zip(tally.factors, tally.statistics, strict=True):
            orders = {wanted[name] for name in factor.columns}
            if orders == {factor.given}:
                factors.append(factor)
                statistics.append(part)
                continue
            for place, name in enumerate(factor.columns):
                one = part if len(factor.columns) == 1 else part.columns(np.array([place]))
                factors.append(Factor(name, wanted[name], factor.family))
                statistics.append(one.transpose_groups([factor.given.index(parent) for parent in wanted[name]]))
        return Tally(factors, statistics, tally.domains, tally.schema, soft=tally.soft)

    def _check_structure(self, tally: Tally) -> None:
        """Refuse a tally of another structure."""
        wanted = {node: set(parents) for node, parents in Graph.read(self.parents).parents.items()}
        found = {name: set(factor.given) for factor in tally.factors for name in factor.columns}
        whole = {factor.columns: factor for factor in tally.factors if not factor.family.columnwise}
        if found != wanted or any(len(columns) > 1 for columns in whole):
            raise StatisticsError(
                f"this tally is not that of the network {_structure(wanted)}: found\n"
                + "\n".join("    " + line for line in repr(tally).splitlines())
            )
        families = {name: factor.family for factor in tally.factors for name in factor.columns}
        for name in dict.fromkeys(name for factor in tally.factors for name in factor.given):
            if families[name].reads != "codes":
                raise StatisticsError(f"the parent {name!r} is {families[name]!r} in this tally; expected labels.")

    def _take_from(self, other: Any) -> Self:
        self._given = other._given
        return self

    def _adopt(self, tally: Tally, climbed: Climbed | None = None) -> Self:
        self._check_structure(tally)
        if isinstance(self.prior, BDe):
            tally = self.prior.declare(tally)
        return super()._adopt(tally, climbed)

    def _shape_to_json(self) -> dict[str, Any]:
        """All that is known of the shape of the input is in the tally."""
        return {}

    def _shape_from_json(self, state: dict[str, Any], tally: Tally) -> None:
        """Nothing to read; see `_shape_to_json`."""

    def _check_loaded(self) -> None:
        """Refuse a tally that is no network."""
        _ = self._nodes, self.levels_

    def _to_parts(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        state, arrays = super()._to_parts()
        if self._given is None:
            return state, arrays
        tables = {f"given/{place}": self._given.tables[node] for place, node in enumerate(self.graph_.nodes)}
        return state | {"given": True}, arrays | tables

    def _from_parts(self, state: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        super()._from_parts(state, arrays)
        if state.pop("given", None):
            nodes = self.graph_.nodes
            if any(f"given/{place}" not in arrays for place in range(len(nodes))):
                raise FileError("the network's tables are not all in its file.")
            tables = {node: arrays.pop(f"given/{place}") for place, node in enumerate(nodes)}
            self._given = NetworkTables(self.graph_.parents, self.levels_, tables)


def named_weights(table: Table, sample_weight: Any) -> Any:
    """Weights, which may be a column of the table."""
    return np.asarray(table._column(sample_weight)) if isinstance(sample_weight, str) else sample_weight


def is_measured(table: Table, node: Name) -> bool:
    """Whether a column's type is that of measured numbers: floats. Whole numbers are labels here."""
    return table.is_block(node) or table.is_float(node)


def _declared(node: Name) -> str:
    """How to declare levels, for messages."""
    return f"columns={{{node!r}: tb.Categorical(levels=[...])}}"


def _may_miss(column: Any) -> bool:
    """Whether a column's type has room for missing cells."""
    return not isinstance(column, np.ndarray) or column.dtype.kind not in "biu"


def _check_sizes(factors: Iterable[Factor], sizes: Mapping[Name, int]) -> None:
    """Refuse tables that memory cannot hold."""
    available = available_memory()
    for factor in factors:
        n_groups = math.prod(sizes[name] for name in factor.given)
        for name in factor.columns:
            n_cells = n_groups * sizes.get(name, 1)
            available -= 8 * n_cells * 4  # its counts, twice while they are laid out, and the probabilities
            if available < 0 or len(factor.given) > _MOST_PARENTS:
                raise TooLargeError.table(name, factor.given, n_cells)


def _structure(parents: Mapping[Name, set[Name]]) -> str:
    shown = [
        f"{node} | {', '.join(sorted(map(str, given))[:6])}{', …' * (len(given) > 6)}" if given else str(node)
        for node, given in list(parents.items())[:6]
    ]
    return "; ".join(shown) + ("; …" if len(parents) > 6 else "")
