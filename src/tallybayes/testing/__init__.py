"""The laws, in plain functions: for the types of this package, and for families of your own.

Every function raises `AssertionError` where a law is broken. None of them needs a test framework; strategies that draw
tables for Hypothesis are in `tallybayes.testing.strategies`.
"""

from tallybayes.testing.agreement import assert_agree
from tallybayes.testing.counting import (
    check_absent,
    check_addition,
    check_file,
    check_forgetting,
    check_kernels,
    check_names,
    check_order,
    check_refusal,
    check_soft_groups,
    check_split,
    check_weights,
)
from tallybayes.testing.families import check_family
from tallybayes.testing.learning import check_belief, check_belief_samples, check_samples, check_value
from tallybayes.testing.rows import Rows
from tallybayes.testing.sources import check_sources, forms

__all__ = [
    "Rows",
    "assert_agree",
    "check_absent",
    "check_addition",
    "check_belief",
    "check_belief_samples",
    "check_family",
    "check_file",
    "check_forgetting",
    "check_kernels",
    "check_names",
    "check_order",
    "check_refusal",
    "check_samples",
    "check_soft_groups",
    "check_sources",
    "check_split",
    "check_value",
    "check_weights",
    "forms",
]
