"""The array ops in programs: inferred shapes, errors and gradients of every sample, over static and over unknown shapes."""

from __future__ import annotations

from typing import Any

import graphdock as tf
import numpy as np
import pytest
from graphdock import errors
from graphdock.shape import compatible
from graphdock_opgen.spec_cases import spec_cases

CASES = spec_cases("graphdock_std", tf.default_host().ops.get)
OPS = sorted(n for n in CASES if "reference.array" in (CASES[n]["reference"] or ""))


class Sample:
    """A sample of an op as arrays, and its op over constants or over placeholders."""

    def __init__(self, op: str, sample: dict[str, Any], floating: str = "float32") -> None:
        self.op, self.attrs = op, sample["attrs"]
        self.opdef = tf.default_host().ops.get(op)
        rng = np.random.default_rng(11)
        types: dict[str, str] = dict(sample.get("types") or {})
        for arg in self.opdef.inputs:
            given = sample["inputs"][arg.name]
            for item in given if isinstance(given, tuple) else [given]:
                if item.get("dtype"):
                    types.setdefault(arg.dtype, item["dtype"])
        self.arrays: dict[str, list[np.ndarray]] = {}
        for arg in self.opdef.inputs:
            variable = next((t for t in self.opdef.types if t.name == arg.dtype), None)
            name = types.get(arg.dtype) or (floating if arg.dtype == "T" and not _only_ints(variable) else None)
            name = name or (variable.default if variable else arg.dtype) or "int32"
            dtype = tf.as_dtype(name).np
            given = sample["inputs"][arg.name]
            items = given if arg.arity == "many" else (given,)
            self.arrays[arg.name] = [
                np.array(i["value"], dtype)
                if i.get("value") is not None
                else rng.standard_normal(i["shape"]).astype(dtype)
                for i in items
            ]
        self.hosts = {a.name for a in self.opdef.inputs if a.memory == "host"}
        self.feeds: dict[Any, np.ndarray] = {}
        self.tensors: dict[str, list[Any]] = {}

    def build(self, dims: str = "known", hosts: str = "constant") -> Any:
        """Apply the op. ``dims``: known, partial or unknown shapes of the inputs; ``hosts``: constant or fed."""
        arguments: dict[str, Any] = {}
        for arg in self.opdef.inputs:
            fed = hosts == "fed" if arg.name in self.hosts else True
            found = [self._input(a, fed, dims) for a in self.arrays[arg.name]]
            self.tensors[arg.name] = found
            arguments[arg.name] = found if arg.arity == "many" else found[0]
        return tf.ops.apply_op(self.op, **arguments, **self.attrs)

    def _input(self, array: np.ndarray, fed: bool, dims: str) -> Any:
        if not fed:
            return tf.constant(array)
        shape: Any = list(array.shape)
        if dims == "partial":
            shape = [None if i % 2 == 0 else d for i, d in enumerate(shape)]
        tensor = tf.placeholder(tf.as_dtype(array.dtype), None if dims == "unknown" and array.ndim else shape)
        self.feeds[tensor] = array
        return tensor


def _only_ints(variable: Any) -> bool:
    return variable is not None and bool(variable.allow) and "float32" not in variable.allow


def _flat(result: Any) -> list[Any]:
    return list(result) if isinstance(result, list) else [result]


def _samples(group: str) -> list[Any]:
    return [pytest.param(op, s, id=f"{op}-{i}") for op in OPS for i, s in enumerate(CASES[op][group])]


#: Ops whose result has a shape that depends on fed elements.
BY_CONTENT = ("DynamicPartition", "DynamicStitch", "Range", "Where")
WAYS = [("known", "constant"), ("known", "fed"), ("partial", "constant"), ("unknown", "constant"), ("unknown", "fed")]


@pytest.mark.parametrize(("op", "sample"), _samples("samples"))
@pytest.mark.sampled(2)
def test_inferred_shapes_agree_with_results(op: str, sample: dict[str, Any]) -> None:
    exact = None
    for dims, hosts in WAYS:
        with tf.Graph().as_default(), tf.Session() as session:
            case = Sample(op, sample)
            outputs = _flat(case.build(dims, hosts))
            results = session.run(outputs, case.feeds)
            exact = results if exact is None else exact
            for tensor, result, first in zip(outputs, results, exact, strict=True):
                inferred = tensor.shape.dims
                assert compatible(inferred, result.shape), (inferred, result.shape, dims, hosts)
                np.testing.assert_array_equal(result, first)
                if (dims, hosts) == ("known", "constant") and op not in BY_CONTENT:
                    assert inferred == result.shape
                if dims == "unknown" and hosts == "constant" and op in ("Tile", "Fill", "BroadcastTo"):
                    assert inferred is not None


@pytest.mark.parametrize(("op", "sample"), _samples("errors"))
def test_errors(op: str, sample: dict[str, Any]) -> None:
    for dims, hosts in WAYS:
        with tf.Graph().as_default(), tf.Session() as session:
            case = Sample(op, sample)
            with pytest.raises(errors.InvalidArgumentError) as raised:
                outputs = case.build(dims, hosts)
                session.run(outputs, case.feeds)
            if (dims, hosts) == ("known", "constant"):
                assert raised.match(sample["match"])


def _gradchecks() -> list[Any]:
    found = []
    for op in OPS:
        for i, sample in enumerate(CASES[op]["samples"]):
            if op == "Range" and "float64" not in str(sample):
                continue
            for way in WAYS if op != "Range" else [w for w in WAYS if w[1] == "fed"]:
                if CASES[op]["gradcheck"]:
                    found.append(pytest.param(op, sample, way, id=f"{op}-{i}-{'-'.join(way)}"))
    return found


@pytest.mark.parametrize(("op", "sample", "way"), _gradchecks())
@pytest.mark.slow
@pytest.mark.sampled(4)
def test_gradients_against_central_differences(op: str, sample: dict[str, Any], way: tuple[str, str]) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        case = Sample(op, sample, "float64")
        outputs = _flat(case.build(*way))
        rng = np.random.default_rng(3)
        checked = [
            t for name in CASES[op]["gradcheck"] for t in case.tensors[name] if t.dtype.is_floating and t in case.feeds
        ]
        assert checked
        weights = [rng.standard_normal(r.shape) for r in session.run(outputs, case.feeds)]
        seeds = [tf.constant(w) for w in weights]
        grads = tf.gradients(outputs, checked, grad_ys=seeds)
        grads = [g if g is None else tf.convert_to_tensor(g) for g in grads]

        def loss() -> float:
            return sum(float(np.sum(w * r)) for w, r in zip(weights, session.run(outputs, case.feeds), strict=True))

        for tensor, grad in zip(checked, grads, strict=True):
            x = case.feeds[tensor]
            found = np.zeros(x.shape) if grad is None else session.run(grad, case.feeds)
            expected = np.zeros(x.shape)
            for index in np.ndindex(*x.shape):
                kept = x[index]
                x[index] = kept + 1e-3
                above = loss()
                x[index] = kept - 1e-3
                below = loss()
                x[index] = kept
                expected[index] = (above - below) / 2e-3
            assert found.shape == x.shape
            if grad is not None:
                assert compatible(grad.shape.dims, x.shape)
            np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)
