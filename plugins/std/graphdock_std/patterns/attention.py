"""Attention in several spellings."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import graphdock as _tf
import numpy as np
from graphdock import ops as _ops
from graphdock.contracts import CONSTANT, Found, Operand, Pattern

from graphdock_std.patterns.operands import PARTS, any_of

_NOT_CAUSAL = "the mask is not causal"
#: What a score is multiplied by at most.
_MOST = float(np.finfo(np.float32).max)


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


def _chosen(scores: Any, seen: Any, low: Any) -> Any:
    return _tf.where(seen, scores, low)


def _hidden(scores: Any, hidden: Any, low: Any) -> Any:
    return _tf.where(hidden, low, scores)


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
    given = {"query": query, "key": key, "value": value, **_laid(scale, divided, bias, **masks)}
    return _ops.apply_op("Attention", **given)[0]


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
    given = {"query": query, "key": key, "value": value, **_laid(scale, divided, bias, **masks)}
    return _ops.apply_op("DroppedAttention", stream=draws, rate=rate, factor=factor, **given)[0]


def _laid(
    scale: Any, divided: bool, bias: Any, low: Any = None, seen: Any = None, hidden: Any = None
) -> dict[str, Any]:
    """The scale and the mask as Attention takes them: tables are causal, tensors say of each key whether it is seen."""
    how: dict[str, Any] = {"scale": 1.0 / float(scale) if divided else float(scale), "bias": bias}
    if low is None:
        return how
    if isinstance(seen, _tf.Tensor) or isinstance(hidden, _tf.Tensor):
        mask = seen if hidden is None else _tf.logical_not(hidden)
        return how | {"bias": mask, "hidden": float(low)}
    table = np.asarray(low, np.float64)
    behind = table[~np.tri(*table.shape, dtype=bool)] if table.ndim else table
    sign = -1.0 if isinstance(seen, np.ndarray) and seen.dtype.kind != "b" else 1.0
    return how | {"causal": True, "hidden": float(sign * behind.flat[0]) if behind.size else -math.inf}


#: How a mask is laid over the scores, and what that reads.
Hiding: TypeAlias = "tuple[Callable[..., Any], dict[str, Operand]]"


def _hidings() -> dict[str, Hiding]:
    table = Operand((None, None), constant=True)
    flags = Operand((None, None), "bool", constant=True)
    found: dict[str, Hiding] = {
        "": (_open, {}),
        "_blended": (_blended, {"seen": table, "low": table}),
        "_added": (_added, {"low": table}),
        **{f"_biased_{rank}": (_biased, {"bias": any_of(rank)}) for rank in (2, 3, 4)},
        "_chosen": (_chosen, {"seen": flags, "low": CONSTANT}),
        "_hidden": (_hidden, {"hidden": flags, "low": CONSTANT}),
    }
    for rank in (2, 3, 4):
        any_flags = Operand((None,) * rank, "bool")
        found[f"_chosen_{rank}"] = (_chosen, {"seen": any_flags, "low": CONSTANT})
        found[f"_hidden_{rank}"] = (_hidden, {"hidden": any_flags, "low": CONSTANT})
    return found


def attentions() -> Iterator[Pattern]:
    """One pattern per spelling, rank, and mask: none, a causal one that is constant, any that is added, or that says which scores
    stay; and the same with dropout of the weights, as ``tf.nn.dropout`` writes it."""
    scores = {"after": _scaled_after, "before": _scaled_before, "divided": _divided_after, "unscaled": _unscaled}
    for rank in (3, 4):
        operands = {name: any_of(rank) for name in ("query", "key", "value")}
        for name, score in scores.items():
            scale = {} if score is _unscaled else {"scale": CONSTANT}
            for label, (hide, masks) in _hidings().items():
                if any(len(o.shape or ()) > rank for o in masks.values()):
                    continue
                anchor = "Select" if hide in (_chosen, _hidden) else "Softmax"
                for dropped in (False, True):
                    drawn = _drawn(rank) if dropped else {}
                    yield Pattern(
                        f"{'dropped_' if dropped else ''}attention_{name}{label}_{rank}",
                        anchor,
                        operands | drawn | scale | masks,
                        functools.partial(_dropped if dropped else _attended, score=score, hide=hide),
                        functools.partial(
                            _dropped_attention if dropped else _attention, divided=score is _divided_after
                        ),
                        not_on=PARTS,
                        rank=rank,
                        check=_fits,
                        sample=functools.partial(_sample, rank=rank, masks=masks, dropped=dropped),
                    )


def _drawn(rank: int) -> dict[str, Operand]:
    """Return what dropout reads. Its rate may be fed."""
    draws = Operand((None,) * rank, "float32", drawn="RandomUniform", stream="RandomStream")
    return {"draws": draws, "rate": Operand((), "float32"), "factor": Operand(())}


def _fits(found: Found) -> str | None:
    scale = float(found.constants.get("scale", 1.0))
    if scale == 0 or not math.isinf(scale) and abs(1.0 / scale) > _MOST:
        return "the scores are multiplied or divided by zero, or by next to nothing"
    if "draws" in found.shapes and found.shapes["draws"] != _scores(found):
        return "weights are dropped together"
    query, key, value = (found.shapes[name] for name in ("query", "key", "value"))
    if not query[:-2] == key[:-2] == value[:-2]:
        return "queries, keys and values are not as many matrices"
    for name in ("bias", "seen", "hidden"):
        if name in found.shapes and name not in found.constants:
            pairs = zip(reversed(found.shapes[name]), reversed(_scores(found)), strict=False)
            return None if all(b in (1, s) for b, s in pairs) else "the mask is larger than the scores"
    return _causal(found) if "low" in found.constants else None


def _sample(rng: Any, *, rank: int, masks: dict[str, Operand], dropped: bool) -> dict[str, Any]:
    """Matrices that go together; a table of a mask hides what is behind each query, by ``low``."""
    *heads, queries, keys, depth, width = (int(n) for n in rng.integers(1, 7, rank + 2))
    keys = queries if any(o.constant and o.shape for o in masks.values()) else keys
    sees = np.tri(queries, dtype=bool)
    hidden = -np.inf if "seen" not in masks and "hidden" not in masks else float(rng.choice([1e4, 1e9]))
    tables = {"seen": sees, "hidden": ~sees, "low": np.where(sees, 0.0, hidden)}
    given: dict[str, Any] = {n: tables[n] for n, o in masks.items() if o.constant and o.shape}
    given |= {n: (*heads, queries, keys)[-len(o.shape or ()) :] for n, o in masks.items() if not o.constant}
    given |= {"draws": (*heads, queries, keys)} if dropped else {}
    return given | {"query": (*heads, queries, depth), "key": (*heads, keys, depth), "value": (*heads, keys, width)}


def _scores(found: Found) -> tuple[int, ...]:
    return (*found.shapes["query"][:-1], found.shapes["key"][-2])


def _causal(found: Found) -> str | None:
    """None where a table hides the keys behind each query, by one number, and nothing else."""
    table = next(found.constants[n] for n in ("hidden", "seen", "low") if n in found.constants)
    sees = np.tri(*table.shape, dtype=bool)
    if table.shape != (found.shapes["query"][-2], found.shapes["key"][-2]) or table.shape[0] != table.shape[1]:
        return "the mask is no square of queries and keys"
    low, seen = np.asarray(found.constants["low"], np.float64), found.constants.get("seen")
    if low.ndim == 0:
        return None if np.array_equal(~table if "hidden" in found.constants else table, sees) else _NOT_CAUSAL
    if low.shape != table.shape or np.any(low[sees] != 0):
        return _NOT_CAUSAL
    if seen is None:
        return None if np.all(low[~sees] == -np.inf) else "scores that are hidden by a number still matter, if little"
    same = low[~sees].size == 0 or np.all(low[~sees] == low[~sees].flat[0])
    return None if same and np.array_equal(np.asarray(seen, np.float64), sees) else _NOT_CAUSAL
