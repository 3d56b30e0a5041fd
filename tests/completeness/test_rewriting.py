"""A plan is made by a Builder and changed by a Rewriter: nobody else in the host or in a room assigns its nodes or edges."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = (
    *("host/graphdock/" + room for room in ("contracts", "passes", "placement", "planning", "session")),
    *(f"plugins/{room}/graphdock_{room}" for room in ("executor", "fusion", "testing")),
)
FIELDS = {"nodes", "inputs", "outputs", "control", "order", "targets", "bodies", "origins"}
MUTATORS = {"append", "extend", "insert", "remove", "pop", "clear", "sort", "reverse"}
#: They make graphs, or are the Rewriter; and the one step that lays order edges.
MAKERS = {
    "host/graphdock/contracts/ir.py",
    "host/graphdock/contracts/rewriter.py",
    "host/graphdock/contracts/cut.py",
    "host/graphdock/contracts/effects.py",
    "host/graphdock/planning/translate.py",
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
    "path", [p for f in FOLDERS for p in sorted((ROOT / f).rglob("*.py"))], ids=lambda p: str(p.relative_to(ROOT))
)
def test_nobody_else_changes_a_plan(path: Path) -> None:
    found = changed(ast.parse(path.read_text()))
    assert not found or str(path.relative_to(ROOT)) in MAKERS, found


def test_every_folder_has_modules() -> None:
    assert all(any((ROOT / folder).rglob("*.py")) for folder in FOLDERS)
    assert all((ROOT / path).is_file() for path in MAKERS)


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
