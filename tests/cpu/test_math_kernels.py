"""The cpu kernels of math and reduction ops, run one node at a time through the kernel contract, against the specs'
oracles.

No session and no planner: the contexts are made here, so that every mode (planned, fresh, in place, unknown shapes,
axes that are not constant) is reached on purpose.
"""

from __future__ import annotations

import dataclasses
import importlib
import itertools
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
    In,
    KernelDef,
    Lit,
    OutInfo,
    PlanNode,
    dtypes,
    inplace,
)
from graphdock.contracts.opdef import resolve
from graphdock.contracts.scalar_formula import host_scalar
from graphdock.errors import InvalidArgumentError
from graphdock.plugin.host import default_host
from graphdock_cpu.device import CpuFactory
from graphdock_cpu.kernels import erf, special_functions
from graphdock_cpu.kernels import math as math_kernels
from graphdock_cpu.kernels import matmul as matmul_kernels
from graphdock_cpu.kernels import reduce as reduce_kernels
from graphdock_cpu.plugin import register_kernels
from graphdock_opgen.spec_cases import spec_cases
from graphdock_std._gen.opdefs import OPS

CASES = spec_cases("graphdock_std", default_host().ops.get)
KERNELS: dict[str, KernelDef] = {
    k.op: k for module in (math_kernels, reduce_kernels, matmul_kernels, special_functions, erf) for k in module.KERNELS
}
#: The modes below take single arrays; kernels of lists of arrays are held by the conformance kit alone.
SINGLE = [op for op in KERNELS if all(a.arity == "one" for a in default_host().ops.get(op).inputs)]
DEVICE = CpuFactory().open(CpuFactory().probe()[0], {})
#: Host inputs (axes, shapes) of these ops are constants in most graphs.
STEERING = ("axis", "shape")


def graph_op(op: str, arrays: dict[str, np.ndarray], attrs: dict[str, Any], static: bool, constant_axis: bool) -> Any:
    """The operation as a user's graph holds it."""
    with tf.Graph().as_default():
        inputs = {}
        for name, array in arrays.items():
            if name in STEERING and constant_axis:
                inputs[name] = tf.constant(array)
            else:
                inputs[name] = tf.placeholder(
                    array.dtype, array.shape if static or name in STEERING else [None] * array.ndim
                )
        return tf.ops.apply_op(op, **inputs, **attrs).op


def context(node_op: Any, arrays: dict[str, np.ndarray], mode: Any, shape: Any, constant_axis: bool) -> BuildContext:
    infos = tuple(
        ArgInfo(
            arg.name,
            tensor.dtype,
            tensor.shape.dims,
            HOST_MEMORY,
            value=arrays[arg.name] if arg.name in STEERING and constant_axis else None,
        )
        for arg, tensor in zip(node_op.op_def.inputs, node_op.inputs, strict=True)
    )
    out = node_op.outputs[0]
    outs = (OutInfo(node_op.op_def.outputs[0].name, out.dtype, shape, HOST_MEMORY, mode),)
    node = PlanNode(node_op.type, node_op.name, node_op.op_def, node_op.node_attrs, ())
    return BuildContext(node, infos, outs, DEVICE)


def call(built: Any, inputs: list[np.ndarray], outs: list[np.ndarray]) -> Any:
    bound = built if isinstance(built, Bound) else Bound(built)
    pool = [*outs, *(np.full(s.shape, 1, s.dtype.np) for s in bound.scratch)]
    if bound.args is None:
        return bound.compute(*inputs, *pool)
    picked = [
        inputs[a.index] if isinstance(a, In) else a.value if isinstance(a, Lit) else pool[a.index] for a in bound.args
    ]
    return bound.compute(*picked)


def run(op: str, arrays: dict[str, np.ndarray], attrs: dict[str, Any], how: str) -> np.ndarray:
    """Run one kernel. ``how``: planned, fresh, unknown (fresh, shapes unknown), dynamic (axis not constant), strided,
    inplace:N.
    """
    static, constant_axis = how != "unknown", how != "dynamic"
    node = graph_op(op, arrays, attrs, static, constant_axis)
    kernel = KERNELS[op]
    inputs = list(arrays.values())
    known = graph_op(op, arrays, attrs, True, True).outputs[0]
    shape, dtype = known.shape.dims, known.dtype.np
    with np.errstate(all="ignore"):
        if how in ("fresh", "unknown"):
            built = kernel.build(context(node, arrays, FRESH, node.outputs[0].shape.dims, constant_axis))
            result = call(built, inputs, [])
            assert isinstance(result, np.ndarray)
        else:
            place = int(how.partition(":")[2]) if how.startswith("inplace") else None
            mode = PLANNED if place is None else inplace(place)
            built = kernel.build(context(node, arrays, mode, shape, constant_axis))
            if how == "strided":
                inputs = [_strided(a) for a in inputs]
            if place is None:
                result = np.full(shape, 1, dtype)
            else:
                result = inputs[place] = inputs[place].copy()
            call(built, inputs, [result])
    assert result.dtype == dtype
    assert result.shape == shape
    return result


def _strided(array: np.ndarray) -> np.ndarray:
    """The same elements, every other place of a larger array."""
    wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1]) if array.ndim else (), array.dtype)
    if not array.ndim:
        return array
    wide[..., ::2] = array
    return wide[..., ::2]


def sample_arrays(op: str, sample: dict[str, Any], types: dict[str, str], seed: str) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(zlib.crc32(seed.encode()))
    arrays = {}
    for name, spec in sample["inputs"].items():
        wanted = CASES[op]["args"][name]
        wanted = sample["types"].get(wanted, types.get(wanted, wanted))
        dtype = dtypes.as_dtype(spec.get("dtype", "int32" if wanted.startswith("Tidx") else wanted))
        if "value" in spec:
            value = np.array(spec["value"], object if dtype.name == "string" else None)
            if dtype.name == "string":
                value = np.array([str(v).encode() for v in value.flat], object).reshape(value.shape)
            elif dtype.kind in "iu":
                value = np.nan_to_num(value.astype(np.float64)) if value.size else value
                value = np.abs(value) if dtype.kind == "u" else value
            arrays[name] = value.astype(dtype.np)
            continue
        shape = spec["shape"]
        low, high = spec.get("low", -2.0), spec.get("high", 2.0)
        if dtype.is_bool:
            arrays[name] = np.asarray(rng.random(shape) < 0.5)
        elif dtype.is_integer:
            low = max(int(np.ceil(low)), 0 if dtype.kind == "u" else -100)
            arrays[name] = np.asarray(rng.integers(low, max(int(high), low), shape, endpoint=True)).astype(dtype.np)
        elif dtype.name == "string":
            arrays[name] = np.array(
                [b"ab"[i : i + 1] for i in rng.integers(0, 2, int(np.prod(shape)))], object
            ).reshape(shape)
        elif dtype.is_complex:
            arrays[name] = np.asarray(rng.uniform(low, high, shape) + 1j * rng.uniform(low, high, shape)).astype(
                dtype.np
            )
        else:
            arrays[name] = np.asarray(rng.uniform(low, high, shape)).astype(dtype.np)
    return arrays


def check(op: str, got: np.ndarray, want: Any, dtype: str) -> None:
    want = np.asarray(want)
    assert got.shape == want.shape
    if got.dtype.kind in "biuO":
        np.testing.assert_array_equal(got, want)
        return
    wide = np.complex128 if got.dtype.kind == "c" else np.float64
    tolerance = CASES[op]["tolerances"].get(dtype, {"rtol": 1e-6, "atol": 1e-6})
    np.testing.assert_allclose(got.astype(wide), want.astype(wide), **tolerance)


def combinations() -> Any:
    for op in SINGLE:
        types = CASES[op]["types"]
        for dtype in types.get("T", ("bool",)):
            yield op, dtype


@pytest.mark.parametrize(("op", "dtype"), list(combinations()))
@pytest.mark.sampled(8)
def test_every_sample_in_every_mode(op: str, dtype: str) -> None:
    case, kernel = CASES[op], KERNELS[op]
    reference = resolve(case["reference"])
    for index, sample in enumerate(case["samples"]):
        arrays = sample_arrays(op, sample, {"T": dtype}, f"{op}{dtype}{index}")
        attrs = dict(sample["attrs"])
        if "output_type" in attrs:
            attrs["output_type"] = dtypes.as_dtype(attrs["output_type"])
        with np.errstate(all="ignore"):
            want = reference(**arrays, **attrs)
        hows = ["planned", "fresh", "unknown"]
        if any(name in STEERING for name in arrays):
            hows.append("dynamic")
        if kernel.layout == "strided":
            hows.append("strided")
        names = list(arrays)
        for taken in kernel.inplace.values():
            hows += [f"inplace:{names.index(n)}" for n in taken if arrays[n].shape == np.shape(want)]
        for how in hows:
            try:
                check(op, run(op, arrays, attrs, how), want, dtype)
            except Exception as error:
                raise AssertionError(f"{op} of {dtype}, sample {index} {sample}, {how}: {error}") from error


@pytest.mark.parametrize("op", [op for op in SINGLE if CASES[op]["errors"]])
def test_error_samples_are_refused_when_the_graph_is_built(op: str) -> None:
    for index, sample in enumerate(CASES[op]["errors"]):
        dtype = "bool" if "T" not in CASES[op]["types"] else "float32"
        arrays = sample_arrays(op, sample, {"T": dtype}, f"{op}{index}")
        with pytest.raises(InvalidArgumentError, match=sample["match"]):
            graph_op(op, arrays, dict(sample["attrs"]), static=True, constant_axis=True)


def test_kernels_and_specs_cover_each_other() -> None:
    """Every op of specs/math.yaml, reduce.yaml and special.yaml has a cpu kernel, and no kernel is without an op."""
    declared = {
        op
        for op, build in OPS.items()
        if build().source.partition(":")[0].endswith(("math.yaml", "reduce.yaml", "special.yaml"))
    }
    assert declared == set(KERNELS)


def test_no_two_kernels_of_the_plugin_have_one_name() -> None:
    kernels = [k for module in register_kernels() for k in importlib.import_module(module.name).KERNELS]
    assert len({k.short_name for k in kernels}) == len(kernels)
    assert {k.device for k in kernels} == {"cpu"}


@pytest.mark.parametrize("op", [op for op in KERNELS if host_scalar(OPS[op](), dtypes.int32) is not None])
def test_scalar_expressions_agree_with_the_kernels(op: str) -> None:
    """Over Python scalars, wrapped around as the host does, an expression gives what the kernel gives at rank 0."""
    case, expression = CASES[op], host_scalar(OPS[op](), dtypes.int32)
    assert expression is not None
    names = list(case["args"])
    dtype = "int32" if "T" in case["types"] else "bool"
    values = [0, 1, -1, 7, -3, 2**31 - 1, -(2**31)] if dtype == "int32" else [False, True]
    for picked in itertools.product(values, repeat=len(names)):
        row = [bool(v) if case["args"][n] == "bool" else v for n, v in zip(names, picked, strict=True)]
        arrays = {n: np.array(v, bool if case["args"][n] == "bool" else dtype) for n, v in zip(names, row, strict=True)}
        want = run(op, arrays, {}, "planned")
        got = eval(expression.format(*(f"({v!r})" for v in row)))
        if want.dtype.kind == "i":
            got = (got + 2**31) % 2**32 - 2**31
        assert bool(got == want), (op, row)
        assert isinstance(got, bool) == (want.dtype.kind == "b")


def test_a_constant_of_one_number_is_handed_over_as_a_scalar() -> None:
    a, b = np.arange(6.0).reshape(2, 3), np.full((2, 1), 0.5)
    node = graph_op("Mul", {"x": a, "y": b}, {}, True, True)
    ctx = context(node, {"x": a, "y": b}, PLANNED, (2, 3), True)
    constant = dataclasses.replace(ctx.inputs[1], value=b)
    bound = KERNELS["Mul"].build(dataclasses.replace(ctx, inputs=(ctx.inputs[0], constant)))
    assert isinstance(bound, Bound)
    out = np.zeros((2, 3))
    call(bound, [a, b], [out])
    assert (out == a * b).all()
    mixed = dataclasses.replace(constant, value=np.array([[0.5], [0.25]]))
    assert KERNELS["Mul"].build(dataclasses.replace(ctx, inputs=(ctx.inputs[0], mixed))) is np.multiply


@pytest.mark.parametrize("likely", [0.5, 0.0, 1.0], ids=["changes", "never", "always"])
@pytest.mark.parametrize(
    "dtype", [np.float32, np.float64, np.int8, np.float16, np.complex64, np.complex128, np.bool_], ids=str
)
def test_a_choice_of_many_elements_takes_their_bits(dtype: Any, likely: float) -> None:
    """NaN and infinities stay where they are, also of what is not chosen; in place over the second operand too."""
    rng = np.random.default_rng(7)
    shape = (3, 7, 1001)
    a, b = (rng.normal(size=shape).astype(dtype) for _ in range(2))
    if a.dtype.kind in "fc":
        a[0, 0, ::7], b[0, 0, ::5] = np.nan, -np.inf
    mask = rng.random(shape) < likely
    with tf.Graph().as_default(), tf.Session() as sess:
        c, x, y = (tf.placeholder(kind, shape) for kind in (tf.bool, a.dtype, a.dtype))
        made = tf.where(c, x, tf.reverse(y, [0]))
        found = sess.run([tf.where(c, x, y), made], {c: mask, x: a, y: b})
        zero = tf.constant(a.dtype.type(0))
        spread = sess.run([tf.where_v2(c, x, zero), tf.where_v2(c, zero, x)], {c: mask, x: a})
        turned = sess.run(tf.where(tf.transpose(c), tf.transpose(x), tf.transpose(y)), {c: mask, x: a, y: b})
    np.testing.assert_array_equal(found[0], np.where(mask, a, b))
    np.testing.assert_array_equal(found[1], np.where(mask, a, b[::-1]))
    np.testing.assert_array_equal(spread[0], np.where(mask, a, a.dtype.type(0)))
    np.testing.assert_array_equal(spread[1], np.where(mask, a.dtype.type(0), a))
    np.testing.assert_array_equal(turned, np.where(mask, a, b).T)
