"""Names of operations: what is legal, and how a name is made unique."""

from __future__ import annotations

import re

from graphdock.errors import InvalidArgumentError

__all__ = ["NameTable", "check_name"]

_OP_NAME = re.compile(r"[A-Za-z0-9.][A-Za-z0-9_.\\/>-]*")
_SCOPE_NAME = re.compile(r"[A-Za-z0-9_.\\/>-]+")


def check_name(name: str, inner: bool = False) -> None:
    """Raise InvalidArgumentError unless ``name`` may name an operation (or, when ``inner``, follow a scope)."""
    if not isinstance(name, str) or name.endswith("/") or not (_SCOPE_NAME if inner else _OP_NAME).fullmatch(name):
        raise InvalidArgumentError(
            f"{name!r} is not a valid name", expected="letters, digits and _ . - / , not beginning with _ or -"
        )


class NameTable:
    """Hands out unique names: ``MatMul``, ``MatMul_1``, ``MatMul_2``. Guarded by its graph's lock.

    Names that differ in case alone count as one, as in TensorFlow: after ``add`` comes ``Add_1``.
    """

    def __init__(self) -> None:
        self._next: dict[str, int] = {}

    def state(self) -> dict[str, int]:
        """What is taken now, for :meth:`restore`."""
        return dict(self._next)

    def restore(self, state: dict[str, int]) -> None:
        """Give back every name that was taken since."""
        self._next = state

    def unique(self, name: str, mark: bool = True) -> str:
        """``name``, or ``name_1``, ... when it is taken. With ``mark`` False nothing is taken."""
        key = name.lower()
        number = self._next.get(key)
        if number is None:
            if mark:
                self._next[key] = 1
            return name
        while f"{key}_{number}" in self._next:
            number += 1
        if mark:
            self._next[key] = number + 1
            self._next[f"{key}_{number}"] = 1
        return f"{name}_{number}"
