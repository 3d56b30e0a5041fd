"""Names of the arithmetic written by hand: reductions, divisions, casts."""

from __future__ import annotations

#: Public functions of tensors, which formulas may call.
FUNCTIONS = {
    "reduce_sum": "graphdock_std.math.reductions:reduce_sum",
    "reduce_mean": "graphdock_std.math.reductions:reduce_mean",
    "reduce_prod": "graphdock_std.math.reductions:reduce_prod",
    "reduce_max": "graphdock_std.math.reductions:reduce_max",
    "reduce_min": "graphdock_std.math.reductions:reduce_min",
    "reduce_all": "graphdock_std.math.reductions:reduce_all",
    "reduce_any": "graphdock_std.math.reductions:reduce_any",
    "reduce_logsumexp": "graphdock_std.math.reductions:reduce_logsumexp",
    "reduce_variance": "graphdock_std.math.reductions:reduce_variance",
    "reduce_std": "graphdock_std.math.reductions:reduce_std",
    "count_nonzero": "graphdock_std.math.reductions:count_nonzero",
    "arg_max": "graphdock_std.math.reductions:arg_max",
    "arg_min": "graphdock_std.math.reductions:arg_min",
    "argmax": "graphdock_std.math.reductions:argmax",
    "argmin": "graphdock_std.math.reductions:argmin",
    "truediv": "graphdock_std.math.functions:truediv",
    "divide": "graphdock_std.math.functions:divide",
    "div": "graphdock_std.math.functions:div",
    "div_no_nan": "graphdock_std.math.functions:div_no_nan",
    "round": "graphdock_std.math.functions:round",
    "math.round": "graphdock_std.math.functions:round",
    "scalar_mul": "graphdock_std.math.functions:scalar_mul",
    "to_float": "graphdock_std.math.functions:to_float",
    "to_double": "graphdock_std.math.functions:to_double",
    "to_int32": "graphdock_std.math.functions:to_int32",
    "to_int64": "graphdock_std.math.functions:to_int64",
    "to_bfloat16": "graphdock_std.math.functions:to_bfloat16",
    "accumulate_n": "graphdock_std.math.functions:accumulate_n",
    "tensordot": "graphdock_std.linalg.tensordot:tensordot",
    "math.reduce_sum": "graphdock_std.math.reductions:reduce_sum",
    "math.reduce_mean": "graphdock_std.math.reductions:reduce_mean",
    "math.reduce_prod": "graphdock_std.math.reductions:reduce_prod",
    "math.reduce_max": "graphdock_std.math.reductions:reduce_max",
    "math.reduce_min": "graphdock_std.math.reductions:reduce_min",
    "math.reduce_all": "graphdock_std.math.reductions:reduce_all",
    "math.reduce_any": "graphdock_std.math.reductions:reduce_any",
    "math.reduce_logsumexp": "graphdock_std.math.reductions:reduce_logsumexp",
    "math.reduce_variance": "graphdock_std.math.reductions:reduce_variance",
    "math.reduce_std": "graphdock_std.math.reductions:reduce_std",
    "math.count_nonzero": "graphdock_std.math.reductions:count_nonzero",
    "math.argmax": "graphdock_std.math.reductions:argmax",
    "math.argmin": "graphdock_std.math.reductions:argmin",
    "math.truediv": "graphdock_std.math.functions:truediv",
    "math.divide": "graphdock_std.math.functions:divide",
    "math.divide_no_nan": "graphdock_std.math.functions:div_no_nan",
    "math.scalar_mul": "graphdock_std.math.functions:scalar_mul",
    "math.accumulate_n": "graphdock_std.math.functions:accumulate_n",
    "linalg.tensordot": "graphdock_std.linalg.tensordot:tensordot",
    "einsum": "graphdock_std.linalg.einsum:einsum",
    "linalg.einsum": "graphdock_std.linalg.einsum:einsum",
}

#: What formulas may call besides, though it is not public.
HELPERS = {
    "sum_to": "graphdock_std.grad_support:sum_to",
}

#: Operator methods of a tensor that are more than one op: ``/`` casts integers first, an index becomes several ops.
OPERATORS = {
    "__truediv__": "graphdock_std.math.functions:truediv",
}
