"""Recursion without Python's stack, for visits of bodies inside bodies."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeAlias, TypeVar

__all__ = ["Visit", "trampoline"]

T = TypeVar("T")

#: A recursive function written as a generator: it yields the visits whose results it needs, and returns its own.
Visit: TypeAlias = Generator["Visit[Any]", Any, T]


def trampoline(visit: Visit[T]) -> T:
    """Return what ``visit`` returns. Each visit that it yields is run to its end, and its result or exception handed back to it.

    Raises:
      Exception: whatever ``visit`` raises.
    """
    stack: list[Visit[Any]] = [visit]
    value: Any = None
    error: BaseException | None = None
    try:
        while stack:
            try:
                inner = stack[-1].send(value) if error is None else stack[-1].throw(error)
            except StopIteration as done:
                stack.pop()
                value, error = done.value, None
            except Exception as raised:  # noqa: BLE001 - handed to the visit that asked
                stack.pop()
                value, error = None, raised
            else:
                stack.append(inner)
                value, error = None, None
        if error is not None:
            raise error
        result: T = value
        return result
    finally:
        while stack:  # an interrupt: what the visits have entered is left, innermost first
            stack.pop().close()
