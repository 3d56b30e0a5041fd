"""Lines of keys in TOML text."""

import pytest
from graphdock.plugin.toml_text import line_of

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
