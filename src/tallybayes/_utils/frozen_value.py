"""FrozenValue: base of immutable dataclasses with equality, hash, repr and a JSON form, arrays included.

Families, distributions and prior rules are frozen values: they hold parameters, never data. As parameters of
scikit-learn estimators they must support ``clone``, ``==`` and ``repr``. As parts of model files they must convert to
plain JSON and back without pickle.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Self

import numpy as np

from tallybayes.errors import FileError

_CLASSES: dict[str, type[FrozenValue]] = {}  # classes of this package by name, which files may contain


class FrozenValue:
    """Base of frozen dataclasses whose fields are numbers, strings, tuples, mappings, arrays or frozen values."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__module__.startswith("tallybayes."):
            _CLASSES[cls.__name__] = cls

    def _fields(self) -> dict[str, Any]:
        """Return the fields by name."""
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the fields that are arrays, by name."""
        return {name: value for name, value in self._fields().items() if isinstance(value, np.ndarray)}

    def __eq__(self, other: object) -> bool:
        """Return whether the other value is of the same class and has equal fields."""
        return self is other or (type(self) is type(other) and _key(self) == _key(other))

    def __hash__(self) -> int:
        """Return the hash of the fields, computed once."""
        value = self.__dict__.get("_hash")
        if value is None:  # cached, since columns are often grouped by family
            value = hash(_key(self))
            object.__setattr__(self, "_hash", value)
        return value

    def __repr__(self) -> str:
        parts, skipped = [], False
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if field.repr and not _is_default(value, field.default):
                parts.append(f"{field.name}={_show(value)}" if skipped or field.kw_only else _show(value))
            elif not field.kw_only:
                skipped = True  # later fields must be named
        return f"{type(self).__name__}({', '.join(parts)})"

    def __reduce__(self) -> tuple[Any, ...]:
        # Construct copies anew: NumPy would unpickle writable arrays.
        return _make, (type(self), self._fields())

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self  # immutable, including its arrays

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some fields changed."""
        return type(self)(**{**self._fields(), **changes})

    def to_config(self) -> dict[str, Any]:
        """Return plain JSON, which `from_config` reads.

        Returns
        -------
        dict
            ``{"type": class name, field: value, ...}`` of numbers, strings, lists and dicts only.
        """
        if not is_storable(self):
            raise FileError(
                f"cannot save a {type(self).__name__}: files contain only classes of Tallybayes, since loading runs no "
                "code.\n    Save its statistics with NumPy instead."
            )
        return {"type": type(self).__name__, **{name: to_json(value) for name, value in self._fields().items()}}


def is_storable(value: FrozenValue) -> bool:
    """Return whether files may contain values of this class: only classes of this package."""
    return _CLASSES.get(type(value).__name__) is type(value)


def from_config(config: Mapping[str, Any]) -> Any:
    """Return the value described by `FrozenValue.to_config`; only classes of this package are allowed.

    Parameters
    ----------
    config : mapping
        The result of ``to_config``, possibly read from a file.

    Returns
    -------
    FrozenValue
    """
    arguments = dict(config) if isinstance(config, Mapping) else {}
    name = arguments.pop("type", None)
    cls = _class_named(name) if isinstance(name, str) else None
    if cls is None:
        raise FileError(f"unknown type {name!r} in a configuration; expected one of {sorted(_CLASSES)}.")
    allowed = {field.name for field in fields(cls)}  # type: ignore[arg-type]
    if set(arguments) - allowed:
        raise FileError(f"{name} has no field {sorted(set(arguments) - allowed)}; expected {sorted(allowed)}.")
    if allowed - set(arguments):  # also fields with defaults: `to_config` writes every field
        raise FileError(f"{name} cannot be made without the fields {sorted(allowed - set(arguments))}.")
    try:
        return cls(**{key: from_json(value) for key, value in arguments.items()})
    except TypeError as error:  # a field of the wrong type
        raise FileError(f"{name} cannot be made of the fields {sorted(arguments)}: {error}.") from error


def _class_named(name: str) -> type[FrozenValue] | None:
    """Return the class of this name, importing the module of a public class on first use."""
    if name not in _CLASSES:
        import tallybayes

        if name in tallybayes._PUBLIC:
            getattr(tallybayes, name)
    cls = _CLASSES.get(name)
    return cls if is_dataclass(cls) else None


def _make(cls: type[FrozenValue], arguments: Mapping[str, Any]) -> FrozenValue:
    """Construct a value from its fields, for pickle."""
    return cls(**arguments)


def frozen_array(value: object, dtype: type | None = float) -> np.ndarray:
    """Return a read-only array that no other array can modify: a copy, unless it already is one."""
    if isinstance(value, np.ndarray) and dtype in (None, value.dtype) and _is_frozen(value):
        return value
    array = np.array(value, dtype=dtype)
    array.setflags(write=False)
    return array


def _is_frozen(array: object) -> bool:
    """Return whether an array, and every array it is a view of, is read-only."""
    while type(array) is np.ndarray and not array.flags.writeable:
        array = array.base
    if type(array).__name__ != "PyCapsule":  # avoid the repr of other objects, which may be long
        return array is None
    return repr(array).startswith('<capsule object "tallybayes"')  # owned by the kernels, which keep no reference


def _walk(value: object, leaf: Callable[[Any], Any]) -> Any:
    """Return nested tuples, lists and mappings as tuples, with `leaf` applied to the other values."""
    if isinstance(value, tuple | list):
        return tuple(_walk(item, leaf) for item in value)
    if isinstance(value, Mapping):
        return tuple((_walk(key, leaf), _walk(item, leaf)) for key, item in value.items())
    return leaf(value)


def _key(value: object) -> Any:
    """Return a hashable key for equality: arrays by shape and values, 0-d arrays like their number."""

    def leaf(item: object) -> Any:
        if isinstance(item, FrozenValue):
            return (type(item).__name__, *(_key(part) for part in item._fields().values()))
        if isinstance(item, np.ndarray):
            return item.item() if item.ndim == 0 else (item.shape, *item.ravel().tolist())
        if isinstance(item, bool):
            return (bool, item)  # True and 1 are different levels
        return item

    return _walk(value, leaf)


def _is_default(value: object, default: object) -> bool:
    """Return whether a value equals a field's default."""
    try:
        return bool(_key(value) == _key(default))
    except TypeError:
        return False


def same(first: object, second: object) -> bool:
    """Return whether two parameter values are equal; lists, tuples and arrays of equal values are."""
    first, second = (v.tolist() if isinstance(v, np.ndarray) else v for v in (first, second))
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        first, second = list(first.items()), list(second.items())
    if isinstance(first, tuple | list) and isinstance(second, tuple | list):
        return len(first) == len(second) and all(map(same, first, second))
    return bool(first == second)


def _show(value: object) -> str:
    """Return the repr of a field, short for arrays."""
    if isinstance(value, np.ndarray):
        if value.ndim == 0:
            return f"{value.item():.12g}" if value.dtype.kind == "f" else repr(value.item())
        text = np.array2string(value, precision=4, separator=", ", threshold=6, edgeitems=2)
        return " ".join(text.split())
    return repr(value)


_REST = {"type": "rest"}  # JSON form of the key ... (all other columns)


def to_json(value: object) -> Any:
    """Return parameter values as plain JSON, including frozen values, arrays, tuples and mappings."""
    if isinstance(value, FrozenValue):
        return value.to_config()
    if value is ...:
        return dict(_REST)
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, tuple | list):
        return [to_json(item) for item in value]
    if isinstance(value, Mapping):
        return {"type": "mapping", "items": [[to_json(key), to_json(item)] for key, item in value.items()]}
    if isinstance(value, np.generic):
        return value.item()
    return value


def from_json(value: object) -> Any:
    """Return the value given to `to_json`; lists and arrays become tuples."""
    if isinstance(value, Mapping):
        if value == _REST:
            return ...
        if value.get("type") == "mapping" and len(value) == 2:
            return {from_json(key): from_json(item) for key, item in value["items"]}
        return from_config(value)
    if isinstance(value, list):
        return tuple(from_json(item) for item in value)
    return value
