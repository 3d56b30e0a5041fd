"""Kernels of the toy device, and one for cpu: an own op needs no entry in ``backends``.

Every kernel is a NumPy function from arrays to an array; :func:`_toy` unwraps buffers, counts the launch and stores the
result.
"""

import numpy as np
from graphdock.contracts import KernelDef, errors

from graphdock_toy.device import count

__all__ = ["KERNELS"]


def _toy(op, make, *, name="", inplace=None, **declared):
    """A KernelDef; ``make(ctx)`` returns a function from the inputs' arrays to the output's array."""

    def build(ctx):
        function, device, inputs = make(ctx), ctx.device, len(ctx.inputs)
        ours = [info.memory_space == device.memory_space or info.variable for info in ctx.inputs]
        stays = [info.memory_space != device.memory_space for info in ctx.outputs]

        def launch(*args):
            count(kernel.short_name)
            return function(*(a.array if mine else a for a, mine in zip(args, ours, strict=False)))

        def fresh(*args):
            result = launch(*args)
            return np.asarray(result) if stays[0] else device.wrap(result)

        def planned(*args):
            out = args[inputs]
            np.copyto(out if stays[0] else out.array, launch(*args[:inputs]), "unsafe")

        def effect(*args):
            launch(*args)

        return effect if not ctx.outputs else fresh if ctx.fresh else planned

    modes = ("planned", "fresh", "inplace") if inplace else ("planned", "fresh")
    kernel = KernelDef(op, "toy", build, name, inplace=inplace or {}, modes=modes, **declared)
    return kernel


def _always(function):
    return lambda ctx: function


def _binary(op, ufunc):
    return _toy(op, _always(ufunc), inplace={"z": ("x", "y")})


def _unary(op, ufunc):
    return _toy(op, _always(ufunc), inplace={"y": ("x",)})


def _add_n(ctx):
    return lambda *arrays: sum(arrays[1:], arrays[0])


def _cast(ctx):
    return lambda x: x.astype(ctx.outputs[0].dtype.np)


def _shape(ctx):
    return lambda x: np.array(x.shape, ctx.outputs[0].dtype.np)


def _matmul(ctx):
    flip_a, flip_b = ctx.attr("transpose_a"), ctx.attr("transpose_b")
    return lambda a, b: np.matmul(a.swapaxes(-1, -2) if flip_a else a, b.swapaxes(-1, -2) if flip_b else b)


def _even(node):
    """The toy multiplies only matrices whose inner size is even."""
    shape = node.inputs[0].shape
    inner = None if shape is None else shape[-2 if node.attrs["transpose_a"] else -1]
    return None if inner is None or inner % 2 == 0 else f"inner size {inner} is odd"


def _sum(ctx):
    keep = ctx.attr("keep_dims")

    def compute(x, axis):
        axes = tuple(np.atleast_1d(axis).tolist())
        if any(not -x.ndim <= a < x.ndim for a in axes) or len({a % x.ndim for a in axes}) < len(axes):
            raise errors.InvalidArgumentError(f"{list(axes)} are no axes of a tensor of rank {x.ndim}")
        return np.sum(x, axes, dtype=x.dtype, keepdims=keep)

    return compute


def _zeros_like(x):
    return np.full(x.shape, b"", object) if x.dtype.hasobject else np.zeros_like(x)


def _scale(ctx):
    factor = ctx.attr("factor")
    return lambda x: x * x.dtype.type(factor)


def _scale_cpu(ctx):
    factor = ctx.inputs[0].dtype.np.type(ctx.attr("factor"))
    if ctx.fresh:
        return lambda x: np.asarray(x * factor)
    return lambda x, y: np.multiply(x, factor, y)


def _store(variable, value):
    np.copyto(variable, value)


def _add(variable, value):
    variable += value


def _subtract(variable, value):
    variable -= value


def _on_table(function):
    """``function(table, *ints) -> int`` as a build: the kernel gets the resource itself, the rest is in host memory."""

    def build(ctx):
        if ctx.fresh:
            return lambda table, *args: np.asarray(function(table, *map(int, args)), np.int64)

        def compute(table, *args):
            args[-1][()] = function(table, *map(int, args[:-1]))

        return compute

    return build


def _count_up(table, key, by):
    table.values[key] = table.get(key) + by
    return table.values[key]


def _look_up(table, key):
    return table.get(key)


KERNELS = [
    _toy("Identity", _always(np.copy)),
    _toy("StopGradient", _always(np.copy)),
    _toy("AddN", _add_n),
    _toy("Cast", _cast),
    _toy("ZerosLike", _always(_zeros_like)),
    _toy("OnesLike", _always(np.ones_like)),
    _toy("Shape", _shape, host=("output",)),
    _toy("ReadVariableOp", _always(np.copy)),
    _toy("AssignVariableOp", _always(_store)),
    _toy("AssignAddVariableOp", _always(_add)),
    _toy("AssignSubVariableOp", _always(_subtract)),
    _binary("Add", np.add),
    _binary("Sub", np.subtract),
    _binary("Mul", np.multiply),
    _binary("Maximum", np.maximum),
    _toy("Less", _always(np.less)),
    _toy("Greater", _always(np.greater)),
    _unary("Neg", np.negative),
    _unary("Square", np.square),
    _unary("Exp", np.exp),
    _toy("Relu", _always(lambda x: np.maximum(x, x.dtype.type(0)))),
    _toy("MatMul", _matmul, types={"T": ("float32", "float64")}, check=_even),
    _toy("Sum", _sum, host=("axis",)),
    _toy("toy.Scale", _scale),
    KernelDef("toy.Scale", "cpu", _scale_cpu, "scale_cpu"),
    KernelDef("toy.Count", "host", _on_table(_count_up)),
    KernelDef("toy.Counted", "host", _on_table(_look_up)),
]
