"""Structures learned from rows: scores of families, ways to search, what is equivalent."""
