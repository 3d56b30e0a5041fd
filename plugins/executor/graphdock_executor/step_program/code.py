"""Code of a large step. Functions whose statements have the same form are compiled once: they differ in the names they use alone.

Python's compiler takes 7 to 12 us a line, most of it for parsing, and the functions of a large step are much alike. The text of one
of each form is compiled with other names in each place, and stands for all: each gets its own names, and its own first line.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

from graphdock_executor.step_program.printer import Source

__all__ = ["StepCode", "compile_step"]

_WORD = re.compile(r"\w+")
#: Words that are no names.
_LITERAL = re.compile(r"\b(?:\d|(?:None|True|False)\b)")
#: Lines of calls of names on names, each name as ``t``.
_CALLS = re.compile(r"(?:    (?:t(?:, t)* = )?t\((?:t(?:, t)*)?\)\n)+")


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
    known: dict[tuple[int, str], tuple[CodeType, list[int]]] = {}
    functions: dict[str, CodeType] = {}
    for part in source.parts:
        within = lines[part.first : part.last - 1]
        head = next((i for i, line in enumerate(within) if not line.startswith("    global ")), 0)
        text = "\n".join([*within[head:], ""])
        form = _WORD.sub("t", text)
        if _LITERAL.search(text) or not _CALLS.fullmatch(form):
            continue
        if (head, form) not in known:
            code = _template(head, form, filename)
            known[head, form] = code, [int(place[1:]) for place in code.co_names]
        template, order = known[head, form]
        places = tuple(map(_WORD.findall(text).__getitem__, order))
        functions[part.name] = template.replace(
            co_names=places, co_firstlineno=part.first, co_name=part.name, co_qualname=part.name
        )
        lines[part.first - 1 : part.last] = [""] * (part.last - part.first + 1)
    return StepCode(compile("\n".join(lines) + "\n", filename, "exec"), functions)


def _template(head: int, form: str, filename: str) -> CodeType:
    """The code of a function of such calls, in which each place has a name of its own: ``t`` and its number.

    Args:
      head: lines between the first one and the calls.
    """
    numbers = itertools.count()
    text = _WORD.sub(lambda word: f"t{next(numbers)}", form)
    bound = ", ".join([line.partition(" = ")[0].strip() for line in text.splitlines() if " = " in line])
    above = [f"    global {bound}" if bound else "", *[""] * head][:head]
    text = "\n".join(["def part():", *above, text + "    return", ""])
    (code,) = [c for c in compile(text, filename, "exec").co_consts if isinstance(c, CodeType)]
    return code
