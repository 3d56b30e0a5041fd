"""Actions of queued work: copies, failures made on purpose, and errors with a name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from graphdock.errors import InvalidArgumentError

from graphdock_testing.driver.faults import DriverError
from graphdock_testing.driver.memory import POISON, Array

__all__ = ["Blame", "blaming", "check_alike", "failing", "first_then"]

#: What the fence raises for an error of a kernel.
Blame: TypeAlias = Callable[[Exception], Exception]


def check_alike(a: Any, b: Any) -> None:
    """Raises InvalidArgumentError unless two arrays have one dtype, and the same shape but for dims of 1."""
    if _long(a) != _long(b) or a.dtype != b.dtype:
        raise InvalidArgumentError(
            "a copy between unlike buffers", expected=f"{a.dtype} {list(a.shape)}", got=f"{b.dtype} {list(b.shape)}"
        )


def _long(array: Any) -> tuple[int, ...]:
    return tuple(dim for dim in array.shape if dim != 1)


def failing(what: str, broken: Sequence[Array], blame: Blame | None) -> Callable[[], None]:
    """Work that fails, and leaves what it was to write in pieces."""

    def fail() -> None:
        for array in broken:
            if array.flags.c_contiguous:
                array.reshape(-1).view(np.uint8).fill(POISON)
        if blame is None:
            raise DriverError(f"{what} failed when it ran")
        raise blame(DriverError(f"{what} failed when it ran"))

    return fail


def first_then(first: Callable[[], None], later: Callable[[], None]) -> Callable[[], None]:
    """Work that does one thing when it runs first, and another whenever it is replayed."""
    left = [first]
    return lambda: (left.pop() if left else later)()


def blaming(run: Callable[[], None], blame: Blame) -> Callable[[], None]:
    """``run``, with its errors as ``blame`` makes them."""

    def named() -> None:
        try:
            run()
        except Exception as error:  # noqa: BLE001 - raised again, with a name
            blamed = blame(error)
            try:
                if blamed is error:
                    raise
                raise blamed from error
            finally:
                del blamed  # its traceback holds this frame

    return named
