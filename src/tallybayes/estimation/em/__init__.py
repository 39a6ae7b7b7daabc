"""Expectation-maximization and its initialization."""
