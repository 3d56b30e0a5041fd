"""Attention in chunks: of several matrices, of some queries of one; beside NumPy, the cpu's kernels, and itself in one chunk."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import graphdock as tf
import ml_dtypes
import numpy as np
import pytest
from graphdock.ops import apply_op
from graphdock.plugin.host import Host
from graphdock_cuda.kernels import attention as module
from graphdock_cuda.kernels.attention import parts_of
from graphdock_cuda.testing import toolkit
from graphdock_cuda.testing.install import install
from graphdock_cuda.work import Work
from graphdock_std.reference import fused as reference
from graphdock_testing.conformance import Conformance

pytestmark = pytest.mark.slow

STREAM = np.array([7, 11, 5, 3, 2], np.uint64)
#: dtype -> how far results may be off, of numbers of about one.
WITHIN = {np.float64: 1e-12, np.float32: 1e-5, np.float16: 4e-3, ml_dtypes.bfloat16: 3e-2}


def _normal(seed: int, *shapes: Any, dtype: Any = np.float32) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(s).astype(dtype) for s in shapes]


def _both(rate: float | None = None, **attrs: Any) -> Callable[..., Any]:
    """Attention of ``(q, k, v, grad, bias?)`` and its gradient."""

    def make(q: Any, k: Any, v: Any, grad: Any, bias: Any = None) -> Any:
        given = {"query": q, "key": k, "value": v, "bias": bias, **attrs}
        if rate is not None:
            given |= {"stream": tf.constant(STREAM), "rate": tf.constant(rate, tf.float32)}
            given |= {"factor": tf.cast(tf.constant(1 / (1 - rate)), q.dtype)}
        name = "Attention" if rate is None else "DroppedAttention"
        output, log_sum = apply_op(name, **given)
        back = apply_op(f"{name}Grad", output_backprop=grad, output=output, log_sum=log_sum, **given)
        return [output, log_sum, *back]

    return make


def _expected(arrays: list[np.ndarray], rate: float | None = None, **attrs: Any) -> list[np.ndarray]:
    """Likewise by the references, of what the dtype holds, in float64."""
    q, k, v, grad, *rest = (x if x.dtype == bool else x.astype(np.float64) for x in arrays)
    bias = rest[0] if rest else None
    if rate is None:
        return [
            *reference.attention(q, k, v, bias=bias, **attrs),
            *reference.attention_grad(grad, q, k, v, bias=bias, **attrs),
        ]
    factor = np.asarray(1 / (1 - rate), np.float32).astype(arrays[0].dtype)
    drop = {"stream": STREAM, "rate": np.float32(rate), "factor": factor}
    return [
        *reference.dropped_attention(q, k, v, **drop, bias=bias, **attrs),
        *reference.dropped_attention_grad(grad, q, k, v, **drop, bias=bias, **attrs),
    ]


def _compare(got: list[Any], want: list[Any], dtype: Any) -> None:
    for number, (mine, theirs) in enumerate(zip(got, want, strict=True)):
        within = 1e-5 if number == 1 and dtype is np.float64 else WITHIN[dtype]  # logarithms are float32
        np.testing.assert_allclose(mine.astype(np.float64), theirs.astype(np.float64), rtol=within, atol=4 * within)


@pytest.fixture
def limit(kit: Conformance, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """``limit(bytes)``: of scores at once."""
    device = kit.host.open_device("/device:cuda:0")
    return lambda workspace: monkeypatch.setattr(device, "workspace", workspace)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    ("matrices", "queries", "keys"), [(7, 5, 9), (3, 70, 37), (2, 37, 70), (1, 1, 40), (2, 20, 20)]
)
@pytest.mark.parametrize("most", [1, 100, 640, 1300])
def test_parts_are_all_scores_once(matrices: int, queries: int, keys: int, causal: bool, most: int) -> None:
    seen = np.zeros((matrices, queries, keys), int)
    for parts in parts_of(matrices, queries, keys, causal, most):
        assert parts[0].seen == keys, "the first one sees all keys"
        for part in parts:
            count, rows, width = part.shape
            assert rows and width and (count * rows * width <= most or count * rows == 1)
            assert (count, part.first) == (parts[0].count, parts[0].first)
            seen[part.first : part.first + count, part.begin : part.end, :width] += 1
    wanted = np.tri(queries, keys, keys - queries, int) if causal else np.ones((queries, keys), int)
    assert (seen[:, wanted == 1] == 1).all() and seen.max() == 1


@pytest.mark.sampled(6)
@pytest.mark.parametrize("workspace", [1 << 25, 9000, 2000, 300])
@pytest.mark.parametrize(
    ("shape", "keys", "causal", "bias", "rate"),
    [((2, 3, 33, 5), 21, False, (3, 1, 21), 0.3), ((3, 21, 4), 33, True, None, None), ((1, 2, 40, 8), 40, True, (40, 40), 0.5)],
)  # fmt: skip
def test_chunks(
    run: Callable[..., Any],
    limit: Callable[[int], None],
    workspace: int,
    shape: Any,
    keys: int,
    causal: bool,
    bias: Any,
    rate: float | None,
) -> None:
    """All matrices in one chunk, some of them, some queries of one, a few queries."""
    *outer, queries, depth = shape
    width = 6
    shapes = [shape, (*outer, keys, depth), (*outer, keys, width), (*outer, queries, width)]
    arrays = _normal(1, *shapes, *([bias] if bias else []))
    attrs: dict[str, Any] = {"scale": 0.5, "causal": causal}
    limit(workspace)
    got = run(_both(rate, **attrs), *arrays)
    _compare(got, _expected(arrays, rate, **attrs), np.float32)


@pytest.mark.parametrize(
    ("dtype", "rate"),
    [
        (np.float16, 0.25),
        pytest.param(np.float16, None, marks=pytest.mark.exhaustive),
        pytest.param(np.float64, None, marks=pytest.mark.exhaustive),
        pytest.param(ml_dtypes.bfloat16, 0.25, marks=pytest.mark.exhaustive),
    ],
)
def test_sums_over_chunks_are_kept_wide(
    run: Callable[..., Any], limit: Callable[[int], None], dtype: Any, rate: float | None
) -> None:
    """Of thirty chunks of queries, whose gradients of keys and values are rounded once."""
    arrays = _normal(2, (1, 480, 8), (1, 24, 8), (1, 24, 8), (1, 480, 8), dtype=dtype)
    attrs: dict[str, Any] = {"scale": 0.35}
    whole = run(_both(rate, **attrs), *arrays)
    limit(16 * 24 * 12)
    got = run(_both(rate, **attrs), *arrays)
    for mine, theirs in zip(got[:3], _expected(arrays, rate, **attrs)[:3], strict=True):
        np.testing.assert_allclose(mine.astype(np.float64), theirs.astype(np.float64), rtol=3e-2, atol=3e-2)
    for mine, theirs in zip(got[3:], whole[3:], strict=True):
        np.testing.assert_allclose(
            mine.astype(np.float64), theirs.astype(np.float64), rtol=2 * WITHIN[dtype], atol=1e-3
        )
        if dtype is not np.float64:
            assert np.mean(mine == theirs) > 0.9, "rounded once, as in one chunk"


def test_rows_that_a_block_has(run: Callable[..., Any]) -> None:
    arrays = _normal(3, (3, 4), (2500, 4), (2500, 4), (3, 4), (2500,))
    _compare(run(_both(0.5, scale=0.5), *arrays), _expected(arrays, 0.5, scale=0.5), np.float32)
    _compare(run(_both(scale=0.5), *arrays[:4]), _expected(arrays[:4], scale=0.5), np.float32)


@pytest.fixture(scope="module")
def alone() -> Iterator[Host]:
    """A GPU without the matrix library."""
    tools, host = toolkit(seed=5), Host()
    install(host, replace(tools, blas=None))
    host.open_device("/device:cuda:0").workspace = 5000  # type: ignore[attr-defined]
    yield host
    tools.driver.verify()  # type: ignore[attr-defined]


@pytest.mark.parametrize("dtype", [pytest.param(np.float32, marks=pytest.mark.exhaustive), np.float16])
def test_without_the_matrix_library(alone: Host, dtype: Any) -> None:
    """By the own tiles: they write scores in float32, and add up."""
    arrays = _normal(4, (2, 40, 5), (2, 19, 5), (2, 19, 3), (2, 40, 3), dtype=dtype)
    with tf.Graph(host=alone).as_default():
        feeds = [tf.placeholder(a.dtype, a.shape) for a in arrays]
        fetches = _both(0.25, scale=0.5)(*feeds)
        with tf.Session(config=tf.SessionConfig(backends=("cuda", "cpu"), fallback="forbid"), host=alone) as session:
            got = session.run(fetches, dict(zip(feeds, arrays, strict=True)))
    _compare(got, _expected(arrays, 0.25, scale=0.5), dtype)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("workspace", [1 << 25, 1000])
@pytest.mark.parametrize("keys", [8, 13])
def test_the_same_weights_are_dropped_as_on_a_cpu(
    run: Callable[..., Any], limit: Callable[[int], None], keys: int, workspace: int
) -> None:
    """Values that are ones on the diagonal show each weight. The gradient of values shows which are dropped there."""
    zeros, eye = np.zeros((3, 26, 4), np.float32), np.broadcast_to(np.eye(keys, dtype=np.float32), (3, keys, keys))
    grad = np.broadcast_to(np.eye(26, keys, dtype=np.float32), (3, 26, keys))
    arrays = [zeros, zeros[:, :keys], eye.copy(), grad.copy(), np.zeros(keys, np.float32)]
    limit(workspace)
    got = run(_both(0.4), *arrays)
    want = run(_both(0.4), *arrays, backend="cpu")
    for mine, theirs in zip((got[0], got[4]), (want[0], want[4]), strict=True):
        np.testing.assert_array_equal(mine == 0, theirs == 0)
    assert 0.2 < (got[0] == 0).mean() < 0.6


@pytest.mark.sampled(2)
@pytest.mark.parametrize("workspace", [1 << 25, 1200])
def test_rows_that_see_nothing_are_nan_and_others_are_not(
    run: Callable[..., Any], limit: Callable[[int], None], workspace: int
) -> None:
    q, k, v, grad = _normal(5, (2, 20, 4), (2, 16, 4), (2, 16, 3), (2, 20, 3))
    bias = np.zeros((20, 16), np.float32)
    bias[7], bias[8, 3:], bias[9, 4], bias[10, 5] = -np.inf, -np.inf, np.inf, np.nan
    arrays = [q, k, v, grad, bias]
    limit(workspace)
    got = run(_both(0.0), *arrays)
    nothing = np.isin(np.arange(20), [7, 9, 10])
    for mine in (got[0].sum(-1), got[1], got[2].sum(-1)):
        np.testing.assert_array_equal(np.isnan(mine), np.broadcast_to(nothing, (2, 20)))
    assert np.isnan(got[3]).all() and np.isnan(got[4]).all()
    with np.errstate(all="ignore"):
        want = _expected(arrays, 0.0)
    np.testing.assert_allclose(got[0], want[0], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(got[1], want[1], rtol=1e-5, atol=1e-5)
    # more queries than keys: the first four see none
    hidden = run(_both(causal=True), q, k, v, grad)
    with np.errstate(all="ignore"):
        want = _expected([q, k, v, grad], causal=True)
    for mine, theirs in zip(hidden, want, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=1e-5)
    assert np.isnan(hidden[0][:, :4]).all() and not np.isnan(hidden[0][:, 4:]).any()


@pytest.mark.sampled(6)
@pytest.mark.parametrize("workspace", [1 << 25, 1200])
@pytest.mark.parametrize("hidden", [-np.inf, -1e9, -1.0])
@pytest.mark.parametrize(("causal", "masked", "rate"), [(True, False, None), (False, True, 0.25), (True, True, None)])
def test_what_is_hidden_has_one_score(
    run: Callable[..., Any],
    limit: Callable[[int], None],
    workspace: int,
    hidden: float,
    causal: bool,
    masked: bool,
    rate: float | None,
) -> None:
    """Whatever its product is; and weights, where others are no larger."""
    arrays = _normal(7, (2, 20, 4), (2, 16, 4), (2, 16, 3), (2, 20, 3))
    if masked:
        mask = np.random.default_rng(3).random((2, 20, 16)) < 0.6
        mask[:, 5], mask[..., 3] = False, False
        arrays.append(mask)
        arrays[1][:, 3, 1] = np.inf
    attrs: dict[str, Any] = {"scale": 0.5, "causal": causal, "hidden": hidden}
    limit(workspace)
    got = run(_both(rate, **attrs), *arrays)
    with np.errstate(all="ignore"):
        want = _expected(arrays, rate, **attrs)
    for mine, theirs in zip(got, want, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5, atol=4e-5)


@pytest.mark.parametrize(
    "shapes", [((2, 3, 4), (2, 0, 4)), ((2, 0, 4), (2, 3, 4)), ((2, 3, 0), (2, 5, 0)), ((0, 3, 4), (0, 5, 4))]
)
def test_nothing_to_attend_to(run: Callable[..., Any], limit: Callable[[int], None], shapes: Any) -> None:
    """No keys, no queries, no depth, no matrices; and no bytes for scores."""
    limit(0)
    queries, keys = shapes
    arrays = _normal(6, queries, keys, (*keys[:-1], 2), (*queries[:-1], 2))
    with np.errstate(all="ignore"):
        want = _expected(arrays)
    _compare(run(_both(), *arrays), want, np.float32)


def _work(host: Host, op: str, arrays: dict[str, Any], outputs: int, unused: Sequence[int] = ()) -> Work:
    class Node:
        origin, site, attrs = None, None, {"scale": 1.0, "causal": True, "hidden": -math.inf}

    Node.op = op  # type: ignore[attr-defined]
    inputs = [(name, tf.bfloat16, shape) for name, shape in arrays.items()]
    made = [("y", tf.bfloat16, None)] * outputs
    return Work(Node(), host.open_device("/device:cuda:0"), inputs, made, {}, {}, unused)  # type: ignore[arg-type]


def test_scratch_is_bounded_whatever_the_length(kit: Any) -> None:
    """The scores of one matrix would take a gigabyte. A chunk is two products and a launch."""
    length, wide = 16384, (1, 16384, 64)
    given = {"query": wide, "key": wide, "value": wide}
    w = _work(kit.host, "Attention", given, 2)
    module.attention(w)
    assert w.scratch_bytes <= 1 << 25
    rows = (1 << 25) // (length * 6) // 64 * 64
    assert [s.kind for s in w.steps] == ["gemm", "launch", "gemm"] * -(-length // rows)
    w = _work(kit.host, "AttentionGrad", {"output_backprop": wide, **given, "output": wide, "log_sum": wide[:-1]}, 3)
    module.attention_grad(w)
    sums = 2 * length * 64 * 4
    assert w.scratch_bytes <= (1 << 25) + sums


@pytest.mark.parametrize(("unused", "products"), [((), 5), ((0,), 4), ((1, 2), 3)])
def test_gradients_that_nothing_reads_are_not_computed(kit: Any, unused: Sequence[int], products: int) -> None:
    given = dict.fromkeys(("output_backprop", "query", "key", "value", "output"), (2, 20, 8))
    w = _work(kit.host, "AttentionGrad", {**given, "log_sum": (2, 20)}, 3, unused)
    module.attention_grad(w)
    assert sorted(s.kind for s in w.steps) == ["gemm"] * products + ["launch"]


def test_a_step_that_is_replayed_draws_anew_as_the_cpu_does(
    run: Callable[..., Any], on_both: Callable[..., Any]
) -> None:
    """As people write it: the pattern finds it, forward and backward, with weights that are dropped."""
    q, k, v, bias = _normal(8, (2, 2, 20, 8), (2, 2, 20, 8), (2, 2, 20, 8), (2, 1, 1, 20))

    def make(a: Any, b: Any, c: Any, added: Any) -> Any:
        scores = tf.matmul(a, b, transpose_b=True) / np.float32(8**0.5) + added
        y = tf.matmul(tf.nn.dropout(tf.nn.softmax(scores), rate=0.3, seed=7), c)
        return [y, *tf.gradients(tf.sin(y), [a, b, c])]

    steps = [on_both(make, q, k, v, bias, steps=number) for number in (1, 4)]
    for pairs in steps:
        for mine, theirs in pairs:
            np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)
    assert not np.allclose(steps[0][0][0], steps[1][0][0]), "the fourth step drops others than the first"


def test_what_is_written_in_several_ops_is_found(kit: Any) -> None:
    with tf.Graph(host=kit.host).as_default():
        q, k, v = (tf.placeholder(tf.float32, [2, 2, 20, 8]) for _ in range(3))
        y = tf.matmul(tf.nn.softmax(tf.matmul(q, k, transpose_b=True) * 0.25), v)
        fetches = [y, *tf.gradients(y * y, [q, k, v])]
        with tf.Session(config=tf.SessionConfig(backends=("cuda", "cpu")), host=kit.host) as session:
            kernels = session.explain(fetches).kernels()
    assert kernels["cuda.attention"] == kernels["cuda.attention_grad"] == 1
    assert {"cuda.softmax", "cuda.matmul_lt"}.isdisjoint(kernels)
