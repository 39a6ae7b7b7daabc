"""Tally: the sufficient statistics of every factor of a model, with the levels of its categorical columns."""
