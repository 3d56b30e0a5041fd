"""Protocol buffers of TensorFlow: the classes that the library ``protobuf`` makes of ``schema.proto`` beside this file.

``messages.GraphDef`` is a class, made with all others when the first is asked for; that imports the library, which nothing else
does. Fields that the schema lacks are kept when a message is read and written again. The classes stand in a pool of their own, so
that TensorFlow may be in the same process. A message is no more thread-safe than a list; the classes are.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any

from graphdock.errors import DataLossError, UnavailableError
from graphdock.locks import new_lock

__all__ = ["from_bytes", "from_text", "make", "to_text"]

_lock = new_lock()
_OPEN = re.compile(r"(message|enum|oneof) (\w+) \{")
_FIELD = re.compile(r"(repeated )?(?:map<(\w+), (\w+)>|([\w.]+)) (\w+) = (\d+);")
_VALUE = re.compile(r"(\w+) = (-?\d+);")
_SCALARS = ("double", "float", "int32", "int64", "uint32", "uint64", "fixed32", "bool", "string", "bytes")


def _classes() -> dict[str, Any]:
    """Name of a message, such as ``"Summary.Value"``, -> its class.

    Raises:
      UnavailableError: the library is not installed.
    """
    with _lock:
        return _made()


@functools.cache
def _made() -> dict[str, Any]:
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
    except ImportError as error:
        raise UnavailableError(
            "messages of TensorFlow are read and written with the library protobuf, which is not installed",
            hint="pip install protobuf; Graph.to_json() writes graphdock's own form without it",
        ) from error
    file = descriptor_pb2.FileDescriptorProto(name="graphdock/schema.proto", package="tensorflow", syntax="proto3")
    _describe(file, Path(__file__).with_name("schema.proto").read_text(encoding="utf-8"))
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    found = pool.FindFileByName(file.name)
    classes: dict[str, Any] = {}
    waiting = [(name, described) for name, described in found.message_types_by_name.items()]
    while waiting:
        name, described = waiting.pop()
        classes[name] = made = message_factory.GetMessageClass(described)
        made.__module__, made.__qualname__ = __name__, name
        made.__reduce__ = functools.partialmethod(_reduced, name)  # the library knows those of its default pool only
        waiting += [(f"{name}.{inner}", d) for inner, d in described.nested_types_by_name.items()]
    return classes


def _reduced(self: Any, name: str) -> Any:
    return _again, (name, self.SerializeToString())


def _again(name: str, data: bytes) -> Any:
    return _classes()[name].FromString(data)


def _describe(file: Any, text: str) -> None:
    """Declare what a schema says. Each line opens or closes a block, or declares one field or value."""
    blocks: list[tuple[str, Any]] = [("file", file)]
    for line in (line.strip() for line in text.splitlines()):
        kind, inside = blocks[-1]
        opened, field, value = _OPEN.fullmatch(line), _FIELD.fullmatch(line), _VALUE.fullmatch(line)
        if line == "}":
            blocks.pop()
        elif opened is not None and opened[1] == "oneof":
            inside.oneof_decl.add(name=opened[2])
            blocks.append(("oneof", inside))
        elif opened is not None and opened[1] == "enum":
            blocks.append(("enum", inside.enum_type.add(name=opened[2])))
        elif opened is not None:
            within = inside.message_type if kind == "file" else inside.nested_type
            blocks.append(("message", within.add(name=opened[2])))
        elif kind == "enum" and value is not None:
            inside.value.add(name=value[1], number=int(value[2]))
        elif kind in ("message", "oneof") and field is not None:
            repeated, key, item, spelled, name, number = field.groups()
            if key is not None:
                spelled = "".join(part.capitalize() for part in name.split("_")) + "Entry"
                entry = inside.nested_type.add(name=spelled, options={"map_entry": True})
                _add_field(entry, "key", 1, key)
                _add_field(entry, "value", 2, item)
            made = _add_field(inside, name, int(number), spelled, repeated is not None or key is not None)
            if kind == "oneof":
                made.oneof_index = len(inside.oneof_decl) - 1
        else:
            assert not line or line.startswith(("//", "syntax ", "package ")), line


def _add_field(message: Any, name: str, number: int, spelled: str, repeated: bool = False) -> Any:
    made = message.field.add(name=name, number=number)
    made.label = made.LABEL_REPEATED if repeated else made.LABEL_OPTIONAL
    if spelled in _SCALARS:
        made.type = made.Type.Value(f"TYPE_{spelled.upper()}")
    else:
        made.type_name = spelled  # of a message or an enum, looked for from the inside outwards
    return made


def __getattr__(name: str) -> Any:
    if name.startswith("_") or name not in _classes():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _classes()[name]


def make(message: str, **fields: Any) -> Any:
    """A new message. Raises UnavailableError: the library protobuf is not installed."""
    return _classes()[message](**fields)


def from_bytes(message: str, data: bytes, what: str) -> Any:
    """A message of its bytes; ``what`` names the file in errors.

    Raises:
      DataLossError: the bytes are none. UnavailableError: the library protobuf is not installed.
    """
    made = make(message)
    from google.protobuf.message import DecodeError

    try:
        made.ParseFromString(data)
    except (DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DataLossError(f"{what} is no {message}, or it is damaged: {error}") from error
    return made


def from_text(message: str, text: str, what: str, strict: bool = False) -> Any:
    """A message of its text. Fields that are not known are left out, unless ``strict``.

    Raises:
      DataLossError: it is no such text, or names an unknown field where that is refused.
      UnavailableError: the library protobuf is not installed.
    """
    made = make(message)
    from google.protobuf import text_format

    try:
        text_format.Parse(text, made, allow_unknown_field=not strict)
    except (text_format.ParseError, ValueError, RecursionError, UnicodeError) as error:
        raise DataLossError(f"{what} is no text of a {message}: {error}") from error
    return made


def to_text(message: Any) -> str:
    """The text of a message, as TensorFlow's ``.pbtxt`` files have it."""
    from google.protobuf import text_format

    text: str = text_format.MessageToString(message)
    return text
