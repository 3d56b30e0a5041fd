"""A plan is made by a Builder and changed by a Rewriter: nobody else in the host assigns its nodes or edges."""

from __future__ import annotations

import ast
from pathlib import Path

import graphdock
import pytest

HOST = Path(graphdock.__file__).parent
FOLDERS = ("contracts", "passes", "placement", "runtime", "session", "testing")
FIELDS = {"nodes", "inputs", "outputs", "control", "order", "targets", "bodies", "origins"}
MUTATORS = {"append", "extend", "insert", "remove", "pop", "clear", "sort", "reverse"}
#: They make graphs, or are the Rewriter; and the one step that lays order edges.
MAKERS = {
    "contracts/ir.py",
    "contracts/rewriter.py",
    "contracts/cut.py",
    "contracts/effects.py",
    "runtime/translate.py",
}


def changed(tree: ast.AST) -> list[str]:
    """Where a field of a plan, its items or its slices are assigned, deleted or mutated; an object's own fields do not count."""
    found = []
    for node in ast.walk(tree):
        targets: list[ast.expr] = []
        if isinstance(node, (ast.Assign, ast.Delete)):
            targets = node.targets
        elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
            targets = [node.target]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in MUTATORS:
            targets = [node.func.value]
        stack = list(targets)
        while stack:
            target = stack.pop()
            if isinstance(target, (ast.Tuple, ast.List)):
                stack.extend(target.elts)
                continue
            while isinstance(target, ast.Subscript):
                target = target.value
            if isinstance(target, ast.Attribute) and target.attr in FIELDS and ast.unparse(target.value) != "self":
                found.append(f"{node.lineno}: {ast.unparse(target)}")
    return found


@pytest.mark.parametrize(
    "path", [p for f in FOLDERS for p in sorted((HOST / f).rglob("*.py"))], ids=lambda p: str(p.relative_to(HOST))
)
def test_nobody_else_changes_a_plan(path: Path) -> None:
    found = changed(ast.parse(path.read_text()))
    assert not found or str(path.relative_to(HOST)) in MAKERS, found


def test_the_search_finds_what_it_looks_for() -> None:
    for text in (
        "graph.nodes = []",
        "node.inputs[0] = value",
        "graph.nodes.append(node)",
        "a.control, b.order = [], []",
        "del node.outputs[1:]",
        "node.order += [other]",
    ):
        assert changed(ast.parse(text)), text
    assert not changed(ast.parse("self.nodes = []; found = graph.nodes; table[node.inputs[0]] = 1"))
