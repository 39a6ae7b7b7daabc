"""Regression: targets that are numbers."""
