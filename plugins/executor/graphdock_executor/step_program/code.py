"""Code of a large step. Functions whose statements have the same form are compiled once: they differ in the names they use alone.

Python's compiler takes 7 to 12 us a line, most of it for parsing, and the functions of a large step are much alike. The text of one
of each form is compiled with other names in each place, and stands for all: each gets its own names, and its own first line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

from graphdock_executor.step_program.names import Name
from graphdock_executor.step_program.printer import Source
from graphdock_executor.step_program.statements import Call, Copy, Launch, Statement

__all__ = ["StepCode", "compile_step"]

#: Names that a statement sets, and in how many places it reads one.
_Form = tuple[int, int]


@dataclass(frozen=True, slots=True)
class StepCode:
    """Code of a step's module, and that of functions which it does not define itself, by name."""

    module: CodeType
    functions: dict[str, CodeType]

    def define(self, namespace: dict[str, Any]) -> None:
        """Define all functions in an instance's namespace."""
        exec(self.module, namespace)  # noqa: S102 - the source is our own
        for name, code in self.functions.items():
            namespace[name] = FunctionType(code, namespace, name)


def compile_step(source: Source, filename: str) -> StepCode:
    """The code of a step's source. Lines are where they are in the text, for tracebacks and traces."""
    lines = source.lines.copy()
    known: dict[Any, CodeType] = {}
    functions: dict[str, CodeType] = {}
    for part in source.parts:
        read = [_names(s) for s in part.block.statements]
        if None in read:
            continue
        forms = tuple([form for form, _ in read])  # type: ignore[misc]
        head = part.last - part.first - len(forms) - 1
        template = known.get((head, forms))
        if template is None:
            template = known[head, forms] = _template(head, forms, filename)
        names = [n.text for _, found in read for n in found]  # type: ignore[misc]
        places = tuple([names[int(place[1:])] for place in template.co_names])
        functions[part.name] = template.replace(
            co_names=places, co_firstlineno=part.first, co_name=part.name, co_qualname=part.name
        )
        lines[part.first - 1 : part.last] = [""] * (part.last - part.first + 1)
    return StepCode(compile("\n".join(lines) + "\n", filename, "exec"), functions)


def _names(statement: Statement) -> tuple[_Form, Sequence[Name]] | None:
    """The form of a statement that is one call of names on names, and the names; None for any other."""
    kind = type(statement)
    returns: tuple[Name, ...] = ()
    read: tuple[Any, ...]
    if kind is Launch:
        assert isinstance(statement, Launch)
        returns, read = statement.returns, (statement.kernel, *statement.args)
    elif kind is Call:
        assert isinstance(statement, Call)
        returns, read = statement.returns, (statement.function, *statement.args)
    elif kind is Copy:
        assert isinstance(statement, Copy)
        read = statement.method, statement.source, statement.target
    else:
        return None
    if statement.access is not None or any([type(n) is not Name for n in read]):
        return None
    return (len(returns), len(read)), (*returns, *read)


def _template(head: int, forms: Sequence[_Form], filename: str) -> CodeType:
    """The code of a function of such statements, in which each place has a name of its own: ``t`` and its number.

    Args:
      head: lines between the first one and the statements.
    """
    lines, bound, at = [], list[str](), 0
    for returns, read in forms:
        names = [f"t{i}" for i in range(at, at + returns + read)]
        at += returns + read
        bound += names[:returns]
        target = f"{', '.join(names[:returns])} = " if returns else ""
        lines.append(f"    {target}{names[returns]}({', '.join(names[returns + 1 :])})")
    above = [f"    global {', '.join(bound)}" if bound else ""] + [""] * head
    text = "\n".join(["def part():", *above[:head], *lines, "    return", ""])
    (code,) = [c for c in compile(text, filename, "exec").co_consts if isinstance(c, CodeType)]
    return code
