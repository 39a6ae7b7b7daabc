"""Checks of data and models: audits, dependence, predictive checks."""
