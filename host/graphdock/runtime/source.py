"""The text of a generated step: lines with their nodes, cut into functions of bounded size and depth."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from graphdock.contracts.ir import PlanNode

__all__ = ["Block", "Line", "names_locals", "render"]

#: Most statements in one function; compiling is linear in the number of functions of this size.
CHUNK = 1000
#: Deepest nesting of blocks inside one function.
DEPTH = 8

_LOCAL = re.compile(r"\b[efhlmnstv]\d+\b")


@dataclass
class Line:
    """A statement and the node it belongs to."""

    text: str
    node: PlanNode | None = None


@dataclass
class Block:
    """Statements in order; a nested block is indented beneath the line before it."""

    items: list[Line | Block] = field(default_factory=list)

    def add(self, text: str, node: PlanNode | None = None) -> None:
        self.items.append(Line(text, node))

    def nested(self) -> Block:
        inner = Block()
        self.items.append(inner)
        return inner

    def depth(self) -> int:
        return 1 + max((i.depth() for i in self.items if isinstance(i, Block)), default=0)

    def count(self) -> int:
        return sum(i.count() if isinstance(i, Block) else 1 for i in self.items)


def render(block: Block, feeds: Sequence[str], results: str) -> tuple[str, list[PlanNode | None]]:
    """The source, and for each of its lines (from 1, index 0 unused) the node it belongs to.

    A small step is one function ``step`` over local names. A large or deep one is cut into functions that share their names as
    globals of the instance's own namespace.
    """
    out: list[str] = []
    nodes: list[PlanNode | None] = [None]

    def emit(text: str, node: PlanNode | None = None) -> None:
        out.append(text)
        nodes.append(node)

    wide = block.count() > CHUNK or block.depth() > DEPTH + 1
    if not wide:
        emit(f"def step({', '.join(feeds)}):")
        _lines(block, 1, emit)
        emit(f"    return {results}")
        return "\n".join(out) + "\n", nodes
    pieces: list[tuple[str, Block]] = []
    calls = []
    for group in _groups(block.items):
        name = f"part{len(pieces)}"
        pieces.append((name, Block(list(group))))
        calls.append(name)
    done = 0
    while done < len(pieces):
        name, piece = pieces[done]
        _split_deep(piece, 1, pieces)
        done += 1
    for name, piece in pieces:
        emit(f"def {name}():")
        names = sorted(_assigned(piece))
        for start in range(0, len(names), 40):
            emit(f"    global {', '.join(names[start : start + 40])}")
        _lines(piece, 1, emit)
        emit("    return")
    emit(f"def step({', '.join('a' + f for f in feeds)}):")
    if feeds:
        emit(f"    global {', '.join(feeds)}")
        for f in feeds:
            emit(f"    {f} = a{f}")
    for name in calls:
        emit(f"    {name}()")
    emit(f"    return {results}")
    return "\n".join(out) + "\n", nodes


def names_locals(block: Block) -> bool:
    """Whether any statement reads or sets a name that belongs to one run of a step (a feed, an escaping or fresh value)."""
    stack: list[Block] = [block]
    while stack:
        for item in stack.pop().items:
            if isinstance(item, Block):
                stack.append(item)
            elif _LOCAL.search(item.text):
                return True
    return False


def _lines(block: Block, indent: int, emit) -> None:  # type: ignore[no-untyped-def]
    pad = "    " * indent
    if not block.items:
        emit(pad + "pass")
    for item in block.items:
        if isinstance(item, Block):
            _lines(item, indent + 1, emit)
        else:
            emit(pad + item.text, item.node)


def _groups(items: Sequence[Line | Block]) -> Iterable[list[Line | Block]]:
    group: list[Line | Block] = []
    size = 0
    for i, item in enumerate(items):
        group.append(item)
        size += item.count() if isinstance(item, Block) else 1
        follows = i + 1 < len(items) and (
            isinstance(items[i + 1], Block) or getattr(items[i + 1], "text", "").startswith(("else", "elif"))
        )
        if size >= CHUNK and not follows:
            yield group
            group, size = [], 0
    if group:
        yield group


def _split_deep(block: Block, depth: int, pieces: list[tuple[str, Block]]) -> None:
    """Move compound statements that stand too deep into functions of their own."""
    items, block.items = block.items, []
    at = 0
    while at < len(items):
        unit = [items[at]]
        at += 1
        while at < len(items) and (
            isinstance(items[at], Block) or getattr(items[at], "text", "").startswith(("else", "elif"))
        ):
            unit.append(items[at])
            at += 1
        if len(unit) > 1 and depth >= DEPTH:
            name = f"part{len(pieces)}"
            pieces.append((name, Block(unit)))
            unit = [Line(f"{name}()")]
        for item in unit:
            if isinstance(item, Block):
                _split_deep(item, depth + 1, pieces)
        block.items.extend(unit)


def _assigned(block: Block) -> set[str]:
    names: set[str] = set()
    stack: list[Block] = [block]
    while stack:
        for item in stack.pop().items:
            if isinstance(item, Block):
                stack.append(item)
            else:
                left, equals, _ = item.text.partition(" = ")
                if equals:
                    names.update(_LOCAL.findall(left))
    return names
