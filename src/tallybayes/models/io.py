"""Model files: parameters as JSON and the tally as arrays, in a sealed file of one format version."""

from __future__ import annotations

from importlib import import_module
from os import PathLike
from typing import Any, Protocol, Self

import numpy as np

from tallybayes._utils import sealed_file
from tallybayes._utils.frozen_value import from_json, to_json
from tallybayes.data.encoding import is_missing
from tallybayes.errors import FileError
from tallybayes.tally.fixed_parameter_tally import fixed_parameters_from_parts, fixed_parameters_to_parts
from tallybayes.tally.tally import Tally
from tallybayes.tally.tally_io import tally_from_parts, tally_to_parts


class StoredModel(Protocol):
    """What a file needs of a model with a tally: its fitted state as JSON and arrays, and checks of what is read."""

    tally_: Tally
    _fixed_parameters: tuple[Any, ...] | None

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name."""

    def _shape_to_json(self) -> dict[str, Any]: ...
    def _shape_from_json(self, state: dict[str, Any], tally: Tally) -> None: ...
    def _to_manifest(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]: ...
    def _from_manifest(self, state: dict[str, Any], arrays: dict[str, np.ndarray]) -> None: ...
    def _set_tally(self, tally: Tally) -> Self: ...
    def _set_fixed_parameters(self, parameters: tuple[Any, ...] | None) -> Self: ...
    def _check_loaded(self) -> None: ...


class CompositeModel(Protocol):
    """What a file needs of a model of several members: its state with those of its members."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name."""

    def _to_file(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]: ...
    def _from_file(self, state: dict[str, Any], arrays: dict[str, np.ndarray]) -> None: ...


def load(path: str | PathLike[str]) -> Any:
    """Load an object that ``save`` wrote: a `Tally`, a model, or an online filter.

    Files are untrusted: no code is executed, and sizes are checked before memory is allocated. FileError is raised for
    a file of another format version.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    object
        Of the class that was saved.

    Examples
    --------
    >>> import tempfile, os, tallybayes as tb
    >>> coins = tb.count({"x": [1, 0, 1]}, [tb.Factor("x", (), tb.Bernoulli())])
    >>> path = os.path.join(tempfile.mkdtemp(), "coins.tally")
    >>> coins.save(path)
    >>> tb.load(path) == coins
    True
    """
    return sealed_file.load(path)


def save_model(model: StoredModel | CompositeModel, path: str | PathLike[str]) -> None:
    """Write a fitted model to a sealed file."""
    sealed_file.write(path, "Model", *model_to_parts(model))


def model_to_parts(model: StoredModel | CompositeModel) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return a fitted model as JSON and arrays; a composite model includes its members."""
    kind = type(model)
    if _model_class(kind.__name__) is not kind:
        raise FileError(
            f"cannot save a {kind.__name__}: files name models of this package only.\n"
            "    Save its counts, model.tally_.save(path), and make the model from them again."
        )
    parameters = {
        name: None if is_missing(value) else to_json(value) for name, value in model.get_params(deep=False).items()
    }
    content = {"class": kind.__name__, "parameters": parameters}
    if hasattr(model, "_to_file"):
        content["state"], arrays = model._to_file()
        return content, arrays
    if model._fixed_parameters is None:
        manifest, arrays = tally_to_parts(model.tally_)
    else:
        manifest, arrays = fixed_parameters_to_parts(model.tally_, model._fixed_parameters)
    state = model._shape_to_json()
    state["own"], more = model._to_manifest()  # the fitted state of this kind of model besides its tally
    return content | {"state": state, "tally" if model._fixed_parameters is None else "stated": manifest}, arrays | more


@sealed_file.register("Model")
def model_from_parts(manifest: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    """Return the model that `model_to_parts` wrote; only classes of this package are accepted."""
    name = manifest.pop("class")
    kind = _model_class(name)
    if kind is None:
        raise FileError(f"unknown model {name!r:.60}; expected a model of this package.")
    parameters = manifest.pop("parameters")
    state = manifest.pop("state")
    if set(parameters) != (expected := set(kind._get_param_names())):
        missing = sorted(expected - set(parameters))
        unknown = sorted(set(parameters) - expected)
        raise FileError(f"the model's parameters have {unknown!r:.200} unknown and {missing!r:.200} missing.")
    model: Any = kind(**{name: from_json(value) for name, value in parameters.items()})
    if hasattr(model, "_from_file"):
        sealed_file.check_no_unknown_entries("the model", manifest)
        model._from_file(state, arrays)
    elif "stated" in manifest:
        tally, given = fixed_parameters_from_parts(manifest.pop("stated"), arrays)
        sealed_file.check_no_unknown_entries("the model", manifest)
        _fill(model, state, tally, arrays, given)
    else:
        tally = tally_from_parts(manifest.pop("tally"), arrays)
        sealed_file.check_no_unknown_entries("the model", manifest)
        _fill(model, state, tally, arrays)
    sealed_file.check_no_unknown_entries("the file", arrays)
    return model


def _model_class(name: object) -> Any:
    """Return the public model class of a name; None if there is none."""
    from tallybayes import _PUBLIC
    from tallybayes.models.estimator import Estimator

    if not isinstance(name, str) or not _PUBLIC.get(name, "").startswith("models."):
        return None
    found = getattr(import_module(f"tallybayes.{_PUBLIC[name]}"), name)
    return found if isinstance(found, type) and issubclass(found, Estimator) else None


@sealed_file.register("OnlineFilter")
def filter_from_parts(manifest: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    """Return an online filter with its model, as `OnlineFilter.save` wrote them."""
    return import_module("tallybayes.models.hmm.inference.online_filter").OnlineFilter._from_manifest(manifest, arrays)


@sealed_file.register("Window")
def window_from_parts(manifest: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    """Return a window with its model and its rows, as `Window.save` wrote them."""
    return import_module("tallybayes.models.streaming.window").Window._from_manifest(manifest, arrays)


@sealed_file.register("Decayed")
def decayed_from_parts(manifest: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    """Return a decayed model and its clock, as `Decayed.save` wrote them."""
    return import_module("tallybayes.models.streaming.decayed").Decayed._from_manifest(manifest, arrays)


def _fill(
    model: StoredModel,
    state: dict[str, Any],
    tally: Tally,
    arrays: dict[str, np.ndarray],
    given: tuple[Any, ...] | None = None,
) -> None:
    """Set a model's tally, or its fixed parameters, and the rest of its fitted state."""
    own = state.pop("own")
    model._shape_from_json(state, tally)
    sealed_file.check_no_unknown_entries("the model's state", state)
    model._set_tally(tally)._set_fixed_parameters(given)
    model._check_loaded()
    model._from_manifest(own, arrays)
    sealed_file.check_no_unknown_entries("the model's state", own)
