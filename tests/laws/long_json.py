"""GraphDefs of graphdock's own form that are long in one way, as JSON: a family each, of which ``n`` says how long."""

from __future__ import annotations

import json
from typing import Any

Node = dict[str, Any]


def _text(nodes: list[Node]) -> str:
    return json.dumps({"graphdock_graph": 1, "nodes": nodes})


def _fed(name: str, dtype: str = "float32") -> Node:
    return {"name": name, "op": "Placeholder", "attrs": {"dtype": {"type": dtype}, "shape": {"shape": None}}}


def _same(name: str, *inputs: str, **more: Any) -> Node:
    return {"name": name, "op": "Identity", "inputs": list(inputs), "attrs": {"T": {"type": "float32"}}, **more}


def _cond(name: str, inner: list[Node], captures: list[str], inputs: list[str]) -> Node:
    nodes = [*(_fed(c) for c in captures if c != "p"), *([_fed("p", "bool")] if "p" in captures else []), *inner]
    function = {
        "name": "b",
        "parameters": [],
        "captures": captures,
        "outputs": [inner[-1]["name"] + ":0"],
        "nodes": nodes,
    }
    types = ["bool" if c == "p" else "float32" for c in captures]
    attrs = {"Tin": {"list(type)": types}, "Tout": {"list(type)": ["float32"]}}
    branches = {"then_branch": {"func": function}, "else_branch": {"func": function}}
    return {"name": name, "op": "Cond", "inputs": ["p:0", *inputs], "attrs": attrs | branches}


def backwards(n: int) -> str:
    """A chain whose last node is written first."""
    return _text([_same(f"i{k}", f"i{k - 1}:0" if k else "x:0") for k in reversed(range(n))] + [_fed("x")])


def conds(n: int) -> str:
    return _text(
        [_fed("p", "bool"), _fed("x"), *(_cond(f"c{k}", [_same("y", "x:0")], ["x"], ["x:0"]) for k in range(n))]
    )


def captures(n: int) -> str:
    """A cond that captures one tensor n times."""
    names = [f"a{k}" for k in range(n)]
    return _text([_fed("p", "bool"), _fed("x"), _cond("c", [_same("y", "a0:0")], names, ["x:0"] * n)])


def waits(n: int) -> str:
    """Nodes each of which waits for the one before, and is colocated."""
    nodes = [_same(f"i{k}", "x:0", *([f"^i{k - 1}"] if k else []), colocate=["x"]) for k in range(n)]
    return _text([_fed("x"), *nodes])


def one_name(n: int) -> str:
    """A name that all nodes have."""
    return _text([_fed("x")] * n)


def brackets(n: int) -> str:
    return "[" * n


FAMILIES = {f.__name__: f for f in (backwards, conds, captures, waits, one_name, brackets)}
