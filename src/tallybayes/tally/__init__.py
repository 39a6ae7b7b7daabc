"""Tally: the statistics of every factor of one model, with the labels of every axis."""
