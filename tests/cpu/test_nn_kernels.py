"""The nn kernels, one node at a time through the kernel contract, against the specs' oracles, in every mode."""

from __future__ import annotations

import zlib
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
    inplace,
)
from graphdock.contracts.opdef import resolve
from graphdock.ops import apply_op
from graphdock_cpu.device import CpuFactory
from graphdock_cpu.kernels import nn
from graphdock_opgen.spec_cases import spec_cases
from graphdock_std._gen.opdefs import OPS

CASES = spec_cases("graphdock_std", lambda op: OPS[op]())
KERNELS = {k.op: k for k in nn.KERNELS}
DEVICE = CpuFactory().open(CpuFactory().probe()[0], {})


def arrays_of(op: str, sample: Any, dtype: str) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(zlib.crc32(f"{op}{dtype}".encode()))
    found = {}
    for name, given in sample["inputs"].items():
        kind = dtypes.as_dtype(given.get("dtype", dtype)).np
        if "value" in given:
            found[name] = np.array(given["value"]).astype(kind)
        elif np.issubdtype(kind, np.integer):
            found[name] = rng.integers(0 if kind.kind == "u" else -5, 6, given["shape"]).astype(kind)
        else:
            drawn = rng.uniform(given.get("low", -2.0), given.get("high", 2.0), given["shape"])
            found[name] = np.asarray(drawn).astype(kind)
    return found


def run(
    op: str,
    arrays: dict[str, np.ndarray],
    attrs: dict[str, Any],
    outs: list[Any],
    mode: Any,
    known: bool,
    used: Any = None,
) -> list[np.ndarray]:
    """The outputs of one call; outputs and scratch begin as rubbish."""
    opdef = OPS[op]()
    node = PlanNode(op, "node", opdef, attrs, [])
    infos = tuple(
        ArgInfo(n, dtypes.as_dtype(a.dtype), a.shape if known else (None,) * a.ndim, HOST_MEMORY)
        for n, a in arrays.items()
    )
    infos_out = tuple(
        OutInfo(
            arg.name,
            dtypes.as_dtype(o.dtype),
            o.shape if known or mode is not FRESH else None,
            HOST_MEMORY,
            mode,
            True if used is None else used[i],
        )
        for i, (arg, o) in enumerate(zip(opdef.outputs, outs, strict=True))
    )
    built = KERNELS[op].build(BuildContext(node, infos, infos_out, DEVICE))
    bound = built if isinstance(built, Bound) else Bound(built)
    inputs = [np.array(a) for a in arrays.values()]
    buffers = [] if mode is FRESH else [np.full(o.shape, 99, o.dtype) for o in outs]
    if mode.kind == "inplace":
        buffers[0] = inputs[mode.input]
    results = list(buffers)
    pool = [*buffers, *(np.full(s.shape, 77, s.dtype.np) for s in bound.scratch)]
    assert bound.args is None
    value = bound.compute(*inputs, *pool)
    if mode is FRESH:
        results = list(value) if isinstance(value, tuple) else [value]
    return results


def cases() -> list[Any]:
    """Of every op but those that take lists, which tests/conformance runs."""
    found = []
    for op in KERNELS:
        case = CASES[op]
        if any(arg.arity == "many" for arg in OPS[op]().inputs):
            continue
        for index, sample in enumerate(case["samples"]):
            for dtype in sample["types"].get("T") and [sample["types"]["T"]] or case["types"]["T"]:
                found.append(pytest.param(op, sample, dtype, id=f"{op}-{index}-{dtype}"))
    return found


@pytest.mark.parametrize(("op", "sample", "dtype"), cases())
@pytest.mark.sampled(2)
def test_kernel_agrees_with_the_oracle_in_every_mode(op: str, sample: Any, dtype: str) -> None:
    case = CASES[op]
    arrays = arrays_of(op, sample, dtype)
    attrs = {a.name: a.default for a in OPS[op]().attrs} | sample["attrs"]
    want = resolve(case["reference"])(**arrays, **attrs)
    want = list(want) if isinstance(want, tuple) else [want]
    tolerance = case["tolerances"].get(dtype, {"rtol": 0, "atol": 0})
    modes = [(PLANNED, True), (FRESH, True), (FRESH, False), (PLANNED, False)]
    names = list(arrays)
    for (inputs,) in [v for v in KERNELS[op].inplace.values()]:
        modes.append((inplace(names.index(inputs)), True))
    for mode, known in modes:
        got = run(op, arrays, attrs, want, mode, known)
        for g, w in zip(got, want, strict=True):
            assert isinstance(g, np.ndarray) and g.dtype == w.dtype and g.shape == w.shape
            np.testing.assert_allclose(
                g.astype(np.float64), w.astype(np.float64), **tolerance, err_msg=str((mode, known))
            )


@pytest.mark.parametrize("shape", [(128, 1000), (70, 70), (3, 5000)])
@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
def test_large_rows_take_the_other_path(op: str, shape: tuple[int, int]) -> None:
    x = np.random.default_rng(3).normal(size=shape).astype(np.float32) * 20
    want = resolve(CASES[op]["reference"])(x)
    (got,) = run(op, {"logits": x}, {}, [want], PLANNED, True)
    np.testing.assert_allclose(got, want, rtol=2e-5, atol=2e-5 if op == "LogSoftmax" else 1e-7)


@pytest.mark.parametrize("used", [(True, False), (False, True), (True, True)])
@pytest.mark.parametrize("shape", [(10, 10), (100, 100)])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("op", ["SoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits"])
def test_each_output_of_a_cross_entropy_is_right_without_the_other(
    op: str, dtype: str, shape: tuple[int, int], used: tuple[bool, bool]
) -> None:
    rng = np.random.default_rng(5)
    kind = dtypes.as_dtype(dtype).np
    x = (rng.normal(size=shape) * 10).astype(kind)
    if op.startswith("Sparse"):
        labels = rng.integers(0, shape[1], shape[0])
    else:
        weights = rng.uniform(size=shape)
        labels = (weights / weights.sum(1, keepdims=True)).astype(kind)
    arrays = {"features": x, "labels": labels}
    want = resolve(CASES[op]["reference"])(**arrays)
    tolerance = CASES[op]["tolerances"][dtype]
    for mode, known in ((PLANNED, True), (FRESH, False)):
        got = run(op, arrays, {}, list(want), mode, known, used)
        for g, w, u in zip(got, want, used, strict=True):
            if u:
                np.testing.assert_allclose(g.astype(np.float64), w.astype(np.float64), **tolerance)


def test_logits_far_apart_neither_overflow_nor_lose_the_loss() -> None:
    x = np.array([[1000.0, 0.0, -1000.0], [-1000.0, -1000.0, -1000.0]], np.float32)
    y = np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]], np.float32)
    want = [np.empty(2, np.float32), np.empty((2, 3), np.float32)]
    loss, backprop = run("SoftmaxCrossEntropyWithLogits", {"features": x, "labels": y}, {}, want, PLANNED, True)
    np.testing.assert_allclose(loss, [1000.0, np.log(3.0)], rtol=1e-6)
    np.testing.assert_allclose(backprop, [[1, -1, 0], [-2 / 3, 1 / 3, 1 / 3]], rtol=1e-6)


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize("wrong", [-1, 4, np.iinfo(np.int32).min])
def test_a_label_that_is_no_class_is_named(kind: Any, wrong: int) -> None:
    arrays = {"features": np.zeros((3, 4), np.float32), "labels": np.array([0, wrong, 3], kind)}
    outs = [np.empty(3, np.float32), np.empty((3, 4), np.float32)]
    with pytest.raises(errors.InvalidArgumentError) as caught:
        run("SparseSoftmaxCrossEntropyWithLogits", arrays, {}, outs, PLANNED, True)
    assert caught.value.got == str(wrong) and caught.value.expected == "labels from 0 to 3"


def test_steady_state_takes_no_large_memory() -> None:
    """tracemalloc sees NumPy's buffers: a planned call on a megabyte takes NumPy's own small buffers at most."""
    import tracemalloc

    x = np.random.default_rng(0).normal(size=(500, 500)).astype(np.float32)
    y = np.full((500, 500), 1 / 500, np.float32)
    node = PlanNode("SoftmaxCrossEntropyWithLogits", "n", OpDef("SoftmaxCrossEntropyWithLogits"), {}, [])
    infos = tuple(ArgInfo(n, dtypes.float32, x.shape, HOST_MEMORY) for n in ("features", "labels"))
    outs = [np.empty(500, np.float32), np.empty_like(x)]
    infos_out = tuple(
        OutInfo(n, dtypes.float32, o.shape, HOST_MEMORY, PLANNED) for n, o in zip("ab", outs, strict=True)
    )
    bound = KERNELS["SoftmaxCrossEntropyWithLogits"].build(BuildContext(node, infos, infos_out, DEVICE))
    assert isinstance(bound, Bound)
    args = [x, y, *outs, *(np.empty(s.shape, s.dtype.np) for s in bound.scratch)]
    bound.compute(*args)
    tracemalloc.start()
    try:
        bound.compute(*args)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < x.nbytes / 20


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_an_infinite_gradient_of_relu_is_no_number_where_relu_is_zero(dtype) -> None:
    """As TensorFlow 2.21 answers: a product by 0, also where it is infinite."""
    odd = [np.inf, np.nan, -np.inf, 3.0]
    g, x = tf.placeholder(dtype, [2, 4]), tf.placeholder(dtype, [2, 4])
    y = apply_op("ReluGrad", gradients=g, features=x)
    with tf.Session(config=tf.SessionConfig(fusion=False)) as sess:
        found = sess.run(y, {g: [odd, odd], x: [[0, 0, -1, 0], [1, 2, 1, 3]]})
    np.testing.assert_array_equal(found.astype(np.float64), [[np.nan, np.nan, np.nan, 0], odd])


@pytest.mark.parametrize("shape", [(4, 101, 99, 9), (1000, 1, 1, 3), (5, 1, 1, 2049), (0, 2, 2, 3), (2, 3, 3, 0)])
@pytest.mark.parametrize("kind", [np.float32, np.float16])
def test_normalisation_of_any_number_of_channels_is_the_formula(shape: tuple[int, ...], kind: Any) -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(3, 2, shape).astype(kind)
    scale, offset, mean, variance = (rng.uniform(0.5, 2, shape[-1]).astype(np.float32) for _ in range(4))
    with tf.Graph().as_default(), tf.Session(config=tf.ConfigProto(intra_op_parallelism_threads=2)) as sess:
        y = tf.nn.fused_batch_norm(x, scale, offset, mean, variance, 0.001, is_training=False)[0]
        got = sess.run(y)
    want = (x.astype(np.float32) - mean) * (scale / np.sqrt(variance + np.float32(0.001))) + offset
    np.testing.assert_array_equal(got, want.astype(kind))
