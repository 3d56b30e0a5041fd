"""Products beyond a tile and beyond a part of the inner dim, by the own kernel and by the matrix library."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import graphdock as tf
import ml_dtypes
import numpy as np
import pytest
from graphdock_cuda.kernels.matmul import gemm_of, multiply, parts_of, product_of, tile_of
from graphdock_cuda.work import Operand, Work

pytestmark = pytest.mark.slow


OWN = {"MatMul@cuda": "cuda.matmul"}


@pytest.mark.parametrize(
    ("m", "n", "k"), [(1, 1, 5000), (33, 65, 17), (64, 64, 1030), (129, 31, 257), (300, 270, 16), (5, 5, 1)]
)
@pytest.mark.parametrize("transposed", [(False, False), (True, False), (False, True)])
@pytest.mark.sampled(2)
def test_sizes(run: Callable[..., Any], m: int, n: int, k: int, transposed: tuple[bool, bool]) -> None:
    rng = np.random.default_rng(m)
    a, b = (rng.standard_normal(s).astype(np.float32) for s in ((m, k), (k, n)))
    want = a.astype(np.float64) @ b
    given = (a.T if transposed[0] else a).copy(), (b.T if transposed[1] else b).copy()
    got = run(lambda x, y: tf.matmul(x, y, *transposed), *given, kernels=OWN)
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5 * k**0.5)
    np.testing.assert_array_equal(got, run(lambda x, y: tf.matmul(x, y, *transposed), *given, kernels=OWN))


def test_integers_wrap(run: Callable[..., Any]) -> None:
    a = np.random.default_rng(1).integers(-(2**31), 2**31, (40, 300)).astype(np.int32)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(run(lambda x, y: tf.matmul(x, y), a, a.T.copy()), a @ a.T)


@pytest.mark.parametrize("kernels", [OWN, {"MatMul@cuda": "cuda.matmul_lt"}])
@pytest.mark.parametrize(
    ("a", "b"),
    [((3, 2, 20, 7), (2, 7, 30)), ((4, 20, 7), (7, 30)), ((20, 7), (4, 7, 30)), ((2, 1, 5, 7), (1, 3, 7, 9))],
)
def test_batches(run: Callable[..., Any], a: Any, b: Any, kernels: dict[str, str]) -> None:
    rng = np.random.default_rng(2)
    x, y = (rng.standard_normal(s).astype(np.float32) for s in (a, b))
    np.testing.assert_allclose(run(lambda p, q: tf.matmul(p, q), x, y, kernels=kernels), x @ y, rtol=1e-4, atol=1e-5)


def test_an_empty_inner_dim_gives_zeros(run: Callable[..., Any]) -> None:
    empty = np.zeros((3, 0), np.float32), np.zeros((0, 2), np.float32)
    np.testing.assert_array_equal(run(lambda x, y: tf.matmul(x, y), *empty), np.zeros((3, 2)))


def _launched(rig: Any, w: Work, inputs: Sequence[np.ndarray], out: np.ndarray) -> np.ndarray:
    """The output, which held ``out``, after all launches of a Work."""
    known = {"input": [rig.put(x) for x in inputs], "output": [rig.put(out)]}
    known["scratch"] = [rig.put(np.zeros(w.scratch_bytes + 256, np.uint8))]
    for step in w.steps:
        assert step.source is not None
        image = rig.tools.compiler.compile(step.source.text, "m", "sm_90a")
        args = [known[x.kind][x.index] + x.offset if isinstance(x, Operand) else x for x in step.args]
        rig.launch(rig.driver.function(rig.driver.load(image), step.entry), *args, grid=step.grid, block=step.block)
    found: np.ndarray = rig.get(known["output"][0], out.size, out.dtype).reshape(out.shape)
    return found


def _work(kit: Any, *shapes: Any, options: dict[str, Any] | None = None, dtype: Any = tf.float32) -> Work:
    """A Work of inputs and one float32 output, of a node that says nothing."""

    class Node:
        op, origin, site, attrs = "MatMul", None, None, {}

    class Device:
        info = kit.host.open_device("/device:cuda:0").info

    inputs = [("x", dtype, s) for s in shapes]
    return Work(Node(), Device(), inputs, [("y", tf.float32, None)], {}, options or {})  # type: ignore[arg-type]


@pytest.mark.parametrize("activation", ["none", "relu", "gelu"])
@pytest.mark.parametrize(("m", "n", "k"), [(20, 17, 40), (3, 5, 2000)])
@pytest.mark.sampled(2)
def test_bias_and_activation(kit: Any, rig: Any, activation: str, m: int, n: int, k: int) -> None:
    rng = np.random.default_rng(4)
    a, b, bias = (rng.standard_normal(s).astype(np.float32) for s in ((m, k), (k, n), (n,)))
    w = _work(kit, a.shape, b.shape, bias.shape)
    d = w.output((m, n))
    multiply(w, *w.inputs[:2], d, product_of(a.shape, b.shape, False, False), w.inputs[2], activation, alpha=0.25)
    assert len(w.steps) == (2 if k > 1000 else 1)
    got = _launched(rig, w, (a, b, bias), np.zeros((m, n), np.float32))
    x = 0.25 * (a.astype(np.float64) @ b) + bias
    want = {
        "none": x,
        "relu": np.maximum(x, 0),
        "gelu": 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))),
    }
    np.testing.assert_allclose(got, want[activation], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(("m", "n", "k"), [(20, 17, 40), (3, 5, 2000)])
def test_products_of_halves_are_added_to_what_is_wider(kit: Any, rig: Any, m: int, n: int, k: int) -> None:
    """In one part of the inner dim, and in several."""
    rng = np.random.default_rng(5)
    a, b, before = (
        rng.standard_normal(s).astype(t) for s, t in (((m, k), np.float16), ((k, n), np.float16), ((m, n), np.float32))
    )
    w = _work(kit, a.shape, b.shape, dtype=tf.float16)
    product = product_of(a.shape, b.shape, False, False)
    multiply(w, *w.inputs, w.output((m, n)), product, alpha=0.5, adds=True)
    want = before + 0.5 * (a.astype(np.float64) @ b.astype(np.float64))
    np.testing.assert_allclose(_launched(rig, w, (a, b), before), want, rtol=1e-4, atol=1e-4)


def test_scratch_of_what_is_temporary_is_taken_again(kit: Any) -> None:
    """Steps run in order: parts that are told one after the other need the memory of the largest."""
    w = _work(kit)
    kept = w.scratch(tf.float32, 64)
    with w.temporary():
        first = w.scratch(tf.float32, (3, 64))
        with w.temporary():
            assert w.scratch(tf.float32, 1).offset == 1024
        assert w.scratch(tf.float32, 1).offset == 1024
    assert [kept.offset, first.offset, w.scratch(tf.float32, 1).offset] == [0, 256, 256]
    assert w.scratch_bytes == 1280


def test_what_the_library_is_asked_for(kit: Any) -> None:
    w = _work(kit, options={"matmul_precision": "tf32"})
    one = gemm_of(w, product_of((8, 3, 4), (4, 5), False, False), "float32", bias=True, activation="relu")
    assert one is not None and (one.m, one.batch, one.epilogue, one.operands) == (24, 1, "relu_bias", "tf32")
    many = gemm_of(w, product_of((8, 4, 3), (4, 5), True, False), "float64")
    assert many is not None and (many.batch, many.stride_a, many.stride_b, many.stride_d) == (8, 12, 0, 15)
    assert many.operands == "float32"  # what is not float32 is left as it is
    assert gemm_of(w, product_of((2, 1, 3, 4), (1, 3, 4, 5), False, False), "float32") is None
    assert gemm_of(w, product_of((3, 4), (4, 5), False, False), "int32") is None


def test_sessions_choose_what_operands_are_rounded_to(kit: Any) -> None:
    """In one process, on one device: each session has plans of its own."""
    a = np.array([[1 + 2.0**-9 + 2.0**-12, 1]], np.float32)
    b = np.array([[1, 0], [0, 1e5]], np.float32)

    def product(**options: str) -> list[float]:
        with tf.Graph(host=kit.host).as_default():
            x = tf.placeholder(tf.float32, a.shape)
            config = tf.SessionConfig(backends=("cuda", "cpu"), fallback="forbid", options={"cuda": options})
            with tf.Session(config=config) as session:
                found: list[float] = session.run(tf.matmul(x, b), {x: a})[0].tolist()
                return found

    exact = [float(a[0, 0]), 1e5]
    assert product() == exact and product(matmul_precision="highest") == exact
    assert product(matmul_precision="tf32") == [1 + 2.0**-9, float(np.float32(1e5) - 32)]
    assert product(matmul_precision="bf16") == [1, float(ml_dtypes.bfloat16(1e5))]
    assert product(matmul_precision="fp16") == [1 + 2.0**-9, np.inf]
    with pytest.raises(tf.errors.ConfigError, match="no such choice"):
        product(matmul_precision="tf31")


def test_tiles_and_parts() -> None:
    assert tile_of(4096, 4096, 4, 132) == 8 and tile_of(4096, 4096, 16, 132) == 4
    assert tile_of(100, 100, 4, 132) == 4 and tile_of(8, 8, 4, 132) == 2
    assert parts_of(1, 100_000, 132) == 128 and parts_of(1, 300, 132) == 1 and parts_of(500, 100_000, 132) == 1
