"""A ``gradient`` case of conformance: the gradient of one op against central differences in float64 and complex128.

The gradient of a real number L by a complex x is dL/dRe x + i dL/dIm x, so that a step against it makes L smaller. What
arrives at a complex y as w makes L the real part of the sum of conj(w) y.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from graphdock.contracts.opdef import OpDef
from graphdock.dtypes import as_dtype
from graphdock.gradients.backprop import gradients
from graphdock.gradients.indexed_slices import IndexedSlices
from graphdock.graph.graph import Graph
from graphdock.ops.convert import convert_to_tensor
from graphdock_opgen.samples import bindings, make_arrays

from graphdock_testing.bench import Bench
from graphdock_testing.case import Case, ConformanceError
from graphdock_testing.numeric import central_differences, difference

__all__ = ["check_gradient", "wide_types"]


_WIDE = frozenset({"float64", "complex128"})


class _Jump(Exception):
    """The result changes its shape at this very point (Range at a whole number): it has no derivative there."""


#: Steps and tolerances where a result is float32 though the input is float64, as of resized images.
_OF_FLOAT32 = {"eps": 1e-2, "rtol": 2e-2, "atol": 2e-2}


def check_gradient(bench: Bench, case: Case, arrays: Mapping[str, Any] | None = None) -> None:
    """Raises ConformanceError, Missing, or what graphdock raises.

    Args:
      arrays: where the derivative is taken; default: the sample's.
    """
    if arrays is None:
        arrays = make_arrays(case.data, case.sample, case.types, f"{case.op} {case.index} gradient")
    options = {"eps": 1e-6, "rtol": 1e-3, "atol": 1e-5, **case.data["gradcheck_options"]}
    planned = _gradients(bench, case, arrays, "planned", options)
    if bench.brief:
        return
    for how, unknown in (("fresh", "dims"), ("unranked", "ranks")):
        again = _gradients(bench, case, arrays, how, None)
        for label, value in planned.items():
            problem = difference(again[label], value, {"rtol": 1e-9, "atol": 1e-11})
            if problem:
                raise ConformanceError(f"gradient of {label} with unknown {unknown}: {problem}")


def _gradients(
    bench: Bench, case: Case, arrays: Mapping[str, Any], how: str, numeric: Mapping[str, float] | None
) -> dict[str, np.ndarray[Any, Any]]:
    """The gradients of a weighted sum of the outputs, by input; compared with differences where ``numeric`` is given."""
    graph = Graph(bench.host)
    program = bench.build(graph, bench.host.ops.get(case.op), arrays, case.attrs, how, fed=case.data["gradcheck"])
    feed = program.feed(arrays)
    ys = [y for y in program.outputs if y.dtype.is_differentiable]
    narrow = {y.dtype.name for y in ys} - _WIDE
    if narrow - {"float32"}:
        return {}  # a sample that narrows (Cast): differences of so few digits say nothing
    if narrow and numeric is not None:
        numeric = _OF_FLOAT32
    session = bench.open(graph, "exact" if how == "planned" else "generic", wide=True)
    if how == "planned":
        bench.own_kernel(session, program, arrays, case)
    rng = np.random.default_rng(1)
    weights = [_weights(rng, v) for v in session.run(ys, feed)]
    xs = [
        (name if i is None else f"{name}[{i}]", tensor)
        for name in case.data["gradcheck"]
        for i, tensor in _listed(program.inputs.get(name, []))  # a sample may have no optional one
        if tensor.dtype.name in _WIDE
    ]
    with graph.as_default():
        made = gradients(
            ys, [x for _, x in xs], [convert_to_tensor(w, y.dtype) for w, y in zip(weights, ys, strict=True)]
        )
        made = [convert_to_tensor(g) if isinstance(g, IndexedSlices) else g for g in made]
    values = iter(session.run([g for g in made if g is not None], feed))
    result: dict[str, np.ndarray[Any, Any]] = {}
    for (label, tensor), g in zip(xs, made, strict=True):
        result[label] = np.asarray(next(values)) if g is not None else np.zeros_like(feed[tensor])
        if numeric is None:
            continue

        def loss(x: Any, tensor: Any = tensor) -> float:
            results = session.run(ys, {**feed, tensor: x})
            if any(r.shape != w.shape for w, r in zip(weights, results, strict=True)):
                raise _Jump
            return float(sum(np.sum(np.conj(w) * r).real for w, r in zip(weights, results, strict=True)))

        try:
            right = _differences(loss, feed[tensor], numeric["eps"])
        except _Jump:
            continue
        problem = difference(result[label], right, numeric)
        if problem:
            raise ConformanceError(f"gradient of {label} is not the numeric one: {problem}")
    return result


def wide_types(opdef: OpDef, data: Mapping[str, Any], sample: Mapping[str, Any]) -> list[dict[str, str]]:
    """The dtypes in which a sample's gradient can be checked: float64, complex128, both or none."""
    wanted = {data["args"][name] for name in data["gradcheck"] if sample["inputs"].get(name) is not None}
    found: dict[frozenset[str], dict[str, str]] = {}
    for types in bindings(opdef, data, sample):
        names = frozenset(name for var in wanted if as_dtype(name := types.get(var, var)).is_differentiable)
        if names <= _WIDE and len(names) == 1:
            found.setdefault(names, types)
    return list(found.values())


def _weights(rng: np.random.Generator, value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    weights = np.asarray(rng.uniform(0.5, 1.5, value.shape))
    return weights + 1j * rng.uniform(0.5, 1.5, value.shape) if value.dtype.kind == "c" else weights


def _differences(loss: Callable[[Any], float], x: np.ndarray[Any, Any], eps: float) -> np.ndarray[Any, Any]:
    """Central differences by the real and the imaginary part of each element."""
    if x.dtype.kind != "c":
        return central_differences(loss, [x], 0, eps)
    real, imag = np.array(x.real), np.array(x.imag)
    return np.asarray(
        central_differences(lambda re: loss(re + 1j * imag), [real], 0, eps)
        + 1j * central_differences(lambda im: loss(real + 1j * im), [imag], 0, eps)
    )


def _listed(value: Any) -> list[tuple[int | None, Any]]:
    if isinstance(value, list):
        return list(enumerate(value))
    return [] if value is None else [(None, value)]
