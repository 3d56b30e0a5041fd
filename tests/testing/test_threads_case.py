"""Two steps of a kernel at once: what they share is found in every run, and what they lock is right."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from graphdock.contracts import KernelDef, hookimpl
from graphdock.plugin.host import Host
from graphdock_testing.conformance import Conformance, ConformanceError
from graphdock_testing.threads_case import Turns

pytestmark = pytest.mark.plain


def check(body):
    host = Host()
    hook = hookimpl(specname="register_kernels")(lambda: [KernelDef("Square", "cpu", lambda ctx: body)])
    host.register("lab", type("Plugin", (), {"hook": staticmethod(hook)})())
    kit = Conformance("lab", host=host)
    (case,) = [c for c in kit.cases("Square") if c.kind == "threads"]
    kit.check(case)


def squares(scratch):
    def body(x, *out):
        made = scratch(x)
        np.square(x, made)
        return np.copyto(out[0], made) if out else made.copy()

    return body


def test_a_buffer_of_its_own_for_each_step():
    check(squares(np.empty_like))


def test_a_buffer_for_all_steps_is_found_every_time():
    for _ in range(2):
        kept = {}
        with pytest.raises(ConformanceError, match="other bits while another one runs"):
            check(squares(lambda x, kept=kept: kept.setdefault((x.shape, x.dtype), np.empty_like(x))))


def test_a_buffer_behind_a_lock(monkeypatch):
    monkeypatch.setattr("graphdock_testing.threads_case._PATIENCE", 0.05)
    kept, lock = {}, threading.Lock()
    inside = squares(lambda x: kept.setdefault((x.shape, x.dtype), np.empty_like(x)))

    def body(x, *out):
        with lock:
            return inside(x, *out)

    check(body)


def test_an_error_of_a_step_beside_another_is_told():
    running = []

    def body(x, *out):
        running.append(x)
        np.square(x, *out)
        if len(running) > 1:
            raise ValueError("only one at a time")
        running.pop()
        return out[0] if out else x * x

    with pytest.raises(ConformanceError, match=r"fails while another one runs: .*only one at a time"):
        check(body)


def test_turns_end_where_one_thread_ends():
    turns = Turns()
    turns.end()
    turns.take(0, True)
    assert turns.taken == 0
