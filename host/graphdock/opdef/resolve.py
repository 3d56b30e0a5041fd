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
      NotFoundError: there is no such module, or it has no such name.
    """
    module_name, _, name = target.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise  # the module is there, and imports one that is not
        raise NotFoundError(f"there is no module {module_name!r}, which an op spec names") from error
    try:
        return getattr(module, name)
    except AttributeError:
        raise NotFoundError(
            f"module {module_name} has no {name!r}, which an op spec names", hint=did_you_mean(name, vars(module))
        ) from None
