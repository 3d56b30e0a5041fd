"""Kernels of the data plugin's ops, in host memory whatever the device."""
