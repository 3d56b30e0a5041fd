"""Inception networks: names as checkpoints have them, sizes of layers, and as many parameters as are published."""

import graphdock as tf
import numpy as np
import pytest
from graphdock_tf1.contrib.arg_scope import arg_scope
from graphdock_tf1.contrib.nets.inception_utils import inception_arg_scope
from graphdock_tf1.contrib.nets.inception_v1 import inception_v1, inception_v1_base
from graphdock_tf1.contrib.nets.inception_v3 import inception_v3, inception_v3_base

#: Parameters that torchvision publishes for GoogLeNet without, and Inception v3 with its auxiliary head; a gamma per channel too.
PUBLISHED = {inception_v1: 6_624_904, inception_v3: 27_161_264}


@pytest.mark.parametrize("network", PUBLISHED, ids=lambda n: n.__name__)
@pytest.mark.sampled(2)
def test_as_many_parameters_as_published(network):
    side = network.default_image_size
    with arg_scope(inception_arg_scope()):
        net, points = network(tf.placeholder(tf.float32, [None, side, side, 3]), 1000, is_training=False)
    assert net.shape.as_list() == [None, 1000] == points["Predictions"].shape.as_list()
    sizes = {v.op.name: int(np.prod(v.shape.as_list())) for v in tf.trainable_variables()}
    gammas = sum(size for name, size in sizes.items() if name.endswith("BatchNorm/beta"))
    assert sum(sizes.values()) + gammas == PUBLISHED[network]
    names = set(sizes)
    if network is inception_v1:
        assert "InceptionV1/Mixed_5b/Branch_2/Conv2d_0a_3x3/weights" in names
        assert "InceptionV1/Logits/Conv2d_0c_1x1/biases" in names
        assert points["Mixed_4f"].shape.as_list() == [None, 14, 14, 832]
    else:
        assert "InceptionV3/Mixed_5c/Branch_1/Conv_1_0c_5x5/weights" in names
        assert "InceptionV3/AuxLogits/Conv2d_2a_5x5/weights" in names
        assert points["Mixed_6e"].shape.as_list() == [None, 17, 17, 768]
        assert points["Mixed_7c"].shape.as_list() == [None, 8, 8, 2048]
        assert points["AuxLogits"].shape.as_list() == [None, 1000]


def test_a_narrow_part_runs():
    with arg_scope(inception_arg_scope()):
        net, points = inception_v3_base(tf.ones([1, 79, 79, 3]), "Mixed_5b", depth_multiplier=0.25, min_depth=4)
    assert list(points)[-1] == "Mixed_5b" and net.shape.as_list() == [1, 7, 7, 64]
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        assert np.isfinite(sess.run(net)).all()


def test_what_is_not_there_is_refused():
    x = tf.placeholder(tf.float32, [1, 224, 224, 3])
    with pytest.raises(ValueError, match="Unknown final endpoint Mixed_9z"):
        inception_v1_base(x, "Mixed_9z")
    with pytest.raises(ValueError, match="depth_multiplier is not greater than zero"):
        inception_v3_base(x, depth_multiplier=0.0)
