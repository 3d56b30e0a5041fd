"""Spelling of names: op types, snake case, Python identifiers."""

from __future__ import annotations

import keyword
import re

from graphdock.contracts.op_table import snake

__all__ = ["BARE_NAMESPACES", "LONGEST", "is_dotted", "is_name", "local", "op_type", "snake"]

#: Namespaces whose op types carry no prefix.
BARE_NAMESPACES = ("core", "std")
#: Most characters of a name.
LONGEST = 100

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


def is_name(text: object) -> bool:
    """Return whether a spec may call something so: generated code binds it, beside names of its own that begin with ``_``."""
    if not isinstance(text, str) or len(text) > LONGEST:
        return False
    return _NAME.fullmatch(text) is not None and not keyword.iskeyword(text)


def is_dotted(text: object) -> bool:
    """Return whether the text is a dotted name of Python, in ASCII."""
    if not isinstance(text, str) or not text.isascii() or len(text) > 4 * LONGEST:
        return False
    return all(part.isidentifier() and not keyword.iskeyword(part) for part in text.split("."))


def op_type(namespace: str, name: str) -> str:
    """The type string of an op's nodes."""
    return name if namespace in BARE_NAMESPACES else f"{namespace}.{name}"


def local(name: str, taken: tuple[str, ...] = ()) -> str:
    """A Python identifier for a spec's name: an underscore is added to keywords and to names already taken."""
    while keyword.iskeyword(name) or name in taken:
        name += "_"
    return name
