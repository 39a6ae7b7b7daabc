"""Folds, held-out rows and leave-one-out by subtraction of statistics."""
