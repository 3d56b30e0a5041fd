"""A ``gradient`` case of conformance: the gradient of one op against central differences in float64."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from graphdock.contracts.opdef import OpDef
from graphdock.gradients.backprop import gradients
from graphdock.gradients.indexed_slices import IndexedSlices
from graphdock.graph.graph import Graph
from graphdock.ops.convert import convert_to_tensor
from graphdock.testing.bench import Bench
from graphdock.testing.case import Case, ConformanceError
from graphdock.testing.numeric import central_differences, difference
from graphdock.testing.samples import bindings, make_arrays

__all__ = ["check_gradient", "in_float64"]


class _Jump(Exception):
    """The result changes its shape at this very point (Range at a whole number): it has no derivative there."""


def check_gradient(bench: Bench, case: Case, arrays: Mapping[str, Any] | None = None) -> None:
    """Raises ConformanceError, Missing, or what graphdock raises.

    Args:
      arrays: where the derivative is taken; default: the sample's.
    """
    if arrays is None:
        arrays = make_arrays(case.data, case.sample, case.types, f"{case.op} {case.index} gradient")
    options = {"eps": 1e-6, "rtol": 1e-3, "atol": 1e-5, **case.data["gradcheck_options"]}
    planned = _gradients(bench, case, arrays, "planned", options)
    fresh = _gradients(bench, case, arrays, "fresh", None)
    for label, value in planned.items():
        problem = difference(fresh[label], value, {"rtol": 1e-9, "atol": 1e-11})
        if problem:
            raise ConformanceError(f"gradient of {label} with unknown dims: {problem}")


def _gradients(
    bench: Bench, case: Case, arrays: Mapping[str, Any], how: str, numeric: Mapping[str, float] | None
) -> dict[str, np.ndarray[Any, Any]]:
    """The gradients of a weighted sum of the outputs, by input; compared with differences where ``numeric`` is given."""
    graph = Graph(bench.host)
    program = bench.build(graph, bench.host.ops.get(case.op), arrays, case.attrs, how, fed=case.data["gradcheck"])
    feed = program.feed(arrays)
    ys = [y for y in program.outputs if y.dtype.is_floating]
    if any(y.dtype.name != "float64" for y in ys):
        return {}  # a sample that narrows (Cast): differences of float32 say nothing
    session = bench.open(graph, "exact" if how == "planned" else "generic", wide=True)
    if how == "planned":
        bench.own_kernel(session, program, arrays, case)
    rng = np.random.default_rng(1)
    weights = [np.asarray(rng.uniform(0.5, 1.5, v.shape)) for v in session.run(ys, feed)]
    xs = [
        (name if i is None else f"{name}[{i}]", tensor)
        for name in case.data["gradcheck"]
        for i, tensor in _listed(program.inputs[name])
        if tensor.dtype.name == "float64"
    ]
    with graph.as_default():
        made = gradients(ys, [x for _, x in xs], [convert_to_tensor(w) for w in weights])
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
            return float(sum(np.sum(w * r) for w, r in zip(weights, results, strict=True)))

        try:
            right = central_differences(loss, [feed[tensor]], 0, numeric["eps"])
        except _Jump:
            continue
        problem = difference(result[label], right, numeric)
        if problem:
            raise ConformanceError(f"gradient of {label} is not the numeric one: {problem}")
    return result


def in_float64(opdef: OpDef, data: Mapping[str, Any], sample: Mapping[str, Any]) -> dict[str, str] | None:
    """The dtypes in which a sample's gradient can be checked, or None."""
    wanted = {data["args"][name] for name in data["gradcheck"]}
    for types in bindings(opdef, data, sample):
        if all(types.get(var, var) == "float64" for var in wanted):
            return types
    return None


def _listed(value: Any) -> list[tuple[int | None, Any]]:
    if isinstance(value, list):
        return list(enumerate(value))
    return [] if value is None else [(None, value)]
