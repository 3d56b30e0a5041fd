"""An op as a call of a kernel of the library. Imports no triton.

A :class:`Call` says it for one node: the problem, and which tensor of the op each argument of the kernel is. The other modules of
this folder have functions that make the call of one op from what a kernel is told when it is prepared, and a tuple of
:class:`Operation`; :mod:`graphdock_triton.operations.table` puts these together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from graphdock.contracts import KernelRefused, PrepareContext, errors

from graphdock_triton.kernels.spec import Problem

__all__ = [
    "FLOATS",
    "Call",
    "Operation",
    "activation_of",
    "dims_of",
    "precision_of",
    "problem_of",
    "rows_of",
    "type_of",
]

#: The dtypes of most kernels.
FLOATS = ("float32", "float16", "bfloat16")
#: Names of dtypes in Triton.
TYPES: Mapping[str, str] = {
    "float32": "fp32", "float16": "fp16", "bfloat16": "bf16", "int32": "i32", "int64": "i64",
    "bool": "i1",
}  # fmt: skip
#: What float32 operands of products are rounded to, by the option ``matmul_precision``.
PRECISIONS: Mapping[str, str] = {"highest": "ieee", "tf32": "tf32"}


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a kernel.

    Attributes:
      tensors: argument of the kernel -> position among the op's inputs and then outputs.
      values: argument -> number.
      kernel: other than the operation's, where another one computes this node.
      fault: of a kernel with the arguments ``fault`` and ``code`` the error that it may find, of the two numbers that it reports.
    """

    problem: Problem
    tensors: Mapping[str, int]
    values: Mapping[str, float] = field(default_factory=dict)
    fault: Callable[[int, int], errors.GraphdockError] | None = None
    kernel: str = ""


@dataclass(frozen=True, slots=True)
class Operation:
    """An op, the kernel of the library that computes it, and how.

    Attributes:
      types, inplace, priority: as of a KernelDef. ``name``: that of the KernelDef, where it is not the kernel's.
    """

    op: str
    kernel: str
    call: Callable[[PrepareContext], Call]
    types: Mapping[str, tuple[str, ...]]
    inplace: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    name: str = ""
    priority: int = 0


def dims_of(ctx: PrepareContext, index: int) -> tuple[int, ...]:
    """The shape of an input. Raises KernelRefused where it is not known."""
    shape = ctx.inputs[index].shape
    if shape is None or None in shape:
        raise KernelRefused("shapes are not known")
    return tuple([int(d) for d in shape if d is not None])


def type_of(ctx: PrepareContext, index: int) -> str:
    return TYPES[ctx.inputs[index].dtype.name]


def problem_of(ctx: PrepareContext, dims: Mapping[str, int], types: Mapping[str, str], **rest: Any) -> Problem:
    gpu = ctx.device.service("cuda-launch", 1)
    capability = int("".join(c for c in gpu.architecture if c.isdigit()))
    return Problem(dims, types, multiprocessors=gpu.multiprocessors, capability=capability, **rest)


def precision_of(ctx: PrepareContext) -> str:
    return PRECISIONS[ctx.options.get("matmul_precision", "highest")]


def activation_of(ctx: PrepareContext) -> str:
    """The attribute of fused ops, as kernels have it."""
    name: str = ctx.attr("activation")
    return "gelu_erf" if name == "gelu" else name


def rows_of(dims: tuple[int, ...], begin: int) -> dict[str, int]:
    """The dims before and from ``begin`` on, as ``rows`` and ``width``. Raises KernelRefused where there are no elements."""
    begin %= max(len(dims), 1)
    found = {"rows": math.prod(dims[:begin]), "width": math.prod(dims[begin:])}
    if not found["rows"] * found["width"]:
        raise KernelRefused("there are no elements")
    return found
