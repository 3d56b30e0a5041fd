"""YAML with positions: plain Python data, and the line and column of every key and value in it.

The file is composed to PyYAML's nodes, never constructed by tag, so only mappings, sequences and the scalars null,
bool, int, float and str exist. A key given twice is an error.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

import yaml
from graphdock.errors import OpSpecError

__all__ = ["Document", "Path_", "parse", "read"]

#: Keys and indices from the root to a value.
Path_: TypeAlias = tuple[str | int, ...]

_TAG = "tag:yaml.org,2002:"
_CONSTRUCTOR = yaml.constructor.SafeConstructor()


@dataclass(frozen=True, slots=True)
class _Mark:
    line: int
    column: int
    quoted: bool = False
    single_line: bool = True


@dataclass(frozen=True, slots=True)
class Document:
    """A file as data plus positions.

    Attributes:
      file: the name that errors show.
      data: what the file holds.
    """

    file: str
    data: Any
    values: dict[Path_, _Mark] = field(default_factory=dict)
    keys: dict[Path_, _Mark] = field(default_factory=dict)

    def fail(
        self, path: Path_, message: str, *, hint: str | None = None, key: bool = False, offset: int | None = None
    ) -> NoReturn:
        """Raise :meth:`error`."""
        raise self.error(path, message, hint=hint, key=key, offset=offset)

    def error(
        self, path: Path_, message: str, *, hint: str | None = None, key: bool = False, offset: int | None = None
    ) -> OpSpecError:
        """An OpSpecError at the value of ``path`` (or its key; or ``offset`` characters into a scalar).

        A path that does not exist stands for its nearest parent that does.
        """
        line, column = self.position(path, key=key, offset=offset)
        return OpSpecError(message, file=self.file, line=line, column=column, hint=hint)

    def position(self, path: Path_, *, key: bool = False, offset: int | None = None) -> tuple[int, int]:
        """Line and column, from 1, of a value, of its key, or of a character inside a scalar."""
        wanted = path
        while True:
            mark = (self.keys.get(wanted) if key else None) or self.values.get(wanted)
            if mark is not None:
                break
            wanted, offset = wanted[:-1], None
        if offset is not None and mark.single_line:
            return mark.line, mark.column + offset + mark.quoted
        return mark.line, mark.column

    def line(self, path: Path_) -> int:
        return self.position(path)[0]


def read(path: Path, shown_as: str | None = None) -> Document:
    """Read a YAML file. Raises OpSpecError with the position of the first fault."""
    name = shown_as or str(path)
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as e:
        raise OpSpecError(f"not UTF-8 text: {e.reason} at byte {e.start}", file=name) from e
    return parse(text, name)


def parse(text: str, name: str) -> Document:
    """The same for text."""
    try:
        root = _compose(text)
    except yaml.MarkedYAMLError as e:
        mark = e.problem_mark or e.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        raise OpSpecError(f"not YAML: {e.problem or e.context}", file=name, line=line, column=column) from e
    except yaml.YAMLError as e:
        raise OpSpecError(f"not YAML: {e}", file=name) from e
    document = Document(name, None)
    if root is None:
        raise OpSpecError("the file is empty", file=name, line=1, column=1, hint="begin with 'graphdock_opdef: 1'")
    data = _convert(root, (), document)
    return Document(name, data, document.values, document.keys)


def _compose(text: str) -> yaml.Node | None:
    """The node graph; libyaml reads eight times faster, PyYAML's own parser gives the messages."""
    fast = getattr(yaml, "CSafeLoader", None)
    if fast is not None:
        try:
            return yaml.compose(text, Loader=fast)
        except yaml.YAMLError:
            return yaml.compose(text, Loader=yaml.SafeLoader)
    return yaml.compose(text, Loader=yaml.SafeLoader)


def _mark(node: yaml.Node) -> _Mark:
    start, end = node.start_mark, node.end_mark
    style = getattr(node, "style", None)
    return _Mark(start.line + 1, start.column + 1, style in ("'", '"'), start.line == end.line)


def _convert(node: yaml.Node, path: Path_, document: Document) -> Any:
    mark = _mark(node)
    document.values[path] = mark
    if isinstance(node, yaml.MappingNode):
        out: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = _key(key_node, document)
            here = (*path, key)
            key_mark = _mark(key_node)
            if key in out:
                first = document.keys[here]
                raise OpSpecError(
                    f"key {key!r} stands here twice, first in line {first.line}",
                    file=document.file,
                    line=key_mark.line,
                    column=key_mark.column,
                )
            document.keys[here] = key_mark
            out[key] = _convert(value_node, here, document)
        return out
    if isinstance(node, yaml.SequenceNode):
        return [_convert(item, (*path, i), document) for i, item in enumerate(node.value)]
    assert isinstance(node, yaml.ScalarNode)
    return _scalar(node, document)


def _key(node: yaml.Node, document: Document) -> str:
    if isinstance(node, yaml.ScalarNode):
        value = _scalar(node, document)
        if isinstance(value, str):
            return value
        what = f"the key {node.value!r} reads as {type(value).__name__}"
    else:
        what = "a key must be a string"
    mark = _mark(node)
    raise OpSpecError(what, file=document.file, line=mark.line, column=mark.column, hint="put it in quotes")


def _scalar(node: yaml.ScalarNode, document: Document) -> Any:
    kind = node.tag.removeprefix(_TAG)
    if kind == "null":
        return None
    if kind == "str":
        return _exponent(node)
    if kind in ("bool", "int", "float"):
        construct = {
            "bool": _CONSTRUCTOR.construct_yaml_bool,
            "int": _CONSTRUCTOR.construct_yaml_int,
            "float": _CONSTRUCTOR.construct_yaml_float,
        }[kind]
        return construct(node)
    mark = _mark(node)
    raise OpSpecError(
        f"a value of YAML type {kind!r} has no meaning here",
        file=document.file,
        line=mark.line,
        column=mark.column,
        hint="put it in quotes",
    )


def _exponent(node: yaml.ScalarNode) -> Any:
    """YAML 1.1 takes ``1e-5`` for a string; everybody means the number."""
    text: str = node.value
    if not node.style and "e" in text.lower() and text[:1] in "+-.0123456789":
        try:
            return float(text)
        except ValueError:
            return text
    return text
