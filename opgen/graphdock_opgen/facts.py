"""Algebraic facts that an op declares, held against what it computes: a reference, or a kernel that makes no use of them.

    setting = Setting(opdef, compute, arrays, other, attrs)
    for problem in broken_facts(setting): ...       # "neutral: y = 0: ..."

Passes, patterns and compilers change programs by these facts, so that a fact that lies changes results. Each is checked as its
reader
takes it: ``neutral`` and ``identity`` leave out the op, so that the result must be the other input in every bit that counts;
``scalar`` and ``region`` are computed in another order of rounding, so that they agree within a tolerance.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from graphdock.contracts.opdef import OpDef

from graphdock_opgen.formula_values import NoValue, formula_values

__all__ = ["FACTS", "Setting", "broken_facts", "declared_facts", "spacing", "unlike"]

Array = np.ndarray[Any, Any]
Compute = Callable[[Mapping[str, Any]], Sequence[Array]]


@dataclass(frozen=True)
class Setting:
    """An op with inputs for it.

    Attributes:
      compute: arrays by name -> results of the op, with the attributes of this setting.
      arrays: the inputs: an array, a tuple of them for a list, or None. ``other``: others of the same shapes and dtypes.
      attrs: all attributes and type variables. ``tolerance``: ``rtol`` and ``atol``; None: some units in the last place.
    """

    opdef: OpDef
    compute: Compute
    arrays: Mapping[str, Any]
    other: Mapping[str, Any]
    attrs: Mapping[str, Any]
    tolerance: Mapping[str, float] | None = None

    def tensors(self) -> dict[str, Array]:
        """The inputs that are one array each and no handles, and that kernels get from the device."""
        return {
            a.name: self.arrays[a.name]
            for a in self.opdef.inputs
            if isinstance(self.arrays.get(a.name), np.ndarray) and a.dtype != "resource" and a.memory != "host"
        }


def spacing(dtype: Any) -> float:
    """The spacing of a dtype's numbers about one; 0 for those that are exact."""
    kind = np.dtype(dtype)
    if kind.name == "bfloat16":
        return 2.0**-7
    return float(np.finfo(kind).eps) if kind.kind in "fc" else 0.0


def unlike(got: Any, want: Any, exact: bool = True, tolerance: Mapping[str, float] | None = None) -> str | None:
    """Return how two results differ, or None. NaN equals NaN; where ``exact``, 0 is not -0."""
    got, want = np.asarray(got), np.asarray(want)
    if got.dtype != want.dtype or got.shape != want.shape:
        return f"{got.dtype}{list(got.shape)} for {want.dtype}{list(want.shape)}"
    if got.dtype.kind in "biuO":
        wrong = np.asarray(got != want)
    else:
        wide = np.complex128 if got.dtype.kind == "c" else np.float64
        a, b = got.astype(wide), want.astype(wide)
        if exact:
            same = (a == b) | ((a != a) & (b != b))
            if wide is np.float64:
                same &= (np.signbit(a) == np.signbit(b)) | (a != a)
        else:
            eps, told = spacing(got.dtype), tolerance or {}
            same = np.isclose(a, b, told.get("rtol", 64 * eps), told.get("atol", 8 * eps), equal_nan=True)
        wrong = ~same
    if not wrong.any():
        return None
    at = tuple(int(i) for i in np.argwhere(np.atleast_1d(wrong))[0][: got.ndim])
    return (
        f"{int(wrong.sum())} of {got.size} elements differ; at {list(at)} it is {want[at]!r}, the fact says {got[at]!r}"
    )


def declared_facts(opdef: OpDef) -> list[str]:
    """The names of the facts that the op declares, of those in :data:`FACTS`."""
    return [name for name, (declared, _) in FACTS.items() if declared(opdef)]


def broken_facts(setting: Setting, names: Sequence[str] | None = None) -> Iterator[str]:
    """Yield what is wrong with the facts, or those of these names: ``"identity: ..."``."""
    for name in declared_facts(setting.opdef):
        if names is None or name in names:
            with np.errstate(all="ignore"):
                yield from (f"{name}: {problem}" for problem in FACTS[name][1](setting))


# -- each fact


def _formula(at: Setting) -> Iterator[str]:
    want = at.compute(at.arrays)
    try:
        got = formula_values(at.opdef, {n: a for n, a in at.arrays.items() if a is not None}, at.attrs, want)
    except NoValue:
        return
    for arg, mine, right in zip(at.opdef.outputs, got, want, strict=True):
        problem = unlike(mine, right, False, at.tolerance)
        if problem:
            yield f"{arg.name}: {problem}"


def _identity(at: Setting) -> Iterator[str]:
    name = at.opdef.identity
    assert name is not None
    given = at.arrays.get(name)
    (given,) = given if isinstance(given, tuple) and len(given) == 1 else (given,)
    if not isinstance(given, np.ndarray):
        return
    result = np.asarray(at.compute(at.arrays)[0])
    said = at.opdef.input(name)
    always = said is not None and said.shape is not None and said.shape == at.opdef.outputs[0].shape
    if result.dtype == given.dtype and (always or result.shape == given.shape):
        problem = unlike(given, result)
        if problem:
            yield f"the result is not {name}: {problem}"


def _neutral(at: Setting) -> Iterator[str]:
    names = [a.name for a in at.opdef.inputs]
    for name, element in at.opdef.neutral.items():
        other = names[1 - names.index(name)]
        x, like = at.arrays[other], at.arrays[name]
        for neutral in (np.full_like(like, element), np.full(x.shape, element, like.dtype)):
            result = at.compute({**at.arrays, name: neutral})[0]
            if result.dtype == x.dtype and result.shape == x.shape:
                problem = unlike(x, result)
                if problem:
                    yield f"{name} = {element}: the result is not {other}: {problem}"
                    break


def _commutative(at: Setting) -> Iterator[str]:
    first, second, *_ = (a.name for a in at.opdef.inputs)
    swapped = {**at.arrays, first: at.arrays[second], second: at.arrays[first]}
    for mine, right in zip(at.compute(swapped), at.compute(at.arrays), strict=True):
        problem = unlike(mine, right, False, {"rtol": spacing(right.dtype), "atol": 0.0})
        if problem:
            yield f"({second}, {first}) for ({first}, {second}): {problem}"


def _elementwise(at: Setting) -> Iterator[str]:
    """An element of the result is told by the elements that stand there, and by nothing else."""
    tensors = at.tensors()
    if any(isinstance(a, tuple) for a in at.arrays.values()):
        return
    results = [np.asarray(r) for r in at.compute(at.arrays)]
    shape = np.broadcast_shapes(*(t.shape for t in tensors.values())) if tensors else ()
    for arg, result in zip(at.opdef.outputs, results, strict=True):
        if result.shape != shape:
            yield f"{arg.name} has shape {list(result.shape)}, the inputs broadcast to {list(shape)}"
            return
    whole = [n for n, t in tensors.items() if t.shape == shape]
    if not whole or any(t.shape not in (shape, ()) for t in tensors.values()) or not results or results[0].size < 2:
        return
    kept = np.arange(results[0].size).reshape(shape) % 3 != 1
    mixed = {n: np.where(kept, at.arrays[n], at.other[n]).astype(at.arrays[n].dtype) for n in whole}
    for mine, right in zip(at.compute({**at.arrays, **mixed}), results, strict=True):
        problem = unlike(np.asarray(mine)[kept], right[kept], False, at.tolerance)
        if problem:
            yield f"an element changes with others: {problem}"
            return
    turned = {n: np.ascontiguousarray(at.arrays[n].reshape(-1)[::-1]).reshape(shape) for n in whole}
    for mine, right in zip(at.compute({**at.arrays, **turned}), results, strict=True):
        problem = unlike(np.asarray(mine).reshape(-1)[::-1].reshape(shape), right, False, at.tolerance)
        if problem:
            yield f"an element changes with its place: {problem}"
            return


def _aliases(at: Setting) -> Iterator[str]:
    """The output holds elements of the input, each at most once."""
    by_name = dict(zip([a.name for a in at.opdef.outputs], range(len(at.opdef.outputs)), strict=True))
    for output, name in at.opdef.aliases.items():
        given = at.arrays.get(name)
        if not isinstance(given, np.ndarray) or given.dtype == bool or given.dtype.hasobject:
            continue
        marked = np.arange(1, given.size + 1).astype(given.dtype).reshape(given.shape)
        if len(np.unique(marked)) != given.size:
            continue  # the dtype has too few numbers
        results = at.compute({**at.arrays, name: marked})
        mine = results if len(at.opdef.outputs) == 1 else [results[by_name[output]]]
        elements = np.concatenate([np.asarray(r).reshape(-1) for r in mine]) if mine else marked[:0]
        foreign = np.setdiff1d(elements, marked)
        if foreign.size or elements.dtype != marked.dtype:
            yield f"{output} has {foreign[:1].tolist()}, which is not of {name}"
        elif len(np.unique(elements)) != elements.size:
            yield f"{output} has an element of {name} twice"


def _keeps_zero(at: Setting) -> Iterator[str]:
    tensors = at.tensors()
    zeros = {n: np.zeros_like(t) for n, t in tensors.items()}
    if len(tensors) != 1:
        return
    for arg, result in zip(at.opdef.outputs, at.compute({**at.arrays, **zeros}), strict=True):
        if np.any(np.asarray(result) != 0):
            yield f"{arg.name} of 0 is {np.asarray(result).reshape(-1)[0]!r}"


#: Fact -> whether an op declares it, and what finds how it is broken.
FACTS: Mapping[str, tuple[Callable[[OpDef], bool], Callable[[Setting], Iterator[str]]]] = MappingProxyType(
    {
        "scalar": (lambda d: d.scalar is not None, _formula),
        "region": (lambda d: d.region is not None and "random" not in d.effects, _formula),
        "identity": (lambda d: d.identity is not None, _identity),
        "neutral": (lambda d: bool(d.neutral) and len(d.inputs) == 2, _neutral),
        "commutative": (lambda d: "commutative" in d.traits and len(d.inputs) >= 2, _commutative),
        "elementwise": (lambda d: "elementwise" in d.traits, _elementwise),
        "aliases": (lambda d: bool(d.aliases), _aliases),
        "view": (lambda d: "view" in d.traits and not d.aliases, lambda at: iter(("it says no aliases",))),
        "keeps_zero": (lambda d: "keeps_zero" in d.traits, _keeps_zero),
    }
)
