"""Naive Bayes."""
