"""Tables of a manifest's text: what is wrong is said with its line, counted from the top of the file."""

import pytest
from graphdock.errors import ManifestError
from graphdock.plugin.manifest_reader import ManifestReader

TEXT = """\
[plugin]
name = "one"
number = true
"""


def reader(text=TEXT, offset=0):
    return ManifestReader(text, "pkg/graphdock-plugin.toml", offset)


@pytest.mark.parametrize(
    ("keys", "required", "line", "words"),
    [
        ({"name": str}, (), 3, "unknown key 'number' in plugin"),
        ({"name": str, "number": int}, (), 3, "'number' in plugin has the wrong type"),
        ({"name": int, "number": bool}, (), 2, "'name' in plugin has the wrong type"),
        ({"name": str, "number": bool}, ("api",), 1, "plugin lacks the key 'api'"),
    ],
)
@pytest.mark.parametrize("offset", [0, 10])
def test_a_wrong_table_is_told_of_with_its_line(keys, required, line, words, offset):
    here = reader(offset=offset)
    with pytest.raises(ManifestError) as caught:
        here.table(here.root["plugin"], ("plugin",), keys, required)
    assert caught.value.message == f"pkg/graphdock-plugin.toml:{line + offset}: {words}"


def test_a_right_table_is_given_back():
    here = reader()
    assert here.table(here.root["plugin"], ("plugin",), {"name": str, "number": bool}) == {
        "name": "one",
        "number": True,
    }


def test_strings_are_checked_one_by_one():
    here = reader('names = ["a", "b c"]\n')
    assert here.strings(["a", "b c"], ("names",)) == ("a", "b c")
    with pytest.raises(ManifestError, match="'names' holds 'b c'"):
        here.strings(["a", "b c"], ("names",), str.isidentifier)


def test_what_is_no_toml_has_the_line_of_the_file():
    with pytest.raises(ManifestError, match=r"graphdock-plugin\.toml:12:"):
        reader("a = 1\nb =\n", offset=10)
