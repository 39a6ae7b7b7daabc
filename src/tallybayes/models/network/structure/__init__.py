"""Structure learning: scores, search methods and equivalence classes."""
