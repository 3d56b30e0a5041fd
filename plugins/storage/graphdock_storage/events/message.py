"""Messages of protocol buffers, without the library: what people build summaries and events of.

A class names its fields::

    class Point(Message):
        x = Field(1, "double")
        names = Field(2, "string", repeated=True)

and behaves as protobuf's classes of ``proto3`` do, in what programs use of them. A message is no more thread-safe than a list.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Mapping, MutableSequence
from typing import Any, ClassVar, Self, overload

from graphdock.errors import ArgumentTypeError, DataLossError, InvalidArgumentError, OutOfRangeError, did_you_mean

from graphdock_storage.checkpoint.varint import read_varint
from graphdock_storage.events.wire import BYTES, KINDS, Kind, skip, varint

__all__ = ["Field", "Message", "Repeated"]

#: How deep messages may lie in one another; protobuf's own limit.
_DEEPEST = 100


class Field:
    """A field of a message, as a descriptor: reading and setting it works as in protobuf.

    Args:
      number: on the wire.
      kind: name of a scalar kind, or the class of a message.
      repeated: it is a list. ``oneof``: name of the group of which at most one field is set.
    """

    def __init__(self, number: int, kind: Any, repeated: bool = False, oneof: str | None = None) -> None:
        self.number = number
        self.repeated = repeated
        self.oneof = oneof
        self.name = ""
        self.kind = kind
        self.scalar: Kind | None = KINDS[kind] if isinstance(kind, str) else None
        self.message: type[Message] = Message if isinstance(kind, str) else kind

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Message | None, owner: type) -> Any:
        if instance is None:
            return self
        found = instance._values.get(self.name)
        if found is not None:
            return found
        if self.scalar is not None and not self.repeated:
            return self.scalar.default
        return instance._part(self)

    def __set__(self, instance: Message, value: Any) -> None:
        if self.scalar is None or self.repeated:
            raise ArgumentTypeError(
                f"{type(instance).__qualname__}.{self.name} can't be assigned",
                hint=f"{self.name}.extend(...)" if self.repeated else f"{self.name}.CopyFrom(...)",
            )
        instance._set(self, self.checked(value, instance))

    def checked(self, value: Any, owner: Message) -> Any:
        """A scalar as it is kept. Raises ArgumentTypeError or OutOfRangeError, which names the field."""
        assert self.scalar is not None
        try:
            return self.scalar.check(value)
        except (ArgumentTypeError, OutOfRangeError) as error:
            error.message = f"{type(owner).__qualname__}.{self.name}: {error.message}"
            raise


class Repeated(MutableSequence[Any]):
    """The values of a repeated field. Messages are copied as they come in; :meth:`add` makes one here."""

    __slots__ = ("_field", "_items", "_owner")

    def __init__(self, owner: Message, field: Field) -> None:
        self._owner = owner
        self._field = field
        self._items: list[Any] = []

    def _checked(self, value: Any) -> Any:
        if self._field.scalar is not None:
            return self._field.checked(value, self._owner)
        made = self._field.message()
        made.CopyFrom(value)
        made._owner = (self._owner, None)
        return made

    def add(self, **fields: Any) -> Any:
        """A new message at the end, with these fields."""
        made = self._field.message(**fields)
        made._owner = (self._owner, None)
        self._items.append(made)
        self._owner._changed()
        return made

    @overload
    def __getitem__(self, at: int) -> Any: ...
    @overload
    def __getitem__(self, at: slice) -> list[Any]: ...
    def __getitem__(self, at: int | slice) -> Any:
        return self._items[at]

    def __setitem__(self, at: Any, value: Any) -> None:
        self._items[at] = [self._checked(v) for v in value] if isinstance(at, slice) else self._checked(value)
        self._owner._changed()

    def __delitem__(self, at: int | slice) -> None:
        del self._items[at]

    def __len__(self) -> int:
        return len(self._items)

    def insert(self, index: int, value: Any) -> None:
        self._items.insert(index, self._checked(value))
        self._owner._changed()

    def extend(self, values: Iterable[Any]) -> None:
        self._items.extend([self._checked(v) for v in values])
        self._owner._changed()

    def MergeFrom(self, other: Iterable[Any]) -> None:  # noqa: N802 - protobuf's name
        """As :meth:`extend`."""
        self.extend(other)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Repeated):
            return self._items == other._items
        return self._items == other

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._items)


class Message:
    """Base of all messages: protobuf's methods over the fields that a subclass names.

    Args:
      fields: values by name; None leaves a field unset, a mapping stands for a message.

    Raises:
      InvalidArgumentError: there is no field of a name. ArgumentTypeError, OutOfRangeError: a value doesn't fit its field.
    """

    __slots__ = ("_loose", "_owner", "_unknown", "_values")

    _fields: ClassVar[dict[str, Field]] = {}
    _numbers: ClassVar[dict[int, Field]] = {}

    def __init_subclass__(cls) -> None:
        fields = sorted((f for f in vars(cls).values() if isinstance(f, Field)), key=lambda f: f.number)
        cls._fields = {f.name: f for f in fields}
        cls._numbers = {f.number: f for f in fields}

    def __init__(self, **fields: Any) -> None:
        self._values: dict[str, Any] = {}
        #: Parts that were read but hold nothing yet.
        self._loose: dict[str, Any] = {}
        self._unknown = b""
        #: The message that this one is a part of, and the field; it learns of the first change.
        self._owner: tuple[Message, Field | None] | None = None
        for name, value in fields.items():
            if value is None:
                continue
            field = self._field(name)
            if field.repeated:
                part = self._part(field)
                for item in value:
                    part.add(**item) if isinstance(item, Mapping) else part.append(item)
            elif field.scalar is None:
                self._part(field).CopyFrom(field.message(**value) if isinstance(value, Mapping) else value)
                self._part(field)._changed()
            else:
                field.__set__(self, value)

    @classmethod
    def _field(cls, name: str) -> Field:
        found = cls._fields.get(name)
        if found is None:
            raise InvalidArgumentError(
                f"{cls.__qualname__} has no field {name!r}",
                expected="one of " + ", ".join(cls._fields),
                hint=did_you_mean(name, cls._fields),
            )
        return found

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_"):
            type(self)._field(name)
        object.__setattr__(self, name, value)

    def _part(self, field: Field) -> Any:
        """The message or list of a field, which joins this one when something is put into it."""
        found = self._values.get(field.name)
        if found is None:
            found = self._loose.get(field.name)
        if found is None:
            if field.repeated:
                found = Repeated(self, field)
            else:
                found = field.message()
                found._owner = (self, field)
            # lists are a part at once: an empty one counts as unset
            (self._values if field.repeated else self._loose)[field.name] = found
        return found

    def _set(self, field: Field, value: Any) -> None:
        if field.oneof is not None:
            for name in [n for n in self._values if n != field.name and self._fields[n].oneof == field.oneof]:
                del self._values[name]
        self._values[field.name] = value
        self._changed()

    def _changed(self) -> None:
        """Something of it is set now: so it is a part of its owner."""
        if self._owner is None:
            return
        owner, field = self._owner
        if field is None:
            owner._changed()
        elif owner._values.get(field.name) is not self:
            if owner._loose.get(field.name) is self:
                del owner._loose[field.name]
                owner._set(field, self)
            else:  # the owner was cleared, or has another one
                self._owner = None

    # -- protobuf's methods -------------------------------------------------------------------------------------------

    def HasField(self, field_name: str) -> bool:  # noqa: N802
        """Whether a message, or a member of a oneof, is set. Raises InvalidArgumentError for other fields."""
        field = self._field(field_name)
        if field.repeated or field.scalar is not None and field.oneof is None:
            raise InvalidArgumentError(f"{type(self).__qualname__}.{field_name} is a field whose presence is not known")
        return field_name in self._values

    def WhichOneof(self, oneof_group: str) -> str | None:  # noqa: N802
        """Name of the field of a group that is set, or None. Raises InvalidArgumentError: there is no such group."""
        groups = {f.oneof for f in self._fields.values()} - {None}
        if oneof_group not in groups:
            raise InvalidArgumentError(f"{type(self).__qualname__} has no oneof {oneof_group!r}")
        return next((n for n in self._values if self._fields[n].oneof == oneof_group), None)

    def ClearField(self, field_name: str) -> None:  # noqa: N802
        """Unset a field."""
        self._field(field_name)
        self._values.pop(field_name, None)
        self._loose.pop(field_name, None)

    def Clear(self) -> None:  # noqa: N802
        """Unset every field."""
        self._values.clear()
        self._loose.clear()
        self._unknown = b""

    def SetInParent(self) -> None:  # noqa: N802
        """Count as set, though nothing in it is."""
        self._changed()

    def CopyFrom(self, other_msg: Self) -> None:  # noqa: N802
        """Become equal to another message of this class."""
        if other_msg is self:
            return
        self._same(other_msg)
        self.Clear()
        self.MergeFrom(other_msg)

    def MergeFrom(self, other_msg: Self) -> None:  # noqa: N802
        """Take over what the other message has set; lists are joined."""
        self._same(other_msg)
        self.MergeFromString(other_msg.SerializeToString())

    def _same(self, other: Any) -> None:
        if type(other) is not type(self):
            raise ArgumentTypeError(
                "a message of another class", expected=type(self).__qualname__, got=type(other).__qualname__
            )

    def ListFields(self) -> list[tuple[Field, Any]]:  # noqa: N802
        """The fields that are set, with their values, in order of their numbers."""
        return [(f, self._values[n]) for n, f in self._fields.items() if n in self._values and self._counts(f)]

    def _counts(self, field: Field) -> bool:
        value = self._values[field.name]
        if field.repeated:
            return bool(value)
        if field.scalar is None or field.oneof is not None:
            return True
        return bool(value != field.scalar.default) or str(value) == "-0.0"

    def SerializeToString(self, deterministic: bool = True) -> bytes:  # noqa: N802
        """Its bytes: fields in order of their numbers, then what was read and is not known."""
        out: list[bytes] = []
        for field, value in self.ListFields():
            out.append(_encoded(field, value))
        out.append(self._unknown)
        return b"".join(out)

    def ByteSize(self) -> int:  # noqa: N802
        """How many bytes :meth:`SerializeToString` gives."""
        return len(self.SerializeToString())

    @classmethod
    def FromString(cls, s: bytes) -> Self:  # noqa: N802
        """A message of its bytes. Raises DataLossError: they are none of this class."""
        made = cls()
        made.MergeFromString(s)
        return made

    def ParseFromString(self, serialized: bytes) -> int:  # noqa: N802
        """Become the message of these bytes; returns how many. Raises DataLossError: they are none of this class."""
        self.Clear()
        return self.MergeFromString(serialized)

    def MergeFromString(self, serialized: bytes) -> int:  # noqa: N802
        """Take over what these bytes set. Raises DataLossError: they are none of this class; what came before is kept."""
        if not isinstance(serialized, (bytes, bytearray, memoryview)):
            raise ArgumentTypeError("a serialized message is bytes", got=repr(serialized)[:80])
        data = bytes(serialized)
        try:
            self._read(data, 0, len(data), 0)
        except DataLossError as error:
            raise DataLossError(f"the bytes are no {type(self).__qualname__}: {error.message}") from None
        self._changed()
        return len(data)

    def _read(self, data: bytes, at: int, end: int, depth: int) -> None:
        if depth > _DEEPEST:
            raise DataLossError(f"messages lie deeper than {_DEEPEST} in one another")
        while at < end:
            begin = at
            key, at = read_varint(data, at)
            number, wire = key >> 3, key & 7
            if number == 0:
                raise DataLossError("a field has the number 0")
            field = self._numbers.get(number)
            after = skip(data, at, end, wire)
            if field is None or not self._take(field, wire, data, at, after, depth):
                self._unknown += data[begin:after]
            at = after

    def _take(self, field: Field, wire: int, data: bytes, at: int, end: int, depth: int) -> bool:
        """Read one value of a field; False where it is of another wire type."""
        scalar = field.scalar
        if scalar is None:
            if wire != BYTES:
                return False
            _, at = read_varint(data, at)
            made = self._part(field).add() if field.repeated else self._part(field)
            made._read(data, at, end, depth + 1)
            made._changed()
        elif field.repeated and wire == BYTES and scalar.wire != BYTES:
            _, at = read_varint(data, at)
            self._part(field)._items += _unpacked(scalar, data, at, end)
        elif wire != scalar.wire:
            return False
        elif field.repeated:
            self._part(field)._items.append(scalar.read(data, at, end)[0])
        else:
            self._set(field, scalar.read(data, at, end)[0])
        return True

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self.SerializeToString() == other.SerializeToString()

    __hash__ = None  # type: ignore[assignment]

    def __deepcopy__(self, memo: Any) -> Self:
        return self.FromString(self.SerializeToString())

    def __reduce__(self) -> Any:
        return type(self).FromString, (self.SerializeToString(),)

    def __repr__(self) -> str:
        return "".join(f"{line}\n" for line in self._lines(""))

    def _lines(self, indent: str) -> list[str]:
        lines: list[str] = []
        for field, value in self.ListFields():
            for one in value if field.repeated else [value]:
                if field.scalar is None:
                    lines += [f"{indent}{field.name} {{", *one._lines(indent + "  "), f"{indent}}}"]
                else:
                    lines.append(f"{indent}{field.name}: {_shown(one)}")
        return lines


def _encoded(field: Field, value: Any) -> bytes:
    """A field that is set, as bytes; numbers of a list are packed."""
    scalar = field.scalar
    if scalar is None:
        key = varint(field.number << 3 | BYTES)
        parts = [one.SerializeToString() for one in (value if field.repeated else [value])]
        return b"".join([piece for part in parts for piece in (key, varint(len(part)), part)])
    if not field.repeated:
        return varint(field.number << 3 | scalar.wire) + scalar.write(value)
    if scalar.wire == BYTES:
        key = varint(field.number << 3 | BYTES)
        return b"".join([piece for one in value for piece in (key, scalar.write(one))])
    packed = struct.pack(f"<{len(value)}{scalar.code}", *value) if scalar.code else b"".join(map(scalar.write, value))
    return varint(field.number << 3 | BYTES) + varint(len(packed)) + packed


def _unpacked(scalar: Kind, data: bytes, at: int, end: int) -> list[Any]:
    if scalar.code:
        size = struct.calcsize("<" + scalar.code)
        if (end - at) % size:
            raise DataLossError("a list of numbers is cut off")
        return list(struct.unpack_from(f"<{(end - at) // size}{scalar.code}", data, at))
    found = []
    while at < end:
        value, at = scalar.read(data, at, end)
        found.append(value)
    if at > end:
        raise DataLossError("a list of numbers is cut off")
    return found


def _shown(value: Any) -> str:
    """A scalar as protobuf's text format has it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, bytes):
        return '"' + repr(value)[2:-1].replace('"', '\\"') + '"'
    return f"{value:g}" if isinstance(value, float) else str(value)
