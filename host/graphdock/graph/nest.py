"""Nested structures of loop variables and branch results: lists, tuples, namedtuples and dicts (by sorted key) around
leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from graphdock.errors import InvalidArgumentError

__all__ = ["assert_same_structure", "flatten", "flatten_up_to", "is_nested", "map_structure", "pack_sequence_as"]


def is_nested(value: Any) -> bool:
    """Whether ``value`` is a list, a tuple (or namedtuple) or a mapping; anything else is a leaf."""
    return isinstance(value, (list, tuple, Mapping))


def _children(value: Any) -> list[Any]:
    return [value[k] for k in _keys(value)] if isinstance(value, Mapping) else list(value)


def _keys(value: Mapping[Any, Any]) -> list[Any]:
    try:
        return sorted(value)
    except TypeError:
        raise InvalidArgumentError(
            "the keys of a dict in a nested structure must be sortable", got=", ".join(map(repr, value))
        ) from None


def flatten(structure: Any) -> list[Any]:
    """The leaves, left to right; dicts in the order of their sorted keys. A leaf is its own structure."""
    out: list[Any] = []
    stack = [structure]
    while stack:
        item = stack.pop()
        if is_nested(item):
            stack.extend(reversed(_children(item)))
        else:
            out.append(item)
    return out


def pack_sequence_as(structure: Any, flat: Sequence[Any]) -> Any:
    """``flat`` in the shape of ``structure``.

    Raises:
      InvalidArgumentError: the numbers of leaves differ.
    """
    count = len(flatten(structure))
    if count != len(flat):
        raise InvalidArgumentError("a structure cannot be packed", expected=f"{count} leaves", got=str(len(flat)))
    return _pack(structure, iter(flat))


def _pack(structure: Any, leaves: Iterator[Any]) -> Any:
    if not is_nested(structure):
        return next(leaves)
    if isinstance(structure, Mapping):
        packed = {k: _pack(structure[k], leaves) for k in _keys(structure)}
        return {k: packed[k] for k in structure}
    items = [_pack(item, leaves) for item in structure]
    return _sequence_like(structure, items)


def _sequence_like(structure: Any, items: list[Any]) -> Any:
    if isinstance(structure, list):
        return items
    return type(structure)(*items) if hasattr(structure, "_fields") else tuple(items)


def map_structure(function: Callable[..., Any], structure: Any) -> Any:
    """The structure with ``function`` applied to each leaf."""
    return pack_sequence_as(structure, [function(leaf) for leaf in flatten(structure)])


def assert_same_structure(
    first: Any, second: Any, first_name: str = "the first", second_name: str = "the second", check_types: bool = True
) -> None:
    """Raise InvalidArgumentError unless both nest in the same way; the message shows where they first differ.

    Args:
      check_types: also require the same kind of container (list, tuple, namedtuple class, dict) at each place.
    """
    stack: list[tuple[Any, Any, str]] = [(first, second, "")]
    while stack:
        a, b, where = stack.pop()
        place = f" at {where}" if where else ""
        nested_a, nested_b = is_nested(a), is_nested(b)
        if not nested_a and not nested_b:
            continue
        if nested_a is not nested_b or (check_types and not _same_kind(a, b)):
            raise InvalidArgumentError(
                f"{second_name} is nested differently from {first_name}{place}",
                expected=_describe(a),
                got=_describe(b),
            )
        keys_a, keys_b = _places(a), _places(b)
        if keys_a != keys_b:
            raise InvalidArgumentError(
                f"{second_name} is nested differently from {first_name}{place}",
                expected=_describe(a),
                got=_describe(b),
                hint=_difference(keys_a, keys_b),
            )
        stack.extend((x, y, f"{where}[{k!r}]") for k, x, y in zip(keys_a, _children(a), _children(b), strict=True))


def _same_kind(a: Any, b: Any) -> bool:
    if isinstance(a, Mapping) or isinstance(b, Mapping):
        return isinstance(a, Mapping) and isinstance(b, Mapping)
    if hasattr(a, "_fields") or hasattr(b, "_fields"):
        return type(a) is type(b)
    return isinstance(a, list) is isinstance(b, list)


def _places(value: Any) -> list[Any]:
    return _keys(value) if isinstance(value, Mapping) else list(range(len(value)))


def _difference(a: list[Any], b: list[Any]) -> str | None:
    missing, extra = [k for k in a if k not in b], [k for k in b if k not in a]
    parts = []
    if missing:
        parts.append("missing: " + ", ".join(map(repr, missing)))
    if extra:
        parts.append("not expected: " + ", ".join(map(repr, extra)))
    return "; ".join(parts) or None


def _describe(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"a dict with the keys {', '.join(map(repr, _keys(value))) or 'none'}"
    fields: tuple[str, ...] | None = getattr(value, "_fields", None)
    if fields is not None:
        return f"a {type(value).__name__} with the fields {', '.join(fields)}"
    if isinstance(value, (list, tuple)):
        return f"a {type(value).__name__} of {len(value)}"
    return f"one {type(value).__name__}"


def flatten_up_to(
    shallow: Any, structure: Any, name: str = "the structure", shallow_name: str = "the other"
) -> list[Any]:
    """What stands in ``structure`` at the leaves of ``shallow``; it may itself be nested (a shape given as a list).

    Raises:
      InvalidArgumentError: ``structure`` does not reach as deep as ``shallow``, or has other lengths or keys.
    """
    out: list[Any] = []
    stack: list[tuple[Any, Any]] = [(shallow, structure)]
    while stack:
        a, b = stack.pop()
        if not is_nested(a):
            out.append(b)
            continue
        if not is_nested(b) or isinstance(a, Mapping) is not isinstance(b, Mapping) or _places(a) != _places(b):
            raise InvalidArgumentError(
                f"{name} does not have the structure of {shallow_name}", expected=_describe(a), got=_describe(b)
            )
        stack.extend(reversed(list(zip(_children(a), _children(b), strict=True))))
    return out
