"""How names are spelled: op types, snake case, Python identifiers."""

from __future__ import annotations

import keyword
import re

__all__ = ["BARE_NAMESPACES", "local", "op_type", "snake"]

#: Namespaces whose op types carry no prefix.
BARE_NAMESPACES = ("core", "std")


def snake(name: str) -> str:
    """``MatMul`` -> ``mat_mul``, ``LRN`` -> ``lrn``, ``Conv2DGrad`` -> ``conv2d_grad``, ``While`` -> ``while_``."""
    name = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name)
    name = re.sub(r"([0-9])([A-Z][a-z])", r"\1_\2", name)
    name = re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower()
    return f"{name}_" if keyword.iskeyword(name) else name


def op_type(namespace: str, name: str) -> str:
    """The type string of an op's nodes."""
    return name if namespace in BARE_NAMESPACES else f"{namespace}.{name}"


def local(name: str, taken: tuple[str, ...] = ()) -> str:
    """A Python identifier for a spec's name: an underscore is added to keywords and to names already taken."""
    while keyword.iskeyword(name) or name in taken:
        name += "_"
    return name
