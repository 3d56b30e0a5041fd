"""The backend ``queued``: cpu's kernels, bound to queues of the fake driver and launched by hand, and what a session needs."""

from __future__ import annotations

import random
import threading
from types import SimpleNamespace
from typing import Any

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import (
    FRESH,
    HOST_MEMORY,
    PLANNED,
    ArgInfo,
    Bound,
    BuildContext,
    Builder,
    KernelDef,
    OutInfo,
    dtypes,
    inplace,
    view,
)
from graphdock.contracts.streams import RandomStream
from graphdock.errors import InternalError, InvalidArgumentError, KernelNotFoundError
from graphdock.plugin.host import Host
from graphdock_testing import queued
from graphdock_testing.driver import races

F, I = dtypes.float32, dtypes.int32


class Bench:
    """A host with the backend in it, two queues of its device, and kernels bound by hand."""

    def __init__(self, **options: Any) -> None:
        self.host = Host()
        self.device = queued.install(self.host, **options)
        self.q, self.r = self.device.new_queue(), self.device.new_queue()
        self.kept: list[Any] = []
        self.memory = self.device.staging(1 << 12)
        self.device.faults.reset()

    def buffer(self, value: Any, dtype: Any = F) -> Any:
        array = np.asarray(value, dtype.np)
        made = self.device.empty(dtype, array.shape)
        made.array[...] = array
        self.kept.append(made)
        return made

    def kernel(
        self,
        op: str,
        inputs: Any,
        outputs: Any,
        *,
        queue: Any = None,
        mode: Any = PLANNED,
        attrs: Any = None,
        host: Any = (),
        variable: Any = (),
        definition: KernelDef | None = None,
    ) -> Bound:
        """The kernel of a node of that op, whose inputs and outputs are (dtype, shape); ``host`` are those in host memory."""
        opdef = self.host.ops.get(op)
        b = Builder()
        values = [b.input(f"i{n}", dtype, shape) for n, (dtype, shape) in enumerate(inputs)]
        known = {a.name: a.default for a in opdef.attrs}
        known.update({t.name: next((d for d, _ in inputs), F) for t in opdef.types})
        b.node(opdef, "scope/node", values, {**known, **(attrs or {})}, outputs)
        node = b.graph.nodes[-1]
        node.site_of = SimpleNamespace(site="train.py:7")
        space = self.device.memory_space
        infos = tuple(
            ArgInfo(a.name, v.dtype, v.shape, HOST_MEMORY if a.name in host else space, variable=a.name in variable)
            for a, v in zip(
                [opdef.inputs[min(n, len(opdef.inputs) - 1)] for n in range(len(values))], values, strict=True
            )
        )
        outs = tuple(
            OutInfo(a.name, v.dtype, v.shape, HOST_MEMORY if a.name in host else space, mode)
            for a, v in zip(opdef.outputs, node.outputs, strict=True)
        )
        found = definition or next(r.kernel for r in self.host.kernels.for_op(op) if r.plugin == "queued")
        queue = queue or self.q
        self.device.activate(queue)
        return found.build(BuildContext(node, infos, outs, self.device, queue))


@pytest.fixture
def bench():
    made = Bench(laziness=1.0)
    yield made
    made.host.close()


PAIR = [(F, (3,)), (F, (3,))]


# -- the plugin


def test_a_host_has_a_driver_of_its_own_and_installing_twice_changes_nothing():
    hosts = [Host(), Host()]
    devices = [queued.install(h, seed=3) for h in hosts]
    assert devices[0].driver is not devices[1].driver
    assert queued.install(hosts[0]) is devices[0]
    for host in hosts:
        host.close()


def test_options_reach_the_devices():
    host = Host()
    device = queued.install(host, stream_slots=3, memory=1 << 20, laziness=0.5)
    assert (device.stream_slots, device.info.memory_bytes, device.driver.scheduler.laziness) == (3, 1 << 20, 0.5)
    second = host.open_device("/device:queued:1")
    assert second.driver is device.driver
    assert second.memory_space == "queued:1"
    host.close()


def test_devices_may_share_their_memory():
    host = Host()
    device = queued.install(host, shared=True)
    second = host.open_device("/device:queued:1")
    assert second.memory is device.memory
    host.close()


def test_the_module_is_a_plugin_too():
    host = Host()
    host.register("queued", queued)
    assert host.open_device("/device:queued:0").launches == 0
    host.close()


def test_every_cpu_kernel_is_there_but_those_of_strings(bench):
    cpu = {r.kernel.op for r in bench.host.kernels.all() if r.plugin == "cpu" and r.kernel.device == "cpu"}
    ours = {r.kernel.op: r.kernel for r in bench.host.kernels.all() if r.plugin == "queued"}
    assert len(ours) > 0.95 * len(cpu)
    assert ours["Equal"].types["T"] and "string" not in ours["Equal"].types["T"]


def test_strings_have_no_kernel_here(bench):
    with tf.Graph().as_default() as graph:
        y = tf.equal(tf.placeholder(tf.string, [2]), [b"a", b"b"])
        config = tf.SessionConfig(backends=("queued",), fallback="forbid")
        with tf.Session(graph=graph, config=config, host=bench.host) as session, pytest.raises(KernelNotFoundError):
            session.run(y, {graph.get_operations()[0].outputs[0]: [b"a", b"a"]})


# -- launches


def test_a_launch_is_late_and_reads_host_arguments_now(bench):
    x, y = bench.buffer([1, 2, 3]), bench.buffer([0, 0, 0])
    gather = bench.kernel("Gather", [(F, (3,)), (I, (3,)), (I, ())], [(F, (3,))], host=("axis",), attrs={"Tindices": I})
    indices, axis = bench.buffer([2, 1, 0], I), np.array(0, np.int32)
    gather.compute(x, indices, axis, y)
    axis[...] = 7
    assert (y.array.tolist(), bench.device.launches, bench.q.pending) == ([0, 0, 0], 1, 1)
    bench.q.synchronize()
    assert y.array.tolist() == [3, 2, 1]


def test_a_random_stream_is_read_at_launch(bench):
    draw = bench.kernel("RandomUniform", [(I, (1,))], [(F, (4,))], host=("shape",), attrs={"T": I, "dtype": F})
    results = []
    for later in (0, 5):
        stream, out = RandomStream((1, 2)), bench.buffer(np.zeros(4))
        draw.compute(np.array([4], np.int32), stream, out)
        stream.begin(later)
        bench.q.synchronize()
        results.append(out.array.tolist())
    assert results[0] == results[1]


def test_fresh_outputs_of_known_shape_follow_the_queue(bench):
    add = bench.kernel("Add", PAIR, [(F, (3,))], mode=FRESH)
    assert not add.capture_safe
    x = bench.buffer([1, 2, 3])
    waits = bench.device.waits
    z = add.compute(x, x)
    block = z.storage.block
    assert (z.shape, bench.device.waits) == ((3,), waits)
    bench.q.synchronize()
    assert z.array.tolist() == [2, 4, 6]
    del z
    assert add.compute(x, x).storage.block is block


def test_a_shape_that_depends_on_values_waits_for_the_queue_only(bench):
    where = bench.kernel("Where", [(dtypes.bool_, (3,))], [(dtypes.int64, (None, 1))], mode=FRESH)
    assert not where.capture_safe
    flags = bench.buffer([True, False, True], dtypes.bool_)
    y = bench.buffer([0, 0, 0])
    bench.kernel("Add", PAIR, [(F, (3,))], queue=bench.r).compute(y, y, y)
    bench.device.activate(bench.q)
    waits = bench.device.waits
    found = where.compute(flags)
    assert (found.shape, bench.device.waits - waits, bench.r.pending) == ((2, 1), 1, 1)
    bench.q.synchronize()
    assert found.array.tolist() == [[0], [2]]


def test_outputs_in_host_memory_are_there_at_once(bench):
    listed = bench.kernel("Shape", [(F, (3,))], [(I, (1,))], host=("output",), attrs={"out_type": I}, mode=FRESH)
    assert not listed.capture_safe
    assert np.asarray(listed.compute(bench.buffer([1, 2, 3]))).tolist() == [3]


def test_a_view_is_no_work_and_shares_its_storage(bench):
    x = bench.buffer(np.arange(6).reshape(2, 3))
    turn = bench.kernel(
        "Transpose", [(F, (2, 3)), (I, (2,))], [(F, (3, 2))], mode=view(0), host=("perm",), attrs={"Tperm": I}
    )
    pending = bench.q.pending
    made = turn.compute(x, np.array([1, 0], np.int32))
    assert (made.shape, made.storage, bench.q.pending) == ((3, 2), x.storage, pending)
    add = bench.kernel("Add", [(F, (3, 2)), (F, (3, 2))], [(F, (3, 2))])
    out = bench.buffer(np.zeros((3, 2)))
    with races.watch(bench.device) as report:
        add.compute(made, made, out)
        bench.device.activate(bench.r)
        bench.r.copy(bench.buffer(np.ones((2, 3))), x)
    assert [(r.first.what, r.first.write, r.second.what) for r in report.races] == [("scope/node", False, "copy")]


def test_in_place_and_variables_are_read_and_written(bench):
    x = bench.buffer([1, 2, 3])
    one = bench.buffer([1, 1, 1])
    double = bench.kernel("Add", PAIR, [(F, (3,))], mode=inplace(0))
    double.compute(x, x, x)
    update = bench.kernel(
        "AssignAddVariableOp", [(F, (3,)), (F, (3,))], [], variable=("resource",), attrs={"dtype": F}, host=()
    )
    assert update.args is not None
    call = [(x, one)[a.index] for a in update.args]
    with races.watch(bench.device) as report:
        update.compute(*call)
        bench.device.activate(bench.r)
        bench.r.copy(x, one)
    bench.device.synchronize()
    assert {(r.first.what, r.first.write) for r in report.races} == {("scope/node", True), ("scope/node", False)}
    assert one.array.tolist() == [3, 5, 7]


def planted(compute, **more):
    return KernelDef("Add", "cpu", lambda ctx: compute, **more)


def test_a_kernel_that_writes_an_input_is_named(bench):
    def bad(x, y, out):
        x += 1

    kernel = queued.wrap(planted(bad), bench.host.ops.get("Add"))
    x, y = bench.buffer([1, 2, 3]), bench.buffer([0, 0, 0])
    bench.kernel("Add", PAIR, [(F, (3,))], definition=kernel).compute(x, x, y)
    with pytest.raises(InternalError, match="kernel of Add failed: ValueError: .*read-only") as caught:
        bench.q.synchronize()
    assert (caught.value.op, caught.value.site) == ("scope/node", "train.py:7")
    assert x.array.tolist() == [1, 2, 3]


def test_a_kernel_that_returns_no_view_is_named(bench):
    kernel = queued.wrap(planted(lambda x, y: x + 1), bench.host.ops.get("Add"))
    with pytest.raises(InternalError, match="returned no view"):
        x = bench.buffer([1, 2, 3])
        bench.kernel("Add", PAIR, [(F, (3,))], definition=kernel, mode=view(0)).compute(x, x)


@pytest.mark.parametrize("mode", [PLANNED, FRESH])
def test_graphdock_s_own_errors_get_their_node(bench, mode):
    def bad(*args):
        raise InvalidArgumentError("not like this")

    kernel = queued.wrap(planted(bad), bench.host.ops.get("Add"))
    x, y = bench.buffer([1, 2, 3]), bench.buffer([0, 0, 0])
    made = bench.kernel("Add", PAIR, [(F, (3,))], definition=kernel, mode=mode)
    made.compute(x, x, *([y] if mode is PLANNED else []))
    with pytest.raises(InvalidArgumentError, match="not like this") as caught:
        bench.q.synchronize()
    assert (caught.value.op, caught.value.site) == ("scope/node", "train.py:7")


def test_a_failing_launch_names_its_node(bench):
    x = bench.buffer([1, 2, 3])
    bench.device.faults.reset()
    bench.device.faults.at(1, "fail", kind="launch")
    bench.kernel("Add", PAIR, [(F, (3,))]).compute(x, x, x)
    with pytest.raises(InternalError, match="DriverError: scope/node failed when it ran") as caught:
        bench.q.synchronize()
    assert caught.value.op == "scope/node"


def test_captured_kernels_replay(bench):
    x = bench.buffer([1, 2, 3])
    add = bench.kernel("Add", PAIR, [(F, (3,))], mode=inplace(0))
    assert add.capture_safe
    replay = bench.q.capture(lambda: add.compute(x, x, x))
    for _ in range(3):
        replay()
    bench.q.synchronize()
    assert x.array.tolist() == [8, 16, 24]


# -- programs over two queues


class Steps:
    """A random program: each step adds two values into a third, on some queue, and waits for what it conflicts with."""

    def __init__(self, seed: int, values: int = 5, length: int = 25) -> None:
        chance = random.Random(seed)
        self.values = values
        self.steps = [(chance.randrange(2), *(chance.randrange(values) for _ in range(3))) for _ in range(length)]

    def expected(self) -> list[list[float]]:
        state = [np.full(3, float(n), np.float32) for n in range(self.values)]
        for _, a, b, c in self.steps:
            state[c] = (state[a] + state[b]) % np.float32(97)
        return [s.tolist() for s in state]

    def run(self, bench: Bench, queues: Any, leave_out: int | None = None) -> tuple[list[list[float]], int]:
        """The values in the end, and how many waits there were; wait ``leave_out`` is not made."""
        buffers = [bench.buffer(np.full(3, float(n))) for n in range(self.values)]
        shape = [(F, (3,)), (F, (3,))]
        adds = [bench.kernel("Add", shape, [(F, (3,))], queue=q).compute for q in queues]
        wraps = [bench.kernel("FloorMod", shape, [(F, (3,))], queue=q).compute for q in queues]
        limit, last_write, last_reads, waits = bench.buffer([97, 97, 97]), {}, {}, 0
        for lane, a, b, c in self.steps:
            queue = queues[lane]
            needed = dict.fromkeys([*(last_write.get(value) for value in (a, b, c)), *last_reads.get(c, ())])
            for event in [e for e in needed if e is not None and e.queue is not queue]:
                if waits != leave_out:
                    queue.wait(event)
                waits += 1
            bench.device.activate(queue)
            adds[lane](buffers[a], buffers[b], buffers[c])
            wraps[lane](buffers[c], limit, buffers[c])
            done = queue.record()
            last_write[c], last_reads[c] = done, []
            for value in (a, b):
                if value != c:
                    last_reads.setdefault(value, []).append(done)
        for queue in queues:
            queue.synchronize()
        return [b.array.tolist() for b in buffers], waits


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.sampled(6)
def test_ordered_programs_are_right_under_every_interleaving_and_without_a_race(seed):
    program = Steps(seed)
    for interleaving in range(3):
        bench = Bench(seed=interleaving)
        with races.check(bench.device):
            values, _ = program.run(bench, (bench.q, bench.r))
        assert values == program.expected()
        bench.host.close()


def test_a_wait_left_out_is_found_wherever_it_is_needed():
    """A wait that another one implies may go; every other one is found, whatever the numbers say."""
    found = harmless = wrong_without_report = 0
    bench = Bench(seed=1)
    for seed in range(8):
        program = Steps(seed, length=10)
        _, waits = program.run(bench, (bench.q, bench.r))
        for left_out in range(waits):
            with races.watch(bench.device) as report:
                values, _ = program.run(bench, (bench.q, bench.r), left_out)
            found += bool(report.races)
            harmless += not report.races
            wrong_without_report += values != program.expected() and not report.races
    bench.host.close()
    assert found > 20
    assert wrong_without_report == 0


def test_threads_with_queues_of_their_own_do_not_disturb_one_another():
    bench = Bench(seed=4)
    programs = [Steps(seed) for seed in range(4)]
    queues = [(bench.device.new_queue(), bench.device.new_queue()) for _ in programs]
    results: dict[int, Any] = {}

    def work(number: int) -> None:
        results[number] = programs[number].run(bench, queues[number])[0]

    with races.check(bench.device):
        threads = [threading.Thread(target=work, args=(n,)) for n in range(len(programs))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert results == {n: p.expected() for n, p in enumerate(programs)}
    bench.host.close()


# -- a session, on the device's private queue


def test_a_session_computes_what_cpu_does():
    host = Host()
    device = queued.install(host, seed=2)
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [4, 3])
        w = tf.Variable(np.arange(6, dtype=np.float32).reshape(3, 2) / 6)
        loss = tf.reduce_sum(tf.square(tf.nn.relu(tf.matmul(x, w) - 0.5)))
        train = tf.train.GradientDescentOptimizer(0.01).minimize(loss)
        got = {}
        for backend in ("queued", "cpu"):
            config = tf.SessionConfig(backends=(backend,), fallback="forbid")
            with tf.Session(graph=graph, config=config, host=host) as session:
                session.run(tf.global_variables_initializer())
                feed = {x: np.linspace(-1, 1, 12).reshape(4, 3)}
                got[backend] = [session.run([loss, train], feed)[0] for _ in range(3)]
    assert device.launches
    np.testing.assert_allclose(got["queued"], got["cpu"], rtol=1e-6)
    host.close()
