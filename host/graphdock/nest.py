"""Nested structures: lists, tuples, namedtuples and dicts around leaves; a dict has the order of its sorted keys. ``tf.nest``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from graphdock.errors import ArgumentTypeError, InvalidArgumentError

__all__ = [
    "assert_same_structure",
    "check_same_structure",
    "flatten",
    "flatten_up_to",
    "is_nested",
    "map_structure",
    "pack_sequence_as",
    "same_structure",
]


def is_nested(seq: Any) -> bool:
    """Return whether a value is a list, a tuple (or namedtuple) or a dict; arrays and texts are leaves."""
    return isinstance(seq, (list, tuple, Mapping))


def _children(value: Any) -> list[Any]:
    return [value[k] for k in _keys(value)] if isinstance(value, Mapping) else list(value)


def _keys(value: Mapping[Any, Any]) -> list[Any]:
    try:
        return sorted(value)
    except TypeError:
        raise InvalidArgumentError(
            "the keys of a dict in a nested structure must be sortable", got=", ".join(map(repr, value))
        ) from None


def flatten(structure: Any, expand_composites: bool = False) -> list[Any]:
    """The leaves, left to right; a leaf is its own structure. ``expand_composites`` is taken and means nothing."""
    out: list[Any] = []
    stack = [structure]
    while stack:
        item = stack.pop()
        if is_nested(item):
            stack.extend(reversed(_children(item)))
        else:
            out.append(item)
    return out


def pack_sequence_as(structure: Any, flat_sequence: Sequence[Any], expand_composites: bool = False) -> Any:
    """The values of a flat list in a structure like ``structure``.

    Raises:
      InvalidArgumentError: there are more or fewer of them than leaves. TypeError: no list.
    """
    if not isinstance(flat_sequence, (list, tuple)):
        raise ArgumentTypeError("flat_sequence must be a list", got=repr(flat_sequence))
    count = len(flatten(structure))
    if count != len(flat_sequence):
        raise InvalidArgumentError(
            "a structure cannot be packed", expected=f"{count} values", got=str(len(flat_sequence))
        )
    return _pack(structure, iter(flat_sequence))


def _pack(structure: Any, leaves: Iterator[Any]) -> Any:
    if not is_nested(structure):
        return next(leaves)
    if isinstance(structure, Mapping):
        packed = {k: _pack(structure[k], leaves) for k in _keys(structure)}
        return {k: packed[k] for k in structure}
    items = [_pack(item, leaves) for item in structure]
    if isinstance(structure, list):
        return items
    return type(structure)(*items) if hasattr(structure, "_fields") else tuple(items)


def map_structure(func: Callable[..., Any], *structure: Any, **kwargs: Any) -> Any:
    """``func`` of the leaves that stand at the same place of each structure, in a structure like the first.

    Raises:
      InvalidArgumentError, TypeError: the structures differ, as of ``assert_same_structure``; none is given. ``check_types=False``
        lets containers be of different types.
    """
    check_types = kwargs.pop("check_types", True)
    kwargs.pop("expand_composites", None)
    if kwargs or not structure:
        raise ArgumentTypeError(
            "map_structure takes a function, structures and check_types", got=", ".join(kwargs) or "no structure"
        )
    for other in structure[1:]:
        assert_same_structure(structure[0], other, check_types)
    return pack_sequence_as(structure[0], [func(*values) for values in zip(*map(flatten, structure), strict=True)])


def assert_same_structure(nest1: Any, nest2: Any, check_types: bool = True, expand_composites: bool = False) -> None:
    """Refuse two structures that nest differently.

    Raises:
      InvalidArgumentError: a length, or a dict's keys, differ, or one has a leaf where the other has none. TypeError: two
        containers are of different kinds: a dict and another, or with ``check_types`` a list and a tuple, or two namedtuples.
    """
    found = _first_difference(nest1, nest2, check_types)
    if found is not None:
        place, a, b, hint, of_kinds = found
        kind = ArgumentTypeError if of_kinds else InvalidArgumentError
        raise kind(f"two structures differ{place}", expected=_describe(a), got=_describe(b), hint=hint)


def check_same_structure(
    first: Any, second: Any, first_name: str = "the first", second_name: str = "the second"
) -> None:
    """Raise InvalidArgumentError unless both nest in the same way, of the same kinds; the message names them and the place."""
    found = _first_difference(first, second, True)
    if found is not None:
        place, a, b, hint, _ = found
        raise InvalidArgumentError(
            f"{second_name} is nested differently from {first_name}{place}",
            expected=_describe(a),
            got=_describe(b),
            hint=hint,
        )


def same_structure(first: Any, second: Any) -> bool:
    """Return whether two structures nest alike; a list is like a tuple."""
    return _first_difference(first, second, False) is None


def _first_difference(first: Any, second: Any, check_types: bool) -> tuple[str, Any, Any, str | None, bool] | None:
    """Place, what stands there in each, what one lacks, and whether their kinds differ; None where both nest alike."""
    stack: list[tuple[Any, Any, str]] = [(first, second, "")]
    while stack:
        a, b, where = stack.pop()
        place = f" at {where}" if where else ""
        if not is_nested(a) and not is_nested(b):
            continue
        if is_nested(a) is not is_nested(b):
            return place, a, b, None, False
        if isinstance(a, Mapping) is not isinstance(b, Mapping) or (check_types and not _same_kind(a, b)):
            return place, a, b, None, True
        keys_a, keys_b = _places(a), _places(b)
        if keys_a != keys_b:
            return place, a, b, _lacking(keys_a, keys_b), False
        stack.extend((x, y, f"{where}[{k!r}]") for k, x, y in zip(keys_a, _children(a), _children(b), strict=True))
    return None


def _same_kind(a: Any, b: Any) -> bool:
    if isinstance(a, Mapping) or isinstance(b, Mapping):
        return isinstance(a, Mapping) and isinstance(b, Mapping)
    if hasattr(a, "_fields") or hasattr(b, "_fields"):
        return type(a) is type(b)
    return isinstance(a, list) is isinstance(b, list)


def _places(value: Any) -> list[Any]:
    return _keys(value) if isinstance(value, Mapping) else list(range(len(value)))


def _lacking(a: list[Any], b: list[Any]) -> str | None:
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
    """Return what stands in ``structure`` at the leaves of ``shallow``; it may itself be nested (a shape given as a list).

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
