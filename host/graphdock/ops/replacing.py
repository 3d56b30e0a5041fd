"""Places of definitions: a cell or file that is run again replaces what it defined before."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

__all__ = ["place_of", "same_place"]

#: Place of whatever cells of a notebook, or lines typed to Python, define.
_NOTEBOOK = "the notebook"


def place_of(function: Callable[..., Any]) -> tuple[str, str] | None:
    """File and name of a function, where running them again defines it again; of one from a notebook's cell the notebook.

    None for a function that a function makes: each call of that makes another.
    """
    while isinstance(function, functools.partial):
        function = function.args[0] if function.args and callable(function.args[0]) else function.func
    code = getattr(function, "__code__", None)
    if code is None or "<locals>" in function.__qualname__:
        return None
    if function.__module__ == "__main__" and not os.path.exists(code.co_filename):
        return _NOTEBOOK, ""
    return os.path.realpath(code.co_filename), function.__qualname__


def same_place(old: Callable[..., Any], new: Callable[..., Any]) -> bool:
    """Return whether ``new`` is ``old``, edited and run again: it stands in the same notebook, or under the same name in
    the same file.
    """
    return place_of(new) is not None and place_of(old) == place_of(new)
