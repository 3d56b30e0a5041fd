"""Ops that kernels of the library compute: which one, and how an op's arguments are the kernel's."""
