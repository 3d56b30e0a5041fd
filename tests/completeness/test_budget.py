"""The counts of ``make check``: what they count, and that each has a bar."""

from __future__ import annotations

import importlib.util
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
spec = importlib.util.spec_from_file_location("budget", ROOT / "scripts" / "budget.py")
budget = importlib.util.module_from_spec(spec)
spec.loader.exec_module(budget)


def test_circles_are_found_through_any_number_of_modules():
    graph = {"a": {"b"}, "b": {"c"}, "c": {"a", "d"}, "d": {"e"}, "e": {"d"}, "f": {"a"}}
    assert budget.circles(graph) == [["a", "b", "c"], ["d", "e"]]
    chain = {str(i): {str(i + 1)} for i in range(5000)} | {"5000": {"0"}}
    assert [len(circle) for circle in budget.circles(chain)] == [5001]


def test_imports_inside_functions_count_and_those_for_type_checkers_do_not():
    graph = budget.imports()
    assert "graphdock.plugin.host" in graph["graphdock.graph.graph"]  # within a property
    assert "graphdock.graph.graph" not in graph["graphdock.graph.tensor"]  # under TYPE_CHECKING


def test_every_room_has_a_bar():
    bars = tomllib.loads((ROOT / "scripts" / "budget.toml").read_text())
    rooms = {"host", "opgen", *(f"plugins/{p.name}" for p in (ROOT / "plugins").iterdir() if any(p.rglob("*.py")))}
    assert set(bars) == {*rooms, "generated lines", "generated nodes", "modules of a first session"}
