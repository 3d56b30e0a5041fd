"""SavedModels: written, loaded, and what is in their signatures. That TensorFlow loads them: tests/oracle."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import (
    AlreadyExistsError,
    ArgumentTypeError,
    DTypeError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
)

pytest.importorskip("google.protobuf")
X = np.array([[1.0, -2.0]], np.float32)


@pytest.fixture
def graph():
    with tf.Graph().as_default() as made:
        yield made


@pytest.fixture
def program(graph):
    x = tf.placeholder(tf.float32, [None, 2], name="x")
    w = tf.get_variable(
        "w", [2, 3], initializer=tf.random_normal_initializer(seed=1), partitioner=tf.fixed_size_partitioner(2)
    )
    words = tf.get_variable("words", initializer=tf.constant(["a", "bc"]), trainable=False)
    y = tf.matmul(x, w)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        yield sess, x, y, words


def test_simple_save_and_load(program, tmp_path):
    sess, x, y, words = program
    folder = str(tmp_path / "model")
    tf.saved_model.simple_save(sess, folder, {"in": x}, {"out": y, "words": words.value()})
    assert tf.saved_model.contains_saved_model(folder) and not tf.saved_model.contains_saved_model(str(tmp_path))
    with tf.Graph().as_default(), tf.Session() as other:
        meta = tf.saved_model.loader.load(other, [tf.saved_model.tag_constants.SERVING], folder, import_scope="m")
        signature = meta.signature_def[tf.saved_model.signature_constants.DEFAULT_SERVING_SIGNATURE_DEF_KEY]
        given = tf.saved_model.get_tensor_from_tensor_info(signature.inputs["in"], import_scope="m")
        found = other.run("m/" + signature.outputs["out"].name, {given: X})
        np.testing.assert_array_equal(found, sess.run(y, {x: X}))
        assert other.run("m/words:0").tolist() == [b"a", b"bc"]
        assert tf.saved_model.is_valid_signature(signature) and signature.outputs["out"].dtype == 1
    with pytest.raises(AlreadyExistsError, match="new or empty"):
        tf.saved_model.simple_save(sess, folder, {"in": x}, {"out": y})


def test_several_graphs_assets_and_what_runs_first(program, tmp_path):
    sess, x, y, words = program
    (tmp_path / "vocabulary.txt").write_text("one\ntwo")
    asset = tf.constant(str(tmp_path / "vocabulary.txt"), name="asset")
    local = tf.get_local_variable("local", [], tf.string, tf.constant_initializer("unset"))
    first = tf.group(local.assign(asset), name="first")
    builder = tf.saved_model.builder.SavedModelBuilder(str(tmp_path / "model"))
    with pytest.raises(FailedPreconditionError, match="comes with variables"):
        builder.add_meta_graph(["serve"])
    builder.add_meta_graph_and_variables(sess, ["train"], assets_collection=[asset], main_op=first)
    with pytest.raises(InvalidArgumentError, match="same tags"):
        builder.add_meta_graph(["train"])
    builder.add_meta_graph(["serve", "gpu"])
    with pytest.raises(FailedPreconditionError):
        builder.add_meta_graph_and_variables(sess, ["other"])
    assert builder.save(as_text=True).endswith("saved_model.pbtxt")
    with tf.Graph().as_default(), tf.Session() as other:
        tf.saved_model.load(other, ["train"], str(tmp_path / "model"))
        assert other.run("local:0") == str(tmp_path / "model" / "assets" / "vocabulary.txt").encode()
    with tf.Graph().as_default(), tf.Session() as other:
        tf.saved_model.load(other, ["gpu", "serve"], str(tmp_path / "model"))
        with pytest.raises(InvalidArgumentError, match="no graph with these tags") as error:
            tf.saved_model.load(other, ["serve"], str(tmp_path / "model"))
        assert "gpu, serve; train" in error.value.expected or "train; gpu, serve" in error.value.expected
        with pytest.raises(NotFoundError, match="holds no SavedModel"):
            tf.saved_model.load(other, ["serve"], str(tmp_path))


def test_signatures(graph):
    examples, scores = tf.placeholder(tf.string, [None], name="e"), tf.placeholder(tf.float32, [None, 2], name="s")
    sparse = tf.SparseTensor(tf.placeholder(tf.int64, [None, 2]), scores[:, 0], [4, 4])
    info = tf.saved_model.build_tensor_info(sparse)
    again = tf.saved_model.get_tensor_from_tensor_info(info)
    assert again.values is sparse.values and again.indices is sparse.indices
    good = [
        tf.saved_model.classification_signature_def(examples, examples, scores),
        tf.saved_model.regression_signature_def(examples, scores),
        tf.saved_model.predict_signature_def({"a": examples}, {"b": scores}),
    ]
    assert all(map(tf.saved_model.is_valid_signature, good)) and not tf.saved_model.is_valid_signature(None)
    assert [d.size for d in good[2].outputs["b"].tensor_shape.dim] == [-1, 2]
    good[1].inputs["more"].name = "x:0"
    assert not tf.saved_model.is_valid_signature(good[1])
    with pytest.raises(ArgumentTypeError):
        tf.saved_model.build_tensor_info(3)
    with pytest.raises(DTypeError):
        tf.saved_model.regression_signature_def(scores, scores)
    with pytest.raises(InvalidArgumentError, match="needs outputs"):
        tf.saved_model.predict_signature_def({"a": examples}, {})


def test_a_variable_has_a_tensor_info():
    with tf.Graph().as_default():
        info = tf.saved_model.build_tensor_info(tf.Variable([1, 2], name="v"))
        assert info.name == "v:0" and [d.size for d in info.tensor_shape.dim] == [2]
