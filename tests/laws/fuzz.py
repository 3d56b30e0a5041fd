"""Random changes of data and of text: what fuzzers feed to readers. The same seed gives the same cases."""

from __future__ import annotations

import copy
import random
from collections.abc import Iterable, Iterator
from typing import Any

#: Values that readers may not expect where they find them.
WILD: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    1,
    -1,
    7,
    2**31,
    -(2**63),
    2**64,
    10**30,
    10**400,
    0.5,
    -0.0,
    1e308,
    float("inf"),
    float("nan"),
    "",
    " ",
    "/",
    "a/",
    "x",
    "x:0",
    "x:9999999999999999999999",
    "^x",
    "../../etc/passwd",
    "fuzz_canary",
    "fuzz_canary:f",
    "os:abort",
    "builtins:exit",
    "__import__('os').abort()",
    '"""',
    "\\",
    "\x00",
    "\n",
    "\ud800",
    "\u2028",
    "\U0001f600",
    "{0.__class__}",
    "{{ 1/0 }}",
    "float32",
    "bfloat16",
    "resource",
    "variant",
    "int64",
    "1e999",
    "[*S]",
    "[*S, *T]",
    "x" * 300,
    "9" * 500,
    "(" * 150,
    [],
    {},
    [[]],
    [None],
    [-1],
    [10**30],
    [0, 2**62],
    [1] * 70,
    {"dtype": "float32", "shape": [0, 2**62], "data": []},
    {"dtype": "float32", "shape": [1] * 70, "data": [1.0]},
    ["x"],
    {"a": 1},
    {"": {}},
    {"int": 3},
    {"float": "nan"},
    {"type": "float32"},
    {"list(type)": ["float32", "nope"]},
    {"tensor": {"dtype": "float32", "shape": [2], "data": [1.0, 2.0]}},
    {"shape": [None, -1]},
)


def deep(depth: int) -> Any:
    """A list in a list in a list."""
    value: Any = []
    for _ in range(depth):
        value = [value]
    return value


def places(tree: Any) -> list[tuple[Any, Any]]:
    """(container, key or index) of every value inside."""
    found, waiting = [], [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            found += [(node, key) for key in node]
            waiting += node.values()
        elif isinstance(node, list):
            found += [(node, i) for i in range(len(node))]
            waiting += node
    return found


def changed(rng: random.Random, tree: Any, donors: Iterable[Any] = WILD, times: int = 3) -> Any:
    """A copy with one to ``times`` changes: values replaced, dropped, doubled, swapped, wrapped, renamed or perturbed."""
    tree, donors = copy.deepcopy(tree), tuple(donors)
    for _ in range(rng.randint(1, times)):
        at = places(tree)
        if not at:
            return rng.choice(donors)
        holder, key = rng.choice(at)
        kind = rng.randrange(9)
        if kind <= 2:
            holder[key] = copy.deepcopy(rng.choice(donors))
        elif kind == 3:
            del holder[key]
        elif kind == 4:
            other, name = rng.choice(at)
            if key in holder if isinstance(holder, dict) else key < len(holder):
                value = copy.deepcopy(other[name])
                holder[key] = value
        elif kind == 5:
            holder[key] = [holder[key]] if rng.random() < 0.5 else {"a": holder[key]}
        elif kind == 6 and isinstance(holder, list):
            holder.insert(key, copy.deepcopy(holder[key]))
        elif kind == 6:
            holder[str(rng.choice(("", "name", "op", key.upper(), f"{key}_", "x" * 200)))] = holder.pop(key)
        else:
            holder[key] = _perturbed(rng, holder[key])
    at = places(tree)
    if at and rng.random() < 0.02:
        holder, key = rng.choice(at)
        holder[key] = deep(rng.choice((50, 400)))
    return tree


def _perturbed(rng: random.Random, value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return rng.choice((value + 1, value - 1, -value, value * 2**62, float(value)))
    if isinstance(value, str):
        return edited(rng, value, 1)
    if isinstance(value, list):
        return rng.sample(value, len(value))
    return value


#: What expressions of specs are made of.
_ATOMS = (
    "A",
    "S",
    "K",
    "B",
    "x",
    "w",
    "g.y",
    "g.z",
    "N",
    "T",
    "keep",
    "mode",
    "i",
    "_",
    "0",
    "1",
    "2.5",
    "'up'",
    "True",
    "None",
)
_FORMS = (
    *(
        "{0} + {1}",
        "{0} - {1}",
        "{0} * {1}",
        "{0} // {1}",
        "{0} % {1}",
        "{0} / {1}",
        "{0} ** {1}",
        "{0} == {1}",
        "{0} < {1}",
    ),
    *(
        "{0} if {1} else {2}",
        "{0} and {1}",
        "not {0}",
        "-{0}",
        "({0})",
        "min({0}, {1})",
        "max({0})",
        "broadcast({0}, {1})",
    ),
    *(
        "prod({0})",
        "rank({0})",
        "len({0})",
        "size({0})",
        "bytes({0})",
        "abs({0})",
        "exp({0})",
        "matmul({0}, {1})",
        "cast({0}, T)",
    ),
    *(
        "[{0}]",
        "[*{0}, {1}]",
        "[{0}, {1}, 2]",
        "[*S, {0}]",
        "{0} in {1}",
        "{0}.shape",
        "{0}[{1}]",
        "*{0}",
        "{{{0}}}",
        "{0}: {1}",
    ),
)


def expression(rng: random.Random, depth: int = 3) -> str:
    """Text that may be an expression, a pattern or neither."""
    if depth == 0 or rng.random() < 0.25:
        return rng.choice(_ATOMS)
    return rng.choice(_FORMS).format(*(expression(rng, depth - 1) for _ in range(3)))


TOKENS = (
    *(
        "[",
        "]",
        "{",
        "}",
        "(",
        ")",
        ",",
        ":",
        "=",
        ".",
        '"',
        "'",
        '"""',
        "#",
        "&a ",
        "*a",
        "!!int ",
        "|",
        ">",
        "-",
        "- ",
        "? ",
    ),
    *(
        "\n",
        "\r",
        "\t",
        " ",
        "\x00",
        "\x7f",
        "\u2028",
        "\ud7ff",
        "\ufeff",
        "\\",
        "\\u",
        "\\x",
        "null",
        "true",
        "nan",
        "inf",
        "1e999",
    ),
    *(
        "0x",
        "0b_",
        "1_0",
        "9" * 30,
        "9" * 5000,
        "[" * 50,
        "[" * 2000,
        "a." * 100,
        "1979-05-27",
        "<<: ",
        "%YAML 9",
        "---\n",
        "*S",
        "T",
    ),
)


def retexted(rng: random.Random, tree: Any, texts: Iterable[str]) -> Any:
    """A copy in which one or two texts are expressions, or of ``texts``: what stands there is of the right type at least."""
    tree, texts = copy.deepcopy(tree), tuple(texts)
    at = [(holder, key) for holder, key in places(tree) if isinstance(holder[key], str)]
    for holder, key in rng.sample(at, rng.randint(1, 2)):
        holder[key] = expression(rng) if rng.random() < 0.7 else rng.choice(texts)
    return tree


def edited(rng: random.Random, text: str, times: int = 4, tokens: Iterable[str] = TOKENS) -> str:
    """The text with one to ``times`` edits: characters and spans dropped, doubled, moved, and tokens put in."""
    tokens = tuple(tokens)
    for _ in range(rng.randint(1, times)):
        i = rng.randrange(len(text) + 1)
        j = min(len(text), i + rng.choice((1, 1, 2, 5, 20)))
        kind = rng.randrange(6)
        if kind <= 1:
            text = text[:i] + rng.choice(tokens) + text[i:]
        elif kind == 2:
            text = text[:i] + text[j:]
        elif kind == 3:
            text = text[:i] + text[i:j] + text[i:]
        elif kind == 4:
            k = rng.randrange(len(text) + 1)
            text = text[:k] + text[i:j] + text[k:]
        else:
            text = text[:i] + rng.choice(tokens) + text[j:]
    return text


def cases(seed: int, count: int) -> Iterator[random.Random]:
    """A generator of random numbers for each case of a seed."""
    for number in range(count):
        yield random.Random(f"{seed} {number}")
