"""Hooks of the tandem plugin. Importing this module imports no NumPy."""

from graphdock.contracts import hookimpl


@hookimpl
def register_devices():
    from graphdock_tandem.device import TandemFactory

    return [TandemFactory()]


@hookimpl
def register_kernels():
    from graphdock_tandem.kernels import KERNELS

    return KERNELS
