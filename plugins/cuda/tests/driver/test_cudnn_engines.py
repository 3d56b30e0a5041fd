"""The real front end and the real library, where both are installed: they plan convolutions for an H100 that need not be here.

``CUDNN_PYTHON`` names an interpreter that has ``nvidia-cudnn-frontend`` 1.14 or newer, and cuDNN with cuBLAS of one CUDA beside it;
default: the one that runs the tests. A process of its own: the library ends the one that it misses cuBLAS in.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import graphdock_cuda
import pytest

pytestmark = pytest.mark.oracle

#: What cuDNN knows of a GPU, for one whose facts stand in NVIDIA's data sheet.
H100 = {
    "maxGridSize": [2147483647, 65535, 65535],
    "maxBlockSize": [1024, 1024, 64],
    "regsPerBlock": 65536,
    "multiProcessorCount": 132,
    "warpSize": 32,
    "maxSharedMemoryPerBlock": 49152,
    "maxSharedMemoryPerBlockOptin": 232448,
    "reservedSharedMemoryPerBlock": 1024,
    "maxRegistersPerSM": 65536,
    "maxCtasPerSM": 32,
    "maxThreadsPerBlock": 1024,
    "maxThreadsPerSM": 2048,
    "pciDeviceId": 0x2330,
    "isTccDriver": 0,
    "supportCoopLaunch": 1,
    "smClockRateKHz": 1980000,
    "memClockRateKHz": 2619000,
    "l2CacheSize": 52428800,
    "deviceName": "NVIDIA H100 80GB HBM3",
    "deviceVer": 900,
    "driverVer": 13000,
    "cudaDeviceId": 0,
    "totalGlobalMem": 85 << 30,
    "smVersion": 900,
}

#: Plans what it is given on its standard input; prints for each the workspace, or why there is no plan.
PROGRAM = """
import json, sys, types
import cudnn
from graphdock_cuda.driver.api import Convolution, Unsupported
from graphdock_cuda.driver.cudnn import Cudnn

facts, asked, room = json.load(sys.stdin)
gpu = cudnn.create_device_properties(json.dumps(facts))

class WithoutDevice:
    def __getattr__(self, name):
        return getattr(cudnn, name)
    def create_handle(self):
        return None
    def pygraph(self, handle, **rest):
        return cudnn.pygraph(device_property=gpu, **rest)

driver = types.SimpleNamespace(get_device=lambda: 0, properties=lambda device: types.SimpleNamespace(capability=(9, 0)))
planner = Cudnn(driver, WithoutDevice())
found = []
for row in asked:
    try:
        made = {name: tuple(value) if isinstance(value, list) else value for name, value in row.items()}
        found.append(planner.plan(Convolution(**made), room).workspace)
    except Unsupported as error:
        found.append(str(error))
print(json.dumps(found))
"""
ROOM = 32 << 20
#: Convolutions as networks have them: x, w, y, padding before and after, stride, dilation.
SHAPES = {
    "vgg": ((8, 64, 56, 56), (128, 64, 3, 3), (8, 128, 56, 56), (1, 1), (1, 1), (1, 1), (1, 1)),
    "padded on one side more": ((8, 64, 56, 56), (64, 64, 3, 3), (8, 64, 28, 28), (0, 0), (1, 1), (2, 2), (1, 1)),
    "first of a network": ((8, 3, 224, 224), (64, 3, 7, 7), (8, 64, 112, 112), (2, 2), (3, 3), (2, 2), (1, 1)),
    "odd channels": ((4, 5, 30, 30), (7, 5, 3, 3), (4, 7, 28, 28), (0, 0), (0, 0), (1, 1), (1, 1)),
    "dilated": ((4, 16, 30, 30), (32, 16, 3, 3), (4, 32, 30, 30), (2, 2), (2, 2), (1, 1), (2, 2)),
    "volume": ((2, 16, 8, 16, 16), (32, 16, 3, 3, 3), (2, 32, 8, 16, 16), (1, 1, 1), (1, 1, 1), (1, 1, 1), (1, 1, 1)),
}
_FIELDS = ("x", "w", "y", "before", "after", "stride", "dilation")


def test_the_library_has_an_engine_for_what_networks_convolve() -> None:
    """One that keeps every promise, for each of the operands, in each dtype and layout."""
    asked, names = [], []
    for name, shape in SHAPES.items():
        for makes in "yxw":
            for dtype, tf32 in (("float16", False), ("bfloat16", False), ("float32", False), ("float32", True)):
                for last in (True, False):
                    row = dict(zip(_FIELDS, shape, strict=True))
                    asked.append({"makes": makes, "dtype": dtype, "tf32": tf32, "last": last, **row})
                    names.append(f"{name}: {makes} {dtype} {tf32} {last}")
    python = os.environ.get("CUDNN_PYTHON", sys.executable)
    there = "import cudnn; cudnn.create_device_properties; assert cudnn.backend_version() >= 90800"
    if subprocess.run([python, "-c", there], capture_output=True).returncode:
        pytest.skip(f"{python} has no cuDNN that plans without a GPU")
    path = os.pathsep.join([str(Path(graphdock_cuda.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [python, "-c", PROGRAM],
        input=json.dumps([H100, asked, ROOM]),
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    if "cublasLt" in done.stderr:
        pytest.skip(f"{python} has cuDNN and no cuBLAS")
    assert done.returncode == 0, done.stderr
    found = dict(zip(names, json.loads(done.stdout), strict=True))
    refused = {name: what for name, what in found.items() if isinstance(what, str)}
    assert not refused
    assert all(0 <= workspace <= ROOM for workspace in found.values())
