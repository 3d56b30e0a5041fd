"""Kernels written by hand, one family per module."""
