"""Stores of resources: declared by plans, made by the first step, closed with their container; nothing outlives a reset."""

from __future__ import annotations

import gc
import threading
import time
import types
import weakref

import graphdock as tf
import numpy as np
import pytest
from graphdock import dtypes
from graphdock.contracts import VARIABLE, DeviceInfo, ResourceKind, hookimpl
from graphdock.contracts.runtime.resource_lock import LockRequest, LockSet, Until
from graphdock.contracts.runtime.resources import ResourceClosed, ResourceStore
from graphdock.plugin.host import Host
from graphdock_testing import fake
from graphdock_testing.null import NullDevice

FLOATS = {"dtype": dtypes.float32, "shape": (2,), "container": "", "shared_name": ""}
UNKNOWN = {**FLOATS, "shape": (None,)}


@pytest.fixture
def device():
    return NullDevice(DeviceInfo("null"))


@pytest.fixture
def host():
    host = Host()
    yield host
    host.close()


class Kind:
    """A kind that counts."""

    def __init__(self, **fields):
        self.made, self.closed = [], []
        self.kind = ResourceKind("mine.Table", self._create, close=self._close, **fields)

    def _create(self, request):
        self.made.append(request)
        return object()

    def _close(self, made, request):
        self.closed.append((made, request))


# -- the store


def test_nothing_is_made_before_it_is_opened(device):
    mine, store = Kind(), ResourceStore("box")
    resource = store.declare(mine.kind, "t", {"capacity": 3}, device)
    assert (mine.made, resource.made) == ([], False)
    made = resource.open()
    assert resource.open() is made and len(mine.made) == 1
    request = mine.made[0]
    assert (request.kind, request.name, request.container) == ("mine.Table", "t", "box")
    assert request.attrs["capacity"] == 3 and request.device is device
    store.clear()
    assert mine.closed == [(made, request)]


def test_what_was_never_made_is_not_closed(device):
    mine, store = Kind(), ResourceStore()
    resource = store.declare(mine.kind, "t", {}, device)
    store.clear()
    assert mine.closed == [] and resource.closed


def test_a_name_means_one_resource_until_a_reset(device):
    mine, store = Kind(), ResourceStore()
    first = store.declare(mine.kind, "t", {"capacity": 3, "shared_name": ""}, device)
    assert store.declare(mine.kind, "t", {"capacity": 3, "shared_name": "t"}, device) is first
    first.open()
    before = store.epoch
    store.clear()
    assert store.epoch != before and store.names() == []
    assert first.closed
    with pytest.raises(ResourceClosed, match="'t' was reset"):
        first.open()
    again = store.declare(mine.kind, "t", {"capacity": 5}, device)
    assert again is not first and again.open() is not None


def test_a_name_used_by_two_kinds_is_an_error_that_names_both(device):
    store = ResourceStore("box")
    store.declare(VARIABLE, "t", FLOATS, device)
    with pytest.raises(tf.errors.AlreadyExistsError) as caught:
        store.declare(Kind().kind, "t", {}, device)
    assert "container 'box' has a variable named 't'" in str(caught.value)
    assert "mine.Table" in str(caught.value)


@pytest.mark.parametrize("changed", [{"dtype": dtypes.int32}, {"shape": (3,)}])
def test_a_variable_in_use_keeps_its_type(device, changed):
    store = ResourceStore()
    variable = store.declare(VARIABLE, "w", FLOATS, device)
    variable.open()
    with pytest.raises(
        tf.errors.FailedPreconditionError, match="'w' exists in this session with another type"
    ) as caught:
        store.declare(VARIABLE, "w", {**FLOATS, **changed}, device)
    assert caught.value.expected == "float32[2]"
    assert store.get("w") is variable and not variable.closed


def test_one_that_no_step_has_used_makes_room_for_another_type(device):
    store = ResourceStore()
    planned = store.declare(VARIABLE, "w", FLOATS, device)
    before = store.epoch
    other = store.declare(VARIABLE, "w", {**FLOATS, "shape": (3,)}, device)
    assert planned.closed and not other.closed and store.get("w") is other
    assert store.epoch != before, "plans for the first one look again"


def test_other_kinds_are_told_apart_by_their_attributes_and_memory(device):
    mine, store = Kind(), ResourceStore()
    store.declare(mine.kind, "t", {"capacity": 3}, device).open()
    with pytest.raises(tf.errors.FailedPreconditionError, match="mine.Table 't' exists.*other attributes") as caught:
        store.declare(mine.kind, "t", {"capacity": 4}, device)
    assert (caught.value.expected, caught.value.got) == ("capacity=3", "capacity=4")
    elsewhere = NullDevice(DeviceInfo("null", 1))
    if elsewhere.memory_space == device.memory_space:
        elsewhere.memory_space = "elsewhere"
    with pytest.raises(tf.errors.FailedPreconditionError, match="mine.Table 't' of this session lives on"):
        store.declare(mine.kind, "t", {"capacity": 3}, elsewhere)


def test_what_fails_to_be_made_is_tried_again(device):
    tries = []

    def create(request):
        tries.append(request)
        if len(tries) == 1:
            raise RuntimeError("no room")
        return "made"

    store = ResourceStore()
    resource = store.declare(ResourceKind("mine.Table", create), "t", {}, device)
    with pytest.raises(tf.errors.InternalError, match="mine.Table 't' could not be made on .*RuntimeError: no room"):
        resource.open()
    assert resource.open() == "made"


def test_each_is_closed_whatever_another_one_raises(device):
    closed = []

    def close(made, request):
        closed.append(request.name)
        if request.name == "b":
            raise RuntimeError("b does not want to go")

    store = ResourceStore()
    kind = ResourceKind("mine.Table", lambda request: object(), close=close)
    for name in "abc":
        store.declare(kind, name, {}, device).open()
    with pytest.raises(RuntimeError, match="does not want to go"):
        store.clear()
    assert sorted(closed) == ["a", "b", "c"] and store.names() == []


def test_a_variable_of_unknown_shape_takes_storage_with_each_new_shape():
    from graphdock.planning.pool import HostMemory

    store = ResourceStore()
    variable = store.declare(VARIABLE, "w", UNKNOWN, HostMemory())
    assert variable.open() is None and not variable.static and variable.made
    variable.assign(np.ones(2, np.float32))
    first = variable.buffer
    variable.assign(np.zeros(2, np.float32))
    assert variable.buffer is first and variable.initialized
    variable.assign(np.ones(3, np.float32))
    assert variable.buffer is not first and variable.snapshot().tolist() == [1, 1, 1]
    assert variable.snapshot() is not variable.buffer
    with pytest.raises(tf.errors.ShapeError):
        variable.assign(np.ones((1, 1), np.float32))


def test_a_closed_session_takes_no_resource(device):
    store = ResourceStore()
    store.close()
    with pytest.raises(tf.errors.FailedPreconditionError, match="closed"):
        store.declare(VARIABLE, "w", FLOATS, device)


def test_a_reset_waits_for_who_holds_anything_and_may_give_up(device):
    store = ResourceStore("box")
    variable = store.declare(VARIABLE, "w", FLOATS, device)
    variable.open()
    holder, there = LockRequest(LockSet("a long step", [variable])), threading.Event()
    thread = threading.Thread(target=lambda: (store.resource_lock.acquire(holder), there.set()), name="worker")
    thread.start()
    thread.join()
    with pytest.raises(tf.errors.DeadlineExceededError) as caught:
        store.clear(Until(0.01))
    assert "the reset of container 'box' waited" in str(caught.value) and "variable 'w'" in str(caught.value)
    assert variable.buffer is not None
    store.resource_lock.release(holder)
    store.clear(Until(10))
    assert variable.buffer is None


def test_epochs_never_come_back():
    stores = [ResourceStore() for _ in range(3)]
    seen = set()
    for _ in range(5):
        for store in stores:
            assert store.epoch not in seen
            seen.add(store.epoch)
            store.value_lost()


# -- sessions


def variable(container, value, name="w"):
    with tf.Graph().as_default() as graph, tf.container(container):
        return graph, tf.Variable(value, name=name)


def test_a_reset_frees_memory_that_plans_of_open_sessions_hold(host):
    graph, w = variable("freed", np.zeros(1000, np.float32))
    with graph.as_default():
        update = w.assign_add(np.ones(1000, np.float32))
    with tf.Session(graph=graph, host=host) as sess:
        sess.run(w.initializer)
        sess.run(update)
        gone = weakref.ref(host.containers["freed"].get("w").buffer)
        assert gone() is not None
        gc.disable()
        try:
            tf.Session.reset(containers=["freed"], host=host)
            assert gone() is None, "freed at once, without the collector"
        finally:
            gc.enable()
        with pytest.raises(tf.errors.UninitializedError):
            sess.run(update)
        sess.run(w.initializer)
        assert sess.run(update)[0] == 1.0


class Metered(fake.FakeDevice):
    """Knows how many bytes of its memory are in use."""

    held = 0

    def allocate(self, nbytes, align=64):
        block = super().allocate(nbytes, align)
        type(self).held += block.nbytes
        weakref.finalize(block, self._gone, block.nbytes)
        return block

    @classmethod
    def _gone(cls, nbytes):
        cls.held -= nbytes


class MeteredFactory(fake.FakeFactory):
    def open(self, info, options):
        return Metered(info)


@pytest.mark.parametrize("how", ["reset", "close"])
@pytest.mark.sampled(2)
def test_a_device_gets_its_memory_back_at_once(host, how):
    hooks = {
        "register_devices": lambda: [MeteredFactory()],
        "register_kernels": lambda host: fake.register_kernels(host),
    }
    host.register("metered", types.SimpleNamespace(**{k: hookimpl(f) for k, f in hooks.items()}, __name__="metered"))
    graph, w = variable("on a device" if how == "reset" else "", np.zeros(100_000, np.float32))
    with graph.as_default():
        update, shapeless = w.assign_add(np.ones(100_000, np.float32), read_value=False), tf.reduce_sum(w)
    gc.collect()  # what tests before have left
    Metered.held = 0
    sess = tf.Session(graph=graph, config=tf.SessionConfig(backends=("metered", "cpu")), host=host)
    sess.explain(update)
    assert Metered.held == 0
    for step in (w.initializer, update, update):
        sess.run(step)
    assert sess.run(shapeless) == 200_000
    before = Metered.held
    assert before > 400_000
    gc.disable()
    try:
        if how == "reset":
            tf.Session.reset(containers=["on a device"], host=host)
        else:
            sess.close()
        assert Metered.held <= before - 400_000, "constants of plans may stay, the variable may not"
    finally:
        gc.enable()


def test_a_plan_made_before_a_reset_never_writes_what_was_freed(host):
    """The name is declared anew with another shape; the old session's plans fail, and the new variable is left alone."""
    graph, w = variable("anew", np.zeros(4, np.float32))
    with graph.as_default():
        update = w.assign_add(np.ones(4, np.float32))
    other, v = variable("anew", np.zeros(2, np.int32))
    with tf.Session(graph=graph, host=host) as old, tf.Session(graph=other, host=host) as new:
        old.run([w.initializer])
        old.run(update)
        freed = host.containers["anew"].get("w").buffer
        tf.Session.reset(host=host)
        new.run(v.initializer)
        with pytest.raises(tf.errors.FailedPreconditionError, match="'w' exists in container 'anew' with another type"):
            old.run(update)
        assert new.run(v).tolist() == [0, 0] and freed.tolist() == [1, 1, 1, 1]
        tf.Session.reset(host=host)
        old.run(w.initializer)
        assert old.run(update).tolist() == [1, 1, 1, 1]


def test_steps_and_resets_of_many_threads_end_with_a_value_or_an_error(host):
    graphs = [variable("busy", np.zeros(64, np.int64)) for _ in range(3)]
    updates = []
    for graph, w in graphs:
        with graph.as_default():
            updates.append(w.assign_add(np.ones(64, np.int64)))
    failures, stop = [], threading.Event()
    sessions = [tf.Session(graph=graph, host=host) for graph, _ in graphs]

    def work(number):
        sess, w, update = sessions[number], graphs[number][1], updates[number]
        try:
            while not stop.is_set():
                try:
                    sess.run(w.initializer)
                    got = sess.run(update)
                    assert (got == got[0]).all(), "torn"
                except tf.errors.UninitializedError:
                    pass
        except BaseException as error:  # noqa: BLE001 - raised again by the test itself
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n,), daemon=True) for n in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(100):
        tf.Session.reset(containers=["busy"], host=host)
        time.sleep(0.001)
    stop.set()
    for thread in threads:
        thread.join(60)
    assert not any(t.is_alive() for t in threads)
    if failures:
        raise failures[0]
    store = host.containers["busy"]
    assert not store.resource_lock.requests and not store.resource_lock.waiting


def test_explaining_a_step_settles_nothing_for_other_sessions(host):
    graph, _ = variable("explained", np.zeros(2, np.float32))
    other, v = variable("explained", np.ones(3, np.int32))
    with tf.Session(graph=graph, host=host) as asking, tf.Session(graph=other, host=host) as running:
        asking.explain(graph.get_operation_by_name("w/Assign"))
        running.run(v.initializer)
        assert running.run(v).tolist() == [1, 1, 1]
        with pytest.raises(tf.errors.FailedPreconditionError, match="another type"):
            asking.run(graph.get_operation_by_name("w/Assign"))


def test_a_step_that_calls_python_is_told_when_its_variable_was_reset_under_it(host):
    """Such a step locks each access alone: between two of them anything may happen."""
    graph, w = variable("under it", np.zeros(2, np.float32))
    armed = []
    with graph.as_default():
        called = tf.py_func(
            lambda _: np.int32(len(armed) and tf.Session.reset(containers=["under it"], host=host) or 0),
            [w.read_value()],  # so that the call is no part that runs before the step
            tf.int32,
        )
        with tf.control_dependencies([called]):
            update = w.assign_add(np.ones(2, np.float32), read_value=False)
    with tf.Session(graph=graph, host=host) as sess:
        sess.run(w.initializer)
        sess.run(update)
        buffer = host.containers["under it"].get("w").buffer
        armed.append(1)
        with pytest.raises(tf.errors.AbortedError, match="variable 'w' was reset while the step ran"):
            sess.run(update)
        assert buffer.tolist() == [1, 1]
        armed.clear()
        sess.run(w.initializer)
        sess.run(update)
        assert sess.run(w).tolist() == [1, 1]


def test_whether_a_variable_is_initialized_is_asked_of_the_one_that_is_there(host):
    graph, w = variable("asked", np.zeros(2, np.float32))
    other, v = variable("asked", np.zeros(2, np.float32))
    with graph.as_default():
        there = tf.is_variable_initialized(w)
    with tf.Session(graph=graph, host=host) as sess, tf.Session(graph=other, host=host) as another:
        assert sess.run(there) == False  # noqa: E712 - a NumPy bool
        sess.run(w.initializer)
        assert sess.run(there)
        tf.Session.reset(host=host)
        assert not sess.run(there)
        another.run(v.initializer)
        assert sess.run(there)


def test_closing_the_host_closes_its_containers():
    host = Host()
    graph, w = variable("last", np.zeros(2, np.float32))
    with tf.Session(graph=graph, host=host) as sess:
        sess.run(w.initializer)
        gone = weakref.ref(host.containers["last"].get("w").buffer)
        host.close()
        gc.collect()
        assert gone() is None


def test_a_plan_that_was_leased_before_a_reset_is_made_again(host):
    """Between the lease and the locks of one step another thread resets: the step sees it under its locks."""
    graph, w = variable("between", np.zeros(2, np.float32))
    with tf.Session(graph=graph, host=host) as sess:
        sess.run(w.initializer)
        seen = tf.RunMetadata()
        sess.run(w, run_metadata=seen)
        step = seen.plan.lease()
        tf.Session.reset(host=host)
        with pytest.raises(ResourceClosed):
            seen.plan.run(step, ())
        with pytest.raises(ResourceClosed):
            seen.plan.run(seen.plan.lease(), ())
        again = tf.RunMetadata()
        with pytest.raises(tf.errors.UninitializedError):
            sess.run(w, run_metadata=again)
        assert again.plan is not seen.plan and not again.cached
