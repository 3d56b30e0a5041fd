"""What a spec's "module:function" may name: its own package, or graphdock_std's public functions; nothing is imported to check."""

from __future__ import annotations

import sys
from pathlib import Path

import graphdock as tf
import pytest
from graphdock.errors import OpSpecError
from graphdock_opgen.generate import plan

SPEC = """\
graphdock_opdef: 1
namespace: NAMESPACE
ops:
- name: Twice
  summary: x + x.
  types: {T: {allow: floats}}
  inputs: [{name: x, dtype: T}]
  outputs: [{name: y, dtype: T}]
  gradient: GRADIENT
  EXTRA: "TARGET"
"""
FOREIGN = [
    "builtins:exit",
    "os:abort",
    "antigravity:geohash",
    "graphdock.ops.core:cast",
    "graphdock_cpu.plugin:hookimpl",
]
KEYS = ["shape_fn", "reference", "evaluate", "fn"]


def spec(namespace: str, key: str, target: str) -> str:
    text = SPEC.replace("NAMESPACE", namespace)
    if key == "fn":
        return text.replace("GRADIENT", f'{{inputs: {{x: {{fn: "{target}"}}}}}}').replace('  EXTRA: "TARGET"\n', "")
    return text.replace("GRADIENT", "none").replace("EXTRA", key).replace("TARGET", target)


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize(
    "target", [*FOREIGN, "graphdock_std.array.shape_fns:ShapeContext", "graphdock_std.no:f", "labx.a:f"]
)
def test_a_package_names_its_own_code_only(make, key: str, target: str) -> None:
    before = set(sys.modules)
    (error,) = plan(make("lab", lab=spec("lab", key, target))).errors
    assert error.line == (9 if key == "fn" else 10)
    assert "outside of 'lab'" in str(error) or "graphdock_std has no public function" in str(error)
    assert set(sys.modules) - before <= {"graphdock_std"}


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("target", ["lab:f", "lab.deep.est:_f", "graphdock_std.grad_support:sum_to"])
def test_its_own_code_and_that_of_std_are_allowed(make, key: str, target: str) -> None:
    assert plan(make("lab", lab=spec("lab", key, target))).errors == ()


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("target", [*FOREIGN, "beside.nested:f", "gradients:f", "_gen:f"])
def test_a_loaded_file_names_the_modules_beside_it_only(tmp_path: Path, key: str, target: str) -> None:
    (tmp_path / "beside.py").write_text("raise SystemExit('imported')\n")
    path = tmp_path / "ops.yaml"
    path.write_text(spec("home1", key, target))
    before = set(sys.modules)
    with pytest.raises(OpSpecError, match="there is no module '.*' beside the spec"):
        tf.load_op_library(path)
    assert not [n for n in set(sys.modules) - before if n.startswith(("graphdock_loaded", "antigravity"))]


def test_a_module_beside_a_loaded_file_is_imported_when_an_op_needs_it(tmp_path: Path) -> None:
    (tmp_path / "builtins.py").write_text("def shape(ctx):\n    return [ctx.shape('x')]\n")
    path = tmp_path / "ops.yaml"
    path.write_text(spec("home2", "shape_fn", "builtins:shape"))
    library = tf.load_op_library(path)
    assert not [n for n in sys.modules if n.startswith("graphdock_loaded") and n.endswith(".builtins")]
    with tf.Graph().as_default():
        assert library.twice(tf.placeholder(tf.float32, [2, 3])).shape.as_list() == [2, 3]
    (module,) = [n for n in sys.modules if n.startswith("graphdock_loaded") and n.endswith(".builtins")]
    assert sys.modules[module].__file__ == str((tmp_path / "builtins.py").resolve())
