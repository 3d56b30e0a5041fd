"""Kernels, a module per family of ops."""
