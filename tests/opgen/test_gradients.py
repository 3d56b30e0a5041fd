"""Generated gradient functions, run over numbers in place of tensors."""

from __future__ import annotations

import math
import types
from pathlib import Path
from typing import Any

import pytest
from graphdock.errors import GradientError
from graphdock_opgen.gradients import decomposition_function, gradient_function
from graphdock_opgen.library import Library, load_library

SPEC = """\
graphdock_opdef: 1
namespace: toy
ops:
- name: Scale
  summary: Scaled product.
  types: {T: {allow: floats}}
  attrs: [{name: twice, type: bool, default: false}, {name: p, type: int, default: 2}]
  inputs: [{name: x, dtype: T}, {name: lambda_, dtype: T}]
  outputs: [{name: y, dtype: T}]
  gradient:
    let: {e: "exp(x)", s: "2.0 if twice else 1.0", dead: "exp(e)"}
    inputs:
      x: "s * g.y * e * lambda_ ** p"
      lambda_: "s * g.y * e * p * lambda_ ** (p - 1)"
- name: Both
  summary: Two outputs, two inputs that share a gradient.
  inputs: [{name: a, dtype: float64}, {name: b, dtype: float64}, {name: n, dtype: int32}]
  outputs: [{name: sum, dtype: float64}, {name: log, dtype: float64}]
  gradient: {inputs: {"a, b": "g.sum + g.log / sum"}}
- name: Cat
  summary: A list, an optional and one more.
  attrs: [{name: N, type: int, min: 1}]
  inputs:
  - {name: xs, dtype: float64, arity: {many: {count: N}}}
  - {name: bias, dtype: float64, arity: optional}
  - {name: scale, dtype: float64}
  outputs: [{name: y, dtype: float64}]
  gradient:
    inputs:
      xs: {fn: "toy_pkg.support:xs_grad"}
      bias: "g.y"
      scale: "g.y + (bias if present(bias) else 0.0) + len(xs)"
- name: Fan
  summary: A list of outputs between two others.
  attrs: [{name: N, type: int}]
  inputs: [{name: x, dtype: float64}]
  outputs:
  - {name: first, dtype: float64}
  - {name: ys, dtype: float64, arity: {many: {count: N}}}
  - {name: last, dtype: float64}
  gradient: {inputs: {x: "g.first + 10.0 * g.ys[0] + 100.0 * g.ys[1] + 1000.0 * g.last"}}
- name: Tan
  summary: By an op of its own.
  attrs: [{name: k, type: int}, {name: unit, type: string, default: rad}]
  inputs: [{name: x, dtype: float64}, {name: w, dtype: float64}]
  outputs: [{name: y, dtype: float64}]
  gradient: {inputs: {"x, w": {op: TanGrad}}}
- name: TanGrad
  summary: Its gradient.
  attrs: [{name: k, type: int}]
  inputs: [{name: y, dtype: float64}, {name: grad_y, dtype: float64}, {name: x_shape, dtype: int32}]
  outputs: [{name: dx, dtype: float64}, {name: dw, dtype: float64}]
  gradient: {inputs: {y: {todo: second order}, grad_y: none}}
- name: Half
  summary: One half is still to be written.
  inputs: [{name: a, dtype: float64}, {name: b, dtype: float64}]
  outputs: [{name: y, dtype: float64}]
  gradient: {inputs: {a: "g.y", b: {todo: later}}}
- name: Cmp
  summary: Comparisons of tensors.
  inputs: [{name: a, dtype: float64}]
  outputs: [{name: y, dtype: float64}]
  gradient: {inputs: {a: "where(a == 2.0, g.y, zeros_like(a))"}}
  decompose:
  - "d = where(a > 1.0, a, -a)"
  - "y = d * 2.0"
"""


class FakeOp:
    """What a generated function asks of an operation."""

    def __init__(self, inputs: dict[str, Any], outputs: dict[str, Any], **attrs: Any) -> None:
        self._in, self._out, self._attrs = inputs, outputs, attrs
        self.inputs, self.outputs = list(inputs.values()), list(outputs.values())
        self.read: list[str] = []

    def arg(self, name: str) -> Any:
        self.read.append(name)
        return self._in[name]

    def result(self, name: str) -> Any:
        return self._out[name]

    def get_attr(self, name: str) -> Any:
        self.read.append(name)
        return self._attrs[name]


@pytest.fixture
def library(make) -> Library:
    found = load_library(make("toy_pkg", toy=SPEC))
    assert found.errors == ()
    return found


def compile_(function: Any, **names: Any) -> Any:
    source = f"def {function.name}({function.params}):\n" + "".join(f"    {line}\n" for line in function.body)
    calls: list[Any] = []
    tf = types.SimpleNamespace(exp=math.exp, where=lambda c, a, b: a if c else b, equal=lambda a, b: a == b)
    ops = types.SimpleNamespace(
        zeros_like=lambda x: 0.0,
        shape=lambda x: ("shape", x),
        apply_op=lambda name, **k: calls.append((name, k)) or (1.5, 2.5),
    )
    space = {"_tf": tf, "_ops": ops, "_todo": lambda *a: GradientError(" ".join(a)), **names}
    exec(source, space)
    return space[function.name], calls, source


def gradient(library: Library, name: str, **names: Any) -> Any:
    return compile_(gradient_function(library.all_ops[f"toy.{name}"], library), **names)


def central(f: Any, *at: float, index: int, h: float = 1e-6) -> float:
    low, high = list(at), list(at)
    low[index] -= h
    high[index] += h
    return (f(*high) - f(*low)) / (2 * h)


@pytest.mark.parametrize("twice", [False, True])
def test_a_formula_is_the_derivative(library: Library, twice: bool) -> None:
    f, _, source = gradient(library, "Scale")
    forward = lambda x, w: (2.0 if twice else 1.0) * math.exp(x) * w**2  # noqa: E731
    op = FakeOp({"x": 0.3, "lambda_": 1.7}, {"y": forward(0.3, 1.7)}, twice=twice, p=2, T="float64")
    dx, dw = f(op, 1.0)
    assert dx == pytest.approx(central(forward, 0.3, 1.7, index=0), rel=1e-6)
    assert dw == pytest.approx(central(forward, 0.3, 1.7, index=1), rel=1e-6)
    assert "dead" not in source and "op.outputs" not in source and op.read == ["twice", "p"]


def test_a_missing_output_gradient_counts_as_zero(library: Library) -> None:
    f, _, _ = gradient(library, "Both")
    op = FakeOp({"a": 1.0, "b": 3.0, "n": 2}, {"sum": 4.0, "log": math.log(4.0)})
    assert f(op, 1.0, 2.0) == [1.5, 1.5, None]
    assert f(op, None, 2.0) == [0.5, 0.5, None]
    assert f(op, 1.0, None) == [1.0, 1.0, None]


def test_list_and_optional_inputs_are_spliced(library: Library) -> None:
    support = types.SimpleNamespace(xs_grad=lambda op, g: [g * 10 + i for i in range(3)])
    f, _, _ = gradient(library, "Cat", _import_module={"toy_pkg.support": support}.__getitem__)
    full = FakeOp({"xs": [1, 2, 3], "bias": 0.5, "scale": 2.0}, {"y": 0.0})
    assert f(full, 1.0) == [10.0, 11.0, 12.0, 1.0, 4.5]
    absent = FakeOp({"xs": [1, 2, 3], "bias": None, "scale": 2.0}, {"y": 0.0})
    assert f(absent, 1.0) == [10.0, 11.0, 12.0, 4.0]


def test_list_outputs_take_their_share_of_the_gradients(library: Library) -> None:
    f, _, _ = gradient(library, "Fan")
    op = FakeOp({"x": 1.0}, {"first": 0.0, "ys": [0.0, 0.0], "last": 0.0})
    assert f(op, 1.0, 2.0, 3.0, 4.0) == [1.0 + 20.0 + 300.0 + 4000.0]
    assert f(op, None, 2.0, None, None) == [20.0]


def test_an_op_is_called_with_inputs_matched_by_name(library: Library) -> None:
    f, calls, _ = gradient(library, "Tan")
    op = FakeOp({"x": 1.0, "w": 2.0}, {"y": 3.0}, k=7, unit="rad")
    assert f(op, 4.0) == [1.5, 2.5]
    assert calls == [("toy.TanGrad", {"y": 3.0, "grad_y": 4.0, "x_shape": ("shape", 1.0), "k": 7})]


def test_todo(library: Library) -> None:
    f, _, _ = gradient(library, "TanGrad")
    with pytest.raises(GradientError, match=r"toy\.TanGrad y second order"):
        f(FakeOp({"y": 1.0, "grad_y": 1.0, "x_shape": 1}, {"dx": 0.0, "dw": 0.0}), 1.0, 1.0)
    half, _, _ = gradient(library, "Half")
    assert half(FakeOp({"a": 1.0, "b": 2.0}, {"y": 0.0}), 5.0) == [5.0, None]
    assert library.all_ops["toy.Half"].kinds == {"a": "formula", "b": "todo: later"}


def test_equality_of_tensors_becomes_a_call(library: Library) -> None:
    f, _, source = gradient(library, "Cmp")
    assert "_tf.equal(a, 2.0)" in source
    assert f(FakeOp({"a": 2.0}, {"y": 0.0}), 3.0) == [3.0]
    assert f(FakeOp({"a": 1.0}, {"y": 0.0}), 3.0) == [0.0]


def test_a_decomposition_takes_keywords_and_returns_the_outputs(library: Library) -> None:
    f, _, _ = compile_(decomposition_function(library.all_ops["toy.Cmp"], library))
    assert f(a=3.0) == [6.0]
    assert f(a=-3.0, other_attr=1) == [6.0]


def test_names_that_python_keeps_for_itself_get_an_underscore(make) -> None:
    text = """\
graphdock_opdef: 1
namespace: toy
ops:
- name: While
  summary: Names that generated functions use themselves.
  inputs: [{name: grads, dtype: float64}, {name: op, dtype: float64}]
  outputs: [{name: y, dtype: float64}]
  gradient: {inputs: {grads: "g.y * op", op: "g.y * grads"}}
"""
    found = load_library(make("kw", toy=text))
    assert found.errors == ()
    (op,) = found.ops
    assert (op.snake, op.function) == ("while_", "while_")
    f, _, _ = compile_(gradient_function(op, found))
    assert f(FakeOp({"grads": 2.0, "op": 3.0}, {"y": 0.0}), 1.0) == [3.0, 2.0]
    (error,) = load_library(make("kw_in", toy=text.replace("grads", "in"))).errors
    assert "'in' is a Python keyword" in str(error) and error.hint == "call it in_"


def test_every_generated_gradient_of_the_repository_compiles() -> None:
    root = Path(__file__).parents[2]
    for package in ("host/graphdock/ops", "plugins/std/graphdock_std"):
        found = load_library(root / package)
        compiled = [compile_(gradient_function(op, found))[0] for op in found.ops if op.has_gradient]
        assert compiled and all(callable(f) for f in compiled)
