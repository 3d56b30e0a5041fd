"""The text of steps, also of those that are too long or too deep for one function: it runs, and each line knows its node."""

from __future__ import annotations

from typing import Any

import pytest
from graphdock_executor.step_program.names import MEANINGS, Apply, Literal, Name, Names, Suffixed, helper
from graphdock_executor.step_program.printer import CHUNK, DEPTH, print_step
from graphdock_executor.step_program.statements import Block, Branch, Compute, Leave, Let, Loop, blocks_of

LOCAL = [m for m, facts in MEANINGS.items() if facts.local and m != "feed"]


def run(block: Block, feeds: list[Name], result: Name, *values: Any) -> Any:
    names: dict[str, Any] = {"running": True}
    exec(print_step(block, feeds, [result]).text, names)
    return names["step"](*values)[0]


def counted(names: Names, meaning: str, count: int, first: Name) -> tuple[Block, Name]:
    block, last = Block(), first
    for _ in range(count):
        following = names.new(meaning)
        block.add(Compute(following, "{0} + 1", (last,)))
        last = following
    return block, last


@pytest.mark.parametrize("meaning", LOCAL)
@pytest.mark.sampled(2)
def test_a_long_step_is_cut_and_keeps_its_values_between_the_parts(meaning: str) -> None:
    names = Names()
    feed = names.new("feed")
    block, last = counted(names, meaning, 3 * CHUNK, feed)
    source = print_step(block, [feed], [last]).text
    longest = max(part.count("\n") for part in source.split("def ") if part.startswith("part"))
    assert longest <= 1.1 * CHUNK
    assert run(block, [feed], last, 5) == 5 + 3 * CHUNK


def test_nothing_of_a_long_step_outlives_it() -> None:
    names = Names()
    feed = names.new("feed")
    block, last = counted(names, "value", 2 * CHUNK, feed)
    space: dict[str, Any] = {}
    exec(print_step(block, [feed], [last]).text, space)
    assert space["step"](1) == (1 + 2 * CHUNK,)
    assert {v for k, v in space.items() if k[0] in "fv" and k[1:].isdigit()} == {None}
    with pytest.raises(TypeError):
        space["step"]("not a number")
    assert {v for k, v in space.items() if k[0] in "fv" and k[1:].isdigit()} == {None}


@pytest.mark.parametrize("before", range(CHUNK - 4, CHUNK + 2))
def test_a_cut_never_parts_an_if_from_its_else(before: int) -> None:
    names = Names()
    feed, chosen, last = names.new("feed"), names.new("value"), names.new("value")
    block, _ = counted(names, "value", before, feed)
    then, otherwise = (Block([Let((chosen,), (Literal(text),))]) for text in ("then", "else"))
    block.add(Branch(feed, then, otherwise))
    block.add(Let((last,), (chosen,)))
    assert [run(block, [feed], last, x) for x in (True, False)] == ["then", "else"]


def test_bodies_in_bodies_beyond_what_python_nests_run() -> None:
    names = Names()
    feed, total = names.new("feed"), names.new("value")
    top = block = Block([Let((total,), (Literal(0),))])
    nested = 40
    for _ in range(nested):
        inner = Block([Compute(total, "{0} + {1}", (total, feed))])
        block.add(Loop(inner))
        block = inner
    stack = [top]
    while stack:
        for statement in stack.pop().statements:
            for inner in blocks_of(statement):
                inner.add(Leave(Literal(False)))
                stack.append(inner)
    assert nested > 4 * DEPTH
    assert run(top, [feed], total, 2) == 2 * nested


@pytest.mark.parametrize(("count", "nested"), [(5, 1), (2 * CHUNK, 1), (5, 30)])
def test_each_line_of_the_text_knows_the_node_it_came_from(count: int, nested: int) -> None:
    names = Names()
    feed, value = names.new("feed"), names.new("value")
    top = block = Block()
    for depth in range(nested):
        for i in range(count):
            text = f"{depth}/{i:05}"
            block.add(Let((value,), (Literal(text),), node=f"node {text}"))  # type: ignore[arg-type]
        then = Block()
        block.add(Branch(feed, then, Block()))
        block = then
    source = print_step(top, [feed], [value])
    lines = source.text.splitlines()
    assert len(source.statements) == len(lines) + 1
    made = 0
    for line, statement in zip(lines, source.statements[1:], strict=True):
        if " = '" in line:
            assert statement is not None
            assert f"node {line.rpartition(' = ')[2][1:-1]}" == statement.node
            made += 1
    assert made == count * nested


def test_operands_print_and_have_values_where_they_are_known() -> None:
    space = {"own_copy": lambda x: x * 2, "b0": 21}
    name = Name("buffer", "b0")
    made = Apply(helper("own_copy"), name)
    assert (made.text, made.value(space)) == ("own_copy(b0)", 42)
    assert (Literal(None).text, Literal(-3).value(space)) == ("None", -3)
    assert Suffixed(name, ".copy()").text == "b0.copy()"
    with pytest.raises(TypeError, match="b0.item"):
        Suffixed(name, ".item()").value(space)
