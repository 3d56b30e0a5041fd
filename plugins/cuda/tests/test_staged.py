"""Operands of the network library at addresses that it can't take, within a step's own memory and in a plan's."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from graphdock.contracts import dtypes
from graphdock.plugin.host import Host
from graphdock_cuda.bound import Arrays, Bindings
from graphdock_cuda.driver.api import Convolution, ConvolutionPlan
from graphdock_cuda.memory import Array
from graphdock_cuda.staged import bound_library
from graphdock_cuda.testing import toolkit
from graphdock_cuda.testing.install import install
from graphdock_cuda.work import Operand, Step

#: Elements of each operand.
COUNT = 5


class Site:
    """A device, a queue of it, and a plan that adds its operands at aligned addresses. ``seen``: what it was called with."""

    def __init__(self) -> None:
        tools, host = toolkit(), Host()
        self.driver: Any = tools.driver
        self.device = install(host, tools)
        self.queue = self.device.new_queue()
        self.bindings = Bindings(self.device, self.queue, SimpleNamespace())  # type: ignore[arg-type]
        self.seen: list[tuple[int, ...]] = []

    def step(self, makes: str) -> Step:
        sizes = (1, COUNT, 1, 1)
        asked = Convolution(makes, "float32", sizes, sizes, sizes, (0, 0), (0, 0), (1, 1), (1, 1))
        made = "xwy".index(makes)

        def run(stream: int, x: int, w: int, y: int, workspace: int) -> None:
            places = (x, w, y)
            assert stream == self.queue.stream and not any(a % 16 for a in places)
            self.seen.append(places)
            first = next(i for i in range(3) if i != made)
            self.driver.copy(places[made], places[first], 4 * COUNT, stream)

        operands = [Operand("output" if i == made else "input", i, dtypes.float32, (COUNT,)) for i in range(3)]
        return Step("convolution", (*operands, None), what=ConvolutionPlan(asked, 0, 16, run))

    def pinned(self) -> np.ndarray:
        return self.device.staging(4 * COUNT).view(np.float32)

    def array(self, shift: int, value: float) -> Array:
        """Elements that begin ``shift`` bytes behind an aligned address."""
        block = self.device.allocate(256, 256)
        made = Array(block, block.address + shift, dtypes.float32, (COUNT,))
        values = self.pinned()
        values[:] = value
        self.queue.from_host(values, made)
        self.queue.synchronize()
        return made


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(("makes", "shifts"), [("y", (0, 0, 0)), ("y", (4, 0, 0)), ("x", (8, 4, 12)), ("w", (0, 4, 0))])
def test_what_is_not_aligned_is_copied(makes: str, shifts: tuple[int, int, int], known: bool) -> None:
    """Nothing is allocated in a step where addresses are known before; what is aligned is taken where it lies."""
    site = Site()
    arrays = [site.array(shift, 10.0 + i) for i, shift in enumerate(shifts)]
    step = site.step(makes)
    inputs, outputs = (
        [a if x.kind == kind else None for a, x in zip(arrays, step.args, strict=False)] for kind in ("input", "output")
    )
    call = Arrays(inputs, outputs, None, None)
    nothing = Arrays([None] * 3, [None] * 3, None, None)
    act, varies = bound_library(step, call if known else nothing, site.bindings)
    assert varies is not known
    site.driver.log.reset()
    with site.device.current():
        act(call)
    assert site.driver.log.count("malloc") == (0 if known else sum(shift > 0 for shift in shifts))
    for place, array, shift in zip(site.seen[0], arrays, shifts, strict=True):
        assert (place == array.address) == (shift == 0)
    found = site.pinned()
    made = "xwy".index(makes)
    site.queue.to_host(arrays[made], found)
    site.queue.synchronize()
    assert (found == (11.0 if made == 0 else 10.0)).all()
    site.driver.verify()
