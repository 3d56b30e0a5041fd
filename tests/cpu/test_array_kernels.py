"""The array kernels, called as the planner calls them, against the element-by-element oracles of their specs.

Every sample of ``specs/array.yaml`` runs with constant and with computed host inputs, in every mode the kernel takes,
over contiguous and strided inputs and over every kind of dtype.
"""

from __future__ import annotations

from typing import Any

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import (
    FRESH,
    PLANNED,
    ArgInfo,
    Bound,
    BuildContext,
    Builder,
    In,
    KernelDef,
    Lit,
    OutInfo,
    dtypes,
    errors,
    view,
)
from graphdock.contracts.opdef import resolve
from graphdock.plugin.host import default_host
from graphdock_cpu.kernels import array, indexing, views
from graphdock_opgen.spec_cases import spec_cases

CASES = spec_cases("graphdock_std", default_host().ops.get)
KERNELS: dict[str, KernelDef] = {k.op: k for k in (*array.KERNELS, *views.KERNELS, *indexing.KERNELS)}
DTYPES = ("bool", "int8", "int32", "int64", "uint8", "float16", "bfloat16", "float32", "float64", "complex64", "string")
STRIDED = [op for op, k in KERNELS.items() if k.layout == "strided"]


def random_array(shape: tuple[int, ...], dtype: dtypes.DType, rng: np.random.Generator) -> np.ndarray:
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype.kind in "iu":
        return rng.integers(0, 100, shape).astype(dtype.np)
    if dtype.kind == "S":
        out = np.empty(shape, object)
        for i in np.ndindex(*shape):
            out[i] = b"s%d" % rng.integers(0, 100)
        return out
    values = rng.standard_normal(shape)
    if dtype.kind == "c":
        values = values + 1j * rng.standard_normal(shape)
    return np.asarray(values).astype(dtype.np)


def strided_copy(a: np.ndarray) -> np.ndarray:
    """The same elements with gaps between them and the axes laid out backwards."""
    store = np.zeros(tuple(2 * n for n in a.shape[::-1]), a.dtype)
    out = store[(*(slice(None, None, 2) for _ in a.shape), ...)].transpose()
    out[...] = a
    return out


class Case:
    """One sample of an op with its type variables bound."""

    def __init__(self, op: str, sample: dict[str, Any], dtype: str | None) -> None:
        self.opdef = default_host().ops.get(op)
        self.kernel = KERNELS[op]
        rng = np.random.default_rng(7)
        types: dict[str, dtypes.DType] = {}
        variables = {t.name: t for t in self.opdef.types}
        for arg in self.opdef.inputs:
            given = sample["inputs"].get(arg.name)
            for item in given if isinstance(given, (tuple, list)) else [given]:
                if item.get("dtype"):
                    types.setdefault(arg.dtype, dtypes.as_dtype(item["dtype"]))
        for name, value in (sample.get("types") or {}).items():
            types.setdefault(name, dtypes.as_dtype(value))
        self.polymorphic = next((n for n in ("T", "Tidx") if n in variables and n not in types), None)
        for name, var in variables.items():
            attr = sample["attrs"].get(name)
            fallback = dtype if name == self.polymorphic and name == "T" else var.default or "int32"
            types.setdefault(name, dtypes.as_dtype(attr or fallback or "float32"))
        self.types = types
        self.inputs: list[np.ndarray] = []
        self.names: list[str] = []
        self.named: dict[str, Any] = {}
        for arg in self.opdef.inputs:
            found = types.get(arg.dtype) or dtypes.as_dtype(arg.dtype)
            given = sample["inputs"][arg.name]
            many = arg.arity == "many"
            arrays = []
            for item in given if many else [given]:
                if item.get("value") is not None:
                    value = np.array(item["value"], found.np)
                else:
                    value = random_array(tuple(item["shape"]), found, rng)
                arrays.append(value)
                self.names.append(arg.name)
            self.inputs += arrays
            self.named[arg.name] = arrays if many else arrays[0]
        self.attrs = {a.name: a.default for a in self.opdef.attrs} | dict(sample["attrs"]) | types
        for arg in self.opdef.inputs:
            if arg.arity == "many":
                self.attrs[arg.count] = len(self.named[arg.name])
        self.host = [self.opdef.input(n).memory == "host" for n in self.names]  # type: ignore[union-attr]

    def expected(self) -> list[np.ndarray]:
        known = {a.name: self.attrs[a.name] for a in self.opdef.attrs} | self.types
        result = resolve(self.opdef.reference)(**self.named, **known)
        return list(result) if isinstance(result, (list, tuple)) else [result]

    def run(self, mode: str, constant: bool, static: bool, inputs: list[np.ndarray] | None = None) -> list[np.ndarray]:
        inputs = self.inputs if inputs is None else inputs
        expected = self.expected()
        builder = Builder("test")
        values = [builder.input(f"x{i}", dtypes.as_dtype(a.dtype), a.shape) for i, a in enumerate(inputs)]
        out_types = [self.types.get(o.dtype) or dtypes.as_dtype(o.dtype) for o in self.opdef.outputs]
        out_types = out_types * len(expected) if self.opdef.outputs[0].arity == "many" else out_types
        outs = [(t, e.shape) for t, e in zip(out_types, expected, strict=True)]
        builder.node(self.opdef, "n", values, self.attrs, outs)
        unknown = None if not static else ()
        infos = tuple(
            ArgInfo(
                name,
                value.dtype,
                a.shape if static else None if a.ndim else (),
                "host",
                a if host and constant else None,
                a.flags.c_contiguous,
            )
            for name, value, a, host in zip(self.names, values, inputs, self.host, strict=True)
        )
        source = self.names.index(self.kernel.views["y"].input) if mode == "view" else -1
        granted = {"planned": PLANNED, "fresh": FRESH, "view": view(source)}[mode]
        out_infos = tuple(
            OutInfo("y", t, e.shape if mode == "planned" or unknown == () else None, "host", granted)
            for t, e in zip(out_types, expected, strict=True)
        )
        node = builder.graph.nodes[-1]
        bound = self.kernel.build(BuildContext(node, infos, out_infos, None))  # type: ignore[arg-type]
        bound = bound if isinstance(bound, Bound) else Bound(bound)
        buffers = [poisoned(t, e.shape) for t, e in zip(out_types, expected, strict=True)]
        scratch = [poisoned(s.dtype, s.shape) for s in bound.scratch]
        planned = buffers if mode == "planned" else []
        if bound.args is None:
            args = [*inputs, *planned, *scratch]
        else:
            table = [*buffers, *scratch]
            args = [
                inputs[a.index] if isinstance(a, In) else a.value if isinstance(a, Lit) else table[a.index]
                for a in bound.args
            ]
        before = [a.copy() for a in inputs]
        result = bound.compute(*args)
        for a, b in zip(inputs, before, strict=True):
            same(a, b)
        if mode == "planned":
            return buffers
        if len(expected) == 1:
            result = (result,)
        assert isinstance(result, (tuple, list))
        for r, t in zip(result, out_types, strict=True):
            assert isinstance(r, np.ndarray) and r.dtype == t.np
            if mode == "fresh":
                assert r.flags.c_contiguous and not any(np.shares_memory(r, a) for a in inputs if r.size and a.size)
            elif r.size:
                assert np.shares_memory(r, inputs[source])
        return list(result)


def poisoned(dtype: dtypes.DType, shape: tuple[int, ...]) -> np.ndarray:
    """A buffer full of what nobody computes."""
    if dtype.kind == "S":
        return np.full(shape, b"poison", object)
    return np.full(shape, True if dtype.kind == "b" else 99, dtype.np)


def same(found: np.ndarray, expected: np.ndarray, rtol: float = 0.0) -> None:
    assert found.shape == expected.shape and found.dtype == expected.dtype
    if rtol and found.dtype.kind not in "biuO":
        wide = np.complex128 if found.dtype.kind == "c" else np.float64
        np.testing.assert_allclose(found.astype(wide), expected.astype(wide), rtol=rtol, atol=rtol)
    else:
        np.testing.assert_array_equal(found, expected)


def samples() -> list[Any]:
    found = []
    for op in sorted(KERNELS):
        allowed = CASES[op]["types"].get("T")
        for i, sample in enumerate(CASES[op]["samples"]):
            bound = "T" in (sample.get("types") or {}) or not allowed
            for dtype in [None] if bound else [d for d in DTYPES if d in allowed]:
                found.append(pytest.param(op, sample, dtype, id=f"{op}-{i}-{dtype}"))
    return found


def tolerance(case: Case) -> float:
    if "reduction" not in case.opdef.traits and case.opdef.name not in ("LinSpace",):
        return 0.0
    dtype = case.types.get("T")
    return {"float16": 2e-3, "bfloat16": 1e-2, "float32": 1e-6, "complex64": 1e-6}.get(
        dtype.name if dtype else "", 1e-12
    )


@pytest.mark.parametrize(("op", "sample", "dtype"), samples())
@pytest.mark.sampled(4)
def test_every_mode_agrees_with_the_oracle(op: str, sample: dict[str, Any], dtype: str | None) -> None:
    case = Case(op, sample, dtype)
    expected, rtol = case.expected(), tolerance(case)
    ways = [("fresh", False, False), ("fresh", True, False), ("fresh", True, True)]
    if "planned" in case.kernel.modes:
        ways += [("planned", True, True), ("planned", False, True), ("planned", False, False)]
    if "view" in case.kernel.modes:
        ways += [("view", True, True), ("view", False, True), ("view", False, False)]
    for mode, constant, static in ways:
        for found, want in zip(case.run(mode, constant, static), expected, strict=True):
            same(found, want, rtol)


@pytest.mark.parametrize("op", sorted(STRIDED))
def test_strided_inputs(op: str) -> None:
    for sample in CASES[op]["samples"]:
        allowed = CASES[op]["types"].get("T", ())
        dtype = next((d for d in ("float32", "bool", "int32") if d in allowed), None)
        case = Case(op, sample, dtype)
        inputs = [a if host else strided_copy(a) for a, host in zip(case.inputs, case.host, strict=True)]
        ways = ["fresh"] + [m for m in ("planned", "view") if m in case.kernel.modes]
        if case.kernel.views and case.kernel.views["y"].needs_contiguous:
            ways.remove("view")
        for mode in ways:
            for found, want in zip(case.run(mode, True, True, inputs), case.expected(), strict=True):
                same(found, want, tolerance(case))


def test_ranks_up_to_numpys_limit_of_old() -> None:
    shape = (2, 1) * 16
    x = np.arange(2**16, dtype=np.int32).reshape(shape)
    with tf.Graph().as_default(), tf.Session() as session:
        t = tf.placeholder(tf.int32, shape)
        outs = [
            tf.transpose(t),
            t[0, ..., ::-1],
            tf.concat([t, t], -1),
            tf.tile(t, [1] * 31 + [2]),
            tf.reshape(t, [-1]),
        ]
        found = session.run(outs, {t: x})
    wanted = [x.T, x[0, ..., ::-1], np.concatenate([x, x], -1), np.tile(x, [1] * 31 + [2]), x.ravel()]
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_rank_that_numpy_does_not_have_is_refused_clearly() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        t = tf.placeholder(tf.float32, [2])
        for deep in (tf.reshape(t, [1] * 70 + [2]), tf.expand_dims(tf.reshape(t, [1] * 63 + [2]), 0)):
            with pytest.raises(errors.UnimplementedError, match="at most (64|32) axes") as raised:
                session.run(deep, {t: [1.0, 2.0]})
            assert "test_array_kernels.py" in str(raised.value)


def test_gather_checks_every_index_before_it_writes() -> None:
    sample = {
        "inputs": {
            "params": {"shape": (4, 2)},
            "indices": {"value": [[0, 1], [7, 2]], "dtype": "int32"},
            "axis": {"value": 0},
        },
        "attrs": {},
        "types": {},
    }
    case = Case("Gather", sample, "float32")
    case.expected = lambda: [np.zeros((2, 2, 2), np.float32)]  # type: ignore[method-assign]
    with pytest.raises(errors.InvalidArgumentError, match=r"indices\[1\]\[0\] is 7.*axis 0 of size 4"):
        case.run("planned", True, True)
