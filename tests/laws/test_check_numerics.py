"""``check_numerics`` stops a step at the first NaN or infinity, whatever made it and wherever it lies."""

import graphdock as tf
import numpy as np
import pytest
from graphdock.plugin.host import Host
from graphdock_testing import fake, queued


def stopped(fetch, feeds=None, before=(), **where):
    """The op at which a step with ``check_numerics`` stops."""
    host = where.pop("host", None)
    with tf.Session(config=tf.SessionConfig(check_numerics=True, **where), host=host) as sess:
        for step in before:
            sess.run(step)
        with pytest.raises(tf.errors.InvalidArgumentError, match="NaN|infinity") as info:
            sess.run(fetch, feeds)
    return info.value.op_name


def test_a_kernel_that_makes_an_infinity_is_named():
    x = tf.placeholder(tf.float32, [2])
    assert stopped(tf.log(x, name="ln"), {x: [0.0, 1.0]}) == "ln"


def test_a_folded_node_that_makes_an_infinity_is_named():
    assert stopped(tf.identity(tf.log(tf.constant(0.0), name="ln"))) == "ln"


def test_a_folded_node_of_a_body_that_makes_a_nan_is_named():
    x = tf.placeholder(tf.float32, [])
    made = tf.cond(x > 0.0, lambda: tf.sqrt(tf.constant(-1.0), name="root") + x, lambda: x)
    assert stopped(made, {x: 1.0}).endswith("root")


def test_a_folded_node_that_nobody_runs_stops_nothing():
    x = tf.placeholder(tf.float32, [])
    made = tf.cond(x > 0.0, lambda: tf.sqrt(tf.constant(-1.0)) + x, lambda: x)
    with tf.Session(config=tf.SessionConfig(check_numerics=True)) as sess:
        assert sess.run(made, {x: -1.0}) == -1.0


def test_a_python_function_that_makes_a_nan_is_named():
    assert stopped(tf.py_func(lambda: np.float32(np.nan), [], tf.float32, name="mine")) == "mine"


@pytest.mark.parametrize("update", ["assign", "assign_add", "scatter"])
def test_an_update_that_makes_an_infinity_is_named(update):
    v = tf.Variable([1e38, 1.0], name="v")
    x = tf.placeholder(tf.float32, [2])
    made = {
        "assign": lambda: v.assign(x).op,
        "assign_add": lambda: v.assign_add(x, read_value=False),
        "scatter": lambda: tf.scatter_add(v, [0, 1], x).op,
    }[update]()
    value = [np.inf, 1.0] if update == "assign" else [3.4e38, 1.0]
    assert stopped(made, {x: value}, [v.initializer]) is not None


def test_a_node_on_a_device_with_its_own_memory_is_named():
    host = Host()
    fake.install(host)
    x = tf.placeholder(tf.float32, [2])
    assert stopped(tf.log(x, name="ln") + 1.0, {x: [0.0, 1.0]}, backends=("fake", "cpu"), host=host) == "ln"


@pytest.fixture
def queued_host():
    host = Host()
    queued.install(host, laziness=1.0)
    return host


@pytest.mark.parametrize("debug", [False, True])
def test_every_step_of_a_device_with_queues_is_looked_at(queued_host, debug):
    """The second and third step, too, where the device would replay what it recorded."""
    x = tf.placeholder(tf.float32, [2])
    y = tf.log(x, name="ln") + 1.0
    config = tf.SessionConfig(check_numerics=True, backends=("queued", "cpu"), debug=debug)
    with tf.Session(config=config, host=queued_host) as sess:
        for _ in range(4):
            assert sess.run(y, {x: [1.0, 1.0]}).tolist() == [1.0, 1.0]
        with pytest.raises(tf.errors.InvalidArgumentError, match="NaN|infinity") as info:
            sess.run(y, {x: [0.0, 1.0]})
        assert info.value.op_name == "ln"
        assert sess.run(y, {x: [1.0, 1.0]}).tolist() == [1.0, 1.0]


def test_an_update_of_a_variable_on_a_device_with_queues_is_looked_at(queued_host):
    x = tf.placeholder(tf.float32, [2])
    with tf.device("queued"):
        v = tf.Variable([1e38, 1.0], name="v")
        update = v.assign_add(x, read_value=False)
    where = {"host": queued_host, "backends": ("queued", "cpu")}
    assert stopped(update, {x: [3.4e38, 1.0]}, [v.initializer], **where) is not None


def test_a_kernel_on_a_synchronous_device_with_its_own_memory_is_named(suspects):
    host = suspects.host_with(suspects.kernel("chip", lambda x, *out: np.divide(x, 0, *out)))
    with np.errstate(all="ignore"), pytest.raises(tf.errors.InvalidArgumentError, match="NaN|infinity") as info:
        suspects.run(host, "chip", [1.0, 2.0], check_numerics=True)
    assert info.value.op_name == "suspect"
