"""YAML with positions."""

from __future__ import annotations

from pathlib import Path

import pytest
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
