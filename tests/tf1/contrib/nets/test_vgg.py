"""The networks of the Visual Geometry Group: names, numbers of parameters as published, images of any size."""

import graphdock as tf
import numpy as np
import pytest
from graphdock_tf1.contrib.arg_scope import arg_scope
from graphdock_tf1.contrib.nets import vgg


@pytest.mark.parametrize(
    ("network", "parameters"), [(vgg.vgg_a, 132863336), (vgg.vgg_16, 138357544), (vgg.vgg_19, 143667240)]
)
def test_parameters_are_those_of_the_paper(network, parameters):
    with arg_scope(vgg.vgg_arg_scope()):
        net, points = network(tf.placeholder(tf.float32, [None, 224, 224, 3]), is_training=False)
    name = network.__name__
    assert net.shape.as_list() == [None, 1000] and f"{name}/pool5" in points and f"{name}/fc8" in points
    assert sum(np.prod(v.shape.as_list()) for v in tf.trainable_variables()) == parameters
    assert tf.trainable_variables()[0].op.name == f"{name}/conv1/conv1_1/weights"


def test_features_of_larger_images():
    net, _ = vgg.vgg_a(tf.placeholder(tf.float32, [1, 256, 256, 3]), num_classes=None, global_pool=True)
    assert net.shape.as_list() == [1, 1, 1, 4096]
