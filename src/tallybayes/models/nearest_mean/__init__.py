"""Nearest class mean with a learned metric."""
