"""Search for a GPU to work on, and for what is missing where there is none."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from collections.abc import Mapping
from types import MappingProxyType

from graphdock.contracts import DeviceInfo, DeviceUnavailable

from graphdock_cuda.driver.api import Driver, Properties, Toolkit
from graphdock_cuda.driver.errors import name_of
from graphdock_cuda.driver.libcuda import driver_version, wheels_for

__all__ = ["cublaslt", "cudnn", "devices", "info_of"]

#: The oldest CUDA that there are wheels for.
_OLDEST_CUDA = 12000
#: The oldest architecture that the sources compile for.
OLDEST = (7, 0)
_NO_GPU = ("the NVIDIA driver sees no GPU", "CUDA_VISIBLE_DEVICES hides GPUs; nvidia-smi lists all")


def devices(driver: Driver) -> list[DeviceInfo]:
    """The GPUs that work here. Raises DeviceUnavailable with what is missing, in one sentence."""
    newest, built = driver.driver_version(), driver.runtime_version()
    if not newest:
        raise DeviceUnavailable("no NVIDIA driver is loaded", "install the driver of the GPU; nvidia-smi lists it then")
    if newest // 1000 < built // 1000:
        hint = "update the driver" if newest < _OLDEST_CUDA else f"{wheels_for(newest)}, or update the driver"
        raise DeviceUnavailable(
            f"the NVIDIA driver supports CUDA {_version(newest)} and CuPy was built for CUDA {_version(built)}", hint
        )
    try:
        count = driver.device_count()
    except Exception as error:
        raise _unusable(error) from error
    if not count:
        raise DeviceUnavailable(*_NO_GPU)
    found = [driver.properties(index) for index in range(count)]
    library = {"cuBLASLt": cublaslt(newest), "cuDNN": cudnn()}
    able = [info_of(index, facts, library) for index, facts in enumerate(found) if facts.capability >= OLDEST]
    if not able:
        raise DeviceUnavailable(
            f"{found[0].name} has compute capability {_dotted(found[0].capability)}, and {_dotted(OLDEST)} is needed"
        )
    return able


def _unusable(error: Exception) -> Exception:
    """Return why GPUs can't be counted; the error itself where it is none of CUDA's."""
    status = getattr(error, "status", None)
    if not isinstance(status, int):
        return error
    if status == 100:
        return DeviceUnavailable(*_NO_GPU)
    hint = "nvidia-smi tells more; a driver that was just updated needs a restart of the machine"
    return DeviceUnavailable(f"the NVIDIA driver can't be used: {name_of(status)} (CUDA error {status})", hint)


def _version(number: int) -> str:
    return f"{number // 1000}.{number % 1000 // 10}"


def _dotted(capability: tuple[int, int]) -> str:
    return f"{capability[0]}.{capability[1]}"


def cublaslt(newest: int) -> str:
    """Return what is installed of cuBLASLt, for ``graphdock devices``: versions by package. Imports nothing of it."""
    if importlib.util.find_spec("nvmath") is None:
        return f"not installed: products are tiles of our own ({wheels_for(newest)})"
    return f"{_first_installed('nvidia-cublas', 'nvidia-cublas-cu12')}, nvmath {_installed('nvmath-python') or '?'}"


def cudnn() -> str:
    """Return what of cuDNN is installed, for ``graphdock devices``: versions by package. Imports nothing of it."""
    if importlib.util.find_spec("cudnn") is None:
        return "not installed (pip install 'graphdock-cuda[cudnn]')"
    library = _first_installed("nvidia-cudnn-cu13", "nvidia-cudnn-cu12")
    return f"{library}, front end {_installed('nvidia-cudnn-frontend') or '?'}"


def _first_installed(*packages: str) -> str:
    """The version of a library that one of these packages brings."""
    return next((version for version in map(_installed, packages) if version), "a library of the system, if any")


def _installed(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def info_of(index: int, facts: Properties, more: Mapping[str, str] = MappingProxyType({})) -> DeviceInfo:
    """A GPU as ``graphdock devices`` shows it. ``more``: what else is told of it."""
    attributes = {
        "name": facts.name,
        "compute capability": _dotted(facts.capability),
        "memory": f"{facts.memory / 2**30:.1f} GiB",
        "clock": f"{facts.clock / 1e6:.2f} GHz",
        "memory clock": f"{facts.memory_clock / 1e6:.2f} GHz, {facts.bus_width} bits",
        "L2 cache": f"{facts.l2_cache / 2**20:.0f} MiB",
        "PCI": facts.pci,
        **more,
    }
    return DeviceInfo(
        "cuda",
        index,
        facts.memory,
        attributes,
        architecture=facts.architecture,
        multiprocessors=facts.multiprocessors,
        shared_memory_bytes=facts.shared_memory,
        warp_size=facts.warp_size,
    )


def missing_wheels() -> str | None:
    """Return which Python package is missing; None when all are here. Imports none of them."""
    for package in ("cupy", "cupy_backends"):
        if importlib.util.find_spec(package) is None:
            return package
    return None


def real_toolkit() -> Toolkit:
    """CUDA as this machine has it. Raises DeviceUnavailable where packages are missing or can't be loaded."""
    missing = missing_wheels()
    if missing is not None:
        raise DeviceUnavailable(f"the package {missing} is not installed", wheels_for(driver_version()))
    from graphdock_cuda import toolkit

    return toolkit.real()
