"""Code of a large step. Functions whose statements have the same form are compiled once: they differ in the names they use alone.

Python's compiler takes 7 to 12 us a line, most of it for parsing, and the functions of a large step are much alike. The text of one
of each form is compiled with other names in each place, and stands for all: each gets its own names, and its own first line.
"""

from __future__ import annotations

import itertools
import re
import string
from dataclasses import dataclass
from types import CodeType, FunctionType
from typing import Any

from graphdock_executor.step_program.printer import Source

__all__ = ["StepCode", "compile_step"]

#: Letters of words as ``t``, capital ones, as ``None`` has one, as ``T``, and digits as 0.
_FORM = bytes.maketrans(
    (string.ascii_lowercase + "_" + string.ascii_uppercase + string.digits).encode(), b"t" * 27 + b"T" * 26 + b"0" * 10
)
#: What stands between words, as spaces.
_BETWEEN = str.maketrans("(),=", "    ")
_WORD = re.compile("t+")
#: Lines of calls of names on names.
_CALLS = re.compile(r"(?:    (?:t+(?:, t+)* = )?t+\((?:t+(?:, t+)*)?\)\n)+")


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
    known: dict[tuple[int, bytes], tuple[CodeType, list[int]] | None] = {}
    functions: dict[str, CodeType] = {}
    for part in source.parts:
        within = lines[part.first : part.last - 1]
        head = next((i for i, line in enumerate(within) if not line.startswith("    global ")), 0)
        text = "\n".join([*within[head:], ""])
        form = text.encode().translate(_FORM)
        if b"(0" in form or b" 0" in form or b"T" in form:  # a literal
            continue
        key = head, form.translate(None, b"0")
        if key not in known:
            known[key] = _template(head, key[1].decode(), filename)
        template = known[key]
        if template is None:
            continue
        code, order = template
        places = tuple(map(text.translate(_BETWEEN).split().__getitem__, order))
        functions[part.name] = code.replace(
            co_names=places, co_firstlineno=part.first, co_name=part.name, co_qualname=part.name
        )
        lines[part.first - 1 : part.last] = [""] * (part.last - part.first + 1)
    return StepCode(compile("\n".join(lines) + "\n", filename, "exec"), functions)


def _template(head: int, form: str, filename: str) -> tuple[CodeType, list[int]] | None:
    """The code of a function of such calls, in which each place has a name of its own: ``t`` and its number; and these, as the code
    orders them. None where these are no calls.

    Args:
      head: lines between the first one and the calls.
    """
    if not _CALLS.fullmatch(form):
        return None
    numbers = itertools.count()
    text = _WORD.sub(lambda word: f"t{next(numbers)}", form)
    bound = ", ".join([line.partition(" = ")[0].strip() for line in text.splitlines() if " = " in line])
    above = [f"    global {bound}" if bound else "", *[""] * head][:head]
    text = "\n".join(["def part():", *above, text + "    return", ""])
    (code,) = [c for c in compile(text, filename, "exec").co_consts if isinstance(c, CodeType)]
    return code, [int(place[1:]) for place in code.co_names]
