"""Lines of keys in TOML text.

Tables of a manifest's text: what is wrong is said with its line, counted from the top of the file.
"""

from __future__ import annotations

import pytest
from graphdock.errors import ConfigError, ManifestError
from graphdock.plugin.toml_text import Key, ManifestReader, line_of, parse

TEXT = """\
# a comment with backends = 3
title = "x"

[session]
backends = ["cpu"]
options = {cuda = {tile = 1}}
kernels."MatMul@cuda" = "cuda.x"

[session.options.toy]   # memory
memory = 3

[profile.laptop.session]
backends = ["other"]

[[kernels]]
op = "A"

[[kernels]]
op = "B"
name = "b"
"""


@pytest.mark.parametrize(
    ("path", "line"),
    [
        (("title",), 2),
        (("session",), 4),
        (("session", "backends"), 5),
        (("session", "options", "cuda", "tile"), 6),
        (("session", "kernels", "MatMul@cuda"), 7),
        (("session", "options", "toy"), 9),
        (("session", "options", "toy", "memory"), 10),
        (("profile", "laptop", "session", "backends"), 13),
        (("kernels", 0, "op"), 16),
        (("kernels", 1, "op"), 19),
        (("kernels", 1, "name"), 20),
        (("kernels", 1, "absent"), 18),
        (("kernels", 0, "name"), 15),
        (("session", "absent"), 4),
        (("absent",), 1),
    ],
)
def test_the_line_of_a_key_or_of_its_nearest_parent(path, line):
    assert line_of(TEXT, *path) == line


def test_the_tables_of_an_array_are_counted_without_the_table_around_them():
    text = "[conformance]\nnote = 1\n[[conformance.xfail]]\nop = 'A'\n[[conformance.xfail]]\nop = 'B'\n"
    assert [line_of(text, "conformance", "xfail", i, "op") for i in (0, 1)] == [4, 6]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = " + "[" * 900 + "]" * 900, "f: not valid TOML: nested deeper than 32"),
        ("a = " + "{b=" * 900 + "1" + "}" * 900, "f: not valid TOML: nested deeper than 32"),
        ("x = 1\na = " + "[" * 40 + "]" * 40, "f:2: nested deeper than 32"),
        ("[b]\n" + "a." * 10_000 + "a = 1", "f:2: nested deeper than 32"),
        (
            "\n[" + "a." * 50_000 + "a]\n" + "".join(f"k{i}=1\n" for i in range(25_000)),
            "f:2: nested deeper than 32",
        ),
        ("a = " + "1" * 5000, "f: not valid TOML: Exceeds the limit"),
        ("[b]\na = " + "1" * 400, "f:2: b.a does not fit into 64 bits"),
        ("a = [1, {b = 9223372036854775808}]", "f:1: a.b does not fit into 64 bits"),
        ("a = 1\nb =", "f:2: not valid TOML: Invalid value"),
        ("\x00", "f:1: not valid TOML"),
    ],
    ids=range(10),
)
def test_what_is_too_deep_or_too_large_is_refused_in_time_that_grows_as_the_text(text, message):
    with pytest.raises(ConfigError) as caught:
        parse(text, "f", ConfigError)
    assert caught.value.message.startswith(message)


def test_numbers_and_quotes_with_dots_are_no_tables():
    text = (
        "a = [\n[" + "1.5, " * 50 + "],\n]\n'" + "b." * 50 + "' = 1\nc = '" + "c." * 50 + "'\n['" + "d." * 50 + "']\n"
    )
    data = parse(text, "f", ConfigError)
    assert list(data) == ["a", "b." * 50, "c", "d." * 50] and len(data["a"][0]) == 50


def test_looking_for_a_line_takes_time_that_grows_as_the_text():
    """A line of a text within quotes may look like the beginning of a table, with any number of blanks."""
    text = 'a = """\n[' + " " * 100_000 + "\n" + "b" * 100_000 + " " * 100_000 + '\n"""\nkey = 1\n'
    assert parse(text, "f", ConfigError)["key"] == 1
    assert line_of(text, "key") == 5


TABLE = """\
[plugin]
name = "one"
number = true
"""


def reader(text=TABLE, offset=0):
    return ManifestReader(text, "pkg/graphdock-plugin.toml", offset)


@pytest.mark.parametrize(
    ("keys", "line", "words"),
    [
        ({"name": Key(str)}, 3, "unknown key 'number' in plugin"),
        ({"name": Key(str), "number": Key(int)}, 3, "'number' in plugin has the wrong type"),
        ({"name": Key(int), "number": Key(bool)}, 2, "'name' in plugin has the wrong type"),
        ({"name": Key(str), "number": Key(bool), "api": Key(str, True)}, 1, "plugin lacks the key 'api'"),
        ({"name": Key(str, fits=str.isupper, message="{!r} is low"), "number": Key(bool)}, 2, "'one' is low"),
    ],
)
@pytest.mark.parametrize("offset", [0, 10])
def test_a_wrong_table_is_told_of_with_its_line(keys, line, words, offset):
    here = reader(offset=offset)
    with pytest.raises(ManifestError) as caught:
        here.table(here.root["plugin"], ("plugin",), keys)
    assert caught.value.message == f"pkg/graphdock-plugin.toml:{line + offset}: {words}"


def test_a_right_table_is_given_back():
    here = reader()
    assert here.table(here.root["plugin"], ("plugin",), {"name": Key(str), "number": Key(bool)}) == {
        "name": "one",
        "number": True,
    }


def test_what_a_wrong_value_is_told_with():
    here = reader()
    near = Key(
        str, fits=["once", "two"].__contains__, message="that is no number", expected="a number", known=["once", "two"]
    )
    with pytest.raises(ManifestError, match="that is no number") as caught:
        here.table(here.root["plugin"], ("plugin",), {"name": near, "number": Key(bool)})
    assert (caught.value.expected, caught.value.got, caught.value.hint) == ("a number", "'one'", "did you mean 'once'?")


def test_strings_are_checked_one_by_one():
    here = reader('names = ["a", "b c"]\n')
    assert here.table(here.root, (), {"names": Key(list, items=bool)}) == {"names": ("a", "b c")}
    with pytest.raises(ManifestError, match="'names' holds 'b c'"):
        here.table(here.root, (), {"names": Key(list, items=str.isidentifier)})


def test_the_rows_of_an_array_are_tables():
    here = reader('[[row]]\na = 1\n[[row]]\na = "x"\n')
    assert here.rows(here.root["row"][:1], ("row",), {"a": Key(int)}) == [{"a": 1}]
    with pytest.raises(ManifestError, match=r"toml:4: 'a' in row has the wrong type"):
        here.rows(here.root["row"], ("row",), {"a": Key(int)})


def test_what_is_no_toml_has_the_line_of_the_file():
    with pytest.raises(ManifestError, match=r"graphdock-plugin\.toml:12:"):
        reader("a = 1\nb =\n", offset=10)
