"""Plots of Bayesian networks."""
