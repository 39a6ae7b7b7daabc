"""The kernels in NumPy: the definition that compiled kernels must agree with."""
