"""Residual networks of the second kind: as many parameters as Keras publishes, activations before convolutions, dilation."""

import graphdock as tf
import numpy as np
from graphdock_tf1.contrib.arg_scope import arg_scope
from graphdock_tf1.contrib.nets import resnet_utils, resnet_v2

BLOCKS = [resnet_v2.resnet_v2_block("block1", 2, 2, 2), resnet_v2.resnet_v2_block("block2", 4, 1, 1)]


def test_as_many_parameters_as_published():
    with arg_scope(resnet_utils.resnet_arg_scope()):
        net, _ = resnet_v2.resnet_v2_50(tf.placeholder(tf.float32, [None, 64, 64, 3]), 1000, is_training=False)
    sizes = {v.op.name: int(np.prod(v.shape.as_list())) for v in tf.trainable_variables()}
    assert net.shape.as_list() == [None, 1000] and sum(sizes.values()) == 25_568_360
    assert {"resnet_v2_50/conv1/biases", "resnet_v2_50/postnorm/gamma", "resnet_v2_50/logits/weights"} <= set(sizes)
    assert "resnet_v2_50/block1/unit_1/bottleneck_v2/preact/gamma" in sizes


def test_dilation_sees_what_the_strided_network_sees():
    """Every second pixel of the dense features is the strided network's."""
    x = np.random.default_rng(0).normal(size=(1, 33, 33, 3)).astype(np.float32)

    def build(**kwargs):
        with arg_scope(resnet_utils.resnet_arg_scope()):
            return resnet_v2.resnet_v2(x, BLOCKS, None, False, global_pool=False, scope="net", **kwargs)[0]

    strided, dense = build(), build(output_stride=4, reuse=True)
    with tf.Session() as sess:
        sess.run(tf.global_variables_initializer())
        few, all_ = sess.run([strided, dense])
    np.testing.assert_allclose(all_[:, ::2, ::2], few, rtol=1e-4, atol=1e-5)
