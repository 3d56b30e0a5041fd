"""Operands of libraries at addresses that it can't take, within a step's own memory and in a plan's."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import dtypes
from graphdock.plugin.host import Host
from graphdock_cuda.bound import Arrays, Bindings, bind_steps
from graphdock_cuda.driver.api import Convolution, ConvolutionPlan, Gemm, GemmPlan
from graphdock_cuda.memory import Array
from graphdock_cuda.staged import bound_library
from graphdock_cuda.testing import FakeBlas, toolkit
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


#: Epilogue, and whether it takes a bias and what is beside.
EPILOGUES = {
    "none": (False, False),
    "bias": (True, False),
    "gelu_aux_bias": (True, True),
    "dgelu": (False, True),
    "sums_a": (True, False),
    "sums_b": (True, False),
}


class Products(Site):
    """A site, and the operands of a product of 8x8 matrices that begin somewhere."""

    def __init__(self, epilogue: str, adds: bool) -> None:
        super().__init__()
        self.plan = FakeBlas(self.driver.fake).plans(Gemm(8, 8, 8, "float32", epilogue=epilogue, adds=adds), 0)[0]
        self.used = [True, True, True, *EPILOGUES[epilogue]]

    def operands(self, shifts: Sequence[int]) -> list[Array | None]:
        rng = np.random.default_rng(0)
        made: list[Array | None] = []
        for size, shift, used in zip((64, 64, 64, 8, 64), shifts, self.used, strict=True):
            values = rng.standard_normal(size).astype(np.float32)
            block = self.device.allocate(512, 256)
            array = Array(block, block.address + shift, dtypes.float32, (size,))
            self.device.from_host(values, array)
            made.append(array if used else None)
        return made

    def done(self, shifts: Sequence[int], known: bool) -> list[np.ndarray]:
        """What the operands hold when the product is done."""
        places = self.operands(shifts)

        def run(stream: int, *addresses: int) -> None:
            self.seen.append(addresses)
            assert not any(address % 16 for address in addresses)
            self.plan.run(stream, *addresses)  # type: ignore[arg-type]

        operands = [None if p is None else Operand("input", i, p.dtype, p.shape) for i, p in enumerate(places)]
        plan = GemmPlan(self.plan.gemm, 0, run, 16)
        call = Arrays(places, [], None, None)
        nowhere = Arrays([None] * 5, [], None, None)
        step = Step("gemm", (*operands, None), what=plan)
        fixed, varying = bind_steps([step], call if known else nowhere, self.bindings)
        assert bool(fixed) is known
        with self.device.current():
            self.driver.log.reset()
            if known and any(shifts):
                self.queue.capture(fixed[0])()  # which allocates nothing
                assert not any(c.name in ("malloc", "free") for c in self.driver.log.calls)
            else:
                (fixed or [lambda: varying[0](call)])[0]()
            self.queue.synchronize()
        self.driver.verify()
        out = []
        for place in places:
            if place is not None:
                out.append(np.empty(place.shape, np.float32))
                self.device.to_host(place, out[-1])
        return out


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(("epilogue", "adds"), [*((e, False) for e in EPILOGUES), ("none", True)], ids=lambda x: str(x))
def test_a_product_for_aligned_addresses_alone_keeps_its_epilogue(epilogue: str, adds: bool, known: bool) -> None:
    """Where the library's heuristics have an algorithm for aligned operands and none for others."""
    expected = Products(epilogue, adds).done((0,) * 5, True)
    for shifts in ((4,) * 5, (0, 8, 0, 12, 0), (0, 0, 4, 0, 4)):
        found = Products(epilogue, adds).done(shifts, known)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)


def test_a_slice_that_begins_anywhere_is_multiplied_by_a_library_that_wants_aligned_addresses() -> None:
    """In a session: the second row of an array of an odd length, with a bias."""
    tools, host = toolkit(), Host()
    driver: Any = tools.driver

    class Aligned(FakeBlas):
        def plans(self, gemm: Gemm, workspace: int) -> Sequence[GemmPlan]:
            def run(*args: int, plan: GemmPlan) -> None:
                assert not any(address % 16 for address in args[1:6])
                plan.run(*args)  # type: ignore[call-arg]

            return [
                replace(plan, aligned=16, run=functools.partial(run, plan=plan))
                for plan in super().plans(gemm, workspace)
            ]

    install(host, replace(tools, blas=lambda: Aligned(driver.fake)))
    rows, weights = np.arange(45, dtype="f4").reshape(5, 9), np.ones((9, 3), "f4")
    with tf.Graph(host=host).as_default():
        x, w = tf.placeholder(tf.float32, [5, 9]), tf.placeholder(tf.float32, [9, 3])
        y = tf.nn.relu(tf.matmul(tf.identity(x)[1:], w) + tf.constant([1.0, 2.0, 3.0]))
        config = tf.SessionConfig(backends=("cuda", "cpu"), fallback="forbid")
        with tf.Session(config=config, host=host) as session:
            for _ in range(4):
                got = session.run(y, {x: rows, w: weights})
    np.testing.assert_allclose(got, rows[1:] @ weights + [1, 2, 3])
    driver.verify()
