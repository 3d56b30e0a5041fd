"""Programs of many steps that return nothing, for the laws of steps in flight.

Each function builds a graph and returns the calls of a session: (fetches, feed_dict), in order. What calls fetch is their result.
"""

from __future__ import annotations

import graphdock as tf
import numpy as np
from graphdock.plugin.host import Host
from graphdock_testing import queued
from graphdock_testing.driver import races

ONE, TWO = "/device:queued:0", "/device:queued:1"


def batches(count, *shapes):
    rng = np.random.default_rng(0)
    for _ in range(count):
        yield [rng.normal(size=shape).astype("f") for shape in shapes]


def regression():
    """The seeds' training step."""
    x, y = tf.placeholder(tf.float32, [4, 3], name="x"), tf.placeholder(tf.float32, [4, 2], name="y")
    w = tf.Variable(np.zeros((3, 2), np.float32), name="w")
    b = tf.Variable(np.zeros(2, np.float32), name="b")
    loss = tf.reduce_mean(-tf.reduce_sum(tf.nn.softmax(y) * tf.log(tf.nn.softmax(tf.matmul(x, w) + b)), 1))
    train = tf.train.AdagradOptimizer(0.1).minimize(loss)
    feeds = [dict(zip((x, y), batch, strict=True)) for batch in batches(7, (4, 3), (4, 2))]
    start = [(tf.global_variables_initializer(), None)]
    return (
        start
        + [(train, f) for f in feeds[:4]]
        + [(loss, feeds[4])]
        + [(train, f) for f in feeds[4:]]
        + [([w, b], None)]
    )


def dropped_out():
    """Dropout draws in the step's order, and Adam writes eight variables."""
    x, y = tf.placeholder(tf.float32, [4, 3]), tf.placeholder(tf.float32, [4, 2])
    w = tf.Variable(np.linspace(-1, 1, 6, dtype=np.float32).reshape(3, 2))
    b = tf.Variable(tf.zeros([2]))
    h = tf.nn.dropout(tf.matmul(x, w) + b, keep_prob=0.5, seed=5)
    loss = tf.reduce_mean(tf.square(h - y))
    train = tf.train.AdamOptimizer(0.01).minimize(loss)
    calls = [(train, dict(zip((x, y), batch, strict=True))) for batch in batches(6, (4, 3), (4, 2))]
    return [(tf.global_variables_initializer(), None), *calls, ([w, b], None)]


def chained():
    """Steps of several plans, each of which reads what another one writes."""
    x = tf.placeholder(tf.float32, [5])
    a, b, c = (tf.Variable(np.full(5, k, np.float32)) for k in (1, 2, 3))
    steps = [a.assign(b * 0.5 + x).op, b.assign_add(a - c).op, c.assign(tf.tanh(a) + b).op, tf.group(a.assign_sub(x))]
    order = (0, 1, 2, 0, 3, 1, 1, 2, 3, 0, 2)
    calls = [(steps[k], {x: v}) for k, (v,) in zip(order, batches(len(order), (5,)), strict=True)]
    return [(tf.global_variables_initializer(), None), *calls[:6], ([a, b], None), *calls[6:], ([a, b, c], None)]


def read_by_many():
    """Several stream slots read what the next step writes."""
    v, sums = tf.Variable(np.ones(4, np.float32)), [tf.Variable(np.zeros(4, np.float32)) for _ in range(3)]
    reads = [s.assign_add(tf.exp(v) * (k + 1.0)).op for k, s in enumerate(sums)]
    write = v.assign(tf.reverse(v, [0]) * 0.5 + 0.25).op
    calls = [(op, None) for _ in range(3) for op in (*reads, write)]
    return [(tf.global_variables_initializer(), None), *calls, ([v, *sums], None)]


def on_two_devices():
    x = tf.placeholder(tf.float32, [3, 4])
    with tf.device(ONE):
        v = tf.Variable(np.ones((3, 4), np.float32))
    with tf.device(TWO):
        w = tf.Variable(np.ones((3, 4), np.float32))
        up = tf.assign_add(w, v * x)
    with tf.device(ONE):
        back = tf.assign_add(v, up)
        own = tf.assign_sub(v, x)
    with tf.device(TWO):
        other = tf.assign(w, tf.tanh(w))
    order = (back.op, own.op, other.op, back.op, other.op, own.op, back.op, back.op)
    calls = [(op, {x: batch}) for op, (batch,) in zip(order, batches(len(order), (3, 4)), strict=True)]
    return [(tf.global_variables_initializer(), None), *calls, ([v, w], None)]


def of_any_shape():
    """A variable whose storage changes while steps that read the old one are in flight."""
    x = tf.placeholder(tf.float32, [None, 2])
    u = tf.Variable(np.zeros((1, 2), np.float32), validate_shape=False)
    total = tf.Variable(np.float32(0))
    store = tf.assign(u, x * 2.0, validate_shape=False).op
    read = total.assign_add(tf.reduce_sum(u.read_value())).op
    calls = []
    for rows in (3, 3, 1, 5, 2, 2):
        calls += [(store, {x: np.arange(rows * 2, dtype=np.float32).reshape(rows, 2)}), (read, None), (read, None)]
    return [(tf.global_variables_initializer(), None), *calls, ([u, total], None)]


def controlled():
    """Branches and loops, in which the host waits in the middle of a step."""
    x = tf.placeholder(tf.float32, [3])
    v, n = tf.Variable(np.ones(3, np.float32)), tf.Variable(np.zeros(3, np.float32))
    either = tf.cond(tf.reduce_sum(x) > 0.0, lambda: v.assign_add(x), lambda: v.assign_sub(x))
    looped = tf.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, tf.sin(a) + v), [tf.constant(0), x])[1]
    steps = [either.op, n.assign(looped).op, tf.scatter_add(v, tf.constant([0, 2]), n[:2]).op]
    calls = [(steps[k % 3], {x: batch}) for k, (batch,) in enumerate(batches(9, (3,)))]
    return [(tf.global_variables_initializer(), None), *calls, ([v, n], None)]


def with_python():
    """Some steps call Python: they lock variables for single statements, and wait on the host for what is in flight."""
    x = tf.placeholder(tf.float32, [4])
    v = tf.Variable(np.zeros(4, np.float32))
    update = v.assign_add(tf.square(x)).op
    called = v.assign(tf.reshape(tf.py_func(lambda t: t * np.float32(0.5), [v.read_value()], tf.float32), [4])).op
    calls = [((called if k % 3 == 2 else update), {x: batch}) for k, (batch,) in enumerate(batches(9, (4,)))]
    return [(tf.global_variables_initializer(), None), *calls, (v, None)]


def elsewhere():
    """A kernel that only the host has updates variables of the device through copies, in statements or in one call."""
    x = tf.placeholder(tf.float32, [4])
    steps = []
    for validate in (True, False):
        v = tf.Variable(np.zeros(4, np.float32), validate_shape=validate)
        steps.append(v.assign_add(x, read_value=False))
        steps.append(v.assign_sub(tf.square(x), read_value=False))
    calls = [(steps[k % 4 if k % 3 else 0], {x: batch}) for k, (batch,) in enumerate(batches(14, (4,)))]
    return [(tf.global_variables_initializer(), None), *calls, (tf.global_variables(), None)]


#: Program -> ops of which the device has no kernel.
LACKING = {elsewhere: ("AssignSubVariableOp",)}


PROGRAMS = (
    regression, dropped_out, chained, read_by_many, on_two_devices, of_any_shape, controlled, with_python, elsewhere,
)  # fmt: skip


def lack(host, ops):
    """Take the device's kernels of these ops away."""
    mine = [r for r in host.kernels.all() if r.plugin == "queued"]
    if ops:
        host.kernels.discard("queued")
        for registered in mine:
            if registered.kernel.op not in ops:
                host.kernels.add(registered.kernel, registered.plugin, registered.package)


class Rig:
    """A program on devices of its own."""

    def __init__(self, program, seed=0, shared=False, stream_slots=2, **options):
        self.host = Host()
        self.device = queued.install(
            self.host, seed=seed, shared=shared is True, peers=shared == "peers", stream_slots=stream_slots, **options
        )
        lack(self.host, LACKING.get(program, ()))
        self.graph = tf.Graph(host=self.host)
        with self.graph.as_default():
            tf.set_random_seed(11)
            self.calls = program()

    def session(self, most=1, **fields):
        fields = {"backends": ("queued", "cpu"), "device_count": {"queued": 2}, **fields}
        config = tf.SessionConfig(steps_in_flight=most, **fields)
        return tf.Session(graph=self.graph, config=config, host=self.host)

    def results(self, sess, calls=None):
        """What the calls fetch."""
        found = []
        for fetches, feed in self.calls if calls is None else calls:
            given = {tensor: array.copy() for tensor, array in (feed or {}).items()}
            got = sess.run(fetches, given)
            for array in given.values():
                array.fill(99)  # the caller's again: nothing may still read it
            if got is not None:
                found += [np.asarray(a) for a in (got if isinstance(got, list) else [got])]
        return found

    def run(self, most=1, **fields):
        with races.watch(self.device) as report, self.session(most, **fields) as sess:
            return self.results(sess), report.races


def same(got, want):
    assert len(got) == len(want)
    for a, b in zip(got, want, strict=True):
        np.testing.assert_array_equal(a, b)
