"""The third inception network (Szegedy et al., https://arxiv.org/abs/1512.00567)."""

from __future__ import annotations

from typing import Any

import graphdock as _tf

from graphdock_tf1.contrib.arg_scope import arg_scope
from graphdock_tf1.contrib.convolution import convolution2d
from graphdock_tf1.contrib.nets.inception_utils import head, layer, mixed, narrower
from graphdock_tf1.contrib.normalization import batch_norm
from graphdock_tf1.contrib.pooling import avg_pool2d, dropout, max_pool2d

_HALF: dict[str, Any] = {"stride": 2, "padding": "VALID"}
_THREE: dict[str, Any] = {**_HALF, "window": [3, 3]}


def _fives(pool: int, inner: tuple[str, str] = ("Conv2d_0a_1x1", "Conv2d_0b_5x5")) -> list[Any]:
    return [
        [("Conv2d_0a_1x1", 64)],
        [(inner[0], 48), (inner[1], 64)],
        [("Conv2d_0a_1x1", 64), ("Conv2d_0b_3x3", 96), ("Conv2d_0c_3x3", 96)],
        [("AvgPool_0a_3x3",), ("Conv2d_0b_1x1", pool)],
    ]


def _sevens(inner: int) -> list[Any]:
    long = ["Conv2d_0b_7x1", "Conv2d_0c_1x7", "Conv2d_0d_7x1"]
    return [
        [("Conv2d_0a_1x1", 192)],
        [("Conv2d_0a_1x1", inner), ("Conv2d_0b_1x7", inner), ("Conv2d_0c_7x1", 192)],
        [("Conv2d_0a_1x1", inner), *((name, inner) for name in long), ("Conv2d_0e_1x7", 192)],
        [("AvgPool_0a_3x3",), ("Conv2d_0b_1x1", 192)],
    ]


def _forks(second: str) -> list[Any]:
    return [
        [("Conv2d_0a_1x1", 320)],
        [("Conv2d_0a_1x1", 384), [("Conv2d_0b_1x3", 384), (second, 384)]],
        [("Conv2d_0a_1x1", 448), ("Conv2d_0b_3x3", 384), [("Conv2d_0c_1x3", 384), ("Conv2d_0d_3x1", 384)]],
        [("AvgPool_0a_3x3",), ("Conv2d_0b_1x1", 192)],
    ]


_SMALLER = [
    [("Conv2d_1a_1x1", 384, _THREE)],
    [("Conv2d_0a_1x1", 64), ("Conv2d_0b_3x3", 96), ("Conv2d_1a_1x1", 96, _THREE)],
    [("MaxPool_1a_3x3", 0, _HALF)],
]
_SMALLEST = [
    [("Conv2d_0a_1x1", 192), ("Conv2d_1a_3x3", 320, _HALF)],
    [("Conv2d_0a_1x1", 192), ("Conv2d_0b_1x7", 192), ("Conv2d_0c_7x1", 192), ("Conv2d_1a_3x3", 192, _HALF)],
    [("MaxPool_1a_3x3", 0, _HALF)],
]
#: Layers in order: scope, channels and arguments; or a module's branches.
_LAYERS: tuple[tuple[Any, ...], ...] = (
    ("Conv2d_1a_3x3", 32, {"stride": 2}),
    ("Conv2d_2a_3x3", 32, {}),
    ("Conv2d_2b_3x3", 64, {"padding": "SAME"}),
    ("MaxPool_3a_3x3", 0, {"stride": 2}),
    ("Conv2d_3b_1x1", 80, {}),
    ("Conv2d_4a_3x3", 192, {}),
    ("MaxPool_5a_3x3", 0, {"stride": 2}),
    ("Mixed_5b", _fives(32)),
    ("Mixed_5c", _fives(64, ("Conv2d_0b_1x1", "Conv_1_0c_5x5"))),  # as in the checkpoints that there are
    ("Mixed_5d", _fives(64)),
    ("Mixed_6a", _SMALLER),
    ("Mixed_6b", _sevens(128)),
    ("Mixed_6c", _sevens(160)),
    ("Mixed_6d", _sevens(160)),
    ("Mixed_6e", _sevens(192)),
    ("Mixed_7a", _SMALLEST),
    ("Mixed_7b", _forks("Conv2d_0b_3x1")),
    ("Mixed_7c", _forks("Conv2d_0c_3x1")),
)


def inception_v3_base(
    inputs: Any,
    final_endpoint: str = "Mixed_7c",
    min_depth: int = 16,
    depth_multiplier: float = 1.0,
    scope: Any = None,
) -> tuple[Any, dict[str, Any]]:
    """The network without its logits, over ``[batch, height, width, 3]``, up to a layer; and what layers give, by name.

    Args:
      depth_multiplier: how wide it is, with ``min_depth`` channels at least.

    Raises:
      ValueError: there is no such layer, or the multiplier is not positive.
    """
    points: dict[str, Any] = {}
    depth = narrower(depth_multiplier, min_depth)
    with _tf.variable_scope(scope, "InceptionV3", [inputs]):
        net = inputs
        for name, *rest in _LAYERS:
            padding = "SAME" if name.startswith("Mixed") else "VALID"
            with arg_scope([convolution2d, max_pool2d, avg_pool2d], stride=1, padding=padding):
                net = (
                    mixed(net, name, rest[0], depth) if len(rest) == 1 else layer(net, name, depth(rest[0]), **rest[1])
                )
            points[name] = net
            if name == final_endpoint:
                return net, points
    raise ValueError(f"Unknown final endpoint {final_endpoint}")


def inception_v3(
    inputs: Any,
    num_classes: int | None = 1000,
    is_training: Any = True,
    dropout_keep_prob: float = 0.8,
    min_depth: int = 16,
    depth_multiplier: float = 1.0,
    prediction_fn: Any = _tf.nn.softmax,
    spatial_squeeze: bool = True,
    reuse: Any = None,
    create_aux_logits: bool = True,
    scope: str = "InceptionV3",
    global_pool: bool = False,
) -> tuple[Any, dict[str, Any]]:
    """The network over images ``[batch, 299, 299, 3]``: logits, or features where there are no classes, and what layers give.

    Args:
      create_aux_logits: with ``AuxLogits`` of an inner layer, which training adds to the loss.
      The others as of :func:`inception_v3_base` and ``inception_v1``.

    Raises:
      ValueError: the multiplier is not positive.
    """
    depth = narrower(depth_multiplier, min_depth)
    with (
        _tf.variable_scope(scope, "InceptionV3", [inputs], reuse=reuse) as made,
        arg_scope([batch_norm, dropout], is_training=is_training),
    ):
        net, points = inception_v3_base(inputs, "Mixed_7c", min_depth, depth_multiplier, made)
        if create_aux_logits and num_classes:
            points["AuxLogits"] = _aux(points["Mixed_6e"], num_classes, depth, spatial_squeeze)
        names = ("AvgPool_1a_{}x{}", "Dropout_1b", "Conv2d_1c_1x1")
        keep = dropout_keep_prob
        net = head(net, points, num_classes, names, keep, is_training, spatial_squeeze, prediction_fn, global_pool, 8)
        return net, points


def _aux(net: Any, num_classes: int, depth: Any, squeeze: bool) -> Any:
    def small(deviation: float) -> Any:
        return _tf.truncated_normal_initializer(0.0, deviation)

    with (
        _tf.variable_scope("AuxLogits"),
        arg_scope([convolution2d, max_pool2d, avg_pool2d], stride=1, padding="SAME"),
    ):
        net = avg_pool2d(net, [5, 5], stride=3, padding="VALID", scope="AvgPool_1a_5x5")
        net = convolution2d(net, depth(128), [1, 1], scope="Conv2d_1b_1x1")
        sides = [5 if side is None else min(side, 5) for side in net.shape.as_list()[1:3]]
        name = "Conv2d_2a_{}x{}".format(*sides)
        net = convolution2d(net, depth(768), sides, padding="VALID", weights_initializer=small(0.01), scope=name)
        plain = {"activation_fn": None, "normalizer_fn": None, "weights_initializer": small(0.001)}
        net = convolution2d(net, num_classes, [1, 1], scope="Conv2d_2b_1x1", **plain)
        return _tf.squeeze(net, [1, 2], name="SpatialSqueeze") if squeeze else net


inception_v3.default_image_size = 299  # type: ignore[attr-defined]
