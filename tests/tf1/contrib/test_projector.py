"""TensorBoard's projector: the file that it reads, conditions that are decided early, names of contrib."""

from __future__ import annotations

import graphdock as tf
import pytest

projector = tf.contrib.tensorboard.plugins.projector


def test_the_configuration_stands_beside_the_event_file(tmp_path) -> None:
    config = projector.ProjectorConfig()
    embedding = config.embeddings.add()
    embedding.tensor_name = "embedding:0"
    embedding.metadata_path = "labels.tsv"
    embedding.sprite.single_image_dim.extend([28, 28])
    with tf.Graph().as_default(), tf.summary.FileWriter(str(tmp_path / "run")) as writer:
        projector.visualize_embeddings(writer, config)
    assert (tmp_path / "run" / "projector_config.pbtxt").read_text() == (
        'embeddings {\n  tensor_name: "embedding:0"\n  metadata_path: "labels.tsv"\n'
        "  sprite {\n    single_image_dim: 28\n    single_image_dim: 28\n  }\n}\n"
    )


def test_conditions_that_are_known_make_no_branches() -> None:
    with tf.Graph().as_default() as graph, tf.Session() as sess:
        one, two = (lambda: tf.constant(1)), (lambda: tf.constant(2))
        for pred, value in ((True, 1), (0, 2), (tf.constant(True), 1)):
            assert sess.run(tf.contrib.framework.smart_cond(pred, one, two)) == value
        assert {op.type for op in graph.get_operations()} == {"Const"}
        fed = tf.placeholder(tf.bool, [])
        chosen = tf.contrib.layers.utils.smart_cond(fed, fn1=one, fn2=two)
        assert [sess.run(chosen, {fed: b}) for b in (True, False)] == [1, 2]
        assert tf.contrib.framework.smart_constant_value(fed) is None
    with pytest.raises(TypeError, match="pred must be a Tensor"):
        tf.contrib.framework.smart_cond("yes", one, two)
    with pytest.raises(TypeError, match="true_fn must be callable"):
        tf.contrib.framework.smart_cond(True, 1, two)


def test_names_of_contrib_that_scripts_use() -> None:
    assert tf.contrib.framework.nest.is_sequence([1]) and not tf.contrib.framework.nest.is_sequence("ab")
    assert tf.contrib.slim.initializers.xavier_initializer is tf.contrib.layers.xavier_initializer
    assert tf.contrib.learn.ModeKeys.INFER == "infer"
