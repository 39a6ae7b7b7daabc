"""Receipts of removed rows, without the rows, so that others can verify the removal."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import wraps
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

import numpy as np

from tallybayes import __version__
from tallybayes._utils.atomic_write import atomic_write
from tallybayes._utils.fitted import check_is_fitted
from tallybayes.data.encoding import is_missing
from tallybayes.errors import DataError, FileError, printable
from tallybayes.messages import with_article
from tallybayes.tally.domain import Domain
from tallybayes.tally.tally import Tally
from tallybayes.tally.tally_io import tally_to_parts
from tallybayes.tally.vocabulary import Vocabulary

if TYPE_CHECKING:
    from tallybayes.models.estimator import Estimator

_FORMAT = 1
_LARGEST = 2**24  # bytes of a file
Method = TypeVar("Method", bound=Callable[..., Any])


@dataclass(frozen=True)
class Receipt:
    """Receipt of ``model.forget(..., receipt=True)``: counts and digests of the removal, without the rows.

    Attributes
    ----------
    model : str
        The class of the model.
    when : str
        The time, in UTC.
    rows : float
        The total weight of the removed rows.
    classes : dict
        For classifiers, the removed weight of each class.
    before, after : str
        SHA-256 digests of the counts of the model, with sorted levels; equal digests mean equal counts to the last bit.
    possible_residue : tuple of str
        Choices that may depend on the removed rows and that forgetting does not change.
    version : str
        The version of this package.

    Examples
    --------
    >>> import tallybayes as tb
    >>> rows = {"sky": ["sun", "rain", "fog"], "picnic": ["yes", "no", "no"]}
    >>> model = tb.NaiveBayes().fit(rows, "picnic")
    >>> receipt = model.forget({"sky": ["fog"], "picnic": ["no"]}, "picnic", receipt=True)
    >>> receipt.rows, receipt.classes
    (1.0, {'no': 1.0})
    >>> never = tb.NaiveBayes().fit({"sky": ["sun", "rain"], "picnic": ["yes", "no"]}, "picnic")
    >>> tb.verify_receipt(receipt, model, never).ok
    True
    """

    model: str
    when: str
    rows: float
    classes: dict[str, float]
    before: str
    after: str
    possible_residue: tuple[str, ...] = ()
    version: str = __version__
    format: int = field(default=_FORMAT, repr=False)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the receipt as JSON, for `Receipt.load`.

        Parameters
        ----------
        path : str or path-like
        """
        content = {**asdict(self), "possible_residue": list(self.possible_residue)}
        with atomic_write(path) as file:
            file.write((json.dumps({**content, "seal": _seal(content)}, indent=1, ensure_ascii=False) + "\n").encode())

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Self:
        """Load a receipt that `save` wrote; raise FileError if it was changed since.

        The seal is a digest, not a signature: a forger can seal a changed receipt again. Counts with the final digest
        cannot be forged; `verify_receipt` checks them.

        Parameters
        ----------
        path : str or path-like
        """
        with Path(path).open("rb") as file:
            content = file.read(_LARGEST + 1)
        try:
            found = json.loads(content) if len(content) <= _LARGEST else None
            if not isinstance(found, dict) or found.get("format") != _FORMAT:
                raise ValueError("no receipt")
            if found.pop("seal") != _seal(found):
                raise ValueError("changed")
            receipt = cls(**{**found, "possible_residue": tuple(map(str, found["possible_residue"]))})
            texts = (receipt.model, receipt.when, receipt.before, receipt.after, receipt.version)
            good = all(isinstance(text, str) for text in texts) and isinstance(receipt.classes, dict)
            good = good and all(isinstance(n, int | float) for n in (receipt.rows, *receipt.classes.values()))
            if not good or not all(map(_is_digest, (receipt.before, receipt.after))):
                raise ValueError("no receipt")
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise FileError(
                f"{path} is not a receipt, or was changed since; expected a file written by Receipt.save."
            ) from error
        return receipt

    def __repr__(self) -> str:
        n_rows = f"{self.rows:.12g} row{'s' * (self.rows != 1)}"
        lines = [f"Receipt: {n_rows} taken out of {with_article(self.model)}, {self.when}"]
        lines += [f"  {printable(label)}: {rows:.12g}" for label, rows in list(self.classes.items())[:12]]
        lines += [f"  … {len(self.classes) - 12} more classes"] if len(self.classes) > 12 else []
        lines += [f"  counts before  {self.before}", f"  counts after   {self.after}"]
        if self.possible_residue:
            lines += ["  may still show what they were:", *(f"    {what}" for what in self.possible_residue)]
        return "\n".join(lines)


def _seal(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _is_digest(text: str) -> bool:
    return len(text) == 64 and not set(text) - set("0123456789abcdef")


class Verification(NamedTuple):
    """Result of `verify_receipt`.

    Examples
    --------
    >>> import tallybayes as tb
    >>> tb.results.Verification(matches_receipt=True, matches_retrained=None).ok
    True
    """

    matches_receipt: bool  # whether the counts of the model have the final digest of the receipt
    matches_retrained: (
        bool | None
    )  # whether they equal those of a model without the rows; None if there is no such model

    @property
    def ok(self) -> bool:
        """Whether all checks hold."""
        return self.matches_receipt and self.matches_retrained is not False

    def __repr__(self) -> str:
        words = {True: "yes", False: "NO", None: "not compared"}
        return (
            f"the model has the counts that the receipt ends with: {words[self.matches_receipt]}\n"
            f"its counts are those of a model that never saw the rows: {words[self.matches_retrained]}"
        )


def verify_receipt(
    receipt: Receipt, model: Estimator, retrained_model: Estimator | None = None, *, tolerance: float = 1e-9
) -> Verification:
    """Verify a receipt against a model, and the model against one that was fitted without the rows.

    The digest is compared with the receipt exactly. A model that was fitted without the rows has the same counts; its
    sums of continuous columns may differ in the last digits, so they are compared with a tolerance.

    Parameters
    ----------
    receipt : Receipt
    model : fitted model
        The model after forgetting.
    retrained_model : fitted model, optional
        A model fitted to the remaining rows, with the same choices (``model.without_rows().partial_fit(...)``).
    tolerance : float, default 1e-9
        Relative to the largest number.

    Returns
    -------
    Verification

    Examples
    --------
    >>> import tallybayes as tb
    >>> model = tb.LinearRegression().fit([[1.0], [2.0], [3.0], [9.0]], [1.0, 2.1, 2.9, 0.0])
    >>> receipt = model.forget([[9.0]], [0.0], receipt=True)
    >>> tb.verify_receipt(receipt, model, tb.LinearRegression().fit([[1.0], [2.0], [3.0]], [1.0, 2.1, 2.9]))
    the model has the counts that the receipt ends with: yes
    its counts are those of a model that never saw the rows: yes
    """
    if not isinstance(receipt, Receipt):
        raise DataError.wrong_type("receipt", repr(receipt)[:60], "a Receipt", "Read one with tb.Receipt.load(path).")
    same = None
    if retrained_model is not None:
        mine = _counts(model)
        its = _counts(retrained_model)
        same = type(_inside(model)) is type(_inside(retrained_model)) and len(mine) == len(its)
        same = same and all(one.isclose(other, tolerance) for one, other in zip(mine, its, strict=True))
    return Verification(digest(model) == receipt.after, same)


def digest(model: Estimator) -> str:
    """Return the SHA-256 digest of the counts of a model, with sorted levels."""
    return _digest(_counts(model))


def _digest(counts: list[Any]) -> str:
    """Return the digest of tallies and counts of trees."""
    total = hashlib.sha256()
    for one in counts:
        manifest, arrays = one.to_parts() if hasattr(one, "to_parts") else _sorted_parts(one)
        total.update(json.dumps(manifest, sort_keys=True).encode())
        for name in sorted(arrays):
            array = np.ascontiguousarray(arrays[name])
            array = array + 0 if array.dtype.kind == "f" else array  # −0 and 0 are equal
            total.update(f"{name} {array.dtype.str} {array.shape}\n".encode())
            total.update(array.tobytes())
    return total.hexdigest()


def _sorted_parts(tally: Tally) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return a tally with sorted levels as JSON and arrays."""
    return tally_to_parts(tally.align({name: _sorted(one) for name, one in tally.domains.items()}))


def _sorted(domain: Domain) -> Domain:
    """Return the levels in sorted order; words keep their order."""
    if isinstance(domain, Vocabulary):
        return domain
    levels = sorted(domain.levels, key=lambda level: (level is not None, isinstance(level, str), level))
    return domain.with_levels(levels)


def _models(model: Estimator) -> list[Any]:
    """Return the model, or the members of an ensemble."""
    model = _inside(model)
    return [member.model for member in model.members_] if hasattr(model, "members_") else [model]


def _counts(model: Estimator) -> list[Any]:
    """Return the tallies, or the counts of trees, of a model or of its members."""
    check_is_fitted(model)
    return [one.counts_ if hasattr(one, "counts_") else one.tally_ for one in _models(model)]


def _inside(model: Estimator) -> Any:
    """Return the inner model of a window."""
    return vars(model).get("model_", model)


def with_receipt(method: Method) -> Method:
    """Return the method with a parameter ``receipt``, which returns a `Receipt` of the removal."""

    @wraps(method)
    def forget(model: Estimator, *given: Any, receipt: bool = False, **named: Any) -> Any:
        if not receipt:
            return method(model, *given, **named)
        before = _counts(model)
        rows = model.n_rows_
        classes = _classes(model)
        found = method(model, *given, **named)
        left = _classes(model)
        taken = {label: n - left.get(label, 0.0) for label, n in classes.items()}
        return Receipt(
            type(model).__name__,
            datetime.now(UTC).isoformat(timespec="seconds"),
            float(rows - found.n_rows_),
            {str(label): float(n) for label, n in taken.items() if n},
            _digest(before),
            digest(model),
            tuple(_may_remain(model)),
        )

    known = inspect.signature(method)
    parameter = inspect.Parameter("receipt", inspect.Parameter.KEYWORD_ONLY, default=False, annotation="bool")
    vars(forget)["__signature__"] = known.replace(parameters=[*known.parameters.values(), parameter])
    forget.__doc__ = inspect.cleandoc(method.__doc__ or "").replace("Returns\n-------\nself", _DOCUMENTED)
    return forget  # type: ignore[return-value]


_DOCUMENTED = """receipt : bool, default False
    Return a `Receipt` of the removal instead of the model.

Returns
-------
self, or Receipt"""


def _classes(model: Estimator) -> dict[Any, float]:
    """Return the weight of each class, if the model has classes."""
    model = _inside(model)
    if not hasattr(model, "target_"):
        return {}
    counts = _counts(model)[0]
    if hasattr(counts, "weight_by_class"):
        return dict(counts.weight_by_class)
    levels = counts.domains[counts.schema.domain(model.target_)].levels
    table: Any = counts[model.target_]
    return dict(zip(levels, table.table.tolist(), strict=True))


def _may_remain(model: Estimator) -> list[str]:
    """Return the choices that may depend on removed rows and that forgetting does not change."""
    model = _inside(model)
    models, tallies = _models(model), _counts(model)
    prior = getattr(model, "prior", None)
    has_prior = prior is not None and not isinstance(prior, str) and not is_missing(prior)
    columns = getattr(model, "columns", None)
    declared = [name for tally in tallies for name, domain in tally.domains.items() if domain.declared]
    binned = _discretized_columns(model, tallies)
    metric = getattr(model, "metric", None)
    residue = {
        "spec_: the members, their weights, bins and calibration": hasattr(model, "spec_"),
        **{text: True for one in models if hasattr(one, "structure_") for text in one.structure_.residue},
        "columns_: the families that were selected when the model was fitted": _has_suggested(columns),
        f"bin edges of {_first_names(binned)}": bool(binned),
        "calibration_: the calibration of the probabilities": getattr(model, "calibration_", None) is not None,
        "the learned metric": isinstance(metric, str) and metric == "learned",
        "prior, if it was estimated from the removed rows": has_prior,
        f"declared levels: {_first_names(declared)}": bool(declared),
        "copies, files and predictions that were made before": True,
    }
    return [text for text, remains in residue.items() if remains]


def _discretized_columns(model: Estimator, tallies: list[Any]) -> list[Any]:
    """Return the columns that are counted in bins."""
    factors = chain.from_iterable(getattr(tally, "factors", ()) for tally in tallies)
    binned = [name for factor in factors if factor.family.bins for name in factor.columns]
    if binned or not hasattr(model, "columns_"):
        return binned
    return [name for name, family in model.columns_.items() if getattr(family, "bins", None)]


def _first_names(names: list[Any]) -> str:
    """Return up to five names as text."""
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return f"{', '.join(map(printable, names[:5]))}{more}"


def _has_suggested(columns: object) -> bool:
    """Return whether families were selected by evidence, for all columns or for some."""
    values = columns.values() if isinstance(columns, Mapping) else [columns]
    return any(isinstance(value, str) and value == "suggest" for value in values)
