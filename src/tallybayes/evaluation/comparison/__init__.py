"""Comparison of models and of data: Bayes factors, differences and drift."""
