"""Nested structures of elements: tuples, namedtuples and dicts around components. A list is a component, as in ``tf.data``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

__all__ = ["flatten", "flatten_up_to", "map_up_to", "pack"]


def _nested(value: Any) -> bool:
    return isinstance(value, tuple | Mapping)


def flatten(structure: Any) -> list[Any]:
    """The components, left to right; of a dict in the order of its sorted keys."""
    return list(_leaves(structure))


def _leaves(structure: Any) -> Iterator[Any]:
    if isinstance(structure, Mapping):
        for key in sorted(structure):
            yield from _leaves(structure[key])
    elif isinstance(structure, tuple):
        for item in structure:
            yield from _leaves(item)
    else:
        yield structure


def pack(template: Any, components: Any) -> Any:
    """Components in a structure like ``template``."""
    left = iter(components)

    def build(part: Any) -> Any:
        if isinstance(part, Mapping):
            made = {key: build(part[key]) for key in sorted(part)}
            ordered = {key: made[key] for key in part}
            return ordered if type(part) is dict else type(part)(ordered)  # type: ignore[call-arg]
        if isinstance(part, tuple):
            items = [build(item) for item in part]
            return type(part)(*items) if hasattr(part, "_fields") else tuple(items)
        return next(left)

    return build(template)


def flatten_up_to(template: Any, value: Any) -> list[Any]:
    """The parts of a value that stand where the components of ``template`` do; a list stands for a tuple.

    Raises:
      TypeError, ValueError: the value has another structure.
    """
    if isinstance(template, Mapping):
        if not isinstance(value, Mapping):
            raise TypeError(f"The two structures don't have the same sequence type: a dict is expected, not {value!r}")
        if set(template) != set(value):
            raise ValueError(
                f"The two dictionaries don't have the same set of keys: {sorted(template)}, {sorted(value)}"
            )
        return [leaf for key in sorted(template) for leaf in flatten_up_to(template[key], value[key])]
    if isinstance(template, tuple):
        if not isinstance(value, tuple | list):
            raise TypeError(f"The two structures don't have the same sequence type: a tuple is expected, not {value!r}")
        if len(template) != len(value):
            raise ValueError(f"The two structures don't have the same length: {len(template)} and {len(value)}")
        return [leaf for one, item in zip(template, value, strict=True) for leaf in flatten_up_to(one, item)]
    return [value]


def map_up_to(function: Callable[[Any], Any], template: Any, value: Any) -> Any:
    """``function`` of each part of a value that stands where a component of ``template`` does, in that structure."""
    return pack(template, [function(part) for part in flatten_up_to(template, value)])
