"""Public functions that take the same: their signature, types and defaults are written once."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

__all__ = ["variants"]

_T = TypeVar("_T")
_P = ParamSpec("_P")
_R = TypeVar("_R")


def variants(body: Callable[Concatenate[str, _T, _P], _R]) -> Callable[[str, _T, str], Callable[_P, _R]]:
    """Decorate what such functions do: ``body(name, what, doc)`` is the one of that name, documented so.

    A call of it is ``body(name, what, ...)`` with the arguments that it is given. ``inspect.signature`` and a type checker see the
    body's without the first two, and a call that does not fit them is a TypeError that says the function's name.
    """
    whole = inspect.signature(body)
    signature = whole.replace(parameters=[*whole.parameters.values()][2:])

    def variant(name: str, what: _T, doc: str) -> Callable[_P, _R]:
        def function(*args: _P.args, **named: _P.kwargs) -> _R:
            try:
                return body(name, what, *args, **named)
            except TypeError:
                try:
                    signature.bind(*args, **named)
                except TypeError as error:
                    raise TypeError(f"{name}() {error}") from None
                raise

        function.__name__ = function.__qualname__ = name
        function.__module__, function.__doc__ = body.__module__, doc
        function.__annotations__ = {
            n: a for n, a in body.__annotations__.items() if n in {*signature.parameters, "return"}
        }
        function.__dict__.update(__signature__=signature, __wrapped__=body)
        return function

    return variant
