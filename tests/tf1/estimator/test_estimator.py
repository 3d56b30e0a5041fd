"""``tf.estimator.Estimator`` over its whole life: training, evaluation, prediction, files, errors."""

from __future__ import annotations

import os

import graphdock as tf
import numpy as np
import pytest

from tests.tf1.estimator.conftest import X, Y, batches, linear_model

#: The losses of TensorFlow 2.21's session over the same batches and rule, without an Estimator.
TENSORFLOW = [
    0.1838843,
    0.5345528,
    0.2839571,
    0.03333936,
    0.04663753,
    0.008694435,
    0.001062448,
    0.0003773614,
    0.00110331,
    0.0002042869,
    0.0008595908,
    0.0004618867,
    9.311176e-05,
    0.0001081881,
    1.418736e-05,
    1.096323e-05,
    2.767273e-06,
    1.595557e-06,
    2.491188e-07,
    1.073299e-06,
]


class Losses(tf.train.SessionRunHook):
    """Keeps the loss of each step."""

    def __init__(self) -> None:
        self.seen: list[float] = []

    def before_run(self, run_context):
        return tf.train.SessionRunArgs(tf.get_collection(tf.GraphKeys.LOSSES)[0])

    def after_run(self, run_context, run_values):
        self.seen.append(float(run_values.results))


def test_it_trains_as_a_loop_does_and_goes_on_where_it_ended(estimator) -> None:
    losses = Losses()
    assert estimator.train(batches(), [losses], steps=4) is estimator
    estimator.train(batches(), max_steps=3)  # reached
    assert estimator.get_variable_value("global_step") == 4
    np.testing.assert_allclose(losses.seen, TENSORFLOW[:4], rtol=1e-5)
    assert estimator.train(batches(1), [losses]).get_variable_value("global_step") == 6
    assert len(losses.seen) == 6
    assert sorted(estimator.get_variable_names()) == ["b", "b/Momentum", "global_step", "w", "w/Momentum"]


def test_losses_are_those_of_a_session(estimator) -> None:
    losses = Losses()
    estimator.train(batches(), [losses], max_steps=20)
    np.testing.assert_allclose(losses.seen, TENSORFLOW, rtol=1e-4, atol=1e-6)


def test_it_evaluates_and_writes_what_it_found(estimator) -> None:
    start = estimator.evaluate(batches(1), name="start")
    assert start["global_step"] == 0
    np.testing.assert_allclose(start["error"], np.abs(Y).mean(), rtol=1e-6)
    estimator.train(batches(), steps=30)
    found = estimator.evaluate(batches(1))
    w, b = (estimator.get_variable_value(name) for name in "wb")
    errors = X @ w + b - Y
    np.testing.assert_allclose(found["error"], np.abs(errors).mean(), rtol=1e-5)
    # the mean of the two batches' losses, of 4 and of 2 rows
    np.testing.assert_allclose(
        found["loss"], (np.square(errors[:4]).mean() + np.square(errors[4:]).mean()) / 2, rtol=1e-5
    )
    assert found["global_step"] == 30 and found["loss"] < start["loss"] / 10
    assert estimator.evaluate(batches(), steps=1)["loss"] == pytest.approx(np.square(errors[:4]).mean(), rel=1e-5)
    (file,) = os.listdir(estimator.eval_dir("start"))
    (event,) = [
        e for e in tf.train.summary_iterator(os.path.join(estimator.eval_dir("start"), file)) if e.summary.value
    ]
    assert {v.tag: v.simple_value for v in event.summary.value} == {n: start[n] for n in ("error", "loss")}


def test_it_predicts_row_by_row_whatever_happens_between(estimator) -> None:
    estimator.train(batches(), steps=5)
    wanted = X @ estimator.get_variable_value("w") + estimator.get_variable_value("b")
    rows = estimator.predict(tf.estimator.inputs.numpy_input_fn({"x": X}, batch_size=4, shuffle=False))
    graph = tf.Graph()
    with graph.as_default():  # a generator is not in its own graph
        first = next(rows)
        assert tf.get_default_graph() is graph
        got = [first, *rows]
    np.testing.assert_allclose([r["y"] for r in got], wanted, rtol=1e-6)
    np.testing.assert_allclose([r["twice"] for r in got], 2 * wanted, rtol=1e-6)
    again = list(estimator.predict(lambda: tf.data.Dataset.from_tensors(X), "y", yield_single_examples=False))
    assert len(again) == 1 and set(again[0]) == {"y"}
    with pytest.raises(ValueError, match="Expected to run at least one output"):
        next(estimator.predict(lambda: tf.constant(X), ["other"]))


def test_datasets_and_early_ends(estimator) -> None:
    data = lambda: tf.data.Dataset.from_tensor_slices((X, Y)).batch(3)  # noqa: E731
    assert estimator.train(data).get_variable_value("global_step") == 2
    assert estimator.evaluate(data)["global_step"] == 2


def test_warm_start_begins_with_the_values_of_a_checkpoint(estimator, tmp_path) -> None:
    estimator.train(batches(), steps=5)
    other = tf.estimator.Estimator(
        linear_model, str(tmp_path / "other"), params={"rate": 0.0}, warm_start_from=estimator.model_dir
    )
    other.train(batches(), steps=1)
    np.testing.assert_array_equal(other.get_variable_value("w"), estimator.get_variable_value("w"))


def test_a_saved_model_predicts(estimator, tmp_path) -> None:
    spec = {"x": tf.FixedLenFeature([2], tf.float32)}
    receivers = {
        "parsed": tf.estimator.export.build_parsing_serving_input_receiver_fn(spec),
        "raw": lambda: tf.estimator.export.build_raw_serving_input_receiver_fn({"x": tf.constant(X)})(),
    }
    with pytest.raises(ValueError, match="Couldn't find trained model"):
        estimator.export_saved_model(str(tmp_path), receivers["raw"])
    estimator.train(batches(), steps=5)
    wanted = X @ estimator.get_variable_value("w") + estimator.get_variable_value("b")
    message = tf.train.Example()
    message.features.feature["x"].float_list.value.extend(X[1])
    for name, receiver in receivers.items():
        folder = estimator.export_savedmodel(str(tmp_path / name), receiver)
        assert isinstance(folder, bytes) and os.path.basename(folder).isdigit()
        with tf.Graph().as_default(), tf.Session() as sess:
            loaded = tf.saved_model.load(sess, [tf.saved_model.SERVING], os.fsdecode(folder))
            signature = loaded.signature_def["serving_default"]
            fed = {"parsed": ("examples", [message.SerializeToString()]), "raw": ("x", X[1:2])}[name]
            got = sess.run(signature.outputs["y"].name, {signature.inputs[fed[0]].name: fed[1]})
        np.testing.assert_allclose(got, wanted[1:2], rtol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"model_fn": None}, "model_fn must be provided"),
        ({"model_fn": lambda labels: None}, "must include features argument"),
        ({"model_fn": lambda features, x: None}, r"has following not expected args: \['x'\]"),
        ({"model_fn": lambda features: None, "params": {"a": 1}}, "does not include params argument"),
        ({"model_fn": linear_model, "config": {}}, "config must be an instance of RunConfig"),
        (
            {"model_fn": linear_model, "model_dir": "a", "config": tf.estimator.RunConfig(model_dir="b")},
            "`model_dir` are set both in constructor and `RunConfig`",
        ),
    ],
)
def test_wrong_models_are_told(arguments, words) -> None:
    with pytest.raises(ValueError, match=words):
        tf.estimator.Estimator(**arguments)


def test_wrong_calls_are_told(estimator, tmp_path) -> None:
    for arguments, words in (
        ({"steps": 1, "max_steps": 2}, "Can not provide both steps and max_steps"),
        ({"steps": 0}, "Must specify steps > 0, given: 0"),
        ({"max_steps": -1}, "Must specify max_steps > 0, given: -1"),
    ):
        with pytest.raises(ValueError, match=words):
            estimator.train(batches(), **arguments)
    with pytest.raises(ValueError, match="Must specify steps > 0"):
        estimator.evaluate(batches(), steps=0)
    with pytest.raises(TypeError, match="All hooks must be SessionRunHook instances"):
        estimator.train(batches(), hooks=[1])
    none = tf.estimator.Estimator(lambda features, labels: None, str(tmp_path / "none"))
    with pytest.raises(ValueError, match="model_fn should return an EstimatorSpec"):
        none.train(batches())
    alone = tf.estimator.Estimator(lambda features: None, str(tmp_path / "alone"))
    with pytest.raises(ValueError, match="model_fn does not take labels"):
        alone.train(batches())
