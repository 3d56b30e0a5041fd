"""Each hook does its work at the steps at which TensorFlow's does."""

from __future__ import annotations

import json
import logging
import re

import graphdock as tf
import pytest
from google.protobuf import text_format
from graphdock.errors import FailedPreconditionError, InvalidArgumentError, OutOfRangeError


@pytest.fixture
def train():
    with tf.Graph().as_default():
        x = tf.get_variable("x", initializer=1.0)
        step = tf.train.get_or_create_global_step()
        yield tf.train.GradientDescentOptimizer(0.25).minimize(tf.square(x, name="loss"), global_step=step)


def run(op, *hooks, steps=5):
    with tf.train.MonitoredSession(hooks=[*hooks, tf.train.StopAtStepHook(num_steps=steps)]) as sess:
        while not sess.should_stop():
            sess.run(op)


def test_a_timer_of_steps_and_of_seconds(monkeypatch):
    timer = tf.train.SecondOrStepTimer(every_steps=3)
    due = []
    for step in range(1, 12):
        if timer.should_trigger_for_step(step):
            due.append(step)
            assert timer.update_last_triggered_step(step)[1] == (3 if due[1:] else None)
            assert not timer.should_trigger_for_step(step)
    assert due == [1, 4, 7, 10] and timer.last_triggered_step() == 10
    timer.reset()
    assert timer.last_triggered_step() is None and timer.should_trigger_for_step(10)
    from graphdock_tf1.train.hooks import timer as module

    now = [100.0]
    monkeypatch.setattr(module.time, "time", lambda: now[0])
    timer = tf.train.SecondOrStepTimer(every_secs=2.0)
    timer.update_last_triggered_step(5)
    now[0] = 101.9
    assert not timer.should_trigger_for_step(9)
    now[0] = 102.0
    assert timer.should_trigger_for_step(6) and not timer.should_trigger_for_step(5)
    assert timer.update_last_triggered_step(6) == (2.0, 1)
    for wrong in ({}, {"every_secs": 1, "every_steps": 1}):
        with pytest.raises(InvalidArgumentError, match="every_secs"):
            tf.train.SecondOrStepTimer(**wrong)


def test_values_are_logged(train, caplog):
    graph = tf.get_default_graph()
    with caplog.at_level(logging.INFO, "graphdock"):
        run(
            train,
            tf.train.LoggingTensorHook(["loss", "x:0"], every_n_iter=2),
            tf.train.LoggingTensorHook(
                {"a": tf.global_variables()[0]}, at_end=True, formatter=lambda v: f"end {v['a']}"
            ),
            tf.train.LoggingTensorHook({"b": "x", "a": "x:0"}, every_n_secs=3600),
        )
    lines = [r.message for r in caplog.records]
    assert [x for x in lines if x.startswith("loss")][0] == "loss = 1.0, x:0 = 0.5"
    later = [re.fullmatch(r"loss = (\S+), x:0 = \S+ \(\d+\.\d{3} sec\)", x) for x in lines if x.startswith("loss")][1:]
    assert [m and m[1] for m in later] == ["0.0625", "0.00390625"]
    assert "end 0.03125" in lines and lines.count("a = 0.5, b = 0.5") == 1
    hook = tf.train.LoggingTensorHook({"tenth": tf.constant(0.1)}, every_n_iter=1)
    with caplog.at_level(logging.INFO, "graphdock"), tf.train.MonitoredSession(hooks=[hook]) as sess:
        sess.run([])
    assert caplog.records[-1].message == "tenth = 0.1"  # a float32's own digits, not those of the double
    for wrong in ({}, {"every_n_iter": 1, "every_n_secs": 1}, {"every_n_iter": 0}):
        with pytest.raises(InvalidArgumentError, match="every_n_iter"):
            tf.train.LoggingTensorHook([], **wrong)
    with tf.Graph().as_default(), pytest.raises(InvalidArgumentError, match="not of the default graph"):
        tf.train.LoggingTensorHook([graph.get_tensor_by_name("loss:0")], every_n_iter=1).begin()
    tf.split(tf.zeros([2]), 2, name="two")
    with pytest.raises(InvalidArgumentError, match="'two' has 2 outputs"):
        tf.train.LoggingTensorHook(["two"], every_n_iter=1).begin()


def test_where_a_loop_stops(train):
    run(train, steps=3)
    with tf.train.MonitoredSession(hooks=[tf.train.StopAtStepHook(last_step=2)]) as sess:
        sess.run(tf.train.get_global_step())
        assert not sess.should_stop()
        sess.run(train)
        sess.run(train)
        assert sess.should_stop()
    for wrong in ({}, {"num_steps": 1, "last_step": 1}):
        with pytest.raises(InvalidArgumentError, match="num_steps or last_step"):
            tf.train.StopAtStepHook(**wrong)
    with (
        tf.Graph().as_default(),
        pytest.raises(FailedPreconditionError, match="Global step should be created to use StopAtStepHook"),
    ):
        tf.train.MonitoredSession(hooks=[tf.train.StopAtStepHook(num_steps=1)])


def test_a_graph_that_grows_between_two_sessions_is_read_after_its_updates(train):
    run(train, steps=1)
    more = tf.train.get_global_step().assign_add(10)
    with tf.train.MonitoredSession(hooks=[tf.train.StopAtStepHook(last_step=10)]) as sess:
        sess.run(more)
        assert sess.should_stop()


def test_a_loss_that_is_nan(train, caplog):
    loss = tf.placeholder_with_default(float("nan"), [])
    with pytest.raises(tf.train.NanLossDuringTrainingError, match="NaN loss during training"):
        run(train, tf.train.NanTensorHook(loss))
    assert issubclass(tf.train.NanLossDuringTrainingError, RuntimeError)
    with tf.train.MonitoredSession(hooks=[tf.train.NanTensorHook(loss, fail_on_nan_loss=False)]) as sess:
        sess.run(train, {loss: 1.0})
        assert not sess.should_stop()
        sess.run(train)
        assert sess.should_stop()
    assert "Model diverged with loss = NaN" in caplog.text


def test_feeds_and_values_at_the_end(train, caplog):
    p = tf.placeholder(tf.float32, [])
    final = tf.train.FinalOpsHook({"double": p * 2}, {p: 4.0})
    with tf.train.MonitoredSession(
        hooks=[tf.train.FeedFnHook(lambda: {p: 3.0}), final, tf.train.FinalOpsHook(None)]
    ) as sess:
        assert sess.run(p) == 3.0
        assert final.final_ops_values is None
    assert final.final_ops_values == {"double": 8.0}

    def no_more():
        raise OutOfRangeError("no more")

    ends = tf.train.FinalOpsHook(tf.py_func(no_more, [], tf.float32))
    with pytest.raises(OutOfRangeError), tf.train.MonitoredSession(hooks=[ends]) as sess:
        sess.run(train)
    assert "no more elements" in caplog.text


def test_a_worker_waits_for_a_global_step(train):
    waits = []
    hook = tf.train.GlobalStepWaiterHook(3)

    class Others(tf.train.SessionRunHook):
        """Other workers train while this one waits."""

        def after_create_session(self, session, coord):
            coord.wait_for_stop = lambda seconds: (waits.append(seconds), session.run(train))[2:]

    with tf.train.MonitoredSession(hooks=[Others(), hook]) as sess:
        assert sess.run("global_step:0") == 3
        sess.run(train)
    assert len(waits) == 3
    with tf.train.MonitoredSession(hooks=[tf.train.GlobalStepWaiterHook(0)]) as sess:
        sess.run(train)


def test_a_worker_that_waits_is_stopped(train):
    """A thread of the session's that fails ends the wait, and the loop gets its error."""

    class Failing(tf.train.SessionRunHook):
        def after_create_session(self, session, coord):
            coord.request_stop(ValueError("a thread failed"))

    with (
        pytest.raises(ValueError, match="a thread failed"),
        tf.train.MonitoredSession(hooks=[Failing(), tf.train.GlobalStepWaiterHook(1 << 40)]) as sess,
    ):
        sess.run(train)


class Listener(tf.train.CheckpointSaverListener):
    def __init__(self, stops_at=None):
        self.calls, self.stops_at = [], stops_at

    def begin(self):
        self.calls.append("begin")

    def before_save(self, session, global_step_value):
        self.calls.append(("before", global_step_value))

    def after_save(self, session, global_step_value):
        self.calls.append(("after", global_step_value))
        return global_step_value == self.stops_at

    def end(self, session, global_step_value):
        self.calls.append(("end", global_step_value))


def test_listeners_of_saves_and_their_wish_to_stop(tmp_path, train):
    listener, folder = Listener(stops_at=4), str(tmp_path / "new")
    tf.add_to_collection(tf.GraphKeys.SAVERS, tf.train.Saver(max_to_keep=2))
    hook = tf.train.CheckpointSaverHook(folder, save_steps=2, listeners=[listener], checkpoint_basename="net")
    run(train, hook, steps=9)
    saves = [(what, step) for step in (0, 2, 4) for what in ("before", "after")]
    assert listener.calls == ["begin", *saves, ("end", 4)]
    assert tf.train.get_checkpoint_state(folder).all_model_checkpoint_paths == [f"{folder}/net-2", f"{folder}/net-4"]
    listener = Listener()
    run(train, tf.train.CheckpointSaverHook(folder, save_secs=3600, listeners=[listener]), steps=3)
    assert [c for c in listener.calls if c[0] == "after"] == [("after", 0), ("after", 3)]
    with pytest.raises(InvalidArgumentError, match="both saver and scaffold"):
        tf.train.CheckpointSaverHook(folder, save_steps=1, saver=1, scaffold=2)
    with tf.Graph().as_default():
        tf.train.create_global_step()
        hook = tf.train.CheckpointSaverHook(folder, save_steps=1)
        with pytest.raises(FailedPreconditionError, match="needs a saver"):
            tf.train.MonitoredSession(tf.train.ChiefSessionCreator(tf.train.Scaffold(saver=tf.train.Saver())), [hook])


def test_steps_are_traced(tmp_path, train):
    run(train, tf.train.ProfilerHook(save_steps=2, output_dir=str(tmp_path)))
    found = sorted(p.name for p in tmp_path.glob("timeline-*"))
    assert found == ["timeline-2.json", "timeline-4.json"]
    events = json.loads((tmp_path / found[0]).read_text())["traceEvents"]
    assert any("GradientDescent" in e["name"] for e in events)


class Writer:
    """A FileWriter that keeps what it is given."""

    def __init__(self):
        self.summaries, self.logs, self.flushed = [], [], 0

    def add_summary(self, summary, global_step=None):
        self.summaries.append((summary, global_step))

    def add_session_log(self, log, global_step=None):
        self.logs.append((log, global_step))

    def flush(self):
        self.flushed += 1


def test_summaries_are_written_at_the_first_step_and_then_every_so_many(train):
    writer, many = Writer(), Writer()
    run(
        train,
        tf.train.SummarySaverHook(save_steps=2, summary_writer=writer, summary_op=tf.constant(b"s")),
        tf.train.SummarySaverHook(
            save_secs=3600, summary_writer=many, summary_op=[tf.constant(b"t"), tf.constant(b"u")]
        ),
        tf.train.SummarySaverHook(save_steps=1, summary_op=tf.constant(b"nobody writes it")),
    )
    assert writer.summaries == [(b"s", 1), (b"s", 3), (b"s", 5)] and writer.flushed == 1
    assert many.summaries == [(b"t", 1), (b"u", 1)]
    for wrong in ({}, {"scaffold": 1, "summary_op": 2}):
        with pytest.raises(InvalidArgumentError, match="scaffold or summary_op"):
            tf.train.SummarySaverHook(save_steps=1, **wrong)


def test_steps_per_second(train, caplog):
    with caplog.at_level(logging.INFO, "graphdock"):
        run(train, tf.train.StepCounterHook(every_n_steps=2))
    rates = [r.message for r in caplog.records if r.message.startswith("global_step/sec: ")]
    assert len(rates) == 2 and all(float(rate.split(": ")[1]) > 0 for rate in rates)
    with tf.train.MonitoredSession(hooks=[tf.train.StepCounterHook()]) as sess:
        for _ in range(8):
            sess.run("x:0")
    assert caplog.text.count("stands still at 0") == 5
    with pytest.raises(InvalidArgumentError, match="exactly one of every_n_steps"):
        tf.train.StepCounterHook(every_n_secs=1)


def test_what_a_training_session_writes_to_its_event_file(tmp_path, train):
    tf.summary.scalar("loss_seen", tf.get_default_graph().get_tensor_by_name("loss:0"))
    with tf.train.MonitoredTrainingSession(
        checkpoint_dir=str(tmp_path),
        save_summaries_steps=2,
        log_step_count_steps=3,
        save_checkpoint_steps=3,
        hooks=[tf.train.StopAtStepHook(last_step=7)],
    ) as sess:
        while not sess.should_stop():
            sess.run(train)
    tf.summary.FileWriterCache.clear()
    (path,) = tmp_path.glob("events.*")
    seen, graphs = [], []
    for event in tf.train.summary_iterator(str(path)):
        graphs += [event.meta_graph_def] if event.meta_graph_def else []
        if event.session_log.status:
            seen.append((event.step, event.session_log.checkpoint_path or event.session_log.status))
        seen += [(event.step, value.tag) for value in event.summary.value]
    saved, rate, loss = str(tmp_path / "model.ckpt"), "global_step/sec", "loss_seen"
    assert seen == [  # what TensorFlow writes
        (0, saved),
        (1, tf.SessionLog.START),
        (1, loss),
        (3, loss),
        (3, saved),
        (4, rate),
        (5, loss),
        (6, saved),
        (7, rate),
        (7, loss),
        (7, saved),
    ]
    (graph,) = map(tf.MetaGraphDef.FromString, graphs)
    assert graph.saver_def.restore_op_name == "save/restore_all" and graph.saver_def.sharded
    assert {"variables", "train_op", "savers", "summary_op"} <= set(graph.collection_def)
    with tf.Graph().as_default():
        text_format.Parse((tmp_path / "graph.pbtxt").read_text(), read := tf.GraphDef())
        tf.import_graph_def(read, name="")
        assert {o.name for o in tf.get_default_graph().get_operations()} >= {"loss", "save/restore_all", "x"}
    with tf.Graph().as_default(), tf.Session() as sess:
        tf.train.import_meta_graph(str(tmp_path / "model.ckpt-7.meta")).restore(sess, str(tmp_path / "model.ckpt-7"))
        assert sess.run("global_step:0") == 7


def test_a_checkpoint_hook_without_graphs(tmp_path, train):
    saver = tf.train.Saver()
    hook = tf.train.CheckpointSaverHook(str(tmp_path), save_steps=2, saver=saver, save_graph_def=False)
    run(train, hook, steps=3)
    assert not [p.name for p in tmp_path.iterdir() if p.suffix in (".meta", ".pbtxt")]
