"""Supervisor: sessions made ready, threads that write, and the end."""

from __future__ import annotations

import threading

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import FailedPreconditionError


@pytest.fixture
def train():
    with tf.Graph().as_default():
        x = tf.get_variable("x", initializer=1.0)
        step = tf.train.get_or_create_global_step()
        yield tf.train.GradientDescentOptimizer(0.25).minimize(tf.square(x), global_step=step)


def names(folder):
    return sorted({p.name.split(".data")[0] for p in folder.iterdir() if not p.name.startswith("events")})


def test_it_initialises_saves_and_restores(tmp_path, train):
    inits = []
    for last in (3, 6):
        with tf.get_default_graph().as_default():
            tf.get_default_graph()._unsafe_unfinalize()
            sv = tf.train.Supervisor(
                logdir=str(tmp_path), save_model_secs=0, save_summaries_secs=0, init_fn=lambda s: inits.append(1)
            )
        assert tf.get_default_graph().finalized and sv.save_path == str(tmp_path / "model.ckpt")
        with sv.managed_session() as sess:
            for _ in range(3):
                sess.run(train)
            assert tf.train.global_step(sess, sv.global_step) == last
            sv.saver.save(sess, sv.save_path, global_step=sv.global_step)
            sv.request_stop()
            assert sv.should_stop()
    assert inits == [1] and tf.train.load_variable(str(tmp_path), "x") == np.float32(0.5**6)
    assert {"checkpoint", "model.ckpt-3.index", "model.ckpt-6.index"} <= set(names(tmp_path))


def test_its_threads_save(tmp_path, train):
    saved = threading.Event()

    class Saver(tf.train.Saver):
        def save(self, *args, **kwargs):
            path = super().save(*args, **kwargs)
            saved.set()
            return path

    sv = tf.train.Supervisor(logdir=str(tmp_path), save_model_secs=3600, save_summaries_secs=0, saver=Saver())
    with sv.managed_session() as sess:
        assert saved.wait(60), "the first one at once"
        calls = []
        sv.loop(0.001, lambda: (calls.append(1), sv.request_stop())).join(60)
        sv.wait_for_stop()
        assert calls == [1] and sv.should_stop() and sess.run("x:0") == 1.0
    assert tf.train.latest_checkpoint(str(tmp_path)) == str(tmp_path / "model.ckpt-0")


def test_errors_of_the_block_and_of_threads(train):
    sv = tf.train.Supervisor(logdir=None)
    with pytest.raises(ValueError, match="in the block"), sv.managed_session() as sess:
        raise ValueError("in the block")
    with pytest.raises(FailedPreconditionError, match="closed"):
        sess.run(train)
    with sv.managed_session():
        raise tf.errors.OutOfRangeError(None, None, "ends it quietly")
    with pytest.raises(ZeroDivisionError), sv.managed_session():
        sv.loop(None, lambda: 1 // 0)
        sv.wait_for_stop()
    with pytest.raises(KeyboardInterrupt), sv.managed_session() as sess:
        raise KeyboardInterrupt
    with pytest.raises(FailedPreconditionError, match="closed"):
        sess.run(train)
    with pytest.raises(FailedPreconditionError, match="needs a|requires a summary writer"):
        sv.summary_computed(None, b"")


def test_a_loop_goes_on_after_an_aborted_step(train):
    sv, tries = tf.train.Supervisor(logdir=None), []

    def step(sess, name):
        sess.run(train)
        tries.append(name)
        if len(tries) == 1:
            raise tf.errors.AbortedError(None, None, "boom")
        sv.request_stop()

    tf.train.basic_train_loop(sv, step, args=("a",))
    assert tries == ["a", "a"]


def test_parts_that_are_given_or_found(train):
    ready, init = tf.report_uninitialized_variables(), tf.global_variables_initializer()
    tf.add_to_collection(tf.GraphKeys.INIT_OP, init)
    sv = tf.train.Supervisor(ready_op=ready, saver=None, is_chief=False, logdir="never made", init_fn=None)
    assert (sv.ready_op, sv.init_op, sv.saver, sv.save_path) == (ready, init, None, None)
    assert sv.global_step is tf.train.get_global_step()
    with pytest.raises(FailedPreconditionError, match="Only chief supervisor"):
        sv.start_standard_services(None)
