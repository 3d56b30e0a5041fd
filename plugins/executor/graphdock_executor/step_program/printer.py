"""The text of a step program: Python source, and for each of its lines the statement that it was printed from.

A small step is one function ``step`` over local names. A large or deep one is cut into functions that share their names as globals
of the instance's own namespace; ``step`` then clears them, so that nothing of a step outlives it but ``held``, which explains an
error.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from graphdock.contracts.lazy_dataclass import lazy_dataclass

from graphdock_executor.step_program.names import MEANINGS, Literal, Name, Operand
from graphdock_executor.step_program.statements import (
    HOLDERS,
    Activate,
    Block,
    Branch,
    Call,
    Compute,
    Copy,
    Decide,
    Fill,
    Flag,
    Launch,
    Leave,
    Let,
    NativeRun,
    Push,
    Put,
    Require,
    Segment,
    Statement,
    Synchronize,
    Take,
    Wait,
    Wrap,
    blocks_of,
    walk,
)

__all__ = ["CHUNK", "DEPTH", "Part", "Source", "print_step", "print_statement", "targets"]

#: Most statements in one function; compiling is linear in the number of functions of this size, or in that of their forms.
CHUNK = 256
#: Statements from which such a function ends where the last ones look like those before another end, so that many are alike; and
#: most of them in one that is a row of calls.
LEAST, MOST = 24, 48
#: Deepest nesting of blocks inside one function. The 21st nested ``while`` is a SyntaxError.
DEPTH = 8
#: Names in one ``global`` statement or chain of assignments.
_ROW = 40
_TEXT_OF = operator.attrgetter("text")


@lazy_dataclass(frozen=True, slots=True)
class Part:
    """A function of a large step, and its lines, counted from 1."""

    name: str
    first: int
    last: int


class Source:
    """Printed lines; ``statements[i]`` is the statement of line ``i``, counted from 1. ``parts``: functions of a large step."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.parts: list[Part] = []
        self.statements: list[Statement | None] = [None]

    def emit(self, text: str, statement: Statement | None = None) -> None:
        self.lines.append(text)
        self.statements.append(statement)

    @property
    def text(self) -> str:
        return "\n".join(self.lines) + "\n"


def print_step(block: Block, feeds: Sequence[Name], results: Sequence[Operand]) -> Source:
    """The source of ``step(feeds)``, which returns a tuple of the results."""
    source = Source()
    tail = "," if len(results) == 1 else ""
    returned = f"return ({', '.join([r.text for r in results])}{tail})"
    kinds = set(map(type, block.statements))
    kinds = kinds if kinds.isdisjoint(HOLDERS) else set(map(type, walk(block)))
    if not kinds.isdisjoint((Segment, Decide, NativeRun)):
        for name, body in _recorded(block):
            _Printer(source).function(name, body)
        for statement in walk(block):
            if isinstance(statement, NativeRun):
                args = statement.body, statement.args, statement.returns
                _Printer(source).function(f"{statement.call.text}_body", *args)
    if _is_small(block):
        source.emit(f"def step({', '.join([f.text for f in feeds])}):")
        _Printer(source).lines(block, 1)
        source.emit(f"    {returned}")
        return source
    printer = _Printer(source, split=True)
    parts = printer.parts(block)
    source.emit(f"def step({', '.join(['a' + f.text for f in feeds])}):")
    for row in _rows([f.text for f in feeds]):
        source.emit(f"    global {', '.join(row)}")
    for feed in feeds:
        source.emit(f"    {feed.text} = a{feed.text}")
    source.emit("    try:")
    for row in _rows(parts):
        source.emit(f"        for part in ({', '.join(row)},):")
        source.emit("            part()")
    source.emit(f"        {returned}")
    source.emit("    except Exception:")
    source.emit("        held = globals().copy()")
    source.emit("        raise")
    source.emit("    finally:")
    source.emit("        clear()")
    kept = [f.text for f in feeds] + [n.text for n in _local_targets(block)]
    source.emit("def clear():")
    for row in _rows(kept):
        source.emit(f"    global {', '.join(row)}")
        source.emit(f"    {' = '.join(row)} = None")
    source.emit("    return")
    return source


def _recorded(block: Block) -> Iterator[tuple[str, Block]]:
    """The functions that are called while something is recorded."""
    for statement in walk(block):
        if isinstance(statement, Segment):
            yield f"{statement.replay.text}_body", statement.body
        elif isinstance(statement, Decide):
            for name, inner in statement.functions():
                yield name, inner
                yield from _recorded(inner)


def _is_small(block: Block) -> bool:
    count, stack = 0, [(block, 1)]
    while stack:
        inner, depth = stack.pop()
        if depth > DEPTH + 1:
            return False
        count += len(inner.statements)
        if count > CHUNK:
            return False
        stack.extend([(b, depth + 1) for s in inner.statements for b in blocks_of(s)])
    return True


def _rows(names: Sequence[str]) -> Iterator[list[str]]:
    for start in range(0, len(names), _ROW):
        yield list(names[start : start + _ROW])


def targets(statement: Statement) -> tuple[Name, ...]:
    """The names that a statement sets."""
    kind = type(statement)
    if kind is Launch or kind is Call or kind is NativeRun:
        returns: tuple[Name, ...] = statement.returns  # type: ignore[attr-defined]
        return returns
    if isinstance(statement, Let):
        return statement.targets
    return (statement.target,) if isinstance(statement, (Compute, Take, Wrap)) else ()


def _local_targets(block: Block) -> list[Name]:
    found: dict[Name, None] = {}
    for statement in walk(block):
        if type(statement) is Launch and not statement.returns:
            continue
        for name in targets(statement):
            if MEANINGS[name.meaning].local:
                found.setdefault(name)
    return list(found)


class _Printer:
    """Prints blocks; with ``split``, what stands too deep or makes a function too long goes to a function of its own."""

    def __init__(self, source: Source, split: bool = False) -> None:
        self.source = source
        self.split = split
        self.waiting: list[tuple[str, Block]] = []
        self.count = 0

    def parts(self, block: Block) -> list[str]:
        """Print a block as functions; their names, in order of running."""
        calls = []
        for group in _groups(block):
            calls.append(self._later(group))
        while self.waiting:
            self.function(*self.waiting.pop(0))
        return calls

    def _later(self, block: Block) -> str:
        name = f"part{self.count}"
        self.count += 1
        self.waiting.append((name, block))
        return name

    def function(self, name: str, block: Block, args: Sequence[Name] = (), returns: Sequence[Name] = ()) -> None:
        self.source.emit(f"def {name}({_args(args)}):")
        first = len(self.source.lines)
        if self.split:
            for row in _rows(sorted({n.text for n in _local_targets(block)})):
                self.source.emit(f"    global {', '.join(row)}")
        self.lines(block, 1)
        self.source.emit(f"    return {_args(returns)}".rstrip())
        if self.split:
            self.source.parts.append(Part(name, first, len(self.source.lines)))

    def lines(self, block: Block, indent: int) -> None:
        """Print a block; nested blocks are indented beneath the line before them."""
        emit = self.source.emit
        stack: list[tuple[Iterator[Any], int]] = [(iter(block.statements or ("pass",)), indent)]
        while stack:
            items, depth = stack[-1]
            pad = "    " * depth
            for item in items:
                text = _TEXT.get(type(item))
                if text is not None:
                    emit(pad + text(item), item)
                elif isinstance(item, str):
                    emit(pad + item)
                elif isinstance(item, tuple):
                    head, inner, statement = item
                    emit(pad + head, statement)
                    stack.append((iter(inner.statements or ("pass",)), depth + 1))
                    break
                elif self.split and depth >= DEPTH:
                    emit(f"{pad}{self._later(Block([item]))}()", item)
                else:
                    heads = zip(_heads(item), blocks_of(item), strict=True)
                    stack.append((iter([(h, b, item) for h, b in heads]), depth))
                    break
            else:
                stack.pop()


def _groups(block: Block) -> Iterator[Block]:
    """The statements of a large step in groups. One ends behind four statements like those before the end of another."""
    start, size, last = 0, 0, 0
    least, most = min(LEAST, CHUNK), min(MOST, CHUNK)
    ends: set[int] = set()
    for end, statement in enumerate(block.statements, 1):
        size += 1
        kind = type(statement)
        if kind is Launch or kind is Call:  # the last four
            last = (last * 16 + 2 * len(statement.args) + len(statement.returns)) & 0xFFFF  # type: ignore[attr-defined]
        else:
            size += sum(1 for inner in blocks_of(statement) for _ in walk(inner))
        if size >= most or (size >= least and (not ends or last in ends)):
            ends.add(last)
            yield Block(block.statements[start:end])
            start, size = end, 0
    if start < len(block.statements):
        yield Block(block.statements[start:])


def _heads(statement: Statement) -> tuple[str, ...]:
    if isinstance(statement, Branch):
        return f"if {statement.test.text}:", "else:"
    return ("while running:",)  # a name that makes a loop stop (see `stoppers`)


def _args(operands: Sequence[Operand]) -> str:
    return ", ".join(map(_TEXT_OF, operands))


def _locked(s: Any, function: Operand, args: Sequence[Operand]) -> str:
    if s.access is None:
        return f"{function.text}({_args(args)})"
    settled = "" if s.settle is None else f"settled, {s.settle.text}, "
    return f"{s.access.text}(token, {settled}{_args((function, *args))})"


def _launch(s: Any) -> str:
    return f"{_args(s.returns)} = {_locked(s, s.kernel, s.args)}" if s.returns else _locked(s, s.kernel, s.args)


def _call(s: Any) -> str:
    return f"{_args(s.returns)} = {_locked(s, s.function, s.args)}" if s.returns else _locked(s, s.function, s.args)


def _copy(s: Any) -> str:
    return _locked(s, s.method, (s.source, s.target))


def _decide(s: Any) -> str:
    return f"{s.method.text}({', '.join([s.flag.text, *(name for name, _ in s.functions())])})"


def _let(s: Any) -> str:
    return f"{_args(s.targets)} = {_args(s.values)}"


def _compute(s: Any) -> str:
    return f"{s.target.text} = {s.template.format(*[o.text for o in s.operands])}"


def _wrap(s: Any) -> str:
    half = 1 << (s.bits - 1)
    name = s.target.text
    return f"if not -{half} <= {name} < {half}: {name} = wrap({name}, {s.bits})"


def _leave(s: Any) -> str:
    if s.limit is None:
        return f"if not {s.test.text}: break"
    return f"if {s.test.text} >= {Literal(s.limit).text}: break"


def _take(s: Any) -> str:
    element = f"{s.history.text}.pop()" if s.index is None else f"{s.history.text}[{s.index.text}]"
    return f"{s.target.text} = {element}"


_TEXT: dict[type[Statement], Callable[[Any], str]] = {
    Launch: _launch,
    Copy: _copy,
    Decide: _decide,
    Call: _call,
    Let: _let,
    Compute: _compute,
    Wrap: _wrap,
    Leave: _leave,
    Push: lambda s: f"{s.history.text}.append({s.kept.text})",
    Take: _take,
    Put: lambda s: f"{s.target.text}[()] = {s.source.text}",
    Flag: lambda s: f"{s.resource.text}.initialized = True",
    Require: lambda s: f"if not {s.resource.text}.initialized: unset({s.resource.text})",
    Activate: lambda s: f"{s.method.text}()",
    Synchronize: lambda s: f"{s.method.text}()",
    Fill: lambda s: f"fill({s.staging.text}, {s.source.text})",
    Wait: lambda s: f"{s.wait.text}({s.record.text}({s.event.text}))",
    Segment: lambda s: f"{s.replay.text}()",
    NativeRun: lambda s: f"{_args(s.returns)}{' = ' if s.returns else ''}{s.call.text}({_args(s.args)})",
}


def print_statement(statement: Statement) -> str:
    """One statement without blocks, as Python."""
    return _TEXT[type(statement)](statement)
