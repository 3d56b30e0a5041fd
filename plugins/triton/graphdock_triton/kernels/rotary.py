"""Rotary position embedding (Su and others, "RoFormer", 2021); backward it turns the other way. Imports triton."""

from __future__ import annotations

from collections.abc import Sequence

import triton
import triton.language as tl

from graphdock_triton.kernels.spec import FLOATS, Config, Kernel, Problem, Stage, cdiv, dim, power, tensor

__all__ = ["KERNELS", "rotary"]


@triton.jit
def rotary_tokens(
    x, cos, sin, y, positions, heads, half, depth, x_token, y_token,
    PAIRS: tl.constexpr, BACKWARD: tl.constexpr, HEADS: tl.constexpr, HALF: tl.constexpr,
):  # fmt: skip
    """y[token, heads, depth]: element i is turned with i + depth / 2, or with PAIRS 2 i with 2 i + 1, by angle i of its position.

    Token t is at position t % positions. What is past 2 half stays as it is.
    """
    token = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1) * HEADS + tl.arange(0, HEADS)[:, None]
    lane = tl.arange(0, HALF)[None, :]
    angle = (token % positions) * half + lane
    c = tl.load(cos + angle, lane < half, other=0.0).to(tl.float32)
    s = tl.load(sin + angle, lane < half, other=0.0).to(tl.float32)
    if BACKWARD:
        s = -s
    if PAIRS:
        both = tl.arange(0, 2 * HALF)[None, :]
        at = head * depth + both
        mask = (head < heads) & (both < 2 * half)
        v = tl.load(x + token * x_token + at, mask, other=0.0).to(tl.float32)
        a, b = tl.split(tl.reshape(v, [HEADS, HALF, 2]))
        turned = tl.interleave(a * c - b * s, b * c + a * s)
        tl.store(y + token * y_token + at, turned.to(y.dtype.element_ty), mask)
    else:
        mask = (head < heads) & (lane < half)
        at = head * depth + lane
        a = tl.load(x + token * x_token + at, mask, other=0.0).to(tl.float32)
        b = tl.load(x + token * x_token + at + half, mask, other=0.0).to(tl.float32)
        tl.store(y + token * y_token + at, (a * c - b * s).to(y.dtype.element_ty), mask)
        tl.store(y + token * y_token + at + half, (b * c + a * s).to(y.dtype.element_ty), mask)
    for begin in range(2 * half, depth, HALF):
        rest = begin + lane
        inside = (head < heads) & (rest < depth)
        same = tl.load(x + token * x_token + head * depth + rest, inside, other=0.0)
        tl.store(y + token * y_token + head * depth + rest, same, inside)


def _configs(p: Problem) -> Sequence[Config]:
    half = power(p.dims["half"])
    heads = min(power(p.dims["heads"]), max(1, 1024 // half))
    return [
        Config({"HALF": half, "HEADS": h}, max(1, min(h * half // 256, 8)))
        for h in dict.fromkeys((heads, max(heads // 2, 1)))
    ]


rotary = Kernel(
    name="rotary",
    doc=__doc__,
    types={"T": FLOATS, "U": FLOATS},
    flags={"PAIRS": (False, True), "BACKWARD": (False, True)},
    arguments=(
        tensor("x", "T", "in", "[tokens, heads, depth], tokens x_token apart; the gradient of y with BACKWARD"),
        tensor("cos", "U", "in", "[positions, half]"),
        tensor("sin", "U", "in", "[positions, half]"),
        tensor("y", "T", "out", "like x, tokens y_token apart; may be x"),
        dim("tokens"),
        dim("positions"),
        dim("heads"),
        dim("half", "angles of a head: depth / 2, or fewer"),
        dim("depth"),
        dim("x_token"),
        dim("y_token"),
    ),
    stages=(Stage(rotary_tokens, lambda p, c: (p.dims["tokens"], cdiv(p.dims["heads"], c["HEADS"]))),),
    configs=_configs,
    refuse=lambda p: "there are more angles than pairs" if 2 * p.dims["half"] > p.dims["depth"] else None,
)

KERNELS = (rotary,)
