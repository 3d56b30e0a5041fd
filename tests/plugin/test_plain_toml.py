"""TOML of the form of manifests, against ``tomllib``: what is read is the same, and what is no TOML is not read."""

from __future__ import annotations

import random
import tomllib
from pathlib import Path

import pytest
from graphdock.plugin.plain_toml import loads

ROOT = Path(__file__).parents[2]
OWN = sorted([*ROOT.glob("plugins/*/graphdock_*/graphdock-plugin.toml"), *ROOT.glob("host/graphdock/config/*.toml")])
#: What mutations put in: each means something somewhere.
BITS = [
    '"',
    "'",
    "[",
    "]",
    "[[",
    "]]",
    "{",
    "}",
    ",",
    "=",
    ".",
    "#",
    "\n",
    " ",
    "\t",
    "\\",
    "-",
    "+",
    "0",
    "1",
    "a",
    "_",
    "\r",
    "é",
]
FORMS = """
a = 1
t.u = 2
[x]
a = "b" # c
list = ["p", "q",
  "r",   # no
]
brackets = ["a]b", "c # d", "[",]
quotes = ['''e''', "f"]
n = {k = [1, -2, 03], m = {}, o = {p = true}}
[[y]]
a = 0
[y.z]
[[y]]
[y.z]
f = 1.5
d = 1979-05-27
s = '''x'''
[x.y.z]
[x.y]
"""


def theirs(text):
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, ValueError):
        return "no TOML"


@pytest.mark.parametrize("path", OWN, ids=[f"{p.parent.name}/{p.name}" for p in OWN])
def test_graphdocks_own_files_are_of_that_form(path):
    text = path.read_text()
    assert loads(text) == tomllib.loads(text)


@pytest.mark.parametrize(
    "text",
    [
        "a = 1\na = 2",
        "[a]\n[a]",
        "[[a]]\n[a]",
        "a = {b = 1}\n[a.c]",
        "a = [{b = 1}]\n[[a]]",
        "[a]\nb = 1\n[a.b]",
        "a = 01",
    ]
    + [
        "a = {b = 1, }",
        "a = {b = 1, b = 2}",
        "a = \n1",
        "= 1",
        "[]",
        "[a.]",
        "a = [1 2]",
        "a = {\nb = 1}",
        "a = 1 b = 2",
        "[a] b = 1",
    ],
)
def test_what_is_no_toml_is_not_read(text):
    assert theirs(text) == "no TOML" and loads(text) is None


@pytest.mark.parametrize("seed", range(20))
def test_texts_with_errors_in_them_are_read_alike_or_not_at_all(seed):
    rng, read = random.Random(seed), 0
    texts = [*(p.read_text().partition("[kernels]")[0] for p in OWN), FORMS, *FORMS.split("\n[")]
    for _ in range(400):
        text = rng.choice(texts)[: rng.choice((60, 200, 4000))]
        for _ in range(rng.randint(0, 3)):
            at = rng.randint(0, len(text))
            text = text[:at] + rng.choice(BITS) + text[at + rng.randint(0, 2) :]
        found = loads(text)
        read += found is not None
        assert found is None or found == theirs(text), text
    assert read > 40  # or nothing was tested
