"""The passes ``channels_last`` and ``channels_first``: images lie one way in all of a plan, however the program wrote it.

Kernels of GPUs like channels before height and width, those of cpus behind them, and a program written for the one runs slowly on
the other. An op with a ``data_format`` is computed in the wanted one, between transposes of its images. Elementwise ops, sums,
pads, joins and cuts of images that lie that way already are computed so as well: transposes stay where images enter and leave, the
others meet and are spared by ``arithmetic``. TensorFlow's layout optimizer does the same.

Results are those of the other data format: sums may run in another order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from graphdock.contracts import PassContext, PlanGraph, PlanNode, Rewriter, Value
from graphdock.contracts.ir import arg_of, make_node
from graphdock.dtypes import int32
from graphdock.shape import Dims

__all__ = ["channels_first", "channels_last"]

#: Data format -> the one with channels at the other place.
_OTHER = {"NHWC": "NCHW", "NCHW": "NHWC", "NDHWC": "NCDHW", "NCDHW": "NDHWC"}
_POOL, _POOL_GRAD = "input output", "orig_input orig_output grad output"
#: Op that knows both formats -> its inputs and outputs that are images, by name.
_IMAGES = {
    "AvgPool": "value output",
    "AvgPool3D": _POOL,
    "AvgPool3DGrad": "grad output",
    "AvgPoolGrad": "grad output",
    "BiasAdd": "value output",
    "BiasAddGrad": "out_backprop",
    "Conv2D": "input output",
    "Conv2DBackpropFilter": "input out_backprop",
    "Conv2DBackpropInput": "out_backprop output",
    "Conv3D": "input output",
    "Conv3DBackpropFilterV2": "input out_backprop",
    "Conv3DBackpropInputV2": "out_backprop output",
    "DepthToSpace": "input output",
    "DepthwiseConv2dNative": "input output",
    "DepthwiseConv2dNativeBackpropFilter": "input out_backprop",
    "DepthwiseConv2dNativeBackpropInput": "out_backprop output",
    "FusedBatchNorm": "x y",
    "FusedBatchNormGrad": "y_backprop x x_backprop",
    "FusedConv2D": "input y before",
    "MaxPool": _POOL,
    "MaxPool3D": _POOL,
    "MaxPool3DGrad": _POOL_GRAD,
    "MaxPool3DGradGrad": _POOL_GRAD,
    "MaxPoolGrad": _POOL_GRAD,
    "MaxPoolGradGrad": _POOL_GRAD,
    "SpaceToDepth": "input output",
}
#: Inputs of these that are the shape of one.
_SHAPES = frozenset(["input_sizes", "orig_input_shape"])
#: Attributes with a number per dim of an image; ``explicit_paddings`` has two.
_PER_DIM = ("dilations", "explicit_paddings", "ksize", "strides")
#: Ops along one axis -> the input that names it.
_AXES = {"Concat": -1, "Split": 0, "SplitV": -1}


def channels_last(graph: PlanGraph, context: PassContext) -> None:
    """Compute images of a level with channels as their last dim."""
    _arrange(graph, context, first=False)


def channels_first(graph: PlanGraph, context: PassContext) -> None:
    """Compute images of a level with channels as dim 1."""
    _arrange(graph, context, first=True)


def _arrange(graph: PlanGraph, context: PassContext, first: bool) -> None:
    with Rewriter(graph) as change:
        images = _Images(change, context, first)
        for node in graph.nodes:
            if node.control or node.order or node.guard is not None or node.bodies:
                continue
            if _has_other_format(node, first):
                images.convert(node)
            elif images.reads(node):
                images.follow(node)


def _has_other_format(node: PlanNode, first: bool) -> bool:
    """Return whether an op of images has channels elsewhere than asked."""
    return node.op in _IMAGES and node.attrs["data_format"].startswith("NC") is not first


class _Images:
    """Images of one level that lie the wanted way.

    Attributes:
      turned: value of the level -> the same image, as wanted.
    """

    def __init__(self, change: Rewriter, context: PassContext, first: bool) -> None:
        self._change, self._context, self._first = change, context, first
        self.turned: dict[Value, Value] = {}

    def reads(self, node: PlanNode) -> bool:
        return not self.turned.keys().isdisjoint(node.inputs)

    # -- ops with a data format

    def convert(self, node: PlanNode) -> None:
        """Compute a node in the other data format, where it is one of images."""
        args = list(zip(arg_of(node), node.inputs, strict=True))
        names = _IMAGES[node.op].split()
        rank, *others = {_rank(v) for a, v in args if a.name in names}
        if others or rank < 4:
            return
        perm = self._perm(rank)
        inputs = [
            self._given(node, v) if a.name in names else self._gathered(node, v, perm) if a.name in _SHAPES else v
            for a, v in args
        ]
        attrs = dict(node.attrs, data_format=_OTHER[node.attrs["data_format"]])
        for name in _PER_DIM:
            if attrs.get(name):
                attrs[name] = type(attrs[name])(np.reshape(attrs[name], (rank, -1))[perm].ravel().tolist())
        self._put(node, inputs, attrs, [a.name in names for a in node.opdef.outputs])

    # -- ops that read what was converted

    def follow(self, node: PlanNode) -> None:
        """Compute a node of images on images as wanted, where its op allows it and not more of them are turned than are not."""
        rank = max(_rank(v) for v in node.inputs if v in self.turned)
        images = [v for v in node.inputs if _rank(v) == rank]
        if 2 * sum(v in self.turned for v in images) < len(images):
            return
        if node.op == "Shape":
            self._shape(node, rank)
        elif "reduction" in node.opdef.traits and "keep_dims" in node.attrs:
            self._reduce(node, rank)
        elif node.op in _AXES:
            self._along(node, rank)
        elif node.op == "Pad" and (paddings := node.constant(1)) is not None:
            x, _, filling = node.inputs
            self._put(
                node, [self._given(node, x), self._integers(node, paddings[self._perm(rank)]), filling], node.attrs
            )
        elif not node.opdef.traits.isdisjoint(("elementwise", "aggregate")) and _rank(node.outputs[0]) == rank:
            inputs = [self._operand(node, v, rank) for v in node.inputs]
            if None not in inputs:
                self._put(node, inputs, node.attrs)

    def _shape(self, node: PlanNode, rank: int) -> None:
        [made] = node.outputs
        turned = self._made(node, "Shape", [self.turned[node.inputs[0]]], made.shape, **node.attrs)
        self._change.replace(node, [self._gathered(node, turned, self._perm(rank, back=True))])

    def _reduce(self, node: PlanNode, rank: int) -> None:
        axes = node.constant(1)
        if axes is None:
            return
        perm, gone = self._perm(rank), {int(a) % rank for a in np.ravel(axes)}
        keeps = node.attrs["keep_dims"]
        left = [d for d in perm if d not in gone]
        if keeps or left == sorted(left):
            wanted = self._integers(node, [i for i, d in enumerate(perm) if d in gone])
            self._put(node, [self._given(node, node.inputs[0]), wanted], node.attrs, [keeps])

    def _along(self, node: PlanNode, rank: int) -> None:
        at = _AXES[node.op] % len(node.inputs)
        axis = node.constant(at)
        if axis is None:
            return
        inputs = [self._given(node, v) if _rank(v) == rank else v for v in node.inputs]
        inputs[at] = self._integers(node, self._perm(rank).index(int(axis) % rank))
        self._put(node, inputs, node.attrs)

    def _operand(self, node: PlanNode, value: Value, rank: int) -> Value | None:
        """An operand of an elementwise op as it stands by images as wanted; None where its shape does not tell."""
        shape = value.shape
        if shape is None or shape == () or len(shape) == rank:
            return None if shape is None else value if shape == () else self._given(node, value)
        if None in shape or node.op == "Select":  # whose condition of one dim is about rows
            return None
        whole = (1,) * (rank - len(shape)) + shape
        return self._transposed(node, self._made(node, "Reshape", [value, whole], whole), self._perm(rank))

    # -- making nodes

    def _perm(self, rank: int, back: bool = False) -> list[int]:
        """Dims of an image as written, in the order of those as wanted; ``back``: the other way."""
        if self._first is not back:
            return [0, rank - 1, *range(1, rank - 1)]
        return [0, *range(2, rank), 1]

    def _given(self, node: PlanNode, value: Value) -> Value:
        """An image as wanted, for a node that reads it."""
        if value not in self.turned:
            self.turned[value] = self._transposed(node, value, self._perm(_rank(value)))
        return self.turned[value]

    def _put(
        self, node: PlanNode, inputs: Sequence[Value], attrs: Mapping[str, Any], images: Sequence[bool] | None = None
    ) -> None:
        """Put a node over other inputs in its own place; ``images``: which outputs are images, as wanted from now on."""
        images = [True] * len(node.outputs) if images is None else images
        types = [
            (v.dtype, _permuted(v.shape, self._perm(_rank(v))) if image else v.shape)
            for v, image in zip(node.outputs, images, strict=True)
        ]
        made = make_node(node.opdef, node.name, inputs, attrs, types, origins=node.origins, **_place(node))
        if not self._context.computes(made):
            return
        values = self._change.insert(made, before=node).outputs
        written = [
            self._transposed(node, v, self._perm(_rank(v), back=True)) if image else v
            for v, image in zip(values, images, strict=True)
        ]
        self.turned.update([(v, t) for v, t, image in zip(node.outputs, values, images, strict=True) if image])
        self._change.replace(node, written)

    def _transposed(self, node: PlanNode, value: Value, perm: Sequence[int]) -> Value:
        return self._made(node, "Transpose", [value, perm], _permuted(value.shape, perm))

    def _gathered(self, node: PlanNode, sizes: Value, perm: Sequence[int]) -> Value:
        """Sizes of an image in another order."""
        return self._made(node, "Gather", [sizes, perm, 0], sizes.shape)

    def _integers(self, node: PlanNode, numbers: Any) -> Value:
        array = np.array(numbers, np.int32)
        named = Value(f"{node.name}/layout", int32, array.shape)
        made = self._change.number(self._context.constant(node, named, array))
        return self._change.insert(made, before=node).outputs[0]

    def _made(self, node: PlanNode, op: str, given: Sequence[Any], shape: Dims, **attrs: Any) -> Value:
        """The value of a new node before one, over values and numbers."""
        opdef = self._context.opdef(op)
        inputs = [v if isinstance(v, Value) else self._integers(node, v) for v in given]
        types = {t.name for t in opdef.types}
        attrs |= {a.dtype: v.dtype for a, v in zip(opdef.inputs, inputs, strict=True) if a.dtype in types}
        result = opdef.outputs[0].dtype
        dtype = attrs[result] if result in types else int32
        made = make_node(opdef, f"{node.name}/{op.lower()}", inputs, attrs, [(dtype, shape)], **_place(node))
        return self._change.insert(self._change.number(made), before=node).outputs[0]


def _place(node: PlanNode) -> dict[str, Any]:
    return {"requested": node.requested, "site_of": node.site_of}


def _rank(value: Value) -> int:
    return -1 if value.shape is None else len(value.shape)


def _permuted(shape: Dims, perm: Sequence[int]) -> Dims:
    return None if shape is None else tuple([shape[d] for d in perm])
