"""Updates of all variables of a model in one launch, and the norm of all gradients. Imports triton.

A launch is told tables in the GPU's memory. ``table`` is int64 [tensors, columns]: the addresses of a variable, its slots and its
gradient, and how many elements they have. ``chunks`` is int32 [programs, 2]: the tensor of a program, and which block of its
elements (:func:`chunks_of`). ``rates`` is int64 [rates]: the addresses of float32 scalars, which a recorded step reads anew.
Formulas are those of the std package's ResourceApply ops; halves are computed in float32 and rounded once. Multi-tensor launches:
NVIDIA Apex, 2018.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import triton
import triton.language as tl

from graphdock_triton.kernels.spec import FLOATS, Config, Kernel, Problem, Stage, cdiv, dim, scratch, tensor

__all__ = ["KERNELS", "RATES", "SLOTS", "chunks_of", "global_norm", "scale_all", "update_all"]

#: Rule -> its slots and its rates, in the order in which they are passed.
SLOTS = {
    "gradient_descent": (), "momentum": ("accum",), "nesterov": ("accum",), "adagrad": ("accum",), "adam": ("m", "v"),
    "adam_w": ("m", "v"), "rms_prop": ("ms", "mom"), "centered_rms_prop": ("mg", "ms", "mom"),
}  # fmt: skip
_ADAM = ("beta1_power", "beta2_power", "lr", "beta1", "beta2", "epsilon")
RATES = {
    "gradient_descent": ("alpha",), "momentum": ("lr", "momentum"), "nesterov": ("lr", "momentum"), "adagrad": ("lr",),
    "adam": _ADAM, "adam_w": (*_ADAM, "weight_decay"), "rms_prop": ("lr", "rho", "momentum", "epsilon"),
    "centered_rms_prop": ("lr", "rho", "momentum", "epsilon"),
}  # fmt: skip


def chunks_of(sizes: Sequence[int], block: int) -> list[tuple[int, int]]:
    """The table ``chunks`` of tensors of these sizes: one row per program of ``block`` elements."""
    return [(number, at) for number, size in enumerate(sizes) for at in range(cdiv(size, block))]


@triton.jit
def _elements(row, column: tl.constexpr, TYPE: tl.constexpr, ALIGNED: tl.constexpr):
    """The address in a column of a table's row, of elements of TYPE; ALIGNED: to 16 bytes."""
    address = tl.load(row + column)
    if TYPE == "fp16":
        at = address.to(tl.pointer_type(tl.float16))
    elif TYPE == "bf16":
        at = address.to(tl.pointer_type(tl.bfloat16))
    else:
        at = address.to(tl.pointer_type(tl.float32))
    if ALIGNED:
        at = tl.multiple_of(at, 16)
    return at


@triton.jit
def _place(table, chunks, COLUMNS: tl.constexpr, BLOCK: tl.constexpr):
    """The program's row of the table, the first of its elements, and how many are left from there on."""
    row = table + tl.load(chunks + 2 * tl.program_id(0)).to(tl.int64) * COLUMNS
    first = tl.load(chunks + 2 * tl.program_id(0) + 1).to(tl.int64) * BLOCK
    return row, first, tl.load(row + COLUMNS - 1) - first


@triton.jit
def _read(at, left, MASKED: tl.constexpr):
    """Elements at ``at`` in float32. A block that is whole has no mask, and is read 16 bytes at a time."""
    if MASKED:
        return tl.load(at, tl.arange(0, at.shape[0]) < left, other=0.0).to(tl.float32)
    return tl.load(at).to(tl.float32)


@triton.jit
def _write(at, v, left, MASKED: tl.constexpr):
    if MASKED:
        tl.store(at, v.to(at.dtype.element_ty), tl.arange(0, at.shape[0]) < left)
    else:
        tl.store(at, v.to(at.dtype.element_ty))


@triton.jit
def _rate(rates, at: tl.constexpr):
    return tl.load(tl.load(rates + at).to(tl.pointer_type(tl.float32)))


@triton.jit
def _adam(var, m, v, grad, rates):
    """Kingma and Ba, 2014. Powers near 1 are taken from 1 in float64."""
    power1, power2 = _rate(rates, 0).to(tl.float64), _rate(rates, 1).to(tl.float64)
    rate = (_rate(rates, 2).to(tl.float64) * tl.sqrt(1.0 - power2) / (1.0 - power1)).to(tl.float32)
    m += (grad - m) * (1.0 - _rate(rates, 3).to(tl.float64)).to(tl.float32)
    v += (grad * grad - v) * (1.0 - _rate(rates, 4).to(tl.float64)).to(tl.float32)
    return var - m / (tl.sqrt(v) + _rate(rates, 5)) * rate, m, v


@triton.jit
def _update(
    row, first, left, rates, factor, RULE: tl.constexpr, COLUMNS: tl.constexpr, TYPE: tl.constexpr, ALIGNED: tl.constexpr,
    BLOCK: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """A block from element ``first`` on, in place."""
    at = first + tl.arange(0, BLOCK)
    var_at = _elements(row, 0, TYPE, ALIGNED) + at
    var = _read(var_at, left, MASKED)
    grad = _read(_elements(row, COLUMNS - 2, TYPE, ALIGNED) + at, left, MASKED)
    if factor is not None:
        grad *= tl.load(factor)
    if COLUMNS > 3:
        slot_at = _elements(row, 1, TYPE, ALIGNED) + at
        slot = _read(slot_at, left, MASKED)
    if COLUMNS > 4:
        second_at = _elements(row, 2, TYPE, ALIGNED) + at
        second = _read(second_at, left, MASKED)
    if COLUMNS > 5:
        third_at = _elements(row, 3, TYPE, ALIGNED) + at
        third = _read(third_at, left, MASKED)
    if RULE == "gradient_descent":
        var -= grad * _rate(rates, 0)
    elif RULE == "momentum":
        slot = slot * _rate(rates, 1) + grad
        var -= _rate(rates, 0) * slot
    elif RULE == "nesterov":
        slot = slot * _rate(rates, 1) + grad
        var -= _rate(rates, 0) * (slot * _rate(rates, 1) + grad)
    elif RULE == "adagrad":
        slot += grad * grad
        var -= grad / tl.sqrt(slot) * _rate(rates, 0)
    elif RULE == "adam":
        var, slot, second = _adam(var, slot, second, grad, rates)
    elif RULE == "adam_w":
        var *= (1.0 - _rate(rates, 2).to(tl.float64) * _rate(rates, 6).to(tl.float64)).to(tl.float32)
        var, slot, second = _adam(var, slot, second, grad, rates)
    elif RULE == "rms_prop":
        slot += (grad * grad - slot) * (1.0 - _rate(rates, 1).to(tl.float64)).to(tl.float32)
        second = second * _rate(rates, 2) + grad / tl.sqrt(slot + _rate(rates, 3)) * _rate(rates, 0)
        var -= second
    else:
        tl.static_assert(RULE == "centered_rms_prop")
        rest = (1.0 - _rate(rates, 1).to(tl.float64)).to(tl.float32)
        slot += (grad - slot) * rest
        second += (grad * grad - second) * rest
        third = third * _rate(rates, 2) + grad / tl.sqrt(second - slot * slot + _rate(rates, 3)) * _rate(rates, 0)
        var -= third
    _write(var_at, var, left, MASKED)
    if COLUMNS > 3:
        _write(slot_at, slot, left, MASKED)
    if COLUMNS > 4:
        _write(second_at, second, left, MASKED)
    if COLUMNS > 5:
        _write(third_at, third, left, MASKED)


@triton.jit
def update_tensors(
    table, chunks, rates, factor,
    RULE: tl.constexpr, COLUMNS: tl.constexpr, TYPE: tl.constexpr, ALIGNED: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """A block of one variable and its slots, in place. Columns: variable, slots, gradient, elements."""
    row, first, left = _place(table, chunks, COLUMNS, BLOCK)
    if left >= BLOCK:
        _update(row, first, left, rates, factor, RULE, COLUMNS, TYPE, ALIGNED, BLOCK, False)
    else:
        _update(row, first, left, rates, factor, RULE, COLUMNS, TYPE, ALIGNED, BLOCK, True)


@triton.jit
def square_parts(
    table, chunks, parts, COLUMNS: tl.constexpr, TYPE: tl.constexpr, ALIGNED: tl.constexpr, BLOCK: tl.constexpr
):
    """The sum of squares of a block of one tensor. Columns: address, elements."""
    row, first, left = _place(table, chunks, COLUMNS, BLOCK)
    at = _elements(row, 0, TYPE, ALIGNED) + first + tl.arange(0, BLOCK)
    if left >= BLOCK:
        v = _read(at, left, False)
    else:
        v = _read(at, left, True)
    tl.store(parts + tl.program_id(0), tl.sum(v * v, 0))


@triton.jit
def norm_of_parts(parts, norm, factor, limit, programs, JOIN: tl.constexpr):
    """The norm, and the factor that makes it at most ``limit``: limit / max(norm, limit), NaN if the norm is infinite or NaN."""
    lane = tl.arange(0, JOIN)
    sums = tl.zeros([JOIN], tl.float64)
    for begin in range(0, programs, JOIN):
        sums += tl.load(parts + begin + lane, begin + lane < programs, other=0.0).to(tl.float64)
    whole = tl.sqrt(tl.sum(sums, 0)).to(tl.float32)
    tl.store(norm, whole)
    if factor is not None:
        most = tl.load(limit)
        tl.store(factor, most / tl.where(whole > most, whole, most) + (whole - whole))


@triton.jit
def scale_tensors(
    table, chunks, factor, COLUMNS: tl.constexpr, TYPE: tl.constexpr, ALIGNED: tl.constexpr, BLOCK: tl.constexpr
):
    """A block of one tensor, times the factor. Columns: from, to, elements."""
    row, first, left = _place(table, chunks, COLUMNS, BLOCK)
    at = first + tl.arange(0, BLOCK)
    here = _elements(row, 0, TYPE, ALIGNED) + at
    to = _elements(row, 1, TYPE, ALIGNED) + at
    if left >= BLOCK:
        _write(to, _read(here, left, False) * tl.load(factor), left, False)
    else:
        _write(to, _read(here, left, True) * tl.load(factor), left, True)


def _configs(p: Problem) -> Sequence[Config]:
    """Elements of a program: 16 bytes per thread and tensor, or twice that."""
    wide = p.flags.get("TYPE", "fp32") == "fp32"
    sizes = ((1024, 4), (2048, 8), (2048, 4), (512, 4)) if wide else ((1024, 4), (2048, 4), (2048, 8))
    return [Config({"BLOCK": block}, warps) for block, warps in sizes]


def _programs(p: Problem, c: Config) -> tuple[int, ...]:
    return (p.dims["programs"],)


def _columns(count: int) -> Callable[[Problem, Config], Mapping[str, Any]]:
    return lambda p, c: {"COLUMNS": count, "JOIN": 1024}


_TABLES = (
    tensor("table", "i64", "in", "[tensors, columns]"),
    tensor("chunks", "i32", "in", "[programs, 2]: a program's tensor, and its block of BLOCK elements"),
    dim("programs"),
)
_FLAGS = {"TYPE": FLOATS, "ALIGNED": (True, False)}

update_all = Kernel(
    name="update_all",
    doc=__doc__,
    types={},
    flags={"RULE": tuple(SLOTS), **_FLAGS},
    arguments=(
        *_TABLES,
        tensor("rates", "i64", "in", "[rates]: addresses of the rule's, in the order of RATES"),
        tensor("factor", "fp32", "in", "[1]: of all gradients", optional=True),
    ),
    stages=(Stage(update_tensors, _programs),),
    configs=_configs,
    constants=lambda p, c: {"COLUMNS": 3 + len(SLOTS[p.flags.get("RULE", "gradient_descent")])},
)

global_norm = Kernel(
    name="global_norm",
    doc="The norm of many tensors as one, and the factor that clips it (Pascanu, Mikolov and Bengio, 2012), in two stages.",
    types={},
    flags=_FLAGS,
    arguments=(
        *_TABLES,
        scratch("parts", "fp32", "[programs]", lambda p, c: p.dims["programs"]),
        tensor("norm", "fp32", "out", "[1]"),
        tensor("factor", "fp32", "out", "[1]: limit / max(norm, limit)", optional=True),
        tensor("limit", "fp32", "in", "[1]: with factor", optional=True),
    ),
    stages=(Stage(square_parts, _programs), Stage(norm_of_parts, lambda p, c: (1,), warps=8)),
    configs=_configs,
    constants=_columns(2),
    refuse=lambda p: "factor and limit come together" if len(p.present) == 1 else None,
)

scale_all = Kernel(
    name="scale_all",
    doc="Many tensors times one factor.",
    types={},
    flags=_FLAGS,
    arguments=(*_TABLES, tensor("factor", "fp32", "in", "[1]")),
    stages=(Stage(scale_tensors, _programs),),
    configs=_configs,
    constants=_columns(3),
)

KERNELS = (update_all, global_norm, scale_all)
