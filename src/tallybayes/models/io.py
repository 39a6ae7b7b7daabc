"""Models in sealed files: their parameters as JSON, their tally as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import numpy as np

from tallybayes._utils import sealed_file
from tallybayes._utils.frozen_value import from_json, to_json
from tallybayes.data.encoding import is_missing
from tallybayes.distributions.dirichlet import Dirichlet
from tallybayes.distributions.parameter_distribution import ParameterDistribution
from tallybayes.errors import FileError
from tallybayes.families.estimates import read_estimate
from tallybayes.tally.factor import Factor
from tallybayes.tally.fixed_parameter_tally import stated_from_parts, stated_to_parts
from tallybayes.tally.tally_io import tally_from_parts, tally_to_parts

# The classes that files may hold, and where they live.
_MODELS = {
    "AveragedOneDependence": "one_dependence.averaged_one_dependence",
    "BayesianNetwork": "network.bayesian_network",
    "Chosen": "ensemble.auto_classifier",
    "GaussianDiscriminant": "discriminant.gaussian_discriminant",
    "HiddenMarkovModel": "hmm.hidden_markov_model",
    "Mixture": "mixture.mixture_model",
    "NaiveBayes": "naive_bayes.naive_bayes",
    "NearestClassMean": "nearest_mean.nearest_class_mean",
    "Regression": "regression.linear_regression",
    "TreeAugmentedNaiveBayes": "one_dependence.tree_augmented",
}


# What parameters were called in files from before, and are called now.
_RENAMED = {"n_iter": "max_iter", "emission": "columns"}

# Files say which defaults they were written under; those from before they did are of the first.
_DEFAULTS = 2
# Models whose columns of labels and words had one pseudo-count a level under the first.
_ADDED_ONE = ("HiddenMarkovModel", "Mixture", "NaiveBayes")


def save_model(model: Any, path: Any) -> None:
    """Write a fitted model to a sealed file."""
    sealed_file.write(path, "Model", *model_to_parts(model))


def model_to_parts(model: Any) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """A fitted model as JSON and arrays; one made of others holds theirs."""
    kind = type(model)
    if kind.__module__ != f"tallybayes.models.{_MODELS.get(kind.__name__)}":
        raise FileError(
            f"cannot save a {kind.__name__}: files name models of this package only.\n"
            "    Save its counts, model.tally_.save(path), and make the model from them again."
        )
    parameters = {
        name: None if is_missing(value) else to_json(value) for name, value in model.get_params(deep=False).items()
    }
    content = {"class": kind.__name__, "defaults": _DEFAULTS, "parameters": parameters}
    if hasattr(model, "_to_file"):
        content["state"], arrays = model._to_file()
        return content, arrays
    if model._given is None:
        manifest, arrays = tally_to_parts(model.tally_)
    else:
        manifest, arrays = stated_to_parts(model.tally_, model._given)
    state = model._shape_to_json()
    state["own"], more = model._to_parts()  # what this kind of model keeps besides its tally
    return content | {"state": state, "tally" if model._given is None else "stated": manifest}, arrays | more


@sealed_file.register("Model")
def model_from_parts(manifest: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    """The model that `model_to_parts` told of; only classes of this package are known."""
    name = manifest.pop("class")
    if name not in _MODELS:
        raise FileError(f"unknown model {name!r:.60}; expected one of {sorted(_MODELS)}.")
    kind = getattr(import_module(f"tallybayes.models.{_MODELS[name]}"), name)
    read, state = manifest.pop("parameters"), manifest.pop("state")
    parameters = {_RENAMED.get(name, name): from_json(value) for name, value in read.items()}
    defaults = manifest.pop("defaults", 1)
    if type(defaults) is not int or not 1 <= defaults <= _DEFAULTS:
        raise FileError(
            f"the model's defaults are {defaults!r:.60}; expected 1 to {_DEFAULTS}, those this version knows."
        )
    model: Any = kind(**parameters)
    if hasattr(model, "_from_file"):
        sealed_file.refuse_rest("the model", manifest)
        model._from_file(state, arrays)
    elif "stated" in manifest:
        tally, given = stated_from_parts(manifest.pop("stated"), arrays)
        sealed_file.refuse_rest("the model", manifest)
        _fill(model, state, tally, arrays, given=given)
    else:
        tally = tally_from_parts(manifest.pop("tally"), arrays)
        sealed_file.refuse_rest("the model", manifest)
        _fill(model, state, tally, arrays, old=defaults == 1)
    sealed_file.refuse_rest("the file", arrays)
    return model


@sealed_file.register("OnlineFilter")
def filter_from_parts(manifest: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    """A filter with its model, as `OnlineFilter.save` wrote them."""
    return import_module("tallybayes.models.hmm.inference.online_filter").OnlineFilter._from_parts(manifest, arrays)


@sealed_file.register("Window")
def window_from_parts(manifest: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    """A window with its model and its rows, as `Window.save` wrote them."""
    return import_module("tallybayes.models.streaming.window").Window._from_parts(manifest, arrays)


@sealed_file.register("Decayed")
def decayed_from_parts(manifest: dict[str, Any], arrays: dict[str, np.ndarray]) -> Any:
    """A fading model and its clock, as `Decayed.save` wrote them."""
    return import_module("tallybayes.models.streaming.decayed").Decayed._from_parts(manifest, arrays)


def _fill(
    model: Any,
    state: dict[str, Any],
    tally: Any,
    arrays: dict[str, np.ndarray],
    *,
    old: bool = False,
    given: Any = None,
) -> None:
    """Give a model its tally, or the parameters that were stated, and all else that it knows."""
    own = state.pop("own", {})
    model._shape_from_json(state, tally)
    sealed_file.refuse_rest("the model's state", state)
    model._adopt(tally)._state(given)
    model._check_loaded()
    if old:
        _fill_old_defaults(model, type(model).__name__)
    model._from_parts(own, arrays)
    sealed_file.refuse_rest("the model's state", own)


def _fill_old_defaults(model: Any, name: str) -> None:
    """Say what the first defaults meant, in a model that was saved under them."""
    if getattr(model, "class_prior", ...) is None:
        model.class_prior = "frequency"
    if name in _ADDED_ONE and not read_estimate(model.estimate).takes_mode:  # under "map" add-one is the default still
        factors = model._with_prior(model.tally_)
        model.prior = _with_added_one(model.prior, [f for f in factors if f.family.added_counts(1.0, "bayes")], name)
    model._adopt(model.tally_)  # what was made of it under other defaults is not it


def _with_added_one(prior: Any, counted: list[Factor], name: str) -> Any:
    """The same prior, and one pseudo-count a level where it says nothing."""
    if not counted:
        return prior
    if prior is None:
        return 1
    if name == "HiddenMarkovModel" and isinstance(prior, Dirichlet):
        prior = {"start": prior, "transition": prior}
    if isinstance(prior, Mapping):
        silent = [f for f in counted if not {f.columns, *f.columns, "emission"} & set(prior)]
        return {**prior, **{f.columns: 1 for f in silent}}
    listed = (prior,) if isinstance(prior, ParameterDistribution) else prior
    return (*listed, 1) if isinstance(listed, list | tuple) else prior
