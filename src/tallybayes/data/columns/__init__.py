"""Kinds of columns: numbers, labels and their encoding, text, dates, missing-value indicators."""
