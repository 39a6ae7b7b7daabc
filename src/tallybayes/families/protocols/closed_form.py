"""ClosedForm: a function of families with a general default and closed forms for single classes."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any, Generic, TypeVar

Result = TypeVar("Result")
Function = TypeVar("Function", bound=Callable[..., Any])


class ClosedForm(Generic[Result]):
    """A function of a family with a general default, and closed forms registered for single classes.

    Unlike `functools.singledispatch`, a subclass does not inherit a closed form, because it may count or score
    differently: it uses the default until it registers one of its own.

    Examples
    --------
    >>> import tallybayes as tb
    >>> from tallybayes.families.protocols.closed_form import ClosedForm
    >>> @ClosedForm
    ... def support_size(family):
    ...     return None
    >>> @support_size.register(tb.Bernoulli)
    ... def _(family):
    ...     return 2
    >>> support_size(tb.Bernoulli()), support_size(tb.Poisson())
    (2, None)
    """

    def __init__(self, default: Callable[..., Result]) -> None:
        self.default = default
        self.registry: dict[type, Callable[..., Result]] = {}
        update_wrapper(self, default)

    def register(self, *classes: type) -> Callable[[Function], Function]:
        """Return a decorator that registers a closed form for exactly these classes."""

        def keep(function: Function) -> Function:
            self.registry.update(dict.fromkeys(classes, function))
            return function

        return keep

    def of(self, family_class: type) -> Callable[..., Result]:
        """Return the closed form of a class, or the default."""
        return self.registry.get(family_class, self.default)

    def __call__(self, family: Any, *arguments: Any) -> Result:
        """Evaluate the closed form of the family's class, or the default."""
        return self.registry.get(type(family), self.default)(family, *arguments)
