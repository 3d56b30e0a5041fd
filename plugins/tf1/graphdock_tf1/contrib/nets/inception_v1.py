"""The first inception network, GoogLeNet (Szegedy et al., https://arxiv.org/abs/1409.4842), with batch norms."""

from __future__ import annotations

from typing import Any

import graphdock as _tf

from graphdock_tf1.contrib.arg_scope import arg_scope
from graphdock_tf1.contrib.connected import fully_connected
from graphdock_tf1.contrib.convolution import convolution2d
from graphdock_tf1.contrib.nets.inception_utils import head, layer, mixed
from graphdock_tf1.contrib.normalization import batch_norm
from graphdock_tf1.contrib.pooling import dropout, max_pool2d

#: Layers in order: scope, channels and arguments; of a module the channels of its branches.
_LAYERS: tuple[tuple[Any, ...], ...] = (
    ("Conv2d_1a_7x7", 64, {"stride": 2}),
    ("MaxPool_2a_3x3", 0, {"stride": 2}),
    ("Conv2d_2b_1x1", 64, {}),
    ("Conv2d_2c_3x3", 192, {}),
    ("MaxPool_3a_3x3", 0, {"stride": 2}),
    ("Mixed_3b", 64, 96, 128, 16, 32, 32),
    ("Mixed_3c", 128, 128, 192, 32, 96, 64),
    ("MaxPool_4a_3x3", 0, {"stride": 2}),
    ("Mixed_4b", 192, 96, 208, 16, 48, 64),
    ("Mixed_4c", 160, 112, 224, 24, 64, 64),
    ("Mixed_4d", 128, 128, 256, 24, 64, 64),
    ("Mixed_4e", 112, 144, 288, 32, 64, 64),
    ("Mixed_4f", 256, 160, 320, 32, 128, 128),
    ("MaxPool_5a_2x2", 0, {"stride": 2}),
    ("Mixed_5b", 256, 160, 320, 32, 128, 128),
    ("Mixed_5c", 384, 192, 384, 48, 128, 128),
)


def inception_v1_base(
    inputs: Any, final_endpoint: str = "Mixed_5c", scope: str = "InceptionV1"
) -> tuple[Any, dict[str, Any]]:
    """The network without its logits, over ``[batch, height, width, 3]``, up to a layer; and what layers give, by name.

    Raises:
      ValueError: there is no such layer.
    """
    points: dict[str, Any] = {}
    with (
        _tf.variable_scope(scope, "InceptionV1", [inputs]),
        arg_scope([convolution2d, fully_connected], weights_initializer=_tf.truncated_normal_initializer(0.0, 0.01)),
        arg_scope([convolution2d, max_pool2d], stride=1, padding="SAME"),
    ):
        net = inputs
        for name, *rest in _LAYERS:
            net = (
                mixed(net, name, _branches(name, *rest), int)
                if name.startswith("Mixed")
                else layer(net, name, rest[0], **rest[1])
            )
            points[name] = net
            if name == final_endpoint:
                return net, points
    raise ValueError(f"Unknown final endpoint {final_endpoint}")


def _branches(name: str, one: int, small: int, three: int, smaller: int, five: int, pool: int) -> list[Any]:
    inner = "Conv2d_0a_3x3" if name == "Mixed_5b" else "Conv2d_0b_3x3"  # as in the checkpoints that there are
    return [
        [("Conv2d_0a_1x1", one)],
        [("Conv2d_0a_1x1", small), ("Conv2d_0b_3x3", three)],
        [("Conv2d_0a_1x1", smaller), (inner, five)],
        [("MaxPool_0a_3x3",), ("Conv2d_0b_1x1", pool)],
    ]


def inception_v1(
    inputs: Any,
    num_classes: int | None = 1000,
    is_training: Any = True,
    dropout_keep_prob: float = 0.8,
    prediction_fn: Any = _tf.nn.softmax,
    spatial_squeeze: bool = True,
    reuse: Any = None,
    scope: str = "InceptionV1",
    global_pool: bool = False,
) -> tuple[Any, dict[str, Any]]:
    """The network over images ``[batch, 224, 224, 3]``: logits, or features where there are no classes, and what layers give."""
    with (
        _tf.variable_scope(scope, "InceptionV1", [inputs], reuse=reuse) as made,
        arg_scope([batch_norm, dropout], is_training=is_training),
    ):
        net, points = inception_v1_base(inputs, scope=made)
        names = ("AvgPool_0a_7x7", "Dropout_0b", "Conv2d_0c_1x1")
        keep = dropout_keep_prob
        net = head(net, points, num_classes, names, keep, is_training, spatial_squeeze, prediction_fn, global_pool, 7)
        return net, points


inception_v1.default_image_size = 224  # type: ignore[attr-defined]
