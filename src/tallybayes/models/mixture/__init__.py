"""Mixture models: naive Bayes without class labels."""
