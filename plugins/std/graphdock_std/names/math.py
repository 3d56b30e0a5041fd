"""Names of the arithmetic written by hand: reductions, divisions, casts."""

from __future__ import annotations

#: Public functions of tensors, which formulas may call.
FUNCTIONS = {
    "reduce_sum": "graphdock_std.reductions:reduce_sum",
    "reduce_mean": "graphdock_std.reductions:reduce_mean",
    "reduce_prod": "graphdock_std.reductions:reduce_prod",
    "reduce_max": "graphdock_std.reductions:reduce_max",
    "reduce_min": "graphdock_std.reductions:reduce_min",
    "reduce_all": "graphdock_std.reductions:reduce_all",
    "reduce_any": "graphdock_std.reductions:reduce_any",
    "reduce_logsumexp": "graphdock_std.reductions:reduce_logsumexp",
    "reduce_variance": "graphdock_std.reductions:reduce_variance",
    "reduce_std": "graphdock_std.reductions:reduce_std",
    "count_nonzero": "graphdock_std.reductions:count_nonzero",
    "arg_max": "graphdock_std.reductions:arg_max",
    "arg_min": "graphdock_std.reductions:arg_min",
    "argmax": "graphdock_std.reductions:argmax",
    "argmin": "graphdock_std.reductions:argmin",
    "cumprod": "graphdock_std.reductions:cumprod",
    "cumsum": "graphdock_std.reductions:cumsum",
    "truediv": "graphdock_std.math:truediv",
    "divide": "graphdock_std.math:divide",
    "div": "graphdock_std.math:div",
    "div_no_nan": "graphdock_std.math:div_no_nan",
    "round": "graphdock_std.math:round",
    "math.round": "graphdock_std.math:round",
    "scalar_mul": "graphdock_std.math:scalar_mul",
    "to_float": "graphdock_std.math:to_float",
    "to_double": "graphdock_std.math:to_double",
    "to_int32": "graphdock_std.math:to_int32",
    "to_int64": "graphdock_std.math:to_int64",
    "to_bfloat16": "graphdock_std.math:to_bfloat16",
    "accumulate_n": "graphdock_std.math:accumulate_n",
    "tensordot": "graphdock_std.tensordot:tensordot",
    "math.reduce_sum": "graphdock_std.reductions:reduce_sum",
    "math.reduce_mean": "graphdock_std.reductions:reduce_mean",
    "math.reduce_prod": "graphdock_std.reductions:reduce_prod",
    "math.reduce_max": "graphdock_std.reductions:reduce_max",
    "math.reduce_min": "graphdock_std.reductions:reduce_min",
    "math.reduce_all": "graphdock_std.reductions:reduce_all",
    "math.reduce_any": "graphdock_std.reductions:reduce_any",
    "math.reduce_logsumexp": "graphdock_std.reductions:reduce_logsumexp",
    "math.reduce_variance": "graphdock_std.reductions:reduce_variance",
    "math.reduce_std": "graphdock_std.reductions:reduce_std",
    "math.count_nonzero": "graphdock_std.reductions:count_nonzero",
    "math.argmax": "graphdock_std.reductions:argmax",
    "math.argmin": "graphdock_std.reductions:argmin",
    "math.cumprod": "graphdock_std.reductions:cumprod",
    "math.cumsum": "graphdock_std.reductions:cumsum",
    "math.truediv": "graphdock_std.math:truediv",
    "math.divide": "graphdock_std.math:divide",
    "math.divide_no_nan": "graphdock_std.math:div_no_nan",
    "math.scalar_mul": "graphdock_std.math:scalar_mul",
    "math.accumulate_n": "graphdock_std.math:accumulate_n",
    "linalg.tensordot": "graphdock_std.tensordot:tensordot",
    "einsum": "graphdock_std.einsum:einsum",
    "linalg.einsum": "graphdock_std.einsum:einsum",
}

#: What formulas may call besides, though it is not public.
HELPERS = {
    "sum_to": "graphdock_std.grad_support:sum_to",
}

#: Operator methods of a tensor that are more than one op: ``/`` casts integers first, an index becomes several ops.
OPERATORS = {
    "__truediv__": "graphdock_std.math:truediv",
}
