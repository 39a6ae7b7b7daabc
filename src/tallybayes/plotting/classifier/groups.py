"""Classes of a classifier, or components of a mixture, as groups of a plot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tallybayes.data.array_input import as_array
from tallybayes.models.inputs.input_format import read_more_rows
from tallybayes.models.mixture.mixture_model import Mixture
from tallybayes.plotting.style import GroupStyle, group_styles

if TYPE_CHECKING:
    from tallybayes.models.classification.class_conditional import ClassConditionalModel
    from tallybayes.models.ensemble.auto_classifier import AutoClassifier
    from tallybayes.models.nearest_mean.nearest_class_mean import NearestClassMean
    from tallybayes.typing import Labels, Name, Rows


class Groups(NamedTuple):
    """Labels of the groups, their log prior probabilities, their noun (plural) and the target column."""

    labels: list[Any]
    log_prior: np.ndarray
    noun: str
    target: Name

    @property
    def prior(self) -> np.ndarray:
        """The prior probabilities."""
        return np.exp(self.log_prior)

    def styles(self) -> list[GroupStyle]:
        """Return the style of each group."""
        return group_styles(self.labels, self.prior, self.noun)

    def most_frequent(self, most: int) -> np.ndarray:
        """Return the indices of at most `most` groups with the largest prior probabilities, in order."""
        return np.sort(np.argsort(-self.prior, kind="stable")[:most])

    def note(self, n_shown: int) -> str:
        """Return a note if not all groups are shown; else an empty text."""
        n = len(self.labels)
        return f"showing {n_shown} of {n} {self.noun}, the most frequent" if n_shown < n else ""

    def of_labels(self, labels: np.ndarray) -> list[np.ndarray]:
        """Return which rows have the label of each group."""
        return [labels == label for label in self.labels]


def groups_of(model: ClassConditionalModel | NearestClassMean) -> Groups:
    """Return the groups of a model."""
    noun = "components" if isinstance(model, Mixture) else "classes"
    target = getattr(model, "target_", "component")
    return Groups(model.classes_.tolist(), model.class_log_prior_, noun, target)


def labels_of(model: ClassConditionalModel | AutoClassifier, X: Rows, y: Labels) -> np.ndarray:
    """Return the classes of rows."""
    return as_array(read_more_rows(model, X, y, None)[0].columns[getattr(model, "target_", "class")])
