"""Conditional nodes of the fake driver: bodies run by a word that a kernel set; what a real driver refuses is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from graphdock_cuda.driver.errors import CudaError
from graphdock_cuda.source import part
from graphdock_cuda.testing.state import Misuse

CODE = (
    part("condition.cuh")
    + "GD_KERNEL(add)(float* x, float by) { x[threadIdx.x] += by; }\n"
    + "GD_KERNEL(below)(const float* x, float most, bool* flag) { *flag = x[0] < most; }\n"
    + "GD_KERNEL(stop)() { __trap(); }"
)


class Recorder:
    """Records on the rig's stream. ``x``: 32 floats; ``flag``: a bool."""

    def __init__(self, rig: Any) -> None:
        self.rig, self.d = rig, rig.driver
        self.x, self.flag = rig.put(np.zeros(32, "f4")), rig.put(np.zeros(1, "?"))
        self.kernels = {name: rig.kernel(CODE, name) for name in ("add", "below", "set_condition", "stop")}

    def add(self, by: float) -> None:
        self.rig.launch(self.kernels["add"], self.x, by)

    def test(self, most: float) -> None:
        self.rig.launch(self.kernels["below"], self.x, most, self.flag, block=1)

    def condition(self) -> int:
        return self.d.condition(self.rig.s)

    def set(self, condition: int, other: int = 0) -> None:
        self.rig.launch(self.kernels["set_condition"], self.flag, condition, other, block=1)

    def body(self, condition: int, body: Any, repeats: bool = False) -> None:
        self.d.body_begin(self.rig.s, condition, repeats)
        body()
        self.d.body_end(self.rig.s)

    def record(self, body: Any) -> int:
        self.d.capture_begin(self.rig.s)
        body()
        graph = self.d.capture_end(self.rig.s)
        try:
            return self.d.instantiate(graph, self.rig.s)
        finally:
            self.d.graph_destroy(graph)

    def launched(self, executable: int) -> float:
        self.d.graph_launch(executable, self.rig.s)
        return float(self.rig.get(self.x, 1, "f4")[0])


@pytest.fixture
def r(rig: Any) -> Recorder:
    return Recorder(rig)


def test_one_of_two_bodies_runs(r: Recorder) -> None:
    def body() -> None:
        r.test(3.0)
        yes, no = r.condition(), r.condition()
        r.set(yes, no)
        r.body(yes, lambda: r.add(2.0))
        r.body(no, lambda: r.add(-10.0))
        r.add(0.5)

    executable = r.record(body)
    assert [r.launched(executable) for _ in range(4)] == [2.5, 5.0, -4.5, -2.0]
    r.d.verify()
    r.d.graph_exec_destroy(executable)


def test_a_body_repeats_and_holds_another(r: Recorder) -> None:
    def iteration(outer: int) -> None:
        r.add(1.0)
        r.test(3.0)
        inner = r.condition()
        r.set(inner)
        r.body(inner, lambda: r.add(1.0))
        r.test(6.0)
        r.set(outer)

    def body() -> None:
        r.test(6.0)
        outer = r.condition()
        r.set(outer)
        r.body(outer, lambda: iteration(outer), repeats=True)

    executable = r.record(body)
    assert r.launched(executable) == 6.0 and r.launched(executable) == 6.0
    assert "while of 6 nodes" in [what for _, what in r.d.graph(executable).lines]


def test_a_condition_that_no_kernel_has_set(r: Recorder) -> None:
    executable = r.record(lambda: r.body(r.condition(), lambda: r.add(1.0)))
    with pytest.raises(Misuse, match="no kernel has set its condition"):
        r.launched(executable)


def test_conditions_are_of_one_graph_and_steer_one_node(r: Recorder) -> None:
    def twice() -> None:
        found = r.condition()
        r.set(found)
        r.body(found, lambda: None)
        r.body(found, lambda: None)

    def of_the_graph_around() -> None:
        found, other = r.condition(), r.condition()
        r.body(found, lambda: r.body(other, lambda: None))

    for body in (twice, of_the_graph_around):
        with pytest.raises(Misuse, match="not of this graph, or steers a node already"):
            r.record(body)
        with pytest.raises(CudaError, match="invalidated|within the body"):
            r.d.capture_end(r.rig.s)
        assert not r.d.capturing(r.rig.s)
    with pytest.raises(Misuse, match="steers no node"):
        r.record(r.condition)


def test_what_a_body_may_not_hold(r: Recorder) -> None:
    """Memory that comes or goes, what waits, and events of other recordings; a second recording within it."""
    event = r.d.event()
    r.d.event_record(event, r.rig.s)
    calls = [
        lambda: r.d.malloc(64, r.rig.s),
        lambda: r.d.stream_synchronize(r.rig.s),
        lambda: r.d.stream_wait(r.rig.s, event),
        lambda: r.d.capture_begin(r.rig.s),
    ]
    for call in calls:
        r.d.capture_begin(r.rig.s)
        r.d.body_begin(r.rig.s, r.condition(), False)
        with pytest.raises(CudaError):
            call()
        with pytest.raises(CudaError, match="within the body"):
            r.d.capture_end(r.rig.s)
    assert not r.d.live["graph"] and not r.d._captures


def test_a_stream_that_takes_part_must_be_joined(r: Recorder) -> None:
    other, fork = r.d.stream(), r.d.event()
    r.d.capture_begin(r.rig.s)
    r.d.body_begin(r.rig.s, r.condition(), False)
    r.d.event_record(fork, r.rig.s)
    r.d.stream_wait(other, fork)
    r.rig.launch(r.kernels["add"], r.x, 1.0, stream=other)
    with pytest.raises(CudaError, match="904"):
        r.d.body_end(r.rig.s)
    with pytest.raises(CudaError):
        r.d.capture_end(r.rig.s)
    assert not r.d.capturing(other)


def test_outside_of_recordings_there_is_no_condition(r: Recorder) -> None:
    for call in (r.condition, lambda: r.d.body_begin(r.rig.s, 1, False), lambda: r.d.body_end(r.rig.s)):
        with pytest.raises(Misuse, match="is not captured"):
            call()
    r.d.capture_begin(r.rig.s)
    with pytest.raises(Misuse, match="records no body"):
        r.d.body_end(r.rig.s)


def test_a_graph_with_conditions_has_one_executable(r: Recorder) -> None:
    r.d.capture_begin(r.rig.s)
    found = r.condition()
    r.set(found)
    r.body(found, lambda: r.add(1.0))
    graph = r.d.capture_end(r.rig.s)
    first = r.d.instantiate(graph, r.rig.s)
    with pytest.raises(Misuse, match="one executable at a time"):
        r.d.instantiate(graph, r.rig.s)
    r.d.graph_exec_destroy(first)
    r.d.instantiate(graph, r.rig.s)


def test_a_kernel_that_fails_ends_a_loop(r: Recorder) -> None:
    """A lost device runs nothing more; the loop ends though nothing clears its condition."""

    def body() -> None:
        r.test(1.0)
        found = r.condition()
        r.set(found)
        r.body(found, lambda: r.rig.launch(r.kernels["stop"]), repeats=True)

    executable = r.record(body)
    with pytest.raises(CudaError, match="719|715"):
        r.launched(executable)


def test_the_race_checker_sees_into_bodies(r: Recorder) -> None:
    other, block = r.d.stream(), r.x
    executable = r.record(
        lambda: [r.test(9.0), r.set(found := r.condition()), r.body(found, lambda: r.d.fill(block, 0, 128, r.rig.s))]
    )
    r.d.graph_launch(executable, r.rig.s)
    r.d.fill(block, 0, 128, other)
    r.d.stream_synchronize(other)
    with pytest.raises(Exception, match="if of 1 nodes|fill"):
        r.d.verify()
