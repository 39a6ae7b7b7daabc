"""Exceptions of the package: each message states the problem, the value found, the value expected and what to do."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tallybayes.messages import conversion_hint, conversion_hint_for_type, did_you_mean, redacted


class TallybayesError(Exception):
    """Base class of the package's errors. Messages contain no terminal control characters and no passwords.

    Catch it to handle every error of the package; the first line of a message states the problem, the next what to do.
    """

    def __init__(self, *details: object) -> None:
        lines = (redacted(d).split("\n") if isinstance(d, str) else d for d in details)
        super().__init__(*("\n".join(map(printable, d)) if isinstance(d, list) else d for d in lines))


class CellError(TallybayesError, ValueError):
    """A kernel found an invalid value; callers convert the position into a message with names."""

    factor = 0  # index of the factor, when rows are scored

    def __init__(self, row: int, column: int) -> None:
        super().__init__(row, column)
        self.row, self.column = row, column

    def __str__(self) -> str:
        return f"the value in row {self.row}, column {self.column} cannot be counted"


class DataError(TallybayesError, ValueError):
    """The input rows are invalid. The model is unchanged.

    Correct the rows, columns, weights or arguments that the message names, or drop them.
    """

    cell: tuple[object, int, object, str, str] | None = (
        None  # arguments of `bad_cell`, for callers that can locate the row
    )

    @classmethod
    def bad_cell(
        cls, value: object, row: int, column: object, expected: str, hint: str = "", where: str = ""
    ) -> DataError:
        """Return the error for a value that is invalid for its family; `where` is its location in a file."""
        arguments = (value, row, column, expected, hint)
        if not hint and isinstance(value, float) and abs(value) > 1e100:
            is_infinite = abs(value) == float("inf")
            hint = (
                "Drop such rows, or make these cells missing."
                if is_infinite
                else "Divide the column: squares of such numbers are not finite."
            )
        tail = f"\n    {hint}" if hint else ""
        error = cls(f"found {value!r} in {where or f'row {row}'}, column {column!r}; expected {expected}.{tail}")
        error.cell = arguments
        return error

    @classmethod
    def lengths_differ(cls, lengths: dict[str, int]) -> DataError:
        """Return the error for parts of a table with different numbers of rows."""
        listed = ", ".join(f"{name}: {n}" for name, n in lengths.items())
        return cls(
            f"the parts of the data have different numbers of rows ({listed}).\n"
            "    Every column, label and weight must describe the same rows."
        )

    @classmethod
    def wrong_number(
        cls, found: int, model: str, expected: int | None, names: Iterable[object] | None = None
    ) -> DataError:
        """Return the error for another number of columns than in the training rows, in scikit-learn's words."""
        known = "" if names is None else f": {_listed(names)}"
        return cls(
            f"X has {found} features, but {model} is expecting {expected} features as input.\n"
            f"    Pass the columns the model was fitted on{known}."
        )

    @classmethod
    def wrong_shape(cls, name: str, found: Sequence[int], expected: str) -> DataError:
        """Return the error for an array of the wrong shape."""
        return cls(f"{name} has shape {tuple(found)}; expected {expected}.")

    @classmethod
    def wrong_type(cls, name: str, found: object, expected: str, hint: str = "") -> DataError:
        """Return the error for a value of the wrong type."""
        tail = f"\n    {hint}" if hint else ""
        return cls(f"{name} is {found}; expected {expected}.{tail}")

    @classmethod
    def no_statistics(cls, value: object) -> DataError:
        """Return the error for values, or other statistics, where a distribution needs sufficient statistics."""
        return cls(
            f"statistics is {short_repr(value)}; expected sufficient statistics of a family with this prior.\n"
            "    Pass tb.fit_distribution(values, family).statistics, or use its method posterior(prior)."
        )

    @classmethod
    def no_model(cls, model: object) -> DataError:
        """Return the error for an evaluation of something else than one model of this package."""
        hint = "Pass log-probabilities of other models to tb.Evaluation."
        if isinstance(model, type):
            hint = f"Pass an instance: {model.__name__}(...)."
        elif isinstance(model, Mapping | list | tuple):
            hint = "Pass one model at a time; candidates={parameter: [values]} compares its parameters."
        return cls.wrong_type("model", type(model).__name__, "a model of this package", hint)

    @classmethod
    def bad_weight(cls, value: float, row: int) -> DataError:
        """Return the error for a negative, infinite, missing or extreme weight."""
        return cls(
            f"weight is {value!r} in row {row}; expected 0, or finite numbers from 1e-150 to 1e150.\n"
            "    A weight is a number of repetitions: 0 excludes the row, 2 counts it twice."
        )

    @classmethod
    def unknown_column(cls, missing: Iterable[object], known: Iterable[object]) -> DataError:
        """Return the error for a column that the data do not have."""
        missing, known = list(missing), list(known)
        hint = "Check the spelling, or pass data that have the column; cells without a value may be missing (None)."
        if known and all(isinstance(name, int) for name in known) and all(isinstance(name, str) for name in missing):
            hint = "These rows have no column names. Pass a data frame, pd.DataFrame(rows, columns=[...]), or an array."
        elif known and all(isinstance(name, str) for name in known) and all(isinstance(name, int) for name in missing):
            hint = "The training columns had no names. Pass an array with columns in the same order: frame.to_numpy()."
        else:
            hint = did_you_mean(missing, known, hint)
        message = f"no column {', '.join(map(repr, missing))} in the data (found: {_listed(known)})"
        return cls(f"{message}.\n    {hint}")

    @classmethod
    def nested(cls, columns: Mapping[Any, str]) -> DataError:
        """Return the error for columns of lists, structs or maps, or of an unsupported type."""
        names, type_reasons = (
            list(columns),
            [reason for reason in columns.values() if reason.startswith("its type is ")],
        )
        what, hint = "lists, structs or maps", "Split them into separate columns."
        if type_reasons:
            type_name = type_reasons[0].removeprefix("its type is ")
            what = f"cells of type {type_name}"
            hint = (
                conversion_hint_for_type(type_name.partition("[")[0]) or "Convert them, in SQL by CAST(column AS TEXT)."
            )
        return cls(
            f"{'columns' if len(names) > 1 else 'column'} {_listed(names)}: found {what}; expected one "
            f"number or label in every cell.\n    {hint} To ignore them, drop these columns, or name "
            "only other columns in columns=."
        )

    @classmethod
    def no_data(cls, where: str, estimate: str) -> DataError:
        """Return the error for an estimate without data."""
        return cls(
            f"the {estimate!r} estimate of {where} is undefined: nothing was counted there.\n"
            "    Fit at least one row, or use estimate='bayes' or 'map', which have a prior."
        )

    @classmethod
    def no_default(cls, where: str) -> DataError:
        """Return the error for a Gaussian default prior without data."""
        return cls(
            f"nothing was counted in {where}, so the default prior of a Gaussian has no scale.\n"
            "    Pass a prior such as tb.NormalInverseGamma(0, 1, 2, 1), or fit at least two different values."
        )


class LabelError(TallybayesError, ValueError):
    """A level (label) is unknown, or of another type than its domain.

    Correct the label, declare it (``levels=``, ``classes=``), fit rows that have it, or pass ``unseen='missing'``.
    """

    level: object = None  # the level and the column of `bad_level`
    column: str | None = None

    @classmethod
    def unseen(cls, level: object, domain: str, known: Iterable[object]) -> LabelError:
        """Return the error for a level that was not seen during fitting."""
        return cls(
            f"level {level!r} of column {domain!r} was not seen when fitting (known: {_listed(known)}).\n"
            "    Pass unseen='missing' to ignore it, or fit rows that have it."
        )

    @classmethod
    def no_such_class(cls, label: object, known: Iterable[object]) -> LabelError:
        """Return the error for an unknown class."""
        known = list(known)
        hint = did_you_mean([label] if isinstance(label, str) else [], known, "Add it with partial_fit or add_class.")
        return cls(f"there is no class {label!r} (known: {_listed(known)}).\n    {hint}")

    @classmethod
    def unknown_state(cls, parameter: str, state: object, known: Iterable[object]) -> LabelError:
        """Return the error for a parameter of a hidden Markov model with an unknown state."""
        known = list(known)
        hint = did_you_mean([state], known, "Name only these states, or fit sequences with that state.")
        return cls(f"{parameter}= has the unknown state {state!r} (known: {_listed(known)}).\n    {hint}")

    @classmethod
    def never_learned(cls, level: object, column: str, known: Iterable[object]) -> LabelError:
        """Return the error for a level without a probability in a fitted distribution."""
        return cls(
            f"level {level!r} of column {column!r} was never seen and has no probability (known: {_listed(known)}).\n"
            "    Declare it, as in tb.Categorical(levels=[...]), or fit values that have it."
        )

    @classmethod
    def undeclared(cls, level: object, domain: str, known: Iterable[object]) -> LabelError:
        """Return the error for a level that is not among the declared ones."""
        return cls(
            f"level {level!r} of column {domain!r} is not among the declared levels ({_listed(known)}).\n"
            "    Declare it in levels=, or omit levels= to take them from the data."
        )

    @classmethod
    def kinds_differ(cls, domain: str, first: str, second: str) -> LabelError:
        """Return the error for levels of two types in one domain."""
        return cls(
            f"column {domain!r} has {first} levels on one side and {second} levels on the other; expected one kind.\n"
            "    Convert one side before counting, for example with astype(str)."
        )

    @classmethod
    def bad_level(cls, level: object, domain: str) -> LabelError:
        """Return the error for a value that cannot be a level."""
        hint = conversion_hint(level) or "Discretize continuous values, or use a numeric family such as Gaussian()."
        error = cls(
            f"found {short_repr(level)} ({type(level).__name__}) as a level of column {domain!r}; expected whole "
            f"numbers, strings or booleans.\n    {hint}"
        )
        error.level, error.column = level, domain
        return error

    @classmethod
    def too_large(cls, level: object, domain: str) -> LabelError:
        """Return the error for an integer that is not stored exactly."""
        return cls(
            f"found {level!r} as a level of column {domain!r}; expected whole numbers of 64 bits (from -2**63 up to "
            "2**63 - 1 or, where none is negative, 2**64 - 1), and below 2**53 where they are floats.\n"
            "    Convert the column to strings, for example with astype(str)."
        )

    @classmethod
    def no_text(cls, level: object, domain: str) -> LabelError:
        """Return the error for a string that UTF-8 cannot encode."""
        return cls(
            f"found {level!r} as a level of column {domain!r}; expected text without surrogates.\n"
            "    Replace what UTF-8 cannot encode: text.encode('utf-8', 'replace').decode()."
        )

    @classmethod
    def repeated(cls, level: object, domain: str) -> LabelError:
        """Return the error for a level that is declared twice."""
        return cls(f"level {level!r} of column {domain!r} is declared twice; expected each level once.")


class StatisticsError(TallybayesError, ValueError):
    """The statistics cannot be combined. They are unchanged.

    Combine tallies of the same columns and families only, and forget only rows that were counted.
    """

    @classmethod
    def removes_too_much(cls, where: str, what: str, held: float, removed: float) -> StatisticsError:
        """Return the error for removing more than was counted."""
        return cls(
            f"cannot forget: {where} would have {what} {held - removed:.12g} ({held:.12g} counted, {removed:.12g} to "
            "remove).\n    Pass rows that were counted: forget, calibrate and leave_one_out subtract them. Nothing was "
            "changed."
        )

    @classmethod
    def incompatible(cls, what: str, first: object, second: object) -> StatisticsError:
        """Return the error for statistics of different columns or families."""
        return cls(
            f"cannot combine: {what} differ ({first} and {second}).\n"
            "    Only tallies of the same columns and families can be combined."
        )


class NotForgettableError(StatisticsError):
    """Statistics collected by EM depend on parameters, so rows cannot be removed from them.

    Refit without the rows, or keep tallies of complete rows separately.
    """

    @classmethod
    def soft(cls) -> NotForgettableError:
        """Return the error for subtracting from a tally collected by EM."""
        return cls(
            "cannot forget: EM imputed missing values in this tally, so its counts depend on the parameters at that "
            "time.\n    Refit without the rows, or keep tallies of complete rows separately."
        )


class NoCountsError(StatisticsError):
    """The model has fixed parameters, but the operation requires counts.

    Fit the model to rows, or pass ``strength=`` where fixed parameters are to count as rows.
    """


class PriorError(TallybayesError, ValueError):
    """A prior is invalid, or does not belong to the family.

    Pass a conjugate prior of the family with parameters of the expected shape, or None for the default.
    """

    @classmethod
    def unbounded_posterior(cls) -> PriorError:
        """Return the error for EM under a prior with an unbounded log posterior."""
        return cls(
            "EM has no maximum to converge to: under a prior with a parameter below 1 the log posterior is unbounded "
            "at probabilities or rates of 0.\n    Use estimate='bayes', or prior parameters of at least 1."
        )

    @classmethod
    def unknown_column(cls, unknown: Sequence[object], known: Iterable[object]) -> PriorError:
        """Return the error for a prior of an unknown column."""
        known = list(known)
        hint = did_you_mean(unknown, known, "Check the spelling.")
        return cls(
            f"prior= has unknown columns {_listed(unknown)} (known: {_listed(known)}).\n"
            f"    {hint} Other columns use their family's default."
        )

    @classmethod
    def wrong_parameter(
        cls, distribution: str, name: str, value: object, expected: str = "finite numbers above 0", hint: str = ""
    ) -> PriorError:
        """Return the error for an invalid parameter of a distribution or a prior rule."""
        found = short_repr(value.tolist() if hasattr(value, "tolist") else value)
        tail = f"\n    {hint}" if hint else ""
        return cls(f"{name} of {distribution} is {found}; expected {expected}.{tail}")

    @classmethod
    def wrong_prior(cls, family: object, found: object, expected: str) -> PriorError:
        """Return the error for a prior of another family."""
        return cls(f"the prior of {family!r} is {found!r}; expected {expected}, or None for the default.")

    @classmethod
    def wrong_shape(cls, distribution: str, found: Sequence[int], expected: Sequence[int]) -> PriorError:
        """Return the error for parameters whose shape does not match the statistics."""
        return cls(
            f"{distribution} has parameters of shape {tuple(found)}, which do not broadcast to the statistics' "
            f"{tuple(expected)}.\n    Pass one number, or an array with the shape (*groups, columns or levels)."
        )


class EstimateError(TallybayesError, ValueError):
    """An unknown estimate or option, or a model that cannot compute the result.

    Use an option that the message lists, an estimate with a prior (``'bayes'`` or ``'map'``), or another model.
    """

    @classmethod
    def zero_variance(cls, where: str) -> EstimateError:
        """Return the error for the density of a Gaussian of zero variance."""
        return cls(
            f"the variance of {where} is 0, so its density is not finite.\n"
            "    Pass a prior such as tb.NormalInverseGamma(0, 1, 2, 1) with estimate='bayes' or 'map'."
        )

    @classmethod
    def singular(cls, where: str, weight: float, n_columns: int) -> EstimateError:
        """Return the error for a singular covariance matrix."""
        rows = "" if weight != weight else f"{weight:.12g} rows, "
        return cls(
            f"the covariance of {where} is singular ({rows}{n_columns} columns).\n"
            "    Use estimate='bayes' or 'map', a tied, diagonal or spherical family, or more rows."
        )


class ImpossibleError(EstimateError):
    """The observations have probability 0, so nothing can be inferred from them.

    Correct the observations, or use an estimate with a prior, under which no level has probability 0.
    """

    @classmethod
    def of(cls, given: dict[object, object]) -> ImpossibleError:
        """Return the error for evidence of probability 0."""
        observations = ", ".join(f"{node} = {value!r}" for node, value in given.items())
        reason = "these values contradict each other" if len(given) > 1 else "it cannot occur"
        return cls(
            f"what is given is impossible: {observations} has probability 0; {reason}.\n"
            "    Check the observations, or learn the network with a prior (estimate='bayes')."
        )


class TooLargeError(TallybayesError, MemoryError):
    """The memory does not suffice; nothing was allocated.

    Use fewer columns, parents or levels, or an approximation that the message names.
    """

    @classmethod
    def of(cls, what: str, needed: int, available: int, hint: str) -> TooLargeError:
        """Return the error with the memory needed and available."""
        return cls(f"{what} would need {_bytes(needed)}, but {_bytes(available)} are free.\n    {hint}")

    @classmethod
    def cliques(cls, needed: int, available: int, n_cells: int, nodes: Sequence[object]) -> TooLargeError:
        """Return the error for exact inference with too large a clique."""
        return cls(
            f"exact inference would need {_bytes(needed)}, but {_bytes(available)} are free: these {len(nodes)} nodes "
            f"have to be in one table of {short_int(n_cells)} cells: {_listed(nodes)}.\n"
            "    Leave out edges between them, merge levels, or answer by draws: query(..., inference='sampling')."
        )

    @classmethod
    def table(cls, node: object, parents: Sequence[object], n_cells: int) -> TooLargeError:
        """Return the error for a node with too many parents."""
        return cls(
            f"the table of {node!r} would have {short_int(n_cells)} cells, {_bytes(8 * n_cells)}: it has the parents "
            f"{_listed(parents)}.\n    Give it fewer parents, or parents with fewer levels."
        )


class NotLinearError(EstimateError):
    """The log-odds of the model are not linear in its columns, so it has no coefficients.

    Use families and an estimate with linear log-odds, which the message lists.
    """

    @classmethod
    def factor(cls, family: object, estimate: str) -> NotLinearError:
        """Return the error for one non-linear factor."""
        return cls(
            f"the log-odds of {family!r} columns under the {estimate} estimate are not linear in x.\n"
            "    Only these have linear log-odds: Bernoulli, Multinomial and, under a point estimate, Poisson and "
            "tied Gaussians."
        )


class ExportError(TallybayesError, ValueError):
    """The model, or a part of it, cannot be exported to SQL or ONNX.

    Use a family, estimate or option that the message names, or write predictions with `tb.write_predictions`.
    """


class FileError(TallybayesError, ValueError):
    """A file is damaged or of another kind. Nothing was loaded.

    Restore the file from a copy, pass another path, or save the model again with this version.
    """

    @classmethod
    def not_ours(cls, path: object, found: str) -> FileError:
        """Return the error for a file of another program."""
        return cls(f"{path} is not a Tallybayes file: {found}.\n    Expected a file written by save().")

    @classmethod
    def damaged(cls, path: object, found: str) -> FileError:
        """Return the error for a file whose bytes have changed."""
        return cls(f"{path} is damaged: {found}.\n    Restore it from a copy; nothing was loaded.")

    @classmethod
    def other_version(cls, path: object, found: int, known: int, writer: object = None) -> FileError:
        """Return the error for a file of another format version."""
        shown = writer if isinstance(writer, str) and writer.isprintable() and 0 < len(writer) <= 60 else None
        return cls(
            f"{path} has format version {found}{f', written by {shown}' if shown else ''}; "
            f"this version of Tallybayes reads format version {known} only.\n"
            f"    Fit the model again and save it, or load the file with {shown or 'the version that wrote it'}."
        )

    @classmethod
    def unknown_kind(cls, path: object, found: str, known: Iterable[str]) -> FileError:
        """Return the error for a valid file without a loader."""
        return cls(
            f"{path} holds {found!r}, which this version of Tallybayes cannot load (known: {_listed(known)}).\n"
            "    Upgrade with pip install --upgrade tallybayes, or import the module that defines it."
        )

    @classmethod
    def not_replaceable(cls, path: object, found: str) -> FileError:
        """Return the error for a path that must not be replaced."""
        return cls(f"{path} is {found}; expected a regular file to replace, or a new name.\n    Nothing was written.")

    @classmethod
    def bad_line(cls, path: object, line: int, what: str, hint: str) -> FileError:
        """Return the error for an invalid line of a text file."""
        return cls(f"{path}, line {line}: {what}.\n    {hint}")

    @classmethod
    def bad_strings(cls, found: str) -> FileError:
        """Return the error for arrays that are not packed strings."""
        return cls(f"cannot unpack strings: {found}.\n    Expected the buffer and offsets made by pack_strings().")


def as_attribute_error(error: TallybayesError) -> TallybayesError:
    """Return the error as a subclass of its own class that is also an `AttributeError`."""
    cls = type(error)
    if isinstance(error, AttributeError):
        return error
    if cls not in _ATTRIBUTE_ERRORS:
        body = {"__module__": cls.__module__, "__doc__": cls.__doc__, "__reduce__": _reduce_attribute_error}
        _ATTRIBUTE_ERRORS[cls] = type(cls.__name__, (cls, AttributeError), body)
    attribute_error = _ATTRIBUTE_ERRORS[cls](*error.args)
    for name in ("name", "obj"):
        setattr(attribute_error, name, None)  # prevents Python from suggesting other names
    return attribute_error


_ATTRIBUTE_ERRORS: dict[type[TallybayesError], type[TallybayesError]] = {}


def _reduce_attribute_error(error: TallybayesError) -> tuple[object, ...]:
    """Return the pickle form of an error whose class is created at run time."""
    return _attribute_error, (type(error).__bases__[0], error.args)


def _attribute_error(kind: type[TallybayesError], arguments: tuple[object, ...]) -> TallybayesError:
    """Return the attribute error of a class and its arguments, for pickle."""
    return as_attribute_error(kind(*arguments))


def printable(value: object) -> str:
    """Return a label or name as one line of printable text, with escapes for other characters.

    Labels come from data that may be untrusted: some characters control a terminal, reverse text or break a table.
    """
    text = str(value)
    return text if text.isprintable() else "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def short_repr(value: object, max_length: int = 60) -> str:
    """Return the repr of a value, truncated for messages."""
    text = repr(value)
    return text if len(text) <= max_length else f"{text[: max_length - 1]}…"


def short_int(number: int, digits: int = 3) -> str:
    """Return an integer of any size in a few digits."""
    size = number.bit_length()  # floats are limited to 1023 bits
    return f"{number:.{digits}g}" if size < 1000 else f"about 10^{int(size * 0.30103)}"


def _bytes(number: int) -> str:
    """Return a size with its unit."""
    units = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB")
    exponent = min((max(number, 1).bit_length() - 1) // 10, len(units) - 1)
    whole = number >> 10 * exponent
    return f"{f'{number / 2 ** (10 * exponent):.3g}' if whole < 2**40 else short_int(whole)} {units[exponent]}"


def _listed(values: Iterable[object], most: int = 8) -> str:
    """Return the reprs of at most `most` values, and the number of others."""
    shown = [repr(value) for value in values]
    n_more = len(shown) - most
    return ", ".join(shown[:most]) + (f", … {n_more} more" if n_more > 0 else "") if shown else "none"
