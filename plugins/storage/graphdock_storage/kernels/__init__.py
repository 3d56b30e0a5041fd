"""Kernels of the ops that write and read files."""
