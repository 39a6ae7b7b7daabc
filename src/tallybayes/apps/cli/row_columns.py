"""Options for the columns of DATA by role: target, sequence, time order, weight, and time."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from tallybayes.apps.cli.cli_errors import CommandError, UsageError
from tallybayes.apps.cli.model_files import target_of
from tallybayes.apps.cli.stream_models import is_stream
from tallybayes.messages import with_article

if TYPE_CHECKING:
    from tallybayes.models.base import Model
    from tallybayes.models.streaming.stream_model import StreamModel
    from tallybayes.typing import Rows


@Parameter(name="*")
@dataclass(frozen=True)
class SequenceColumns:
    """Columns of the target and of sequences."""

    target: Annotated[str | None, Parameter(name=["--target", "-t"])] = None
    "The column of the classes, the states of hidden-markov, or the numbers of regression; by default as in the fit."
    sequence: str | None = None
    "The column with the sequence identifier, for hidden-markov."
    order: str | None = None
    "The column with the time order within a sequence, for hidden-markov."

    @property
    def names(self) -> tuple[str | None, ...]:
        """Return the names of the columns; None for a role without a column."""
        return astuple(self)

    def require_sequence(self) -> str:
        """Return the column with the sequence identifier, or raise UsageError."""
        if self.sequence is None:
            raise UsageError(
                "missing option --sequence COL: the column with the sequence identifier "
                "(and --order COL for the time order)."
            )
        return self.sequence

    def check_no_sequence(self, model: object) -> None:
        """Raise UsageError if a column of sequences is passed for a model of rows."""
        if self.sequence or self.order:
            kind = type(model).__name__
            raise UsageError(
                f"--sequence and --order apply to hidden Markov models; found {with_article(kind)}.\n    Omit them."
            )


@Parameter(name="*")
@dataclass(frozen=True)
class RowColumns(SequenceColumns):
    """Columns of the target, of sequences and of weights."""

    weight: str | None = None
    "The column with the sample weights."

    def call(
        self,
        model: Model | StreamModel,
        method: Literal["fit", "partial_fit", "forget"],
        source: Rows,
        **more: Any,
    ) -> Any:
        """Call a method of the model that adds or removes rows, with the columns that its kind of model has.

        Raise UsageError for a column that the model does not have, or lacks.
        """
        import tallybayes as tb

        columns: dict[str, Any] = {} if self.weight is None else {"sample_weight": self.weight}
        inner: Any = getattr(model, "model_", model.model) if is_stream(model) else model
        if isinstance(inner, tb.HiddenMarkovModel):
            columns |= {"sequence": self.require_sequence(), "order": self.order}
            if self.target is None and method != "fit":
                raise UsageError("missing option --target: the column with the states of the hidden Markov model.")
            if self.weight is not None:
                raise UsageError(
                    "--weight applies to rows; a hidden Markov model is fitted to sequences.\n    Omit --weight."
                )
        else:
            self.check_no_sequence(inner)
        if not hasattr(model, method):
            raise CommandError(
                f"rows cannot be added to or removed from {with_article(type(model).__name__)}: its EM counts "
                "depend on the parameters.\n    Fit a new model with 'tally fit'."
            )
        if isinstance(model, tb.BayesianNetwork | tb.Mixture):
            return getattr(model, method)(source, **columns, **more)
        return getattr(model, method)(source, self.target or target_of(inner), **columns, **more)


@Parameter(name="*")
@dataclass(frozen=True)
class TimedRowColumns(RowColumns):
    """Columns of the target, of sequences, of weights and of times."""

    time: str | None = None
    "The column with the times of the rows, dates or numbers, for a window; by default as before. It is no feature."


SEQUENCE_COLUMNS = SequenceColumns()
ROW_COLUMNS = RowColumns()
TIMED_ROW_COLUMNS = TimedRowColumns()
