"""Chosen: a classifier that chooses itself, among generative models or as their mixture."""

from __future__ import annotations

import copy
import time
from collections.abc import Hashable, Iterable
from os import PathLike
from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from tallybayes._utils.frozen_value import from_json, to_json
from tallybayes._utils.sealed_file import check_no_unknown_entries
from tallybayes.data.counting import check_weight
from tallybayes.errors import DataError, FileError, StatisticsError, printable
from tallybayes.estimation.scoring.bayes_rule import apply_bayes_rule
from tallybayes.families.categorical import Categorical
from tallybayes.families.gaussian import Gaussian
from tallybayes.models.classification import classifier_fit
from tallybayes.models.classification.methods.decisions import decide
from tallybayes.models.classification.methods.explanation import plot_explanation
from tallybayes.models.classification.methods.importance import feature_importance
from tallybayes.models.classification.methods.model_export import refuse_mixture
from tallybayes.models.classification.methods.report_page import report
from tallybayes.models.classification.methods.uncertainty import predict_set
from tallybayes.models.ensemble import ensemble_inspection, ensemble_plots
from tallybayes.models.ensemble.candidate_search import blas_libraries, search_candidates
from tallybayes.models.ensemble.ensemble_spec import EnsembleSpec, fit_members
from tallybayes.models.ensemble.ensemble_summary import summary
from tallybayes.models.ensemble.feature_views import refuse_columns
from tallybayes.models.ensemble.members import Member, log_proba
from tallybayes.models.estimator import Estimator
from tallybayes.models.inputs.batching import predict_in_batches
from tallybayes.models.inputs.columns import warn_unread
from tallybayes.models.inputs.input_format import InputFormat, open_columns, read_initial_rows, read_more_rows
from tallybayes.models.inputs.invalid_cells import answering, mask_invalid_cells
from tallybayes.models.inputs.labels import read_labels
from tallybayes.models.io import model_from_parts, model_to_parts, save_model
from tallybayes.models.receipt import with_receipt
from tallybayes.models.sklearn_bases import ClassifierMixin, typed_property
from tallybayes.tally.domain import Domain, labels_of
from tallybayes.typing import ClassPrior, Labels, Rows, SampleWeights
from tallybayes.warnings import CalibrationWarning, warn


class AutoClassifier(ClassifierMixin, Estimator):
    """A classifier without choices to make: generative models tried on held-out rows, and mixed by how they did.

    Candidates are naive Bayes with suggested families, tree-augmented naive Bayes, averaged one-dependence estimators,
    Gaussian discriminants of several covariances, and a tied one over numbers and indicators of levels; where the
    absence of cells tells classes apart, with that as a value. Each is scored by folds in which whatever looks at the
    classes (families, trees) is chosen again, and calibrated. The best of every kind are mixed, with the weights that
    make the classes of held-out rows most probable.

    What was chosen is ``spec_``, and stays: rows that come or go later are counted by every member. Models add up
    where they have the same choice: ``AutoClassifier(choice=one.choice_)`` fits it to other rows.

    Parameters
    ----------
    single : bool, default False
        Whether to take the best candidate alone, not the mixture.
    folds : int, default 5
    choice : Choice, optional
        What another model has chosen: nothing is tried.
    random_state : int, default 0
        For the folds.

    Attributes
    ----------
    classes_ : ndarray
    members_ : list of Member
        The models of the mixture, heaviest first.
    choice_ : Choice
    report_ : Report or None
        What was tried and how it did; None where the choice was given.

    Examples
    --------
    >>> import tallybayes as tb
    >>> from sklearn.datasets import load_iris
    >>> X, y = load_iris(return_X_y=True)
    >>> model = tb.AutoClassifier().fit(X[::2], y[::2])
    >>> model.score(X[1::2], y[1::2]) > 0.9
    True
    >>> model.forget(X[::2][:5], y[::2][:5]).predict(X[:1])
    array([0])
    """

    def __init__(
        self, *, single: bool = False, folds: int = 5, spec: EnsembleSpec | None = None, random_state: int = 0
    ) -> None:
        self.single = single
        self.folds = folds
        self.spec = spec
        self.random_state = random_state

    classes_ = property(lambda self: labels_of(self._class_domain.levels, self._shape.y_dtype))
    target_ = typed_property(classifier_fit.target)
    report = report
    n_rows_ = typed_property(ensemble_inspection.n_rows)
    feature_names_in_ = typed_property(classifier_fit.feature_names_in)
    n_features_in_ = typed_property(classifier_fit.n_features_in)
    score = classifier_fit.score
    decide = decide
    predict_set = predict_set
    feature_importance = feature_importance
    _log_proba_without = log_proba
    summary = summary
    parameters_ = typed_property(ensemble_inspection.parameters)
    parameter_table = ensemble_inspection.table
    class_prior_ = typed_property(ensemble_inspection.class_prior)
    posterior_ = typed_property(ensemble_inspection.posterior)
    show_work = ensemble_inspection.show_work
    explain = ensemble_inspection.explain
    plot_decision_boundary = ensemble_plots.plot_decision_boundary
    plot_columns = ensemble_plots.plot_columns
    plot_joint = ensemble_plots.plot_joint
    plot_class_means = ensemble_plots.plot_class_means
    plot_graph = ensemble_plots.plot_graph
    plot_explanation = plot_explanation
    log_likelihood = log_evidence = description_length = ensemble_inspection.refuse
    bic_ = aic_ = property(ensemble_inspection.refuse)
    to_sql = to_onnx = property(refuse_mixture)

    # ---- Learning ---------------------------------------------------------------------------------------------------

    def fit(self, X: Rows, y: Labels, sample_weight: SampleWeights = None) -> Self:
        """Try the candidates, choose, and count the rows.

        Parameters
        ----------
        X : array, data frame, list of dicts, or mapping of columns
        y : array-like of shape (n,), or the name of a column of X
        sample_weight : array-like of shape (n,), or the name of a column of X, optional

        Returns
        -------
        self
        """
        start = time.perf_counter()
        shape, table, weight = read_initial_rows(X, y, sample_weight)
        if table.n_rows == 0:
            raise DataError("there are 0 rows to learn from; expected at least 1.")
        labels = read_labels(table, shape.target)
        labels.refuse_missing("Leave the unlabeled rows out, or use tb.NaiveBayes(unlabeled='em').")
        labels.refuse_numbers(shape.target)
        weights = check_weight(weight, table.n_rows)
        refuse_columns(table, shape.target)
        warn_unread({name: reason for name in table.columns if (reason := table.unread(name))})
        report = None
        choice = self.spec
        if choice is None:
            with blas_libraries().limit(limits=1):  # matrices are small: threads would wait for each other
                choice, report = search_candidates(self, table, shape.target, weights, start)
        elif not isinstance(choice, EnsembleSpec):
            raise DataError.wrong_type("spec", repr(choice), "what another model has chosen, its choice_")
        models = fit_members(choice, table, shape.target, weights)
        members = [Member(one, model) for one, model in zip(choice.members, models, strict=True)]
        self._shape = shape
        self.spec_ = choice
        self.members_ = members
        self.leaderboard_ = report
        return self

    def partial_fit(
        self, X: Rows, y: Labels, sample_weight: SampleWeights = None, classes: Iterable[Hashable] | None = None
    ) -> Self:
        """Count more rows by every member; what was chosen stays. The first time, as `fit`.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.
        classes : array-like, optional
            Classes that shall exist even before a row of them is seen.

        Returns
        -------
        self
        """
        if not hasattr(self, "members_"):
            self.fit(X, y, sample_weight)
            return self if classes is None else self._declared(classes)
        self._change("partial_fit", X, y, sample_weight)
        return self if classes is None else self._declared(classes)

    @with_receipt
    def forget(self, X: Rows, y: Labels, sample_weight: SampleWeights = None) -> Self:
        """Take rows out of every member, exactly. What they had a part in choosing, and the weights, stay.

        Parameters
        ----------
        X, y, sample_weight
            Rows that were learned, as for `fit`.

        Returns
        -------
        self
        """
        check_is_fitted(self, "members_")
        return self._change("forget", X, y, sample_weight)

    def _change(self, how: str, X: Any, y: Any, sample_weight: Any) -> Self:
        table, weight = read_more_rows(self, X, y, sample_weight)
        members = []
        for choice, model in self.members_:
            other = copy.copy(model)
            getattr(other, how)(choice.view.apply(table, self._shape.target), self._shape.target, weight)
            members.append(Member(choice, other))
        return self._with_members(members)

    def _declared(self, classes: Any) -> Self:
        found = []
        for choice, model in self.members_:
            other = copy.copy(model)
            found.append(Member(choice, other._update_tally(other.tally_.declare(other._target, list(classes)))))
        return self._with_members(found)

    def _with_members(self, members: list[Member]) -> Self:
        before = self._class_domain.levels
        self.members_ = members
        new = [label for label in self._class_domain.levels if label not in before]
        if new and before:  # a model without rows is to be filled
            said = f"the class {printable(new[0])} was not there when the model was chosen: fit again to choose anew."
            warn(said, CalibrationWarning)
        return self

    def add_class(self, label: Hashable, X: Rows, sample_weight: SampleWeights = None) -> Self:
        """Learn a class that was not there, from its rows alone.

        Parameters
        ----------
        label : bool, int or str
        X : as for `fit`, without the target
        sample_weight : array-like of shape (n,), optional

        Returns
        -------
        self
        """
        return classifier_fit.add_class(self, label, X, sample_weight)

    def drop_class(self, label: Hashable) -> Self:
        """Forget a class and all its rows; what was chosen, and the weights, stay.

        Parameters
        ----------
        label : bool, int or str

        Returns
        -------
        self
        """
        check_is_fitted(self, "members_")
        dropped = [
            Member(choice, classifier_fit.drop_class(copy.copy(model), label)) for choice, model in self.members_
        ]
        return self._with_members(dropped)

    def without_rows(self) -> Self:
        """A model of the same choice that has counted nothing, to be filled by `partial_fit`: both add up.

        Returns
        -------
        Chosen
        """
        check_is_fitted(self, "members_")
        found = clone(self)
        found._shape = self._shape
        found.spec_ = self.spec_
        found.leaderboard_ = None
        found.members_ = [Member(choice, model.without_rows()) for choice, model in self.members_]
        return found

    def __add__(self, other: Self) -> Self:
        if type(other) is not type(self):
            return NotImplemented
        for one in (self, other):
            check_is_fitted(one, "members_")
        if self.spec_ != other.spec_:
            raise StatisticsError(
                f"the models have chosen differently, {self.spec_!r} and {other.spec_!r}; expected the same.\n"
                "    Fit one with the choice of the other: tb.AutoClassifier(choice=one.choice_)."
            )
        found = clone(self)
        shape = other._shape if self._shape.unnamed else self._shape
        found._shape = self._shape._replace(target=shape.target)
        found.spec_ = self.spec_
        found.leaderboard_ = None
        pairs = zip(self._display_name(shape.target), other._display_name(shape.target), strict=True)
        found.members_ = [Member(mine.spec, mine.model + its.model) for mine, its in pairs]
        return found

    def _display_name(self, target: Any) -> list[Member]:
        """The members; where the target has the default name, with another one."""
        target = target if self._shape.unnamed else self._target
        return [Member(choice, classifier_fit.with_target(model, target)) for choice, model in self.members_]

    def __radd__(self, other: object) -> Self:
        return self if isinstance(other, int) and other == 0 else NotImplemented  # so that sum() works

    # ---- Answers ----------------------------------------------------------------------------------------------------

    @predict_in_batches
    @answering
    def predict_log_proba(self, X: Rows, class_prior: ClassPrior = None) -> np.ndarray:
        """log p(class | row), shape (n, classes), by the mixture.

        Parameters
        ----------
        X : as for `fit`, without the target
        class_prior : {label: probability}, probabilities by class, "uniform" or "frequency", optional
            The share of the classes where the model is used, if it differs.
        """
        check_is_fitted(self, "members_")
        mended = log_proba(self, mask_invalid_cells(open_columns(self, X), self._column_specs(), None))
        if class_prior is None:
            return mended
        model = self.members_[0].model  # all have the same rows of every class, and what is mended is under their prior
        prior = model._log_prior(class_prior)
        return apply_bayes_rule(mended + (prior - model.class_log_prior_), prior).log_proba

    @predict_in_batches
    @answering
    def predict_proba(self, X: Rows, class_prior: ClassPrior = None) -> np.ndarray:
        """p(class | row), shape (n, classes), by the mixture.

        Parameters
        ----------
        X : as for `fit`, without the target
        class_prior : as for `predict_log_proba`, optional
        """
        return np.exp(self.predict_log_proba(X, class_prior))

    @predict_in_batches
    @answering
    def predict(self, X: Rows) -> np.ndarray:
        """The most probable class of every row; ties go to the first.

        Parameters
        ----------
        X : as for `fit`, without the target

        Returns
        -------
        ndarray of shape (n,)
        """
        best = self.predict_log_proba(X).argmax(axis=1)  # first: it says so where nothing is fitted
        return self.classes_[best]

    def _column_specs(self) -> list[tuple[Any, Any, Any]]:
        """The columns that the members look at, with what each takes its cells for."""
        parts: list[tuple[Any, Any, Any]] = []
        for member in self.members_:
            view: Any = member.spec.view
            if hasattr(view, "names"):
                parts += member.model._column_specs()
            else:
                parts.append(([name for name, _ in view.numbers], Gaussian(), []))
                parts += [([name], Categorical(), [Domain(levels, str(name))]) for name, levels in view.levels]
        return parts

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model to a sealed file that `tb.load` reads; no pickle is involved.

        Parameters
        ----------
        path : str or path-like
        """
        check_is_fitted(self, "members_")
        save_model(self, path)

    # ---- What others ask of it --------------------------------------------------------------------------------------

    _target = typed_property(classifier_fit.target)

    @property
    def _class_domain(self) -> Domain:
        if not hasattr(self, "members_"):
            raise AttributeError(f"this {type(self).__name__} is not fitted yet")
        return self.members_[0].model._class_domain

    @property
    def _required_columns(self) -> list[Any]:
        """The columns that rows must have."""
        return list(dict.fromkeys(name for member in self.members_ for name in member.spec.view.read_names()))

    def _to_file(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """All that is known, as JSON and arrays."""
        parts = [model_to_parts(member.model) for member in self.members_]
        arrays = {f"member{k}/{name}": array for k, (_, some) in enumerate(parts) for name, array in some.items()}
        state = {"shape": self._shape.to_json(), "spec": to_json(self.spec_)}
        return state | {"members": [content for content, _ in parts]}, arrays

    def _from_file(self, state: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        choice = from_json(state.pop("spec"))
        contents = state.pop("members")
        if (
            not isinstance(choice, EnsembleSpec)
            or not isinstance(contents, list)
            or len(choice.members) != len(contents)
        ):
            raise FileError("the file's members are not those that were chosen.")
        members = []
        for k, (one, content) in enumerate(zip(choice.members, contents, strict=True)):
            some = {name: arrays.pop(name) for name in list(arrays) if name.startswith(f"member{k}/")}
            model = model_from_parts(content, {name.partition("/")[2]: array for name, array in some.items()})
            if type(model) is not type(one.make()) or not one.view.describes(model):
                raise FileError("a member of the file is not what was chosen.")
            members.append(Member(one, model))
        first = members[0].model
        if any((m._target, m._class_domain.levels) != (first._target, first._class_domain.levels) for _, m in members):
            raise FileError("the members of the file have different classes; expected the same.")
        shape = state.pop("shape")
        self._shape = InputFormat.from_json(shape, members[0].model.tally_)
        check_no_unknown_entries("the shape of the rows", shape)
        self.spec_ = choice
        self.members_ = members
        self.leaderboard_ = None
        check_no_unknown_entries("the model's state", state)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        members = [f"    {one.weight:.2f} {one.name}" for one, _ in getattr(self, "members_", ())]
        return "\n".join([super().__repr__(N_CHAR_MAX), *members])

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "members_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
