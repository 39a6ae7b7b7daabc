"""Settings as they are typed: priors."""

import pytest

import tallybayes as tb
from tallybayes.apps.cli import model_options
from tallybayes.apps.cli.cli_errors import UsageError


def test_a_number_is_ambiguous_under_map():
    with pytest.raises(UsageError, match="expected dirichlet:3, which adds 2 to every level's count, or dirichlet:2"):
        model_options.read_prior("2", "map")
    assert model_options.read_prior("dirichlet:3", "map") == tb.Dirichlet(3)
    assert model_options.read_prior("beta:3,2", "map") == tb.Beta(3, 2)
    assert model_options.read_prior("2") == 2.0
    for wrong in ("beta:3", "dirichlet:x", "beta:"):
        with pytest.raises(UsageError, match="beta:A,B"):
            model_options.read_prior(wrong)
