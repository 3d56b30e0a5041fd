"""Attention in several spellings."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import graphdock as _tf
import numpy as np
from graphdock import ops as _ops
from graphdock.contracts import CONSTANT, Found, Operand, Pattern

from graphdock_std.patterns.operands import PARTS, any_of

__all__ = ["attentions"]


def _scaled_after(query: Any, key: Any, scale: Any) -> Any:
    return _tf.matmul(query, key, transpose_b=True) * scale


def _scaled_before(query: Any, key: Any, scale: Any) -> Any:
    return _tf.matmul(query * scale, key, transpose_b=True)


def _divided_after(query: Any, key: Any, scale: Any) -> Any:
    return _tf.matmul(query, key, transpose_b=True) / scale


def _unscaled(query: Any, key: Any, scale: None) -> Any:
    return _tf.matmul(query, key, transpose_b=True)


def _open(scores: Any) -> Any:
    return scores


def _blended(scores: Any, seen: Any, low: Any) -> Any:
    return scores * seen - low


def _added(scores: Any, low: Any) -> Any:
    return scores + low


def _biased(scores: Any, bias: Any) -> Any:
    return scores + bias


def _attended(
    query: Any,
    key: Any,
    value: Any,
    scale: Any = None,
    *,
    score: Callable[..., Any],
    hide: Callable[..., Any],
    **masks: Any,
) -> Any:
    return _tf.matmul(_tf.nn.softmax(hide(score(query, key, scale), **masks)), value)


def _attention(
    query: Any, key: Any, value: Any, scale: Any = 1.0, bias: Any = None, *, divided: bool, **masks: Any
) -> Any:
    factor = 1.0 / float(scale) if divided else float(scale)
    attrs = {"scale": factor, "causal": bool(masks)}
    return _ops.apply_op("Attention", query=query, key=key, value=value, bias=bias, **attrs)[0]


def _dropped(
    query: Any,
    key: Any,
    value: Any,
    draws: Any,
    rate: Any,
    factor: Any,
    scale: Any = None,
    *,
    score: Callable[..., Any],
    hide: Callable[..., Any],
    **masks: Any,
) -> Any:
    weights = _tf.nn.softmax(hide(score(query, key, scale), **masks))
    return _tf.matmul(weights * factor * _ops.cast(draws >= rate, weights.dtype), value)


def _dropped_attention(
    query: Any,
    key: Any,
    value: Any,
    draws: Any,
    rate: Any,
    factor: Any,
    scale: Any = 1.0,
    bias: Any = None,
    *,
    divided: bool,
    **masks: Any,
) -> Any:
    attrs = {"scale": 1.0 / float(scale) if divided else float(scale), "causal": bool(masks)}
    return _ops.apply_op(
        "DroppedAttention",
        query=query,
        key=key,
        value=value,
        stream=draws,
        rate=rate,
        factor=factor,
        bias=bias,
        **attrs,
    )[0]


def attentions() -> Iterator[Pattern]:
    """One pattern per spelling, rank, and mask: none, a causal one that is constant, or any that is added; and the same with
    dropout of the weights, as ``tf.nn.dropout`` writes it."""
    table = Operand((None, None), constant=True)
    hidden: dict[str, tuple[Callable[..., Any], dict[str, Operand]]] = {
        "": (_open, {}),
        "_blended": (_blended, {"seen": table, "low": table}),
        "_added": (_added, {"low": table}),
    }
    biases = {f"_biased_{rank}": (_biased, {"bias": any_of(rank)}) for rank in (2, 3, 4)}
    scores = {"after": _scaled_after, "before": _scaled_before, "divided": _divided_after, "unscaled": _unscaled}
    for rank in (3, 4):
        operands = {name: any_of(rank) for name in ("query", "key", "value")}
        for name, score in scores.items():
            scale = {} if score is _unscaled else {"scale": CONSTANT}
            for label, (hide, masks) in (hidden | biases).items():
                if len(masks.get("bias", table).shape or ()) > rank:
                    continue
                for dropped in (False, True):
                    drawn = _drawn(rank) if dropped else {}
                    yield Pattern(
                        f"{'dropped_' if dropped else ''}attention_{name}{label}_{rank}",
                        "Softmax",
                        operands | drawn | scale | masks,
                        functools.partial(_dropped if dropped else _attended, score=score, hide=hide),
                        functools.partial(
                            _dropped_attention if dropped else _attention, divided=score is _divided_after
                        ),
                        not_on=PARTS,
                        rank=rank,
                        check=_fits,
                    )


def _drawn(rank: int) -> dict[str, Operand]:
    """What dropout reads. Its rate may be fed."""
    draws = Operand((None,) * rank, "float32", drawn="RandomUniform", stream="RandomStream")
    return {"draws": draws, "rate": Operand((), "float32"), "factor": Operand(())}


def _fits(found: Found) -> str | None:
    if found.constants.get("scale") == 0:
        return "the scores are multiplied or divided by zero"
    if "draws" in found.shapes and found.shapes["draws"] != _scores(found):
        return "weights are dropped together"
    if "bias" in found.shapes:
        return _of_scores(found)
    return _causal(found) if "low" in found.constants else None


def _scores(found: Found) -> tuple[int, ...]:
    return (*found.shapes["query"][:-1], found.shapes["key"][-2])


def _of_scores(found: Found) -> str | None:
    """None where the bias broadcasts to the scores, and not they to it."""
    pairs = zip(reversed(found.shapes["bias"]), reversed(_scores(found)), strict=False)
    return None if all(b in (1, s) for b, s in pairs) else "what is added is larger than the scores"


def _causal(found: Found) -> str | None:
    """None where what is added, or taken away, hides the keys behind each query, and nothing else."""
    low = np.asarray(found.constants["low"], np.float64)
    seen = np.tri(*low.shape, dtype=bool)
    if low.shape != (found.shapes["query"][-2], found.shapes["key"][-2]) or low.shape[0] != low.shape[1]:
        return "the mask is no square of queries and keys"
    blend = found.constants.get("seen")
    sign = -1.0 if blend is None else 1.0
    if np.any(low[seen] != 0) or np.any(sign * low[~seen] < 1e4):
        return "the mask is not causal"
    if blend is not None and not np.array_equal(np.asarray(blend, np.float64), seen):
        return "the mask is not causal"
    return None
