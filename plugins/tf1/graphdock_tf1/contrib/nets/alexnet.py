"""AlexNet as it is on one device (Krizhevsky, https://arxiv.org/abs/1404.5997), of convolutions alone."""

from __future__ import annotations

from typing import Any

import graphdock as _tf

from graphdock_tf1.contrib.arg_scope import arg_scope
from graphdock_tf1.contrib.connected import fully_connected
from graphdock_tf1.contrib.convolution import convolution2d
from graphdock_tf1.contrib.pooling import dropout, max_pool2d
from graphdock_tf1.contrib.regularizers import l2_regularizer
from graphdock_tf1.contrib.support import convert_collection_to_dict


def alexnet_v2_arg_scope(weight_decay: float = 0.0005) -> Any:
    """The arguments of its layers, for ``slim.arg_scope``."""
    with (
        arg_scope(
            [convolution2d, fully_connected],
            activation_fn=_tf.nn.relu,
            biases_initializer=_tf.constant_initializer(0.1),
            weights_regularizer=l2_regularizer(weight_decay),
        ),
        arg_scope([convolution2d], padding="SAME"),
        arg_scope([max_pool2d], padding="VALID") as made,
    ):
        return made


def alexnet_v2(
    inputs: Any,
    num_classes: int | None = 1000,
    is_training: Any = True,
    dropout_keep_prob: float = 0.5,
    spatial_squeeze: bool = True,
    scope: str = "alexnet_v2",
    global_pool: bool = False,
) -> tuple[Any, dict[str, Any]]:
    """The network over images ``[batch, 224, 224, channels]``, or larger ones with ``spatial_squeeze=False``.

    Returns:
      The logits, or the last features where ``num_classes`` is 0 or None; and a dict of what layers give, by scope.
    """
    with _tf.variable_scope(scope, "alexnet_v2", [inputs]) as made:
        collection = made.original_name_scope + "_end_points"
        with arg_scope([convolution2d, fully_connected, max_pool2d], outputs_collections=[collection]):
            net = convolution2d(inputs, 64, [11, 11], 4, padding="VALID", scope="conv1")
            net = max_pool2d(net, [3, 3], 2, scope="pool1")
            net = convolution2d(net, 192, [5, 5], scope="conv2")
            net = max_pool2d(net, [3, 3], 2, scope="pool2")
            net = convolution2d(net, 384, [3, 3], scope="conv3")
            net = convolution2d(net, 384, [3, 3], scope="conv4")
            net = convolution2d(net, 256, [3, 3], scope="conv5")
            net = max_pool2d(net, [3, 3], 2, scope="pool5")
            small = {
                "weights_initializer": _tf.truncated_normal_initializer(0.0, 0.005),
                "biases_initializer": _tf.constant_initializer(0.1),
            }
            with arg_scope([convolution2d], **small):
                net = convolution2d(net, 4096, [5, 5], padding="VALID", scope="fc6")
                net = dropout(net, dropout_keep_prob, is_training=is_training, scope="dropout6")
                net = convolution2d(net, 4096, [1, 1], scope="fc7")
            points = convert_collection_to_dict(collection)
            if global_pool:
                net = _tf.reduce_mean(net, [1, 2], keepdims=True, name="global_pool")
                points["global_pool"] = net
            if num_classes:
                net = dropout(net, dropout_keep_prob, is_training=is_training, scope="dropout7")
                net = convolution2d(
                    net,
                    num_classes,
                    [1, 1],
                    activation_fn=None,
                    normalizer_fn=None,
                    biases_initializer=_tf.zeros_initializer(),
                    scope="fc8",
                )
                if spatial_squeeze:
                    net = _tf.squeeze(net, [1, 2], name="fc8/squeezed")
                points[made.name + "/fc8"] = net
            return net, points


alexnet_v2.default_image_size = 224  # type: ignore[attr-defined]
