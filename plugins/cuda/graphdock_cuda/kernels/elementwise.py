"""Ops whose spec states a formula over single elements: one kernel is made of it for each set of element types.

The flat kernel moves 16 bytes at a time; the other one broadcasts over up to eight axes, after neighbouring axes that
broadcast alike have been merged. Both count in 32 bits where that is enough.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Sequence
from importlib import resources
from typing import Any

from graphdock.contracts import KernelDef

from graphdock_cuda.compiled import Source
from graphdock_cuda.formula import printed
from graphdock_cuda.kernel import PLAIN, family
from graphdock_cuda.launch import i32, i64, raw
from graphdock_cuda.work import CTYPES, Operand, Work, blocks

__all__ = ["KERNELS", "elementwise", "mapped", "merged"]

KERNELS: list[KernelDef] = []
kernel = family(KERNELS)

MAX_RANK = 8
#: Elements per thread of a grid that need not be larger.
_PER_THREAD = 4


@functools.cache
def _template() -> Any:
    import jinja2

    text = (resources.files("graphdock_cuda") / "source" / "elementwise.cu.j2").read_text("utf-8")
    return jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=False).from_string(text)  # noqa: S701


@functools.lru_cache(4096)
def _source(
    name: str,
    body: str,
    inputs: tuple[tuple[str, str], ...],
    uniform: frozenset[str],
    out: str,
    work: str,
    parts: tuple[str, ...] = (),
) -> Source:
    sizes = [_SIZES[ctype] for _, ctype in inputs] + [_SIZES[out]]
    code = _template().render(
        body=body, inputs=inputs, uniform=uniform, out=out, work=work, width=max(1, 16 // max(sizes))
    )
    return Source(name, ("complex.cuh", "scalar.cuh", *parts), code=code)


_SIZES = {
    **dict.fromkeys(("bool", "i8", "u8"), 1),
    **dict.fromkeys(("i16", "u16", "half_t", "bfloat16_t"), 2),
    **dict.fromkeys(("i32", "u32", "float"), 4),
    **dict.fromkeys(("i64", "u64", "double", "complex64"), 8),
    "complex128": 16,
}


def merged(out: Sequence[int], shapes: Sequence[Sequence[int]]) -> tuple[list[int], list[list[int]]]:
    """Dims and strides (in elements, 0 where stretched) of shapes that are broadcast to ``out``, with as few axes as possible."""
    rank = len(out)
    strides = []
    for shape in shapes:
        padded = [1] * (rank - len(shape)) + list(shape)
        steps, step = [0] * rank, 1
        for axis in reversed(range(rank)):
            steps[axis] = step if padded[axis] != 1 else 0
            step *= padded[axis]
        strides.append(steps)
    dims: list[int] = []
    kept: list[list[int]] = [[] for _ in shapes]
    for axis in range(rank):
        if out[axis] == 1:
            continue
        joins = bool(dims) and all(
            steps[-1] == steps_in[axis] * out[axis] for steps, steps_in in zip(kept, strides, strict=True)
        )
        if joins:
            dims[-1] *= out[axis]
            for steps, steps_in in zip(kept, strides, strict=True):
                steps[-1] = steps_in[axis]
        else:
            dims.append(out[axis])
            for steps, steps_in in zip(kept, strides, strict=True):
                steps.append(steps_in[axis])
    return dims, kept


def broadcast_shape(shapes: Sequence[Sequence[int]]) -> tuple[int, ...]:
    """The shape that all of these are broadcast to; they agree, which the op's shape rule has checked."""
    rank = max(map(len, shapes), default=0)
    dims = []
    for axis in range(-rank, 0):
        found = {s[axis] for s in shapes if len(s) >= -axis and s[axis] != 1}
        dims.append(found.pop() if found else 1)
    return tuple(dims)


def elementwise(
    w: Work, text: str, operands: Sequence[tuple[str, Operand]], out: Operand, work: str | None = None
) -> None:
    """Launch a formula.

    Args:
      operands: name in the formula and array, broadcast to ``out``'s shape. Other names are attributes of the op.
      work: dtype that numbers of the formula have; default: the output's, of a bool output the first operand's.
    """
    names = {name: f"x{i}" for i, (name, _) in enumerate(operands)}
    body = printed(text, names, w.node.attrs, CTYPES[out.dtype.name])
    mapped(w, w.node.op.lower(), body, [x for _, x in operands], out, work)


def mapped(
    w: Work,
    name: str,
    body: str,
    arrays: Sequence[Operand],
    out: Operand,
    work: str | None = None,
    parts: tuple[str, ...] = (),
) -> None:
    """Launch an expression of C++ over single elements.

    Args:
      body: over ``x0``, ``x1``, ... as compute types, with the functions of ``source/scalar.cuh``; ``TO`` is the type of
        elements of the output, ``C`` the compute type of ``work``.
      arrays: broadcast to ``out``'s shape. One of them may be ``out`` itself.
      parts: further files of ``source`` that the expression needs.
    """
    if not out.size:
        return
    ctypes = tuple((f"x{i}", CTYPES[x.dtype.name]) for i, x in enumerate(arrays))
    if work is None:
        work = (
            next((x.dtype for x in arrays if not x.dtype.is_bool), out.dtype).name
            if out.dtype.is_bool
            else out.dtype.name
        )
    of_work = f"compute_t<{CTYPES[work]}>"
    index = "32" if out.size < 1 << 31 else "64"
    grid = blocks(out.size, 256 * _PER_THREAD)
    if all(x.size == 1 or x.shape == out.shape for x in arrays):
        uniform = frozenset(f"x{i}" for i, x in enumerate(arrays) if x.size == 1)
        source = _source(name, body, ctypes, uniform, CTYPES[out.dtype.name], of_work, parts)
        w.launch(source, f"flat_{index}", grid, 256, *arrays, out, i64(out.size))
        return
    dims, strides = merged(out.shape, [x.shape for x in arrays])
    if len(dims) > MAX_RANK:
        raise w.refuse(f"it broadcasts over {len(dims)} axes, and the kernel over at most {MAX_RANK}")
    packed = [steps + [0] * (MAX_RANK - len(dims)) for steps in (dims, *strides)]
    at = struct.pack(f"<{MAX_RANK * len(packed)}q", *[n for steps in packed for n in steps])
    source = _source(name, body, ctypes, frozenset(), CTYPES[out.dtype.name], of_work, parts)
    w.launch(source, f"broadcast_{index}", grid, 256, *arrays, out, i64(out.size), i32(len(dims)), raw(at))


def _by_formula(w: Work) -> None:
    opdef = w.node.opdef
    assert opdef.scalar is not None
    out = w.output(broadcast_shape([x.shape for x in w.inputs]))
    elementwise(w, opdef.scalar, [(arg.name, x) for arg, x in zip(opdef.inputs, w.inputs, strict=True)], out)


_UNARY = (
    "Abs Ceil Cos Cosh Erf Erfc Exp Expm1 Floor Log Log1p Neg Reciprocal Rint Round Rsqrt "
    "Sigmoid Sign Sin Sinh Sqrt Square Tan Tanh"
).split()
_BINARY = "Add Sub RealDiv FloorDiv FloorMod Pow Maximum Minimum SquaredDifference".split()
_TO_BOOL = "Less LessEqual Greater GreaterEqual IsNan IsInf IsFinite".split()

_IN_PLACE = {"inplace": {"y": ("x",)}, "modes": ("planned", "fresh", "inplace")}
kernel(*_UNARY, **_IN_PLACE)(_by_formula)
#: Of complex numbers they are left to the cpu.
kernel(
    "Acos",
    "Acosh",
    "Asin",
    "Asinh",
    "Atan",
    "Atanh",
    types={"T": ("float16", "bfloat16", "float32", "float64")},
    **_IN_PLACE,
)(_by_formula)
kernel(*_BINARY, inplace={"z": ("x", "y")}, modes=("planned", "fresh", "inplace"))(_by_formula)
kernel("Atan2", inplace={"z": ("y", "x")}, modes=("planned", "fresh", "inplace"))(_by_formula)
kernel(*_TO_BOOL, "LogicalAnd", "LogicalOr", "LogicalXor", "LogicalNot")(_by_formula)
kernel("Equal", "NotEqual", types={"T": PLAIN})(_by_formula)
_FEATURES = {"inplace": {"activations": ("features",)}, "modes": ("planned", "fresh", "inplace")}
kernel("Relu", "Relu6", "LeakyRelu", **_FEATURES)(_by_formula)
kernel("ReluGrad", "LeakyReluGrad", "Cast")(_by_formula)
kernel("Select", types={"T": PLAIN}, inplace={"z": ("y",)}, modes=("planned", "fresh", "inplace"))(_by_formula)
