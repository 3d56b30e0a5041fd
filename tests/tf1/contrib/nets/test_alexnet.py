"""AlexNet: sizes of layers, names as checkpoints have them, and parameters counted by hand."""

import graphdock as tf
import numpy as np
from graphdock_tf1.contrib.arg_scope import arg_scope
from graphdock_tf1.contrib.nets.alexnet import alexnet_v2, alexnet_v2_arg_scope


def test_layers_and_parameters():
    with arg_scope(alexnet_v2_arg_scope()):
        net, points = alexnet_v2(tf.placeholder(tf.float32, [None, 224, 224, 3]))
    assert net.shape.as_list() == [None, 1000]
    shapes = [points[f"alexnet_v2/{name}"].shape.as_list()[1:] for name in ("conv1", "pool1", "pool2", "pool5", "fc6")]
    assert shapes == [[54, 54, 64], [26, 26, 64], [12, 12, 192], [5, 5, 256], [1, 1, 4096]]
    layers = [(11, 3, 64), (5, 64, 192), (3, 192, 384), (3, 384, 384), (3, 384, 256), (5, 256, 4096), (1, 4096, 4096)]
    want = sum(k * k * i * o + o for k, i, o in [*layers, (1, 4096, 1000)])
    assert sum(int(np.prod(v.shape.as_list())) for v in tf.trainable_variables()) == want == 50_303_912
