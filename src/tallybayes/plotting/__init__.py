"""Plots. The only folder that imports matplotlib, inside functions."""
