"""Applications: what people use without writing Python. They use only the public names of the package."""
