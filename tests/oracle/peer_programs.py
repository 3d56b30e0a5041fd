"""Programs that run under TensorFlow and under graphdock, one text for both, and what they leave to compare.

A program sees ``tf``, ``np`` and :class:`Recorder`'s ``facts`` (names, shapes: equal), ``values`` (arrays: close) and ``record``.
This module is run as a script by the peer's Python: it reads programs as JSON and prints a pickle. TensorFlow is the one of this
interpreter, or of the interpreter that ``TENSORFLOW_PYTHON`` names.
"""

from __future__ import annotations

import base64
import json
import os
import pickle
import re
import subprocess
import sys
import zlib

import numpy as np

PYTHON = os.environ.get("TENSORFLOW_PYTHON", sys.executable)

#: Collections whose contents are compared by name.
COLLECTIONS = (
    "losses",
    "regularization_losses",
    "local_variables",
    "metric_variables",
    "model_variables",
    "trainable_variables",
)


def plain(name):
    """A name without versions of op types (``FusedBatchNormV3``), which graphdock has one of."""
    return re.sub(r"(?<=[a-z0-9])V[23](?=[_:/]|$)", "", name)


class Recorder:
    """What one program leaves."""

    def __init__(self, tf):
        self.tf = tf
        self.facts, self.values = {}, {}

    def graph(self):
        """Variables and collections of the graph, as facts."""
        tf = self.tf
        self.facts["variables"] = [
            (v.op.name, v.shape.as_list(), tf.as_dtype(v.dtype).name.replace("_ref", "")) for v in tf.global_variables()
        ]
        for key in COLLECTIONS:
            self.facts[key] = [plain(t.name) for t in tf.get_collection(key)]
        self.facts["update_ops"] = len(tf.get_collection("update_ops"))

    def fill(self, session):
        """Give each variable numbers that its name decides: positive ones to a variance."""
        tf = self.tf
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        for v in tf.global_variables():
            if not tf.as_dtype(v.dtype).name.startswith("float"):
                continue
            drawn = np.random.RandomState(zlib.crc32(v.op.name.encode())).normal(size=v.shape.as_list()) * 0.4
            drawn = np.abs(drawn) + 0.5 if "variance" in v.op.name else drawn
            session.run(tf.assign(v, drawn.astype(np.float32)))

    def record(self, y, feed=None, facts=True):
        """A network's output: its name and shape, its values and gradients, then what its updates leave in variables."""
        tf = self.tf
        if facts:
            self.facts["y"] = plain(y.name), y.shape.as_list()
        self.graph()
        losses = tf.get_collection("losses") + tf.get_collection("regularization_losses")
        total = tf.add_n([tf.reduce_sum(tf.sin(y * 2.0 + 0.5)), *losses])
        trained = tf.trainable_variables()
        grads = tf.gradients(total, trained)
        with tf.Session() as session:
            self.fill(session)
            for name, t in [("y", y), ("losses", losses), ("grads", [g for g in grads if g is not None])]:
                self.values[name] = session.run(t, feed)
            self.facts["without gradient"] = [v.op.name for v, g in zip(trained, grads, strict=True) if g is None]
            session.run(tf.get_collection("update_ops"), feed)
            self.values["after"] = session.run(tf.global_variables())


def run(tf, programs):
    """What each program leaves: name -> (facts, values), or the error's kind where one ends with an error."""
    left = {}
    for name, text in programs.items():
        recorder = Recorder(tf)
        with tf.Graph().as_default():
            tf.set_random_seed(1)
            space = {
                "tf": tf,
                "np": np,
                "facts": recorder.facts,
                "values": recorder.values,
                "record": recorder.record,
                "plain": plain,
                "recorder": recorder,
            }
            exec(compile(text, name, "exec"), space)
        left[name] = recorder.facts, recorder.values
    return left


def peer(programs):
    """The same of TensorFlow, in a process of its own; None where there is none."""
    env = dict(os.environ, TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="-1", PYTHONWARNINGS="ignore")
    env.pop("PYTHONPATH", None)
    if subprocess.run([PYTHON, "-c", "import tensorflow"], capture_output=True, env=env).returncode:
        return None
    done = subprocess.run([PYTHON, __file__], input=json.dumps(programs), capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr[-4000:]
    return pickle.loads(base64.b64decode(done.stdout.splitlines()[-1]))


def flat(value):
    """Arrays of a structure of them, in order."""
    if isinstance(value, (list, tuple)):
        return [a for v in value for a in flat(v)]
    if isinstance(value, dict):
        return [a for k in sorted(value) for a in flat(value[k])]
    return [np.asarray(value)]


def compare(ours, theirs, rtol=2e-4, atol=2e-5):
    """Hold facts to be equal and values to be close."""
    for name in {**ours[0], **theirs[0]}:
        assert ours[0].get(name) == theirs[0].get(name), name
    assert list(ours[1]) == list(theirs[1])
    for name, value in ours[1].items():
        a, b = flat(value), flat(theirs[1][name])
        assert [v.shape for v in a] == [v.shape for v in b], name
        for x, y in zip(a, b, strict=True):
            np.testing.assert_allclose(x, y, rtol=rtol, atol=atol, err_msg=name)


if __name__ == "__main__":
    import tensorflow.compat.v1 as tensorflow

    tensorflow.disable_v2_behavior()
    tensorflow.logging.set_verbosity(tensorflow.logging.ERROR)
    print(base64.b64encode(pickle.dumps(run(tensorflow, json.loads(sys.stdin.read())))).decode())
