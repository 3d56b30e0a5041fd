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
    ("installed", "told"),
    [
        ({}, "not installed (pip install 'graphdock-cuda[cudnn]')"),
        ({"frontend": "1.23.0", "cu12": "9.20.0.48"}, "9.20.0.48, front end 1.23.0"),
        ({"frontend": "1.23.0"}, "a library of the system, if any, front end 1.23.0"),
    ],
)
def test_what_there_is_of_cudnn_is_told(monkeypatch: Any, installed: dict[str, str], told: str) -> None:
    def version(package: str) -> str:
        found = installed.get(package.rpartition("-")[2])
        if found is None:
            raise probe.importlib.metadata.PackageNotFoundError(package)
        return found

    monkeypatch.setattr(probe.importlib.metadata, "version", version)
    monkeypatch.setattr(probe.importlib.util, "find_spec", lambda name: object() if installed else None)
    (info,) = probe.devices(Driver())  # type: ignore[arg-type]
    assert info.attributes["cuDNN"] == told and "cudnn" not in sys.modules


def test_a_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probe.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(DeviceUnavailable, match="the package cupy is not installed") as found:
        probe.real_toolkit()
    assert "pip install 'graphdock-cuda[cuda13]'" in (found.value.hint or "")


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
