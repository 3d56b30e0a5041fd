"""What a formula may call: ops, and the functions that packages list; no other word."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import graphdock as tf
import numpy as np
import pytest
from graphdock_opgen.generate import plan, write
from graphdock_opgen.library import load_library

SPEC = """\
graphdock_opdef: 1
namespace: {namespace}
ops:
- name: Toy
  summary: A toy.
  types: {{T: {{allow: [float32, float64]}}}}
  inputs: [{{name: x, dtype: T, shape: "[*S]"}}]
  outputs: [{{name: y, dtype: T, shape: "[*S]"}}]
  gradient: {{inputs: {{x: "{formula}"}}}}
  api: {{endpoints: [{{name: toy}}]}}
- name: Second
  summary: Another.
  types: {{T: {{allow: [float32, float64]}}}}
  inputs: [{{name: x, dtype: T, shape: "[*S]"}}]
  outputs: [{{name: y, dtype: T, shape: "[*S]"}}]
  gradient: none
"""


def library(make, formula: str, name: str = "toy_pkg", namespace: str = "toy", names: str = ""):
    package = make(name, toy=SPEC.format(formula=formula, namespace=namespace))
    if names:
        (package / "names.py").write_text(names)
    return plan(package)


def gradients(result) -> str:
    assert result.errors == (), result.errors
    return next(text for path, text in result.files.items() if path.name == "gradients.py")


@pytest.mark.parametrize(
    "word", ["the", "use", "your", "no", "yet", "feed", "batches", "Session", "Variable", "apply_op"]
)
def test_words_of_hints_and_names_that_build_no_op_are_no_functions(make, word: str) -> None:
    (error,) = library(make, f"{word}(g.y)").errors
    assert f"no function {word!r}" in str(error)
    assert (error.line, error.column) == (9, 27)


@pytest.mark.parametrize(
    ("wrong", "right"), [("exq", "exp"), ("reduce_sun", "reduce_sum"), ("shap_of", "shape_of"), ("sum_too", "sum_to")]
)
def test_an_unknown_function_suggests_the_nearest(make, wrong: str, right: str) -> None:
    (error,) = library(make, f"{wrong}(g.y)").errors
    assert error.hint == f"did you mean {right!r}?"


@pytest.mark.parametrize(
    ("formula", "call", "needs"),
    [
        ("exp(g.y)", "_tf.exp(grad_y)", "import graphdock as _tf"),
        ("reduce_sum(g.y)", "_tf.reduce_sum(grad_y)", "import graphdock as _tf"),
        ("nn.softmax(g.y)", "_tf.nn.softmax(grad_y)", "import graphdock as _tf"),
        ("no_op(g.y)", "_tf.no_op(grad_y)", "import graphdock as _tf"),
        ("cast(g.y, T)", "_ops.cast(grad_y, T)", "from graphdock import ops as _ops"),
        ("shape_of(x)", "_ops.shape(x)", "from graphdock import ops as _ops"),
        ("sum_to(g.y, x)", "_sum_to(grad_y, x)", "from graphdock_std.grad_support import sum_to as _sum_to"),
        ("toy(g.y)", "_toy_ops.toy(grad_y)", "from toy_pkg._gen import toy_ops as _toy_ops"),
        ("second(g.y)", "_toy_ops.second(grad_y)", "from toy_pkg._gen import toy_ops as _toy_ops"),
        ("unit(g.y)", "_unit(grad_y)", "from toy_pkg.more import one as _unit"),
        ("deep.unit(g.y)", "_deep_unit(grad_y)", "from toy_pkg.more import one as _deep_unit"),
        ("hidden(g.y)", "_hidden(grad_y)", "from toy_pkg.more import two as _hidden"),
    ],
)
def test_how_generated_code_calls_it(make, formula: str, call: str, needs: str) -> None:
    names = (
        'FUNCTIONS = {"unit": "toy_pkg.more:one", "deep.unit": "toy_pkg.more:one"}\n'
        'HELPERS = {"hidden": "toy_pkg.more:two"}\nENDPOINTS = {"Unit": "toy_pkg.more:Unit"}\n'
    )
    text = gradients(library(make, formula, names=names))
    assert f"return [{call}]" in text
    assert needs in map(str.strip, text.splitlines())


def test_what_is_public_but_no_function_of_tensors_is_refused(make) -> None:
    (error,) = library(make, "Unit(g.y)", names='ENDPOINTS = {"Unit": "toy_pkg.more:Unit"}\n').errors
    assert "no function 'Unit'" in str(error)


def test_the_packages_own_name_wins(make) -> None:
    names = 'FUNCTIONS = {"exp": "toy_pkg.more:exp"}\n'
    assert "return [_exp(grad_y)]" in gradients(library(make, "exp(g.y)", names=names))


def test_the_hosts_own_specs_do_not_see_std(make) -> None:
    (error,) = library(make, "sum_to(g.y, x)", name="host_like", namespace="core").errors
    assert "no function 'sum_to'" in str(error)


def test_a_third_party_formula_runs_a_function_written_by_hand(make, monkeypatch: pytest.MonkeyPatch) -> None:
    package = make("graphdock_byhand", toy=SPEC.format(formula="doubled(g.y)", namespace="byhand"))
    (package / "names.py").write_text('FUNCTIONS = {"doubled": "graphdock_byhand.more:doubled"}\n')
    (package / "more.py").write_text("def doubled(x):\n    return x * 2.0\n")
    write(plan(package))
    monkeypatch.syspath_prepend(str(package.parent))
    monkeypatch.setitem(sys.modules, "graphdock_byhand", importlib.import_module("graphdock_byhand"))
    function = importlib.import_module("graphdock_byhand._gen.gradients").toy
    with tf.Graph().as_default(), tf.Session() as sess:
        (grad,) = function(None, tf.constant([1.0, 2.0]))
        np.testing.assert_array_equal(sess.run(grad), [2.0, 4.0])


def test_every_function_that_std_and_the_host_list_can_be_called() -> None:
    """Each leads to something callable, by the path that generated code takes."""
    std = Path(importlib.util.find_spec("graphdock_std").origin).parent  # type: ignore[union-attr]
    found = load_library(std)
    spaces = {"_tf": tf, "_ops": importlib.import_module("graphdock.ops")}
    for name, callee in found.functions.items():
        space, _, rest = callee.source.partition(".")
        if space in spaces:
            thing = spaces[space]
            for part in rest.split("."):
                thing = getattr(thing, part)
            assert callable(thing), name
