"""Parts of residual networks: blocks, their stride, and the arguments of their layers."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from typing import Any

import graphdock as _tf

from graphdock_tf1.contrib.arg_scope import add_arg_scope, arg_scope
from graphdock_tf1.contrib.convolution import convolution2d
from graphdock_tf1.contrib.initializers import variance_scaling_initializer
from graphdock_tf1.contrib.normalization import batch_norm
from graphdock_tf1.contrib.pooling import max_pool2d
from graphdock_tf1.contrib.regularizers import l2_regularizer
from graphdock_tf1.contrib.support import collect_named_outputs


class Block(namedtuple("Block", ["scope", "unit_fn", "args"])):
    """A block: its scope, the function of a unit, and a dict of arguments per unit."""


def subsample(inputs: Any, factor: int, scope: str | None = None) -> Any:
    """Every ``factor``-th pixel of ``[batch, height, width, channels]``."""
    return inputs if factor == 1 else max_pool2d(inputs, [1, 1], stride=factor, scope=scope)


def conv2d_same(
    inputs: Any, num_outputs: int, kernel_size: int, stride: int, rate: int = 1, scope: str | None = None
) -> Any:
    """A convolution whose zeros lie evenly about the image, whatever its size: with a stride ``SAME`` does not see to that."""
    if stride == 1:
        return convolution2d(inputs, num_outputs, kernel_size, stride=1, rate=rate, padding="SAME", scope=scope)
    total = kernel_size + (kernel_size - 1) * (rate - 1) - 1
    before = total // 2
    inputs = _tf.pad(inputs, [[0, 0], [before, total - before], [before, total - before], [0, 0]])
    return convolution2d(inputs, num_outputs, kernel_size, stride=stride, rate=rate, padding="VALID", scope=scope)


@add_arg_scope
def stack_blocks_dense(
    net: Any, blocks: Sequence[Block], output_stride: int | None = None, outputs_collections: Any = None
) -> Any:
    """Units of blocks, one behind the other.

    Args:
      output_stride: of input pixels to output pixels; where it is reached, strides become rates of dilated convolutions.

    Raises:
      ValueError: the blocks do not reach that stride.
    """
    current, rate = 1, 1
    for block in blocks:
        with _tf.variable_scope(block.scope, "block", [net]) as scope:
            for number, unit in enumerate(block.args, 1):
                if output_stride is not None and current > output_stride:
                    raise ValueError("The target output_stride cannot be reached.")
                with _tf.variable_scope(f"unit_{number}", values=[net]):
                    if output_stride is not None and current == output_stride:
                        net = block.unit_fn(net, rate=rate, **dict(unit, stride=1))
                        rate *= unit.get("stride", 1)
                    else:
                        net = block.unit_fn(net, rate=1, **unit)
                        current *= unit.get("stride", 1)
            net = collect_named_outputs(outputs_collections, scope.name, net)
    if output_stride is not None and current != output_stride:
        raise ValueError("The target output_stride cannot be reached.")
    return net


def resnet_arg_scope(
    weight_decay: float = 0.0001,
    batch_norm_decay: float = 0.997,
    batch_norm_epsilon: float = 1e-5,
    batch_norm_scale: bool = True,
    activation_fn: Any = None,
    use_batch_norm: bool = True,
) -> Any:
    """The arguments of residual networks' layers, for ``slim.arg_scope``."""
    params = {
        "decay": batch_norm_decay,
        "epsilon": batch_norm_epsilon,
        "scale": batch_norm_scale,
        "updates_collections": _tf.GraphKeys.UPDATE_OPS,
        "fused": None,
    }
    with (
        arg_scope(
            [convolution2d],
            weights_regularizer=l2_regularizer(weight_decay),
            weights_initializer=variance_scaling_initializer(),
            activation_fn=activation_fn or _tf.nn.relu,
            normalizer_fn=batch_norm if use_batch_norm else None,
            normalizer_params=params,
        ),
        arg_scope([batch_norm], **params),
        arg_scope([max_pool2d], padding="SAME") as made,
    ):
        return made
