"""Applications of the package for use without Python. They use only its public names."""
