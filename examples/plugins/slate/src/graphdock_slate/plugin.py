"""Hooks of the slate plugin. Importing this module opens no library."""

from graphdock.contracts import hookimpl


@hookimpl
def register_devices():
    from graphdock_slate.kernels import DEVICE

    return [DEVICE.factory()]


@hookimpl
def register_kernels():
    from graphdock_slate.kernels import KERNELS

    return KERNELS
