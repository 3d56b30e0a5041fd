"""YAML with positions."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from graphdock.errors import OpSpecError
from graphdock_opgen.reader import parse, read


def test_every_value_and_key_has_its_line_and_column() -> None:
    document = parse('a: 1\nb:\n- {c: "x y", d: [1, 2]}\n', "f.yaml")
    assert document.data == {"a": 1, "b": [{"c": "x y", "d": [1, 2]}]}
    assert document.position(("a",)) == (1, 4)
    assert document.position(("b", 0, "c")) == (3, 7)
    assert document.position(("b", 0, "d"), key=True) == (3, 14)
    assert document.position(("b", 0, "d", 1)) == (3, 21)


def test_an_offset_counts_from_the_first_character_inside_the_quotes() -> None:
    document = parse("a: 'xy + z'\nb: xy + z\nc: >-\n  xy +\n  z\n", "f.yaml")
    assert document.position(("a",), offset=5) == (1, 10)
    assert document.position(("b",), offset=5) == (2, 9)
    assert document.position(("c",), offset=5) == (3, 4)  # a folded scalar: only where it begins


def test_scalars_are_null_bool_int_float_and_str() -> None:
    text = "[null, ~, true, 3, -4, 2.5, 1e-5, 1.0e-5, .inf, 'true', none, '1e-5', e5]"
    assert parse(text, "f").data == [
        None, None, True, 3, -4, 2.5, 1e-5, 1e-5, float("inf"), "true", "none", "1e-5", "e5",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "where", "message"),
    [
        ("a: 1\nb: 2\na: 3\n", (3, 1), "key 'a' stands here twice, first in line 1"),
        ("x: {k: 1, k: 2}\n", (1, 11), "key 'k' stands here twice"),
        ("a: 1\n  b: 2\n", (2, 4), "not YAML"),
        ("a: [1\n", (2, 1), "not YAML"),
        ("on: 1\n", (1, 1), "the key 'on' reads as bool"),
        ("1: 1\n", (1, 1), "the key '1' reads as int"),
        ("a: 2001-01-01\n", (1, 4), "YAML type 'timestamp'"),
        ("a: !!python/object:os.system x\n", (1, 4), "python/object"),
        ("", (1, 1), "the file is empty"),
    ],
)
def test_faults_name_line_and_column(text: str, where: tuple[int, int], message: str) -> None:
    with pytest.raises(OpSpecError) as caught:
        parse(text, "f.yaml")
    assert (caught.value.line, caught.value.column) == where
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"f.yaml:{where[0]}:{where[1]}: ")


def test_a_file_that_is_not_utf8_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(b"a: \xff")
    with pytest.raises(OpSpecError, match=r"x\.yaml:0:0: not UTF-8"):
        read(path)


LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(c)}: &{chr(c)} [{', '.join([f'*{chr(c - 1)}'] * 9)}]\n" for c in range(ord("b"), ord("l"))
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: &a [*a]\n", "an alias nests deeper than 64"),
        ("&a {b: {c: *a}}\n", "an alias nests deeper than 64"),
        ("&a [&b {x: *a, y: *b}]\n", "an alias nests deeper than 64"),
        (LAUGHS, "aliases stand for more values than the file may hold"),
        ("[" * 200_000, "nested deeper than 64"),
        ("- " * 200_000, "nested deeper than 64"),
        ("{a: " * 50_000 + "}" * 50_000, "nested deeper than 64"),
        ("? " * 50_000, "nested deeper than 64"),
        ("a: " + "9" * 5000 + "\n", "a number has 40 characters at most"),
        ("a: 0x" + "f" * 5000 + "\n", "a number has 40 characters at most"),
        ("a: 1" + ":1" * 5000 + "\n", "a number has 40 characters at most"),
        ("a: 18446744073709551616\n", "18446744073709551616 does not fit into 64 bits"),
        ("a: -9223372036854775809\n", "does not fit into 64 bits"),
        ("a: 0b_\n", "'0b_' is no int"),
        ("a: !!int seven\n", "'seven' is no int"),
        ("a: !!int ''\n", "'' is no int"),
        ("a: !!float x\n", "'x' is no float"),
        ("a: !!bool maybe\n", "'maybe' is no bool"),
        ("<<: {a: 1}\n", "YAML type 'merge'"),
        ('a: "\\ud800"\n', "half of a surrogate pair is no character|invalid Unicode character"),
        ("a: 1\n---\nb: 2\n", "not YAML: but found another document"),
        ("\x00", "not YAML"),
        ("a: *b\n", "not YAML: found undefined alias"),
    ],
    ids=range(23),
)
def test_what_would_not_end_or_fit_is_refused(text: str, message: str) -> None:
    with pytest.raises(OpSpecError, match=message) as caught:
        parse(text, "f.yaml")
    assert len(str(caught.value)) < 300


def test_an_alias_stands_for_what_its_anchor_holds() -> None:
    document = parse("a: &a {k: [1, 2]}\nb: [*a, *a]\n", "f.yaml")
    assert document.data == {"a": {"k": [1, 2]}, "b": [{"k": [1, 2]}] * 2}
    assert document.position(("b", 1, "k", 0)) == (1, 12)


def test_without_libyaml_the_limits_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(yaml, "CSafeLoader")
    for text in ("[" * 5000, "a: &a [*a]\n", LAUGHS):
        with pytest.raises(OpSpecError, match="deeper than 64|more values than"):
            parse(text, "f.yaml")


def test_a_folder_or_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").mkdir()
    with pytest.raises(OpSpecError, match=r"x\.yaml:0:0: not a file"):
        read(tmp_path / "x.yaml")
    with pytest.raises(OpSpecError, match=r"y\.yaml:0:0: can't be read: No such file"):
        read(tmp_path / "y.yaml")
