"""Lines of keys in TOML text."""

import pytest
from graphdock.errors import ConfigError
from graphdock.plugin.toml_text import line_of, parse

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
