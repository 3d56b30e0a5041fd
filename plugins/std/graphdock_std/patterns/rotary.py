"""Rotary position embedding: heads turned by the angles of their positions, in halves or in pairs of neighbours."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any

import graphdock as _tf
import numpy as np
from graphdock import ops as _ops
from graphdock.contracts import Found, Operand, Pattern

from graphdock_std.patterns.operands import PARTS, any_of


def _split(x: Any) -> list[Any]:
    return list(_tf.split(x, 2, -1))


def _turned(a: Any, b: Any, cos: Any, sin: Any) -> list[Any]:
    return [a * cos - b * sin, b * cos + a * sin]


def _halves(x: Any, cos: Any, sin: Any) -> Any:
    """Both halves, each with its cosines and sines."""
    return _tf.concat(_turned(*_split(x), cos, sin), -1)


def _rotated(x: Any, cos: Any, sin: Any) -> Any:
    """As GPT-NeoX has it: the angles twice, side by side, and the halves crosswise."""
    a, b = _split(x)
    return x * cos + _tf.concat([-b, a], -1) * sin


def _pairs(x: Any, cos: Any, sin: Any, shape: Any) -> Any:
    """As RoFormer has it: every other number, and those between."""
    return _tf.reshape(_tf.stack(_turned(x[..., ::2], x[..., 1::2], cos, sin), -1), shape)


def _unstacked(x: Any, cos: Any, sin: Any, cut: Any, shape: Any) -> Any:
    """The same, of pairs that are a dim."""
    a, b = _tf.unstack(_tf.reshape(x, cut), 2, -1)
    return _tf.reshape(_tf.stack(_turned(a, b, cos, sin), -1), shape)


def _place(x: tuple[int, ...], angles: tuple[int, ...]) -> int | None:
    """The dim of ``x`` that positions are, where the angles have one of the last two before the heads' own; None for none."""
    aligned = (*(1,) * (len(x) - len(angles)), *angles)
    places = [i for i in range(len(x) - 1) if aligned[i] != 1]
    place = places[0] if places else len(x) - 2
    return place if len(places) <= 1 and place >= len(x) - 3 and aligned[place] == x[place] else None


def _rotary(x: Any, cos: Any, sin: Any, cut: Any = None, shape: Any = None, *, pairs: bool, twice: bool) -> Any:
    """Heads of positions are [..., positions, heads, depth]: a dim of one is put where x has the positions last."""
    dims, angles = tuple(x.shape.as_list()), tuple(cos.shape if twice else cos.shape.as_list())
    place = _place(dims, angles)
    assert place is not None
    positions, count = dims[place], angles[-1] // 2 if twice else angles[-1]
    if twice:
        cos, sin = (_ops.constant(t.reshape(positions, -1)[:, :count], x.dtype) for t in (cos, sin))
    else:
        cos, sin = (_tf.reshape(t, [positions, count]) for t in (cos, sin))
    heads = dims[place + 1] if place == len(dims) - 3 else 1
    rows = _tf.reshape(x, [math.prod(dims[:place]), positions, heads, dims[-1]])
    return _tf.reshape(_ops.apply_op("Rotary", x=rows, cos=cos, sin=sin, pairs=pairs), dims)


def rotaries() -> Iterator[Pattern]:
    """One pattern per spelling, rank of the heads, and rank of the angles."""
    spellings: dict[str, tuple[Callable[..., Any], str, int, bool]] = {
        "halves": (_halves, "Split", 0, False),
        "rotated": (_rotated, "Neg", 0, True),
        "pairs": (_pairs, "Pack", 1, False),
        "unstacked": (_unstacked, "Pack", 1, False),
    }
    for name, (function, anchor, more, twice) in spellings.items():
        for rank, angles in ((3, 2), (3, 3), (4, 2), (4, 3), (4, 4)):
            angle = Operand((None,) * angles, constant=twice)
            inputs = {"x": any_of(rank), "cos": angle, "sin": angle}
            if function is _unstacked:
                inputs["cut"] = Operand((rank + 1,), "int32", constant=True)
            if more:
                inputs["shape"] = Operand((rank,), "int32", constant=True)
            yield Pattern(
                f"rotary_{name}_{rank}_{angles}",
                anchor,
                inputs,
                function,
                functools.partial(_rotary, pairs=bool(more), twice=twice),
                not_on=PARTS,
                rank=rank + more,
                check=_of_positions,
                sample=functools.partial(_sample, rank=rank, angles=angles, twice=twice, names=tuple(inputs)),
            )


def _sample(rng: Any, *, rank: int, angles: int, twice: bool, names: tuple[str, ...]) -> dict[str, Any]:
    """Heads, and the angles of their positions, which stand last but one or have the heads behind them."""
    *dims, half = (int(n) for n in rng.integers(2, 5, rank))
    place = rank - (3 if angles > 2 and rank > 3 and rng.random() < 0.5 else 2)
    x = (*dims, 2 * half)
    across = tuple(d if i == place else 1 for i, d in enumerate(dims))[rank - angles :]
    turns = rng.standard_normal((*across, half))
    tables = {n: np.concatenate([f(turns)] * 2, -1) for n, f in (("cos", np.cos), ("sin", np.sin))}
    shapes = {"cut": np.array([*dims, half, 2], np.int32), "shape": np.array(x, np.int32)}
    given = {n: a for n, a in shapes.items() if n in names}
    return {"x": x, **given, **(tables if twice else {n: turns.shape for n in tables})}


def _of_positions(found: Found) -> str | None:
    x, cos = found.shapes["x"], found.shapes["cos"]
    if cos != found.shapes["sin"] or _place(x, cos) is None:
        return "the angles are not those of the positions of x"
    if found.constants.get("shape") is not None and tuple(found.constants["shape"].tolist()) != x:
        return "it ends in another shape"
    for name in ("cos", "sin"):
        table = found.constants.get(name)
        if table is None and x[-1] != 2 * cos[-1]:
            return "the angles are not half as many as numbers of a head"
        if table is not None and table.shape[-1] != x[-1]:
            return "the angles are not as many as numbers of a head"
        if table is not None and not np.array_equal(*np.split(np.asarray(table), 2, -1)):
            return "the angles do not stand twice, side by side"
    return None
