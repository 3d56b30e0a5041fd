"""Files of TensorFlow's graphs: which kind one is, and what is in it."""

from __future__ import annotations

import os
from typing import Any

from graphdock.errors import DataLossError, InvalidArgumentError, NotFoundError
from graphdock.messages import from_bytes, from_text, to_text
from graphdock_storage.checkpoint.files import explained, make_folder, replaced, sync_folder
from graphdock_storage.stores import opened, system

__all__ = ["ENDINGS", "SAVED_MODEL", "graph_of", "read_message", "read_saved_model", "write_message"]

#: The file of a SavedModel in its folder, without its ending.
SAVED_MODEL = "saved_model"
#: TensorFlow's files are no larger: a message's length is 31 bits.
_LIMIT = (1 << 31) - 1
#: Ending of a file -> the message in it.
ENDINGS = {".pb": "GraphDef", ".pbtxt": "GraphDef", ".meta": "MetaGraphDef"}


def read_message(message: str, path: str) -> Any:
    """A message of a file of its bytes, or of its text.

    Raises:
      NotFoundError, PermissionDeniedError: the file can't be read. DataLossError: it is damaged, or another kind of file.
      UnavailableError: the library protobuf is not installed.
    """
    data = _bytes(path)
    what = f"the file {path!r}"
    if not _is_text(data):
        return from_bytes(message, data, what)
    try:
        return from_text(message, data.decode(), what)
    except (DataLossError, UnicodeDecodeError) as error:
        try:
            return from_bytes(message, data, what)
        except DataLossError:
            raise error if isinstance(error, DataLossError) else DataLossError(f"{what}: {error}") from None


def _bytes(path: str) -> bytes:
    try:
        if system(path).stat(path).length > _LIMIT:
            raise DataLossError(f"the file {path!r} is larger than 2 GiB, which no graph's is")
        with opened(path) as file:
            return file.read()
    except (OSError, ValueError) as error:
        if isinstance(error, DataLossError):
            raise
        raise explained(error, "cannot read", path) from error


def _is_text(data: bytes) -> bool:
    """Return whether the first bytes are printable: those of a message are not, where it has any field that is written first."""
    head = data[:64].lstrip(b" \t\r\n")
    if not head:
        return bool(data.strip(b" \t\r\n") == b"" and data)
    return head[0] in b"#abcdefghijklmnopqrstuvwxyz_" and all(32 <= b < 127 or b in b"\t\r\n" for b in head)


def read_saved_model(path: str) -> Any:
    """The SavedModel of a folder. Raises as :func:`read_message`."""
    for ending in (".pb", ".pbtxt"):
        file = os.path.join(path, SAVED_MODEL + ending)
        if os.path.exists(file):
            return read_message("SavedModel", file)
    raise NotFoundError(
        f"the folder {path!r} holds no SavedModel", expected=f"a file {SAVED_MODEL}.pb or {SAVED_MODEL}.pbtxt in it"
    )


def graph_of(path: str, tags: tuple[str, ...] = ()) -> tuple[str, Any]:
    """Return what kind of file it is, and its GraphDef: of a folder that of the SavedModel's only graph, or of that with the tags.

    Raises:
      As :func:`read_message`. InvalidArgumentError: a SavedModel has several graphs, and none or several have the tags.
    """
    if os.path.isdir(path):
        return "SavedModel", choose(read_saved_model(path), tags, path).graph_def
    if os.path.basename(path).startswith(f"{SAVED_MODEL}.pb"):
        return "SavedModel", choose(read_message("SavedModel", path), tags, path).graph_def
    kind = ENDINGS.get(os.path.splitext(path)[1], "")
    if kind == "MetaGraphDef":
        return kind, read_message(kind, path).graph_def
    made = read_message("GraphDef", path)
    if not made.node and os.path.getsize(path):
        raise DataLossError(f"the file {path!r} has no nodes", hint="is it a GraphDef? meta graphs end in .meta")
    return "GraphDef", made


def choose(saved: Any, tags: tuple[str, ...], path: str) -> Any:
    """The meta graph of a SavedModel that has exactly these tags; without tags its only one.

    Raises:
      InvalidArgumentError: there is none, or several are.
    """
    graphs = list(saved.meta_graphs)
    found = [g for g in graphs if set(g.meta_info_def.tags) == set(tags)] if tags else graphs
    if len(found) == 1:
        return found[0]
    there = "; ".join(", ".join(sorted(g.meta_info_def.tags)) or "none" for g in graphs) or "no graph at all"
    raise InvalidArgumentError(
        f"the SavedModel {path!r} has {'no graph' if not found else 'several graphs'} with these tags",
        expected=f"the tags of one of its graphs: {there}",
        got=", ".join(sorted(tags)) or "none",
    )


def write_message(message: Any, path: str, as_text: bool) -> str:
    """Write a message, whole or not at all; the folder is made. Returns the path.

    Raises:
      GraphdockError: of the class that fits what the system says. InvalidArgumentError: it is larger than 2 GiB.
    """
    from google.protobuf.message import EncodeError

    try:
        data = to_text(message).encode() if as_text else message.SerializeToString(deterministic=True)
    except (EncodeError, ValueError) as error:
        raise InvalidArgumentError(
            f"cannot write {path!r}: a graph of more than 2 GiB has no such form: {error}",
            hint="keep large constants in variables, and save those with a Saver",
        ) from error
    folder = os.path.dirname(path)
    make_folder(folder)
    with replaced(path) as sink:
        sink.write(data, 0)
    sync_folder(folder)
    return path
