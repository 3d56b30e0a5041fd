"""What a program may rely on whatever its devices are: results, errors with their node, variables where they can be updated."""

import threading

import graphdock as tf
import lab
import numpy as np
import pytest
from graphdock.contracts import ArgDef, AttrDef, DeviceInfo, KernelDef, OpDef, ResourceKind
from graphdock.plugin.host import Host
from graphdock_testing import fake, queued
from graphdock_testing.driver import races
from graphdock_testing.driver.queue import DriverQueue


@pytest.fixture
def host():
    host = Host()
    yield host
    host.close()


def faked(host, device=fake.FakeDevice, without=(), extra=(), count=1):
    """A session's keywords for a plugin with devices of this class, and the cpu's kernels but for some ops."""

    class Factory(fake.FakeFactory):
        def open(self, info, options):
            return device(info)

    def kernels(host):
        return [k for k in fake.register_kernels(host) if k.op not in without] + list(extra)

    name = lab.plug(host, register_devices=lambda: [Factory()], register_kernels=kernels)
    return {"config": tf.SessionConfig(backends=(name, "cpu"), device_count={"fake": count}), "host": host}


# -- wrong results


class Replaying(fake.FakeDevice):
    """Captures whole steps."""

    captures = 0

    def capture(self, body):
        type(self).captures += 1
        before = len(self._work)
        body()
        recorded = [self._work.pop() for _ in range(len(self._work) - before)][::-1]

        def replay():
            for work in recorded:
                self.enqueue(work)

        return replay


def test_a_captured_step_that_assigns_a_variable_of_unknown_shape_assigns_its_own_value(host):
    v = tf.Variable(np.zeros(2, np.float32), validate_shape=False)
    x = tf.placeholder(tf.float32, [2])
    longer = tf.placeholder(tf.float32, [3])
    short, long = (v.assign(f * 2.0, read_value=False) for f in (x, longer))
    with tf.Session(**faked(host, Replaying)) as sess:
        sess.run(v.initializer)
        for number in (1.0, 2.0):
            sess.run(short, {x: [number, number]})
            assert sess.run(v).tolist() == [number * 2] * 2
            sess.run(long, {longer: [number] * 3})
            assert sess.run(v).tolist() == [number * 2] * 3


class Shared(fake.FakeDevice):
    """All devices of this class share one memory, and each has a queue of its own."""

    made = ()

    def __init__(self, info):
        super().__init__(info)
        self.memory_space = "fake:pool"
        self.copies = 0
        Shared.made = (*Shared.made, self)

    def from_host(self, array, dst):
        self.copies += 1
        super().from_host(array, dst)

    def copy(self, src, dst):
        self.copies += 1
        super().copy(src, dst)


def stepped(x):
    return tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, tf.tanh(y * 2.0) + x), [tf.constant(0), x])[1]


def branched(x):
    return tf.cond(tf.reduce_sum(x) > 0.0, lambda: tf.tanh(x * 2.0), lambda: tf.constant([1.0, 2.0, 3.0, 4.0]))


def varied(x):
    v = tf.Variable([1.0, 2.0, 3.0, 4.0])
    with tf.control_dependencies([v.assign(x)]):
        before = v.read_value() * 2.0
    with tf.control_dependencies([before]):
        return before + v.assign_add(x)


SHARED = {"straight": lambda x: tf.tanh(x * 2.0), "loop": stepped, "cond": branched, "variable": varied}


def on_the_second(host, program, **session):
    x = tf.placeholder(tf.float32, [4])
    with tf.device(f"/device:{session.pop('kind')}:1"):
        y = SHARED[program](x)
    with tf.Session(host=host, **session) as sess:
        sess.run(tf.global_variables_initializer())
        return [sess.run(y, {x: [number] * 4}) for number in (1.0, -1.0, 2.0)]


def wanted(program):
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [4])
        y = SHARED[program](x)
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            return [sess.run(y, {x: [number] * 4}) for number in (1.0, -1.0, 2.0)]


@pytest.mark.plain
@pytest.mark.parametrize("program", SHARED)
def test_each_device_of_a_shared_memory_makes_its_own_copies(host, program):
    Shared.made = ()
    got = on_the_second(host, program, kind="fake", config=faked(host, Shared, count=2)["config"])
    np.testing.assert_allclose(got, wanted(program), rtol=1e-6)
    first, second = Shared.made
    assert first.copies == 0 and second.copies > 0


@pytest.mark.plain
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("program", SHARED)
@pytest.mark.sampled(2)
def test_each_device_with_queues_makes_its_own_copies(host, program, shared, monkeypatch):
    copying = set()

    def told(method):
        def call(queue, *args):
            copying.add(queue.device.info.index)
            return method(queue, *args)

        return call

    for name in ("copy", "from_host", "to_host"):
        monkeypatch.setattr(DriverQueue, name, told(getattr(DriverQueue, name)))
    device = queued.install(host, seed=5, shared=shared)
    config = tf.SessionConfig(backends=("queued", "cpu"), device_count={"queued": 2})
    with races.check(device):
        got = on_the_second(host, program, kind="queued", config=config)
    np.testing.assert_allclose(got, wanted(program), rtol=1e-6)
    assert copying == {1}


@pytest.mark.plain  # debug mode looks at what kernels wrote, by way of the host
@pytest.mark.parametrize("peers", [False, True])
def test_values_pass_between_peers_without_the_host(peers, monkeypatch):
    """A tensor, and a variable that a kernel of the other device updates: there and back."""
    host, by_host = Host(), []
    device = queued.install(host, seed=5, peers=peers)
    for name in ("from_host", "to_host"):
        method = getattr(DriverQueue, name)
        monkeypatch.setattr(DriverQueue, name, lambda *a, method=method: (by_host.append(1), method(*a))[1])
    with tf.Graph(host=host).as_default(), races.check(device):
        x = tf.placeholder(tf.float32, [4])
        with tf.device("/device:queued:0"):
            v = tf.Variable(np.ones(4, np.float32))
            a = tf.tanh(x)
        with tf.device("/device:queued:1"):
            y = tf.reduce_sum(a * v)
        config = tf.SessionConfig(backends=("queued", "cpu"), device_count={"queued": 2})
        with tf.Session(config=config, host=host) as sess:
            sess.run(v.initializer)
            by_host.clear()
            seen = []
            for _ in range(3):
                assert sess.run(y, {x: [1.0] * 4}) == pytest.approx(4 * np.tanh(1.0))
                seen.append(len(by_host))
            moves = [row.device for row in sess.explain(y, {x: [1.0] * 4}).rows if row.kernel == "transfer"]
    # of the first step, which nothing replays: a feed and a fetch, and there and back of what goes by way of the host
    assert seen[0] == (2 if peers else 6)
    assert ("queued:0 -> queued:1" in moves) == peers


def test_a_failing_asynchronous_step_fails_itself_and_no_other():
    host = Host()
    queued.install(host)
    with tf.Graph(host=host).as_default():
        assert_that_one_step_fails_alone(tf.SessionConfig(backends=("queued", "cpu")), host)
    host.close()


def assert_that_one_step_fails_alone(config, host):
    v = tf.Variable([1.0])
    index = tf.placeholder(tf.int32, [])
    update = v.assign_add([1.0], read_value=False)
    broken = tf.gather(v * 2.0, index).op
    with tf.Session(config=config, host=host) as sess:
        sess.run([v.initializer])
        outcomes = []
        for step, feeds in ((broken, {index: 7}), (update, None), (update, None), (broken, {index: 7}), (update, None)):
            try:
                sess.run(step, feeds)
                outcomes.append("done")
            except tf.errors.GraphdockError as error:
                outcomes.append(error.op.name)
        assert outcomes == [broken.name, "done", "done", broken.name, "done"]
        assert sess.run(v).tolist() == [4.0]


# -- updates where the variable lives

UPDATES = {
    "AssignAddVariableOp": lambda v: v.assign_add([1.0, 1.0], read_value=False),
    "ResourceScatterAdd": lambda v: tf.scatter_add(v, [0, 1], [1.0, 1.0]).op,
    "ResourceApplyAdam": lambda v: tf.train.AdamOptimizer(0.5).minimize(tf.reduce_sum(v)),
}


@pytest.mark.parametrize("op", UPDATES)
def test_an_update_without_a_kernel_on_the_variables_device_runs_by_policy(host, op, caplog):
    def run(**session):
        with tf.Graph().as_default() as graph:
            v = tf.Variable([1.0, 2.0])
            step = UPDATES[op](v)
            with tf.Session(graph=graph, **session) as sess:
                sess.run(tf.global_variables_initializer())
                for _ in range(3):
                    sess.run(step)
                return sess.run(v)

    np.testing.assert_allclose(run(**faked(host, without=(op,))), run(), rtol=1e-6)
    assert sum(op in r.getMessage() for r in caplog.records) >= 1, "the fallback is told"


def test_an_update_without_a_kernel_on_the_variables_device_is_refused_where_fallback_is_forbidden(host):
    v = tf.Variable([1.0, 2.0])
    step = v.assign_add([1.0, 1.0], read_value=False)
    session = faked(host, without=("AssignAddVariableOp",))
    session["config"] = session["config"].replace(fallback={"default": "warn", "AssignAddVariableOp": "forbid"})
    with tf.Session(**session) as sess:
        sess.run(v.initializer)
        with pytest.raises(tf.errors.KernelNotFoundError, match="AssignAdd"):
            sess.run(step)
        assert sess.run(v).tolist() == [1.0, 2.0]


# -- errors of devices


def broken_device(method):
    def fail(self, *args, **kwargs):
        raise RuntimeError(f"the driver says no to {method}")

    return type("Broken", (fake.FakeDevice,), {method: fail})


@pytest.mark.parametrize("method", ["allocate", "view", "empty", "from_host", "copy", "to_host", "activate"])
@pytest.mark.plain
@pytest.mark.sampled(2)
def test_an_error_of_a_device_names_the_device_and_what_it_was_asked_for(host, method):
    x = tf.placeholder(tf.float32, [2], name="x")
    y = tf.tanh(x * tf.constant([2.0, 3.0], name="c"), name="y")
    v = tf.Variable([1.0, 2.0], name="v")
    fetch = tf.identity(v.initialized_value() + y, name="sum") if method in ("empty", "copy") else y
    step = [v.assign(fetch), fetch] if method in ("empty", "copy") else fetch
    with tf.Session(**faked(host, broken_device(method))) as sess:
        with pytest.raises(tf.errors.GraphdockError, match=f"no to {method}") as info:
            sess.run(step, {x: [1.0, 2.0]})
        assert "fake:0" in str(info.value)
        assert info.value.op is not None
        assert isinstance(info.value.__cause__, RuntimeError)


@pytest.mark.parametrize("scope", [None, "/device:fake:0", "/device:cpu:0"])
@pytest.mark.parametrize("validate_shape", [True, False])
@pytest.mark.sampled(2)
def test_a_string_variable_works_whatever_the_device(host, scope, validate_shape):
    with tf.device(scope):
        v = tf.Variable(["a", "bc"], validate_shape=validate_shape)
        update = v.assign(["d", ""])
        chosen = tf.cond(tf.placeholder_with_default(True, []), lambda: v.read_value(), lambda: tf.constant(["x", "y"]))
    with tf.Session(**faked(host)) as sess:
        sess.run(v.initializer)
        assert sess.run(v).tolist() == [b"a", b"bc"]
        assert sess.run(update).tolist() == [b"d", b""]
        assert sess.run(v).tolist() == [b"d", b""]
        assert sess.run(chosen).tolist() == [b"d", b""]


def test_a_string_variable_works_without_a_device_on_host_memory(host):
    v = tf.Variable(["a", "bc"])
    session = faked(host)
    session["config"] = session["config"].replace(backends=session["config"].backends[:1])
    with tf.Session(**session) as sess:
        sess.run(v.initializer)
        assert sess.run(v).tolist() == [b"a", b"bc"]


def test_a_string_variable_works_beside_queues(host):
    v = tf.Variable(["a", "bc"])
    x = tf.Variable([1.0, 2.0])
    update = [v.assign(["d", ""]), x.assign_add([1.0, 1.0])]
    device = queued.install(host, seed=2)
    with races.check(device), tf.Session(config=tf.SessionConfig(backends=("queued", "cpu")), host=host) as sess:
        sess.run(tf.global_variables_initializer())
        strings, numbers = sess.run(update)
        assert strings.tolist() == [b"d", b""] and numbers.tolist() == [2.0, 3.0]


# -- handles of plugins


def test_a_plugins_op_may_have_a_handle_of_its_own_kind(host):
    total = []
    lab.plug(host, register_resource_kinds=lambda: [ResourceKind("lab.Total", lambda request: total)])
    named = tuple(AttrDef(n, "string", "") for n in ("container", "shared_name"))
    made = lab.op(host, "Make", "", "handle: resource", executes="handle", resource="lab.Total", attrs=named)
    x, y = ArgDef("x", "float32", "[*S]"), ArgDef("y", "float32", "[*S]")
    handle = ArgDef("handle", "resource", "[]", access="writes", resource="lab.Total")
    used = OpDef("lab.Use", inputs=(handle, x), outputs=(y,), package="lab")
    host.ops.add(used, "lab")

    def use(ctx):
        return lambda total, x, *out: total.append(float(x.sum())) or (x.copy() if not out else np.copyto(out[0], x))

    host.kernels.add(KernelDef("lab.Use", "cpu", use), "user", "lab")
    graph = tf.get_default_graph()
    handle = graph.create_op("lab.Make", [], op_def=made).outputs[0]
    y = graph.create_op("lab.Use", [handle, tf.constant([1.0, 2.0])], op_def=used).outputs[0]
    with tf.Session(host=host) as sess:
        assert sess.run(y).tolist() == [1.0, 2.0]
    assert total == [3.0]


# -- amounts


@pytest.mark.parametrize("count", [10**6, 10**9])
def test_an_absurd_number_of_devices_is_refused(host, count):
    def make():
        with pytest.raises(tf.errors.ConfigError, match="device_count") as info:
            tf.Session(config=tf.SessionConfig(device_count={"cpu": count}), host=host)
        assert str(count) in str(info.value)

    lab.calls(make, 200_000)


def test_a_bound_on_devices_is_for_virtual_ones_only(host):
    class Two(fake.FakeFactory):
        virtual = False

        def probe(self):
            return [DeviceInfo("fake", i) for i in range(2)]

    name = lab.plug(host, register_devices=lambda: [Two()])
    for count in (3, 10**9):
        with pytest.raises(tf.errors.ConfigError, match="more than there are") as info:
            tf.Session(config=tf.SessionConfig(backends=(name,), device_count={"fake": count}), host=host)
        assert info.value.expected == "1 to 2"
    with tf.Session(config=tf.SessionConfig(backends=(name,), device_count={"fake": 2}), host=host) as sess:
        assert len(sess.list_devices()) == 2


def test_a_handful_of_virtual_devices_is_there(host):
    with tf.Session(config=tf.SessionConfig(device_count={"cpu": 40}), host=host) as sess:
        assert len(sess.list_devices()) == 40


def test_no_thread_of_a_device_outlives_its_session(host):
    before = threading.active_count()
    with tf.Session(**faked(host)) as sess:
        sess.run(tf.constant(1.0) + 1.0)
    assert threading.active_count() == before
