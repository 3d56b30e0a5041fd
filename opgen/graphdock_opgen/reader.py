"""YAML with positions: plain Python data, and the line and column of every key and value in it.

The file is composed to PyYAML's nodes, never constructed by tag, so only mappings, sequences and the scalars null,
bool, int, float and str exist. A key given twice is an error. Time and memory are bounded by the file's size: nesting is no deeper
than :data:`DEEPEST`, aliases stand for no more values than the text has characters, and numbers are as long as a double's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn, TypeAlias

import yaml
from graphdock.errors import OpSpecError

__all__ = ["DEEPEST", "Document", "Path_", "parse", "read"]

#: Keys and indices from the root to a value.
Path_: TypeAlias = tuple[str | int, ...]

#: Deepest nesting of lists and mappings.
DEEPEST = 64
#: Values that a file may hold besides as many as its text has characters; more come of aliases only.
_SPARE = 10_000
#: Most characters of a number, and bounds of an integer.
_DIGITS, _LEAST, _MOST = 40, -(2**63), 2**64 - 1
_TAG = "tag:yaml.org,2002:"
_CONSTRUCTOR = yaml.constructor.SafeConstructor()
_SURROGATE = re.compile("[\ud800-\udfff]")


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
    if path.exists() and not path.is_file():
        raise OpSpecError("not a file", file=name)
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as e:
        raise OpSpecError(f"not UTF-8 text: {e.reason} at byte {e.start}", file=name) from e
    except OSError as e:
        raise OpSpecError(f"can't be read: {e.strerror}", file=name) from e
    return parse(text, name)


def parse(text: str, name: str) -> Document:
    """The same for text."""
    try:
        root = _compose(text)
    except _TooDeepError as e:
        line, column = e.mark.line + 1, e.mark.column + 1
        raise OpSpecError(f"nested deeper than {DEEPEST}", file=name, line=line, column=column) from None
    except yaml.MarkedYAMLError as e:
        mark = e.problem_mark or e.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        raise OpSpecError(f"not YAML: {e.problem or e.context}", file=name, line=line, column=column) from e
    except yaml.YAMLError as e:
        raise OpSpecError(f"not YAML: {e}", file=name) from e
    if root is None:
        raise OpSpecError("the file is empty", file=name, line=1, column=1, hint="begin with 'graphdock_opdef: 1'")
    reading = _Reading(Document(name, None), len(text) + _SPARE)
    data = reading.value(root, ())
    return Document(name, data, reading.document.values, reading.document.keys)


def _compose(text: str) -> yaml.Node | None:
    """The node graph; libyaml reads eight times faster, PyYAML's own parser gives the messages."""
    fast = getattr(yaml, "CSafeLoader", None)
    if fast is not None:
        try:
            _check_depth(text, fast)
            return yaml.compose(text, Loader=fast)
        except yaml.YAMLError:
            pass  # said better below
    _check_depth(text, yaml.SafeLoader)
    return yaml.compose(text, Loader=yaml.SafeLoader)


class _TooDeepError(Exception):
    """``mark`` is where the first part begins that is nested too deep."""

    def __init__(self, mark: Any) -> None:
        self.mark = mark


def _check_depth(text: str, loader: Any) -> None:
    """Raise where nesting gets too deep. Composers recurse, libyaml's on the stack of C; events come one by one."""
    depth = 0
    for event in yaml.parse(text, Loader=loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > DEEPEST:
                raise _TooDeepError(event.start_mark)
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _mark(node: yaml.Node) -> _Mark:
    start, end = node.start_mark, node.end_mark
    style = getattr(node, "style", None)
    return _Mark(start.line + 1, start.column + 1, style in ("'", '"'), start.line == end.line)


class _Reading:
    """One file being turned into data: where its values stand, and how many more it may hold."""

    def __init__(self, document: Document, budget: int) -> None:
        self.document, self.budget = document, budget

    def error(self, node: yaml.Node, message: str, hint: str | None = None) -> OpSpecError:
        mark = _mark(node)
        return OpSpecError(message, file=self.document.file, line=mark.line, column=mark.column, hint=hint)

    def value(self, node: yaml.Node, path: Path_) -> Any:
        """The data of a node. Nesting is bounded, so this may recurse."""
        self.budget -= 1
        if self.budget < 0:
            raise self.error(node, "aliases stand for more values than the file may hold")
        if len(path) > DEEPEST:
            raise self.error(node, f"an alias nests deeper than {DEEPEST}")
        self.document.values[path] = _mark(node)
        if isinstance(node, yaml.MappingNode):
            return self.mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*path, i)) for i, item in enumerate(node.value)]
        assert isinstance(node, yaml.ScalarNode)
        return self.scalar(node)

    def mapping(self, node: yaml.MappingNode, path: Path_) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for key_node, value_node in node.value:
            key = self.key(key_node)
            here = (*path, key)
            if key in out:
                raise self.error(
                    key_node, f"key {key!r} stands here twice, first in line {self.document.keys[here].line}"
                )
            self.document.keys[here] = _mark(key_node)
            out[key] = self.value(value_node, here)
        return out

    def key(self, node: yaml.Node) -> str:
        what = "a key must be a string"
        if isinstance(node, yaml.ScalarNode):
            value = self.scalar(node)
            if isinstance(value, str):
                return value
            what = f"the key {node.value!r} reads as {type(value).__name__}"
        raise self.error(node, what, hint="put it in quotes")

    def scalar(self, node: yaml.ScalarNode) -> Any:
        kind = node.tag.removeprefix(_TAG)
        if kind == "null":
            return None
        if kind == "str":
            if _SURROGATE.search(node.value):
                raise self.error(node, "half of a surrogate pair is no character")
            return _exponent(node)
        if kind in ("bool", "int", "float"):
            return self.plain(node, kind)
        raise self.error(node, f"a value of YAML type {kind!r} has no meaning here", hint="put it in quotes")

    def plain(self, node: yaml.ScalarNode, kind: str) -> Any:
        """A bool or a number. PyYAML's constructors raise all kinds of errors for a text that a tag calls a number."""
        if len(node.value) > _DIGITS:
            raise self.error(node, f"a number has {_DIGITS} characters at most", hint="put it in quotes")
        construct = {
            "bool": _CONSTRUCTOR.construct_yaml_bool,
            "int": _CONSTRUCTOR.construct_yaml_int,
            "float": _CONSTRUCTOR.construct_yaml_float,
        }[kind]
        try:
            value = construct(node)
        except (ValueError, LookupError, OverflowError):
            raise self.error(node, f"{node.value!r} is no {kind}", hint="put it in quotes") from None
        if kind == "int" and not _LEAST <= value <= _MOST:
            raise self.error(node, f"{node.value} does not fit into 64 bits")
        return value


def _exponent(node: yaml.ScalarNode) -> Any:
    """YAML 1.1 takes ``1e-5`` for a string; everybody means the number."""
    text: str = node.value
    if not node.style and "e" in text.lower() and text[:1] in "+-.0123456789":
        try:
            return float(text) if len(text) <= _DIGITS else text
        except ValueError:
            return text
    return text
