"""Scalar expressions of kernels agree with their arrays: what steers a loop as a Python number is what NumPy would compute."""

from __future__ import annotations

import itertools
from typing import Any

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts.scalar_formula import host_scalar
from graphdock.dtypes import as_dtype
from graphdock.plugin.host import default_host

#: They take no value of their own or are steered by attributes that need care.
SPECIAL = frozenset({"Cast", "PlaceholderWithDefault", "StopGradient", "Identity"})


def kernels() -> list[str]:
    host = default_host()
    host.backend("cpu")
    return sorted(op for op in set(host.ops.names()) - SPECIAL if _is_steering(host.ops.get(op)))


def _is_steering(opdef: Any) -> bool:
    dtype = opdef.types[0].allow[0] if opdef.types and opdef.types[0].allow else "int32"
    inputs = {a.dtype for a in opdef.inputs}
    return inputs <= {"T", "bool"} and host_scalar(opdef, as_dtype(dtype)) is not None


def values(dtype: str) -> list[Any]:
    if dtype == "bool":
        return [False, True]
    info = np.iinfo(dtype)
    return [int(info.min), -7, -2, -1, 0, 1, 2, 5, int(info.max)]


def as_scalar(result: Any, given: list[Any]) -> Any:
    """``result`` computed again by a loop that keeps it as a Python number."""
    zero = tf.zeros([], result.dtype) if result.dtype.name != "bool" else tf.constant(False)
    return tf.while_loop(lambda k, v: k < 1, lambda k, v: (k + 1, tf.ops.apply_op(result.op.type, **given)), [0, zero])[
        1
    ]


@pytest.mark.parametrize("op", kernels())
def test_scalars_agree_with_arrays(op: str) -> None:
    opdef = default_host().ops.get(op)
    allowed = opdef.types[0].allow if opdef.types else ("bool",)
    for dtype in [d for d in ("int32", "int64", "bool") if d in allowed]:
        kinds = [dtype if a.dtype == "T" or not opdef.types else a.dtype for a in opdef.inputs]
        with tf.Graph().as_default(), tf.Session() as s:
            feeds = [tf.placeholder(as_dtype(k), []) for k in kinds]
            given = dict(zip([a.name for a in opdef.inputs], feeds, strict=True))
            array = tf.ops.apply_op(op, **given)
            scalar = as_scalar(array, given)
            for row in itertools.product(*(values(k) for k in kinds)):
                feed = {f: np.array(v, as_dtype(k).np) for f, v, k in zip(feeds, row, kinds, strict=True)}
                try:
                    want = s.run(array, feed)
                except tf.errors.GraphdockError as error:
                    with pytest.raises(type(error)):
                        s.run(scalar, feed)
                    continue
                got = s.run(scalar, feed)
                assert got == want and got.dtype == want.dtype, f"{op}{row} of {dtype}: {got}, as an array {want}"
            (loop,) = [n for n in s.plan(scalar).graph.nodes if n.verb == "loop"]
            assert not [n for n in loop.bodies[1].nodes if n.verb == "move"]


def test_there_are_such_kernels() -> None:
    assert {"Add", "Sub", "Mul", "Neg", "Less", "LogicalAnd", "Maximum"} <= set(kernels())
