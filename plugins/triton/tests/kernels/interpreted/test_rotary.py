"""Rotary embedding: pairs turned as complex numbers; backward turns back."""

from __future__ import annotations

import numpy as np
import pytest
from graphdock_triton.kernels.rotary import rotary
from graphdock_triton.kernels.spec import Config, Problem
from graphdock_triton.testing.launching import interpret

from .close import assert_close, draw, empty, wide


@pytest.mark.parametrize(("pairs", "kind"), [(True, "fp32"), (False, "bf16")])
@pytest.mark.sampled(2)
def test_pairs_are_turned_by_the_angles_of_their_positions(pairs, kind):
    rng = np.random.default_rng(1)
    tokens, heads, depth, half = 7, 3, 15, 6
    whole = draw(rng, (tokens, 2, heads, depth), kind)  # queries and keys side by side
    x, y = whole[:, 1], empty((tokens, heads, depth), kind)
    angles = rng.uniform(-3, 3, (4, half))
    cos, sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
    dims = {"tokens": tokens, "positions": 4, "heads": heads, "half": half, "depth": depth}
    dims |= {"x_token": 2 * heads * depth, "y_token": heads * depth}
    config = Config({"HALF": 8, "HEADS": 2})
    interpret(rotary, Problem(dims, {"T": kind, "U": "fp32"}, {"PAIRS": pairs}), config, x=x, y=y, cos=cos, sin=sin)
    turned, front = (
        wide(x),
        (slice(0, 2 * half, 2), slice(1, 2 * half, 2)) if pairs else (slice(half), slice(half, 2 * half)),
    )
    z = turned[..., front[0]] + 1j * turned[..., front[1]]
    z *= np.exp(1j * angles)[np.arange(tokens) % 4][:, None]
    turned[..., front[0]], turned[..., front[1]] = z.real, z.imag
    assert_close(y, turned, kind, 2)
    back = empty(y.shape, kind)
    flags = {"PAIRS": pairs, "BACKWARD": True}
    dims["x_token"] = heads * depth
    interpret(rotary, Problem(dims, {"T": kind, "U": "fp32"}, flags), config, x=y, y=back, cos=cos, sin=sin)
    assert_close(back, wide(x), kind, 3)
