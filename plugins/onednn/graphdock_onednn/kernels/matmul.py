"""Products of matrices, alone and with a bias and an activation.

A transposed operand is one whose strides stand the other way round; so is a view that the program's arrays are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphdock_onednn.activations import activate, activation_refused, behind
from graphdock_onednn.interface import Arg, Fact
from graphdock_onednn.kernel import kernel
from graphdock_onednn.program import Steps
from graphdock_onednn.programs import Call

__all__ = ["KERNELS"]


def _of_rank(shape: Sequence[int], strides: Sequence[int], rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Shape and strides with dims of 1 in front."""
    added = rank - len(shape)
    whole = max([n * s for n, s in zip(shape, strides, strict=True)], default=1)
    return (1,) * added + tuple(shape), (whole,) * added + tuple(strides)


def _turned(values: Sequence[int], transpose: bool) -> tuple[int, ...]:
    return (*values[:-2], values[-1], values[-2]) if transpose else tuple(values)


def _product(steps: Steps, call: Call) -> None:
    """``(a, b) -> y``."""
    ta, tb = call.attr("transpose_a"), call.attr("transpose_b")
    rank = len(call.shapes[2])
    lying = [_of_rank(shape, strides, rank) for shape, strides in zip(call.shapes, call.strides, strict=True)]
    a, b, y = (
        steps.layout(dtype, _turned(shape, turn), _turned(strides, turn))
        for dtype, (shape, strides), turn in zip(call.dtypes, lying, (ta, tb, False), strict=True)
    )
    _multiply(steps, call, (a, b, None), steps.array(2, y), {}, steps.attributes())


def _multiply(
    steps: Steps, call: Call, factors: tuple[Any, Any, Any], target: int, more: Mapping[int, int], attributes: Any
) -> None:
    """Add the product of two matrices, and a bias or none, of these layouts, into a slot.

    A right matrix that is constant is brought into the layout that the library likes.
    """
    a, b, bias = factors
    shape = _turned(call.shapes[1], call.attr("transpose_b"))
    plain = 1 not in call.constants or len(shape) > 2 or len(call.shapes[0]) > 2
    liked = b if plain else steps.layout(call.dtypes[1], shape)
    made = steps.described("matmul", a, liked, bias, steps.layout_of(target), attributes)
    slots = {
        Arg.SRC: steps.array(0, a),
        Arg.WEIGHTS: steps.read(steps.array(1, b), steps.wants(made, Fact.WEIGHTS)),
        Arg.DST: target,
    }
    if bias is not None:
        slots[Arg.BIAS] = steps.array(2, bias)
    steps.add(made, slots | dict(more), (target,))


def _fused(steps: Steps, call: Call) -> None:
    """``(a, b, bias) -> (y, before)``: what is not read is not computed."""
    name, after, before = call.attr("activation"), *call.used
    turns = call.attr("transpose_a"), call.attr("transpose_b"), False, False, False
    shapes = (*call.shapes[:2], (1, *call.shapes[2]), *call.shapes[3:])
    strides = (*call.strides[:2], (call.shapes[2][0] * call.strides[2][0], *call.strides[2]), *call.strides[3:])
    a, b, bias, y, other = (
        steps.layout(dtype, _turned(shape, turn), _turned(lying, turn))
        for dtype, shape, lying, turn in zip(call.dtypes, shapes, strides, turns, strict=True)
    )
    attributes, more = behind(steps, "none" if before else name, 2)
    target = steps.array(4, other) if before else steps.array(3, y)
    _multiply(steps, call, (a, b, bias), target, more, attributes)
    if before and after:
        activate(steps, name, target, steps.array(3, y))


KERNELS = [
    *kernel("MatMul", _product, attrs=("transpose_a", "transpose_b"), strided=True),
    *kernel(
        "FusedMatMul",
        _fused,
        attrs=("transpose_a", "transpose_b", "activation"),
        check=activation_refused,
        strided=True,
    ),
]
