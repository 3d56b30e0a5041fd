"""Residual networks of the second kind (He et al., https://arxiv.org/abs/1603.05027): the activation before each convolution."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import graphdock as _tf

from graphdock_tf1.contrib.arg_scope import add_arg_scope, arg_scope
from graphdock_tf1.contrib.convolution import convolution2d
from graphdock_tf1.contrib.nets.resnet_utils import Block, conv2d_same, stack_blocks_dense, subsample
from graphdock_tf1.contrib.normalization import batch_norm
from graphdock_tf1.contrib.pooling import max_pool2d
from graphdock_tf1.contrib.support import collect_named_outputs, convert_collection_to_dict


@add_arg_scope
def bottleneck(
    inputs: Any,
    depth: int,
    depth_bottleneck: int,
    stride: int,
    rate: int = 1,
    outputs_collections: Any = None,
    scope: str | None = None,
) -> Any:
    """A unit: the input normalised, convolutions of 1, 3 and 1 pixels, and what goes past them."""
    with _tf.variable_scope(scope, "bottleneck_v2", [inputs]) as made:
        plain = {"normalizer_fn": None, "activation_fn": None}
        before = batch_norm(inputs, activation_fn=_tf.nn.relu, scope="preact")
        if depth == inputs.shape.as_list()[-1]:
            shortcut = subsample(inputs, stride, "shortcut")
        else:
            shortcut = convolution2d(before, depth, [1, 1], stride=stride, scope="shortcut", **plain)
        residual = convolution2d(before, depth_bottleneck, [1, 1], stride=1, scope="conv1")
        residual = conv2d_same(residual, depth_bottleneck, 3, stride, rate=rate, scope="conv2")
        residual = convolution2d(residual, depth, [1, 1], stride=1, scope="conv3", **plain)
        return collect_named_outputs(outputs_collections, made.name, shortcut + residual)


def resnet_v2(
    inputs: Any,
    blocks: Sequence[Block],
    num_classes: int | None = None,
    is_training: bool | None = True,
    global_pool: bool = True,
    output_stride: int | None = None,
    include_root_block: bool = True,
    spatial_squeeze: bool = True,
    reuse: Any = None,
    scope: str | None = None,
) -> tuple[Any, dict[str, Any]]:
    """A network of blocks over ``[batch, height, width, channels]``; arguments, results and errors as of ``resnet_v1``."""
    with _tf.variable_scope(scope, "resnet_v2", [inputs], reuse=reuse) as made:
        collection = made.original_name_scope + "_end_points"
        training = {} if is_training is None else {"is_training": is_training}
        with (
            arg_scope([convolution2d, bottleneck, stack_blocks_dense], outputs_collections=collection),
            arg_scope([batch_norm], **training),
        ):
            net = inputs
            if include_root_block:
                if output_stride is not None:
                    if output_stride % 4:
                        raise ValueError("The output_stride needs to be a multiple of 4.")
                    output_stride //= 4
                with arg_scope([convolution2d], activation_fn=None, normalizer_fn=None):
                    net = conv2d_same(net, 64, 7, stride=2, scope="conv1")
                net = max_pool2d(net, [3, 3], stride=2, scope="pool1")
            net = stack_blocks_dense(net, blocks, output_stride)
            net = batch_norm(net, activation_fn=_tf.nn.relu, scope="postnorm")
            points = convert_collection_to_dict(collection)
            if global_pool:
                net = _tf.reduce_mean(net, [1, 2], name="pool5", keepdims=True)
                points["global_pool"] = net
            if num_classes:
                net = convolution2d(net, num_classes, [1, 1], activation_fn=None, normalizer_fn=None, scope="logits")
                points[made.name + "/logits"] = net
                if spatial_squeeze:
                    net = _tf.squeeze(net, [1, 2], name="SpatialSqueeze")
                    points[made.name + "/spatial_squeeze"] = net
                points["predictions"] = _tf.nn.softmax(net, name="predictions")
            return net, points


def resnet_v2_block(scope: str, base_depth: int, num_units: int, stride: int) -> Block:
    """A block of units, of which the last has the stride."""
    unit = {"depth": base_depth * 4, "depth_bottleneck": base_depth, "stride": 1}
    return Block(scope, bottleneck, [unit] * (num_units - 1) + [{**unit, "stride": stride}])


def _sized(name: str, units: Sequence[int]) -> Any:
    def network(
        inputs: Any,
        num_classes: int | None = None,
        is_training: bool | None = True,
        global_pool: bool = True,
        output_stride: int | None = None,
        spatial_squeeze: bool = True,
        reuse: Any = None,
        scope: str = name,
    ) -> tuple[Any, dict[str, Any]]:
        """A residual network of this depth; see :func:`resnet_v2`."""
        blocks = [
            resnet_v2_block(f"block{number}", 32 << number, count, 1 if number == 4 else 2)
            for number, count in enumerate(units, 1)
        ]
        return resnet_v2(
            inputs,
            blocks,
            num_classes,
            is_training,
            global_pool,
            output_stride,
            True,
            spatial_squeeze,
            reuse,
            scope,
        )

    network.__name__ = network.__qualname__ = name
    network.default_image_size = 224  # type: ignore[attr-defined]
    return network


resnet_v2_50 = _sized("resnet_v2_50", [3, 4, 6, 3])
resnet_v2_101 = _sized("resnet_v2_101", [3, 4, 23, 3])
resnet_v2_152 = _sized("resnet_v2_152", [3, 8, 36, 3])
resnet_v2_200 = _sized("resnet_v2_200", [3, 24, 36, 3])
