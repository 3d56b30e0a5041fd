"""Attention and its gradients against NumPy in float64."""

from __future__ import annotations

import numpy as np
import pytest
from graphdock_triton.kernels.attention import attention, attention_grad
from graphdock_triton.kernels.spec import Config, Problem
from graphdock_triton.testing.launching import interpret

from .close import assert_close, draw, empty, wide

SMALL = {"BLOCK_Q": 16, "BLOCK_K": 32, "KEYS_Q": 32, "KEYS_K": 16}
SCALE = 0.3


def reference(q, k, v, bias, causal, shared, kept=1.0, mask=None, hidden=-np.inf):
    """o, and the gradients by q, k and v, as functions of do. ``kept``: what each weight is multiplied by."""
    k, v = (np.repeat(t, shared, 1) for t in (k, v))
    with np.errstate(invalid="ignore"):
        s = SCALE * q @ k.swapaxes(2, 3) + bias
        queries, keys = s.shape[2:]
        seen = np.broadcast_to(True if mask is None else mask, s.shape)
        if causal:
            seen = seen & (np.arange(queries)[:, None] + keys - queries >= np.arange(keys))
        s = np.where(seen, s, hidden)
        e = np.exp(s - s.max(3, keepdims=True))
        p = e / e.sum(3, keepdims=True)

    def grads(do):
        dp = (do @ v.swapaxes(2, 3)) * kept
        ds = np.where(seen, p * (dp - (p * dp).sum(3, keepdims=True)), 0)
        dk, dv = SCALE * ds.swapaxes(2, 3) @ q, (p * kept).swapaxes(2, 3) @ do
        together = [t.reshape(len(t), -1, shared, *t.shape[2:]).sum(2) for t in (dk, dv)]
        return SCALE * ds @ k, *together

    return (p * kept) @ v, grads


def dims(shape, keys, shared, bias=None, **tensors):
    batch, heads, queries, depth = shape
    out = {"batch": batch, "heads": heads, "queries": queries, "keys": keys, "shared": shared, "depth": depth}
    out |= dict.fromkeys(("bias_batch", "bias_head", "bias_q", "bias_k"), 0)
    if bias is not None:
        steps = (0 if n == 1 else s // bias.itemsize for n, s in zip(bias.shape, bias.strides, strict=True))
        out |= dict(zip(("bias_batch", "bias_head", "bias_q", "bias_k"), steps, strict=True))
    for name, array in tensors.items():
        steps = (s // array.itemsize for s in array.strides[:3])
        out |= {f"{name}_{part}": step for part, step in zip(("batch", "head", "row"), steps, strict=True)}
    return out


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("kind", "shape", "keys", "shared", "causal", "biased", "dropped"),
    [
        ("fp32", (1, 2, 18, 24), 53, 1, False, True, False),
        ("fp16", (1, 4, 18, 16), 18, 2, True, False, False),
        ("bf16", (1, 1, 20, 32), 45, 1, True, False, False),
        ("fp32", (1, 1, 40, 16), 24, 1, False, False, False),
        ("fp32", (2, 2, 18, 16), 48, 2, False, True, True),
        ("fp32", (1, 2, 20, 16), 45, 1, True, False, True),
        ("fp16", (1, 2, 40, 32), 40, 1, True, False, True),
    ],
)
def test_attention_and_its_gradients(kind, shape, keys, shared, causal, biased, dropped):
    rng = np.random.default_rng(keys)
    batch, heads, queries, depth = shape
    # as a projection gives them: [batch, rows, heads, depth]
    q, do = (draw(rng, (batch, queries, heads, depth), kind).swapaxes(1, 2) for _ in range(2))
    k, v = (draw(rng, (batch, keys, heads // shared, depth), kind).swapaxes(1, 2) for _ in range(2))
    bias = draw(rng, (batch, 1, queries, keys)) if biased else None
    if biased:
        bias[:, :, :, :40] = np.where(rng.random((batch, 1, queries, 40)) < 0.5, -np.inf, 0)  # whole blocks of nothing
        bias[:, :, 3, :40] = -np.inf
    given, kept = {"bias": bias} if biased else {}, 1.0
    if dropped:
        words = (2**63 + 7, 11, 3, 2, 5)
        factor = empty((1,), kind)
        factor[:] = 1.25
        given |= {"stream": np.array(words, np.uint64), "rate": np.array([0.2], np.float32), "factor": factor}
        state = np.random.Philox(key=0)
        key, counter = np.array(words[:2], np.uint64), np.array([0, *words[2:]], np.uint64)
        state.state = state.state | {"state": {"key": key, "counter": counter}}
        drawn = np.random.Generator(state).random((batch, heads, queries, keys), np.float32)
        kept = 1.25 * (drawn >= np.float32(0.2))
    flags = {"CAUSAL": causal, "UPCAST": kind == "bf16"}
    types = {"T": kind, "B": "fp32"}
    o, logs = empty(q.shape, kind), empty(q.shape[:3])
    problem = Problem(dims(shape, keys, shared, bias, q=q, k=k, v=v, o=o), types, flags, frozenset({"logs", *given}))
    with np.errstate(all="ignore"):
        interpret(
            attention, problem, Config(SMALL), q=q, k=k, v=v, o=o, logs=logs, scale=SCALE, hidden=-np.inf, **given
        )
    expected, grads = reference(wide(q), wide(k), wide(v), wide(bias) if biased else 0.0, causal, shared, kept)
    assert_close(o, expected, kind, 4)
    dq, dk, dv = empty(q.shape, kind), empty(k.shape, kind), empty(k.shape, kind)
    sizes = dims(shape, keys, shared, bias, q=q, k=k, v=v, o=o, do=do, dq=dq, dk=dk, dv=dv)
    values = {"q": q, "k": k, "v": v, "o": o, "do": do, "logs": logs, "dq": dq, "dk": dk, "dv": dv}
    with np.errstate(all="ignore"):
        interpret(
            attention_grad,
            Problem(sizes, types, flags, frozenset(given)),
            Config(SMALL),
            scale=SCALE,
            hidden=-np.inf,
            **values,
            **given,
        )
    for got, want in zip((dq, dk, dv), grads(wide(do)), strict=True):
        assert_close(got, want, kind, 12)


def test_a_row_that_sees_nothing_is_nan_and_others_are_not():
    rng = np.random.default_rng(1)
    q, k, v = (draw(rng, (1, 1, 20, 16)) for _ in range(3))
    q[0, 0, 7, 3] = np.nan
    bias = np.zeros((1, 1, 20, 20), np.float32)
    bias[0, 0, 4] = -np.inf
    o = empty(q.shape)
    problem = Problem(
        dims(q.shape, 20, 1, bias, q=q, k=k, v=v, o=o), {"T": "fp32", "B": "fp32"}, present=frozenset({"bias"})
    )
    with np.errstate(all="ignore"):
        interpret(attention, problem, Config(SMALL), q=q, k=k, v=v, o=o, scale=SCALE, hidden=-np.inf, bias=bias)
    hidden = np.isnan(o[0, 0]).all(1)
    assert np.flatnonzero(hidden).tolist() == [4, 7] and np.isfinite(o[0, 0][~hidden]).all()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("hidden", [-np.inf, -1e9, -2.0])
@pytest.mark.parametrize(
    ("queries", "keys", "causal", "masked", "large"),
    [(40, 40, True, False, 1.0), (40, 70, True, True, 1.0), (70, 36, True, False, 1e5), (33, 50, False, True, 1e5)],
)
def test_what_is_hidden_has_one_score(hidden, queries, keys, causal, masked, large):
    """Whatever its product is; and a weight, where others are no larger. Of scores of 1e10 some are far below -1e9."""
    rng = np.random.default_rng(5)
    q, do = (draw(rng, (1, 2, queries, 16)) for _ in range(2))
    k, v = (draw(rng, (1, 2, keys, 16)) for _ in range(2))
    if large > 1.0:  # one key of those that are seen has all of the weight, or all those that are hidden
        q[:], k[..., 1:] = large * np.sign(q), 0.0
        k[..., 0] = large * (rng.permutation(keys) - keys // 2)
    mask = None
    if masked:
        mask = np.array(np.broadcast_to(rng.random((1, 1, queries, keys)) < 0.6, (1, 2, queries, keys)))
        mask[:, :, 5] = False
        mask[:, :, :, 3] = False
        k[:, :, 3, 1] = np.inf
    given = {"bias": mask} if masked else {}
    types, flags = {"T": "fp32", "B": "i1" if masked else "fp32"}, {"CAUSAL": causal}
    o, logs, dq, dk, dv = empty(q.shape), empty(q.shape[:3]), empty(q.shape), empty(k.shape), empty(k.shape)
    here = dims(q.shape, keys, 1, mask, q=q, k=k, v=v, o=o, do=do, dq=dq, dk=dk, dv=dv)
    with np.errstate(all="ignore"):
        problem = Problem(here, types, flags, frozenset({"logs", *given}))
        interpret(attention, problem, Config(SMALL), q=q, k=k, v=v, o=o, logs=logs, scale=SCALE, hidden=hidden, **given)
        problem = Problem(here, types, flags, frozenset(given))
        values = {"q": q, "k": k, "v": v, "o": o, "do": do, "logs": logs, "dq": dq, "dk": dk, "dv": dv}
        interpret(attention_grad, problem, Config(SMALL), scale=SCALE, hidden=hidden, **values, **given)
        expected, grads = reference(*map(wide, (q, k, v)), 0.0, causal, 1, mask=mask, hidden=hidden)
        want = expected, *grads(wide(do))
    # by queries and keys: differences of what is nearly equal, times numbers as large as those are
    for got, true, near in zip((o, dq, dk, dv), want, (1.0, large * keys, large, 1.0), strict=True):
        np.testing.assert_allclose(got, true, rtol=2e-3, atol=2e-5 * near, err_msg=str(near))
