"""Kernels by family. Each module holds a list ``KERNELS``."""
