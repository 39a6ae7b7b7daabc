"""Every exception of the package. An error says what happened, what was found, what was expected and what to try."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tallybayes.messages import conversion_hint, conversion_hint_for_type, did_you_mean, redacted


class TallybayesError(Exception):
    """Base class of the package's errors. A message has no terminal control characters and no passwords."""

    def __init__(self, *details: object) -> None:
        lines = (redacted(d).split("\n") if isinstance(d, str) else d for d in details)
        super().__init__(*("\n".join(map(printable, d)) if isinstance(d, list) else d for d in lines))


class CellError(TallybayesError, ValueError):
    """A kernel met a value it must not count; the caller turns the position into a message with names."""

    factor = 0  # which of several factors, where rows are scored

    def __init__(self, row: int, column: int) -> None:
        super().__init__(row, column)
        self.row, self.column = row, column

    def __str__(self) -> str:
        return f"the value in row {self.row}, column {self.column} cannot be counted"


class DataError(TallybayesError, ValueError):
    """The rows handed in cannot be counted as asked. Nothing was changed."""

    cell: tuple[object, int, object, str, str] | None = None  # what `bad_cell` was given, for who knows more of the row

    @classmethod
    def bad_cell(
        cls, value: object, row: int, column: object, expected: str, hint: str = "", where: str = ""
    ) -> DataError:
        """A single value does not fit its family; `where` it is, if its row is one of a file."""
        given = (value, row, column, expected, hint)
        if not hint and isinstance(value, float) and abs(value) > 1e100:
            infinite = abs(value) == float("inf")
            hint = "Leave such rows out." if infinite else "Divide the column: squares of such numbers are not finite."
        tail = f"\n    {hint}" if hint else ""
        error = cls(f"found {value!r} in {where or f'row {row}'}, column {column!r}; expected {expected}.{tail}")
        error.cell = given
        return error

    @classmethod
    def lengths_differ(cls, lengths: dict[str, int]) -> DataError:
        """Parts of one table have different numbers of rows."""
        found = ", ".join(f"{name}: {n}" for name, n in lengths.items())
        return cls(
            f"the parts of the data have different numbers of rows ({found}); expected one number.\n"
            "    Every column, label and weight must describe the same rows."
        )

    @classmethod
    def wrong_shape(cls, name: str, found: Sequence[int], expected: str) -> DataError:
        """An array has the wrong shape."""
        return cls(f"{name} has shape {tuple(found)}; expected {expected}.")

    @classmethod
    def wrong_type(cls, name: str, found: object, expected: str, hint: str = "") -> DataError:
        """A value is of a kind that cannot be read."""
        tail = f"\n    {hint}" if hint else ""
        return cls(f"{name} is {found}; expected {expected}.{tail}")

    @classmethod
    def bad_weight(cls, value: float, row: int) -> DataError:
        """A weight is negative, infinite, missing, or of a size no sum can hold."""
        return cls(
            f"weight is {value!r} in row {row}; expected 0, or finite numbers from 1e-150 to 1e150.\n"
            "    A weight says how often a row counts: 0 leaves it out, 2 counts it twice."
        )

    @classmethod
    def unknown_column(cls, missing: Iterable[object], known: Iterable[object]) -> DataError:
        """A column was asked for that the data do not have."""
        missing, known = list(missing), list(known)
        hint = "Check the spelling, or pass data that have the column."
        if known and all(isinstance(name, int) for name in known) and all(isinstance(name, str) for name in missing):
            hint = "These rows have no names. Pass a frame with those of before: pd.DataFrame(rows, columns=[...])."
        elif known and all(isinstance(name, str) for name in known) and all(isinstance(name, int) for name in missing):
            hint = "The columns had no names before. Pass an array, in the same order: frame.to_numpy()."
        else:
            hint = did_you_mean(missing, known, hint)
        found = f"no column {', '.join(map(repr, missing))} in the data (found: {_listed(known)})"
        return cls(f"{found}.\n    {hint}")

    @classmethod
    def nested(cls, found: Mapping[Any, str]) -> DataError:
        """Columns hold lists, structs or maps, or are of a type that is neither a number nor a label."""
        names, types = list(found), [reason for reason in found.values() if reason.startswith("its type is ")]
        what, hint = "lists, structs or maps", "Give their parts columns of their own."
        if types:
            kind = types[0].removeprefix("its type is ")
            what = f"cells of type {kind}"
            hint = conversion_hint_for_type(kind.partition("[")[0]) or "Convert them, in SQL by CAST(column AS TEXT)."
        return cls(
            f"{'columns' if len(names) > 1 else 'column'} {_listed(names)}: found {what}; expected one "
            f"number or label in every cell.\n    {hint} To ignore them, leave these columns out of the data, or name "
            "only other columns in columns=."
        )

    @classmethod
    def no_data(cls, where: str, estimate: str) -> DataError:
        """An estimate was asked for where nothing was counted."""
        return cls(
            f"cannot give the {estimate!r} estimate of {where}: nothing was counted there.\n"
            "    Learn from at least one row, or use estimate='bayes' or 'map', where a prior speaks for missing data."
        )

    @classmethod
    def no_default(cls, where: str) -> DataError:
        """The default prior of a Gaussian looks at the data, and there are none."""
        return cls(
            f"nothing was counted in {where}, so a Gaussian's default prior has no scale to go by.\n"
            "    Pass a prior such as tb.NormalInverseGamma(0, 1, 2, 1), or learn from at least two different values."
        )


class LabelError(TallybayesError, ValueError):
    """A level (label) is unknown, or of another kind than its domain."""

    level: object = None  # what `bad_level` was given, and the column it is of
    column: str | None = None

    @classmethod
    def unseen(cls, level: object, domain: str, known: Iterable[object]) -> LabelError:
        """A level that was not there when a model was fitted."""
        return cls(
            f"level {level!r} of column {domain!r} was not seen when fitting (known: {_listed(known)}).\n"
            "    Pass unseen='missing' to ignore it, or learn from rows that have it."
        )

    @classmethod
    def no_such_class(cls, label: object, known: Iterable[object]) -> LabelError:
        """A class that a model does not have."""
        known = list(known)
        hint = did_you_mean([label] if isinstance(label, str) else [], known, "Learn it with partial_fit or add_class.")
        return cls(f"there is no class {label!r} (known: {_listed(known)}).\n    {hint}")

    @classmethod
    def never_learned(cls, level: object, column: str, known: Iterable[object]) -> LabelError:
        """A level that a learned distribution has no probability for."""
        return cls(
            f"level {level!r} of column {column!r} was never seen and has no probability (known: {_listed(known)}).\n"
            "    Declare it when learning, as in tb.Categorical(levels=[...]), or learn from values that have it."
        )

    @classmethod
    def undeclared(cls, level: object, domain: str, known: Iterable[object]) -> LabelError:
        """A level outside those that were declared."""
        return cls(
            f"level {level!r} of column {domain!r} is not among the declared levels ({_listed(known)}).\n"
            "    Declare it in levels=, or leave levels= out to learn them from the data."
        )

    @classmethod
    def kinds_differ(cls, domain: str, first: str, second: str) -> LabelError:
        """Levels of two kinds met in one domain."""
        return cls(
            f"column {domain!r} has {first} levels on one side and {second} levels on the other; expected one kind.\n"
            "    Convert one side before counting, for example with astype(str)."
        )

    @classmethod
    def bad_level(cls, level: object, domain: str) -> LabelError:
        """A value that cannot be a level."""
        hint = (
            conversion_hint(level)
            or "Cut measured values into bins, or give the column a numeric family such as Gaussian()."
        )
        error = cls(
            f"found {short_repr(level)} ({type(level).__name__}) as a level of column {domain!r}; expected whole "
            f"numbers, strings or booleans.\n    {hint}"
        )
        error.level, error.column = level, domain
        return error

    @classmethod
    def too_large(cls, level: object, domain: str) -> LabelError:
        """A whole number that is not stored exactly."""
        return cls(
            f"found {level!r} as a level of column {domain!r}; expected whole numbers of 64 bits (from -2**63 up to "
            "2**63 - 1 or, where none is negative, 2**64 - 1), and below 2**53 where they are floats.\n"
            "    Convert the column to strings, for example with astype(str)."
        )

    @classmethod
    def no_text(cls, level: object, domain: str) -> LabelError:
        """A string that UTF-8 cannot encode."""
        return cls(
            f"found {level!r} as a level of column {domain!r}; expected text without surrogates.\n"
            "    Replace what UTF-8 cannot encode: text.encode('utf-8', 'replace').decode()."
        )

    @classmethod
    def repeated(cls, level: object, domain: str) -> LabelError:
        """A declared level appears twice."""
        return cls(f"level {level!r} of column {domain!r} is declared twice; expected each level once.")


class StatisticsError(TallybayesError, ValueError):
    """Statistics cannot be combined as asked. Nothing was changed."""

    @classmethod
    def removes_too_much(cls, where: str, what: str, held: float, removed: float) -> StatisticsError:
        """More is to be taken out than was put in."""
        return cls(
            f"cannot forget: {where} would have {what} {held - removed:.12g} ({held:.12g} counted, {removed:.12g} to "
            "remove).\n    These rows were not all part of this tally; nothing was changed."
        )

    @classmethod
    def incompatible(cls, what: str, first: object, second: object) -> StatisticsError:
        """Two statistics describe different things."""
        return cls(
            f"cannot combine: {what} differ ({first} and {second}).\n"
            "    Only tallies of the same columns, in the same families, add up."
        )


class NotForgettableError(StatisticsError):
    """Statistics that depend on parameters, because EM collected them, cannot be taken apart again."""

    @classmethod
    def soft(cls) -> NotForgettableError:
        """A tally collected by EM was asked to subtract."""
        return cls(
            "cannot forget: EM filled in what was missing when this tally was collected, so its counts depend on the "
            "parameters of that time.\n    Fit again without the rows, or keep tallies of complete rows apart."
        )


class NoCountsError(StatisticsError):
    """A model whose parameters were given, not counted, was asked for something that only counts tell."""


class PriorError(TallybayesError, ValueError):
    """A prior that is no distribution, or does not belong to the family."""

    @classmethod
    def unbounded_posterior(cls) -> PriorError:
        """EM was to climb a log posterior that has no top."""
        return cls(
            "EM has no highest point to climb to: under a prior that prefers probabilities or rates of 0 (with a "
            "parameter below 1) the log posterior has no upper bound.\n    Use estimate='bayes', or another prior."
        )

    @classmethod
    def unknown_column(cls, unknown: Sequence[object], known: Iterable[object]) -> PriorError:
        """A prior was given for a column that is not there."""
        known = list(known)
        hint = did_you_mean(unknown, known, "Check the spelling.")
        return cls(
            f"prior= names {_listed(unknown)}, which is no column of the model (known: {_listed(known)}).\n"
            f"    {hint} Columns that are not named have their family's default."
        )

    @classmethod
    def not_positive(cls, belief: str, name: str, value: object) -> PriorError:
        """A parameter of a belief that must be positive is not."""
        return cls(f"{belief} needs {name} > 0, found {value}.")

    @classmethod
    def wrong_prior(cls, family: object, found: object, expected: str) -> PriorError:
        """A belief of another family."""
        return cls(f"the prior of {family!r} is {found!r}; expected {expected}, or None for the default.")

    @classmethod
    def wrong_shape(cls, belief: str, found: Sequence[int], expected: Sequence[int]) -> PriorError:
        """A prior given per column, group or level does not fit the statistics."""
        return cls(
            f"{belief} has parameters of shape {tuple(found)}, which do not broadcast to the statistics' "
            f"{tuple(expected)}.\n    Give one number, or an array with the shape (*groups, columns or levels)."
        )


class EstimateError(TallybayesError, ValueError):
    """An estimate or another setting that does not exist, or a model that cannot answer."""

    @classmethod
    def zero_variance(cls, where: str) -> EstimateError:
        """A density was asked of a Gaussian without spread."""
        return cls(
            f"the variance of {where} is 0, so its density is not finite.\n"
            "    Pass a prior such as tb.NormalInverseGamma(0, 1, 2, 1) with estimate='bayes' or 'map', or varied rows."
        )

    @classmethod
    def singular(cls, where: str, weight: float, n_columns: int) -> EstimateError:
        """A covariance matrix cannot be inverted."""
        rows = "" if weight != weight else f"{weight:.12g} rows, "
        return cls(
            f"the covariance of {where} is singular ({rows}{n_columns} columns).\n"
            "    Use estimate='bayes' or 'map', a tied, diagonal or spherical family, or more rows."
        )


class ImpossibleError(EstimateError):
    """What was observed cannot happen: its probability is 0, so nothing follows from it."""

    @classmethod
    def of(cls, given: dict[object, object]) -> ImpossibleError:
        """The observations that contradict each other, or the model."""
        found = ", ".join(f"{node} = {value!r}" for node, value in given.items())
        together = "these cannot happen together" if len(given) > 1 else "this cannot happen"
        return cls(
            f"what is given is impossible: {found} has probability 0; {together}.\n"
            "    Check the observations, or learn the network with a prior (estimate='bayes')."
        )


class TooLargeError(TallybayesError, MemoryError):
    """Something that memory cannot hold was asked for; nothing was allocated."""

    @classmethod
    def of(cls, what: str, needed: int, available: int, hint: str) -> TooLargeError:
        """What anything needs, and what there is."""
        return cls(f"{what} would need {_bytes(needed)}, but {_bytes(available)} are free.\n    {hint}")

    @classmethod
    def cliques(cls, needed: int, available: int, n_cells: int, nodes: Sequence[object]) -> TooLargeError:
        """Exact inference in a network needs too large a table."""
        return cls(
            f"exact inference would need {_bytes(needed)}, but {_bytes(available)} are free: these {len(nodes)} nodes "
            f"have to be in one table of {short_int(n_cells)} cells: {_listed(nodes)}.\n"
            "    Leave out edges between them, merge levels, or answer by draws: query(..., inference='sampling')."
        )

    @classmethod
    def table(cls, node: object, parents: Sequence[object], n_cells: int) -> TooLargeError:
        """A node has so many parents that its table would not fit."""
        return cls(
            f"the table of {node!r} would have {short_int(n_cells)} cells, {_bytes(8 * n_cells)}: it has the parents "
            f"{_listed(parents)}.\n    Give it fewer parents, or parents with fewer levels."
        )


class NotLinearError(EstimateError):
    """A model whose log-odds are not linear in its columns was asked for coefficients."""

    @classmethod
    def factor(cls, family: object, estimate: str) -> NotLinearError:
        """One factor bends the boundary."""
        return cls(
            f"the log-odds of {family!r} columns under the {estimate} estimate are not linear in x.\n"
            "    Linear are Bernoulli and Multinomial and, under a point estimate, Poisson and the tied Gaussians."
        )


class ExportError(TallybayesError, ValueError):
    """A model, or a part of it, cannot be written in another language: SQL or ONNX."""


class FileError(TallybayesError, ValueError):
    """A file that is damaged, or is not what it should be. Nothing was loaded."""

    @classmethod
    def not_ours(cls, path: object, found: str) -> FileError:
        """The file was not written by this package."""
        return cls(f"{path} is not a Tallybayes file: {found}.\n    Expected a file written by save().")

    @classmethod
    def damaged(cls, path: object, found: str) -> FileError:
        """The file was written by this package but its bytes have changed."""
        return cls(f"{path} is damaged: {found}.\n    Restore it from a copy; nothing was loaded.")

    @classmethod
    def other_version(cls, path: object, found: int, known: int, writer: object = None) -> FileError:
        """The file's format is older or newer than the one this package reads."""
        shown = writer if isinstance(writer, str) and writer.isprintable() and 0 < len(writer) <= 60 else None
        return cls(
            f"{path} has format version {found}{f', written by {shown}' if shown else ''}; "
            f"this version of Tallybayes reads format version {known} only.\n"
            f"    Fit the model again and save it, or load the file with {shown or 'the version that wrote it'}."
        )

    @classmethod
    def unknown_kind(cls, path: object, found: str, known: Iterable[str]) -> FileError:
        """The file is sound, but nothing here can make an object of it."""
        return cls(
            f"{path} holds {found!r}, which this version of Tallybayes cannot load (known: {_listed(known)}).\n"
            "    Upgrade with pip install --upgrade tallybayes, or import the module that defines it."
        )

    @classmethod
    def not_replaceable(cls, path: object, found: str) -> FileError:
        """Something is in the place of a file that is to be written, and must not be replaced."""
        return cls(f"{path} is {found}; expected a regular file to replace, or a new name.\n    Nothing was written.")

    @classmethod
    def bad_line(cls, path: object, line: int, what: str, hint: str) -> FileError:
        """A line of a text file that cannot be read."""
        return cls(f"{path}, line {line}: {what}.\n    {hint}")

    @classmethod
    def bad_strings(cls, found: str) -> FileError:
        """Two arrays of a file are no packed strings."""
        return cls(f"cannot unpack strings: {found}.\n    Expected the buffer and offsets made by pack_strings().")


def as_attribute_error(error: TallybayesError) -> TallybayesError:
    """The same error as one of its own class that is an `AttributeError`, too."""
    kind = type(error)
    if isinstance(error, AttributeError):
        return error
    if kind not in _ATTRIBUTE_ERRORS:
        body = {"__module__": kind.__module__, "__doc__": kind.__doc__, "__reduce__": _reduce_attribute_error}
        _ATTRIBUTE_ERRORS[kind] = type(kind.__name__, (kind, AttributeError), body)
    made = _ATTRIBUTE_ERRORS[kind](*error.args)
    for name in ("name", "obj"):
        setattr(made, name, None)  # or Python would add what else the name may have meant, which is not the matter
    return made


_ATTRIBUTE_ERRORS: dict[type[TallybayesError], type[TallybayesError]] = {}


def _reduce_attribute_error(error: TallybayesError) -> tuple[object, ...]:
    """How to pickle an error whose class no module has: by the one it was made of."""
    return _attribute_error, (type(error).__bases__[0], error.args)


def _attribute_error(kind: type[TallybayesError], arguments: tuple[object, ...]) -> TallybayesError:
    return as_attribute_error(kind(*arguments))


def printable(value: object) -> str:
    """A label or a name as one line of text that a terminal only shows: what cannot be printed is written as an escape.

    Labels come from data, and data from strangers: some characters steer a terminal, turn text round or tear a table.
    """
    text = str(value)
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def short_repr(value: object, most: int = 60) -> str:
    """A value for a message, cut where it is long."""
    text = repr(value)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def short_int(number: int, digits: int = 3) -> str:
    """A whole number of any size in a few digits."""
    size = number.bit_length()  # floats reach as far as 1000
    return f"{number:.{digits}g}" if size < 1000 else f"about 10^{int(size * 0.30103)}"


def _bytes(number: int) -> str:
    """A size in words."""
    units = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")
    place = min((max(number, 1).bit_length() - 1) // 10, len(units) - 1)
    whole = number >> 10 * place
    return f"{f'{number / 2 ** (10 * place):.3g}' if whole < 2**40 else short_int(whole)} {units[place]}"


def _listed(values: Iterable[object], most: int = 8) -> str:
    """Some values for a message: at most `most`, then how many more."""
    shown = [repr(value) for value in values]
    more = len(shown) - most
    return ", ".join(shown[:most]) + (f", … {more} more" if more > 0 else "") if shown else "none"
