"""Tables of a manifest's text: what is wrong is said with its line, counted from the top of the file."""

import pytest
from graphdock.errors import ManifestError
from graphdock.plugin.manifest_reader import Key, ManifestReader

TEXT = """\
[plugin]
name = "one"
number = true
"""


def reader(text=TEXT, offset=0):
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
