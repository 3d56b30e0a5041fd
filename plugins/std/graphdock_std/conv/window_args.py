"""Arguments of windows as TensorFlow 1 takes them: short forms of strides, paddings as pairs, and names that changed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphdock.errors import InvalidArgumentError


def either(new_name: str, new: Any, old_name: str, old: Any, required: bool = True) -> Any:
    """The value of an argument that has two names.

    Raises:
      InvalidArgumentError: both are given, or none and one is required.
    """
    if new is not None and old is not None:
        raise InvalidArgumentError(f"{new_name} and {old_name} are one argument under two names", got="both")
    if required and new is None and old is None:
        raise InvalidArgumentError(f"{new_name} is missing")
    return old if new is None else new


def channels_first(data_format: str | None) -> bool:
    return data_format is not None and data_format.startswith("NC")


def per_dim(value: Any, rank: int, data_format: str | None, name: str) -> list[int]:
    """A number per dim of the input, from one, one per spatial dim, or one per dim; 1 for all from None.

    Raises:
      InvalidArgumentError: another number of them.
    """
    values = (
        [1] if value is None else [value] if isinstance(value, int) or not hasattr(value, "__len__") else list(value)
    )
    values = [int(v) for v in values]
    if len(values) == rank:
        return values
    if len(values) == 1:
        values *= rank - 2
    if len(values) != rank - 2:
        raise InvalidArgumentError(f"{name} should be of length 1, {rank - 2} or {rank}", got=str(values))
    return [1, 1, *values] if channels_first(data_format) else [1, *values, 1]


def per_spatial_dim(value: Any, count: int, name: str) -> list[int]:
    """A number per spatial dim, from one, one per spatial dim, or None.

    Raises:
      InvalidArgumentError: another number of them, or one that is not positive.
    """
    values = (
        [1] * count if value is None else [int(v) for v in (value if hasattr(value, "__len__") else [value] * count)]
    )
    if len(values) == 1:
        values *= count
    if len(values) != count or min(values) < 1:
        raise InvalidArgumentError(f"{name} should be {count} positive numbers, one per spatial dim", got=str(values))
    return values


def paddings(padding: Any, rank: int) -> dict[str, Any]:
    """The attributes of a padding: one of the words, or pairs of elements before and after, one per dim of the input.

    Raises:
      InvalidArgumentError: pairs for another number of dims, or the word EXPLICIT, which pairs stand for.
    """
    if isinstance(padding, str):
        if padding == "EXPLICIT":
            raise InvalidArgumentError(
                "padding EXPLICIT is said by the pairs themselves", hint="padding=[[0, 0], [1, 1], [1, 1], [0, 0]]"
            )
        return {"padding": padding}
    if padding is None:
        raise InvalidArgumentError("padding is missing", expected="SAME, VALID or pairs of numbers")
    pairs = [list(pair) if isinstance(pair, Sequence) or hasattr(pair, "__len__") else [pair] for pair in padding]
    if len(pairs) != rank or any(len(pair) != 2 for pair in pairs):
        raise InvalidArgumentError(
            "padding must have a pair of numbers for each dim", expected=f"{rank} pairs", got=str(pairs)
        )
    return {"padding": "EXPLICIT", "explicit_paddings": [int(n) for pair in pairs for n in pair]}


def sliding(strides: Any, padding: Any, data_format: str, dilations: Any, rank: int = 4) -> dict[str, Any]:
    """The attributes of a convolution over an input of a rank, from what its function takes.

    Raises:
      InvalidArgumentError: as :func:`per_dim` and :func:`paddings`.
    """
    return {
        "strides": per_dim(strides, rank, data_format, "strides"),
        **paddings(padding, rank),
        "data_format": data_format,
        "dilations": per_dim(dilations, rank, data_format, "dilations"),
    }
