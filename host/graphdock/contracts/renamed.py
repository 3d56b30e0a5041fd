"""Old names in the contracts: whoever uses one gets an error that says the new one."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["NAMES", "WORDS", "RenamedAttribute", "renamed_word"]

#: What :mod:`graphdock.contracts` had.
NAMES = {"HalfWritten": "PartialWriteError", "keep": "write_cache", "kept": "read_cache"}
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
