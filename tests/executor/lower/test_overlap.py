"""Facts of lowering for steps in flight: what they touch, where they release their locks, and why some do not."""

from __future__ import annotations

from types import SimpleNamespace

import graphdock as tf
import numpy as np
import pytest
from graphdock.plugin.host import Host
from graphdock_executor.lower.overlap import touched, waits_for_its_work
from graphdock_executor.step_program.statements import Activate, Block, Statement
from graphdock_executor.storage import Root
from graphdock_testing import queued


@pytest.fixture
def host():
    host = Host()
    queued.install(host, seed=0)
    with tf.Graph(host=host).as_default():
        yield host
    host.close()


def lowered(host, fetches, most=2, **feeds):
    config = tf.SessionConfig(backends=("queued", "cpu"), steps_in_flight=most, device_count={"queued": 2})
    with tf.Session(config=config, host=host) as sess:
        plan = sess.plan(fetches)
        return plan.program, plan.program._builder._lowered


def touches(made):
    return {
        resource.name: {(None if d is None else d.info.index): writes for d, writes in devices.items()}
        for resource, devices in made.touches.items()
    }


def test_variables_are_touched_by_the_queues_of_their_devices(host):
    with tf.device("/device:queued:0"):
        v, u = tf.Variable(np.ones(3, np.float32), name="v"), tf.Variable(np.ones(3, np.float32), name="u")
    with tf.device("/device:queued:1"):
        w = tf.Variable(np.ones(3, np.float32), name="w")
        with tf.control_dependencies([w.assign_add(v + u)]):
            last = u.assign(w).op
    _, made = lowered(host, last)
    assert touches(made) == {"v": {0: False}, "u": {0: True}, "w": {1: True}}


def test_variables_in_host_memory_are_done_when_all_is_queued(host):
    with tf.device("/cpu:0"):
        v = tf.Variable(np.ones(3, np.float32), name="v")
    with tf.device("/device:queued:0"):
        w = tf.Variable(np.ones(3, np.float32), name="w")
    program, made = lowered(host, w.assign_add(v).op)
    assert touches(made) == {"w": {0: True}} and program.overlaps


class Place:
    """Of a resource: where it is."""

    def __init__(self, device):
        self.device = device


def test_a_kernel_elsewhere_reaches_a_variable_through_the_queue_that_owns_it(host):
    one, two = (host.open_device(f"/device:queued:{k}") for k in (0, 1))
    u = Place(one)
    root = Root("variable", one.memory_space, tf.float32, (), 0, 9)
    for device, found in ((one, one), (two, one), (None, None)):
        for accesses, writes in (({"reads": (root,)}, False), ({"reads": (root,), "writes": (root,)}, True)):
            made = touched(Block([Statement(device=device, **accesses)]), {root: u})
            assert list(made.values()) == [{found: writes}]
    assert list(touched(Block([Statement(device=two, touches=(root,))]), {root: u}).values()) == [{None: True}]


def test_a_step_that_fetches_releases_its_locks_before_its_last_fence(host):
    v = tf.Variable(np.ones(3, np.float32), name="v")
    program, _ = lowered(host, [v.assign_add([1.0, 1.0, 1.0]), v * 2.0])
    lines = program.source.splitlines()
    at = lines.index("    queued()")
    assert lines[-1].startswith("    return") and at == len(lines) - 3, program.source
    alone, _ = lowered(host, v.initializer)
    assert "queued()" not in alone.source, "it has no fence at its end"


def test_a_session_without_flights_has_the_text_that_it_had(host):
    v = tf.Variable(np.ones(3, np.float32), name="v")
    program, made = lowered(host, [v.assign_add([1.0, 1.0, 1.0])], most=1)
    assert "queued()" not in program.source and not program.overlaps
    assert not [note for note in program.notes if "in flight" in note]
    assert touches(made) == {"v": {0: True}}, "its steps come after those of other sessions"


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda x: tf.py_func(lambda a: a, [x], tf.float32), "calls Python"),
        (lambda x: tf.device("/cpu:0"), "no device with queues works in it"),
    ],
)
def test_why_a_step_is_not_in_flight(host, make, why):
    x = tf.placeholder(tf.float32, [2])
    made = make(x)
    if not isinstance(made, tf.Tensor):
        with made:
            made = tf.square(x)
    program, _ = lowered(host, made.op)
    (note,) = [note for note in program.notes if "in flight" in note]
    assert note.startswith("not in flight: ") and why in note and not program.overlaps


def test_a_step_that_uses_a_resource_of_a_plugin_waits_for_its_work():
    class Table:
        def __str__(self):
            return "counters 'hits'"

    given, out = SimpleNamespace(locked=True), SimpleNamespace(read={Table()}, written=set())
    state = SimpleNamespace(given=given, out=out)
    assert waits_for_its_work(state, {object()}) == "it uses counters 'hits'"
    out.read = set()
    assert waits_for_its_work(state, {object()}) == ""


@pytest.mark.parametrize(("rows", "most", "ahead"), [(128, 2, True), (127, 2, False), (128, 1, False)])
def test_large_feeds_go_ahead_of_what_the_step_waits_for(host, rows, most, ahead):
    """64 KiB and more, where steps may be in flight."""
    x = tf.placeholder(tf.float32, [rows, 128])
    with tf.device("/device:queued:0"):
        v = tf.Variable(np.zeros((rows, 128), np.float32))
        _, made = lowered(host, v.assign_add(tf.tanh(x)).op, most)
    statements = made.block.statements
    first = [type(s).__name__ for s in statements if not isinstance(s, Activate)][:3]
    assert made.ahead == ahead
    assert first == (["Fill", "Copy", "Call"] if ahead else ["Fill", "Segment"] + first[2:])


def test_a_feed_that_a_branch_alone_reads_is_copied_there(host):
    x = tf.placeholder(tf.float32, [128, 128])
    with tf.device("/device:queued:0"):
        y = tf.cond(tf.placeholder(tf.bool, []), lambda: tf.tanh(x), lambda: tf.zeros([128, 128]))
    _, made = lowered(host, y)
    assert not made.ahead
