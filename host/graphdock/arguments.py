"""Checks of arguments that many functions share, made before anything is done with them."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable
from typing import Any

from graphdock.errors import ArgumentTypeError, InvalidArgumentError, did_you_mean

__all__ = ["check_keywords", "check_type", "utf8"]


def check_type(value: Any, kinds: type | tuple[type, ...], what: str, expected: str) -> None:
    """Refuse an argument of the wrong Python type.

    Raises:
      ArgumentTypeError: ``value`` is no instance of ``kinds``; it names ``what`` and says what was ``expected``.
    """
    if not isinstance(value, kinds):
        raise ArgumentTypeError(f"{what} is of the wrong type", expected=expected, got=reprlib.repr(value))


def utf8(text: str, what: str) -> bytes:
    """The bytes of a text.

    Raises:
      InvalidArgumentError: it has none: a path that is no UTF-8 is spelled with halves of characters, as is half an emoji.
    """
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(
            f"{what} has no form in UTF-8: {error.reason}",
            got=reprlib.repr(text),
            hint="give bytes; os.fsencode(path) makes them of a path",
        ) from None


def check_keywords(given: Iterable[str], known: Iterable[str], what: str) -> None:
    """Refuse a keyword that a callable with ``**keywords`` does not have.

    Raises:
      InvalidArgumentError: the first of ``given`` that is not ``known``; it names ``what`` and suggests the nearest.
    """
    names = list(known)
    for name in given:
        if name not in names:
            raise InvalidArgumentError(
                f"{what} has no argument {name!r}", expected=", ".join(names), hint=did_you_mean(name, names)
            )
