"""Kernels of the cluster plugin."""
