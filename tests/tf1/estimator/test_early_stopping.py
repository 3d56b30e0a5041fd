"""Hooks that end a training early, for what its evaluations were, or a function says."""

from __future__ import annotations

import json
import os

import graphdock as tf
import pytest
from graphdock_tf1.estimator.early_stopping import read_eval_metrics

from tests.tf1.estimator.conftest import batches, linear_model

stop = tf.estimator.experimental


def write(folder, values, tag="error"):
    writer = tf.summary.FileWriter(folder)
    for step, value in values.items():
        writer.add_summary(tf.Summary(value=[tf.Summary.Value(tag=tag, simple_value=value)]), step)
    writer.close()


def steps_until(estimator, hook):
    estimator.train(batches(), [hook], max_steps=9)
    return int(estimator.get_variable_value("global_step"))


def test_evaluations_are_read_in_the_order_of_steps(tmp_path) -> None:
    folder = str(tmp_path / "eval")
    assert read_eval_metrics(folder) == {}
    write(folder, {20: 0.5, 10: 0.75})
    write(folder, {10: 2.0}, "other")
    assert list(read_eval_metrics(folder).items()) == [(10, {"error": 0.75, "other": 2.0}), (20, {"error": 0.5})]


@pytest.mark.parametrize(
    ("hook", "limit", "values", "stops"),
    [
        ("stop_if_higher_hook", 0.8, {1: 0.5, 2: 0.9}, True),
        ("stop_if_higher_hook", 0.9, {1: 0.5, 2: 0.75}, False),
        ("stop_if_lower_hook", 0.1, {1: 0.5, 2: 0.05}, True),
        ("stop_if_lower_hook", 0.1, {1: 0.05, 2: 0.5}, True),
        ("stop_if_no_decrease_hook", 10, {1: 0.5, 6: 0.6, 11: 0.5}, True),
        ("stop_if_no_decrease_hook", 10, {1: 0.5, 6: 0.4, 11: 0.5}, False),
        ("stop_if_no_increase_hook", 10, {1: 0.5, 6: 0.4, 11: 0.5}, True),
        ("stop_if_no_increase_hook", 10, {1: 0.5, 6: 0.6, 11: 0.5}, False),
    ],
)
@pytest.mark.sampled(2)
def test_a_training_stops_at_its_first_look_for_what_evaluations_were(estimator, hook, limit, values, stops) -> None:
    write(estimator.eval_dir(), values)
    made = getattr(stop, hook)(estimator, "error", limit, run_every_secs=None, run_every_steps=1)
    assert steps_until(estimator, made) == (1 if stops else 9)


def test_early_evaluations_do_not_count_before_a_step(estimator, tmp_path) -> None:
    write(str(tmp_path / "elsewhere"), {1: 0.9, 5: 0.1})
    arguments = {"eval_dir": str(tmp_path / "elsewhere"), "run_every_secs": None, "run_every_steps": 1}
    late = stop.stop_if_higher_hook(estimator, "error", 0.5, min_steps=2, **arguments)
    assert steps_until(estimator, late) == 9
    with pytest.raises(KeyError, match="accuracy"):
        estimator.train(batches(), [stop.stop_if_lower_hook(estimator, "accuracy", 1.0, **arguments)], steps=1)


def test_a_function_is_asked_every_so_many_steps(estimator) -> None:
    asked = []
    hook = stop.make_early_stopping_hook(
        estimator, lambda: bool(asked.append(1)) or len(asked) == 3, run_every_secs=None, run_every_steps=2
    )
    assert steps_until(estimator, hook) == 5 and len(asked) == 3


@pytest.fixture
def worker(monkeypatch, tmp_path):
    """The Estimator of a task that is not the chief."""
    cluster = {"chief": ["localhost:1"], "worker": ["localhost:2"], "ps": ["localhost:3"]}
    with monkeypatch.context() as patch:
        patch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": {"type": "worker", "index": 0}}))
        config = tf.estimator.RunConfig()
    return tf.estimator.Estimator(linear_model, str(tmp_path / "model"), config, {"rate": 0.1})


def test_the_others_stop_when_the_chief_has_told_them(estimator, worker) -> None:
    with tf.Graph().as_default():
        more = tf.train.get_or_create_global_step().assign_add(1)
        hooks = [
            stop.make_early_stopping_hook(estimator, lambda: True, None, 1),
            stop.make_early_stopping_hook(worker, lambda: False, None, 1),
        ]
        with tf.train.SingularMonitoredSession([hooks[0]]) as told:
            told.run(more)
            assert told.should_stop()
        with tf.train.SingularMonitoredSession([hooks[1]]) as session:
            session.run(more)
            assert not session.should_stop()
            (told,) = (v for v in tf.global_variables() if v.op.name == "signal_early_stopping/STOP")
            told.load(True, session.raw_session())
            session.run(more)
            assert session.should_stop()


def test_a_worker_waits_for_the_checkpoint_of_the_last_step(estimator, worker, monkeypatch) -> None:
    assert isinstance(stop.make_stop_at_checkpoint_step_hook(estimator, 3), tf.train.StopAtStepHook)
    hook, waits = stop.make_stop_at_checkpoint_step_hook(worker, 2, 7.0), []

    def wait(seconds):
        waits.append(seconds)
        estimator.train(batches(), max_steps=len(waits))

    monkeypatch.setattr("graphdock_tf1.estimator.early_stopping.time.sleep", wait)
    with tf.Graph().as_default():
        more = tf.train.get_or_create_global_step().assign_add(1)
        with tf.train.SingularMonitoredSession([hook]) as session:
            session.run(more)
            assert not session.should_stop() and not waits
            session.run(more)
            assert session.should_stop()
    assert waits == [7.0, 7.0] and os.path.exists(estimator.latest_checkpoint() + ".index")


def test_errors(estimator) -> None:
    with pytest.raises(TypeError, match=r"must have type `tf.estimator.Estimator`"):
        stop.make_early_stopping_hook("model", lambda: True)
    with pytest.raises(ValueError, match="Only one of"):
        stop.make_early_stopping_hook(estimator, lambda: True, 60, 5)
