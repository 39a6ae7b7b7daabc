"""User-specified parameters: dictionaries by label, data frames, series, or arrays with labels."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tallybayes.errors import DataError, EstimateError, LabelError, short_repr
from tallybayes.families._shared.fixed_parameters import check_parameters, parameter_names, prior_of_strength
from tallybayes.families.bernoulli import Bernoulli
from tallybayes.families.categorical import Categorical
from tallybayes.families.family import Family
from tallybayes.families.gaussian import Gaussian
from tallybayes.families.log_normal import LogNormal
from tallybayes.families.multivariate_gaussian import MultivariateGaussian
from tallybayes.families.poisson import Poisson
from tallybayes.models.inputs.columns import read_family
from tallybayes.tally.domain import Domain, Schema
from tallybayes.tally.factor import Factor, Name
from tallybayes.tally.fixed_parameter_tally import empty_tally
from tallybayes.tally.tally import Tally
from tallybayes.typing import Columns

# Families with named parameters; other mappings hold probabilities of labels.
_BY_NAMES: dict[frozenset[str], Family] = {
    frozenset({"mean", "variance"}): Gaussian(),
    frozenset({"mean of log", "variance of log"}): LogNormal(),
    frozenset({"mean", "covariance"}): MultivariateGaussian(),
    frozenset({"rate"}): Poisson(),
    frozenset({"probability"}): Bernoulli(),
}
_MEANT = dict.fromkeys(("std", "sd", "sigma"), "Pass its square as 'variance'.")
_MEANT |= {"var": "Call it 'variance'.", "mu": "Call it 'mean'.", "lambda": "Call it 'rate'."}


class ParameterBlock(NamedTuple):
    """One block of columns: names, family, numbers by name (groups first), and the levels of labels."""

    columns: tuple[Name, ...]
    family: Family
    numbers: dict[str, np.ndarray]
    levels: list[tuple[Any, ...]]


def nested_mapping(value: Any) -> Any:
    """Return a data frame, series or parameter table as nested mappings, rows first; other values as they are."""
    if is_marginal(value):
        return {level: value[level] for level in value.columns}
    if hasattr(value, "to_frame") and not isinstance(value, Mapping) and not hasattr(value, "index"):
        value = value.to_frame()
    if hasattr(value, "index") and hasattr(value, "to_numpy"):
        rows = list(value.index)
        if hasattr(value, "columns"):
            columns = list(value.columns)
            return {
                row: dict(zip(columns, line, strict=True)) for row, line in zip(rows, value.to_numpy(), strict=True)
            }
        return dict(zip(rows, value.to_numpy(), strict=True))
    return value


def is_marginal(value: object) -> bool:
    """Return whether this is a parameter table without parents, such as p(class)."""
    return hasattr(value, "given") and not value.given


def read_labels(value: Any, given: Iterable[Any] | None, what: str) -> list[Any]:
    """Return the labels of a first axis: those given, those of a mapping or frame, or positions."""
    value = nested_mapping(value)
    if given is not None:
        return list(Domain(list(given), what).levels)
    if isinstance(value, Mapping):
        return list(Domain(list(value), what).levels)
    if np.ndim(value) == 0:
        raise DataError.wrong_type(what, short_repr(value), "a mapping by label, a series, or one number for each")
    return list(range(len(value)))


def read_row(value: Any, labels: Sequence[Any], what: str, *, absent: float | None = 0.0) -> np.ndarray:
    """Return one number for each label; labels that a mapping lacks get `absent`, or raise if it is None."""
    value = nested_mapping(value)
    if isinstance(value, Mapping):
        known = {_plain(label): number for label, number in value.items()}
        unknown = [label for label in known if label not in set(labels)]
        lacking = [label for label in labels if label not in known]
        if unknown or (lacking and absent is None):
            found = f"unknown to it: {unknown[0]!r}" if unknown else f"without {lacking[0]!r}"
            raise LabelError(f"{what} is {found}; expected {', '.join(map(repr, list(labels)[:8]))}.")
        value = [known.get(label, absent) for label in labels]
    row = _numbers(value, what)
    if row.shape != (len(labels),):
        raise DataError.wrong_shape(
            what, row.shape, f"({len(labels)},): one number for each of {short_repr(list(labels))}"
        )
    return row


def read_table(value: Any, rows: Sequence[Any], columns: Sequence[Any], what: str) -> np.ndarray:
    """Return a number for every pair of row and column labels; values that a mapping lacks are 0."""
    parts = read_groups(value, rows, what)
    return np.stack([read_row(part, columns, f"{what}, {row!r},") for row, part in zip(rows, parts, strict=True)])


def read_groups(value: Any, groups: Sequence[Any], what: str) -> list[Any]:
    """Return the parameters of every group, in their order."""
    value = nested_mapping(value)
    if isinstance(value, Mapping):
        known = {_plain(label): part for label, part in value.items()}
        wrong = [label for label in known if label not in set(groups)] or [g for g in groups if g not in known]
        if wrong:
            has = "has" if wrong[0] in known else "lacks"
            raise LabelError(f"{what} {has} {wrong[0]!r}; expected {', '.join(map(repr, list(groups)[:8]))}.")
        return [known[group] for group in groups]
    if not hasattr(value, "__len__") or len(value) != len(groups):
        n_found = f"{len(value)} parts" if hasattr(value, "__len__") else short_repr(value)
        raise DataError.wrong_type(what, n_found, f"one for each of {short_repr(list(groups))}")
    return list(value)


def read_probabilities(value: Any, labels: Sequence[Any], what: str) -> np.ndarray:
    """Return probabilities of labels, which sum to 1."""
    row = read_row(value, labels, what)
    parameters = check_parameters(Categorical(), {"probability": row}, [len(labels)], what)
    return np.asarray(parameters.table)


def read_columns_stated(
    value: Mapping[Any, Any], groups: Sequence[Any], families: Columns | None = None, levels: Any = None
) -> list[ParameterBlock]:
    """Return the parameters of every column, or tuple of columns of one block; like columns are one block.

    Parameters
    ----------
    value : mapping from column to its parameters, by group
    groups : sequence of labels
    families : Family, mapping from column to one, or None
        Families that the names of the parameters do not determine.
    levels : mapping from column to its labels, or None
        For arrays; mappings have labels.
    """
    found: list[ParameterBlock] = []
    for key, part in value.items():
        family = families.get(key) if isinstance(families, Mapping) else families
        family = None if family is None else read_family(family, f"the family of {short_repr(key)}")
        family = family if isinstance(family, Family) else None
        known = levels.get(key) if isinstance(levels, Mapping) else levels
        found.append(_read_column(key, part, groups, family, known))
    together: list[ParameterBlock] = []
    for one in found:
        like = next(
            (k for k, other in enumerate(together) if other.family == one.family and one.family.columnwise), None
        )
        if like is None:
            together.append(one)
            continue
        other = together[like]
        numbers = {name: np.concatenate([other.numbers[name], part], axis=-1) for name, part in one.numbers.items()}
        together[like] = ParameterBlock(other.columns + one.columns, one.family, numbers, other.levels + one.levels)
    return together


def _read_column(key: Any, value: Any, groups: Sequence[Any], family: Family | None, levels: Any) -> ParameterBlock:
    """Return the parameters of one column, or of one block."""
    names = key if isinstance(key, tuple) else (key,)
    what = f"p({', '.join(map(str, names))} | …)"
    parts = [nested_mapping(part) for part in read_groups(value, groups, what)]
    family = _recognized(parts, levels, what) if family is None else family
    if not parameter_names(family):
        raise DataError.wrong_type(f"the family of {key!r}", repr(family), "one whose parameters have numbers")
    wheres = [f"{what} of {group!r}" for group in groups]
    if family.cell_type == "codes":
        labels = _levels_of(parts, levels if levels is not None else getattr(family, "levels", None), what)
        family = Categorical(tuple(labels)) if getattr(family, "levels", None) is None else family
        rows = [read_row(part, labels, where) for part, where in zip(parts, wheres, strict=True)]
        return _checked(ParameterBlock(names, family, {"probability": np.stack(rows)}, [tuple(labels)]), wheres)
    wanted = parameter_names(family)
    numbers: dict[str, list[np.ndarray]] = {name: [] for name in wanted}
    for part, where in zip(parts, wheres, strict=True):
        for name, number in _by_name(part, wanted, names, family, where).items():
            numbers[name].append(number)
    try:
        arrays = {name: np.stack(each) for name, each in numbers.items()}
    except ValueError:
        raise DataError.wrong_type(what, "of different sizes", "as many numbers for every group") from None
    return _checked(ParameterBlock(names, family, arrays, []), wheres)


def _checked(one: ParameterBlock, wheres: Sequence[str]) -> ParameterBlock:
    """Return the block if the parameters of every group are valid; the error names the group."""
    cells = sum(sizes_of(one)) or (len(one.columns) if len(one.columns) > 1 else None)
    for k, where in enumerate(wheres):
        numbers = {name: part[k] for name, part in one.numbers.items()}
        for name, part in numbers.items():
            width = next(iter(numbers.values())).shape[-1] if cells is None else cells
            expected = (width, width) if name == "covariance" else (width,)
            if part.shape != expected:
                raise DataError.wrong_shape(f"the {name} of {where}", part.shape, f"{expected}")
        check_parameters(one.family, numbers, sizes_of(one), where)
    return one


def sizes_of(one: ParameterBlock) -> list[int]:
    """Return the number of levels or bins of each column; none for numeric columns."""
    return [len(levels) for levels in one.levels] or [len(one.family.bins)] * (
        len(one.columns) if one.family.bins else 0
    )


def _by_name(part: Any, wanted: Sequence[str], names: Sequence[Name], family: Family, where: str) -> dict[str, Any]:
    """Return the parameters of one group by name, each an array."""
    columns = family.bins if family.bins else names
    part = _as_mapping(part, wanted, family, where)
    out = {}
    for name in wanted:
        number = nested_mapping(part[name])
        if name == "covariance":
            if isinstance(number, Mapping):
                number = [read_row(number[row], columns, f"the covariance of {where}", absent=None) for row in columns]
            out[name] = np.atleast_2d(_numbers(number, f"the covariance of {where}"))
        elif isinstance(number, Mapping):
            absent = 0.0 if name == "probability" and (family.is_bag_of_words or family.bins) else None
            out[name] = read_row(number, columns, f"the {name} of {where}", absent=absent)
        else:
            out[name] = np.atleast_1d(_numbers(number, f"the {name} of {where}"))
    return out


def _as_mapping(part: Any, wanted: Sequence[str], family: Family, where: str) -> Mapping[str, Any]:
    """Return the parameters of one group by their names; raise EstimateError for other names."""
    if isinstance(part, Mapping) and len(wanted) > 1:  # a ParameterTable also has the std and names of logarithms
        part = {str(name).removesuffix(" of log"): number for name, number in part.items()}
        part = {name: number for name, number in part.items() if name != "std" or "variance" not in part}
    if isinstance(part, Mapping) and family.is_binary and set(part) == {0, 1}:
        part = part[1]
    if len(wanted) == 1 and not (isinstance(part, Mapping) and set(part) == set(wanted)):
        part = {wanted[0]: part}
    if not isinstance(part, Mapping) and len(part) == len(wanted):
        part = dict(zip(wanted, part, strict=True))  # as Normal(mean, variance)
    if not isinstance(part, Mapping) or set(part) != set(wanted):
        found = sorted(map(str, part)) if isinstance(part, Mapping) else short_repr(part)
        meant = [hint for name, hint in _MEANT.items() if isinstance(found, list) and name in found]
        hint = f"\n    {meant[0]}" if meant else ""
        raise EstimateError(f"{where} has {found}; expected {' and '.join(map(repr, wanted))} of {family!r}.{hint}")
    return part


def _recognized(parts: Sequence[Any], levels: object, what: str) -> Family:
    """Return the family of parameter names: Bernoulli for a single number, Categorical for other mappings."""
    first = parts[0]
    if isinstance(first, Mapping):
        said = set(first) - {"std", "std of log"}
        found = next((family for names, family in _BY_NAMES.items() if said == names), None)
        if found is None and set(map(str, first)) & {"mean", *_MEANT}:
            found = Gaussian()  # whose error lists the expected names
        return Categorical() if found is None else found
    if np.ndim(first) == 0:
        return Bernoulli()
    if levels is not None:
        return Categorical()
    raise DataError.wrong_type(
        what, "numbers without a name", "{label: probability}, or {'mean': …, 'variance': …}, for every group",
        "Pass levels= for the labels of an array, or columns= for another family.",
    )  # fmt: skip


def _levels_of(parts: Sequence[Any], given: Iterable[Any] | None, what: str) -> list[Any]:
    """Return the levels of a column: those given, or all that some group names."""
    if given is not None:
        return list(Domain(list(given), what).levels)
    if not all(isinstance(part, Mapping) for part in parts):
        raise DataError.wrong_type(what, "an array without labels", "a mapping by label, or levels=")
    return list(Domain(dict.fromkeys(_plain(label) for part in parts for label in part), what).levels)


def _numbers(value: npt.ArrayLike, what: str) -> np.ndarray:
    try:
        return np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise DataError.wrong_type(what, short_repr(value), "numbers") from None


def _plain(label: Hashable) -> Any:
    """Return a label as domains store it."""
    return Domain([label], "a label").levels[0]


# ---- Models -------------------------------------------------------------------------------------------------


def tally_and_parameters(
    group: Factor,
    probabilities: np.ndarray,
    given: Sequence[tuple[Factor, ParameterBlock]],
    domains: dict[str, Domain],
    schema: Schema,
) -> tuple[Tally, tuple[Any, ...]]:
    """Return an empty tally, and the parameters of its factors: p(group), then p(columns | group)."""
    parameters = [
        check_parameters(group.family, {"probability": probabilities}, [len(probabilities)], f"p({group.columns[0]})")
    ]
    domains = dict(domains)
    for factor, one in given:
        for name, levels in zip(one.columns, one.levels, strict=False):
            domains[str(name)] = Domain(levels, str(name), declared=levels)
        what = f"p({', '.join(map(str, factor.columns))} | …)"
        parameters.append(check_parameters(factor.family, one.numbers, sizes_of(one), what))
    widths = [
        0,
        *(one.numbers[parameter_names(one.family)[0]].shape[-1] // (len(one.family.bins) or 1) for _, one in given),
    ]
    return empty_tally([group, *(factor for factor, _ in given)], widths, domains, schema), tuple(parameters)


def families_of(read: Sequence[ParameterBlock]) -> dict[Any, Family]:
    """Return the value of ``columns`` with these families."""
    found: dict[Any, Family] = {}
    for one in read:
        together = not one.family.columnwise and len(one.columns) > 1
        found |= {one.columns: one.family} if together else dict.fromkeys(one.columns, one.family)
    return found


def check_strength(strength: float) -> float:
    """Raise an error unless the strength is a positive number of rows; return it."""
    if not isinstance(strength, int | float | np.integer | np.floating) or not 0 < strength < np.inf:
        raise DataError.wrong_type("strength", repr(strength), "a positive number of rows")
    return float(strength)


def prior_from_parameters(factor: Factor, parameters: object, rows: np.ndarray) -> Any:
    """Return the prior of a factor with these parameters as its mean, with the strength of some rows of every group."""
    return prior_of_strength(factor.family, parameters, rows, f"p({', '.join(map(str, factor.columns))} | …)")
