"""Kernels that tokenize strings and count tokens."""
