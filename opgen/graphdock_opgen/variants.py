"""Variants of a sample: none of its elements, more than a kernel's block holds, other shapes that fit, and numbers at the ends.

A sample gives one shape that an op takes. Others are made by renaming its extents: those that are equal stay equal, and 1
stays 1, so
that what broadcasts does. Whether the op takes the result is for it to say. Tensors that a sample writes out keep their values.
"""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import numpy as np
from graphdock.dtypes import as_dtype

__all__ = ["LARGE", "RESIZED", "extents", "extreme", "resized", "takes_extremes"]

#: More elements than a block of a kernel has. It is prime to what blocks, vectors and tiles are multiples of.
LARGE = 4099
#: Kind of variant.
RESIZED = ("empty", "large", "other")


def extents(sample: Mapping[str, Any]) -> list[int]:
    """The extents of the tensors of which a sample says the shape alone, without 1 and 0, in the order in which they stand."""
    found: dict[int, None] = {}
    for tensor in _tensors(sample):
        found.update(dict.fromkeys(n for n in tensor.get("shape", ()) if n > 1))
    return list(found)


def resized(
    sample: Mapping[str, Any], kind: str, seed: int, steering: Collection[str] = ()
) -> Iterator[dict[str, Any]]:
    """Samples with other extents, of a kind of :data:`RESIZED`; best first, for the caller to take the first that the op takes.

    Args:
      steering: inputs in host memory, such as axes. Whole numbers that a sample gives for others may be places along a dim,
      which then
        doesn't get shorter.
    """
    known = extents(sample)
    bounded = any(map(_are_places, (t for n, t in sample["inputs"].items() if n not in steering)))
    if kind == "empty" and bounded:
        return
    if kind == "other":
        least = max(known, default=2) if bounded else 2
        for attempt in range(4):
            draw = random.Random(f"{seed} {attempt}")
            sizes = draw.sample(range(least, least + 2 + 2 * len(known)), len(known))
            if known:
                yield _renamed(sample, dict(zip(known, sizes, strict=True)))
        return
    for extent in known:
        if kind == "empty":
            yield _renamed(sample, {extent: 0})
            continue
        larger = _renamed(sample, {extent: max(_enough(sample, extent), extent)})
        if sum(math.prod(t.get("shape", ())) for t in _tensors(larger)) <= 8 * LARGE:
            yield larger


def _enough(sample: Mapping[str, Any], extent: int) -> int:
    """The size that this extent needs for a tensor of :data:`LARGE` elements or little more."""
    sizes = []
    for tensor in _tensors(sample):
        shape = list(tensor.get("shape", ()))
        if times := shape.count(extent):
            rest = max(math.prod(n for n in shape if n != extent), 1)
            sizes.append(LARGE if rest == times == 1 else int((LARGE / rest) ** (1 / times)) + 1)
    return min(sizes)


def _are_places(tensor: Any) -> bool:
    if not isinstance(tensor, Mapping):
        return False
    whole = np.asarray(tensor.get("value", 0.5)).dtype.kind in "iu" or "int" in str(tensor.get("dtype", ""))
    return whole and bool(np.size(tensor.get("value", ()))) or "high" in tensor and "shape" in tensor


def _tensors(sample: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for tensor in sample["inputs"].values():
        for item in tensor if isinstance(tensor, tuple) else (tensor,):
            if isinstance(item, Mapping):
                yield item


def _renamed(sample: Mapping[str, Any], names: Mapping[int, int]) -> dict[str, Any]:
    def one(tensor: Any) -> Any:
        if isinstance(tensor, tuple):
            return tuple(map(one, tensor))
        if tensor is None or "shape" not in tensor:
            return tensor
        return {**tensor, "shape": tuple(names.get(n, n) for n in tensor["shape"])}

    return {**sample, "inputs": {name: one(tensor) for name, tensor in sample["inputs"].items()}}


def takes_extremes(sample: Mapping[str, Any], arrays: Mapping[str, Any]) -> bool:
    """Return whether there are real floating numbers among the inputs that have no bounds."""
    return any(_is_unbounded(sample, n) and _is_real(a) and bool(a.size) for n, a in arrays.items())


def _is_unbounded(sample: Mapping[str, Any], name: str) -> bool:
    """Return whether a sample gives a shape for the input, and no bounds of its numbers: with these it says where the op is
    defined.
    """
    tensor = sample["inputs"].get(name)
    return isinstance(tensor, Mapping) and not {"low", "high", "value"} & tensor.keys()


def _is_real(array: np.ndarray[Any, Any]) -> bool:
    return as_dtype(array.dtype).is_floating


def extreme(sample: Mapping[str, Any], arrays: Mapping[str, Any], seed: int) -> dict[str, Any]:
    """The arrays of a sample, with NaN, infinities, -0, large and small numbers among the real ones, where they fall by chance."""
    rng = np.random.default_rng(seed)
    return {n: _extreme(a, rng) if _is_unbounded(sample, n) and _is_real(a) else a for n, a in arrays.items()}


def _extreme(array: np.ndarray[Any, Any], rng: np.random.Generator) -> np.ndarray[Any, Any]:
    ends = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1.0, -1.0, 2.0**10, -(2.0**10), 2.0**-14])
    chosen = rng.integers(0, 2 * len(ends), array.shape)
    if array.size:  # each NaN and infinity where there is room, whatever falls
        flat = chosen.reshape(-1)
        places = rng.permutation(array.size)[: len(ends)]
        flat[places] = np.arange(len(places))
    with np.errstate(all="ignore"):
        return np.where(chosen < len(ends), ends[np.minimum(chosen, len(ends) - 1)].astype(array.dtype), array)
