"""The name of an op of a Python function, and the op type that it stands for."""

from __future__ import annotations

import re

from graphdock.errors import InvalidArgumentError

__all__ = ["type_of"]

_NAME = re.compile(r"([a-z][a-z0-9_]*)::([a-z][a-z0-9]*(?:_[a-z][a-z0-9]*)*)")
#: Namespaces of graphdock's own ops.
_RESERVED = ("core", "std", "graphdock", "user")


def type_of(name: str) -> str:
    """The op type of a custom op's name: ``geo::great_circle`` -> ``geo.GreatCircle``.

    Each word begins with a letter, so no two names give one type.

    Raises:
      InvalidArgumentError: not ``namespace::name`` in lower case, or a namespace of graphdock's own.
    """
    found = _NAME.fullmatch(name) if isinstance(name, str) else None
    if found is None:
        raise InvalidArgumentError(
            f"{name!r} is no name of a custom op",
            expected='"namespace::name", in lower case, each word beginning with a letter',
            hint='such as "geo::great_circle", which makes the op type geo.GreatCircle',
        )
    namespace, function = found.groups()
    if namespace in _RESERVED:
        raise InvalidArgumentError(
            f"the namespace {namespace!r} is graphdock's own", hint="take the name of your project"
        )
    return f"{namespace}.{''.join(word.capitalize() for word in function.split('_'))}"
