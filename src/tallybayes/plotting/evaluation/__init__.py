"""Plots of evaluation results."""
