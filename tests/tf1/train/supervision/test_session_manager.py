"""SessionManager and Scaffold: what makes a session ready, and what is said when nothing does."""

from __future__ import annotations

import threading

import graphdock as tf
import pytest
from graphdock.errors import DeadlineExceededError, FailedPreconditionError, InvalidArgumentError, UninitializedError


@pytest.fixture(autouse=True)
def variables():
    with tf.Graph().as_default():
        yield (
            tf.get_variable("v", initializer=1.0),
            tf.get_variable("local", initializer=2.0, trainable=False, collections=[tf.GraphKeys.LOCAL_VARIABLES]),
        )


def manager(**more):
    return tf.train.SessionManager(ready_op=tf.report_uninitialized_variables(), recovery_wait_secs=0.001, **more)


def test_a_session_is_initialised_once_and_restored_afterwards(tmp_path, variables):
    v, local = variables
    saver, init, local_init = tf.train.Saver([v]), tf.global_variables_initializer(), tf.local_variables_initializer()
    sm = manager(local_init_op=local_init, ready_for_local_init_op=tf.report_uninitialized_variables([v]))
    calls, feed = [], tf.placeholder(tf.float32, [])
    fed = v.assign(feed)
    with sm.prepare_session(
        "", fed, saver, str(tmp_path), init_feed_dict={feed: 7.0}, init_fn=lambda s: calls.append(s.run(v))
    ) as sess:
        assert sess.run([v, local]) == [7.0, 2.0] and calls == [7.0]
        path = saver.save(sess, str(tmp_path / "m"))
    with sm.prepare_session("", init, saver, str(tmp_path), init_fn=lambda s: calls.append("again")) as sess:
        assert sess.run([v, local]) == [7.0, 2.0] and calls == [7.0]
    for where in ({"checkpoint_dir": str(tmp_path)}, {"checkpoint_filename_with_path": path}):
        sess, restored = sm.recover_session("", saver, **where)
        assert restored and sess.run(v) == 7.0
    sess, restored = tf.train.SessionManager().recover_session("", saver, str(tmp_path / "none"))
    assert not restored
    with pytest.raises(UninitializedError):
        sess.run(v)
    with pytest.raises(InvalidArgumentError, match="Can not provide both"):
        sm.prepare_session("", init, saver, str(tmp_path), path)


def test_it_waits_for_a_checkpoint(tmp_path, variables):
    saver, init = tf.train.Saver([variables[0]]), tf.global_variables_initializer()
    sm = manager(local_init_op=tf.local_variables_initializer())
    with tf.Session() as other:
        other.run(init)
        timer = threading.Timer(0.02, saver.save, (other, str(tmp_path / "m")))
        timer.start()
        assert sm.recover_session("", saver, str(tmp_path), wait_for_checkpoint=True)[1]
        timer.join()


def test_what_is_said_of_variables_without_values(variables):
    with pytest.raises(FailedPreconditionError, match="no init_op or init_fn or local_init_op was given"):
        manager().prepare_session("")
    with pytest.raises(FailedPreconditionError) as caught:
        manager().prepare_session("", init_op=tf.no_op(name="nothing"))
    assert "did not make model ready.  Init op: nothing" in str(caught.value)
    assert "Variables not initialized: v, local" in str(caught.value)
    sm = manager(local_init_op=tf.no_op(), ready_for_local_init_op=tf.report_uninitialized_variables([variables[0]]))
    with pytest.raises(
        FailedPreconditionError, match=r"ready for local_init.*Variables not initialized: v\n"
    ) as caught:
        sm.prepare_session("", init_op=tf.no_op())
    with pytest.raises(DeadlineExceededError, match="not ready after waiting 0.01 secs"):
        sm.wait_for_session("", max_wait_secs=0.01)
    with pytest.raises(InvalidArgumentError, match="you must also pass a local_init_op"):
        manager(ready_for_local_init_op=tf.no_op())


def test_a_scaffold_finds_its_parts_or_makes_them(variables):
    init, keys = tf.global_variables_initializer(), tf.GraphKeys
    tf.add_to_collection(keys.INIT_OP, init)
    mine = tf.train.Saver()
    scaffold = tf.train.Scaffold(saver=mine).finalize()
    assert scaffold.init_op is init and scaffold.saver is mine and tf.get_collection(keys.SAVERS) == []
    assert [scaffold.ready_op] == tf.get_collection(keys.READY_OP)
    assert [scaffold.ready_for_local_init_op] == tf.get_collection(keys.READY_FOR_LOCAL_INIT_OP)
    assert [scaffold.local_init_op] == tf.get_collection(keys.LOCAL_INIT_OP)
    assert tf.get_default_graph().finalized and scaffold.summary_op is None
    tf.get_default_graph()._unsafe_unfinalize()
    copy = tf.train.Scaffold(init_feed_dict={}, copy_from_scaffold=scaffold)
    assert (copy.init_op, copy.saver, copy.init_feed_dict, copy.init_fn) == (init, mine, {}, None)
    tf.add_to_collection(keys.INIT_OP, tf.no_op())
    with pytest.raises(FailedPreconditionError, match='More than one item in the collection "init_op"'):
        tf.train.Scaffold().finalize()
    with pytest.raises(InvalidArgumentError, match="is not a Scaffold"):
        tf.train.Scaffold(copy_from_scaffold="another")
