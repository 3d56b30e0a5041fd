"""Kernels of strings, element by element: object arrays of bytes.

Text is UTF-8. Bytes that are none go through every op as they are.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
from graphdock.contracts import Bound, BuildContext, KernelDef, dtypes, errors

__all__ = ["KERNELS", "characters", "decoded", "elementwise", "encoded"]

#: What an element becomes, made for a node.
Make = Callable[[BuildContext], Callable[..., Any]]


def elementwise(make: Make, inputs: int = 1) -> Callable[[BuildContext], Bound]:
    """The kernel of a function of single elements; inputs broadcast."""

    def build(ctx: BuildContext) -> Bound:
        function = np.frompyfunc(make(ctx), inputs, 1)
        kind = ctx.outputs[0].dtype
        dtype = kind.np

        def fresh(*args: Any) -> np.ndarray:
            made = np.empty(np.broadcast_shapes(*(a.shape for a in args)), object)
            function(*args, made)
            return made.astype(dtype, copy=False)

        if ctx.fresh:
            return Bound(fresh)
        if kind is dtypes.string:
            return Bound(function)
        return Bound(lambda *args: np.copyto(args[-1], fresh(*args[:-1])))

    return build


def decoded(text: bytes) -> str:
    return text.decode("utf-8", "surrogateescape")


def encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def characters(text: bytes) -> list[int]:
    """Where characters of UTF-8 begin: at every byte that continues none."""
    return [i for i, byte in enumerate(text) if byte & 0xC0 != 0x80]


def _strip(ctx: BuildContext) -> Callable[[bytes], bytes]:
    return bytes.strip


def _case(change: Callable[[str], str], of_bytes: Callable[[bytes], bytes]) -> Make:
    def make(ctx: BuildContext) -> Callable[[bytes], bytes]:
        return of_bytes if ctx.attr("encoding") == "" else lambda text: encoded(change(text.decode("utf-8", "replace")))

    return make


def _length(ctx: BuildContext) -> Callable[[bytes], int]:
    return len if ctx.attr("unit") == "BYTE" else lambda text: len(characters(text))


def _substr(ctx: BuildContext) -> Callable[..., bytes]:
    bytewise = ctx.attr("unit") == "BYTE"

    def substr(text: bytes, pos: int, length: int) -> bytes:
        starts = None if bytewise else characters(text)
        size = len(text) if starts is None else len(starts)
        if not -size <= pos <= size:
            raise errors.InvalidArgumentError(
                "pos is out of range", expected=f"-{size} to {size} for {text!r}", got=str(pos)
            )
        first = pos + size if pos < 0 else pos
        last = size if length < 0 else min(first + length, size)
        if starts is None:
            return text[first:last]
        ends = [*starts, len(text)]
        return text[ends[first] : ends[last]]

    return substr


#: Spellings of RE2 that Python's patterns have under another one.
_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": "\\x00-\\x7F",
    "blank": "\\t ",
    "cntrl": "\\x00-\\x1F\\x7F",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@\\[-`{-~",
    "space": "\\t\\n\\v\\f\\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
_TOKEN = re.compile(r"\\z|\\.|\[\^?\]?|\[:\^?\w+:\]|\]|\$|.", re.DOTALL)


def _translated(pattern: str) -> str:
    """A pattern of RE2 as one of Python: ``$`` is the very end, and classes may hold ``[:alpha:]``."""
    out, inside = [], False
    many_lines = re.search(r"\(\?[a-zA-Z]*m", pattern) is not None
    position = 0
    while position < len(pattern):
        named = re.compile(r"\[:(\w+):\]").match(pattern, position) if inside else None
        if named is not None and named[1] in _CLASSES:
            out.append(_CLASSES[named[1]])
            position = named.end()
            continue
        found = _TOKEN.match(pattern, position)
        assert found is not None
        token = found[0]
        if inside and token.startswith("["):
            token = "\\["
            position += 1
        else:
            position = found.end()
        if not inside:
            inside = token.startswith("[")
            token = "\\Z" if token == "\\z" or (token == "$" and not many_lines) else token
        elif token == "]":
            inside = False
        out.append(token)
    return "".join(out)


def _compiled(pattern: bytes) -> re.Pattern[str]:
    try:
        return re.compile(_translated(decoded(pattern)), re.ASCII)
    except re.error as error:
        raise errors.InvalidArgumentError(f"the pattern {pattern!r} is no regular expression: {error}") from None


def _rewriter(pattern: re.Pattern[str], rewrite: bytes) -> Callable[[re.Match[str]], str]:
    """What a match becomes: ``\\0`` is all of it, ``\\1`` its first group."""
    parts: list[str | int] = []
    for token in re.findall(r"\\.|[^\\]+|\\", decoded(rewrite), re.DOTALL):
        if not token.startswith("\\"):
            parts.append(token)
        elif token == "\\\\":
            parts.append("\\")
        elif token[1:].isdigit() and int(token[1]) <= pattern.groups:
            parts.append(int(token[1]))
        else:
            raise errors.InvalidArgumentError(
                f"the rewrite {rewrite!r} holds {token!r}",
                expected=f"a backslash only before another one, or a digit up to {pattern.groups}",
            )
    return lambda match: "".join(p if isinstance(p, str) else match[p] or "" for p in parts)


def _replaced(text: str, pattern: re.Pattern[str], rewrite: Callable[[re.Match[str]], str], everywhere: bool) -> str:
    """As RE2 replaces: no empty match right behind the last one."""
    out, position, last = [], 0, -1
    while (match := pattern.search(text, position)) is not None:
        if match.end() == match.start() == last:
            if position == len(text):
                break
            out.append(text[position])
            position += 1
            last = -1
            continue
        out += [text[position : match.start()], rewrite(match)]
        position = last = match.end()
        if not everywhere:
            break
    return "".join([*out, text[position:]])


def _regex_replace(ctx: BuildContext) -> Bound:
    everywhere = ctx.attr("replace_global")
    kept: dict[tuple[bytes, bytes], Any] = {}

    def ready(pattern: Any, rewrite: Any) -> np.ufunc:
        key = pattern.item(), rewrite.item()
        if key not in kept:
            kept.clear()
            compiled = _compiled(key[0])
            change = _rewriter(compiled, key[1])
            kept[key] = np.frompyfunc(lambda t: encoded(_replaced(decoded(t), compiled, change, everywhere)), 1, 1)
        return kept[key]

    def fresh(text: Any, pattern: Any, rewrite: Any) -> np.ndarray:
        out = np.empty(text.shape, object)
        ready(pattern, rewrite)(text, out)
        return out

    if ctx.fresh:
        return Bound(fresh)
    return Bound(lambda text, pattern, rewrite, out: ready(pattern, rewrite)(text, out))


def _regex_full_match(ctx: BuildContext) -> Bound:
    kept: dict[bytes, Any] = {}

    def match(text: Any, pattern: Any, out: Any = None) -> np.ndarray:
        key = pattern.item()
        if key not in kept:
            kept.clear()
            compiled = _compiled(key)
            kept[key] = lambda t: compiled.fullmatch(decoded(t)) is not None
        made = np.empty(text.shape, bool) if out is None else out
        made[...] = np.frompyfunc(kept[key], 1, 1)(text)
        return made

    return Bound(match)


KERNELS = [
    KernelDef("StringStrip", "cpu", elementwise(_strip)),
    KernelDef("StringLower", "cpu", elementwise(_case(str.lower, bytes.lower))),
    KernelDef("StringUpper", "cpu", elementwise(_case(str.upper, bytes.upper))),
    KernelDef("StringLength", "cpu", elementwise(_length)),
    KernelDef("Substr", "cpu", elementwise(_substr, 3)),
    KernelDef("RegexReplace", "cpu", _regex_replace),
    KernelDef("RegexFullMatch", "cpu", _regex_full_match),
]
