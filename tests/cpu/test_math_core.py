"""The cpu device, and cpu kernels of the host's structural ops."""

from __future__ import annotations

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
    DeviceInfo,
    In,
    Lit,
    OutInfo,
    PlanNode,
    dtypes,
    inplace,
)
from graphdock.errors import InvalidArgumentError, ResourceExhaustedError
from graphdock_cpu.device import CpuDevice, CpuFactory
from graphdock_cpu.kernels.core import KERNELS

DEVICE = CpuDevice(DeviceInfo("cpu"))


# the device


def test_there_is_one_device_and_as_many_as_asked_for() -> None:
    factory = CpuFactory()
    (info,) = factory.probe()
    assert info.device_type == "cpu"
    assert info.memory_bytes > 0
    assert factory.virtual
    fourth = factory.open(DeviceInfo("cpu", 3), {})
    assert fourth.info.index == 3
    assert fourth.memory_space == HOST_MEMORY


@pytest.mark.parametrize("nbytes", [0, 1, 63, 64, 1000])
def test_storage_is_aligned(nbytes: int) -> None:
    storage = DEVICE.allocate(nbytes)
    assert storage.nbytes == nbytes
    assert nbytes == 0 or storage.ctypes.data % 64 == 0


def test_views_share_the_storage() -> None:
    storage = DEVICE.allocate(256)
    a = DEVICE.view(storage, 64, dtypes.float32, (2, 3))
    b = DEVICE.view(storage, 64, dtypes.int32, (6,))
    a[...] = 1.0
    assert (b == 0x3F800000).all()
    assert a.flags.c_contiguous
    assert DEVICE.view(storage, 256, dtypes.float64, (0, 4)).shape == (0, 4)


def test_strings_get_arrays_of_their_own() -> None:
    assert DEVICE.view(DEVICE.allocate(8), 0, dtypes.string, (2,)).dtype == object
    assert DEVICE.empty(dtypes.string, (2,)).dtype == object


def test_copies_take_strided_sources() -> None:
    source = np.arange(12.0).reshape(3, 4).T
    for copy in (DEVICE.copy, DEVICE.from_host, DEVICE.to_host):
        target = np.empty((4, 3))
        copy(source, target)
        assert (target == source).all()


def test_too_large_an_allocation_is_an_error_of_ours() -> None:
    with pytest.raises(ResourceExhaustedError, match="cpu:0 has no memory"):
        DEVICE.allocate(1 << 60)


# kernels of structural ops


def build(op: str, arrays: list[np.ndarray], mode: Any, shape: Any = (), **attrs: Any) -> tuple[Any, list[np.ndarray]]:
    """Run one kernel; returns what compute returned, and the planned output."""
    with tf.Graph().as_default():
        inputs = [tf.placeholder(a.dtype, a.shape) for a in arrays]
        names = {"AddN": {"inputs": inputs}, "Identity": {"input": inputs[0]}, "Shape": {"input": inputs[0]}}
        arguments = names.get(op) or {"tensor" if op == "CheckNumerics" else "x": inputs[0]}
        node = tf.ops.apply_op(op, **arguments, **attrs).op
    out = node.outputs[0]
    kernel = next(k for k in KERNELS if k.op == op and all(node.get_attr(n).name in v for n, v in k.types.items()))
    infos = tuple(ArgInfo(next(iter(arguments)), t.dtype, t.shape.dims, HOST_MEMORY) for t in inputs)
    outs = (OutInfo(node.op_def.outputs[0].name, out.dtype, out.shape.dims, HOST_MEMORY, mode),)
    built = kernel.build(BuildContext(PlanNode(op, node.name, node.op_def, node.node_attrs, ()), infos, outs, DEVICE))
    bound = built if isinstance(built, Bound) else Bound(built)
    planned = []
    if mode.kind in ("planned", "inplace"):
        planned = [arrays[mode.input] if mode.kind == "inplace" else np.full(out.shape.dims, 1).astype(out.dtype.np)]
    pool = [*planned, *(np.ones(s.shape, s.dtype.np) for s in bound.scratch)]
    args = [*arrays, *pool]
    if bound.args is not None:
        args = [
            arrays[a.index] if isinstance(a, In) else a.value if isinstance(a, Lit) else pool[a.index]
            for a in bound.args
        ]
    return bound.compute(*args), planned


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
@pytest.mark.parametrize("count", [1, 2, 3, 5, 25])
def test_add_n_in_every_mode(dtype: str, count: int) -> None:
    def fresh_inputs() -> list[np.ndarray]:
        return [np.arange(4).astype(dtype) + np.array(i, dtype) for i in range(count)]

    want = np.sum(np.stack(fresh_inputs()).astype(np.float64), 0).astype(dtype)
    made, _ = build("AddN", fresh_inputs(), FRESH)
    assert (made == want).all()
    assert (build("AddN", fresh_inputs(), PLANNED)[1][0] == want).all()
    if count > 1:
        for taken in range(count):
            assert (build("AddN", fresh_inputs(), inplace(taken))[1][0] == want).all()


@pytest.mark.parametrize("shape", [(2,), (3, 1), (1, 5), (256,), (257,)])
def test_add_n_of_many_has_the_bits_of_one_after_another(shape: tuple[int, ...]) -> None:
    random = np.random.default_rng(1)
    parts = [(random.standard_normal(shape) * 10.0 ** random.integers(-4, 5)).astype(np.float32) for _ in range(40)]
    for inputs in (parts, [np.full(shape, -0.0, np.float32)] * 40):
        total = inputs[0].copy()
        for part in inputs[1:]:
            total += part
        assert build("AddN", inputs, FRESH)[0].tobytes() == total.tobytes()


def test_add_n_of_half_precision_rounds_once() -> None:
    parts = [np.array([2048], np.float16)] + [np.array([1], np.float16)] * 4
    assert build("AddN", parts, PLANNED)[1][0][0] == 2052  # 2048 + 1 is 2048 in float16


@pytest.mark.parametrize("mode", [FRESH, PLANNED])
def test_shape(mode: Any) -> None:
    made, planned = build("Shape", [np.zeros((2, 0, 3))], mode, out_type=tf.int64)
    got = made if mode is FRESH else planned[0]
    assert got.tolist() == [2, 0, 3]
    assert got.dtype == np.int64


@pytest.mark.parametrize("mode", [FRESH, PLANNED])
def test_casts(mode: Any) -> None:
    x = np.array([-1.9, 0.0, 2.7])
    for to, want in (
        (tf.int32, [-1, 0, 2]),
        (tf.bool, [True, False, True]),
        (tf.float16, x.astype(np.float16).tolist()),
    ):
        made, planned = build("Cast", [x], mode, DstT=to)
        got = made if mode is FRESH else planned[0]
        assert got.tolist() == want
        assert got.dtype == to.np


@pytest.mark.parametrize("mode", [FRESH, PLANNED])
def test_zeros_and_ones(mode: Any) -> None:
    for op, fill in (("ZerosLike", 0), ("OnesLike", 1)):
        made, planned = build(op, [np.full((2, 2), 7, np.int32)], mode)
        assert ((made if mode is FRESH else planned[0]) == fill).all()
    made, planned = build("ZerosLike", [np.array([b"a"], object)], mode)
    assert (made if mode is FRESH else planned[0])[0] == b""


@pytest.mark.parametrize("mode", [FRESH, PLANNED, inplace(0)])
def test_check_numerics(mode: Any) -> None:
    x = np.ones((2, 2), np.float32)
    made, planned = build("CheckNumerics", [x], mode, message="weights")
    assert ((planned[0] if planned else made) == x).all()
    with pytest.raises(InvalidArgumentError, match="weights: tensor had NaN and infinity"):
        build("CheckNumerics", [np.array([np.nan, np.inf, 1])], mode, message="weights")
