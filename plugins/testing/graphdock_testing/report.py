"""The compliance table: what a conformance run found, ops by dtypes."""

from __future__ import annotations

import json
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = ["Compliance"]

#: Worst first: a cell shows the first of these that any of its cases had. ``refused``: by one kernel of several.
#: ``untested``: an op without samples.
OUTCOMES = ("failed", "xfail", "ok", "untested", "missing", "refused")
_SHOWN = {"failed": "FAIL", "xfail": "xfail", "ok": "ok", "untested": "-", "missing": "-", "refused": "-"}
#: Ops without a kernel that are named. A package of a few ops lacks hundreds.
_NAMED = 20
_SHORT = {"-": "any", "bfloat16": "bf16", "complex64": "c64", "complex128": "c128", "string": "str", "bool": "bool"}


@dataclass
class Compliance:
    """Outcomes of one backend.

    Attributes:
      cells: op -> dtype -> outcome -> number of cases.
      gradients: gradient kind -> number of inputs; empty where no op is the backend's to answer for.
      against: op -> what its results are held against; the column of that name.
      reasons: op, pattern or compiler -> why nothing of it, or of a part of it, was checked.
      gaps: sentences: what the run says nothing of, though it is declared.
    """

    backend: str
    cells: dict[str, dict[str, Counter[str]]] = field(default_factory=dict)
    gradients: Mapping[str, int] = field(default_factory=dict)
    against: Callable[[str], str] | None = None
    reasons: dict[str, list[str]] = field(default_factory=dict)
    gaps: list[str] = field(default_factory=list)

    def add(self, op: str, dtype: str, outcome: str) -> None:
        self.cells.setdefault(op, {}).setdefault(dtype, Counter())[outcome] += 1

    def totals(self) -> Counter[str]:
        """Cases by outcome."""
        total: Counter[str] = Counter()
        for row in self.cells.values():
            for counts in row.values():
                total.update(counts)
        return total

    def cell(self, op: str, dtype: str) -> str:
        """``ok``, ``FAIL``, ``xfail``, ``-`` (no kernel), or nothing where the op does not take the dtype."""
        counts = self.cells.get(op, {}).get(dtype)
        if not counts:
            return ""
        return _SHOWN[next(o for o in OUTCOMES if counts[o])]

    def untested(self) -> list[str]:
        """A sentence for each op, pattern and compiler of which nothing was checked."""
        silent = sorted(op for op, row in self.cells.items() if any(c["untested"] for c in row.values()))
        return [f"untested: {op} ({why})" for op in silent for why in self.reasons.get(op, ["its spec has no samples"])]

    def dtypes(self) -> list[str]:
        """The columns, in the order in which dtypes are usually written."""
        found = {d for row in self.cells.values() for d in row}
        usual = (
            "- bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64 complex64"
            " complex128 string"
        ).split()
        return [d for d in usual if d in found] + sorted(found.difference(usual))

    def lines(self) -> Iterable[str]:
        """The table as text, with the ops that have no kernel, totals and the counts of gradient kinds beneath."""
        lacking = sorted(
            op for op, row in self.cells.items() if all(set(c) <= {"missing", "refused"} for c in row.values())
        )
        bare = [
            op
            for op, row in self.cells.items()
            if any(c["untested"] for c in row.values()) and all(set(c) == {"untested"} for c in self.cells[op].values())
        ]
        shown = sorted(self.cells.keys() - {*lacking, *bare})
        columns = [d for d in self.dtypes() if any(d in self.cells[op] for op in shown)]
        heads = [_SHORT.get(d, d.replace("uint", "u").replace("int", "i").replace("float", "f")) for d in columns]
        width = max([len(op) for op in shown] or [2])
        held = {op: "" if self.against is None else self.against(op) for op in shown}
        room = max([len("against"), *map(len, held.values())]) + 2 if self.against is not None else 0
        yield f"{'op':<{width}}  " + f"{'against':<{room}}" * bool(room) + " ".join(f"{h:>5}" for h in heads)
        for op in shown:
            row = " ".join(f"{self.cell(op, d):>5}" for d in columns)
            yield f"{op:<{width}}  {held[op]:<{room}}{row}".rstrip()
        if len(lacking) > _NAMED:
            yield f"no kernel for {len(lacking)} ops; the report names them"
        elif lacking:
            yield from textwrap.wrap(f"no kernel ({len(lacking)}): " + ", ".join(lacking), 120, subsequent_indent="  ")
        yield from self.untested()
        totals = self.totals()
        faulty = ("missing", "failed", "untested")
        whole = [op for op, row in self.cells.items() if not any(c[o] for c in row.values() for o in faulty)]
        yield (
            f"{self.backend}: {len(self.cells)} ops, {len(whole)} whole; cases: "
            + ", ".join(
                f"{totals[o]} {o}"
                for o in ("ok", "failed", "xfail", "missing", "refused", "untested")
                if totals[o] or o not in ("refused", "untested")
            )
        )
        if self.gradients:
            yield "gradients of inputs: " + ", ".join(f"{n} {kind}" for kind, n in self.gradients.items())

    def write(self, path: str | Path) -> None:
        """Write the outcomes as JSON: ``{backend, totals, gradients, against, gaps, ops: {op: {dtype: {outcome: n}}}}``."""
        data: dict[str, Any] = {
            "backend": self.backend,
            "totals": dict(self.totals()),
            "gradients": dict(self.gradients),
            "against": {} if self.against is None else {op: self.against(op) for op in sorted(self.cells)},
            "gaps": self.gaps,
            "ops": {op: {d: dict(c) for d, c in sorted(row.items())} for op, row in sorted(self.cells.items())},
        }
        Path(path).write_text(json.dumps(data, indent=2, sort_keys=True) + "\n", encoding="utf-8")
