"""AutoClassifier: a pool of generative classifiers and trees of counts, selected by cross-validation."""

from __future__ import annotations

import copy
import time
from collections.abc import Hashable, Iterable, Mapping
from functools import partial
from os import PathLike
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.base import clone

from tallybayes._utils.fitted import check_is_fitted
from tallybayes._utils.frozen_value import from_json, to_json
from tallybayes._utils.parameter_checks import check_count, check_positive
from tallybayes._utils.sealed_file import check_no_unknown_entries
from tallybayes._utils.threads import single_blas_thread
from tallybayes.data.counting import check_weight
from tallybayes.errors import (
    DataError,
    EstimateError,
    FileError,
    LabelError,
    StatisticsError,
    TallybayesError,
    printable,
)
from tallybayes.estimation.scoring.bayes_rule import apply_bayes_rule
from tallybayes.families.categorical import Categorical
from tallybayes.families.gaussian import Gaussian
from tallybayes.models.classification import classifier_fit
from tallybayes.models.classification.methods import export
from tallybayes.models.classification.methods.decisions import decide
from tallybayes.models.classification.methods.importance import LabeledTable, feature_importance
from tallybayes.models.classification.methods.uncertainty import smallest_set
from tallybayes.models.ensemble import ensemble_explanation, ensemble_inspection, ensemble_plots
from tallybayes.models.ensemble.candidate_search import Dependence, search_candidates
from tallybayes.models.ensemble.ensemble_spec import EnsembleSpec, fit_members
from tallybayes.models.ensemble.ensemble_summary import summary
from tallybayes.models.ensemble.feature_views import check_columns
from tallybayes.models.ensemble.members import (
    Member,
    class_count,
    counts_of,
    declared,
    log_prior,
    log_proba,
    read_features,
    with_dropped_class,
    with_target,
)
from tallybayes.models.ensemble.text_columns import with_texts
from tallybayes.models.estimator import Estimator
from tallybayes.models.forest.count_boosting import CountBoosting
from tallybayes.models.inputs.batching import predict_in_batches
from tallybayes.models.inputs.columns import warn_unread
from tallybayes.models.inputs.input_format import (
    InputFormat,
    read_codes,
    read_initial_rows,
    read_more_rows,
)
from tallybayes.models.inputs.labels import read_labels
from tallybayes.models.io import model_from_parts, model_to_parts, save_model
from tallybayes.models.receipt import with_receipt
from tallybayes.models.sklearn_bases import ClassifierMixin
from tallybayes.tally.domain import Domain, labels_of
from tallybayes.typing import ClassPrior, Labels, Rows, SampleWeights
from tallybayes.warnings import CalibrationWarning, warn

if TYPE_CHECKING:
    import numpy.typing as npt
    from matplotlib.axes import Axes

    from tallybayes.apps.report import Report
    from tallybayes.data.text_columns import WordReader
    from tallybayes.estimation.importance import FeatureImportance
    from tallybayes.export.portable_scorer import PortableScorer
    from tallybayes.families.text import Text
    from tallybayes.models.classification.methods.explanation import Explanation
    from tallybayes.models.ensemble.ensemble_summary import EnsembleSummary
    from tallybayes.models.inspection.parameter_table import Parameters, ParameterTable, Posteriors
    from tallybayes.plotting.plot import Plot
    from tallybayes.results.threshold import Threshold
    from tallybayes.typing import Name, Names


class AutoClassifier(ClassifierMixin, Estimator):
    """Automatic classifier: generative models and trees of counts, selected by cross-validation and pooled.

    Candidates are naive Bayes with suggested families, tree-augmented naive Bayes, averaged one-dependence estimators,
    Gaussian discriminants with several covariances, a tied discriminant on numbers and indicators of levels,
    `CountForest` and `CountBoosting`. A text column has candidates of its own: naive Bayes on words, word pairs and
    characters. Columns with informative missing values get missing-value indicators. Generative candidates are scored
    on held-out folds, with families, bins and dependences chosen from the other folds; trees predict each row by the
    trees that were grown without it. Each candidate is calibrated by temperature scaling. The best candidate of each
    kind enters a log-linear pool, p(class) ∝ Π p(class | member)^weight (Genest and Zidek 1986). The weights maximize
    the likelihood of the held-out classes under a Gaussian prior around the weights of the best linear mixture
    (stacking, Wolpert 1992).

    The selection is ``spec_``, and stays fixed: later rows are counted or forgotten by every member. Models with the
    same spec can be merged; ``AutoClassifier(spec=other.spec_)`` fits it to other rows. The trees are part of the spec;
    fit again once the rows have about doubled.

    Parameters
    ----------
    columns : {name: Text}, optional
        Columns of text. Without it, a list or Series of strings is text, and so is a column of strings of several words
        of which nearly all are different.
    single : bool, default False
        Whether to use only the best generative candidate instead of the ensemble; no trees are grown.
    folds : int, default 5
        The number of folds of the cross-validation.
    spec : EnsembleSpec, optional
        The selection of another model, to skip the search.
    time_budget : float, optional
        Seconds after which no further group of candidates is tried. A group that has begun is finished.
    random_state : int, default 0
        Seed of the folds and of the trees.

    Attributes
    ----------
    classes_ : ndarray
    members_ : list of Member
        The models of the pool, in order of decreasing weight.
    spec_ : EnsembleSpec
    leaderboard_ : Leaderboard or None
        The candidates with their losses; None if the spec was given.

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
        self,
        *,
        columns: Mapping[Name, Text] | None = None,
        single: bool = False,
        folds: int = 5,
        spec: EnsembleSpec | None = None,
        time_budget: float | None = None,
        random_state: int = 0,
    ) -> None:
        self.columns = columns
        self.single = single
        self.folds = folds
        self.spec = spec
        self.time_budget = time_budget
        self.random_state = random_state

    @property
    def classes_(self) -> np.ndarray:
        """The sorted classes, in the data type of the target."""
        return labels_of(self._class_domain.levels, self.input_format_.y_dtype)

    @property
    def target_(self) -> Name:
        """The name of the target column."""
        return classifier_fit.target(self)

    def report(
        self,
        X: Rows,
        y: Labels | None = None,
        *,
        by: str | None = None,
        title: str | None = None,
        held_out: bool = False,
    ) -> Report:
        """Return an HTML page about the model and its predictions on some rows; its plots need matplotlib.

        The page contains the counts, the metrics, warnings, unusual rows (`tb.audit`), three explained rows, and a form
        to vary cells, class probabilities and costs. It is one file that works offline.

        Parameters
        ----------
        X : as for `fit`
            Labeled rows, preferably held-out rows.
        y : array-like of shape (n,), or column name of X, optional
            By default the target column of `fit`.
        by : column name of X, optional
            Show the metrics for each level of this column, with intervals.
        title : str, optional
        held_out : bool, default False
            Whether the rows are held out. Only then the page contains advice on columns and calibration.

        Returns
        -------
        Report
            A notebook shows it; ``.save("report.html")`` writes it.
        """
        check_is_fitted(self)
        from tallybayes.apps.report import report

        return report(self, X, self.target_ if y is None else y, by=by, title=title, held_out=held_out)

    @property
    def n_rows_(self) -> float:
        """The total weight of the training rows."""
        return ensemble_inspection.n_rows(self)

    @property
    def class_count_(self) -> np.ndarray:
        """The total weight of the training rows of each class."""
        check_is_fitted(self, "members_")
        return class_count(self.members_[0].model)

    @property
    def dropped_columns_(self) -> dict[Name, str]:
        """From dropped column to the reason; columns that a member does not read are in its ``dropped_columns_``."""
        check_is_fitted(self, "members_")
        return {} if self.leaderboard_ is None else dict(self.leaderboard_.dropped_columns)

    @property
    def feature_names_in_(self) -> np.ndarray:
        """The column names of the data frame that was fitted."""
        return classifier_fit.feature_names_in(self)

    @property
    def n_features_in_(self) -> int:
        """The number of columns of X."""
        return classifier_fit.n_features_in(self)

    def decide(
        self,
        X: Rows,
        cost: Mapping[Any, Mapping[Any, float]] | npt.ArrayLike | None = None,
        *,
        abstain: float | None = None,
        class_prior: ClassPrior = None,
        precision: float | None = None,
        recall: float | None = None,
        held_out: tuple[Rows, Labels] | None = None,
        positive: Hashable | None = None,
        threshold: Threshold | None = None,
    ) -> np.ndarray:
        """Return the decision of least expected cost for each row, or the class by a threshold on its probability.

        Uneven costs and class frequencies do not require resampling of the rows. A required precision or recall of one
        class is reached by a threshold found on held-out rows. A row is assigned to the positive class if its
        probability is at or above the threshold, otherwise to the most probable other class.

        Parameters
        ----------
        X : as for `fit`, without the target
        cost : {true: {decided: cost}}, or array of shape (classes, classes), optional
            The cost of each decision by true class. The rows of an array are true classes, its columns decisions, in
            the order of ``classes_``. The decisions of a mapping need not be classes. Costs are finite numbers, gains
            are negative. By default each error costs 1.
        abstain : float, optional
            The cost of making no decision.
        class_prior : as for the constructor, optional
            The class probabilities at decision time, if they differ from those of the training rows.
        precision : float, optional
            The required precision of the positive class on the held-out rows. Of such thresholds, the one of highest
            recall is used.
        recall : float, optional
            The required recall of the positive class on the held-out rows. Of such thresholds, the one of highest
            precision is used.
        held_out : pair (X, y), optional
            Rows with classes that the model was not fitted on, to find the threshold for `precision` or `recall`.
        positive : label, optional
            The class of the threshold; by default the second of two classes.
        threshold : Threshold, optional
            A threshold from ``tb.evaluate(model, X, y).threshold(precision=...)``.

        Returns
        -------
        ndarray of shape (n,)
            The decisions, of the type of ``classes_`` if they are classes. With `abstain` an object array, with None if
            every decision would cost more. Ties go to the first decision.

        Examples
        --------
        >>> import tallybayes as tb
        >>> words = {"offer": [1, 1, 1, 0, 1, 0], "mail": ["spam", "spam", "spam", "ham", "ham", "ham"]}
        >>> model = tb.NaiveBayes({"offer": tb.Bernoulli()}).fit(words, "mail")
        >>> model.predict({"offer": [1, 0]}).tolist()
        ['spam', 'ham']
        >>> cost = {"spam": {"delete": 0, "keep": 1}, "ham": {"delete": 10, "keep": 0}}
        >>> model.decide({"offer": [1, 0]}, cost).tolist()
        ['keep', 'keep']
        >>> model.decide({"offer": [1, 0]}, abstain=0.3).tolist()
        [None, 'ham']
        >>> checked = {"offer": [1, 1, 0, 0]}, ["spam", "ham", "ham", "ham"]
        >>> model.decide({"offer": [1, 0]}, recall=1, held_out=checked, positive="spam").tolist()
        ['spam', 'ham']
        """
        return decide(
            self,
            X,
            cost,
            abstain=abstain,
            class_prior=class_prior,
            precision=precision,
            recall=recall,
            held_out=held_out,
            positive=positive,
            threshold=threshold,
        )

    def predict_set(self, X: Rows, mass: float = 0.95) -> np.ndarray:
        """Return the smallest set of classes with a total probability of at least `mass`: a credible set for each row.

        Parameters
        ----------
        X : as for `fit`, without the target
        mass : float, default 0.95

        Returns
        -------
        ndarray of bool of shape (n, classes)
            Which of ``classes_`` are in the set. The most probable class always is; ties go to the first.

        Examples
        --------
        >>> import tallybayes as tb
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> model = tb.NaiveBayes().fit(X, load_iris().target_names[y])
        >>> sets = model.predict_set(X.iloc[[0, 70]], 0.9)
        >>> [model.classes_[chosen].tolist() for chosen in sets]
        [['setosa'], ['versicolor', 'virginica']]
        """
        return smallest_set(self.predict_log_proba(X), mass)

    def feature_importance(
        self, X: Rows, y: Labels, *, columns: Iterable[Name] | None = None, sample_weight: SampleWeights = None
    ) -> FeatureImportance:
        """Return the increase of the log loss of labeled rows without each column.

        A column is removed by marginalizing it out, as a missing value is: exact under the model, without refitting and
        without randomness. Permutation importance (Breiman 2001; scikit-learn's ``permutation_importance``) replaces
        the cells of a column by those of other rows instead, which makes rows that cannot occur and differs from draw
        to draw. In both, a column whose information other columns repeat has a low importance. Use rows that the model
        was not fitted on: training rows overstate the importance of columns that the model has overfitted.

        Parameters
        ----------
        X : as for `fit`
        y : array-like of shape (n,), or the name of a column of X
        columns : list of names, optional
            The columns to remove, one at a time; all columns that the model reads if left out.
        sample_weight : array-like of shape (n,), or the name of a column of X, optional

        Returns
        -------
        FeatureImportance
            It prints as a table; see ``to_frame()`` and ``plot()``.

        Examples
        --------
        >>> import tallybayes as tb
        >>> from sklearn.datasets import load_iris
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> found = tb.GaussianDiscriminant().fit(X[::2], y[::2]).feature_importance(X[1::2], y[1::2])
        >>> found.columns[0]
        'petal length (cm)'
        """
        check_is_fitted(self)
        labeled = LabeledTable(*read_codes(self, X, y, sample_weight))
        return feature_importance(
            labeled, self._required_columns, columns, self.predict_log_proba, partial(log_proba, self)
        )

    def summary(self) -> EnsembleSummary:
        """Return a summary of the members with their weights and columns.

        Returns
        -------
        EnsembleSummary
            It prints as tables.
        """
        return summary(self)

    @property
    def parameters_(self) -> Parameters:
        """The parameters by column, a `ParameterTable` each, under the model's estimate.

        Probabilities of levels are labeled by level (of bins by interval); other parameters by name, such as mean,
        variance and rate. Under ``"bayes"`` these are posterior means; predictions integrate the parameters out.
        """
        return ensemble_inspection.parameters(self)

    def parameter_table(self, column: Name | tuple[Name, ...]) -> ParameterTable:
        """Return the parameters of one column of the largest generative member, ``parameters_[column]``.

        Parameters
        ----------
        column : name

        Returns
        -------
        ParameterTable
        """
        return ensemble_inspection.table(self, column)

    @property
    def class_prior_(self) -> ParameterTable:
        """Return p(class): the fixed probabilities, or their estimate."""
        return ensemble_inspection.class_prior(self)

    @property
    def posterior_(self) -> Posteriors:
        """The posterior distributions of the parameters by column, with `mean`, `interval` and `sample`.

        The leading axes of their arrays are the groups, in the order of the tables. They are ``prior_`` updated by the
        counts, whatever the ``estimate``; after EM, by the expected counts. For a variance tied over groups, the arrays
        keep an axis of one column.
        """
        return ensemble_inspection.posterior(self)

    def show_work(self, row: Rows) -> str:
        """Return a step-by-step calculation for one row: the log probabilities of every member, and their pool.

        ``members_[k].model.show_work`` shows the calculation of one member.

        Parameters
        ----------
        row : the features of one row

        Returns
        -------
        str
        """
        return ensemble_inspection.show_work(self, row)

    def explain(self, X: Rows, against: Hashable = None) -> Explanation:
        """Return the contribution of each column to the log-odds of each row, over all members.

        The contributions of the class prior, of the columns and of the calibration sum to the log-odds.

        Parameters
        ----------
        X : as for `fit`, without the target
        against : label, optional
            The class to compare with; by default the runner-up.

        Returns
        -------
        Explanation
        """
        return ensemble_explanation.explain(self, X, against)

    def plot_decision_boundary(
        self,
        X: Rows | None = None,
        y: Labels | None = None,
        columns: Iterable[Name] | None = None,
        ax: Axes | None = None,
    ) -> Plot:
        """Plot the decision regions of the ensemble in the plane of two columns; needs matplotlib.

        All other columns are missing. If missingness is informative, this influences the predicted classes.

        Parameters
        ----------
        X, y, columns, ax
            As for `NaiveBayes.plot_decision_boundary`.

        Returns
        -------
        Plot
        """
        return ensemble_plots.plot_decision_boundary(self, X, y, columns, ax)

    def plot_columns(self, columns: Names | None = None, X: Rows | None = None, y: Labels | None = None) -> Plot:
        """Plot every column in each class, by the generative member with the largest weight; needs matplotlib.

        Parameters
        ----------
        columns, X, y
            As for `NaiveBayes.plot_columns`.

        Returns
        -------
        Plot
        """
        return ensemble_plots.plot_columns(self, columns, X, y)

    def plot_joint(
        self,
        X: Rows | None = None,
        y: Labels | None = None,
        columns: Iterable[Name] | None = None,
        ax: Axes | None = None,
    ) -> Plot:
        """Plot the joint distribution of two columns and the product of their marginals; needs matplotlib.

        The generative member with the largest weight is plotted, one row per class.

        Parameters
        ----------
        X, y, columns, ax
            As for `NaiveBayes.plot_joint`.

        Returns
        -------
        Plot
        """
        return ensemble_plots.plot_joint(self, X, y, columns, ax)

    def plot_class_means(self, shape: tuple[int, int]) -> Plot:
        """Plot the class means as images, by the generative member with the largest weight; needs matplotlib.

        Dropped columns are blank.

        Parameters
        ----------
        shape : (rows, columns)
            The shape of the image, such as (28, 28).

        Returns
        -------
        Plot
        """
        return ensemble_plots.plot_class_means(self, shape)

    def plot_graph(self, ax: Axes | None = None) -> Plot:
        """Plot the generative member with the largest weight as a graph with plates; needs matplotlib.

        Parameters
        ----------
        ax : matplotlib Axes, optional

        Returns
        -------
        Plot
        """
        return ensemble_plots.plot_graph(self, ax)

    def plot_explanation(self, row: Rows, against: Hashable = None, ax: Axes | None = None) -> Plot:
        """Plot the contributions of the columns to one row; needs matplotlib.

        Parameters
        ----------
        row : the features of one row
        against : label, optional
            The class to compare with; by default the runner-up.
        ax : matplotlib Axes, optional

        Returns
        -------
        Plot
        """
        return self.explain(row, against).plot(0, ax)

    to_sql = export.to_sql
    to_onnx = export.to_onnx

    def _portable_scores(self) -> PortableScorer:
        """Return the scores for export."""
        from tallybayes.export.portable_ensemble import ensemble_scores_of

        check_is_fitted(self, "members_")
        return ensemble_scores_of(self)

    _absent_attributes: ClassVar[Mapping[str, TallybayesError]] = {
        **dict.fromkeys(
            ("log_likelihood", "log_evidence", "description_length", "bic_", "aic_"),
            EstimateError(
                "AutoClassifier pools p(class | row) of its members, so it has no density of rows, likelihood or "
                "information criteria.\n    Its members may have them: members_[0].model.log_likelihood(X, y)."
            ),
        ),
    }

    # ---- Fitting ---------------------------------------------------------------------------------------------------

    def fit(
        self,
        X: Rows,
        y: Labels,
        sample_weight: SampleWeights = None,
        *,
        groups: Labels | None = None,
        order: Labels | None = None,
    ) -> Self:
        """Search the candidates by cross-validation, and fit the selected ones to all rows.

        Parameters
        ----------
        X : array, data frame, list of dicts, or mapping of columns
        y : array-like of shape (n,), or column name of X
        sample_weight : array-like of shape (n,), or column name of X, optional
            The number of repetitions of each row. Divide weights above 1 by the largest: trees hold repetitions out one
            at a time, so their held-out losses would be too low.
        groups : array-like of shape (n,), or column name of X, optional
            Rows of one group, such as a patient or a document, are held out together. A named column is no feature.
        order : array-like of shape (n,), or column name of X, optional
            The time of each row: each fold is predicted from earlier rows. All candidates are fitted once per fold,
            which takes longer. A named column is no feature.

        Returns
        -------
        self
        """
        start = time.perf_counter()
        check_count("folds", self.folds, 2)
        if self.time_budget is not None:
            check_positive("time_budget", self.time_budget, "a positive number of seconds, or None")
        input_format, table, weight = read_initial_rows(X, y, sample_weight)
        table, dependence = Dependence.of(table, groups, order)
        if table.n_rows == 0:
            raise DataError("there are 0 rows to learn from; expected at least 1.")
        labels = read_labels(table, input_format.target)
        labels.check_complete("Drop the unlabeled rows, or use tb.NaiveBayes(unlabeled='em').")
        labels.check_categorical(input_format.target)
        weights = check_weight(weight, table.n_rows)
        if self.spec is None:
            table = with_texts(table, input_format.target, self.columns)
        check_columns(table, input_format.target)
        warn_unread({name: reason for name in table.columns if (reason := table.unread(name))})
        leaderboard, spec = None, self.spec
        fitted: dict[str, Any] = {}
        if spec is None:
            with single_blas_thread():  # for small matrices threads cost more than they save
                spec, leaderboard, fitted = search_candidates(
                    self, table, input_format.target, weights, start, dependence
                )
        elif not isinstance(spec, EnsembleSpec):
            raise DataError.wrong_type("spec", repr(spec), "an EnsembleSpec, the spec_ of another model")
        models = fit_members(spec, table, input_format.target, weights, fitted)
        members = [Member(member, model) for member, model in zip(spec.members, models, strict=True)]
        self.input_format_ = input_format
        self.spec_ = spec
        self.members_ = members
        self.leaderboard_ = leaderboard
        return self

    def partial_fit(
        self, X: Rows, y: Labels, sample_weight: SampleWeights = None, classes: Iterable[Hashable] | None = None
    ) -> Self:
        """Count more rows in every member, with the selection fixed. The first call is `fit`.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.
        classes : array-like, optional
            Further classes to declare, with or without rows.

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
        """Remove rows from every member, exactly. The selection and the weights stay fixed.

        Parameters
        ----------
        X, y, sample_weight
            Training rows, as for `fit`.

        Returns
        -------
        self
        """
        check_is_fitted(self, "members_")
        return self._change("forget", X, y, sample_weight)

    def _change(self, method: str, X: Rows, y: Labels, sample_weight: SampleWeights) -> Self:
        """Apply `partial_fit` or `forget` to copies of all members."""
        table, weight = read_more_rows(self, X, y, sample_weight)
        members = []
        for spec, model in self.members_:
            changed = copy.copy(model)
            getattr(changed, method)(
                spec.view.apply(table, self.input_format_.target), self.input_format_.target, weight
            )
            members.append(Member(spec, changed))
        return self._with_members(members)

    def _declared(self, classes: Iterable[Hashable]) -> Self:
        """Declare classes in all members."""
        members = []
        for spec, model in self.members_:
            members.append(Member(spec, declared(copy.copy(model), list(classes))))
        return self._with_members(members)

    def _with_members(self, members: list[Member]) -> Self:
        """Replace the members; warn of classes that were not present when they were selected."""
        before = self._class_domain.levels
        self.members_ = members
        new = [label for label in self._class_domain.levels if label not in before]
        if new and before:  # an empty `before` is a model without rows
            warn(
                f"class {printable(new[0])} is new: members and their weights were selected without it.\n"
                "    Call fit with all rows to select again.",
                CalibrationWarning,
            )
        return self

    def add_class(self, label: Hashable, X: Rows, sample_weight: SampleWeights = None) -> Self:
        """Add a class from its rows.

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
        """Remove a class and all its rows, with the selection and the weights fixed.

        Boosted trees cannot remove a class without its rows: that member leaves the pool, with a warning. Use
        ``forget(X, y)`` with the rows of the class to keep it.

        Parameters
        ----------
        label : bool, int or str

        Returns
        -------
        self
        """
        check_is_fitted(self, "members_")
        if label not in self._class_domain.index:
            raise LabelError.no_such_class(label, self._class_domain.levels)
        kept = [member for member in self.members_ if not isinstance(member.model, CountBoosting)]
        if not kept:
            raise StatisticsError(
                "boosted trees cannot drop a class without its rows.\n    Use forget(X, y) with its rows."
            )
        dropped = [Member(spec, with_dropped_class(model, label)) for spec, model in kept]
        if len(kept) < len(self.members_):
            warn(
                "boosted trees cannot drop a class without its rows: they left the ensemble.\n"
                "    Use forget(X, y) with the rows of the class to keep them.",
                CalibrationWarning,
            )
            scale = sum(spec.weight for spec, _ in self.members_) / sum(spec.weight for spec, _ in kept)
            dropped = [Member(spec.replace(weight=scale * spec.weight), model) for spec, model in dropped]
            self.spec_ = EnsembleSpec(tuple(spec for spec, _ in dropped))
        return self._with_members(dropped)

    def without_rows(self) -> Self:
        """Return a model with the same spec and no counts, to fill by `partial_fit` and merge with this one.

        Returns
        -------
        AutoClassifier
        """
        check_is_fitted(self, "members_")
        empty = clone(self)
        empty.input_format_ = self.input_format_
        empty.spec_ = self.spec_
        empty.leaderboard_ = None
        empty.members_ = [Member(spec, model.without_rows()) for spec, model in self.members_]
        return empty

    def __add__(self, other: Self) -> Self:
        if type(other) is not type(self):
            return NotImplemented
        for model in (self, other):
            check_is_fitted(model, "members_")
        if self.spec_ != other.spec_:
            raise StatisticsError(
                f"the specs of the models differ, {self.spec_!r} and {other.spec_!r}; expected the same.\n"
                "    Fit one with the spec of the other: tb.AutoClassifier(spec=other.spec_)."
            )
        merged = clone(self)
        shape = other.input_format_ if self.input_format_.unnamed else self.input_format_
        merged.input_format_ = self.input_format_._replace(target=shape.target)
        merged.spec_ = self.spec_
        merged.leaderboard_ = None
        pairs = zip(self._members_with_target(shape.target), other._members_with_target(shape.target), strict=True)
        merged.members_ = [Member(left.spec, left.model + right.model) for left, right in pairs]
        return merged

    def _members_with_target(self, target: Name) -> list[Member]:
        """Return the members, with another target name if their own is the default one."""
        target = target if self.input_format_.unnamed else self._target
        return [Member(spec, with_target(model, target)) for spec, model in self.members_]

    def __radd__(self, other: object) -> Self:
        return self if isinstance(other, int) and other == 0 else NotImplemented  # so that sum() works

    # ---- Prediction -------------------------------------------------------------------------------------------------

    def score(self, X: Rows, y: Labels, sample_weight: SampleWeights = None) -> float:
        """Return the accuracy on rows.

        Parameters
        ----------
        X, y, sample_weight
            As for `fit`.
        """
        return classifier_fit.score(self, X, y, sample_weight)

    @predict_in_batches
    def predict_log_proba(self, X: Rows, class_prior: ClassPrior = None) -> np.ndarray:
        """Return the log posterior class probabilities of the ensemble, shape (n, classes).

        Parameters
        ----------
        X : as for `fit`, without the target
        class_prior : {label: probability}, probabilities by class, "uniform" or "frequency", optional
            The class probabilities at prediction time, if they differ from those of the training rows.
        """
        check_is_fitted(self, "members_")
        log_posterior = log_proba(self, read_features(self, X))
        if class_prior is None:
            return log_posterior
        prior = log_prior(self.members_[0].model, class_prior)
        before = log_prior(self.members_[0].model, None)  # the same for all members
        return apply_bayes_rule(log_posterior + (prior - before), prior).log_proba

    @predict_in_batches
    def predict_proba(self, X: Rows, class_prior: ClassPrior = None) -> np.ndarray:
        """Return the posterior class probabilities of the ensemble, shape (n, classes).

        Parameters
        ----------
        X : as for `fit`, without the target
        class_prior : as for `predict_log_proba`, optional
        """
        return np.exp(self.predict_log_proba(X, class_prior))

    @predict_in_batches
    def predict(self, X: Rows) -> np.ndarray:
        """Return the most probable class of each row; ties go to the first class.

        Parameters
        ----------
        X : as for `fit`, without the target

        Returns
        -------
        ndarray of shape (n,)
        """
        best = self.predict_log_proba(X).argmax(axis=1)  # raises NotFittedError before classes_ is read
        return self.classes_[best]

    def _column_specs(self) -> list[tuple[Any, Any, Any]]:
        """Return the columns that the members read, with the family and levels of each."""
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
        """Write the model to a sealed file that `tb.load` reads; the file contains no pickle.

        Parameters
        ----------
        path : str or path-like
        """
        check_is_fitted(self, "members_")
        save_model(self, path)

    # ---- Interface to other modules ----------------------------------------------------------------------------------

    @property
    def _target(self) -> Name:
        """The name of the target column."""
        return classifier_fit.target(self)

    @property
    def _class_domain(self) -> Domain:
        if not hasattr(self, "members_"):
            raise AttributeError(f"this {type(self).__name__} is not fitted yet")
        return self.members_[0].model._class_domain

    @property
    def _text_readers(self) -> dict[Name, WordReader]:
        """The reader of every text column, by one of the members that read it."""
        models = [model for _, model in getattr(self, "members_", ()) if hasattr(model, "tally_")]
        return {name: reader for model in models for name, reader in model._text_readers.items()}

    @property
    def _required_columns(self) -> list[Any]:
        """The columns that rows must have."""
        return list(dict.fromkeys(name for member in self.members_ for name in member.spec.view.read_names()))

    def _to_file(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Return the fitted state as JSON and arrays."""
        parts = [model_to_parts(member.model) for member in self.members_]
        arrays = {
            f"member{k}/{name}": array
            for k, (_, member_arrays) in enumerate(parts)
            for name, array in member_arrays.items()
        }
        state = {"shape": self.input_format_.to_json(), "spec": to_json(self.spec_)}
        return state | {"members": [content for content, _ in parts]}, arrays

    def _from_file(self, state: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        """Restore the fitted state from JSON and arrays, after validation."""
        spec = from_json(state.pop("spec"))
        contents = state.pop("members")
        if not isinstance(spec, EnsembleSpec) or not isinstance(contents, list) or len(spec.members) != len(contents):
            raise FileError("the file's members do not match its spec.")
        members = []
        for k, (member_spec, content) in enumerate(zip(spec.members, contents, strict=True)):
            member_arrays = {name: arrays.pop(name) for name in list(arrays) if name.startswith(f"member{k}/")}
            model = model_from_parts(content, {name.partition("/")[2]: array for name, array in member_arrays.items()})
            if type(model) is not type(member_spec.make()) or not member_spec.view.describes(model):
                raise FileError("a member of the file does not match its spec.")
            members.append(Member(member_spec.with_trees_of(model), model))
        first = members[0].model
        if any((m._target, m._class_domain.levels) != (first._target, first._class_domain.levels) for _, m in members):
            raise FileError("the members of the file have different classes; expected the same.")
        shape = state.pop("shape")
        self.input_format_ = InputFormat.from_json(shape, counts_of(first))
        check_no_unknown_entries("the shape of the rows", shape)
        self.spec_ = spec.replace(members=tuple(member.spec for member in members))
        self.spec = None if self.spec is None else self.spec_  # files contain the trees once
        self.members_ = members
        self.leaderboard_ = None
        check_no_unknown_entries("the model's state", state)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        members = [f"    {spec.weight:.2f} {spec.name}" for spec, _ in getattr(self, "members_", ())]
        return "\n".join([super().__repr__(N_CHAR_MAX), *members])

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "members_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
