"""Tools of tests of Triton kernels where there is no GPU: the interpreter over NumPy's memory."""
