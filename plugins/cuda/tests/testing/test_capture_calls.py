"""Recorded work of the fake driver, and what may not happen meanwhile."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from graphdock_cuda.driver.errors import CudaError
from graphdock_cuda.testing.state import Misuse
from graphdock_testing.driver.detector import RaceError

CODE = "GD_KERNEL(add)(float* x, float by) { x[threadIdx.x] += by; }\nGD_KERNEL(stop)() { __trap(); }"


def _recorded(rig, body):
    """An executable graph of what ``body`` queues."""
    rig.driver.capture_begin(rig.s)
    body()
    graph = rig.driver.capture_end(rig.s)
    executable = rig.driver.instantiate(graph, rig.s)
    rig.driver.graph_destroy(graph)
    return executable


def test_nothing_runs_before_the_launch_and_all_of_it_at_each(rig):
    d = rig.driver
    add, x = rig.kernel(CODE, "add"), rig.put(np.zeros(32, "f4"))
    executable = _recorded(rig, lambda: [rig.launch(add, x, 1.0), rig.launch(add, x, 0.5)])
    assert (rig.get(x, 32, "f4") == 0).all()
    for _ in range(3):
        d.graph_launch(executable, rig.s)
    assert (rig.get(x, 32, "f4") == 4.5).all()
    d.graph_exec_destroy(executable)
    with pytest.raises(Misuse, match="executable .* was destroyed"):
        d.graph_launch(executable, rig.s)


def test_copies_read_pinned_memory_at_each_launch(rig):
    d = rig.driver
    source, given = rig.pinned(4, "f4")
    x = d.malloc(16, rig.s)
    executable = _recorded(rig, lambda: d.copy(x, source, 16, rig.s))
    for value in (1, 2):
        given[:] = value
        d.graph_launch(executable, rig.s)
        assert rig.get(x, 4, "f4").tolist() == [value] * 4


def test_a_branch_on_another_stream(rigs):
    """Forked by an event and joined by another; recorded, run in either order, and not captured any more afterwards."""
    for seed in range(6):
        rig = rigs(seed=seed)
        d = rig.driver
        add, x, y = rig.kernel(CODE, "add"), rig.put(np.zeros(32, "f4")), rig.put(np.zeros(32, "f4"))
        other, fork, join = d.stream(), d.event(), d.event()

        def body(rig=rig, add=add, x=x, y=y, other=other, fork=fork, join=join):
            d = rig.driver
            d.event_record(fork, rig.s)
            d.stream_wait(other, fork)
            assert d.capturing(other)
            rig.launch(add, x, 1.0)
            rig.launch(add, y, 2.0, stream=other)
            d.event_record(join, other)
            d.stream_wait(rig.s, join)
            d.copy(x, y, 128, rig.s)

        executable = _recorded(rig, body)
        assert not d.capturing(other)
        assert not d.capturing(rig.s)
        d.graph_launch(executable, rig.s)
        assert (rig.get(x, 32, "f4") == 2).all()
        d.verify()


def test_branches_that_nothing_orders_race(rig):
    d = rig.driver
    x, host, other, fork, join = d.malloc(4, rig.s), d.host_alloc(4), d.stream(), d.event(), d.event()

    def body():
        d.event_record(fork, rig.s)
        d.stream_wait(other, fork)
        d.fill(x, 1, 4, rig.s)
        d.copy(host, x, 4, other)
        d.event_record(join, other)
        d.stream_wait(rig.s, join)

    d.graph_launch(_recorded(rig, body), rig.s)
    with pytest.raises(RaceError, match="copy d2h of 4 bytes .*fill of 4 bytes"):
        d.verify()


#: Call -> status of the call while this thread records.
FORBIDDEN = {
    "stream_synchronize": (lambda rig, it: rig.driver.stream_synchronize(rig.s), 900),
    "stream_synchronize of another": (lambda rig, it: rig.driver.stream_synchronize(it.other), 900),
    "device_synchronize": (lambda rig, it: rig.driver.device_synchronize(), 900),
    "event_query": (lambda rig, it: rig.driver.event_query(it.outside), 900),
    "event_synchronize": (lambda rig, it: rig.driver.event_synchronize(it.outside), 900),
    "event_query of a captured event": (lambda rig, it: rig.driver.event_query(it.inside), 907),
    "event_synchronize of a captured event": (lambda rig, it: rig.driver.event_synchronize(it.inside), 907),
    "malloc": (lambda rig, it: rig.driver.malloc(8, rig.s), 900),
    "free": (lambda rig, it: rig.driver.free(it.memory, rig.s), 900),
    "host_alloc": (lambda rig, it: rig.driver.host_alloc(8), 900),
    "host_free": (lambda rig, it: rig.driver.host_free(it.host), 900),
    "load": (lambda rig, it: rig.driver.load(rig.build(CODE)), 900),
    "unload": (lambda rig, it: rig.driver.unload(it.module), 900),
    "instantiate": (lambda rig, it: rig.driver.instantiate(it.graph, rig.s), 900),
    "graph_launch": (lambda rig, it: rig.driver.graph_launch(it.executable, rig.s), 900),
    "wait for an event from outside": (lambda rig, it: rig.driver.stream_wait(rig.s, it.outside), 905),
}


class _Things:
    def __init__(self, rig):
        d = rig.driver
        self.other, self.outside, self.inside = d.stream(), d.event(), d.event()
        self.memory, self.host, self.module = d.malloc(8, rig.s), d.host_alloc(8), d.load(rig.build(CODE))
        d.event_record(self.outside, self.other)
        d.capture_begin(rig.s)
        d.fill(self.memory, 0, 8, rig.s)
        self.graph = d.capture_end(rig.s)
        self.executable = d.instantiate(self.graph, rig.s)


@pytest.mark.parametrize("what", FORBIDDEN)
def test_what_a_thread_that_records_may_not_do(rig, what):
    """The call fails, the recording is of no more use, and the stream leaves it in any case."""
    call, status = FORBIDDEN[what]
    d, it = rig.driver, _Things(rig)
    before = d.live
    d.capture_begin(rig.s)
    d.event_record(it.inside, rig.s)
    with pytest.raises(CudaError) as caught:
        call(rig, it)
    assert caught.value.status == status
    with pytest.raises(CudaError, match="capture invalidated"):
        d.fill(it.memory, 0, 8, rig.s)
    with pytest.raises(CudaError, match="capture invalidated") as caught:
        d.capture_end(rig.s)
    assert caught.value.status == 901
    assert not d.capturing(rig.s)
    d.stream_synchronize(rig.s)
    assert d.live == before


def test_another_thread_may_do_what_this_one_may_not(rig):
    """The mode is thread-local."""
    d, it = rig.driver, _Things(rig)
    d.capture_begin(rig.s)
    failures = []

    def elsewhere():
        try:
            d.host_alloc(8)
            d.stream_synchronize(it.other)
            d.event_query(it.outside)
            d.fill(it.memory, 0, 8, it.other)
        except CudaError as error:
            failures.append(error)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert not failures
    d.graph_destroy(d.capture_end(rig.s))


def test_a_recording_ends_where_it_began(rig):
    d, it = rig.driver, _Things(rig)
    with pytest.raises(Misuse, match="is not captured"):
        d.capture_end(rig.s)
    d.capture_begin(rig.s)
    with pytest.raises(Misuse, match="captured already"):
        d.capture_begin(rig.s)
    d.event_record(it.inside, rig.s)
    d.stream_wait(it.other, it.inside)
    with pytest.raises(CudaError) as caught:
        d.capture_end(it.other)
    assert caught.value.status == 903
    with pytest.raises(CudaError) as caught:
        d.capture_end(rig.s)
    assert caught.value.status == 901
    assert not d.capturing(it.other)
    with pytest.raises(Misuse, match="the default stream"):
        d.capture_begin(0)


def test_a_recording_ends_on_its_thread(rig):
    d = rig.driver
    d.capture_begin(rig.s)
    statuses = []

    def elsewhere():
        try:
            d.capture_end(rig.s)
        except CudaError as error:
            statuses.append(error.status)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert statuses == [908]
    with pytest.raises(CudaError, match="capture invalidated"):
        d.capture_end(rig.s)


def test_a_branch_that_is_not_joined(rig):
    d, it = rig.driver, _Things(rig)
    d.capture_begin(rig.s)
    d.event_record(it.inside, rig.s)
    d.stream_wait(it.other, it.inside)
    d.fill(it.memory, 0, 8, it.other)
    with pytest.raises(CudaError, match="before cuda:0/stream:1 was joined") as caught:
        d.capture_end(rig.s)
    assert caught.value.status == 904
    assert not d.capturing(it.other)


def test_two_recordings_do_not_become_one(rig):
    d, it = rig.driver, _Things(rig)
    d.capture_begin(rig.s)
    d.capture_begin(it.other)
    d.event_record(it.inside, rig.s)
    with pytest.raises(CudaError) as caught:
        d.stream_wait(it.other, it.inside)
    assert caught.value.status == 902
    for stream in (rig.s, it.other):
        with pytest.raises(CudaError, match="capture invalidated"):
            d.capture_end(stream)


def test_an_event_of_a_recording_means_nothing_afterwards(rig):
    d, it = rig.driver, _Things(rig)
    d.capture_begin(rig.s)
    d.event_record(it.inside, rig.s)
    d.graph_destroy(d.capture_end(rig.s))
    with pytest.raises(Misuse, match="which has ended"):
        d.stream_wait(it.other, it.inside)
    with pytest.raises(CudaError, match="907"):
        d.event_query(it.inside)
    d.event_record(it.inside, rig.s)
    d.event_synchronize(it.inside)


def test_a_graph_does_not_keep_its_memory_and_code(rig):
    d = rig.driver
    module = d.load(rig.build(CODE))
    add = d.function(module, "add")
    x, host = rig.put(np.zeros(32, "f4")), d.host_alloc(128)
    executable = _recorded(rig, lambda: [rig.launch(add, x, 1.0), d.copy(host, x, 128, rig.s)])
    d.unload(module)
    with pytest.raises(Misuse, match="module .* was destroyed"):
        d.graph_launch(executable, rig.s)
    d.misuses.clear()
    executable = _recorded(rig, lambda: d.fill(x, 0, 4, rig.s))
    d.free(x, rig.s)
    with pytest.raises(Misuse, match="the graph points at block 1 of cuda:0 .*which was freed"):
        d.graph_launch(executable, rig.s)


def test_memory_that_is_freed_while_a_launched_graph_waits(rig):
    """On another stream, without an event: the race checker says it; the driver would not."""
    d = rig.driver
    other = d.stream()
    x = d.malloc(4, rig.s)
    executable = _recorded(rig, lambda: d.fill(x, 0, 4, rig.s))
    d.stream_synchronize(rig.s)
    d.graph_launch(executable, other)
    d.free(x, rig.s)
    with pytest.raises(RaceError, match="free"):
        d.verify()


def test_a_kernel_of_a_graph_fails_as_any_other(rig):
    stop = rig.kernel(CODE, "stop")
    executable = _recorded(rig, lambda: rig.launch(stop))
    rig.driver.graph_launch(executable, rig.s)
    with pytest.raises(CudaError, match="stop: trap") as caught:
        rig.driver.stream_synchronize(rig.s)
    assert caught.value.status == 719


def test_a_refused_call_within_a_recording_leaves_it_as_it_was(rig):
    """A fault that is no rule of recordings."""
    d = rig.driver
    x = d.malloc(4, rig.s)
    d.capture_begin(rig.s)
    d.faults.reset()
    d.faults.at(1, 1)
    with pytest.raises(CudaError):
        d.fill(x, 0, 4, rig.s)
    d.graph_destroy(d.capture_end(rig.s))


def test_a_destroyed_stream_breaks_its_recording(rig):
    d, it = rig.driver, _Things(rig)
    d.capture_begin(rig.s)
    d.event_record(it.inside, rig.s)
    d.stream_wait(it.other, it.inside)
    d.stream_destroy(it.other)
    with pytest.raises(CudaError, match="a stream that it records was destroyed"):
        d.capture_end(rig.s)
