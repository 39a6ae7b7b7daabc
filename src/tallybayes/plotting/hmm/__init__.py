"""Plots of hidden Markov models."""
