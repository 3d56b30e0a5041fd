"""CUDA without a GPU, for tests: the plugin's own sources run on the CPU, behind the protocols of ``graphdock_cuda.driver.api``.

tools = toolkit(gpus=2, seed=3)
...
tools.driver.verify()          # no misuse, no race
assert not tools.driver.live   # nothing leaked
"""

from __future__ import annotations

import importlib
from typing import Any

from graphdock.contracts import KernelDef

from graphdock_cuda.driver.api import Properties, Toolkit
from graphdock_cuda.driver.cudnn import Cudnn
from graphdock_cuda.plugin import FAMILIES
from graphdock_cuda.testing.blas import FakeBlas
from graphdock_cuda.testing.cudnn import FakeCudnn
from graphdock_cuda.testing.cupy_bindings import FakeBehindCupy
from graphdock_cuda.testing.driver import FakeDriver
from graphdock_cuda.testing.emulator import Emulator, find_compiler

__all__ = ["FakeBlas", "FakeCudnn", "FakeDriver", "Emulator", "find_compiler", "kernels", "toolkit"]


def toolkit(
    gpus: int = 1,
    memory: int = 1 << 30,
    seed: int = 0,
    capability: tuple[int, int] = (9, 0),
    peers: bool = True,
    cudnn: bool = False,
    cupy: bool = True,
    newest: int = 13000,
    fma: bool = False,
    traced: bool = False,
) -> Toolkit:
    """All of CUDA, faked; ``driver`` is a FakeDriver.

    Args:
      gpus: how many. ``memory``: bytes of each. ``seed``: of the order in which work runs.
      capability: of each GPU. ``peers``: whether they reach one another's memory.
      cudnn: whether cuDNN is installed; ``dnn()`` is then a Cudnn over a FakeCudnn.
      newest: the newest CUDA that the driver supports, 12020 for 12.2.
      fma: whether the compiler fuses products with sums. ``traced``: whether races of kernels with kernels are found, too.
      cupy: whether the driver is a CupyDriver, over a stand-in for CuPy's bindings; it has a FakeDriver's attributes all the same.

    Raises RuntimeError where there is no C++ compiler.
    """
    properties = [
        Properties(
            name="Fake GPU",
            capability=capability,
            memory=memory,
            multiprocessors=4,
            shared_memory=227 << 10,
            clock=1_000_000,
            memory_clock=1_000_000,
            bus_width=512,
            l2_cache=1 << 20,
            pci=f"0000:{index:02x}:00.0",
        )
        for index in range(gpus)
    ]
    fake = FakeDriver(properties, seed, peers, newest)
    fake.traced = traced
    driver: Any = FakeBehindCupy(fake) if cupy else fake
    dnn = Cudnn(driver, FakeCudnn(fake)) if cudnn else None
    return Toolkit(
        driver=driver,
        compiler=Emulator(fma, traced),
        blas=lambda: FakeBlas(fake),
        dnn=None if dnn is None else lambda: dnn,
        cache=True,
        about="emulated",
    )


def kernels() -> list[KernelDef]:
    """All kernels of the package; imports all of its modules of kernels."""
    found: list[KernelDef] = []
    for name in FAMILIES:
        found += importlib.import_module(f"graphdock_cuda.kernels.{name}").KERNELS
    return found
