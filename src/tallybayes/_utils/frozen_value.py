"""Value: a frozen dataclass that compares, hashes, prints and becomes JSON, arrays included.

Families, beliefs and prior rules are values: they hold settings, never data. They are parameters of scikit-learn
estimators, so they must survive ``clone``, ``==`` and ``repr``, and they travel in model files, so they must turn into
plain JSON and back without pickle.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any, ClassVar, Self

import numpy as np

from tallybayes.errors import FileError


class FrozenValue:
    """Base of frozen dataclasses whose fields are numbers, strings, tuples, mappings, arrays or other values."""

    _registry: ClassVar[dict[str, type[FrozenValue]]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls.__module__.startswith("tallybayes."):
            FrozenValue._registry[cls.__name__] = cls

    def _fields(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]

    def __eq__(self, other: object) -> bool:
        return self is other or (type(self) is type(other) and _key(self) == _key(other))

    def __hash__(self) -> int:
        """Return the hash of the fields, computed once."""
        found = self.__dict__.get("_hash")
        if found is None:  # it never changes: columns are grouped by their families again and again
            found = hash(_key(self))
            object.__setattr__(self, "_hash", found)
        return found

    def __repr__(self) -> str:
        shown, named = [], False
        for field in fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if field.repr and not _same(value, field.default):
                shown.append(f"{field.name}={_show(value)}" if named or field.kw_only else _show(value))
            elif not field.kw_only:
                named = True  # a place was left out, so those behind it need their names
        return f"{type(self).__name__}({', '.join(shown)})"

    def __reduce__(self) -> tuple[Any, ...]:
        # Copies and pickles are made anew: NumPy's own would give back arrays that can be written to.
        return _make, (type(self), self._fields())

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: Any) -> Self:
        return self  # it never changes, and nor do its arrays

    def replace(self, **changes: Any) -> Self:
        """A copy with some fields changed."""
        return type(self)(**{**self._fields(), **changes})

    def to_config(self) -> dict[str, Any]:
        """Plain JSON that `from_config` reads back.

        Returns
        -------
        dict
            ``{"type": class name, field: value, ...}`` of numbers, strings, lists and dicts only.
        """
        if FrozenValue._registry.get(type(self).__name__) is not type(self):
            raise FileError(
                f"cannot save a {type(self).__name__}: files hold only the families and beliefs of Tallybayes itself.\n"
                "    Reading a file never runs code that came with it. Keep its statistics with NumPy instead."
            )
        return {"type": type(self).__name__, **{name: to_json(value) for name, value in self._fields().items()}}


def from_config(config: Mapping[str, Any]) -> Any:
    """The value that `FrozenValue.to_config` described; only classes of this package are known.

    Parameters
    ----------
    config : mapping
        What ``to_config`` returned, perhaps after a trip through a file.

    Returns
    -------
    Value
        An equal value.
    """
    arguments = dict(config) if isinstance(config, Mapping) else {}
    name = arguments.pop("type", None)
    known = _known(name) if isinstance(name, str) else None
    if known is None:
        raise FileError(f"unknown type {name!r} in a configuration; expected one of {sorted(FrozenValue._registry)}.")
    allowed = {field.name for field in fields(known)}  # type: ignore[arg-type]
    if set(arguments) - allowed:
        raise FileError(f"{name} has no field {sorted(set(arguments) - allowed)}; expected {sorted(allowed)}.")
    if allowed - set(arguments):  # also those with a default: `to_config` writes every field
        raise FileError(f"{name} cannot be made without the fields {sorted(allowed - set(arguments))}.")
    try:
        return known(**{key: from_json(value) for key, value in arguments.items()})
    except TypeError as error:  # a field is of a type its class cannot take
        raise FileError(f"{name} cannot be made of the fields {sorted(arguments)}: {error}.") from error


def _known(name: str) -> type[FrozenValue] | None:
    """The class of that name; a public one whose module nobody has used yet is imported now."""
    if name not in FrozenValue._registry:
        import tallybayes

        if name in tallybayes._PUBLIC:
            getattr(tallybayes, name)
    known = FrozenValue._registry.get(name)
    return known if is_dataclass(known) else None


def _make(kind: type[FrozenValue], arguments: Mapping[str, Any]) -> FrozenValue:
    return kind(**arguments)


def frozen_array(value: Any, dtype: type | None = float) -> np.ndarray:
    """A read-only array that nobody can change from outside: a copy, unless it was such an array before."""
    if isinstance(value, np.ndarray) and dtype in (None, value.dtype) and _is_frozen(value):
        return value
    array = np.array(value, dtype=dtype)
    array.setflags(write=False)
    return array


def _is_frozen(array: Any) -> bool:
    """Whether an array, and every array it is a view of, is read-only."""
    while type(array) is np.ndarray and not array.flags.writeable:
        array = array.base
    if type(array).__name__ != "PyCapsule":  # only of a capsule is the text short, and looked at
        return array is None
    return repr(array).startswith('<capsule object "tallybayes"')  # the kernels', whom nobody else knows


def _walk(value: Any, leaf: Callable[[Any], Any]) -> Any:
    if isinstance(value, tuple | list):
        return tuple(_walk(item, leaf) for item in value)
    if isinstance(value, Mapping):
        return tuple((_walk(key, leaf), _walk(item, leaf)) for key, item in value.items())
    return leaf(value)


def _key(value: Any) -> Any:
    """A hashable stand-in for equality: arrays by shape and numbers, 0-d arrays like their number."""

    def leaf(item: Any) -> Any:
        if isinstance(item, FrozenValue):
            return (type(item).__name__, *(_key(part) for part in item._fields().values()))
        if isinstance(item, np.ndarray):
            return item.item() if item.ndim == 0 else (item.shape, *item.ravel().tolist())
        if isinstance(item, bool):
            return (bool, item)  # True is another level than 1
        return item

    return _walk(value, leaf)


def _same(value: Any, default: Any) -> bool:
    try:
        return bool(_key(value) == _key(default))
    except TypeError:
        return False


def same(first: Any, second: Any) -> bool:
    """Whether two settings mean the same; a list, a tuple and an array of the same values do."""
    first, second = (one.tolist() if isinstance(one, np.ndarray) else one for one in (first, second))
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        first, second = list(first.items()), list(second.items())
    if isinstance(first, tuple | list) and isinstance(second, tuple | list):
        return len(first) == len(second) and all(map(same, first, second))
    return bool(first == second)


def _show(value: Any) -> str:
    if isinstance(value, np.ndarray):
        if value.ndim == 0:
            return f"{value.item():.12g}" if value.dtype.kind == "f" else repr(value.item())
        text = np.array2string(value, precision=4, separator=", ", threshold=6, edgeitems=2)
        return " ".join(text.split())
    return repr(value)


_REST = {"type": "rest"}  # the key ... of a mapping from columns


def to_json(value: Any) -> Any:
    """Settings as plain JSON: values, arrays, tuples and mappings included."""
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


def from_json(value: Any) -> Any:
    """What `to_json` was given; lists and arrays come back as tuples."""
    if isinstance(value, Mapping):
        if value == _REST:
            return ...
        if value.get("type") == "mapping" and len(value) == 2:
            return {from_json(key): from_json(item) for key, item in value["items"]}
        return from_config(value)
    if isinstance(value, list):
        return tuple(from_json(item) for item in value)
    return value
