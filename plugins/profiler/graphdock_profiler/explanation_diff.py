"""The difference of two explanations of one step: what each node is and where it runs in one and in the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from graphdock_profiler.explanation import Explanation, Row

__all__ = ["Change", "changes", "difference", "facts"]


@dataclass(frozen=True, slots=True)
class Change:
    """A node that differs, with its row on either side; None where it is not in the plan."""

    node: str
    before: Row | None
    after: Row | None

    def __str__(self) -> str:
        if self.before is None or self.after is None:
            row = self.before or self.after
            assert row is not None
            return f"{'+' if self.before is None else '-'} {self.node} ({row.op}): {_where(row)}"
        same = self.before.op == self.after.op
        name = f"{self.node} ({self.after.op})" if same else f"{self.node} ({self.before.op} -> {self.after.op})"
        return f"~ {name}: {_where(self.before)} -> {_where(self.after)}"


def changes(before: Explanation, after: Explanation) -> list[Change]:
    """The nodes that differ in op, device or kernel, in the order of the first plan; those that only the second has follow."""
    old, new = _rows(before), _rows(after)
    found = [Change(name[0], row, new.get(name)) for name, row in old.items() if _differ(row, new.get(name))]
    return [*found, *(Change(name[0], None, row) for name, row in new.items() if name not in old)]


def difference(before: Explanation, after: Explanation) -> str:
    """Both summaries, and a line per node that differs: ``~`` for another op, device or kernel, ``-`` and ``+`` for one that is
    only in the first plan or the second."""
    found = changes(before, after)
    lines = [f"- {before.summary()}", f"+ {after.summary()}"]
    lines += [f"- {note}" for note in before.notes() if note not in after.notes()]
    lines += [f"+ {note}" for note in after.notes() if note not in before.notes()]
    return "\n".join([*lines, *map(str, found), *([] if found else ["every node runs where, and as what, it did"])])


def _rows(explained: Explanation) -> Mapping[tuple[str, int], Row]:
    """Rows by the node's name, and which of that name they are, those of parts that run before included."""
    counts: dict[str, int] = {}
    found: dict[tuple[str, int], Row] = {}
    for part in (*explained.before, explained):
        for row in part.rows:
            counts[row.node] = counts.get(row.node, 0) + 1
            found[row.node, counts[row.node]] = row
    return found


def _differ(a: Row, b: Row | None) -> bool:
    return b is None or (a.op, a.device, a.kernel) != (b.op, b.device, b.kernel)


def _where(row: Row) -> str:
    return f"{row.kernel} on {row.device}, {row.time}"


def facts(before: Explanation, after: Explanation) -> dict[str, Any]:
    """The same as plain data."""
    return {
        "before": before.summary(),
        "after": after.summary(),
        "changes": [
            {
                "node": c.node,
                "before": None if c.before is None else [c.before.op, c.before.device, c.before.kernel],
                "after": None if c.after is None else [c.after.op, c.after.device, c.after.kernel],
            }
            for c in changes(before, after)
        ],
    }
