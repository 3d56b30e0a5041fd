"""What is missing where no GPU can be used is said in one sentence."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest
from graphdock.contracts import DeviceUnavailable
from graphdock_cuda import probe
from graphdock_cuda.driver.errors import CudaError
from graphdock_cuda.driver.libcuda import driver_version
from graphdock_cuda.testing import toolkit


class Driver:
    """A driver that answers what a test says."""

    def __init__(self, newest: int = 13000, built: int = 13000, count: int = 1, capability: tuple[int, int] = (9, 0)):
        self._newest, self._built, self._count = newest, built, count
        self._facts = replace(toolkit().driver.properties(0), capability=capability)

    def driver_version(self) -> int:
        return self._newest

    def runtime_version(self) -> int:
        return self._built

    def device_count(self) -> int:
        return self._count

    def properties(self, device: int) -> Any:
        return self._facts


@pytest.mark.parametrize(
    ("driver", "reason", "hint"),
    [
        (dict(newest=0), "no NVIDIA driver is loaded", "nvidia-smi"),
        (dict(newest=12040), "supports CUDA 12.4 and CuPy was built for CUDA 13.0", "graphdock-cuda[cuda12]"),
        (dict(newest=11080), "supports CUDA 11.8 and CuPy was built for CUDA 13.0", "update the driver"),
        (dict(count=0), "sees no GPU", "CUDA_VISIBLE_DEVICES"),
        (dict(capability=(6, 1)), "compute capability 6.1, and 7.0 is needed", ""),
    ],
)
def test_what_is_missing_is_said(driver: dict[str, Any], reason: str, hint: str) -> None:
    with pytest.raises(DeviceUnavailable) as found:
        probe.devices(Driver(**driver))  # type: ignore[arg-type]
    assert reason in found.value.reason and hint in (found.value.hint or "")


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (100, "sees no GPU"),
        (35, "driver too old"),
        (803, "different versions"),
        (802, "fabric manager"),
        (999, "unknown"),
    ],
)
def test_a_driver_that_cannot_count_says_why(monkeypatch: pytest.MonkeyPatch, status: int, reason: str) -> None:
    def fails(self: Driver) -> int:
        raise CudaError("cudaGetDeviceCount", status)

    monkeypatch.setattr(Driver, "device_count", fails)
    with pytest.raises(DeviceUnavailable) as found:
        probe.devices(Driver())  # type: ignore[arg-type]
    assert reason in found.value.reason and found.value.hint


def test_a_newer_driver_than_the_wheels_is_fine() -> None:
    (info,) = probe.devices(Driver(newest=14000))  # type: ignore[arg-type]
    assert info.architecture == "sm_90a"


@pytest.mark.parametrize(("capability", "architecture"), [((8, 0), "sm_80"), ((9, 0), "sm_90a"), ((10, 0), "sm_100")])
def test_a_gpu_is_described(capability: tuple[int, int], architecture: str) -> None:
    (info,) = probe.devices(Driver(capability=capability))  # type: ignore[arg-type]
    assert (info.architecture, info.index, info.device_type) == (architecture, 0, "cuda")
    assert info.attributes["compute capability"] == f"{capability[0]}.{capability[1]}"


def test_capabilities_of_two_digits_are_newer() -> None:
    (info,) = probe.devices(Driver(capability=(12, 0)))  # type: ignore[arg-type]
    assert info.architecture == "sm_120"


@pytest.mark.parametrize(
    ("installed", "network", "matrix"),
    [
        (
            {},
            "not installed (pip install 'graphdock-cuda[cudnn]')",
            "not installed: products are tiles of our own (pip install 'graphdock-cuda[cuda12]')",
        ),
        (
            {"nvidia-cudnn-frontend": "1.23.0", "nvidia-cudnn-cu12": "9.20.0.48", "nvidia-cublas-cu12": "12.9.1.4"},
            "9.20.0.48, front end 1.23.0",
            "12.9.1.4, nvmath ?",
        ),
        (
            {"nvidia-cudnn-frontend": "1.23.0", "nvmath-python": "0.7.0"},
            "a library of the system, if any, front end 1.23.0",
            "a library of the system, if any, nvmath 0.7.0",
        ),
    ],
)
def test_what_there_is_of_libraries_is_told(
    monkeypatch: Any, installed: dict[str, str], network: str, matrix: str
) -> None:
    def version(package: str) -> str:
        if package not in installed:
            raise probe.importlib.metadata.PackageNotFoundError(package)
        return installed[package]

    monkeypatch.setattr(probe.importlib.metadata, "version", version)
    monkeypatch.setattr(probe.importlib.util, "find_spec", lambda name: object() if installed else None)
    (info,) = probe.devices(Driver(newest=12040, built=12000))  # type: ignore[arg-type]
    assert (info.attributes["cuDNN"], info.attributes["cuBLASLt"]) == (network, matrix)
    assert not {"cudnn", "nvmath"} & sys.modules.keys()


@pytest.mark.parametrize(
    ("newest", "hint"),
    [
        (0, "pip install 'graphdock-cuda[cuda13]', or [cuda12] for drivers of CUDA 12"),
        (12040, "pip install 'graphdock-cuda[cuda12]'"),
        (13000, "pip install 'graphdock-cuda[cuda13]'"),
        (14010, "pip install 'graphdock-cuda[cuda13]'"),
    ],
)
@pytest.mark.parametrize("missing", ["no package", "a package that can't be loaded", "no NVRTC"])
def test_what_to_install_fits_the_driver_that_is_found(
    monkeypatch: pytest.MonkeyPatch, newest: int, hint: str, missing: str
) -> None:
    from graphdock_cuda import toolkit as real

    tools = toolkit()
    monkeypatch.setattr(probe, "driver_version", lambda: newest)
    monkeypatch.setattr(real, "driver_version", lambda: newest)
    monkeypatch.setattr(tools.driver, "driver_version", lambda: newest)
    monkeypatch.setattr(probe.importlib.util, "find_spec", lambda name: None if missing == "no package" else object())
    made = {"no NVRTC": lambda: tools.driver}.get(missing, _no_library)
    monkeypatch.setattr("graphdock_cuda.driver.cupy_driver.CupyDriver", made)
    monkeypatch.setattr("graphdock_cuda.driver.nvrtc.find_libraries", list)
    with pytest.raises(DeviceUnavailable) as found:
        real.real.__wrapped__() if missing != "no package" else probe.real_toolkit()
    reason = {"no package": "the package cupy is not", "no NVRTC": "NVRTC can't be"}.get(
        missing, "CuPy can't be loaded"
    )
    if missing == "no NVRTC" and not newest:
        reason, hint = "no NVIDIA driver is loaded", "install the driver of the GPU; nvidia-smi lists it then"
    assert reason in found.value.reason and found.value.hint == hint


def _no_library() -> Any:
    raise ImportError("libcuda.so.1: cannot open shared object file")


class DriverLibrary:
    """``cuDriverGetVersion`` of the driver's library."""

    def __init__(self, status: int, version: int) -> None:
        self.status, self.version = status, version

    def cuDriverGetVersion(self, into: Any) -> int:  # noqa: N802 - CUDA's name
        into._obj.value = self.version
        return self.status


def test_the_driver_tells_its_version_without_cupy(monkeypatch: pytest.MonkeyPatch) -> None:
    assert driver_version(DriverLibrary(0, 12080)) == 12080
    assert driver_version(DriverLibrary(34, 7)) == 0

    def gone() -> Any:
        raise OSError("libcuda.so.1: cannot open shared object file")

    monkeypatch.setattr("graphdock_cuda.driver.libcuda._library", gone)
    assert driver_version() == 0


def test_importing_the_plugin_touches_no_driver() -> None:
    code = (
        "import sys, graphdock_cuda.plugin as p, graphdock_cuda.testing as t; t.kernels(); list(p.register_devices());"
        "print([m for m in sys.modules if m.partition('.')[0] in ('cupy', 'cupy_backends', 'nvmath', 'cuda', 'cudnn', 'jinja2')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_doctor_says_why_there_is_no_gpu_and_finds_no_fault() -> None:
    done = subprocess.run([sys.executable, "-m", "graphdock", "doctor", "--json"], capture_output=True, text=True)
    row = next(p for p in json.loads(done.stdout)["plugins"] if p["plugin"] == "cuda")
    assert done.returncode == 0
    assert row["stage"] in ("no device", "registered")
    if row["stage"] == "no device":
        assert row["cause"] and "\n" not in row["cause"]


def test_an_error_of_the_driver_has_its_number() -> None:
    assert "out of memory" in str(CudaError("malloc", 2))
