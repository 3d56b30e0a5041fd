"""``tf.nest``: lists, tuples, namedtuples and dicts of values, as structures. A dict's order is that of its sorted keys."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graphdock.errors import ArgumentTypeError, InvalidArgumentError

from graphdock_std.structures import leaves, packed

__all__ = ["assert_same_structure", "flatten", "is_nested", "map_structure", "pack_sequence_as"]


def is_nested(seq: Any) -> bool:
    """Whether a value is a list, a tuple or a dict; arrays and texts are leaves."""
    return isinstance(seq, list | tuple | Mapping)


def flatten(structure: Any, expand_composites: bool = False) -> list[Any]:
    """The leaves, left to right; a leaf is its own structure. ``expand_composites`` is taken and means nothing."""
    return list(leaves(structure))


def pack_sequence_as(structure: Any, flat_sequence: Sequence[Any], expand_composites: bool = False) -> Any:
    """The values of a flat list in a structure like ``structure``.

    Raises:
      InvalidArgumentError: there are more or fewer of them than leaves. TypeError: no list.
    """
    if not isinstance(flat_sequence, list | tuple):
        raise ArgumentTypeError("flat_sequence must be a list", got=repr(flat_sequence))
    count = len(flatten(structure))
    if count != len(flat_sequence):
        raise InvalidArgumentError(
            "a structure cannot be packed", expected=f"{count} values", got=str(len(flat_sequence))
        )
    return packed(structure, flat_sequence)


def assert_same_structure(nest1: Any, nest2: Any, check_types: bool = True, expand_composites: bool = False) -> None:
    """Refuse two structures that nest differently.

    Raises:
      InvalidArgumentError: a length, or a dict's keys, differ, or one has a leaf where the other has none. TypeError: with
        ``check_types``, two containers are of different types.
    """
    if is_nested(nest1) != is_nested(nest2):
        raise InvalidArgumentError("two structures differ", expected=_about(nest1), got=_about(nest2))
    if not is_nested(nest1):
        return
    if isinstance(nest1, Mapping) != isinstance(nest2, Mapping) or (check_types and type(nest1) is not type(nest2)):
        raise ArgumentTypeError("two structures are of different types", expected=_about(nest1), got=_about(nest2))
    if len(nest1) != len(nest2) or (isinstance(nest1, Mapping) and set(nest1) != set(nest2)):
        raise InvalidArgumentError("two structures differ", expected=_about(nest1), got=_about(nest2))
    for key in nest1 if isinstance(nest1, Mapping) else range(len(nest1)):
        assert_same_structure(nest1[key], nest2[key], check_types)


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
    return packed(structure[0], [func(*values) for values in zip(*map(leaves, structure), strict=True)])


def _about(value: Any) -> str:
    if isinstance(value, Mapping):
        return f"a dict of {', '.join(map(repr, value)) or 'nothing'}"
    return f"a {type(value).__name__} of {len(value)}" if is_nested(value) else f"one {type(value).__name__}"
