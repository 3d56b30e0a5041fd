"""The expression language: whatever stands in a spec is either of the language or an OpSpecError; nothing is ever run."""

from __future__ import annotations

import ast

import pytest
from graphdock.errors import OpSpecError
from graphdock_opgen.expr import DIM_NODES, FORMULA_NODES, Source, names, pattern
from graphdock_opgen.reader import Document, parse
from hypothesis import given
from hypothesis import strategies as st

ATOMS = st.sampled_from(
    ["a", "b", "g.y", "1", "2.5", "'s'", "None", "__import__('os')", "f(x)", "[a]", "(a,)", "a.b", "..."]
)
OPERATORS = st.sampled_from(["+", "-", "*", "/", "//", "%", "**", "and", "or", "==", "<", "if", "else", "not", ",", ":", ":=", "lambda", "for", "(", ")", "[", "]"])  # fmt: skip  # noqa: E501


def source(text: str) -> Source:
    return Source(text, Document("s.yaml", None, parse("x", "s.yaml").values), ())


@given(st.one_of(st.text(max_size=40), st.lists(st.one_of(ATOMS, OPERATORS), max_size=9).map(" ".join)))
def test_any_text_parses_to_the_language_or_is_an_error(text: str) -> None:
    for allowed in (DIM_NODES, FORMULA_NODES):
        try:
            tree = source(text).parse(allowed)
        except OpSpecError as error:
            assert str(error).startswith("s.yaml:1:")
            continue
        assert all(isinstance(n, allowed) for n in ast.walk(tree))
        assert not any(
            isinstance(n, ast.Lambda | ast.NamedExpr | ast.GeneratorExp | ast.ListComp) for n in ast.walk(tree)
        )


@pytest.mark.parametrize(
    "text", ["__import__('os').system('x')", "(lambda: 0)()", "[x for x in y]", "a := 1", "f'{x}'", "b'x'", "1j", "..."]
)
def test_python_beyond_the_language_is_refused(text: str) -> None:
    with pytest.raises(OpSpecError):
        source(text).parse(DIM_NODES)


@pytest.mark.parametrize(("text", "column"), [("a + (b", 5), ("a +* b", 4), ("  a b", 5), ("a + b.c", 5)])
def test_the_column_inside_the_expression(text: str, column: int) -> None:
    with pytest.raises(OpSpecError, match=rf"(?m)column {column}$"):
        source(text).parse(DIM_NODES)


def test_functions_are_not_names() -> None:
    tree = source("f(a, k=b) + (c if d else e)").parse(FORMULA_NODES)
    assert [n.id for n in names(tree)] == ["a", "b", "d", "c", "e"]


@pytest.mark.parametrize("text", ["[*S, 2*i + 1, _, 3]", "[]", "?", "[A]", " [ *B , M ] "])
def test_patterns(text: str) -> None:
    found = pattern(source(text))
    assert found is None if text == "?" else isinstance(found, list)


@pytest.mark.parametrize(
    "text", ["A", "[*A, *B]", "[*f(A)]", "[-1]", "[True]", "[[A]]", "[A", "[A for A in B]", "['x']"]
)
def test_what_is_no_pattern(text: str) -> None:
    with pytest.raises(OpSpecError):
        pattern(source(text))
