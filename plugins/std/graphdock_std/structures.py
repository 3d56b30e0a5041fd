"""Values in lists, tuples and dicts, as programs hand them to layers and cells."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

__all__ = ["leaves", "mapped", "packed", "same_structure"]


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


def packed(structure: Any, flat: Iterable[Any]) -> Any:
    """A structure like that one of other values, given in the order of :func:`leaves`."""
    values = iter(flat)
    if isinstance(structure, Mapping):
        made = {key: packed(structure[key], values) for key in sorted(structure)}
        return {key: made[key] for key in structure}
    if isinstance(structure, list | tuple):
        items = [packed(item, values) for item in structure]
        if isinstance(structure, list):
            return items
        return type(structure)(*items) if hasattr(structure, "_fields") else tuple(items)
    return next(values)


def same_structure(first: Any, second: Any) -> bool:
    """Whether two structures nest alike; a list is like a tuple."""
    if isinstance(first, Mapping) or isinstance(second, Mapping):
        both = isinstance(first, Mapping) and isinstance(second, Mapping)
        return both and set(first) == set(second) and all(same_structure(first[k], second[k]) for k in first)
    if isinstance(first, list | tuple) or isinstance(second, list | tuple):
        both = isinstance(first, list | tuple) and isinstance(second, list | tuple)
        return both and len(first) == len(second) and all(map(same_structure, first, second))
    return True
