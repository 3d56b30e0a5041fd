"""A program that runs under TensorFlow and under graphdock: ``python supervision_program.py tensorflow FOLDER``.

It prints in which order hooks are called, what is logged, which files there are, and what is raised.
"""

from __future__ import annotations

import importlib
import logging
import os
import re
import sys
from pathlib import Path

from google.protobuf import text_format

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
FRAMEWORK, FOLDER = sys.argv[1:]
tf = importlib.import_module("graphdock" if FRAMEWORK == "graphdock" else "tensorflow.compat.v1")
if FRAMEWORK == "tensorflow":
    tf.disable_v2_behavior()

out = []
QUIET = {"save_summaries_steps": None, "save_summaries_secs": None, "log_step_count_steps": None}


class Log(logging.Handler):
    def emit(self, record):
        text = record.getMessage()
        if "deprecated" not in text:
            out.append(("log", text.partition(" This may be due")[0].partition(" The session is closed")[0]))


log = logging.getLogger(FRAMEWORK)
log.handlers, log.propagate = [Log()], False
log.setLevel(logging.INFO)


class Recorder(tf.train.SessionRunHook):
    def __init__(self, name, fails_at=0):
        self.name, self.runs, self.fails_at = name, 0, fails_at

    def begin(self):
        out.append((self.name, "begin"))

    def after_create_session(self, session, coord):
        out.append((self.name, "created", int(session.run("global_step:0"))))

    def before_run(self, run_context):
        out.append((self.name, "before"))
        return tf.train.SessionRunArgs({"loss": "loss:0"}) if self.name == "b" else None

    def after_run(self, run_context, run_values):
        out.append((self.name, "after", run_values.results and {k: float(v) for k, v in run_values.results.items()}))
        self.runs += 1
        if self.runs == self.fails_at:
            raise tf.errors.AbortedError(None, None, "boom")

    def end(self, session):
        out.append((self.name, "end", int(session.run("global_step:0"))))


class Listener(tf.train.CheckpointSaverListener):
    def begin(self):
        out.append("listener begin")

    def before_save(self, session, global_step_value):
        out.append(("listener before", int(global_step_value)))

    def after_save(self, session, global_step_value):
        out.append(("listener after", int(global_step_value)))

    def end(self, session, global_step_value):
        out.append(("listener end", int(global_step_value)))


def build():
    tf.reset_default_graph()
    x = tf.get_variable("x", initializer=1.0)
    tf.get_variable("l", initializer=3.0, trainable=False, collections=[tf.GraphKeys.LOCAL_VARIABLES])
    step = tf.train.get_or_create_global_step()
    return tf.train.GradientDescentOptimizer(0.1).minimize(tf.square(x, name="loss"), global_step=step)


def train(session, op):
    with session as sess:
        while not sess.should_stop():
            sess.run(op)


def files(folder):
    names = {re.sub(r"\.[0-9a-f]{8}\.safetensors", "", p.name) for p in Path(folder).iterdir()}
    out.append(sorted(n for n in names if not n.startswith("events")))


def raised(work):
    try:
        work()
    except BaseException as error:  # noqa: BLE001 - which one it is is the answer
        text = str(error).split("\n")[0].partition(" Conflict(s)")[0]
        out.append(text or type(error).__name__)
    out.append(("finalized", tf.get_default_graph().finalized))


def first_session(scaffold, session):
    out.append(("init_fn", float(session.run("x:0"))))


out.append("== saving by step, then resuming")
for save_steps, stop in ((4, tf.train.StopAtStepHook(num_steps=6)), (3, tf.train.StopAtStepHook(last_step=11))):
    op = build()
    shown = tf.train.LoggingTensorHook(["loss"], every_n_iter=3, formatter=lambda values: f"values of {sorted(values)}")
    scaffold = tf.train.Scaffold(init_fn=first_session)
    hooks = [Recorder("a"), stop, shown, Recorder("b")]
    train(
        tf.train.MonitoredTrainingSession("", True, FOLDER, scaffold, hooks, save_checkpoint_steps=save_steps, **QUIET),
        op,
    )
    files(FOLDER)
    out.append(Path(FOLDER, "checkpoint").read_text())

out.append("== listeners")
op, scaffold = build(), tf.train.Scaffold()
saves = tf.train.CheckpointSaverHook(FOLDER + "/new", save_steps=2, scaffold=scaffold, listeners=[Listener()])
train(tf.train.SingularMonitoredSession([saves, tf.train.StopAtStepHook(last_step=5)], scaffold), op)

out.append("== a step that fails and may be tried again")
op, hooks = build(), [Recorder("f", fails_at=3), tf.train.StopAtStepHook(last_step=15)]
train(tf.train.MonitoredTrainingSession("", True, FOLDER, None, hooks, save_checkpoint_steps=1, **QUIET), op)

out.append("== errors")
for error in (tf.errors.OutOfRangeError(None, None, "end"), StopIteration("x"), ValueError("v"), KeyboardInterrupt()):
    op = build()

    def block(op=op, error=error):
        with tf.train.MonitoredSession(hooks=[Recorder("e")]) as sess:
            sess.run(op)
            raise error

    raised(block)

for fails in (True, False):
    op = build()
    nan = tf.placeholder_with_default(float("nan"), [])

    def block(op=op, nan=nan, fails=fails):
        with tf.train.MonitoredSession(hooks=[tf.train.NanTensorHook(nan, fails)]) as sess:
            sess.run(op)
            out.append(sess.should_stop())
            sess.run(op)

    raised(block)

build()
raised(
    lambda: tf.train.MonitoredSession(tf.train.ChiefSessionCreator(tf.train.Scaffold(init_op=tf.no_op(), init_fn=None)))
)
tf.reset_default_graph()
raised(lambda: tf.train.MonitoredSession(hooks=[tf.train.StopAtStepHook(num_steps=1)]))

out.append("== feeds, steps of a function, values at the end")
build()
p = tf.placeholder(tf.float32, [], name="p")
final = tf.train.FinalOpsHook([p * 2], {p: 4.0})
with tf.train.MonitoredSession(hooks=[tf.train.FeedFnHook(lambda: {p: 3.0}), final]) as sess:
    out.append(float(sess.run(p)))
    raised(lambda: out.append(sess.run(p, {p: 1.0})))
    both = sess.run_step_fn(lambda step_context: step_context.session.run(p, {p: 7.0}) + step_context.run_with_hooks(p))
    out.append(float(both))
out.append([float(v) for v in final.final_ops_values])

out.append("== timelines")
op, folder = build(), Path(FOLDER, "timelines")
folder.mkdir()
train(tf.train.MonitoredSession(None, [tf.train.ProfilerHook(2, None, str(folder)), tf.train.StopAtStepHook(5)]), op)
files(folder)

out.append("== a supervisor")
for _ in range(2):
    op = build()
    more = {"save_summaries_secs": 0, "save_model_secs": 0, "summary_op": None}
    sv = tf.train.Supervisor(logdir=FOLDER + "/supervised", init_fn=lambda s: out.append("init_fn"), **more)
    with sv.managed_session() as sess:
        for _ in range(3):
            sess.run(op)
        out.append(int(tf.train.global_step(sess, sv.global_step)))
        out.append(sv.saver.save(sess, sv.save_path, global_step=sv.global_step))
        sv.request_stop()
        out.append(sv.should_stop())
    files(FOLDER + "/supervised")
for error in (ValueError("v"), tf.errors.OutOfRangeError(None, None, "quiet")):
    build()

    def block(error=error):
        with tf.train.Supervisor(logdir=None).managed_session():
            raise error

    raised(block)

out.append("== event files")
op = build()
tf.summary.scalar("loss_seen", tf.get_default_graph().get_tensor_by_name("loss:0"))
hooks, often = [tf.train.StopAtStepHook(last_step=7)], {"save_summaries_steps": 2, "log_step_count_steps": 3}
log.setLevel(logging.ERROR)  # TensorFlow takes a step that it read twice for one that stands still
train(tf.train.MonitoredTrainingSession("", True, FOLDER + "/seen", None, hooks, save_checkpoint_steps=3, **often), op)
for path in sorted(Path(FOLDER, "seen").glob("events.*")):
    for event in tf.train.summary_iterator(str(path)):
        if event.session_log.status:
            out.append((event.step, "log", int(event.session_log.status), event.session_log.checkpoint_path))
        for value in event.summary.value:
            out.append((event.step, value.tag))

out.append("== graphs")
for folder in (Path(FOLDER, "seen"), Path(FOLDER, "supervised")):
    # the last one of each folder: TensorFlow's cache of writers adds one before the graph is whole
    events = [e for path in sorted(folder.glob("events*")) for e in tf.train.summary_iterator(str(path))]
    (folder / "event.meta").write_bytes([e.meta_graph_def for e in events if e.meta_graph_def][-1])
for path in sorted([*Path(FOLDER, "seen").glob("*"), *Path(FOLDER, "supervised").glob("*")]):
    if path.suffix == ".pbtxt":
        found = text_format.Parse(path.read_text(), tf.GraphDef())
        shapes = all("_output_shapes" in node.attr for node in found.node if node.op == "Const")
        out.append((path.name, [field.name for field, _ in found.ListFields()], shapes))
    if path.suffix == ".meta":
        found = tf.MetaGraphDef.FromString(path.read_bytes())
        out.append(([field.name for field, _ in found.ListFields()], str(found.saver_def).split()))
        for key, held in sorted(found.collection_def.items()):
            if key != "cond_context":  # TensorFlow's note on its own control flow
                kind = held.WhichOneof("kind")
                out.append((key, kind, len(getattr(held, kind).value)))

for line in out:
    print(str(line).replace(FOLDER, "FOLDER"))
