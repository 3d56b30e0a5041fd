"""CUDA as this machine has it: CuPy's bindings, NVRTC, cuBLASLt, cuDNN. The only module that imports them."""

from __future__ import annotations

import functools
from collections.abc import Callable

from graphdock.contracts import DeviceUnavailable

from graphdock_cuda.driver.api import Blas, Dnn, Driver, Toolkit, Unsupported
from graphdock_cuda.driver.libcuda import driver_version, wheels_for

__all__ = ["real"]


@functools.cache
def real() -> Toolkit:
    """The process's CUDA. Raises DeviceUnavailable, with what is missing."""
    from graphdock_cuda.driver.cupy_driver import CupyDriver

    try:
        driver = CupyDriver()
    except ImportError as error:
        raise DeviceUnavailable(f"CuPy can't be loaded: {error}", wheels_for(driver_version())) from error
    from graphdock_cuda.driver.nvrtc import Nvrtc

    if not driver.driver_version():
        raise DeviceUnavailable("no NVIDIA driver is loaded", "install the driver of the GPU; nvidia-smi lists it then")
    try:
        compiler = Nvrtc(driver.driver_version() // 1000)  # a newer one makes what this driver can't load
    except (ImportError, OSError) as error:
        raise DeviceUnavailable(f"NVRTC can't be loaded: {error}", wheels_for(driver.driver_version())) from error
    return Toolkit(driver, compiler, _blas, _networks(driver))


@functools.cache
def _blas() -> Blas:
    """Raises Unsupported where nvmath is not installed."""
    from graphdock_cuda.driver.cublaslt import CublasLt

    try:
        return CublasLt()
    except ImportError as error:
        raise Unsupported(f"nvmath can't be loaded: {error}") from error


def _networks(driver: Driver) -> Callable[[], Dnn]:
    """Gives cuDNN. It is looked for once."""

    @functools.cache
    def found() -> Dnn | str:
        from graphdock_cuda.driver.cudnn import Cudnn

        try:
            return Cudnn(driver)
        except Unsupported as error:
            return str(error)

    def dnn() -> Dnn:
        library = found()
        if isinstance(library, str):
            raise Unsupported(library)
        return library

    return dnn
