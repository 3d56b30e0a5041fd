"""Updates of all variables of a model in one launch, and the norm of all gradients. Imports triton.

A launch is told tables in the GPU's memory. ``table`` is int64 [tensors, columns]: the addresses of a variable, its slots and its
gradient, and how many elements they have. ``chunks`` is int32 [programs, 2]: the tensor of a program, and which block of its
elements (:func:`chunks_of`). ``rates`` is int64 [rates]: the addresses of float32 scalars, which a recorded step reads anew.
Formulas are those of the std package's ResourceApply ops; halves are computed in float32 and rounded once. Multi-tensor launches:
NVIDIA Apex, 2018.
"""

from __future__ import annotations

from collections.abc import Sequence

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
    if ALIGNED:
        address = tl.multiple_of(address, 16)
    if TYPE == "fp16":
        at = address.to(tl.pointer_type(tl.float16))
    elif TYPE == "bf16":
        at = address.to(tl.pointer_type(tl.bfloat16))
    else:
        at = address.to(tl.pointer_type(tl.float32))
    return at


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
def update_tensors(
    table,
    chunks,
    rates,
    factor,
    RULE: tl.constexpr,
    COLUMNS: tl.constexpr,
    TYPE: tl.constexpr,
    ALIGNED: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """A block of one variable and its slots, in place. Columns: variable, slots, gradient, elements."""
    number = tl.load(chunks + 2 * tl.program_id(0)).to(tl.int64)
    block = tl.load(chunks + 2 * tl.program_id(0) + 1).to(tl.int64)
    row = table + number * COLUMNS
    at = block * BLOCK + tl.arange(0, BLOCK)
    mask = at < tl.load(row + COLUMNS - 1)
    var_at = _elements(row, 0, TYPE, ALIGNED) + at
    var = tl.load(var_at, mask, other=0.0).to(tl.float32)
    grad = tl.load(_elements(row, COLUMNS - 2, TYPE, ALIGNED) + at, mask, other=0.0).to(tl.float32)
    if factor is not None:
        grad *= tl.load(factor)
    if COLUMNS > 3:
        first_at = _elements(row, 1, TYPE, ALIGNED) + at
        first = tl.load(first_at, mask, other=0.0).to(tl.float32)
    if COLUMNS > 4:
        second_at = _elements(row, 2, TYPE, ALIGNED) + at
        second = tl.load(second_at, mask, other=0.0).to(tl.float32)
    if COLUMNS > 5:
        third_at = _elements(row, 3, TYPE, ALIGNED) + at
        third = tl.load(third_at, mask, other=0.0).to(tl.float32)
    if RULE == "gradient_descent":
        var -= grad * _rate(rates, 0)
    elif RULE == "momentum":
        first = first * _rate(rates, 1) + grad
        var -= _rate(rates, 0) * first
    elif RULE == "nesterov":
        first = first * _rate(rates, 1) + grad
        var -= _rate(rates, 0) * (first * _rate(rates, 1) + grad)
    elif RULE == "adagrad":
        first += grad * grad
        var -= grad / tl.sqrt(first) * _rate(rates, 0)
    elif RULE == "adam":
        var, first, second = _adam(var, first, second, grad, rates)
    elif RULE == "adam_w":
        var *= (1.0 - _rate(rates, 2).to(tl.float64) * _rate(rates, 6).to(tl.float64)).to(tl.float32)
        var, first, second = _adam(var, first, second, grad, rates)
    elif RULE == "rms_prop":
        first += (grad * grad - first) * (1.0 - _rate(rates, 1).to(tl.float64)).to(tl.float32)
        second = second * _rate(rates, 2) + grad / tl.sqrt(first + _rate(rates, 3)) * _rate(rates, 0)
        var -= second
    else:
        tl.static_assert(RULE == "centered_rms_prop")
        rest = (1.0 - _rate(rates, 1).to(tl.float64)).to(tl.float32)
        first += (grad - first) * rest
        second += (grad * grad - second) * rest
        third = third * _rate(rates, 2) + grad / tl.sqrt(second - first * first + _rate(rates, 3)) * _rate(rates, 0)
        var -= third
    tl.store(var_at, var.to(var_at.dtype.element_ty), mask)
    if COLUMNS > 3:
        tl.store(first_at, first.to(var_at.dtype.element_ty), mask)
    if COLUMNS > 4:
        tl.store(second_at, second.to(var_at.dtype.element_ty), mask)
    if COLUMNS > 5:
        tl.store(third_at, third.to(var_at.dtype.element_ty), mask)


@triton.jit
def square_parts(
    table, chunks, parts, COLUMNS: tl.constexpr, TYPE: tl.constexpr, ALIGNED: tl.constexpr, BLOCK: tl.constexpr
):
    """The sum of squares of a block of one tensor. Columns: address, elements."""
    number = tl.load(chunks + 2 * tl.program_id(0)).to(tl.int64)
    block = tl.load(chunks + 2 * tl.program_id(0) + 1).to(tl.int64)
    row = table + number * COLUMNS
    at = block * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(_elements(row, 0, TYPE, ALIGNED) + at, at < tl.load(row + COLUMNS - 1), other=0.0).to(tl.float32)
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
    number = tl.load(chunks + 2 * tl.program_id(0)).to(tl.int64)
    block = tl.load(chunks + 2 * tl.program_id(0) + 1).to(tl.int64)
    row = table + number * COLUMNS
    at = block * BLOCK + tl.arange(0, BLOCK)
    mask = at < tl.load(row + COLUMNS - 1)
    v = tl.load(_elements(row, 0, TYPE, ALIGNED) + at, mask, other=0.0).to(tl.float32) * tl.load(factor)
    to = _elements(row, 1, TYPE, ALIGNED) + at
    tl.store(to, v.to(to.dtype.element_ty), mask)


def _configs(p: Problem) -> Sequence[Config]:
    """Elements of a program: 16 bytes per thread and tensor, or twice that."""
    wide = p.flags.get("TYPE", "fp32") == "fp32"
    sizes = ((1024, 4), (2048, 8), (2048, 4), (512, 4)) if wide else ((1024, 4), (2048, 4), (2048, 8))
    return [Config({"BLOCK": block}, warps) for block, warps in sizes]


def _programs(p: Problem, c: Config) -> tuple[int, ...]:
    return (p.dims["programs"],)


def _columns(count: int) -> object:
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
