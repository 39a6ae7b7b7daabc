"""OneDependenceClassifier: the base class of classifiers in which a column depends on the class and on one column."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Mapping
from typing import Any, ClassVar, NoReturn, Self

import numpy as np

from tallybayes._utils.fitted import check_is_fitted
from tallybayes._utils.frozen_value import from_json, same, to_json
from tallybayes._utils.parameter_checks import StringOptions, check_positive
from tallybayes._utils.sealed_file import check_no_unknown_entries
from tallybayes.data.table import Table
from tallybayes.errors import (
    DataError,
    EstimateError,
    FileError,
    LabelError,
    NotLinearError,
    StatisticsError,
    TallybayesError,
)
from tallybayes.estimation.em.em_loop import EMSummary
from tallybayes.families.family import Family
from tallybayes.families.with_missing import WithMissing
from tallybayes.models.classification.classifier import Classifier
from tallybayes.models.inputs.columns import describe_columns
from tallybayes.models.inputs.discretization import DiscretizedColumns, read_levels
from tallybayes.models.inputs.features import continuous_target
from tallybayes.models.inputs.input_format import InputFormat
from tallybayes.models.one_dependence.estimated_one_dependence import EstimatedOneDependence
from tallybayes.models.one_dependence.estimated_pairs import EstimatedPairs
from tallybayes.models.one_dependence.pair_counts import (
    check_memory,
    check_pair_tally,
    columns_in_order,
    discretize,
    pair_factors,
)
from tallybayes.tally.factor import Factor
from tallybayes.tally.tally import Tally
from tallybayes.tally.text_selection import Selected
from tallybayes.typing import ClassPrior, Columns, Name, Priors, SampleWeights

_NO_EVIDENCE = (
    "{}: the priors of their tables come from the same counts.\n"
    "    tb.cross_validate and tb.leave_one_out evaluate them on held-out rows."
)
_NO_POSTERIOR = (
    "{}: the priors of their tables come from the same counts.\n    parameters_ has the tables; tb.NaiveBayes has {}."
)


class OneDependenceClassifier(Classifier):
    """Base class of classifiers with factors p(column | class, parent column), which counts all pairs of columns.

    Numbers are discretized when the first rows are counted. A subclass has the estimated value of its kind in
    `_pairs_type`, and the formula of its calculation in `_formula`.

    Parameters
    ----------
    columns, bins, strength, prior, class_prior, unseen, calibration, unlabeled, missing_label
        As for `AveragedOneDependence`.
    """

    estimate = "bayes"
    unlabeled_weight = 1.0
    n_classes = None
    max_iter = 200  # of EM, which these models do not use
    tol = 1e-6
    n_init = 1
    random_state = None
    _columns: DiscretizedColumns
    _pairs_type: ClassVar[type[EstimatedPairs]]
    _formula: ClassVar[str]
    _string_options: ClassVar[Mapping[str, StringOptions]] = {
        **Classifier._string_options,
        "unseen": StringOptions(("missing", "error")),
        "unlabeled": StringOptions(
            ("skip", None),
            note="Pairs are counted in rows with labels; tb.NaiveBayes(unlabeled='em') uses the others, too.",
        ),
    }

    _absent_attributes: ClassVar[Mapping[str, TallybayesError]] = {
        **{
            name: EstimateError(_NO_EVIDENCE.format(f"one-dependence classifiers have no {name}"))
            for name in ("log_evidence", "description_length", "bic_", "aic_")
        },
        **{
            name: EstimateError(_NO_POSTERIOR.format(f"one-dependence classifiers have no {name}", name))
            for name in ("posterior_", "predict_proba_interval")
        },
        "to_linear": NotLinearError(
            "the log-odds of one-dependence classifiers are not linear: columns act in pairs.\n"
            "    tb.NaiveBayes has a linear form."
        ),
    }

    def __init__(
        self,
        columns: Columns = "auto",
        *,
        bins: int | str = 8,
        strength: float = 4.0,
        prior: Priors = None,
        class_prior: ClassPrior = None,
        unseen: str = "missing",
        calibration: str | None = None,
        unlabeled: str | None = None,
        missing_label: Hashable = None,
    ) -> None:
        self.columns = columns
        self.bins = bins
        self.strength = strength
        self.prior = prior
        self.class_prior = class_prior
        self.unseen = unseen
        self.calibration = calibration
        self.unlabeled = unlabeled
        self.missing_label = missing_label

    @property
    def columns_(self) -> dict[Name, Family]:
        """The family of each column, with the bins of the first fit; ``columns=`` accepts it."""
        check_is_fitted(self, "tally_")
        return dict(self._columns.families)

    @property
    def dropped_columns_(self) -> dict[Name, str]:
        """From dropped column to the reason."""
        check_is_fitted(self, "tally_")
        return dict(self._columns.dropped_columns)

    @property
    def n_parameters_(self) -> int:
        """The number of free parameters of the tables that score rows, and of the class probabilities."""
        n_classes = len(self.classes_)
        fixed = self._estimated_classifier.class_prior_distribution is None
        return n_classes * self._pairs.n_parameters + (0 if fixed else max(n_classes - 1, 0))

    def fit_tally(self, tally: Tally) -> Self:
        """Fit the model to sufficient statistics that were counted elsewhere: in a file, a shard or another model.

        Parameters
        ----------
        tally : Tally
            The tally of a model of this class. If columns are discretized, pass that model's ``columns_`` as
            ``columns=``.

        Returns
        -------
        self
        """
        self._check_settings()
        targets = [factor.columns[0] for factor in tally.factors if not factor.given]
        if len(targets) != 1:
            raise StatisticsError(f"this tally has {len(targets)} unconditional factors; expected one, p(class).")
        families = {n: f.family for f in tally.factors if len(f.given) == 1 for n in f.columns}
        given: Mapping[Any, Any] = self.columns if isinstance(self.columns, Mapping) else {}
        columns = DiscretizedColumns({}, {})
        for name in columns_in_order(tally, list(families)):
            domain = tally.domains.get(str(name))
            has_missing_level = domain is not None and domain.has_missing_level
            columns.families[name] = given.get(
                name, WithMissing(families[name]) if has_missing_level else families[name]
            )
        check_pair_tally(tally, columns, targets[0])
        fresh = copy.copy(self)
        fresh.input_format_ = InputFormat.of_tally(targets[0], list(families))
        fresh._columns = columns
        return self._copy_input_format(fresh)._set_tally(tally)

    # ---- Estimation -------------------------------------------------------------------------------------------------

    def _estimates_of(self, tally: Tally, words: Selected) -> EstimatedOneDependence:
        """Return the estimates from a tally under the parameters of this model."""
        settings = self._estimation_settings(tally, words)
        strength = float(self.strength)
        return EstimatedOneDependence(
            **settings, columns=self._columns, strength=strength, pairs_type=self._pairs_type, formula=self._formula
        )

    @property
    def _pairs(self) -> EstimatedPairs:
        """The estimated tables of pairs."""
        estimates = self._estimated_classifier
        assert isinstance(estimates, EstimatedOneDependence)
        return estimates.pairs

    def _check_settings(self) -> None:
        """Raise DataError if the prior strength is not a positive number."""
        super()._check_settings()
        check_positive("strength", self.strength, "a positive number of rows")

    def _make_factors(self, table: Table, target: Name, weight: np.ndarray | None) -> list[Factor]:
        """Return the factors of all columns and pairs given the class; the first rows determine the bins."""
        try:
            self._columns = read_levels(self.columns, self.bins, table, target, weight, type(self).__name__)
        except LabelError as error:
            if error.column == str(target):
                raise continuous_target(error) from None
            raise
        discretized = self._discretize(table)
        sizes = [len(discretized.encoded(name)[1].levels) for name in self._columns.families]
        check_memory(type(self).__name__, len(discretized.encoded(target, True)[1].levels), sizes)
        return pair_factors(self._columns, target)

    def _discretize(self, table: Table) -> Table:
        """Return the rows with numbers as bins."""
        return discretize(self._columns, table)

    def _count_initial_rows(
        self, table: Table, weight: SampleWeights, factors: list[Factor]
    ) -> tuple[Tally, EMSummary | None]:
        """Return the tally of the first rows, with numbers as bins."""
        return super()._count_initial_rows(self._discretize(table), weight, factors)

    def _count_more_rows(self, table: Table, weight: SampleWeights) -> Tally:
        """Return the tally of more rows, with numbers as bins."""
        return super()._count_more_rows(self._discretize(table), weight)

    def _check_mergeable(self, other: Self) -> None:
        """Raise StatisticsError if columns have different bins."""
        left = self._columns.families
        right = other._columns.families
        for name in dict.fromkeys([*left, *right]):
            if not same(left.get(name), right.get(name)):
                raise StatisticsError(
                    f"column {name!r} has different bins in the models: {left.get(name, 'dropped')!r} and "
                    f"{right.get(name, 'dropped')!r}; expected the same.\n    Pass columns=other.columns_."
                )

    def _tally_for(self, other: Self) -> Tally:
        """Return the tally for other parameters; raise DataError if they change the bins."""
        if not same(self.columns, other.columns) or self.bins != other.bins:
            raise DataError("columns= and bins= determine what is counted.\n    Refit to change them.")
        return self.tally_

    # ---- Input format and files -------------------------------------------------------------------------------------

    def _copy_input_format(self, other: OneDependenceClassifier) -> Self:
        """Copy the input format and the bins of another model."""
        self._columns = other._columns
        return super()._copy_input_format(other)

    def _display_family(self, factor: Factor, name: Name) -> Family:
        """Return the family of a column before discretization."""
        return self._columns.families.get(name, factor.family)

    def _repr_lines(self) -> list[str]:
        return describe_columns(self._columns.families, self._columns.dropped_columns)

    def _shape_to_json(self) -> dict[str, Any]:
        """Return the input format and the bins as JSON, for a file."""
        discretization = {name: to_json(value) for name, value in self._columns._asdict().items()}
        return super()._shape_to_json() | {"discretization": discretization}

    def _shape_from_json(self, state: dict[str, Any], tally: Tally) -> None:
        """Restore the input format and the bins, after validation."""
        discretization = state.pop("discretization")
        columns = DiscretizedColumns(*(from_json(discretization.pop(name)) for name in DiscretizedColumns._fields))
        check_no_unknown_entries("the discretization of the columns", discretization)
        families, dropped = columns
        valid = isinstance(families, dict) and all(isinstance(family, Family) for family in families.values())
        if not valid or not isinstance(dropped, dict):
            raise FileError(f"the columns of the model are {families!r:.60}; expected a family with levels for each.")
        super()._shape_from_json(state, tally)
        self._columns = columns
        check_pair_tally(tally, columns, self._target)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags

    # ---- Inspection -------------------------------------------------------------------------------------------------

    def _check_has_likelihood_measures(self, what: str) -> NoReturn:
        raise EstimateError(_NO_EVIDENCE.format(f"one-dependence classifiers have no {what}"))
