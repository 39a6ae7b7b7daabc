"""Learned: one family, and what it was shown."""
