"""An error of work that ran late names the node that failed, its kernel and the user's own line, in the session that queued it.

Kernels fail where nobody looks: in a queue, long after the call that queued them, beside work of other nodes and other sessions.
"""

from __future__ import annotations

import inspect
import threading
import traceback
from dataclasses import replace

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import KernelDef
from graphdock.plugin.host import Host
from graphdock_testing import queued

HERE = __file__.rpartition("/")[2]


def line():
    """Where it is called, as messages write it."""
    return f"{HERE}:{inspect.currentframe().f_back.f_lineno}"


class Fault(ValueError):
    pass


def _fails(*buffers):
    error = Fault("the tile was lost")
    error.add_note("tile 3 of 7")
    raise error


def _refuses(*buffers):
    error = tf.errors.InvalidArgumentError("the tile is wrong", got="3")
    error.add_note("tile 3 of 7")
    raise error


@pytest.fixture
def lab():
    """A host whose ``queued`` backend has two kernels of Softsign that fail when they run."""
    host = Host()
    queued.install(host, seed=3, laziness=1.0)
    opdef = host.ops.get("Softsign")
    for name, function in (("fails", _fails), ("refuses", _refuses)):
        kernel = KernelDef("Softsign", "cpu", lambda ctx, f=function: f, name, label="of a test")
        host.kernels.add(replace(queued.wrap(kernel, opdef), name=name, label="of a test"), "user", "lab")
    with tf.Graph(host=host).as_default():
        yield host
    host.close()


def session(host, how="fails", **fields):
    config = tf.SessionConfig(backends=("queued", "cpu"), kernels={"Softsign@queued": f"user.{how}"}, **fields)
    return tf.Session(host=host, config=config)


def refused(call, *args):
    with pytest.raises(tf.errors.GraphdockError) as caught:
        call(*args)
    return caught.value


def check(error, name, made, how="fails"):
    assert (error.op_name, error.site.rpartition("/")[2]) == (name, made)
    printed = "".join(traceback.format_exception(error))
    assert "tile 3 of 7" in printed, "what the author noted"
    assert printed.count("tile 3 of 7") == 1
    if how == "fails":
        assert isinstance(error, tf.errors.InternalError)
        assert error.message == "kernel user.fails of Softsign failed: Fault: the tile was lost"
        assert type(error.__cause__) is Fault
    else:
        assert type(error) is tf.errors.InvalidArgumentError and error.message == "the tile is wrong"


@pytest.mark.parametrize("how", ["fails", "refuses"])
@pytest.mark.parametrize("debug", [False, True])
def test_the_node_the_kernel_and_the_line_are_those_that_failed(lab, how, debug):
    """Not the one that waits for it, nor those that were queued before and after."""
    x = tf.placeholder(tf.float32, [3])
    before = tf.exp(x, name="before")
    bad, made = tf.nn.softsign(before, name="bad"), line()
    after = tf.reduce_sum(tf.exp(bad, name="after") + before, name="last")
    with session(lab, how, debug=debug) as sess:
        for _ in range(3):  # eager, recorded, replayed
            check(refused(sess.run, after, {x: np.ones(3)}), "bad", made, how)
        assert sess.run(before, {x: np.zeros(3)}).tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("how", ["fails", "refuses"])
def test_in_a_loop_and_in_a_branch_too(lab, how):
    x = tf.placeholder(tf.float32, [3])

    def body(i, v):
        return i + 1, tf.nn.softsign(tf.exp(v), name="inner")

    made = f"{HERE}:{inspect.currentframe().f_lineno - 2}"
    looped = tf.while_loop(lambda i, v: i < 3, body, [0, x])[1]
    here = line()
    either = tf.cond(tf.reduce_sum(x) > 0.0, lambda: tf.nn.softsign(x, name="chosen"), lambda: x)
    with session(lab, how) as sess:
        error = refused(sess.run, looped, {x: np.ones(3)})
        check(error, error.op_name, made, how)
        assert error.op_name.endswith("inner")
        error = refused(sess.run, either, {x: np.ones(3)})
        check(error, error.op_name, f"{HERE}:{int(here.rpartition(':')[2]) + 1}", how)
        assert sess.run(either, {x: -np.ones(3)}).tolist() == [-1.0, -1.0, -1.0]


def test_the_session_is_the_one_that_queued_it(lab):
    """Two sessions take turns on one stream slot; the healthy one never sees the other's error, whoever waits first."""
    x = tf.placeholder(tf.float32, [3])
    bad, made = tf.nn.softsign(tf.exp(x), name="bad"), line()
    good = tf.exp(x, name="good")
    v = tf.Variable(np.zeros(3, np.float32))
    update = v.assign_add(tf.exp(x), read_value=False)
    with session(lab) as sick, session(lab) as well:
        well.run(v.initializer)
        for number in range(1, 9):
            check(refused(sick.run, bad.op, {x: np.zeros(3)}), "bad", made)
            well.run(update, {x: np.zeros(3)})
            assert well.run(good, {x: np.zeros(3)}).tolist() == [1.0] * 3
            assert well.run(v).tolist() == [float(number)] * 3


def test_threads_of_one_session_get_their_own_errors(lab):
    x = tf.placeholder(tf.float32, [3])
    nodes = [(tf.nn.softsign(tf.exp(x) * float(i + 2), name=f"bad{i}"), line()) for i in range(4)]
    good = tf.exp(x)
    found: list[tuple[int, tf.errors.GraphdockError]] = []
    right: list[bool] = []
    with session(lab) as sess:

        def work(i):
            for _ in range(10):
                found.append((i, refused(sess.run, nodes[i][0], {x: np.ones(3)})))
                right.append(sess.run(good, {x: np.zeros(3)}).tolist() == [1.0] * 3)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(120)
    assert len(found) == 40 and all(right)
    for i, error in found:
        check(error, f"bad{i}", nodes[i][1])


@pytest.mark.plain  # debug mode waits for each kernel, so there is no second one
def test_of_two_failures_the_first_is_raised_and_the_other_noted(lab):
    """On two devices whose queues both fail."""
    x = tf.placeholder(tf.float32, [3])
    with tf.device("/device:queued:0"):
        first, made = tf.nn.softsign(x, name="first"), line()
    with tf.device("/device:queued:1"):
        second = tf.nn.softsign(x + 1.0, name="second")
    with session(lab, device_count={"queued": 2}) as sess:
        error = refused(sess.run, [first.op, second.op], {x: np.ones(3)})
    check(error, error.op_name, error.site.rpartition("/")[2])
    assert {error.op_name} <= {"first", "second"}
    other = {"first": "second", "second": "first"}[error.op_name]
    assert any("besides" in note and f"op: {other}" in note for note in error.__notes__), error.__notes__
    assert made


def test_what_stumbles_over_the_ruins_is_not_blamed(lab):
    """A kernel that waits for its inputs raises at once over what a failed one left; the first failure is the one to mend."""
    data = tf.placeholder(tf.float32, [3])
    ruins, made = tf.nn.softsign(data, name="bad"), line()
    where = tf.cast(ruins * 1e9 + 77.0, tf.int32)
    late = tf.dynamic_partition(data, where, 2, name="late")
    with session(lab) as sess:
        error = refused(sess.run, late, {data: np.ones(3)})
    assert (error.op_name, error.site.rpartition("/")[2]) == ("bad", made)


def test_a_note_that_the_caller_adds_stays(lab):
    x = tf.placeholder(tf.float32, [3])
    bad = tf.nn.softsign(x, name="bad")
    with session(lab) as sess:
        for _ in range(2):
            with pytest.raises(tf.errors.InternalError) as caught:
                try:
                    sess.run(bad, {x: np.ones(3)})
                except tf.errors.InternalError as error:
                    error.add_note("in epoch 4")
                    raise
            assert caught.value.__notes__.count("in epoch 4") == 1
