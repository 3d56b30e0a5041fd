"""Tables of public names in which a module, and a namespace, is said once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

__all__ = ["Table", "names_of", "spelled_out"]

#: Rows ``"name": "module:attribute"``, or ``"module": {"tf tf.math": "name other=attribute"}``: the names that each of these
#: namespaces has of the module, ``tf`` being the root. The attribute is said where it is not the name.
Table = Mapping[str, str | Mapping[str, str]]


def spelled_out(table: Table) -> dict[str, str]:
    """Name -> ``"module:attribute"``. A plugin calls this where it publishes its names."""
    found = {}
    for key, value in table.items():
        if isinstance(value, str):
            found[key] = value
        else:
            for spaces, words in value.items():
                found.update(names_of(key, spaces, words))
    return found


def names_of(module: str, spaces: str, words: str) -> Iterator[tuple[str, str]]:
    """The names that namespaces have of a module, each with its ``"module:attribute"``."""
    for space in spaces.split():
        for word in words.split():
            name, _, attribute = word.partition("=")
            yield f"{space}.{name}".removeprefix("tf."), f"{module}:{attribute or name}"
