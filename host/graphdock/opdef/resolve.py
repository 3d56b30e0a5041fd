"""Resolves the ``"module:name"`` strings of OpDefs, once each."""

from __future__ import annotations

import functools
import importlib
from typing import Any

from graphdock.errors import NotFoundError, did_you_mean

__all__ = ["resolve"]


@functools.cache
def resolve(target: str) -> Any:
    """The object a ``"module:name"`` string names.

    Raises:
      NotFoundError: the module has no such name.
    """
    module_name, _, name = target.partition(":")
    module = importlib.import_module(module_name)
    try:
        return getattr(module, name)
    except AttributeError:
        raise NotFoundError(
            f"module {module_name} has no {name!r}, which an op spec names", hint=did_you_mean(name, vars(module))
        ) from None
