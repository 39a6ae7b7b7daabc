"""Sufficient statistics: immutable values that can be added, subtracted and scaled."""
