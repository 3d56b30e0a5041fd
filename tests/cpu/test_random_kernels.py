"""The random kernels against Philox in Python integers: the same bits, and the values the specs make of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import (
    FRESH,
    HOST_MEMORY,
    PLANNED,
    ArgInfo,
    Bound,
    BuildContext,
    OpDef,
    OutInfo,
    PlanNode,
    dtypes,
    errors,
)
from graphdock.contracts.streams import RandomOrdinals, RandomStream, random_key
from graphdock_cpu.device import CpuFactory
from graphdock_cpu.kernels import random as kernels
from graphdock_cpu.kernels import sampling
from graphdock_std.reference import random as oracle

KERNELS = {k.op: k for k in kernels.KERNELS}
DEVICE = CpuFactory().open(CpuFactory().probe()[0], {})
SHAPES = [(), (7,), (4, 6), (0,), (3, 5, 3), (1001,)]
FLOATS = ["float32", "float64", "float16", "bfloat16"]
KEY = (0x123456789ABCDEF0, 987654321)


def stream_at(ordinal: int, iteration: int, key: tuple[int, int] = KEY) -> RandomStream:
    stream = RandomStream(key)
    stream.begin(ordinal)
    stream.at(iteration)
    return stream


def run(op: str, inputs: dict[str, Any], dtype: str, shape: tuple[int, ...], stream: Any, fresh: bool = False) -> Any:
    """Two calls of one kernel: the second must not remember the first."""
    arrays = [np.asarray(a) for a in inputs.values()]
    infos = tuple(
        ArgInfo(n, dtypes.as_dtype(a.dtype), a.shape, HOST_MEMORY) for n, a in zip(inputs, arrays, strict=True)
    )
    kind = dtypes.as_dtype(dtype)
    out = OutInfo("output", kind, None if fresh else shape, HOST_MEMORY, FRESH if fresh else PLANNED)
    node = PlanNode(op, "node", OpDef(op), {}, [])
    built = KERNELS[op].build(BuildContext(node, infos, (out,), DEVICE))
    bound = built if isinstance(built, Bound) else Bound(built)
    buffers = [] if fresh else [np.zeros(shape, kind.np)]
    scratch = [np.full(s.shape, 9, s.dtype.np) for s in bound.scratch]
    for _ in range(2):
        result = bound.compute(*arrays, stream, *buffers, *scratch)
    return result if fresh else buffers[0]


def test_philox_is_the_published_one() -> None:
    """Known answers of the authors' Random123 library, philox4x64 with 10 rounds."""
    zeros = oracle.philox((0, 0, 0, 0), (0, 0))
    assert zeros == (0x16554D9ECA36314C, 0xDB20FE9D672D0FDC, 0xD7E772CEE186176B, 0x7E68B68AEC7BA23B)
    full = (1 << 64) - 1
    ones = oracle.philox((full,) * 4, (full,) * 2)
    assert ones == (0x87B092C3013FE90B, 0x438C3C67BE8D0224, 0x9CC7D7C69CD777B6, 0xA09CAEBF594F0BA0)


def test_words_are_numpys() -> None:
    bits = np.random.Philox(counter=[0, 0, 5, 9], key=list(KEY))
    assert bits.random_raw(37).tolist() == oracle.words(37, KEY, (9, 5))


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", FLOATS)
def test_uniform_is_exact(dtype: str, shape: tuple[int, ...], fresh: bool) -> None:
    for stream in (stream_at(0, 0), stream_at(3, 2), stream_at(0, 1, ((1 << 64) - 1, 6))):
        got = run("RandomUniform", {"shape": np.array(shape, np.int32)}, dtype, shape, stream, fresh)
        want = oracle.random_uniform(shape, got.dtype, key=stream.key, counter=stream.counter())
        assert got.dtype == dtypes.as_dtype(dtype).np and got.shape == shape
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("op", ["RandomStandardNormal", "TruncatedNormal"])
def test_normals_to_the_stated_tolerance(op: str, dtype: str, shape: tuple[int, ...], fresh: bool) -> None:
    rtol, atol = {"float64": (1e-12, 1e-13), "float32": (1e-5, 1e-6), "float16": (2e-3, 1e-3)}.get(dtype, (1e-2, 1e-2))
    stream = stream_at(7, 1)
    got = run(op, {"shape": np.array(shape, np.int64)}, dtype, shape, stream, fresh)
    reference = oracle.standard_normal if op == "RandomStandardNormal" else oracle.truncated_normal
    want = reference(shape, got.dtype, key=stream.key, counter=stream.counter())
    np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=rtol, atol=atol)
    assert got.dtype == dtypes.as_dtype(dtype).np and got.shape == shape


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    ("dtype", "low", "high"),
    [("int32", -5, 9), ("int64", -(1 << 62), 1 << 62), ("int64", 3, 4), ("int32", -(1 << 31), 0)],
)
def test_integers_are_exact(dtype: str, low: int, high: int, shape: tuple[int, ...], fresh: bool) -> None:
    stream = stream_at(1, 0)
    inputs = {"shape": np.array(shape, np.int32), "minval": np.array(low, dtype), "maxval": np.array(high, dtype)}
    got = run("RandomUniformInt", inputs, dtype, shape, stream, fresh)
    np.testing.assert_array_equal(got, oracle.random_uniform_int(shape, low, high, dtype, key=KEY, counter=(1, 0)))
    assert got.dtype == dtype


def test_an_empty_range_is_an_error() -> None:
    inputs = {"shape": np.array([2]), "minval": np.array(4), "maxval": np.array(4)}
    with pytest.raises(errors.InvalidArgumentError, match="minval 4, maxval 4"):
        run("RandomUniformInt", inputs, "int64", (2,), stream_at(0, 0))


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize("value", [np.arange(60.0).reshape(20, 3), np.arange(9), np.array(5.0), np.zeros((0, 2))])
def test_shuffle_is_exact(value: np.ndarray, fresh: bool) -> None:
    stream = stream_at(2, 0)
    got = run("RandomShuffle", {"value": value}, str(value.dtype), value.shape, stream, fresh)
    want = oracle.random_shuffle(value, key=KEY, counter=(2, 0)) if value.ndim else value
    np.testing.assert_array_equal(got, want)
    assert sorted(got.ravel()) == sorted(value.ravel())


def phi(x: float) -> float:
    return 0.5 * (1.0 + math.erf(x / math.sqrt(2.0)))


@pytest.mark.parametrize("dtype", FLOATS)
def test_moments_and_bounds(dtype: str) -> None:
    """Of 200,000 draws: five standard errors, and the rounding of the narrow types."""
    n = 200_000
    shape = np.array([n], np.int32)
    slack = 5 / math.sqrt(n) + (0.005 if dtype == "bfloat16" else 0.0005)
    uniform = run("RandomUniform", {"shape": shape}, dtype, (n,), stream_at(0, 0)).astype(np.float64)
    assert uniform.min() >= 0.0 and uniform.max() < 1.0
    assert abs(uniform.mean() - 0.5) < slack and abs(uniform.var() - 1 / 12) < slack
    normal = run("RandomStandardNormal", {"shape": shape}, dtype, (n,), stream_at(0, 0)).astype(np.float64)
    assert abs(normal.mean()) < slack and abs(normal.var() - 1.0) < 2 * slack
    assert abs((normal**3).mean()) < 4 * slack and abs((normal**4).mean() - 3.0) < 12 * slack
    for x in (-1.5, -0.5, 0.75, 2.0):
        assert abs((normal <= x).mean() - phi(x)) < slack
    cut = run("TruncatedNormal", {"shape": shape}, dtype, (n,), stream_at(0, 0)).astype(np.float64)
    assert np.abs(cut).max() <= 2.0 and np.abs(cut).max() > 1.95
    mass = phi(2.0) - phi(-2.0)
    density = 2.0 * math.exp(-2.0) / math.sqrt(2.0 * math.pi)
    assert abs(cut.mean()) < slack and abs(cut.var() - (1.0 - 2.0 * density / mass)) < 2 * slack


def test_percentage_points_against_the_distribution() -> None:
    """phi(result) gives the probability back, in the centre and in both tails."""
    half = np.linspace(0.0, 0.4773, 1001)
    q = np.concatenate([-half[:0:-1], half])
    z = q.copy()
    kernels._percentage_points(z, *(np.empty_like(q) for _ in range(3)))
    np.testing.assert_allclose([phi(v) for v in z], q + 0.5, rtol=1e-14)
    np.testing.assert_array_equal(z, -z[::-1])


def test_keys_and_ordinals_of_a_session() -> None:
    assert random_key(5, -1) == (5, (1 << 64) - 1)
    assert random_key(0, 0) != random_key(0, 0)
    ordinals = RandomOrdinals()
    assert [ordinals.reserve(n) for n in "aabab"] == [0, 1, 0, 2, 1]
    assert ordinals.key("a", 0, 0) == ordinals.key("a", 0, 0) != ordinals.key("b", 0, 0)
    stream = ordinals.stream("c", 3, 4)
    stream.begin(8)
    stream.at(1)
    assert stream.key == (3, 4) and stream.counter() == (8, 1, 0)
    stream.begin(9)
    assert stream.counter() == (9, 0, 0)


def _drawn(make: Callable[[], Any], monkeypatch: pytest.MonkeyPatch, **limits: int) -> np.ndarray:
    """Values of the second step, where the module has these limits."""
    with monkeypatch.context() as patch, tf.Graph().as_default():
        for name, value in limits.items():
            patch.setattr(sampling, name, value)
        tf.set_random_seed(7)
        made = make()
        with tf.Session() as sess:
            sess.run(made)
            return np.asarray(sess.run(made))


@pytest.mark.parametrize("pieces", [1, 7, 100])
@pytest.mark.parametrize(
    "make",
    [
        lambda: tf.random_gamma([301], tf.constant([0.05, 1.0, 30.0], tf.float64), dtype=tf.float64),
        lambda: tf.random_gamma([5, 3], tf.constant(0.3, tf.float64), dtype=tf.float64),
        lambda: tf.random_poisson(tf.constant([0.5, 40.0], tf.float64), [200], tf.float64),
        lambda: tf.multinomial([[0.1, 2.0, -1.0], [0.0, float("-inf"), 1.0]], 50),
    ],
    ids=["gamma", "gamma of one", "poisson", "classes"],
)
def test_numbers_are_the_same_however_many_are_drawn_at_once(
    make: Callable[[], Any], pieces: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = _drawn(make, monkeypatch, AT_ONCE=1 << 20)
    np.testing.assert_array_equal(_drawn(make, monkeypatch, AT_ONCE=pieces), whole)


@pytest.mark.parametrize(("rows", "classes", "count"), [(5, 40, 3), (3, 4, 60), (1, 30, 30), (4, 1, 5)])
def test_classes_are_the_same_however_they_are_found(
    rows: int, classes: int, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By comparison with each class, by draw, and by bisection; one class has no chance."""
    logits = np.random.default_rng(0).normal(size=(rows, classes))
    logits[:, classes // 2 : classes // 2 + (classes > 1)] = -np.inf
    found = [
        _drawn(lambda: tf.multinomial(logits, count), monkeypatch, FEW_CLASSES=few, FEW_COMPARED=compared)
        for few, compared in ((0, 0), (0, 1 << 30), (1 << 30, 0))
    ]
    for each in found[1:]:
        np.testing.assert_array_equal(each, found[0])
