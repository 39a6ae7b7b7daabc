"""Pairs of columns given the class: what the one-dependence estimators count, and how they learn, sample and are kept.

Everything is one tally: p(class), every column given the class, and every pair of columns given the class, as the later
ones given the class and an earlier one. So it adds, forgets exactly and leaves rows out by subtraction. The two
classifiers take these functions into their class bodies.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn, TypeVar

import numpy as np

from tallybayes._utils.frozen_value import from_json, same, to_json
from tallybayes._utils.memory import require_memory
from tallybayes._utils.sealed_file import check_no_unknown_entries
from tallybayes._utils.string_options import StringOptions
from tallybayes.data.table import Table
from tallybayes.errors import DataError, EstimateError, FileError, LabelError, NotLinearError, StatisticsError
from tallybayes.estimation.em.em_loop import EMSummary
from tallybayes.estimation.scoring.factor_scorer import factor_cells
from tallybayes.families.categorical import Categorical
from tallybayes.families.family import Family
from tallybayes.families.with_missing import WithMissing
from tallybayes.models.classification import classifier_fit
from tallybayes.models.classification.classifier import Classifier
from tallybayes.models.classification.semi_supervised import count_first, count_more
from tallybayes.models.inputs.columns import shown_columns
from tallybayes.models.inputs.discretization import DiscretizedColumns, read_levels
from tallybayes.models.inputs.features import continuous_target
from tallybayes.models.inputs.input_format import InputFormat
from tallybayes.tally.domain import Domain
from tallybayes.tally.factor import Factor, Name
from tallybayes.tally.tally import Tally

Model = TypeVar("Model", bound=Any)


@dataclass(frozen=True, eq=False)
class PairCounts:
    """Counts and probabilities over one axis of the levels of all columns, (classes, levels) or with two such axes."""

    names: tuple[Name, ...]
    domains: list[Domain]
    sizes: np.ndarray
    offsets: np.ndarray  # of every column's first level, and at the end their number
    level_counts: np.ndarray  # (classes, levels): the weight of every level
    column_totals: np.ndarray  # (classes, columns): of all rows whose cell is known
    prior_counts: np.ndarray  # (classes, levels): what the prior adds to a level
    pair_counts: np.ndarray  # (classes, levels, levels): the weight of every pair; 0 within a column
    level_column_totals: (
        np.ndarray
    )  # (classes, levels, columns): of the rows with the level whose cell of the column is known

    @cached_property
    def column(self) -> np.ndarray:
        """The column of every level."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    @cached_property
    def shares(self) -> np.ndarray:
        """p(level | class), the posterior mean: (classes, levels)."""
        total = (
            self.column_totals + np.add.reduceat(self.prior_counts, self.offsets[:-1], axis=1)
            if len(self.sizes)
            else self.column_totals
        )
        return (self.level_counts + self.prior_counts) / total[:, self.column]

    def given(self, strength: float, above: int | None = None, column: int | None = None) -> np.ndarray:
        """p(level | class, other level): (classes, other levels, levels), from a prior worth `strength` rows.

        Of all columns given all others, or of one given the one `above`.
        """
        here = slice(None) if column is None else slice(self.offsets[column], self.offsets[column + 1])
        other = slice(None) if above is None else slice(self.offsets[above], self.offsets[above + 1])
        prior = strength * self.shares[:, None, here]
        return (self.pair_counts[:, other, here] + prior) / (
            self.level_column_totals[:, other][:, :, self.column[here]] + strength
        )


def make_factors(model: Any, table: Table, target: Name, weight: Any) -> list[Factor]:
    """The factors of every column and of every pair, given the class; bins are chosen here, by the first rows."""
    _check_parameters(model)
    try:
        model._columns = read_levels(model.columns, model.bins, table, target, weight, type(model).__name__)
    except LabelError as error:
        if error.column == str(target):
            raise continuous_target(error) from None
        raise
    names = tuple(model._columns.families)
    cut = model._discretize(table)
    sizes = [len(cut.levels([name], lambda _: False)[1][0].levels) for name in names]
    check_memory(type(model).__name__, len(cut.levels([target], lambda _: True)[1][0].levels), sizes)
    return pair_factors(model._columns, target)


def pair_factors(columns: DiscretizedColumns, target: Name) -> list[Factor]:
    """Every column given the class, those counted alike together; and all later columns given the class and one."""
    names = tuple(columns.families)
    alike: dict[Family, list[Name]] = {}
    for name in names:
        alike.setdefault(columns.counted(name), []).append(name)
    singles = [Factor(tuple(some), (target,), family) for family, some in alike.items()]
    return singles + [Factor(names[i + 1 :], (target, name), Categorical()) for i, name in enumerate(names[:-1])]


def check_memory(model: str, n_classes: int, sizes: list[int]) -> None:
    """Say what all pairs of levels take, and refuse it if there is not so much."""
    total = sum(sizes)
    padded = -(-n_classes // 8) * 8
    what = f"{model}: the pairs of {total} levels in {len(sizes)} columns and {n_classes} classes"
    hint = "Leave columns with very many levels out, cut numbers into fewer bins, or use tb.NaiveBayes."
    require_memory(8 * total * total * (2 * n_classes + padded), what, hint)


WORDS = {
    **Classifier._string_options,
    "unseen": StringOptions(("missing", "error")),
    "unlabeled": StringOptions(
        ("skip", None),
        note="Pairs are counted in rows with labels; tb.NaiveBayes(unlabeled='em') uses the others, too.",
    ),
}


def _check_parameters(model: Any) -> None:
    strength: Any = model.strength
    if isinstance(strength, str) or np.ndim(strength) or not 0 < float(strength) < np.inf:
        raise DataError.wrong_type("strength", repr(strength), "a positive number of rows")


def cut(model: Any, table: Table) -> Table:
    """The rows as they are counted: numbers by their bins, once for all who ask."""
    columns, found = table.cache.get("cut", (None, None))
    if columns is not model._columns:
        found = model._columns.discretize(table)
        table.cache["cut"] = model._columns, found
    return found


def parts(model: Any) -> list[tuple[Any, Any, Any]]:
    """The columns as they come, with the family and the domain of each."""
    families = model._columns.families
    domains = model.tally_.domains
    found = ((name, family.present_family or family) for name, family in families.items())
    return [([name], family, [] if family.bins else [domains[str(name)]]) for name, family in found]


def count_first_pairs(model: Any, table: Table, weight: Any, factors: list[Factor]) -> tuple[Tally, EMSummary | None]:
    """The tally of the first rows."""
    return count_first(model, model._discretize(table), weight, factors)


def count_more_pairs(model: Any, table: Table, weight: Any) -> Tally:
    """The tally of more rows, or of some to forget."""
    return count_more(model, model._discretize(table), weight)


def single_factors(model: Any) -> list[tuple[Factor, Any]]:
    """The columns by themselves, given the class."""
    pairs = zip(model.tally_.factors, model.tally_.statistics, strict=True)
    return [(factor, statistics) for factor, statistics in pairs if factor.given == (model._target,)]


def with_prior(model: Any, tally: Tally) -> list[Factor]:
    """The factors that ``prior=`` is about: columns by themselves."""
    return [factor for factor in tally.factors if len(factor.given) == 1]


def check_prior(model: Any, factors: list[Factor]) -> None:
    """Refuse a prior that no column by itself would use."""
    Classifier._check_prior(model, [factor for factor in factors if len(factor.given) == 1])


def pairs_of(model: Any) -> PairCounts:
    """The counts of the tally in one piece, made once."""
    return model._cached("pairs", lambda: _gathered(model))


def _gathered(model: Any) -> PairCounts:
    tally = model.tally_
    domains = model.tally_.domains
    every = [name for name in model._columns.families if len(domains[str(name)].levels)]  # others were never known
    place = {name: number for number, name in enumerate(every)}
    sizes = np.array([len(domains[str(name)].levels) for name in every], dtype=np.int64)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    n_classes = len(model._class_domain.levels)
    total = int(offsets[-1])
    check_memory(type(model).__name__, n_classes, sizes.tolist())
    single, added = np.zeros((2, n_classes, total))
    joint = np.zeros((n_classes, total, total))
    known = np.zeros((n_classes, len(every)))
    fitted = model._estimated
    starts = {
        factor.columns: start.prior for (factor, _), start in zip(fitted.pairs, fitted.resolved_priors, strict=True)
    }
    for factor, counts in zip(tally.factors, tally.statistics, strict=True):
        if not factor.given:
            continue
        parts = counts.segments.split(counts.table)
        first = [place[name] for name in factor.given[1:] if name in place]
        if len(factor.given) == 1:
            concentration = np.asarray(starts[factor.columns].concentration, dtype=np.float64)
            grown = np.broadcast_to(concentration, counts.table.shape)
            for name, cells, extra in zip(factor.columns, parts, counts.segments.split(grown), strict=True):
                if name in place:
                    here = slice(offsets[place[name]], offsets[place[name] + 1])
                    single[:, here] = cells
                    added[:, here] = extra
                    known[:, place[name]] = cells.sum(axis=-1)
        elif first:
            mine = slice(offsets[first[0]], offsets[first[0] + 1])
            for name, cells in zip(factor.columns, parts, strict=True):
                if name in place:
                    here = slice(offsets[place[name]], offsets[place[name] + 1])
                    joint[:, mine, here] = cells
                    joint[:, here, mine] = cells.transpose(0, 2, 1)
    both = np.add.reduceat(joint, offsets[:-1], axis=2) if len(every) else np.zeros((n_classes, 0, 0))
    levels = [domains[str(name)] for name in every]
    return PairCounts(tuple(every), levels, sizes, offsets, single, known, added, joint, both)


def codes_of(model: Any, table: Table) -> list[np.ndarray]:
    """The levels of every column of raw rows as codes; −1 where a cell is missing or its level was never seen."""
    pairs = model._pairs
    if not pairs.names:
        return []
    cut = model._discretize(table)
    if model.unseen == "error":
        return list(factor_cells(cut, pairs.names, Categorical(), pairs.domains, "error").T)
    codes, found = cut.levels(pairs.names, lambda _: False)
    columns = list(codes.columns.T) if isinstance(codes.columns, np.ndarray) else list(codes.columns)
    out = []
    for column, local, domain, name in zip(columns, found, pairs.domains, pairs.names, strict=True):
        where = domain.positions_of(local.in_kind_of(domain.renamed(str(name))).levels)
        same_codes = np.array_equal(where, np.arange(len(where)))
        out.append(np.asarray(column) if same_codes else np.append(where, -1).astype(np.int32)[column.astype(np.intp)])
    return out


# ---- What is kept, and what there is none of ---------------------------------------------------------------------


def take_from(model: Any, other: Any) -> Any:
    """The shape of the rows, and how their columns are cut."""
    model._columns = other._columns
    return Classifier._copy_input_format(model, other)


def shape_to_json(model: Any) -> dict[str, Any]:
    """The shape of the rows and how their columns are cut, for a file."""
    discretization = {name: to_json(value) for name, value in model._columns._asdict().items()}
    return model._shape.to_json() | {"discretization": discretization}


def shape_from_json(model: Any, state: dict[str, Any], tally: Tally) -> None:
    """What `shape_to_json` gave, checked."""
    kept = state.pop("discretization")
    found = DiscretizedColumns(*(from_json(kept.pop(name)) for name in DiscretizedColumns._fields))
    check_no_unknown_entries("the discretization of the columns", kept)
    columns, left_out = found
    families = isinstance(columns, dict) and all(isinstance(family, Family) for family in columns.values())
    if not families or not isinstance(left_out, dict):
        raise FileError(f"the columns of the model are {columns!r:.60}; expected a family with levels for each.")
    model._shape = InputFormat.from_json(state, tally)
    model._columns = found
    _check_tally(model._columns, tally, model._shape.target)


def _check_tally(columns: DiscretizedColumns, tally: Tally, target: Name) -> None:
    wanted = [Factor(target, (), Categorical()), *pair_factors(columns, target)]
    if [factor.statistics_key for factor in tally.factors] != [factor.statistics_key for factor in wanted]:
        raise StatisticsError(
            "this tally is not one of pairs: expected p(class), and every column and pair of columns given it, found\n"
            + "\n".join("    " + line for line in tally.summary().splitlines()[:20])
        )


def fit_tally(model: Model, tally: Tally) -> Model:
    """Learn from a tally counted elsewhere: in a file, a shard, another model.

    Parameters
    ----------
    tally : Tally
        As another such model has it; where numbers are cut into bins, ``columns=`` says how, as ``columns_`` does.

    Returns
    -------
    self
    """
    model._check_settings()
    targets = [factor.columns[0] for factor in tally.factors if not factor.given]
    names = [name for factor in tally.factors if len(factor.given) == 1 for name in factor.columns]
    families = {n: f.family for f in tally.factors if len(f.given) == 1 for n in f.columns}
    absent = {name for name, domain in tally.domains.items() if domain.has_missing_level}
    families = {name: WithMissing(family) if str(name) in absent else family for name, family in families.items()}
    asked = model.columns if isinstance(model.columns, Mapping) else {}
    columns = DiscretizedColumns({name: asked.get(name, families[name]) for name in names}, {})
    order = {name: place for place, name in enumerate(_in_order(tally, names))}
    columns = DiscretizedColumns(dict(sorted(columns.families.items(), key=lambda item: order[item[0]])), {})
    if len(targets) != 1:
        raise StatisticsError(f"this tally has {len(targets)} factors without anything given; expected one, p(class).")
    _check_tally(columns, tally, targets[0])
    fresh = copy.copy(model)
    fresh._shape = InputFormat.of_tally(targets[0], names)
    fresh._columns = columns
    return model._copy_input_format(fresh)._set_tally(tally)


def _in_order(tally: Tally, names: list[Name]) -> list[Name]:
    """The columns in the order in which their pairs were counted."""
    parents = [factor.given[1] for factor in tally.factors if len(factor.given) == 2]
    return [*parents, *(name for name in names if name not in parents)]


def check_added(model: Any, other: Any) -> None:
    """Refuse models whose columns were cut differently, by name."""
    mine = model._columns.families
    its = other._columns.families
    for name in [*mine, *its]:
        if not same(mine.get(name), its.get(name)):
            found = [one.get(name, "left out") for one in (mine, its)]
            raise StatisticsError(
                f"the models cut column {name!r} differently, {found[0]!r} and {found[1]!r}; expected the same bins.\n"
                "    Fix the choice of one for both: columns=one.columns_."
            )


def retally(model: Any, other: Any) -> Tally:
    """The same tally, unless the other model would cut columns otherwise."""
    if not same(model.columns, other.columns) or model.bins != other.bins:
        raise DataError("columns= and bins= say what is counted.\n    Fit again to count otherwise.")
    tally: Tally = model.tally_
    return tally


def columns_of(model: Any) -> dict[Name, Family]:
    """The family of every column, bins as they were found at the first fit: ``columns=`` takes it."""
    classifier_fit.class_domain(model)  # is it fitted?
    return dict(model._columns.families)


def family_of(model: Any, factor: Factor, name: Name) -> Family:
    """The family of a column as it came: numbers have bins."""
    return model._columns.families.get(name, factor.family)


def shown(model: Any) -> list[str]:
    """Lines that say how columns are read, and which are left out."""
    return shown_columns(model._columns.families, model._columns.dropped_columns)


def left_out_of(model: Any) -> dict[Name, str]:
    """The columns that take no part, and why."""
    classifier_fit.class_domain(model)
    return dict(model._columns.dropped_columns)


def check_estimated(model: Any, log_prior: np.ndarray) -> None:
    """Refuse to score without any class; all else has a prior."""
    if not len(log_prior):
        raise DataError("no class is left to predict: every row was forgotten.\n    Learn from at least one row.")


def sharing(model: Any, other: Any) -> Any:
    """The model with the counts of another that reads rows alike, and with what is made of them."""
    found = model._copy_input_format(other)._set_tally(other.tally_)
    found._cache |= {"estimated": other._estimated_classifier, "pairs": other._pairs}
    return found


def refuse_measure(model: Any, what: str) -> NoReturn:
    """Refuse evidence and its like."""
    raise EstimateError(
        f"{type(model).__name__} has no {what}: its tables have priors made of the same counts, so nothing is left to "
        "integrate.\n    tb.cross_validate and tb.leave_one_out judge it by rows it has not seen."
    )


def refuse_linear(model: Any, *arguments: object, **more: object) -> NoReturn:
    """Refuse coefficients: columns act in pairs."""
    raise NotLinearError(
        f"the log-odds of {type(model).__name__} are not linear: columns act in pairs.\n"
        "    tb.NaiveBayes has a linear form."
    )


def refuse_interval(model: Any, *arguments: object, **more: object) -> NoReturn:
    """Refuse credible intervals."""
    raise EstimateError(
        f"{type(model).__name__} has no credible intervals of its probabilities: the priors of its tables are made of "
        "the same counts.\n    tb.NaiveBayes has them."
    )


def refuse_posterior(model: Any) -> NoReturn:
    """Refuse beliefs."""
    raise EstimateError(
        f"{type(model).__name__} has no posterior: the priors of its tables are made of the same counts.\n"
        "    parameters_ has the tables; tb.NaiveBayes has beliefs."
    )


def dense_only(model: Any, tags: Any) -> Any:
    """What scikit-learn may pass: no sparse matrices."""
    tags.input_tags.sparse = False
    return tags
