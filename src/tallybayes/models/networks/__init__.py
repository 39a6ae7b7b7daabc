"""Bayesian networks."""
