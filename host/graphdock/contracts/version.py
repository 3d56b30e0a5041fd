"""The version of the contracts in this package, the range syntax of a manifest's ``api`` field, and names of earlier versions,
whose use is an error that says the new one.
"""

from __future__ import annotations

import re
from typing import Any, NoReturn

from graphdock.errors import ManifestError

__all__ = ["API_RANGE", "API_VERSION", "RenamedAttribute", "api_accepts", "renamed_word"]


#: (major, minor). Stays 0.x until two foreign devices pass conformance; every change is an ADR and a bump.
API_VERSION = (0, 3)
#: What a package written for these contracts puts into its manifest.
API_RANGE = f">={API_VERSION[0]}.{API_VERSION[1]},<{API_VERSION[0]}.{API_VERSION[1] + 1}"

_TERM = re.compile(r"\s*(>=|<)\s*(\d{1,9})(?:\.(\d{1,9}))?\s*")


def api_accepts(text: str, version: tuple[int, int] = API_VERSION) -> bool:
    """Return whether a range such as ``">=0.3,<0.4"`` holds for ``version``. Only ``>=`` and ``<`` are allowed.

    Raises:
      ManifestError: the text is not such a range.
    """
    holds = True
    for term in text.split(","):
        match = _TERM.fullmatch(term)
        if match is None:
            raise ManifestError(
                f"api = {text!r} is not a range",
                expected="terms with >= and <, separated by commas",
                hint=f'written for this version: api = "{API_RANGE}"',
            )
        bound = (int(match[2]), int(match[3] or 0))
        holds = holds and (version >= bound if match[1] == ">=" else version < bound)
    return holds


#: What :mod:`graphdock.contracts` had.
NAMES = {"HalfWritten": "PartialWriteError", "Standing": "Replacement", "keep": "write_cache", "kept": "read_cache"}
#: Words that stand in fields: a kernel's ``modes``, the ``lock`` of a kind of resource, an op's ``effects``.
WORDS = {"whole": "all_or_nothing", "claim": "step", "blocks": "waits"}


def renamed_word(word: object) -> str | None:
    """A hint for an error about a word that a field does not know."""
    return f"{word!r} is called {WORDS[word]!r} now" if isinstance(word, str) and word in WORDS else None


class RenamedAttribute:
    """Stands in a class for an attribute that has another name now. Reading or setting it raises AttributeError."""

    def __init__(self, new: str) -> None:
        self._new = new

    def __set_name__(self, owner: type, name: str) -> None:
        self._old = name

    def __get__(self, instance: object, owner: type | None = None) -> NoReturn:
        raise self.error(type(instance) if owner is None else owner)

    def __set__(self, instance: object, value: Any) -> NoReturn:
        raise self.error(type(instance))

    def error(self, owner: type) -> AttributeError:
        return AttributeError(f"{owner.__name__}.{self._old} is called {self._new} now")
