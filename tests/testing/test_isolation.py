"""Conformance cases in a process of their own: what it answers, and what is said of one that dies, hangs or never starts."""

from __future__ import annotations

import pytest
from graphdock_testing.conformance import Conformance
from graphdock_testing.isolation import Worker

PLUGIN = """
import os, signal, time
import numpy as np
from graphdock.contracts import KernelDef, hookimpl

def square(ctx):
    name = ctx.inputs[0].dtype.name
    if name == "int32":
        os.kill(os.getpid(), signal.SIGSEGV)
    if name == "int64":
        os._exit(3)
    if name == "float64":
        time.sleep(1000)
    wrong = 1 if name == "int16" else 0
    return lambda x, *out: np.add(np.multiply(x, x), x.dtype.type(wrong), *out)

@hookimpl
def register_kernels(): return [KernelDef("Square", "cpu", square)]
"""


@pytest.fixture(scope="module")
def cases():
    return {case.dtype: case for case in Conformance("cpu").cases("Square") if case.kind == "value" and case.index == 0}


@pytest.fixture
def worker(site):
    """Makes a worker for a plugin of this code."""
    made = []

    def make(code=PLUGIN, **options):
        site.plugin("mischief", code)
        made.append(Worker("mischief", **options))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.mark.slow
def test_a_case_after_a_crash_runs_in_a_new_process(worker, cases):
    mine = worker()
    assert mine.check(cases["float32"]).kind == "ok"
    died = mine.check(cases["int32"])
    assert died.kind == "failed"
    assert died.text == "Square[int32-0]: the process died of SIGSEGV while it ran this case"
    ended = mine.check(cases["int64"])
    assert ended.text == "Square[int64-0]: the process ended with status 3 while it ran this case"
    wrong = mine.check(cases["int16"])
    assert wrong.kind == "failed" and "planned, step 1" in wrong.text
    assert mine.check(cases["float32"]).kind == "ok"
    assert mine.lines() == []


@pytest.mark.slow
def test_a_case_that_does_not_end_is_ended(worker, cases):
    mine = worker(timeout=5.0)
    late = mine.check(cases["float64"])
    assert late.kind == "failed" and late.text == "Square[float64-0]: it did not end in 5 s"
    assert mine.check(cases["int16"]).kind == "failed"  # of itself, in a new process


def test_a_backend_that_dies_as_it_loads_is_told_apart(worker, cases):
    code = "import os\nos._exit(4)\n"
    died = worker(code).check(cases["float32"])
    assert died.text == "Square[float32-0]: the process ended with status 4 while it loaded the backend"


@pytest.mark.slow
def test_a_missing_kernel_is_no_failure(worker):
    case = next(Conformance("cpu").cases("Sin"))
    assert worker().check(case).kind == "missing"
