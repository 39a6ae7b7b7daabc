"""Plots of classifiers."""
