"""Kernels of the cpu device by oneDNN, which is found and opened when a plan chooses one."""
