"""``tf.contrib.tfprof.model_analyzer``: what a graph's variables hold, by scope."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import graphdock as _tf
from graphdock.errors import UnimplementedError

#: Options of :func:`print_model_analysis`: what is counted, and the file that the text goes to; None for standard output.
TRAINABLE_VARS_PARAMS_STAT_OPTIONS: dict[str, Any] = {"select": ["params"], "dump_to_file": ""}
#: Options that count operations, which a profiler here counts by time.
FLOAT_OPS_OPTIONS: dict[str, Any] = {"select": ["float_ops"], "dump_to_file": ""}


class Node:
    """A scope or a variable.

    Attributes:
      name: its full name. total_parameters: elements of the trainable variables below it. children: what stands in it.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.total_parameters = 0
        self.children: list[Node] = []
        self.shape: list[int] = []


def print_model_analysis(
    graph: Any,
    run_meta: Any = None,
    op_log: Any = None,
    tfprof_cmd: str = "scope",
    tfprof_options: Mapping[str, Any] = TRAINABLE_VARS_PARAMS_STAT_OPTIONS,
) -> Node:
    """Print the trainable variables of a graph and how many elements they have, by scope.

    Args:
      graph: the graph. run_meta, op_log: without effect. tfprof_cmd: ``"scope"``.
      tfprof_options: as of ``TRAINABLE_VARS_PARAMS_STAT_OPTIONS``.

    Returns:
      The root, ``_TFProfRoot``.

    Raises:
      UnimplementedError: something else is to be counted, or in another order.
    """
    if tfprof_cmd != "scope" or "params" not in tfprof_options.get("select", ["params"]):
        raise UnimplementedError("print_model_analysis counts parameters by scope", hint="graphdock profile")
    root = Node("_TFProfRoot")
    with graph.as_default():
        for variable in sorted(_tf.trainable_variables(), key=lambda v: str(v.op.name)):
            _add(root, variable.op.name.split("/"), variable.shape.as_list())
    text = "\n".join(_lines(root, 0)) + "\n"
    target = tfprof_options.get("dump_to_file") or ""
    if target:
        with _tf.gfile.GFile(target, "w") as file:
            file.write(text)
    else:
        print(text, end="")
    return root


def _add(node: Node, parts: list[str], shape: list[int]) -> None:
    size, full = math.prod(shape), ""
    node.total_parameters += size
    for part in parts:
        full = f"{full}/{part}".lstrip("/")
        found = next((child for child in node.children if child.name == full), None)
        if found is None:
            found = Node(full)
            node.children.append(found)
        node = found
        node.total_parameters += size
    node.shape = shape


def _lines(node: Node, depth: int) -> list[str]:
    shape = f"{'x'.join(map(str, node.shape))}, " if node.shape else ""
    own = [f"{'  ' * depth}{node.name} ({shape}{node.total_parameters:,} params)"]
    return own + [line for child in node.children for line in _lines(child, depth + 1)]
