"""From the samples of an op's spec to arrays: which dtypes a sample runs with, and what its tensors hold.

The data is plain (see :mod:`graphdock_opgen.spec_cases`). The same sample, dtypes and round give the same
arrays in every process.
"""

from __future__ import annotations

import itertools
import math
import zlib
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from graphdock.contracts.opdef import OpDef
from graphdock.dtypes import DType, as_dtype

__all__ = ["Bindings", "bindings", "make_arrays", "random_array"]

#: Type variable -> dtype name.
Bindings = Mapping[str, str]

_PREFERRED = ("float32", "int32")


def bindings(opdef: OpDef, case: Mapping[str, Any], sample: Mapping[str, Any]) -> Iterator[dict[str, str]]:
    """The dtypes that a sample runs with: each free type variable takes each of its dtypes once, the others their usual one."""
    types: Mapping[str, tuple[str, ...]] = case["types"]
    fixed = {var: names for var, names in sample["types"].items() if isinstance(names, str)}
    for name, tensor in sample["inputs"].items():
        var = case["args"].get(name)
        for item in tensor if isinstance(tensor, tuple) else (tensor,):
            if var in types and isinstance(item, Mapping) and "dtype" in item:
                fixed.setdefault(var, item["dtype"])
    for var in types:
        if var in sample["attrs"]:
            given = sample["attrs"][var]
            first = given if not isinstance(given, (list, tuple)) else given[0] if given else _PREFERRED[0]  # of a list
            fixed.setdefault(var, str(as_dtype(first)))
    defaults = {t.name: t.default for t in opdef.types}
    base = {var: fixed.get(var) or _usual(types[var], defaults.get(var)) for var in types}
    seen: set[tuple[str, ...]] = set()
    for combination in itertools.chain(
        [base], ({**base, var: name} for var in types if var not in fixed for name in types[var])
    ):
        key = tuple(combination.values())
        if key not in seen:
            seen.add(key)
            yield combination


def _usual(allowed: tuple[str, ...], default: str | None) -> str:
    for name in (default, *_PREFERRED):
        if name in allowed:
            assert name is not None
            return name
    return allowed[0] if allowed else "float32"


def make_arrays(case: Mapping[str, Any], sample: Mapping[str, Any], types: Bindings, seed: str) -> dict[str, Any]:
    """Input name -> array, tuple of arrays for a list argument, or None for an absent optional.

    A resource input gets the array that its variable is to hold.
    """
    rng = np.random.default_rng(zlib.crc32(seed.encode()))
    arrays: dict[str, Any] = {}
    for name, tensor in sample["inputs"].items():
        wanted = case["args"][name]
        if wanted == "resource":
            wanted = next(iter(types), "float32")
        wanted = types.get(wanted, wanted)
        if tensor is None:
            arrays[name] = None
        elif isinstance(tensor, tuple):
            arrays[name] = tuple(_array(item, wanted, rng) for item in tensor)
        else:
            arrays[name] = _array(tensor, wanted, rng)
    return arrays


def _array(tensor: Mapping[str, Any], wanted: str, rng: np.random.Generator) -> np.ndarray[Any, Any]:
    dtype = as_dtype(tensor.get("dtype", wanted))
    if "value" not in tensor:
        return random_array(dtype, tensor["shape"], rng, tensor.get("low"), tensor.get("high"))
    value = np.array(tensor["value"], object if dtype.kind == "S" else None)
    if dtype.kind == "S":
        out = np.empty(value.shape, object)
        for index, item in np.ndenumerate(value):
            out[index] = item if isinstance(item, bytes) else str(item).encode()
        return out
    if dtype.kind in "iu" and value.dtype.kind == "f":
        value = np.nan_to_num(value, posinf=100.0, neginf=-100.0)
    if dtype.kind == "u" and value.dtype.kind in "if":
        value = np.abs(value)
    return value.astype(dtype.np)


def random_array(
    dtype: DType, shape: tuple[int, ...], rng: np.random.Generator, low: float | None = None, high: float | None = None
) -> np.ndarray[Any, Any]:
    """Elements evenly distributed over [low, high]; default: -2 to 2, from 0 for unsigned integers."""
    least, most = -2.0 if low is None else float(low), 2.0 if high is None else float(high)
    if dtype.kind == "b":
        return np.asarray(rng.random(shape) < 0.5)
    if dtype.kind in "iu":
        least = max(math.ceil(least), int(dtype.min), 0 if dtype.kind == "u" else -100)
        most = min(max(int(most), int(least)), int(dtype.max))
        return np.asarray(rng.integers(int(least), most, shape, endpoint=True)).astype(dtype.np)
    if dtype.kind == "S":
        out = np.empty(shape, object)
        for index in np.ndindex(*shape):
            out[index] = b"s%d" % rng.integers(0, 100)
        return out
    values = rng.uniform(least, most, shape)
    if dtype.kind == "c":
        values = values + 1j * rng.uniform(least, most, shape)
    return np.asarray(values).astype(dtype.np)
