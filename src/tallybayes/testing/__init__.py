"""Laws that families, distributions and data sources must satisfy, as functions that check them.

Every function raises `AssertionError` if a law is violated. None of them needs a test framework;
`tallybayes.testing.strategies` has Hypothesis strategies that generate tables.
"""

from tallybayes.testing.assert_close import assert_statistics_close
from tallybayes.testing.family_laws import check_family
from tallybayes.testing.posterior_laws import check_posterior, check_posterior_samples, check_samples, check_value
from tallybayes.testing.protocol_laws import check_protocols
from tallybayes.testing.source_laws import check_sources, forms
from tallybayes.testing.tally_laws import (
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
from tallybayes.testing.weighted_rows import WeightedRows

__all__ = [
    "WeightedRows",
    "assert_statistics_close",
    "check_absent",
    "check_addition",
    "check_family",
    "check_file",
    "check_forgetting",
    "check_kernels",
    "check_names",
    "check_order",
    "check_posterior",
    "check_posterior_samples",
    "check_protocols",
    "check_refusal",
    "check_samples",
    "check_soft_groups",
    "check_sources",
    "check_split",
    "check_value",
    "check_weights",
    "forms",
]
