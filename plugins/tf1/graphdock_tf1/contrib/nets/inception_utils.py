"""Parts of inception networks: modules of branches, and the arguments of their layers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import graphdock as _tf

from graphdock_tf1.contrib.arg_scope import arg_scope
from graphdock_tf1.contrib.connected import fully_connected
from graphdock_tf1.contrib.convolution import convolution2d
from graphdock_tf1.contrib.initializers import variance_scaling_initializer
from graphdock_tf1.contrib.normalization import batch_norm
from graphdock_tf1.contrib.pooling import avg_pool2d, dropout, max_pool2d
from graphdock_tf1.contrib.regularizers import l2_regularizer

#: A layer's scope, such as ``Conv2d_0a_3x3``: which layer, and the window.
_SCOPE = re.compile(r"(Conv|Max|Avg).*?_(\d)x(\d)$")


def inception_arg_scope(
    weight_decay: float = 0.00004,
    use_batch_norm: bool = True,
    batch_norm_decay: float = 0.9997,
    batch_norm_epsilon: float = 0.001,
    activation_fn: Any = None,
    batch_norm_updates_collections: Any = "update_ops",
) -> Any:
    """The arguments of inception networks' layers, for ``slim.arg_scope``."""
    params = {
        "decay": batch_norm_decay,
        "epsilon": batch_norm_epsilon,
        "updates_collections": batch_norm_updates_collections,
        "fused": None,
    }
    with (
        arg_scope([convolution2d, fully_connected], weights_regularizer=l2_regularizer(weight_decay)),
        arg_scope(
            [convolution2d],
            weights_initializer=variance_scaling_initializer(),
            activation_fn=activation_fn or _tf.nn.relu,
            normalizer_fn=batch_norm if use_batch_norm else None,
            normalizer_params=params if use_batch_norm else {},
        ) as made,
    ):
        return made


def layer(net: Any, scope: str, depth: int = 0, **more: Any) -> Any:
    """A layer of the kind and window that its scope tells; ``Conv2d_1a_1x1`` with a stride is of three pixels."""
    found = _SCOPE.match(scope)
    assert found is not None
    if found[1] == "Conv":
        window = more.pop("window", [int(found[2]), int(found[3])])
        return convolution2d(net, depth, window, scope=scope, **more)
    pool = max_pool2d if found[1] == "Max" else avg_pool2d
    return pool(net, [int(found[2]), int(found[3])], scope=scope, **more)


def mixed(net: Any, scope: str, branches: Sequence[Sequence[Any]], depth: Any) -> Any:
    """A module: branches of layers beside one another, joined along channels.

    Args:
      branches: each of layers ``(scope,)``, ``(scope, channels)`` or ``(scope, channels, arguments)``; a list of layers is a fork.
      depth: a function of a number of channels that gives that of a narrower network.
    """
    with _tf.variable_scope(scope):
        made = []
        for number, branch in enumerate(branches):
            with _tf.variable_scope(f"Branch_{number}"):
                made.append(_branch(net, branch, depth))
        return _tf.concat(made, 3)


def _branch(net: Any, layers: Sequence[Any], depth: Any) -> Any:
    for each in layers:
        if isinstance(each, list):
            net = _tf.concat([_branch(net, [fork], depth) for fork in each], 3)
        else:
            scope, channels, more = (*each, 0, {})[:3] if len(each) == 1 else (*each, {})[:3]
            net = layer(net, scope, depth(channels), **more)
    return net


def narrower(multiplier: float, least: int) -> Any:
    """The function of channels of a network that is ``multiplier`` as wide. Raises ValueError: it is not positive."""
    if multiplier <= 0:
        raise ValueError("depth_multiplier is not greater than zero.")
    return lambda channels: max(int(channels * multiplier), least)


def head(
    net: Any,
    points: dict[str, Any],
    num_classes: int | None,
    names: Sequence[str],
    keep: float,
    training: Any,
    squeeze: bool,
    predict: Any,
    global_pool: bool,
    window: int,
) -> Any:
    """Logits: a pooling over ``window`` pixels or all there are, dropout, a convolution; or the features without classes.

    Args:
      names: scopes of the pooling, the dropout and the convolution.
    """
    with _tf.variable_scope("Logits"):
        if global_pool:
            net = _tf.reduce_mean(net, [1, 2], keepdims=True, name="global_pool")
            points["global_pool"] = net
        else:
            sides = [window if side is None else min(side, window) for side in net.shape.as_list()[1:3]]
            net = avg_pool2d(net, sides, stride=1, padding="VALID", scope=names[0].format(*sides))
            points[names[0].partition("_{")[0]] = net
        if not num_classes:
            return net
        net = dropout(net, keep_prob=keep, is_training=training, scope=names[1])
        points["PreLogits"] = net
        net = convolution2d(net, num_classes, [1, 1], activation_fn=None, normalizer_fn=None, scope=names[2])
        if squeeze:
            net = _tf.squeeze(net, [1, 2], name="SpatialSqueeze")
    points["Logits"] = net
    with _tf.name_scope("Predictions"):
        points["Predictions"] = predict(net)
    return net
