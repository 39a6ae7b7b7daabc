"""The factors of a model after estimating, and what scores rows by them."""
