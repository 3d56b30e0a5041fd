"""Edges of a sample: its arrays with dims of size 0 and 1, without a rank, and with numbers at the ends of their dtypes.

A sample gives one shape that an op takes, and numbers between -2 and 2. What breaks kernels lies elsewhere: a batch of nothing,
an image one pixel high, a partner that broadcasts, a scalar, an integer without a negative, a float beyond which is infinity.
:func:`sizes` and :func:`ends` draw these from any sample, so that no spec writes them down. Whether an op takes what they give
is for it to say.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import ml_dtypes
import numpy as np
from graphdock.contracts.opdef import OpDef

__all__ = ["Arrays", "ends", "ends_of", "free", "sizes"]

#: Input name -> array, tuple of arrays for a list, or None for an absent optional.
Arrays = Mapping[str, Any]
#: Input name, and index in a list or None.
_Place = tuple[str, int | None]


def sizes(opdef: OpDef, arrays: Arrays) -> Iterator[tuple[str, Arrays]]:
    """Names of changes, and the arrays with them: each shape once.

    Dims get the size 0 or 1 where they have one extent, one by one, in all inputs at an axis counted from either end, and all
    together; inputs lose their rank, one by one and together. Inputs in host memory, such as axes, stay as they are.
    """
    places = dict(_places(opdef, arrays))
    seen = {_shapes(places)}
    for what, made in _resized(places):
        shapes = _shapes(places | made)
        if shapes not in seen:
            seen.add(shapes)
            yield what, _changed(arrays, made)


def _resized(places: Mapping[_Place, Any]) -> Iterator[tuple[str, dict[_Place, Any]]]:
    extents = dict.fromkeys(n for a in places.values() for n in a.shape)
    for size in (0, 1):
        for extent in extents:
            yield (
                f"each {extent} is {size}",
                {p: _sized(a, [i for i, n in enumerate(a.shape) if n == extent], size) for p, a in places.items()},
            )
        for place, a in places.items():
            for axis in range(a.ndim):
                yield f"dim {axis} of {_name(place)} is {size}", {place: _sized(a, [axis], size)}
        for axis in (0, 1, 2, -1, -2, -3):
            yield (
                f"dim {axis} of all is {size}",
                {p: _sized(a, [axis], size) for p, a in places.items() if -a.ndim <= axis < a.ndim},
            )
        yield f"all dims are {size}", {p: _sized(a, range(a.ndim), size) for p, a in places.items()}
    scalars = {p: np.array(a.reshape(-1)[0], a.dtype) for p, a in places.items() if a.size}
    for place, a in scalars.items():
        yield f"rank 0 of {_name(place)}", {place: a}
    yield "rank 0 of all", scalars


def free(sample: Mapping[str, Any]) -> set[str]:
    """The inputs of which a sample gives the shape alone; with bounds or written numbers it says where the op is defined."""
    inputs = {n: t if isinstance(t, tuple) else (t,) for n, t in sample["inputs"].items()}
    return {n for n, ts in inputs.items() if not any(t is None or {"low", "high", "value"} & t.keys() for t in ts)}


def ends(opdef: OpDef, arrays: Arrays, names: Collection[str], seed: int) -> Iterator[tuple[str, Arrays]]:
    """Names of changes, and the arrays with numbers at the ends of their dtypes: all of them, some, and some of one input alone.

    Args:
      names: of the inputs that take any number. Complex ones stay as they are: what they are at infinity is nobody's rule.
    """
    places = {p: a for p, a in _places(opdef, arrays) if p[0] in names and a.size and a.dtype.kind not in "Oc"}
    for share in (1.0, 0.3):
        rng = np.random.default_rng([seed, int(10 * share)])
        if places:
            yield f"{share:.0%} at the ends", _changed(arrays, {p: _mixed(a, rng, share) for p, a in places.items()})
    for number, (place, a) in enumerate(places.items() if len(places) > 1 else ()):
        rng = np.random.default_rng([seed, number])
        yield f"{_name(place)} at the ends", _changed(arrays, {place: _mixed(a, rng, 0.5)})


def ends_of(dtype: Any) -> np.ndarray[Any, Any]:
    """The numbers at which a dtype ends or changes: NaN, infinities, zeros, the largest, the smallest, what is next to one."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return np.array([False, True])
    if dtype.kind in "iu":
        whole = np.iinfo(dtype)
        near = [-1] if dtype.kind == "i" else []
        return np.array([whole.min, whole.min + 1, whole.max, whole.max - 1, whole.max // 2 + 1, 0, 1, 2, *near], dtype)
    info = ml_dtypes.finfo(dtype)
    some = [info.max, info.tiny, info.smallest_subnormal, np.inf, 0.0, 1.0, 0.5, 1.0 + float(info.eps), 1e30, 1e-30]
    with np.errstate(all="ignore"):
        return np.array([np.nan, *(s * float(v) for v in some for s in (1.0, -1.0))]).astype(dtype)


def _places(opdef: OpDef, arrays: Arrays) -> Iterator[tuple[_Place, Any]]:
    """Each array that does not steer the op from host memory."""
    for arg in opdef.inputs:
        value = arrays.get(arg.name)
        if value is not None and arg.memory != "host":
            many = isinstance(value, tuple)
            yield from (((arg.name, i if many else None), a) for i, a in enumerate(value if many else (value,)))


def _changed(arrays: Arrays, made: Mapping[_Place, Any]) -> Arrays:
    changed = dict(arrays)
    for (name, index), a in made.items():
        old = changed[name]
        changed[name] = a if index is None else (*old[:index], a, *old[index + 1 :])
    return changed


def _sized(array: np.ndarray[Any, Any], axes: Iterable[int], size: int) -> np.ndarray[Any, Any]:
    """The array with so many of its first entries along each of the axes, or none where there is none."""
    for axis in axes:
        array = np.take(array, range(min(size, array.shape[axis])), axis)
    return array.copy()


def _mixed(array: np.ndarray[Any, Any], rng: np.random.Generator, share: float) -> np.ndarray[Any, Any]:
    known = ends_of(array.dtype)
    return np.asarray(np.where(rng.random(array.shape) < share, known[rng.integers(0, len(known), array.shape)], array))


def _shapes(places: Mapping[_Place, Any]) -> tuple[Any, ...]:
    return tuple((p, a.shape) for p, a in places.items())


def _name(place: _Place) -> str:
    return place[0] if place[1] is None else f"{place[0]}[{place[1]}]"
