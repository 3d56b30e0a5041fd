"""Networks of the Visual Geometry Group (Simonyan and Zisserman, 2014): stacks of small convolutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import graphdock as _tf

from graphdock_tf1.contrib.arg_scope import arg_scope
from graphdock_tf1.contrib.connected import fully_connected, repeat
from graphdock_tf1.contrib.convolution import convolution2d
from graphdock_tf1.contrib.pooling import dropout, max_pool2d
from graphdock_tf1.contrib.regularizers import l2_regularizer
from graphdock_tf1.contrib.support import convert_collection_to_dict


def vgg_arg_scope(weight_decay: float = 0.0005) -> Any:
    """The arguments of their layers, for ``slim.arg_scope``."""
    with (
        arg_scope(
            [convolution2d, fully_connected],
            activation_fn=_tf.nn.relu,
            weights_regularizer=l2_regularizer(weight_decay),
            biases_initializer=_tf.zeros_initializer(),
        ),
        arg_scope([convolution2d], padding="SAME") as made,
    ):
        return made


def _sized(name: str, layers: Sequence[int]) -> Any:
    def network(
        inputs: Any,
        num_classes: int | None = 1000,
        is_training: Any = True,
        dropout_keep_prob: float = 0.5,
        spatial_squeeze: bool = True,
        scope: str = name,
        fc_conv_padding: str = "VALID",
        global_pool: bool = False,
    ) -> tuple[Any, dict[str, Any]]:
        """A network over images ``[batch, 224, 224, channels]``, or larger ones with ``spatial_squeeze=False``.

        Returns:
          The logits, of the last features where ``num_classes`` is 0 or None; and a dict of what layers give, by scope.
        """
        with _tf.variable_scope(scope, name, [inputs]) as made:
            collection = made.original_name_scope + "_end_points"
            with arg_scope([convolution2d, fully_connected, max_pool2d], outputs_collections=collection):
                net = inputs
                for number, count in enumerate(layers, 1):
                    depth = min(32 << number, 512)
                    net = repeat(net, count, convolution2d, depth, [3, 3], scope=f"conv{number}")
                    net = max_pool2d(net, [2, 2], scope=f"pool{number}")
                net = convolution2d(net, 4096, [7, 7], padding=fc_conv_padding, scope="fc6")
                net = dropout(net, dropout_keep_prob, is_training=is_training, scope="dropout6")
                net = convolution2d(net, 4096, [1, 1], scope="fc7")
                points = convert_collection_to_dict(collection)
                if global_pool:
                    net = _tf.reduce_mean(net, [1, 2], keepdims=True, name="global_pool")
                    points["global_pool"] = net
                if num_classes:
                    net = dropout(net, dropout_keep_prob, is_training=is_training, scope="dropout7")
                    net = convolution2d(net, num_classes, [1, 1], activation_fn=None, normalizer_fn=None, scope="fc8")
                    if spatial_squeeze:
                        net = _tf.squeeze(net, [1, 2], name="fc8/squeezed")
                    points[made.name + "/fc8"] = net
                return net, points

    network.__name__ = network.__qualname__ = name
    network.default_image_size = 224  # type: ignore[attr-defined]
    return network


vgg_a = _sized("vgg_a", [1, 1, 2, 2, 2])
vgg_16 = _sized("vgg_16", [2, 2, 3, 3, 3])
vgg_19 = _sized("vgg_19", [2, 2, 4, 4, 4])
