"""Calls for norms, attention and products: ops that patterns lead to. Imports no triton."""

from __future__ import annotations

import math
from collections.abc import Mapping

from graphdock.contracts import KernelRefused, PrepareContext

from graphdock_triton.kernels.spec import Problem
from graphdock_triton.operations.call import Call, Operation, activation_of
from graphdock_triton.operations.call import dims_of as _dims
from graphdock_triton.operations.call import precision_of as _precision
from graphdock_triton.operations.call import problem_of as _problem
from graphdock_triton.operations.call import rows_of as _rows
from graphdock_triton.operations.call import type_of as _type

__all__ = ["CALLS"]

# -- norms


def _layer_norm(ctx: PrepareContext) -> Call:
    dims = _rows(_dims(ctx, 0), ctx.attr("begin_norm_axis"))
    types = {"T": _type(ctx, 0), "U": _type(ctx, 1)}
    problem = _problem(ctx, dims, types, present=frozenset({"gamma", "beta", "mean", "inverse"}))
    tensors = dict(zip(("x", "gamma", "beta", "y", "mean", "inverse"), range(6), strict=True))
    return Call(problem, tensors, {"epsilon": ctx.attr("epsilon")})


def _layer_norm_grad(ctx: PrepareContext) -> Call:
    dims = _rows(_dims(ctx, 1), ctx.attr("begin_norm_axis"))
    types = {"T": _type(ctx, 1), "U": _type(ctx, 2)}
    problem = _problem(ctx, dims, types, present=frozenset({"gamma", "mean", "dgamma", "dbeta"}))
    names = ("dy", "x", "gamma", "mean", "inverse", "dx", "dgamma", "dbeta")
    return Call(problem, dict(zip(names, range(8), strict=True)))


def _rms_norm(ctx: PrepareContext) -> Call:
    types = {"T": _type(ctx, 0), "U": _type(ctx, 1)}
    present = frozenset({"gamma", "inverse"})
    problem = _problem(ctx, _rows(_dims(ctx, 0), -1), types, flags={"RMS": True}, present=present)
    tensors = dict(zip(("x", "gamma", "y", "inverse"), range(4), strict=True))
    return Call(problem, tensors, {"epsilon": ctx.attr("epsilon")})


def _rms_norm_grad(ctx: PrepareContext) -> Call:
    types = {"T": _type(ctx, 1), "U": _type(ctx, 2)}
    present = frozenset({"gamma", "dgamma"})
    problem = _problem(ctx, _rows(_dims(ctx, 1), -1), types, flags={"RMS": True}, present=present)
    return Call(problem, dict(zip(("dy", "x", "gamma", "inverse", "dx", "dgamma"), range(6), strict=True)))


# -- attention


def _heads(ctx: PrepareContext, first: int) -> dict[str, int]:
    """Dims of query, key and value, the inputs from ``first`` on; the last dim before the matrices is that of heads."""
    query, key, value = (_dims(ctx, first + i) for i in range(3))
    if query[-1] != value[-1]:
        raise KernelRefused(f"values are {value[-1]} wide and keys {key[-1]}")
    outer = query[:-2]
    heads = outer[-1] if outer else 1
    return {
        "batch": math.prod(outer[:-1]),
        "heads": heads,
        "shared": 1,
        "queries": query[-2],
        "keys": key[-2],
        "depth": query[-1],
    }


def _bias_strides(
    ctx: PrepareContext, index: int | None, dims: Mapping[str, int], outer: tuple[int, ...]
) -> dict[str, int]:
    """Of a bias, an input that broadcasts to the scores: 0 along the dims that it has not. ``outer``: dims before the matrices."""
    if index is None:
        return dict.fromkeys(("bias_batch", "bias_head", "bias_q", "bias_k"), 0)
    scores = (*outer[:-1], dims["heads"], dims["queries"], dims["keys"])
    shape = _dims(ctx, index)
    aligned = (*(1,) * (len(scores) - len(shape)), *shape[max(len(shape) - len(scores), 0) :])
    *batch, head, query, key = aligned
    if math.prod(batch) not in (1, dims["batch"]):
        raise KernelRefused(f"the bias has some of the dims {list(outer[:-1])} and not all")
    return {
        "bias_batch": head * query * key if math.prod(batch) > 1 else 0,
        "bias_head": query * key if head > 1 else 0,
        "bias_q": key if query > 1 else 0,
        "bias_k": 1 if key > 1 else 0,
    }


def _strides(dims: Mapping[str, int], **rows: str) -> dict[str, int]:
    """Of dense tensors: name -> the dim that says how many rows a head has."""
    found: dict[str, int] = {}
    for name, size in rows.items():
        row = dims["depth"]
        found |= {f"{name}_row": row, f"{name}_head": row * dims[size]}
        found[f"{name}_batch"] = found[f"{name}_head"] * dims["heads"]
    return found


def _attention_problem(
    ctx: PrepareContext, first: int, bias: int | None, present: frozenset[str], **rows: str
) -> Problem:
    dims = _heads(ctx, first)
    dims |= _strides(dims, **rows) | _bias_strides(ctx, bias, dims, _dims(ctx, first)[:-2])
    flags = {"CAUSAL": ctx.attr("causal"), "PRECISION": _precision(ctx)}
    types = {"T": _type(ctx, first), "B": "fp32" if bias is None else _type(ctx, bias)}
    return _problem(ctx, dims, types, flags=flags, present=present | {"bias"} if bias is not None else present)


def _attention(ctx: PrepareContext) -> Call:
    """A bias is the last input, where there is one."""
    bias = 3 if len(ctx.inputs) > 3 else None
    problem = _attention_problem(ctx, 0, bias, frozenset({"logs"}), q="queries", k="keys", v="keys", o="queries")
    names = ("q", "k", "v", *(("bias",) if bias else ()), "o", "logs")
    return Call(
        problem, {name: i for i, name in enumerate(names)}, {name: ctx.attr(name) for name in ("scale", "hidden")}
    )


def _attention_grad(ctx: PrepareContext) -> Call:
    bias = 6 if len(ctx.inputs) > 6 else None
    rows = dict.fromkeys(("q", "o", "do", "dq"), "queries") | dict.fromkeys(("k", "v", "dk", "dv"), "keys")
    problem = _attention_problem(ctx, 1, bias, frozenset(), **rows)
    names = ("do", "q", "k", "v", "o", "logs", *(("bias",) if bias else ()), "dq", "dk", "dv")
    return Call(
        problem, {name: i for i, name in enumerate(names)}, {name: ctx.attr(name) for name in ("scale", "hidden")}
    )


_DROPOUT = ("stream", "rate", "factor")


def _dropped_attention(ctx: PrepareContext) -> Call:
    bias = 6 if len(ctx.inputs) > 6 else None
    rows = dict.fromkeys(("q", "o"), "queries") | dict.fromkeys(("k", "v"), "keys")
    problem = _attention_problem(ctx, 0, bias, frozenset({"logs", *_DROPOUT}), **rows)
    names = ("q", "k", "v", *_DROPOUT, *(("bias",) if bias else ()), "o", "logs")
    return Call(
        problem, {name: i for i, name in enumerate(names)}, {name: ctx.attr(name) for name in ("scale", "hidden")}
    )


def _dropped_attention_grad(ctx: PrepareContext) -> Call:
    bias = 9 if len(ctx.inputs) > 9 else None
    rows = dict.fromkeys(("q", "o", "do", "dq"), "queries") | dict.fromkeys(("k", "v", "dk", "dv"), "keys")
    problem = _attention_problem(ctx, 1, bias, frozenset(_DROPOUT), **rows)
    names = ("do", "q", "k", "v", "o", "logs", *_DROPOUT, *(("bias",) if bias else ()), "dq", "dk", "dv")
    return Call(
        problem, {name: i for i, name in enumerate(names)}, {name: ctx.attr(name) for name in ("scale", "hidden")}
    )


# -- products


def _fused_matmul(ctx: PrepareContext) -> Call:
    (a0, a1), (b0, b1) = _dims(ctx, 0), _dims(ctx, 1)
    left, right = ctx.attr("transpose_a"), ctx.attr("transpose_b")
    m, k = (a1, a0) if left else (a0, a1)
    n = b0 if right else b1
    dims = {"batch": 1, "m": m, "n": n, "k": k, "c_m": n, "a_batch": 0, "b_batch": 0, "c_batch": 0}
    dims |= {"a_m": 1, "a_k": a1} if left else {"a_m": a1, "a_k": 1}
    dims |= {"b_k": 1, "b_n": b1} if right else {"b_k": b1, "b_n": 1}
    kept = ctx.outputs[1].used
    problem = _problem(
        ctx,
        dims,
        dict.fromkeys("TCB", _type(ctx, 0)),
        flags={"ACTIVATION": activation_of(ctx), "PRECISION": _precision(ctx)},
        present=frozenset({"bias", *(["pre"] if kept else ())}),
    )
    tensors = {"a": 0, "b": 1, "bias": 2, "c": 3} | ({"pre": 4} if kept else {})
    return Call(problem, tensors, {"alpha": 1.0})


# -- recurrent cells


def _units(ctx: PrepareContext, index: int) -> dict[str, int]:
    """Of the state before, an input."""
    rows, units = _dims(ctx, index)
    if not rows * units:
        raise KernelRefused("there are no elements")
    return {"rows": rows, "units": units}


def _lstm_gates(ctx: PrepareContext) -> Call:
    problem = _problem(ctx, _units(ctx, 1), {"T": _type(ctx, 0)})
    tensors = {"gates": 0, "c": 1, "new_h": 2, "new_c": 3}
    return Call(problem, tensors, {"forget_bias": ctx.attr("forget_bias")})


def _lstm_gates_grad(ctx: PrepareContext) -> Call:
    problem = _problem(ctx, _units(ctx, 3), {"T": _type(ctx, 0)}, present=frozenset({"dnew_c"}))
    names = ("dh", "dnew_c", "gates", "c", "new_c", "dgates", "dc")
    return Call(problem, dict(zip(names, range(7), strict=True)), {"forget_bias": ctx.attr("forget_bias")})


# -- positions


def _rotary(ctx: PrepareContext) -> Call:
    *outer, positions, heads, depth = _dims(ctx, 0)
    dims = {"tokens": math.prod(outer) * positions, "positions": positions, "heads": heads, "depth": depth}
    dims |= {"half": _dims(ctx, 1)[1], "x_token": heads * depth, "y_token": heads * depth}
    if not math.prod(dims.values()):
        raise KernelRefused("there are no elements")
    flags = {"PAIRS": ctx.attr("pairs"), "BACKWARD": ctx.attr("back")}
    problem = _problem(ctx, dims, {"T": _type(ctx, 0), "U": _type(ctx, 1)}, flags=flags)
    return Call(problem, {"x": 0, "cos": 1, "sin": 2, "y": 3})


_FLOATS = ("float32", "float16", "bfloat16")
_NORMED = {"T": _FLOATS, "U": ("float32",)}
_ATTENDED = {"T": _FLOATS, "U": (*_FLOATS, "bool")}

#: The ops that this plugin computes by kernels of its library.
CALLS = (
    Operation("LayerNorm", "norm", _layer_norm, _NORMED),
    Operation("LayerNormGrad", "norm_grad", _layer_norm_grad, _NORMED),
    Operation("RMSNorm", "norm", _rms_norm, _NORMED),
    Operation("RMSNormGrad", "norm_grad", _rms_norm_grad, _NORMED),
    Operation("Attention", "attention", _attention, _ATTENDED),
    Operation("AttentionGrad", "attention_grad", _attention_grad, _ATTENDED),
    Operation("DroppedAttention", "attention", _dropped_attention, _ATTENDED, name="dropped_attention"),
    Operation(
        "DroppedAttentionGrad",
        "attention_grad",
        _dropped_attention_grad,
        _ATTENDED,
        name="dropped_attention_grad",
    ),
    Operation("FusedMatMul", "matmul", _fused_matmul, {"T": _FLOATS}),
    Operation("FusedMatMul", "matmul_persistent", _fused_matmul, {"T": _FLOATS}, priority=1),
    Operation("LSTMGates", "lstm_cell", _lstm_gates, {"T": _FLOATS}),
    Operation("LSTMGatesGrad", "lstm_cell_grad", _lstm_gates_grad, {"T": _FLOATS}),
    Operation("Rotary", "rotary", _rotary, {"T": _FLOATS, "U": _FLOATS}),
)
