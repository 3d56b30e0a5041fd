"""Reference of the host's structural ops, for conformance: written with plain loops and Python numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphdock.dtypes import as_dtype

__all__ = ["add_n", "cast", "check_numerics", "identity", "ones_like", "shape", "zeros_like"]


def identity(input: Any, **attrs: Any) -> Any:
    return np.array(input.tolist(), input.dtype).reshape(input.shape)


def check_numerics(tensor: Any, **attrs: Any) -> Any:
    return identity(tensor)


def add_n(inputs: Any, **attrs: Any) -> Any:
    dtype = inputs[0].dtype
    wide = object if dtype.kind in "iu" else np.complex128 if dtype.kind == "c" else np.float64
    total = np.zeros(inputs[0].shape, wide)
    for x in inputs:
        total = total + x.astype(wide)
    if wide is object:  # whole numbers begin again at the other end
        ends = np.iinfo(dtype)
        total = (total - int(ends.min)) % 2**ends.bits + int(ends.min)
    return np.asarray(total).astype(dtype)


def zeros_like(x: Any, **attrs: Any) -> Any:
    return np.array([b"" if x.dtype.hasobject else 0] * x.size, x.dtype).reshape(x.shape)


def ones_like(x: Any, **attrs: Any) -> Any:
    return np.array([1] * x.size, x.dtype).reshape(x.shape)


def shape(input: Any, out_type: Any = "int32", **attrs: Any) -> Any:
    return np.array([len(input)] + list(input.shape[1:]) if input.ndim else [], as_dtype(out_type).np)


def cast(x: Any, DstT: Any, **attrs: Any) -> Any:
    target = as_dtype(DstT).np
    if target.kind == "c":
        return np.array([complex(v) for v in x.ravel().tolist()], target).reshape(x.shape)
    if x.dtype.kind == "c" and target.kind != "b":
        x = np.array([v.real for v in x.ravel().tolist()]).reshape(x.shape)
    if target.kind == "b":
        return np.array([v != 0 for v in x.ravel().tolist()], bool).reshape(x.shape)
    if target.kind in "iu":
        bits = target.itemsize * 8
        values = [int(v) % (1 << bits) for v in x.ravel().tolist()]
        signed = [v - (1 << bits) if target.kind == "i" and v >> (bits - 1) else v for v in values]
        return np.array(signed, target).reshape(x.shape)
    return np.array([float(v) for v in x.ravel().tolist()], np.float64).astype(target).reshape(x.shape)
