"""What rows, columns and sequences models are given."""
