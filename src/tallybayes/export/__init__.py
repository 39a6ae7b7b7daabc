"""What leaves the package for elsewhere, row by row or whole."""
