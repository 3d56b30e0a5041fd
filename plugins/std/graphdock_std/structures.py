"""Values in lists, tuples and dicts, as programs hand them to layers and cells."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

__all__ = ["leaves", "mapped"]


def leaves(structure: Any) -> Iterator[Any]:
    """The values of nested lists, tuples and dicts, of a dict in the order of its sorted keys."""
    if isinstance(structure, Mapping):
        for key in sorted(structure):
            yield from leaves(structure[key])
    elif isinstance(structure, list | tuple):
        for item in structure:
            yield from leaves(item)
    else:
        yield structure


def mapped(function: Callable[[Any], Any], structure: Any) -> Any:
    """The same structure of what ``function`` makes of each value."""
    if isinstance(structure, Mapping):
        return {key: mapped(function, value) for key, value in structure.items()}
    if isinstance(structure, list | tuple):
        made = [mapped(function, item) for item in structure]
        if isinstance(structure, list):
            return made
        return type(structure)(*made) if hasattr(structure, "_fields") else tuple(made)
    return function(structure)
