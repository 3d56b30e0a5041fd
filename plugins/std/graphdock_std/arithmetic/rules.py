"""Rules of arithmetic: what a plan need not compute as it is written. Tests and ``docs/arithmetic.md`` are made of them.

A term is written as a call of op types: ``Transpose(Transpose(x, p), q)``. Names in lower case are variables, a variable that comes
twice is one value, and the operands of commutative ops may stand the other way round. A replacement is a variable, or one op over
variables and calls of :data:`COMPUTED`; its attributes are those of the op of that type in the pattern, but for the keywords, which
negate one of them. A variable that only the pattern has must be a constant.

Sources: TensorFlow's arithmetic optimizer has most of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from graphdock.contracts.ir import PlanNode, Value

__all__ = ["COMPUTED", "RULES", "Rule"]

#: Variable of a pattern -> what it is in a plan.
Found = Mapping[str, Value]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    Attributes:
      name: unique. ``pattern``, ``replacement``: terms.
      samples: variable -> dims of what is drawn, as a tuple, or the elements of a constant, as a list or a number.
      when: ``when(found, outer)`` holds where the rule may be used; its docstring is what the docs say. ``outer``: the outermost.
      dtypes: of samples.
      alone: nodes within are read by the pattern alone: else they would be computed twice.
      rounding: units in the last place of the largest value of a row, by which results may differ; 0 for none.
      note: what else differs.
    """

    name: str
    pattern: str
    replacement: str
    samples: tuple[Mapping[str, Any], ...] = ({"x": (5, 8)}, {"x": (0, 3)})
    when: Callable[[Found, PlanNode], bool] | None = None
    dtypes: tuple[str, ...] = ("float32", "float64")
    alone: bool = False
    rounding: int = 0
    note: str = ""


def _array(value: Value) -> Any:
    node = value.node
    return node.attrs["value"] if node is not None and node.verb == "constant" else None


def _in_place(found: Found, outer: PlanNode) -> bool:
    """``p`` leaves every axis where it is"""
    perm = _array(found["p"])
    return perm is not None and bool((perm == np.arange(perm.size)).all())


def _constants(found: Found, outer: PlanNode) -> bool:
    """``p`` and ``q`` are constants"""
    return _array(found["p"]) is not None and _array(found["q"]) is not None


def _of_matrices(found: Found, outer: PlanNode) -> bool:
    """``p`` exchanges the last two axes, and no others"""
    perm = _array(found["p"])
    if perm is None or perm.size < 2:
        return False
    return bool((perm == [*range(perm.size - 2), perm.size - 1, perm.size - 2]).all())


def _same_shape(found: Found, outer: PlanNode) -> bool:
    """the shapes of ``x`` and of the result are known to be the same"""
    made = outer.outputs[0].shape
    return made is not None and None not in made and found["x"].shape == made


def _lossless(found: Found, outer: PlanNode) -> bool:
    """the type between holds every number of ``x``'s, which is the type of the result"""
    given, between = found["x"].dtype, outer.inputs[0].dtype
    if given is not outer.outputs[0].dtype:
        return False
    if not (given.is_floating and between.is_floating):
        return given.is_integer and between.is_integer and np.can_cast(given.np, between.np, "safe")
    return (given.name, between.name) in _WIDER


_WIDER = frozenset(
    {("float32", "float64")} | {(narrow, wide) for narrow in ("float16", "bfloat16") for wide in ("float32", "float64")}
)


def _whole_powers(found: Found, outer: PlanNode) -> bool:
    """``a`` and ``b`` are positive whole numbers, and their product or neither of them is a power that multiplications compute"""
    a, b = _array(found["a"]), _array(found["b"])
    if a is None or b is None or a.shape or b.shape or not outer.outputs[0].dtype.is_floating:
        return False
    x, y = float(a), float(b)
    if not (0 < x <= 64 and 0 < y <= 64 and x == int(x) and y == int(y)):
        return False
    short = outer.opdef.constants.get("y", {})
    return x * y in short or (x not in short and y not in short)


def _compose(p: Any, q: Any) -> Any:
    return p[q].astype(q.dtype)


#: Name -> what makes a constant of constants.
COMPUTED: Mapping[str, Callable[..., Any]] = MappingProxyType({"compose": _compose, "product": lambda a, b: a * b})

_FLAGS = {"dtypes": ("bool",), "samples": ({"x": (3, 4)},)}
_PAIRS = {"samples": ({"x": (5, 8), "y": (5, 8)}, {"x": (4, 1), "y": (3,)}, {"x": (0, 2), "y": (2,)})}
_COMPARED = {"dtypes": ("float32", "int32"), **_PAIRS}
_TURNED: Mapping[str, Any] = MappingProxyType({"when": _of_matrices, "rounding": 64})


def _matrices(a: tuple[int, ...], b: tuple[int, ...]) -> dict[str, Any]:
    rank = max(len(a), len(b))
    return {"a": a, "b": b, "p": [*range(rank - 2), rank - 1, rank - 2]}


RULES = (
    Rule("neg_neg", "Neg(Neg(x))", "x", dtypes=("float32", "int32", "complex64")),
    Rule("not_not", "LogicalNot(LogicalNot(x))", "x", **_FLAGS),
    Rule("conj_conj", "Conj(Conj(x))", "x", dtypes=("complex64",)),
    Rule("invert_invert", "Invert(Invert(x))", "x", dtypes=("int32",)),
    Rule("add_neg", "Add(x, Neg(y))", "Sub(x, y)", **_PAIRS),
    Rule("sub_neg", "Sub(x, Neg(y))", "Add(x, y)", **_PAIRS),
    Rule("mul_negs", "Mul(Neg(x), Neg(y))", "Mul(x, y)", **_PAIRS),
    Rule("div_negs", "RealDiv(Neg(x), Neg(y))", "RealDiv(x, y)", **_PAIRS),
    Rule("square_neg", "Square(Neg(x))", "Square(x)", dtypes=("float32", "int32")),
    Rule("abs_neg", "Abs(Neg(x))", "Abs(x)", dtypes=("float32", "int32")),
    Rule("square", "Mul(x, x)", "Square(x)", dtypes=("float32", "int32", "complex64")),
    *(
        Rule(f"{op.lower()}_{op.lower()}", f"{op}({op}(x))", f"{op}(x)")
        for op in ("Abs", "Relu", "Relu6", "Floor", "Ceil", "Rint")
    ),
    Rule("not_equal", "LogicalNot(Equal(x, y))", "NotEqual(x, y)", **_COMPARED),
    Rule("equal", "LogicalNot(NotEqual(x, y))", "Equal(x, y)", **_COMPARED),
    Rule(
        "select_not",
        "Select(LogicalNot(c), x, y)",
        "Select(c, y, x)",
        ({"c": [[True], [False]], "x": (2, 3), "y": (2, 3)}, {"c": [True, False], "x": (3, 2), "y": (1, 2)}),
    ),
    Rule("cast_cast", "Cast(Cast(x))", "x", when=_lossless, dtypes=("float32",)),
    Rule(
        "pow_pow",
        "Pow(Pow(x, a), b)",
        "Pow(x, product(a, b))",
        ({"x": (5, 8), "a": 2.0, "b": 2.0}, {"x": (40,), "a": 5.0, "b": 7.0}, {"x": (0, 2), "a": 5.0, "b": 5.0}),
        _whole_powers,
        rounding=8,
    ),
    Rule("rsqrt", "Reciprocal(Sqrt(x))", "Rsqrt(x)", alone=True, rounding=2),
    Rule(
        "log_softmax",
        "Log(Softmax(x))",
        "LogSoftmax(x)",
        ({"x": (5, 8)}, {"x": (2, 3, 4)}, {"x": (0, 3)}),
        alone=True,
        rounding=16,
        note="finite where the probability itself is too small for a number",
    ),
    Rule(
        "transpose_transpose",
        "Transpose(Transpose(x, p), q)",
        "Transpose(x, compose(p, q))",
        (
            {"x": (2, 3, 4), "p": [1, 2, 0], "q": [0, 2, 1]},
            {"x": (2, 3, 4), "p": [1, 2, 0], "q": [2, 0, 1]},
            {"x": (0, 2), "p": [1, 0], "q": [1, 0]},
        ),
        _constants,
    ),
    Rule("transpose", "Transpose(x, p)", "x", ({"x": (2, 3), "p": [0, 1]}, {"x": (), "p": []}), _in_place),
    Rule(
        "reshape_reshape",
        "Reshape(Reshape(x, s), t)",
        "Reshape(x, t)",
        (
            {"x": (2, 6), "s": [3, 4], "t": [4, -1]},
            {"x": (2, 6), "s": [12], "t": [2, 6]},
            {"x": (0, 3), "s": [0], "t": [3, 0]},
        ),
    ),
    Rule(
        "reshape_expand",
        "Reshape(ExpandDims(x, a), t)",
        "Reshape(x, t)",
        ({"x": (2, 6), "a": 1, "t": [4, -1]}, {"x": (2, 6), "a": -1, "t": [2, 6]}),
    ),
    Rule(
        "reshape_squeeze",
        "Reshape(Squeeze(x), t)",
        "Reshape(x, t)",
        ({"x": (2, 1, 6), "t": [4, -1]}, {"x": (0, 1), "t": [1, 0]}),
    ),
    Rule("squeeze_expand", "Squeeze(ExpandDims(x, a))", "x", ({"x": (2, 6), "a": 1}, {"x": (), "a": 0}), _same_shape),
    Rule(
        "expand_squeeze",
        "ExpandDims(Squeeze(x), a)",
        "x",
        ({"x": (2, 1, 6), "a": 1}, {"x": (1, 0), "a": 0}),
        _same_shape,
    ),
    Rule(
        "reverse_reverse", "ReverseV2(ReverseV2(x, a), a)", "x", ({"x": (2, 3), "a": [1]}, {"x": (0, 3), "a": [0, 1]})
    ),
    Rule(
        "matmul_transposed_a",
        "MatMul(Transpose(a, p), b)",
        "MatMul(a, b, transpose_a=not transpose_a)",
        (_matrices((4, 3), (4, 5)), _matrices((2, 4, 3), (2, 4, 5)), _matrices((0, 3), (0, 5))),
        **_TURNED,
    ),
    Rule(
        "matmul_transposed_b",
        "MatMul(a, Transpose(b, p))",
        "MatMul(a, b, transpose_b=not transpose_b)",
        (_matrices((3, 4), (5, 4)), _matrices((2, 3, 4), (2, 5, 4)), _matrices((3, 0), (5, 0))),
        **_TURNED,
    ),
    Rule(
        "transposed_matmul",
        "Transpose(MatMul(a, b), p)",
        "MatMul(b, a, transpose_a=not transpose_b, transpose_b=not transpose_a)",
        (_matrices((3, 4), (4, 5)), _matrices((2, 3, 4), (4, 5)), _matrices((0, 4), (4, 5))),
        alone=True,
        **_TURNED,
    ),
)
