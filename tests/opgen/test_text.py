"""Pieces of generated text: literals, names, words about shapes."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from graphdock.contracts import KernelDef
from graphdock_opgen.docs import shape_words, signature
from graphdock_opgen.library import dotted_name, load_library
from graphdock_opgen.names import local, snake
from graphdock_opgen.pretty import literal, string
from graphdock_opgen.render import render_library


@pytest.mark.parametrize("value", ["plain", 'say "hi"', "it's", "both \" and '", "tab\tline\nback\\slash", "\x07", "ü"])
def test_string_literals_are_the_string_and_escape_as_little_as_they_can(value: str) -> None:
    text = string(value)
    assert ast.literal_eval(text) == value
    assert text[0] == ("'" if '"' in value and "'" not in value else '"')


@pytest.mark.parametrize("value", [(1,), (1, 2), (), {"a": (2.5,)}, [True, None], frozenset({"b", "a"})])
def test_literals_are_the_value(value: object) -> None:
    names = {"frozenset": frozenset}
    want = tuple(value) if isinstance(value, list) else value
    assert eval(literal(value), {"__builtins__": {}}, names) == want


@pytest.mark.parametrize(
    ("shape", "words"),
    [(None, "of any shape"), ("?", "of any shape"), (" ? ", "of any shape"), ("[]", "scalar"),
     ("[*S]", "of any shape [*S]"), ("[A, B]", "of shape [A, B]")],
)  # fmt: skip
def test_shapes_in_words(shape: str | None, words: str) -> None:
    assert shape_words(shape) == words


def test_a_wrapper_has_the_signature_that_its_api_says(make) -> None:
    """An input may have a default, and ``name`` may stand before attributes, as in TensorFlow 1."""
    spec = """\
graphdock_opdef: 1
namespace: lab
ops:
- name: Sum
  summary: Sums.
  attrs: [{name: keep, type: bool, default: false}]
  inputs: [{name: x, dtype: float32}, {name: axis, dtype: int32}, {name: low, dtype: float32}]
  outputs: [{name: y, dtype: float32}]
  gradient: none
  api: {rename: {x: input}, default: {axis: 0, low: -.inf}, order: [x, axis, name, keep]}
"""
    library = load_library(make("graphdock_lab", lab=spec))
    (op,) = library.ops
    assert signature(op) == ["input", "axis=0", "name=None", "keep=False", 'low=float("-inf")']
    text = render_library(library, print)["_gen/lab_ops.py"]
    assert (
        "x=input, axis=axis, name=name, keep=keep, low=low" in text
        and "    name: str | None = None,\n    keep: bool = False,\n" in text
    )


@pytest.mark.parametrize(
    ("name", "wanted"),
    [("MatMul", "mat_mul"), ("LRN", "lrn"), ("Conv2DGrad", "conv2d_grad"), ("While", "while_"), ("ReverseV2", "reverse_v2"),
     ("Log1p", "log1p"), ("L2Loss", "l2_loss"), ("SparseSoftmaxCrossEntropy", "sparse_softmax_cross_entropy"),
     ("TopKMask", "top_k_mask"), ("RMSProp", "rms_prop"), ("A", "a"), ("ABC", "abc"), ("A1B2", "a1b2")],
)  # fmt: skip
def test_snake_case(name: str, wanted: str) -> None:
    assert snake(name) == wanted
    kernel = KernelDef(f"lab.{name}", "cpu", lambda ctx: print)
    assert kernel.short_name == wanted.removesuffix("_"), "a kernel is called as its op's wrapper"


def test_local_names_avoid_keywords_and_all_that_is_taken() -> None:
    assert [local(n, ("x", "x_")) for n in ("lambda", "x", "y")] == ["lambda_", "x__", "y"]


def test_the_dotted_name_goes_up_as_far_as_packages_do(tmp_path: Path) -> None:
    deepest = tmp_path / "outside" / "a" / "b" / "c"
    deepest.mkdir(parents=True)
    for folder in (deepest, deepest.parent, deepest.parent.parent):
        (folder / "__init__.py").write_text("")
    assert dotted_name(deepest) == "a.b.c"
