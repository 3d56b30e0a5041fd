"""The kit finds what a C kernel does wrong: beyond its buffers, to its inputs, to its own state, or by ending the process."""

from __future__ import annotations

import re
import shutil

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import Scratch
from graphdock.plugin.host import Host
from graphdock_testing.case import ConformanceError
from graphdock_testing.conformance import Conformance
from graphdock_testing.isolation import Worker
from graphdock_testing.op_check import SUCCESS, opcheck

PLUGIN = """
from graphdock.contracts import hookimpl
from graphdock_native import NativeLibrary

@hookimpl
def register_kernels():
    library = NativeLibrary("_native/chip", package="graphdock_chip")
    return [library.kernel("Relu", "relu", types={"T": ["float32"]}, priority=5)]
"""
RELU = """
GRAPHDOCK_KERNEL(relu) {
    float *x = (float *)call->inputs[0].data, *y = (float *)call->outputs[0].data;
    const int64_t n = call->outputs[0].size;
    for (int64_t i = 0; i < n; i++) y[i] = x[i] < 0 ? 0 : x[i];
    FAULT
    return GD_OK;
}
"""


def outcomes(lab, site, fault):
    """What comes of the cases of a kernel with this fault, each in a child process."""
    package = site.plugin("chip", PLUGIN)
    made = lab.compile(RELU.replace("FAULT", fault), flags=("-O1",))
    (site.folder / package / "_native").mkdir()
    shutil.copy(made, site.folder / package / "_native" / f"chip{made.suffix}")
    worker = Worker("chip", timeout=120)
    try:
        return [worker.check(c) for c in Conformance("chip", host=Host()).cases("Relu") if c.dtype == "float32"]
    finally:
        worker.close()


def test_a_right_kernel_passes(lab, site):
    kinds = [o.kind for o in outcomes(lab, site, "")]
    assert kinds and set(kinds) == {"ok"}


@pytest.mark.parametrize(
    ("fault", "text"),
    [
        ("y[n] = 0;", "4 bytes behind its end"),
        ("if (n) y[-1] = 0;", "4 bytes before its beginning"),
        ("if (n) x[0] += 1;", "changed its input"),
        ("if (n) ((volatile char *)0)[0] = 1;", "the process died of SIGSEGV"),
        ('return gd_fail(call, GD_INTERNAL, "out of order");', "out of order"),
        ("return 99;", "unknown status 99"),
        ("static float state; if (n) y[0] += state++;", "output 0|other bits"),
        ("if (n > 1) return GD_OUT_OF_RANGE;", "gave no reason"),
    ],
    ids=["behind", "before", "input", "crash", "status", "number", "state", "silent"],
)
@pytest.mark.sampled(8)
def test_a_fault_is_found_and_named(lab, site, fault, text):
    failed = [o.text for o in outcomes(lab, site, fault) if o.kind != "ok"]
    assert failed and all("Relu" in told for told in failed)
    assert any(re.search(text, told) for told in failed), failed


TWICE = """
GRAPHDOCK_KERNEL(kernel) {
    const int64_t n = call->inputs[0].size;
    float *room = (float *)call->scratch[0].data;
    for (int64_t i = 0; i < n + MORE; i++) room[i] = ((const float *)call->inputs[0].data)[i % (n ? n : 1)];
    for (int64_t i = 0; i < n; i++) ((float *)call->outputs[0].data)[i] = 2 * room[i];
    return GD_OK;
}
"""


@pytest.mark.parametrize("more", [0, 1])
def test_opcheck_runs_a_native_kernel_on_inputs_of_ones_own(lab, more):
    config = lab.pin(
        TWICE.replace("MORE", str(more)), "lab.Twice", scratch=lambda shapes: [Scratch(tf.float32, shapes[0])]
    )
    (name,) = config.kernels.values()
    arguments = "lab.Twice", [np.array([1.0, -2.5, 3.0], np.float32)]
    if more:
        with pytest.raises(ConformanceError, match="4 bytes behind its end"):
            opcheck(*arguments, kernels=[name])
    else:
        assert SUCCESS in opcheck(*arguments, kernels=[name]).values()
