"""Inference in Bayesian networks: exact by clique trees, approximate by likelihood weighting."""
