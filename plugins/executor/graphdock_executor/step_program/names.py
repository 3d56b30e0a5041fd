"""Names of a step program, and the operands that are made of them.

A name says what it stands for and how long it keeps standing for it; what is local to one run of a step is asked of the name, never
of its text.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

from graphdock.contracts.lazy_dataclass import lazy_dataclass

__all__ = ["Apply", "Literal", "MEANINGS", "Name", "Names", "Operand", "Suffixed", "helper", "is_local", "locals_of"]


@lazy_dataclass(frozen=True, slots=True)
class Meaning:
    """Meaning of the names of one kind.

    Attributes:
      letter: the names' first letter in the source.
      local: they belong to one run of a step; others are set once per instance and keep their value.
    """

    letter: str
    what: str
    local: bool = False


MEANINGS: Mapping[str, Meaning] = {
    "buffer": Meaning("b", "a planned buffer"),
    "constant": Meaning("c", "a constant in one memory space"),
    "method": Meaning("d", "a method of a device or of its queue"),
    "escape": Meaning("e", "a buffer made for one step, which the caller keeps", local=True),
    "element": Meaning("i", "an element of a history", local=True),
    "event": Meaning("y", "an event of a queue"),
    "feed": Meaning("f", "a fed array", local=True),
    "history": Meaning("j", "a history: a list of what iterations have kept", local=True),
    "static view": Meaning("g", "a view made once per instance"),
    "staging": Meaning("h", "staging memory"),
    "kernel": Meaning("k", "a kernel's compute, or a function of the host"),
    "loop": Meaning("l", "a loop variable's value, or the buffer that holds it", local=True),
    "next": Meaning("m", "the buffer of a loop variable's next value", local=True),
    "count": Meaning("n", "iterations done", local=True),
    "object": Meaning("o", "an object that a helper needs"),
    "literal": Meaning("q", "an object that a kernel asked for"),
    "stream": Meaning("r", "a random op's stream"),
    "native run": Meaning("a", "launches that are one call of native code"),
    "replay": Meaning("p", "a recorded part of the step"),
    "access": Meaning("u", "what locks a resource for one statement"),
    "scalar": Meaning("s", "a small number that the host keeps itself", local=True),
    "copy": Meaning("t", "a copy of unknown shape", local=True),
    "value": Meaning("v", "a buffer or view that a kernel made in this step", local=True),
    "variable": Meaning("w", "a variable's buffer"),
    "resource": Meaning("x", "a resource"),
    "maker": Meaning("z", "a function that makes a buffer of one dtype and shape"),
    "helper": Meaning("", "a function of the runtime"),
}


class Name:
    """One name of a step's source; equal only to itself."""

    __slots__ = ("meaning", "text")

    def __init__(self, meaning: str, text: str) -> None:
        self.meaning = meaning
        self.text = text

    def __repr__(self) -> str:
        return self.text

    def value(self, namespace: Mapping[str, Any]) -> Any:
        """Its value in an instance's namespace."""
        return namespace[self.text]


class Literal:
    """A number, a bool, None or a string, written out."""

    __slots__ = ("of",)

    def __init__(self, of: Any) -> None:
        self.of = of

    @property
    def text(self) -> str:
        return repr(self.of)

    def value(self, namespace: Mapping[str, Any]) -> Any:
        return self.of


class Suffixed:
    """An operand and what is done with it on the spot: ``.buffer``, ``.item()``, ``.copy()``, ``[()]``."""

    __slots__ = ("of", "suffix")

    def __init__(self, of: Operand, suffix: str) -> None:
        self.of = of
        self.suffix = suffix

    @property
    def text(self) -> str:
        return f"{self.of.text}{self.suffix}"

    def value(self, namespace: Mapping[str, Any]) -> Any:
        raise TypeError(f"{self.text} has a value in a step only")


class Apply:
    """A function applied where an operand stands: ``keep(b0)``."""

    __slots__ = ("args", "function")

    def __init__(self, function: Name, *args: Operand) -> None:
        self.function = function
        self.args = args

    @property
    def text(self) -> str:
        return f"{self.function.text}({', '.join([a.text for a in self.args])})"

    def value(self, namespace: Mapping[str, Any]) -> Any:
        return self.function.value(namespace)(*[a.value(namespace) for a in self.args])


Operand: TypeAlias = Name | Literal | Suffixed | Apply


def helper(name: str) -> Name:
    """The runtime's own function of that name (:data:`graphdock_executor.straight_line.helpers.HELPERS`)."""
    return Name("helper", name)


def locals_of(operand: Operand) -> Iterator[Name]:
    """The names in an operand that belong to one run of a step."""
    stack: list[Operand] = [operand]
    while stack:
        item = stack.pop()
        if isinstance(item, Name):
            if MEANINGS[item.meaning].local:
                yield item
        elif isinstance(item, Suffixed):
            stack.append(item.of)
        elif isinstance(item, Apply):
            stack.extend((item.function, *item.args))


def is_local(operand: Operand) -> bool:
    """Return whether an operand's value belongs to one run of a step: it names something local, or is read in the step."""
    return isinstance(operand, Suffixed) or any(True for _ in locals_of(operand))


class Names:
    """Gives out names; the same program gets the same names every time."""

    def __init__(self) -> None:
        counts = {meaning: map(f"{of.letter}{{}}".format, itertools.count()) for meaning, of in MEANINGS.items()}
        self._next = {meaning: texts.__next__ for meaning, texts in counts.items()}

    def new(self, meaning: str) -> Name:
        return Name(meaning, self._next[meaning]())
