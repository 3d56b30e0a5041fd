"""What tests of Triton kernels need where there is no GPU: the interpreter over NumPy's memory."""
