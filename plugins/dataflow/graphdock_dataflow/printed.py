"""Printed levels: where no row waits, a level that has run some times becomes Python text, a line for each row.

What a row does is called from the line itself, with slots for arguments, so that nothing is looked up between two kernels. A piece
of text is a function of the slots; between two pieces a step looks whether it is to stop.
"""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from graphdock.contracts import PlanNode

from graphdock_dataflow.cost import is_small

if TYPE_CHECKING:
    from graphdock_dataflow.instance import Runnable

__all__ = ["DUE", "Piece", "failed_node", "print_level"]

#: Runs of a level after which it is printed: compiling a line costs some 60 us, and saves 0.3 us a run.
DUE = 32
#: Rows of one piece, at most; one that may take long ends its piece.
_ROWS = 64

Piece = Callable[[list[Any]], None]


def print_level(level: Runnable) -> list[Piece]:
    """The rows of a plain level as functions of its slots, in their order."""
    found: list[Piece] = []
    lines: list[str] = []
    names: dict[str, Any] = {}
    for number, (fire, drops, _, _) in enumerate(level.rows[: level.plain]):
        call = level.calls.get(number)
        if call is not None and call[0] is fire:
            _, function, args, makes = call
            names[f"f{number}"] = function
            made = "".join([f"v[{slot}], " for slot in makes]) if len(makes) != 1 else f"v[{makes[0]}]"
            text = f"f{number}({', '.join([f'v[{slot}]' for slot in args])})"
            text = f"{made} = {text}" if makes else text
        else:
            names[f"f{number}"] = fire
            text = f"f{number}(v)"
        emptied = " = ".join([f"v[{slot}]" for slot in drops])
        lines.append(f"{text}; {emptied} = None" if drops else text)
        node = level.table.rows[number].node
        if len(lines) == _ROWS or number + 1 == level.plain or (node is not None and not is_small(node)):
            found.append(_compiled(lines, names))
            lines, names = [], {}
    return found


def _compiled(lines: list[str], names: dict[str, Any]) -> Piece:
    exec(compile("def piece(v):\n " + "\n ".join(lines), "<rows of a dataflow plan>", "exec"), names)
    made: Piece = names.pop("piece")
    return made


def failed_node(level: Runnable, pieces: list[Piece], error: BaseException) -> PlanNode | None:
    """The node of the row whose line raised an error."""
    firsts, first = {}, 0
    for piece in pieces:
        firsts[piece.__code__] = first
        first += len({line for *_, line in piece.__code__.co_lines() if line is not None and line > 1})
    at: TracebackType | None = error.__traceback__
    while at is not None:
        if at.tb_frame.f_code in firsts:
            return level.table.rows[firsts[at.tb_frame.f_code] + at.tb_lineno - 2].node
        at = at.tb_next
    return None
