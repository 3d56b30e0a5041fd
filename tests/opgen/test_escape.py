"""Text stays text wherever it lands: read back from each kind of file, it is what was written, and nothing beside it is there."""

from __future__ import annotations

import ast
import re
import tomllib

import pytest
from graphdock.errors import InternalError
from graphdock_opgen import escape
from graphdock_opgen.render import environment

EVIL = [
    "plain",
    '"',
    '""',
    '"""',
    '""""',
    'a"""+__import__("os").system("true")+"""',
    "\\",
    '\\"""',
    '\\\\"',
    "C:\\new\\u\\N{DASH}",
    "two\nlines",
    "carriage\rreturn",
    "\x00\x07\x0b\x0c\x1c\x7f\x85\u2028\u2029",
    "\ud800",
    "ü 漢 \U0001f600 \U000e0001",
    "' + 1/0 + '",
    "-->  <script>alert(1)</script>",
    "{{ 1/0 }} {% raw %}",
]


@pytest.mark.parametrize("text", EVIL)
def test_a_docstring_is_one_string_whatever_stands_around(text: str) -> None:
    shown = str(escape.docstring(text))
    for source in (f'"""{shown}."""', f'"""{shown}"""', f'"""{shown}\n    """', f'"""a {shown}{shown}."""'):
        tree = ast.parse(source)
        assert len(tree.body) == 1 and isinstance(tree.body[0].value, ast.Constant)
    assert ast.literal_eval(f'"""{shown}."""') == text + "."
    assert ast.literal_eval(f'"""{shown}"""') == text


@pytest.mark.parametrize("text", EVIL)
def test_a_comment_ends_with_its_line(text: str) -> None:
    assert ast.parse(f"# {escape.comment(text)}\n").body == []
    assert len(str(escape.comment(text)).splitlines()) == 1


@pytest.mark.parametrize("text", EVIL)
def test_a_toml_string_reads_back(text: str) -> None:
    read = tomllib.loads(f"a = {escape.toml(text)}\nb = 1\n")
    assert read == {"a": text.replace("\ud800", "\ufffd"), "b": 1}


@pytest.mark.parametrize("text", EVIL)
def test_an_html_comment_holds_it_all(text: str) -> None:
    shown = str(escape.html(text))
    assert "--" not in shown and ">" not in shown and "<" not in shown and "\n" not in shown


def test_prose_keeps_emphasis_lists_and_code_and_loses_the_rest() -> None:
    kept = "A *word*, **two words**, a ** b, `code <T> | 2**x`, [2, 3) and x | y.\n\n- one\n- two"
    assert escape.prose(kept) == kept
    cases = {
        "<b>x</b> & y": "\\<b>x\\</b> \\& y",
        "# head": "\\# head",
        "> quote": "\\> quote",
        "text\n---": "text\n\\---",
        "text\n   ===": "text\n\\===",
        "~~~": "\\~~~",
        "```\n<b>\n```": "\\`\\`\\`\n\\<b>\n\\`\\`\\`",
        "a ` b\n- <i>` c": "a \\` b\n- \\<i>\\` c",
        "\\<b>": "\\\\\\<b>",
        "\\`<b>\\`": "\\\\`<b>\\`",
        "[x](javascript:y)": "[x]\\(javascript:y)",
        "[x][y]": "[x]\\[y]",
        "- [x]: javascript:y": "- [x]\\: javascript:y",
        "| a | b |\n|---|---|": "\\| a | b |\n\\|---|---|",
        "2**32 of n**(k), (a)**-1": "2\\*\\*32 of n\\*\\*(k), (a)\\*\\*-1",
    }
    assert {text: str(escape.prose(text)) for text in cases} == cases


def test_a_line_is_one_line_and_a_cell_has_no_bar() -> None:
    assert escape.line("two\nlines\n\n# not a heading") == "two lines # not a heading"
    assert escape.cell("a | `b|c` \\| d") == "a \\| `b\\|c` \\\\\\| d"
    assert not re.search(r"(?<!\\)\|", escape.cell("x || y"))


def test_a_code_span_closes_after_all_of_it() -> None:
    assert escape.code("a b") == "`a b`"
    assert escape.code("a\n  `b` ``c``") == "``` a `b` ``c`` ```"
    assert escape.code("`") == "`` ` ``"


def test_a_code_block_is_indented_line_by_line() -> None:
    assert escape.verbatim("y = x\n\n  <b>\rz") == "    y = x\n\n      <b>\\rz"


@pytest.mark.parametrize("text", [t for t in EVIL if t != "plain"])
def test_a_template_prints_nothing_that_was_not_escaped(text: str) -> None:
    with pytest.raises(InternalError, match="as it came"):
        environment().from_string("# {{ text }}").render(text=text)
    environment().from_string("# {{ text | comment }}").render(text=text)
    assert environment().from_string("{{ n }} {{ name }}").render(n=3, name="a.b_c") == "3 a.b_c"
