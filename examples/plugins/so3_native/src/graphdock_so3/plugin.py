"""Hooks of the so3 plugin. Importing this module imports neither NumPy nor the library."""

from graphdock.contracts import OpLibrary, hookimpl


@hookimpl
def register_ops():
    return [OpLibrary("graphdock_so3._gen.opdefs", specs="graphdock_so3")]


@hookimpl
def register_kernels():
    from graphdock_so3.kernels import KERNELS

    return KERNELS
