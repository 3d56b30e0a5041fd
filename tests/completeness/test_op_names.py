"""What varies by op is a fact of its OpDef: outside of the builders that make such nodes, the host names no op."""

from __future__ import annotations

import ast
from pathlib import Path

import graphdock as tf
import pytest
from graphdock.contracts.opdef import VERBS

HOST = Path(tf.__file__).parent
PLUGINS = Path(__file__).parents[2] / "plugins"
#: Rooms that are held to it like the host. The one that translates TensorFlow's graphs names the ops of both: it is none of them.
ROOMS = [
    PLUGINS / room / f"graphdock_{room}"
    for room in ("customop", "executor", "fusion", "native", "planner", "profiler", "testing")
] + [PLUGINS / "cluster/graphdock_cluster/partition"]
MODULES = {
    f"{folder.name}/{p.relative_to(folder).as_posix()}".removeprefix("graphdock/"): p
    for folder in (HOST, *ROOMS)
    for p in sorted(folder.rglob("*.py"))
    if "_gen" not in p.parts
}
#: Functions whose first strings are op types: they make nodes, or look an OpDef up to make one.
BUILDERS = {"apply_op", "_add_node", "_node", "_like", "_update", "create_op", "get"}
#: Names that a user may leave to the function and that happen to be op types.
DEFAULT_NAMES = {("ops/convert.py", "Const"), ("ops/core.py", "Shape")}
#: The conformance kit strides inputs through these, where the backend has them.
DEFAULT_NAMES |= {("graphdock_testing/value_check.py", op) for op in ("StridedSlice", "Transpose")}
#: What crosses from part to part of a step.
DEFAULT_NAMES |= {("partition/part_graph.py", op) for op in ("Const", "Placeholder", "Recv", "Send")}
#: Which views of an array they are, no spec can say.
DEFAULT_NAMES |= {
    ("graphdock_fusion/regions/parts.py", op)
    for op in ("Slice", "Split", "SplitV", "Squeeze", "StridedSlice", "Transpose", "Unpack")
}
#: Nor where the pieces of what is joined lie.
DEFAULT_NAMES |= {("graphdock_fusion/regions/copies.py", op) for op in ("Concat", "Pack", "ReverseV2")}
#: Nor that padding by nothing leaves a tensor as it is.
DEFAULT_NAMES |= {("graphdock_fusion/regions/held.py", "Pad")}
#: It draws what a random op of a pattern draws, by the op of a given stream.
DEFAULT_NAMES |= {("graphdock_testing/facts/pattern_sample.py", op) for op in ("RandomUniform", "StreamUniform")}
#: Python classes, endpoints and words that share their name with an op type.
HOMONYMS = {"Assert", "Print"}


def op_names() -> set[str]:
    host = tf.default_host()
    host.backend("cpu")
    host.backend("std")
    return set(host.ops.names())


def _built(tree: ast.AST) -> set[int]:
    """Identities of the strings that a builder takes, or that a module exports under that name."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            if name in BUILDERS:
                found.update(id(a) for a in node.args)
        if isinstance(node, ast.Assign) and any(getattr(t, "id", "") == "__all__" for t in node.targets):
            found.update(id(n) for n in ast.walk(node.value))
    return found


@pytest.mark.parametrize("where", MODULES)
def test_no_op_is_named_outside_of_its_builders(where: str) -> None:
    tree = ast.parse(MODULES[where].read_text())
    built, ops = _built(tree), op_names()
    named = [
        f"{node.lineno}: {node.value}"
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and node.value in ops
        and id(node) not in built
        and (where, node.value) not in DEFAULT_NAMES
        and not (node.value in HOMONYMS and where in ("__init__.py", "names.py", "ops/core.py", "ops/__init__.py"))
    ]
    assert not named


def test_every_verb_is_used_and_every_op_of_std_is_a_kernel() -> None:
    host = tf.default_host()
    used = {host.ops.get(op).executes for op in op_names()}
    made_by_the_runtime = {"move"}
    later = {"call"}  # function calls: their first user is still to come
    assert used | made_by_the_runtime | later == set(VERBS)
    std = [d for d in map(host.ops.get, op_names()) if d.package == "graphdock_std"]
    assert {d.executes for d in std} == {"kernel"}
