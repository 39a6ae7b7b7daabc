"""Models: factors and a question."""
