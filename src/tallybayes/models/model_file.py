"""Models in sealed files: their parameters as JSON, their tally as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from tallybayes import store
from tallybayes.errors import FileError
from tallybayes.tally.tally_file import tally_from_parts, tally_to_parts
from tallybayes.value import from_json, to_json


def save_model(model: Any, path: Any) -> None:
    """Write a fitted model to a sealed file."""
    manifest, arrays = tally_to_parts(model.tally_)
    names = getattr(model, "feature_names_in_", None)
    state = {
        "target": to_json(model._target),
        "by_name": model._by_name,
        "y_dtype": None if model._y_dtype is None else model._y_dtype.str,
        "feature_names": None if names is None else list(names),
        "n_features": getattr(model, "n_features_in_", None),
    }
    if hasattr(model, "_to_parts"):  # what this kind of model keeps besides its tally
        state["own"], more = model._to_parts()
        arrays = arrays | more
    parameters = {name: to_json(value) for name, value in model.get_params(deep=False).items()}
    content = {"class": type(model).__name__, "parameters": parameters, "state": state, "tally": manifest}
    store.write(path, "Model", content, arrays)


@store.register("Model")
def load_model(manifest: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    """The model that `save_model` wrote; only classes of this package are known."""
    from tallybayes.models.discriminant import GaussianDiscriminant
    from tallybayes.models.mixture import Mixture
    from tallybayes.models.naive_bayes import NaiveBayes
    from tallybayes.models.nearest_mean import NearestClassMean

    classes = (GaussianDiscriminant, Mixture, NaiveBayes, NearestClassMean)
    known: dict[str, type] = {each.__name__: each for each in classes}
    if manifest["class"] not in known:
        raise FileError(f"unknown model {manifest['class']!r}; expected one of {sorted(known)}.")
    model: Any = known[manifest["class"]](**{name: from_json(value) for name, value in manifest["parameters"].items()})
    state = manifest["state"]
    model._target, model._by_name = from_json(state["target"]), bool(state["by_name"])
    model._y_dtype = None if state["y_dtype"] is None else np.dtype(str(state["y_dtype"]))
    if state["feature_names"] is not None:
        model.feature_names_in_ = np.array([str(name) for name in state["feature_names"]], dtype=object)
    if state["n_features"] is not None:
        model.n_features_in_ = int(state["n_features"])
    tally = tally_from_parts(manifest["tally"], arrays)
    if str(model._target) not in tally.domains:
        raise FileError(f"the model's target {model._target!r} is not in its tally.")
    model._adopt(tally)
    _ = model.classes_  # refuses labels that are not of the type the file names
    if hasattr(model, "_from_parts"):
        model._from_parts(state.get("own", {}), arrays)
    return model
