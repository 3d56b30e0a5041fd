"""Errors of plugins' objects that lack methods of their contract, or return something else than they should.

:func:`graphdock.contracts.device.returned` looks, and imports this for an error alone.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from graphdock.errors import PluginError

__all__ = ["abstract", "misfit", "unfinished"]

#: Words of Python for a class that lacks methods, up to 3.11 and since.
_ABSTRACT = re.compile(
    r"Can't instantiate abstract class (\w+) (?:with|without an implementation for) abstract methods? (.*)"
)


def abstract(error: TypeError, contract: type[Any], plugin: str, method: str) -> PluginError | None:
    """The error of a class that lacks methods, of which an instance was to be made; None for any other TypeError."""
    lacking = _ABSTRACT.match(str(error))
    if lacking is None:
        return None
    name, methods = lacking[1], re.findall(r"\w+", lacking[2])
    return PluginError(
        f"plugin {plugin!r}: {method} makes a {name}, which lacks {', '.join(methods)}", hint=_hint(contract, methods)
    )


def misfit(found: object, contract: type[Any], plugin: str, method: str) -> PluginError:
    """The error of a method that returned something that is no instance of the contract's class."""
    methods = sorted(m for m in _abstract(contract) if not callable(getattr(found, m, None)))
    without = f", which lacks {', '.join(methods)}" if methods and found is not None else ""
    return PluginError(
        f"plugin {plugin!r}: {method} returned {found!r:.200}{without}",
        expected=f"a graphdock.contracts.{contract.__name__}",
        got=type(found).__name__,
        hint=f"derive its class from {contract.__name__}" if found is not None else f"return the {contract.__name__}",
    )


def unfinished(package: str, contracts: Iterable[type]) -> Iterator[str]:
    """Yield each class of a package's imported modules that derives from a contract and lacks methods of it, with these.

    A class from which others derive is left out, and one that declares abstract methods of its own.
    """
    seen: set[type] = set()
    open_ = list(contracts)
    while open_:
        cls = open_.pop()
        if cls in seen:
            continue
        seen.add(cls)
        derived: list[type] = cls.__subclasses__()
        open_ += derived
        if derived or cls.__module__.partition(".")[0] != package or not _abstract(cls):
            continue
        if (
            getattr(sys.modules.get(cls.__module__), cls.__name__, None) is not cls
        ):  # of a test, or of a module that is gone
            continue
        owner = {name: next(c for c in cls.__mro__ if name in vars(c)) for name in sorted(_abstract(cls))}
        if all(c.__module__.startswith("graphdock.contracts.") for c in owner.values()):
            name, base = next(iter(owner.items()))
            yield f"{cls.__module__}.{cls.__qualname__} lacks {', '.join(owner)}: {_hint(base, [name])}"


def _abstract(cls: type) -> frozenset[str]:
    return getattr(cls, "__abstractmethods__", frozenset())


def _hint(contract: type, methods: Iterable[str]) -> str | None:
    """Return the first of the methods, as the contract has it."""
    contracts = [contract, *contract.__subclasses__()]  # such as a QueuedDevice where a Device will do
    for name in methods:
        method: Any = next((getattr(c, name) for c in contracts if hasattr(c, name)), None)
        if callable(method):
            first = (inspect.getdoc(method) or "").partition("\n")[0]
            return f"`def {name}{inspect.signature(method)}`: {first}"
    return None
