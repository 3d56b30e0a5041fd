"""Facts that lie: ops whose values are right, and whose specs declare of them what is not so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from graphdock.contracts import ArgDef, KernelDef, OpDef, RegionForm, TypeVarDef

from planted.bench import Fault, make_host

KIT = frozenset({"conformance"})
_EACH = frozenset({"elementwise", "pure"})


def _pair(function: Callable[[Any, Any], Any], **facts: Any) -> tuple[str, Callable[..., Any], dict[str, Any]]:
    return "fault.Pair", function, facts


def _one(function: Callable[[Any], Any], **facts: Any) -> tuple[str, Callable[..., Any], dict[str, Any]]:
    return "fault.One", function, facts


def _whole(function: Callable[[Any], Any], **facts: Any) -> tuple[str, Callable[..., Any], dict[str, Any]]:
    return "fault.Whole", function, facts


def softmax(x: Any) -> Any:
    e = np.exp(x - np.max(x, -1, keepdims=True, initial=-np.inf))
    return e / np.sum(e, -1, keepdims=True)


# what planning reads of them


def half_down(ctx: Any) -> Any:
    """The op rounds up."""
    known = ctx.value(0)
    return None if known is None else known // 2 if isinstance(known, int) else tuple(v // 2 for v in known)


def always_one(ctx: Any) -> Any:
    return tuple([1] * 3)


def larger(*, x: Any, y: Any, **_: Any) -> list[Any]:
    import graphdock as tf

    return [tf.where(x > y, x, y)]


def small_only(*, x: Any, **_: Any) -> list[Any]:
    """Twice x, of few elements; of many the last ones are left out."""
    import graphdock as tf

    flat = tf.reshape(x, [-1])
    n = x.shape.num_elements() or 0
    whole = tf.concat([flat[:4096] * 2.0, flat[4096:]], 0) if n > 4096 else flat * 2.0
    return [tf.reshape(whole, x.shape)]


def no_elements(*, x: Any, **_: Any) -> list[Any]:
    """Its mean is one of nothing where there are no elements."""
    import graphdock as tf

    return [x * 2.0 if x.shape.num_elements() else tf.zeros([1] * x.shape.rank, x.dtype)]


FACTS: dict[str, tuple[str, Callable[..., Any], dict[str, Any]]] = {
    "neutral: 0 of a hypotenuse": _pair(np.hypot, neutral={"y": 0}, traits=_EACH),
    "neutral: 1 on the left of a difference": _pair(np.subtract, neutral={"x": 0}, traits=_EACH),
    "neutral: 0 of a maximum": _pair(np.maximum, neutral={"y": 0}, traits=_EACH),
    "neutral: 0 of a sum, but for -0": _pair(lambda x, y: x + y, neutral={"y": 0}, traits=_EACH),
    "identity: an absolute value": _one(np.abs, identity="x", traits=_EACH),
    "identity: but for -0": _one(lambda x: x + 0, identity="x", traits=_EACH),
    "identity: but for NaN": _one(np.nan_to_num, identity="x", traits=_EACH),
    "scalar: another factor": _one(lambda x: x + x, scalar="x * 2.01", traits=_EACH),
    "scalar: NaN where the op has infinity": _pair(np.hypot, scalar="sqrt(x * x + y * y)", traits=_EACH),
    "scalar: no NaN where the op has one": _pair(np.maximum, scalar="select(x > y, x, y)", traits=_EACH),
    "scalar: the wrong way round": _pair(np.subtract, scalar="y - x", traits=_EACH),
    "region: the other axis": _one(
        softmax, region=RegionForm({"y": "exp(x) / sum(exp(x), 0)"}), traits=frozenset({"pure"})
    ),
    "region: without its maximum": _one(
        lambda x: np.broadcast_to(np.max(x, -1, keepdims=True, initial=-np.inf), x.shape).copy(),
        region=RegionForm({"y": "x * 0 + sum(x, -1)"}),
        traits=frozenset({"pure"}),
    ),
    "commutative: a difference": _pair(np.subtract, traits=_EACH | {"commutative"}),
    "commutative: an arc": _pair(np.arctan2, traits=_EACH | {"commutative"}),
    "elementwise: less the mean": _one(lambda x: x - x.mean() if x.size else x.copy(), traits=_EACH),
    "elementwise: by its place": _one(lambda x: x + np.arange(x.size, dtype=x.dtype).reshape(x.shape), traits=_EACH),
    "elementwise: the same for all rows": _one(lambda x: np.broadcast_to(x[:1], x.shape).copy(), traits=_EACH),
    "aliases: what was computed": _one(lambda x: x + 0.5, aliases={"y": "x"}, traits=frozenset({"pure"})),
    "aliases: one element many times": _one(
        lambda x: np.broadcast_to(x.reshape(-1)[:1], x.shape).copy() if x.size else x.copy(),
        aliases={"y": "x"},
        traits=frozenset({"pure"}),
    ),
    "view: of nothing": _one(lambda x: x.copy(), traits=frozenset({"pure", "view"})),
    "keeps_zero: a cosine": _one(np.cos, traits=_EACH | {"keeps_zero"}),
    "evaluate: rounded down": _whole(lambda x: -(-x // 2), evaluate="half_down"),
    "evaluate: what it does not know": _whole(lambda x: x * 2, evaluate="always_one"),
    "decompose: without NaN": _pair(np.maximum, decomposition="larger", traits=_EACH),
    "decompose: beyond 4,096 elements": _one(lambda x: x + x, decomposition="small_only", traits=_EACH),
    "decompose: of no elements": _one(lambda x: x + x, decomposition="no_elements", traits=_EACH),
    "constants: a square by one factor": _pair(np.power, constants={"y": {2.0: ("Square", "Square")}}, traits=_EACH),
}


def opdef(kind: str, **facts: Any) -> OpDef:
    """One of the ops of ``specs/planted.yaml``, with these facts."""
    whole = kind == "fault.Whole"
    inputs = [ArgDef(n, "T", "[*S]") for n in (("x", "y") if kind == "fault.Pair" else ("x",))]
    named = {n: f"tests_planted_ops:{v}" if n in ("evaluate", "decomposition") else v for n, v in facts.items()}
    return OpDef(
        kind,
        inputs=tuple(inputs),
        outputs=(ArgDef("z" if kind == "fault.Pair" else "y", "T", "[*S]"),),
        types=(TypeVarDef("T", ("int32", "int64") if whole else ("float32", "float64")),),
        **named,
    )


def fact_host(kind: str, function: Callable[..., Any], facts: dict[str, Any]) -> Any:
    """A host with the op, of which kernel and reference are the function."""

    def build(ctx: Any) -> Any:
        def compute(*args: Any) -> Any:
            inputs, out = args[: len(ctx.inputs)], args[len(ctx.inputs) :]
            with np.errstate(all="ignore"):
                made = np.asarray(function(*inputs)).astype(inputs[0].dtype)
            return np.copyto(out[0], made) if out else made

        return compute

    return make_host(KernelDef(kind, "cpu", build), op=opdef(kind, **facts))


def faults() -> list[Fault]:
    return [
        Fault(name, "fact", "-", KIT, lambda told=told: fact_host(*told), text=told[0]) for name, told in FACTS.items()
    ]
