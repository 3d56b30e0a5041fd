"""Records with the manners of a protocol message: what TensorFlow 1 programs do with a ConfigProto, without its wire format.

Fields have defaults and checked types; a field that is a message is there from the start and is filled in place; repeated fields
are lists and maps are dicts. A field is *set* where it differs from its default, as in proto3.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, TypeVar

__all__ = ["Message"]

M = TypeVar("M", bound="Message")


class Message:
    """A message. Subclasses say their fields: name -> default; a Message class, ``list`` or ``dict`` for what is made anew.

    Raises:
      ValueError: a field that the message does not have. TypeError: a value of another type. (As protocol buffers do.)
      AttributeError: such a field, or a message, is assigned to.

    Threads: a message belongs to whoever fills it.
    """

    FIELDS: ClassVar[Mapping[str, Any]] = {}

    def __init__(self, **given: Any) -> None:
        for name, default in self.FIELDS.items():
            object.__setattr__(self, name, default() if isinstance(default, type) else default)
        for name, value in given.items():
            if name not in self.FIELDS:
                raise ValueError(_lacks(self, name))
            self._fill(name, value)

    def _fill(self, name: str, value: Any) -> None:
        held = getattr(self, name)
        if value is None:
            return
        if isinstance(held, Message):
            given = type(held)(**value) if isinstance(value, Mapping) else value
            held.CopyFrom(given)
        elif isinstance(held, list):
            held.extend(value)
        elif isinstance(held, dict):
            held.update({k: operator.index(v) for k, v in value.items()})
        else:
            setattr(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self.FIELDS:
            raise AttributeError(_lacks(self, name))
        default = self.FIELDS[name]
        if isinstance(default, type):
            kind = "message" if issubclass(default, Message) else "repeated"
            how = "CopyFrom" if kind == "message" else "append, extend or update"
            raise AttributeError(
                f'Assignment not allowed to {kind} field "{name}" in protocol message object; fill it by its fields, or by {how}'
            )
        object.__setattr__(self, name, _CHECKS[type(default)](f"{type(self).__name__}.{name}", value))

    def set_fields(self, prefix: str = "") -> Iterator[tuple[str, Any]]:
        """Dotted name and value of each field that is set, those of messages inside as well."""
        for name, default in self.FIELDS.items():
            value = getattr(self, name)
            if isinstance(value, Message):
                yield from value.set_fields(f"{prefix}{name}.")
            elif value != (default() if isinstance(default, type) else default):
                yield prefix + name, value

    def CopyFrom(self, other: Message) -> None:  # noqa: N802 - its name in protocol buffers
        """Become equal to another message of this class. TypeError: of another class."""
        if type(other) is not type(self):
            raise TypeError(f"expected a {type(self).__name__}, got a {type(other).__name__}")
        if other is not self:
            self.Clear()
            self.MergeFrom(other)

    def MergeFrom(self, other: Message) -> None:  # noqa: N802
        """Take over what is set in another message of this class; lists grow."""
        if type(other) is not type(self):
            raise TypeError(f"expected a {type(self).__name__}, got a {type(other).__name__}")
        for name, default in self.FIELDS.items():
            value = getattr(other, name)
            if isinstance(value, Message):
                getattr(self, name).MergeFrom(value)
            elif isinstance(default, type):
                self._fill(name, value)
            elif value != default:
                setattr(self, name, value)

    def Clear(self) -> None:  # noqa: N802
        """Back to the defaults."""
        for name in self.FIELDS:
            self.ClearField(name)

    def ClearField(self, name: str) -> None:  # noqa: N802
        """One field back to its default. ValueError: no such field."""
        if name not in self.FIELDS:
            raise ValueError(_lacks(self, name))
        held, default = getattr(self, name), self.FIELDS[name]
        if isinstance(held, Message):
            held.Clear()
        elif isinstance(held, (list, dict)):
            held.clear()
        else:
            object.__setattr__(self, name, default)

    def HasField(self, name: str) -> bool:  # noqa: N802
        """Whether anything of a message inside is set. ValueError: no such field, or one that is no message."""
        if name not in self.FIELDS:
            raise ValueError(_lacks(self, name))
        held = getattr(self, name)
        if not isinstance(held, Message):
            raise ValueError(f"Field {type(self).__name__}.{name} does not have presence.")
        return any(True for _ in held.set_fields())

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self.FIELDS)

    __hash__ = None  # type: ignore[assignment]

    def __deepcopy__(self: M, memo: Any) -> M:
        made = type(self)()
        made.CopyFrom(self)
        return made

    def __copy__(self: M) -> M:
        return self.__deepcopy__(None)

    def __repr__(self) -> str:
        return "".join(line + "\n" for line in self._lines())

    def _lines(self) -> Iterator[str]:
        """The text format of protocol buffers."""
        for name, default in self.FIELDS.items():
            value = getattr(self, name)
            if isinstance(value, Message):
                inner = list(value._lines())
                if inner:
                    yield from (f"{name} {{", *(f"  {line}" for line in inner), "}")
            elif isinstance(value, dict):
                for key, item in value.items():
                    yield from (f"{name} {{", f'  key: "{key}"', f"  value: {item}", "}")
            elif isinstance(value, list):
                yield from (f"{name}: {_text(item)}" for item in value)
            elif value != default:
                yield f"{name}: {_text(value)}"


def _lacks(message: Message, name: str) -> str:
    return f'Protocol message {type(message).__name__} has no "{name}" field.'


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"' if isinstance(value, str) else str(value)


def _integer(where: str, value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{where}: {value!r} is not an integer") from None


def _truth(where: str, value: Any) -> bool:
    return bool(_integer(where, value))


def _number(where: str, value: Any) -> float:
    if isinstance(value, str) or not hasattr(value, "__float__"):
        raise TypeError(f"{where}: {value!r} is not a number")
    return float(value)


def _string(where: str, value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode()
    if not isinstance(value, str):
        raise TypeError(f"{where}: {value!r} is not text")
    return value


_CHECKS: Mapping[type, Callable[[str, Any], Any]] = {bool: _truth, int: _integer, float: _number, str: _string}
