"""Ops from a YAML file: what is refused before the generator is asked."""

from __future__ import annotations

import graphdock as tf
import pytest
from graphdock.errors import InvalidArgumentError, NotFoundError, OpSpecError

SPEC = """\
graphdock_opdef: 1
namespace: library_test
ops:
- name: Halve
  summary: Half of x.
  types: {T: {allow: floats}}
  inputs: [{name: x, dtype: T, shape: "[*S]"}]
  outputs: [{name: y, dtype: T, shape: "[*S]"}]
  traits: {pure: true, elementwise: true}
  gradient: {inputs: {x: "g.y * 0.5"}}
  decompose: ["y = x * 0.5"]
"""


def test_an_op_library_that_is_nowhere_is_named():
    with pytest.raises(NotFoundError, match="no op library at 'nowhere.yaml'"):
        tf.load_op_library("nowhere.yaml")


@pytest.mark.parametrize("name", ["ops.so", "ops.dylib", "ops.dll"])
def test_a_shared_library_is_no_op_spec(name):
    with pytest.raises(InvalidArgumentError, match="is a shared library") as caught:
        tf.load_op_library(name)
    assert "YAML" in caught.value.hint


def test_a_folder_is_no_op_spec(tmp_path):
    with pytest.raises(InvalidArgumentError, match="is not a file"):
        tf.load_op_library(tmp_path)


def test_the_wrappers_of_a_file(tmp_path):
    path = tmp_path / "ops.yaml"
    path.write_text(SPEC)
    library = tf.load_op_library(path)
    with tf.Graph().as_default():
        y = library.halve(tf.placeholder(tf.float32, [2, None]))
        assert (y.op.type, y.shape, y.dtype) == ("library_test.Halve", [2, None], tf.float32)
    assert library.ops == ["library_test.Halve"] and library.__file__ == str(path)
    assert tf.load_op_library(path) is library, "the same text gives the same ops"


def test_a_fault_has_line_and_column(tmp_path):
    path = tmp_path / "bad.yaml"
    path.write_text(SPEC.replace("summary:", "sumary:"))
    with pytest.raises(OpSpecError, match="unknown key 'sumary'") as caught:
        tf.load_op_library(path)
    assert (caught.value.line, caught.value.column) == (5, 3)
