"""Kernels of tandem. ``build(ctx)`` runs once per node and instance; what it returns queues work on ``ctx.queue`` and returns.

Arrays are touched by the work alone, later, on the queue's thread.
"""

import numpy as np
from graphdock.contracts import Bound, KernelDef, Scratch, dtypes, errors

from graphdock_tandem.device import Buffer

__all__ = ["KERNELS"]

FLOATS = {"T": ("float32", "float64")}


def _taken(value):
    """An argument as work sees it: a buffer's array, or a copy of a host argument, which may change after the launch."""
    return value.array if isinstance(value, Buffer) else np.array(value)


def queued(make, shape, scratch=None):
    """A build whose work is ``make(ctx)(*inputs, *outputs, *scratch)``, on arrays.

    ``shape(ctx, *inputs)`` is the output's, for plans that don't know it; ``scratch(shape, dtype)`` lists temporaries.
    """

    def build(ctx):
        work, queue, node, outputs = make(ctx), ctx.queue, ctx.node, ctx.outputs

        def planned(*args):
            arrays = [_taken(arg) for arg in args]
            queue.launch(node, lambda: work(*arrays))

        def fresh(*args):
            try:
                known = shape(ctx, *args)
            except ValueError as error:  # said by the call itself: nothing is queued
                raise errors.InvalidArgumentError(str(error)) from None
            made = queue.empty(outputs[0].dtype, known)
            wanted = [] if scratch is None else scratch(made.shape, outputs[0].dtype)
            planned(*args, made, *(queue.empty(s.dtype, s.shape) for s in wanted))
            return made

        if ctx.fresh:
            return fresh
        return Bound(planned, scratch=tuple(scratch(outputs[0].shape, outputs[0].dtype)) if scratch else ())

    return build


# -- elementwise


def _elementwise(op, function, **fields):
    def shape(ctx, *inputs):
        return np.broadcast_shapes(*(x.shape for x in inputs))

    return KernelDef(op, "tandem", queued(lambda ctx: function, shape), types=FLOATS, **fields)


def _relu(x, out):
    np.maximum(x, 0, out=out)


def _relu_grad(gradients, features, out):
    np.multiply(gradients, features > 0, out=out)


# -- a product


def _mat_mul(ctx):
    flip_a, flip_b = ctx.attr("transpose_a"), ctx.attr("transpose_b")
    return lambda a, b, out: np.matmul(a.swapaxes(-1, -2) if flip_a else a, b.swapaxes(-1, -2) if flip_b else b, out)


def _mat_mul_shape(ctx, a, b):
    rows, inner = a.shape[-2:][::-1] if ctx.attr("transpose_a") else a.shape[-2:]
    same, columns = b.shape[-2:][::-1] if ctx.attr("transpose_b") else b.shape[-2:]
    if inner != same:
        raise ValueError(f"inner dims {inner} and {same} differ")
    return (*np.broadcast_shapes(a.shape[:-2], b.shape[:-2]), rows, columns)


# -- a reduction: the axes are host memory, the sum of float32 is made in a scratch buffer of float64


def _axes(axis, rank):
    try:
        return np.lib.array_utils.normalize_axis_tuple(np.asarray(axis).reshape(-1).tolist(), rank)
    except ValueError as error:
        raise errors.InvalidArgumentError(str(error)) from None


def _sum(ctx):
    keep = ctx.attr("keep_dims")

    def compute(x, axis, out, total):
        np.add.reduce(x, _axes(axis, x.ndim), np.float64, total, keep)
        np.copyto(out, total, "same_kind")

    return compute


def _sum_shape(ctx, x, axis):
    axes = _axes(axis, len(x.shape))
    return tuple(1 if i in axes else d for i, d in enumerate(x.shape) if ctx.attr("keep_dims") or i not in axes)


def _sum_scratch(shape, dtype):
    return [Scratch(dtypes.float64, tuple(shape))]


# -- random numbers: the stream stands between the inputs and the outputs


def _uniform(ctx):
    queue, node, out = ctx.queue, ctx.node, ctx.outputs[0]

    def draw(shape, stream, buffer):
        array, key = buffer.array, stream.key
        _, iteration, outer = stream.counter()
        # the ordinal of this step is a step argument: it is read when the work runs
        ordinal = queue.arguments.array[stream.slot : stream.slot + 8].view(np.uint64)

        def run():
            counter = np.array([0, outer, iteration, ordinal[0]], np.uint64)
            bits = np.random.Philox(counter=counter, key=np.array(key, np.uint64))
            np.random.Generator(bits).random(out=array, dtype=array.dtype)

        queue.launch(node, run)

    def fresh(shape, stream):
        if (shape < 0).any():
            raise errors.InvalidArgumentError(f"shape {shape.tolist()} has a negative size")
        made = queue.empty(out.dtype, tuple(shape.tolist()))
        draw(shape, stream, made)
        return made

    return fresh if ctx.fresh else draw


# -- an update: the first input is the variable's own buffer


def _descend(ctx):
    def compute(var, alpha, delta):
        if var.shape != delta.shape:  # in a plan for any shape, only the work itself knows
            raise errors.InvalidArgumentError(
                "the gradient has another shape", expected=str(var.shape), got=str(delta.shape)
            )
        np.subtract(var, np.multiply(delta, alpha, dtype=var.dtype), var)

    return compute


KERNELS = [
    _elementwise("Add", np.add, inplace={"z": ("x", "y")}),
    _elementwise("Sub", np.subtract, inplace={"z": ("x", "y")}),
    _elementwise("Mul", np.multiply, inplace={"z": ("x", "y")}),
    _elementwise("Square", np.square, inplace={"y": ("x",)}),
    _elementwise("Tanh", np.tanh, inplace={"y": ("x",)}),
    _elementwise("Relu", _relu),
    _elementwise("ReluGrad", _relu_grad),
    KernelDef("MatMul", "tandem", queued(_mat_mul, _mat_mul_shape), types=FLOATS),
    KernelDef("Sum", "tandem", queued(_sum, _sum_shape, _sum_scratch), types=FLOATS, host=("axis",)),
    KernelDef("RandomUniform", "tandem", _uniform, types={"dtype": FLOATS["T"]}, host=("shape",)),
    KernelDef("ResourceApplyGradientDescent", "tandem", queued(_descend, None), types=FLOATS),
]
