"""A kernel that changes what is the program's, or keeps memory of each step, is found; one that only computes is not."""

from __future__ import annotations

import gc
import os
import random

import numpy as np
import pytest
from graphdock.contracts import KernelDef, hookimpl
from graphdock.plugin.host import Host
from graphdock_testing.conformance import Conformance, ConformanceError

pytestmark = pytest.mark.plain
KEPT: list[np.ndarray] = []


def _sets_the_environment():
    os.environ["TEST_OF_MANNERS"] = "1"


#: What a kernel does besides, and what is said of it.
FAULTS = {
    "it seeds NumPy": (lambda: np.random.seed(0), "a step changed NumPy's global generator"),  # noqa: NPY002
    "it draws": (lambda: random.random(), "a step changed Python's global generator"),
    "it sets the environment": (_sets_the_environment, "a step changed the environment"),
    "it keeps memory": (lambda: KEPT.append(np.zeros(4096)), "each step keeps 3[0-9]+ bytes that it never gives back"),
}


def check(besides):
    def build(ctx):
        def compute(x, *out):
            besides()
            return np.square(x, *out)

        return compute

    host = Host()
    hook = hookimpl(specname="register_kernels")(lambda: [KernelDef("Square", "cpu", build, types={"T": ("float32",)})])
    host.register("lab", type("Plugin", (), {"hook": staticmethod(hook)})())
    kit = Conformance("lab", host=host)
    case = next(c for c in kit.cases("Square") if c.kind == "value" and c.index == 0 and c.dtype == "float32")
    kit.check(case)


@pytest.fixture(autouse=True)
def _as_it_was(monkeypatch):
    monkeypatch.delenv("TEST_OF_MANNERS", raising=False)
    yield
    KEPT.clear()


def test_a_kernel_that_computes_and_nothing_else():
    check(lambda: None)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.sampled(2)
def test_what_else_a_kernel_does_is_found(fault):
    besides, said = FAULTS[fault]
    with pytest.raises(ConformanceError, match=said):
        check(besides)


def test_a_cycle_that_an_old_generation_holds_is_not_kept():
    def besides():
        cycle = [np.zeros(4096)]
        cycle.append(cycle)
        gc.collect(0)  # it lives, and is looked at by a whole collection alone

    check(besides)
