"""The text of steps that are too long or too deep for one function: it runs, and each line knows its node."""

from __future__ import annotations

from typing import Any

import pytest
from graphdock.runtime.source import CHUNK, DEPTH, Block, render


def run(block: Block, feeds: list[str], result: str, *values: Any) -> Any:
    source, _ = render(block, feeds, result)
    names: dict[str, Any] = {}
    exec(source, names)
    return names["step"](*values)


@pytest.mark.parametrize("letter", "efhlmnstv")
def test_a_long_step_is_cut_and_keeps_its_values_between_the_parts(letter: str) -> None:
    block = Block()
    block.add(f"{letter}0 = f0")
    for i in range(3 * CHUNK):
        block.add(f"{letter}{i + 1} = {letter}{i} + 1")
    source, _ = render(block, ["f0"], f"{letter}{3 * CHUNK}")
    longest = max(part.count("\n") for part in source.split("def "))
    assert longest <= 1.1 * CHUNK
    assert run(block, ["f0"], f"{letter}{3 * CHUNK}", 5) == 5 + 3 * CHUNK


@pytest.mark.parametrize("before", range(CHUNK - 4, CHUNK + 2))
def test_a_cut_never_parts_an_if_from_its_else(before: int) -> None:
    block = Block()
    for i in range(before):
        block.add(f"v{i} = {i}")
    block.add("if f0:")
    block.nested().add("v9999 = 'then'")
    block.add("else:")
    block.nested().add("v9999 = 'else'")
    block.add("v10000 = v9999")
    assert [run(block, ["f0"], "v10000", x) for x in (True, False)] == ["then", "else"]


def test_bodies_in_bodies_beyond_what_python_nests_run() -> None:
    top = block = Block()
    top.add("v0 = 0")
    for i in range(40):
        block.add("while True:")
        block = block.nested()
        block.add(f"v{i + 1} = v{i} + f0")
        block.add(f"if v{i + 1} > 10**6: break")
    for inner in reversed(_blocks(top)[1:]):
        inner.add("break")
    assert top.depth() > 4 * DEPTH
    assert run(top, ["f0"], "v40", 2) == 80


def _blocks(top: Block) -> list[Block]:
    found = [top]
    for item in found[-1].items:
        if isinstance(item, Block):
            found += _blocks(item)
    return found


@pytest.mark.parametrize(("count", "nested"), [(5, 1), (2 * CHUNK, 1), (5, 30)])
def test_each_line_of_the_text_knows_the_node_it_came_from(count: int, nested: int) -> None:
    top = block = Block()
    for depth in range(nested):
        for i in range(count):
            block.add(f"v{i} = {depth}{i:05}", f"node {depth}{i:05}")  # type: ignore[arg-type]
        block.add("if f0:")
        block = block.nested()
    block.add("pass")
    source, nodes = render(top, ["f0"], "v0")
    lines = source.splitlines()
    assert len(nodes) == len(lines) + 1
    made = 0
    for line, node in zip(lines, nodes[1:], strict=True):
        if " = " in line and node is not None:
            assert f"node {line.rpartition(' = ')[2]}" == node
            made += 1
    assert made == count * nested
