"""Reference implementation of the kernels in NumPy, which defines the results of the compiled kernels."""
