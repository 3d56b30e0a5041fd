"""graphdock's own JSON as a format of the host's."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from graphdock.contracts import GraphFormat, GraphRead, ImportReport
from graphdock.errors import InvalidArgumentError, NotFoundError, did_you_mean
from graphdock.ops import Graph
from graphdock.trampoline import Visit, trampoline

from graphdock_tensorflow.plain_data.attr_values import encode_tensor, expect
from graphdock_tensorflow.plain_data.writing import as_data

__all__ = ["JsonGraphs", "parse", "to_json"]

_WIDTH = 120


class JsonGraphs(GraphFormat):
    """Plain data, and texts of JSON objects. What is in them is checked when it is added to a graph."""

    name = "JSON"
    summary = "graphdock's own JSON, which loses nothing"

    def accepts(self, value: Any) -> bool:
        return isinstance(value, dict) or isinstance(value, (str, bytes)) and value.lstrip()[:1] in ("{", b"{")

    def open(self, path: str, tags: Sequence[str] = ()) -> tuple[str, Any] | None:
        if not os.path.isfile(path):
            return None
        with open(path, "rb") as file:
            begin = file.read(64)
            return ("graphdock's JSON", begin + file.read()) if begin.lstrip()[:1] == b"{" else None

    def read(self, value: Any, ops: Any, mapped: Collection[str] = (), outputs: Sequence[str] = ()) -> GraphRead:
        data = parse(value) if isinstance(value, (str, bytes)) else expect(value, dict, "the file")
        nodes = [n for n in expect(data.get("nodes", []), list, "nodes") if isinstance(n, dict)]
        if outputs:
            nodes = _needed(nodes, outputs)
            data = {**data, "nodes": nodes}
        return GraphRead(data, ImportReport(len(nodes), dict(Counter(str(n.get("op")) for n in nodes))))

    def write(self, graph: Any, add_shapes: bool = False) -> Any:
        return to_json(graph)


def _needed(nodes: list[dict[str, Any]], outputs: Sequence[str]) -> list[dict[str, Any]]:
    """The nodes that outputs, names of tensors or nodes, need. What is wrong with a node is said when it is added.

    Raises:
      NotFoundError: there is no such node.
    """
    named = {name: node for node in nodes if isinstance(name := node.get("name"), str)}
    wanted = [o.removeprefix("^").partition(":")[0] for o in outputs]
    for text, name in zip(outputs, wanted, strict=True):
        if name not in named:
            raise NotFoundError(f"the graph has no node {text!r}", hint=did_you_mean(name, named))
    found: set[str] = set()
    while wanted:
        name = wanted.pop()
        if name in named and name not in found:
            found.add(name)
            inputs = expect(named[name].get("inputs", []), list, f"{name}: inputs")
            wanted += [expect(i, str, f"{name}: inputs").removeprefix("^").partition(":")[0] for i in inputs]
    return [node for node in nodes if node.get("name") in found]


def to_json(graph: Graph | dict[str, Any]) -> str:
    """The JSON text of a graph, or of its plain data."""
    return trampoline(_pretty(as_data(graph) if isinstance(graph, Graph) else graph))[0] + "\n"


def parse(text: str | bytes) -> dict[str, Any]:
    """The data of a JSON text. Raises InvalidArgumentError with line and column."""
    try:
        data = json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise InvalidArgumentError(
            f"GraphDef: not JSON: {error.msg}, line {error.lineno}, column {error.colno}"
        ) from None
    except UnicodeDecodeError as error:
        raise InvalidArgumentError(f"GraphDef: not UTF-8 text: {error.reason}") from None
    except RecursionError:
        raise InvalidArgumentError("GraphDef: the JSON is nested too deep") from None
    except ValueError as error:
        raise InvalidArgumentError(f"GraphDef: {error}") from None
    return expect(data, dict, "the file")  # type: ignore[no-any-return]


def _no_constant(name: str) -> Any:
    raise InvalidArgumentError(f"{name} is not JSON; the strings 'nan', 'inf' and '-inf' are")


#: The text of a value, on one line. One encoder for all of them: making one takes longer than most values do.
_leaf = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode


def _pretty(value: Any, indent: int = 0) -> Visit[tuple[str, bool]]:
    """JSON with each list and object on one line where it fits; and whether it is one line."""
    if isinstance(value, np.ndarray):
        value = encode_tensor(value)
    if not _nested(value):
        return _leaf(value), True
    pad = " " * (indent + 1)
    short = True
    if not any(map(_nested, value.values() if isinstance(value, dict) else value)):
        flat = _leaf(value)
        if indent + len(flat) <= _WIDTH:
            return flat, True
        if isinstance(value, list) and all(isinstance(v, (int, float)) for v in value):
            return _wrapped([_leaf(v) for v in value], pad, indent), False
        short = False
    begin, end = "{}" if isinstance(value, dict) else "[]"
    labelled = [(f"{_leaf(k)}: ", v) for k, v in value.items()] if isinstance(value, dict) else [("", v) for v in value]
    items: list[str] = []
    for label, item in labelled:
        text, one_line = (yield _pretty(item, indent + 1)) if _nested(item) else (_leaf(item), True)
        items.append(label + text)
        short = short and one_line
    if short:
        flat = begin + ", ".join(items) + end
        if indent + len(flat) <= _WIDTH:
            return flat, True
    return f"{begin}\n" + ",\n".join(pad + item for item in items) + "\n" + " " * indent + end, False


def _nested(value: Any) -> bool:
    return isinstance(value, np.ndarray) or (isinstance(value, (dict, list)) and bool(value))


def _wrapped(items: list[str], pad: str, indent: int) -> str:
    lines, line = [], pad
    for i, item in enumerate(items):
        piece = item + ("," if i + 1 < len(items) else "")
        if len(line) + len(piece) + 1 > _WIDTH and line != pad:
            lines.append(line.rstrip())
            line = pad
        line += piece + " "
    return "[\n" + "\n".join([*lines, line.rstrip()]) + "\n" + " " * indent + "]"
