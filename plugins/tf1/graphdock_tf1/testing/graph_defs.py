"""Comparison of GraphDefs: ``tf.test.assert_equal_graph_def``."""

from __future__ import annotations

from typing import Any

from graphdock import messages
from graphdock.errors import ArgumentTypeError


def assert_equal_graph_def(
    actual: Any, expected: Any, checkpoint_v2: bool = False, hash_table_shared_name: bool = False
) -> None:
    """Two GraphDefs have the same nodes, in whatever order.

    Args:
      actual, expected: GraphDefs.
      checkpoint_v2: leave out constants of checkpoints' names, which are random.
      hash_table_shared_name: leave out the attribute ``shared_name`` of hash tables, likewise.

    Raises:
      AssertionError: they differ; the first difference is said. ArgumentTypeError: one is no GraphDef.
    """
    for name, given in (("actual", actual), ("expected", expected)):
        if not isinstance(given, messages.GraphDef):
            raise ArgumentTypeError(f"Expected tf.GraphDef for {name}", got=type(given).__name__)
    left, right = (_nodes(g, checkpoint_v2, hash_table_shared_name) for g in (actual, expected))
    for what, names in (("has no", right.keys() - left.keys()), ("has also", left.keys() - right.keys())):
        if names:
            raise AssertionError(f"the actual GraphDef {what} node {min(names)!r}")
    for name, node in left.items():
        if node != right[name]:
            shown = [messages.to_text(each) for each in (node, right[name])]
            raise AssertionError(f"node {name!r} differs:\n{shown[0]}\nis not the expected\n{shown[1]}")


def _nodes(graph_def: Any, checkpoint_v2: bool, hash_table_shared_name: bool) -> dict[str, Any]:
    found = {}
    for each in graph_def.node:
        node = messages.NodeDef()
        node.CopyFrom(each)
        controls = sorted(i for i in node.input if i.startswith("^"))  # in no order
        node.input[:] = [i for i in node.input if not i.startswith("^")] + controls
        if checkpoint_v2 and node.op == "Const" and node.name.endswith(("StringJoin/inputs_1", "/tensor_names")):
            node.attr["value"].Clear()
        if hash_table_shared_name and node.op.startswith(("HashTable", "MutableHashTable")):
            node.attr["shared_name"].Clear()
        found[node.name] = node
    return found
