"""Hooks of the frames plugin. Importing this module imports neither NumPy nor a driver."""

from graphdock.contracts import OpLibrary, hookimpl


@hookimpl
def register_ops():
    return [OpLibrary("graphdock_frames._gen.opdefs", specs="graphdock_frames")]


@hookimpl
def register_kernels():
    from graphdock_frames.kernels import KERNELS

    return KERNELS
