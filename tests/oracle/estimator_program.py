"""A loop by hand over ``examples/scripts/estimator.py``'s model_fn and batches, for a TensorFlow that has no tf.estimator.

``python estimator_program.py SCRIPT`` prints the lines of the script.
Only names come from the stand-in of ``tf.estimator``: graphs,
sessions, initial values, metrics and steps are TensorFlow's.
"""

from __future__ import annotations

import collections
import runpy
import sys
import types

import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
sys.modules["tensorflow"] = tf
Spec = collections.namedtuple("Spec", "mode predictions loss train_op eval_metric_ops", defaults=(None,) * 4)
modes = types.SimpleNamespace(TRAIN="train", EVAL="eval", PREDICT="infer")
tf.__dict__["estimator"] = types.SimpleNamespace(EstimatorSpec=Spec, ModeKeys=modes)
script = runpy.run_path(sys.argv[1])
model_fn, batches = script["model_fn"], script["batches"]
params = {"rate": 0.1}
values = None


def graph(mode, epochs):
    """A session of a new graph, with the trained values if there are any."""
    tf.reset_default_graph()
    tf.train.get_or_create_global_step()
    spec = model_fn(*batches(epochs), mode, params)
    session = tf.Session()
    session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
    if values is not None:
        for variable in tf.global_variables():
            variable.load(values[variable.op.name], session)
    return session, spec


session, spec = graph(modes.TRAIN, None)
for _ in range(script["STEPS"]):
    loss, _ = session.run([spec.loss, spec.train_op])
    print(f"loss {loss:.6f}")
values = {variable.op.name: session.run(variable) for variable in tf.global_variables()}

session, spec = graph(modes.EVAL, 1)
accuracy, update = spec.eval_metric_ops["accuracy"]
losses = [session.run([spec.loss, update])[0] for _ in range(10)]
mean = sum(losses) / len(losses)
print(f"step {values['global_step']} accuracy {session.run(accuracy):.4f} loss {mean:.6f}")

session, spec = graph(modes.PREDICT, 1)
found = session.run(spec.predictions)
for kind, best in list(zip(found["classes"], found["best"], strict=True))[:3]:
    print(f"class {kind} of logit {best:.6f}")
