"""Where a variable lives depends on its request, its colocation and the order of backends; never on what a plan does with it."""

import graphdock as tf
import lab
import pytest
from graphdock.plugin.host import Host
from graphdock_testing import fake

LACKING = "AssignAddVariableOp"


@pytest.fixture
def session():
    host = Host()

    def register_kernels(host):
        return [k for k in fake.register_kernels(host) if k.op != LACKING]

    name = lab.plug(host, register_devices=fake.register_devices, register_kernels=register_kernels)

    def make(**settings):
        settings.setdefault("backends", (name, "cpu"))
        settings.setdefault("device_count", {"fake": 2})
        return tf.Session(config=tf.SessionConfig(**settings), host=host)

    make.backends = (name, "cpu")
    yield make
    host.close()


def row(sess, fetch, op):
    (found,) = (r for r in sess.explain(fetch).rows if r.op == op)
    return found


def home(sess, v):
    """The memory from which a fetch of the variable is copied."""
    (moved,) = (r.device for r in sess.explain(v).rows if r.kernel == "transfer")
    return moved.removesuffix(" -> host")


def test_an_update_that_falls_back_says_so_and_its_variable_stays(session, caplog):
    v = tf.Variable([1.0, 2.0])
    step = v.assign_add([1.0, 1.0])
    with session() as sess:
        sess.run(v.initializer)
        told = row(sess, step, LACKING)
        assert told.device == "cpu:0" and told.why.startswith("FALLBACK (warn)") and LACKING in told.why
        assert home(sess, v) == "fake:0"
        caplog.clear()
        assert sess.run(step).tolist() == [2.0, 3.0]
        (warning,) = caplog.records
        assert LACKING in warning.getMessage()
        sess.run(step)
        assert len(caplog.records) == 1


def test_no_fallback_where_it_is_forbidden_and_every_candidate_is_listed(session):
    v = tf.Variable([1.0, 2.0])
    step = v.assign_add([1.0, 1.0], read_value=False)
    with session(fallback="forbid") as sess:
        sess.run(v.initializer)
        with pytest.raises(tf.errors.KernelNotFoundError, match=r"fits, but fallback is forbidden") as info:
            sess.run(step)
        assert info.value.op.name == step.name and "cpu." in str(info.value)
        assert sess.run(v).tolist() == [1.0, 2.0]


@pytest.mark.parametrize(("fallback", "runs"), [("forbid", False), ("warn", False), ("allow", True)])
def test_an_update_that_asks_for_a_device_moves_only_where_all_is_allowed(session, fallback, runs):
    with tf.device("/device:fake:0"):
        v = tf.Variable([1.0, 2.0])
        step = v.assign_add([1.0, 1.0], read_value=False)
    with session(fallback=fallback) as sess:
        sess.run(v.initializer)
        if runs:
            sess.run(step)
            assert home(sess, v) == "fake:0"
            assert sess.run(v).tolist() == [2.0, 3.0]
        else:
            with pytest.raises(tf.errors.KernelNotFoundError, match="fake:0"):
                sess.run(step)


def test_scopes_around_what_uses_a_variable_do_not_move_it(session):
    v = tf.Variable([1.0, 2.0])
    with tf.device("/device:cpu:0"):
        doubled = v * 2.0
        assigned = v.assign([5.0, 6.0])
        added = v.assign_add([1.0, 1.0])
    with session() as sess:
        for step, want in ((v.initializer, None), (doubled, [2.0, 4.0]), (assigned, [5.0, 6.0]), (added, [6.0, 7.0])):
            got = sess.run(step)
            assert want is None or got.tolist() == want
            assert home(sess, v) == "fake:0"


def test_a_variable_follows_what_it_is_colocated_with_also_where_a_plan_lacks_that(session):
    with tf.device("/device:fake:1"):
        v = tf.Variable([1.0, 2.0], name="v")
    with tf.colocate_with(v.handle):
        slot = tf.Variable([3.0, 4.0], name="slot")
    both = slot.assign(v.read_value() + slot.read_value())
    with session() as sess:
        sess.run(slot.initializer)
        assert home(sess, slot) == "fake:1"
        sess.run(v.initializer)
        assert sess.run(both).tolist() == [4.0, 6.0]


def test_a_variable_stays_where_it_is_for_sessions_with_another_order_of_backends(session):
    with tf.container("shared"):
        v = tf.Variable([1.0, 2.0])
    step = v.assign_add([1.0, 1.0])
    with session() as sess:
        sess.run(v.initializer)
    with session(backends=tuple(reversed(session.backends))) as sess:
        assert home(sess, v) == "fake:0"
        assert sess.run(step).tolist() == [2.0, 3.0]
        assert home(sess, v) == "fake:0"
