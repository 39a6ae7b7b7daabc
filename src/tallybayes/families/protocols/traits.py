"""Traits: properties of a family's cells, statistics and columns, as class attributes with defaults."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from tallybayes._utils.frozen_value import FrozenValue

if TYPE_CHECKING:
    from tallybayes.families.family import Family


class Traits(FrozenValue):
    """Class attributes that models read; a family sets those that apply."""

    # Cells
    allowed_values: ClassVar[str]  # valid values of a cell, for error messages
    cell_type: ClassVar[str] = "numbers"  # type of the cells: "numbers", "codes" (of levels) or "text"
    accepts_missing: ClassVar[bool] = True  # whether cells of a row may be missing
    accepts_sparse: ClassVar[bool] = False  # whether sparse rows can be counted
    nonnegative_cells: ClassVar[bool] = False  # whether cells are nonnegative
    is_binary: ClassVar[bool] = False  # whether a cell is 0 or 1
    success: ClassVar[Any] = None  # the level that counts as 1, if a binary column holds levels

    # Distribution
    columnwise: ClassVar[bool] = True  # whether the log probability of a row is a sum over columns
    is_continuous: ClassVar[bool] = False  # whether a column has a density (True) or a probability mass function
    transforms: ClassVar[bool] = False  # whether scoring forms are of transformed cells
    is_conditional: ClassVar[bool] = False  # whether it is a density of the last column given the others
    is_bag_of_words: ClassVar[bool] = False  # whether a row holds token counts over one vocabulary
    tied_over: ClassVar[tuple[str, ...]] = ()  # axes that share a variance: "groups", "columns"
    number_is_weight_decay: ClassVar[bool] = False  # whether a numeric prior is a weight decay

    # Statistics
    sums_cells: ClassVar[bool] = False  # whether the statistics contain sums of the cells
    full_moments: ClassVar[bool] = False  # whether the statistics contain products of columns
    requires_complete_rows: ClassVar[bool] = False  # whether rows with missing cells can only be counted by EM

    # Special kinds of columns: time series, text, informative missingness, discretized numbers
    order: int = 0  # number of lagged columns before the column itself, lag 1 first
    word_family: Family | None = None  # family of the word counts, if cells are text
    has_vocabulary: bool = False  # whether the words of a text column form a vocabulary
    present_family: Family | None = None  # family of the present cells, if missingness is modeled
    bins: tuple[str, ...] = ()  # names of the bins, if numbers are discretized
    open_bins: Sequence[tuple[tuple[float, float], float]] = ()  # intervals of unbounded bins, with nominal widths
