"""A driver with one device and two queues, and how a test launches something on them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from graphdock.contracts import DeviceInfo, dtypes
from graphdock_testing.driver.device import Driver, DriverDevice


class Bench:
    """A device, two queues, and short names for what tests do with them."""

    def __init__(self, seed: int = 0, laziness: float | None = 1.0) -> None:
        self.driver = Driver(seed, laziness)
        self.device = DriverDevice(DeviceInfo("chip"), self.driver)
        self.q, self.r = self.device.new_queue(), self.device.new_queue()
        self.memory = self.device.staging(1 << 12)
        self.cut = 0
        self.kept: list[Any] = []
        self.device.faults.reset()

    def buffer(self, value: Any = None, size: int = 4, keep: bool = True) -> Any:
        """A float32 buffer of no queue, and what it holds at first; the bench keeps it alive."""
        made = self.device.empty(dtypes.float32, (size,))
        if keep:
            self.kept.append(made)
        if value is not None:
            made.array[...] = value
        return made

    def slot(self, size: int = 4) -> Any:
        """A float32 piece of staging memory that was not given out before."""
        begin, self.cut = self.cut, self.cut + 4 * size
        return self.memory[begin : self.cut].view(np.float32)

    def on(self, queue: Any) -> Any:
        """Make a queue current; returns it."""
        self.device.activate(queue)
        return queue

    def add(self, queue: Any, src: Any, dst: Any, amount: float = 1.0, what: str = "add") -> None:
        """Launch ``dst = src + amount``."""
        source, target = src.array, dst.array
        self.on(queue).launch(what, lambda: np.add(source, amount, out=target), [src], [dst])


@pytest.fixture
def bench() -> Bench:
    return Bench()


@pytest.fixture
def make_bench() -> Any:
    return Bench
