"""Kernels that turn strings into tokens and counts."""
