"""Metrics of predictions and their credible intervals."""
