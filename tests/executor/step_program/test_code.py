"""Code of large steps: what is compiled once for functions alike is, instruction for instruction, what Python makes of the text."""

from __future__ import annotations

import dis
import itertools
import random
from types import CodeType

import pytest
from graphdock_executor.step_program.code import compile_step
from graphdock_executor.step_program.names import Names, Suffixed, helper
from graphdock_executor.step_program.printer import Source, print_step
from graphdock_executor.step_program.statements import Block, Call, Copy, Launch, Let


def step(seed: int, period: int) -> tuple[Source, int]:
    """A step of 1,100 statements, of which ``period`` recur; and how many of them are no calls of names."""
    rng, names = random.Random(seed), Names()
    buffers = [names.new("buffer") for _ in range(20)]
    forms = [(rng.choice("LLLLCM"), rng.randrange(3), rng.randrange(4)) for _ in range(period)]
    block, odd = Block(), 0
    for kind, returns, count in itertools.islice(itertools.cycle(forms), 1100):
        args = tuple(rng.choices(buffers, k=count))
        made = tuple([names.new("value") for _ in range(returns)])
        if kind == "M":
            block.add(Copy(names.new("method"), *rng.choices(buffers, k=2)))
        else:
            statement = Launch if kind == "L" else Call
            block.add(statement(names.new("kernel"), args, made))
    for at in rng.sample(range(1100), 2 * (seed % 2)):
        block.statements[at] = Let((names.new("value"),), (Suffixed(buffers[0], ".copy()"),))
        odd += 1
    return print_step(block, [names.new("feed")], [helper("b0")]), odd


def functions(code: CodeType) -> dict[str, CodeType]:
    return {c.co_name: c for c in code.co_consts if isinstance(c, CodeType)}


def told(code: CodeType) -> list[tuple[object, ...]]:
    """Instructions, with the line of each."""
    found, line = [], None
    for item in dis.get_instructions(code):
        line = item.starts_line or line
        if item.opname != "EXTENDED_ARG":
            found.append((item.opname, item.argval if item.opname != "RESUME" else None, line))
    return found


@pytest.mark.parametrize(("seed", "period"), [(0, 1), (1, 5), (2, 9), (3, 40)])
def test_it_is_what_python_makes_of_the_text(seed: int, period: int) -> None:
    source, odd = step(seed, period)
    made, whole = compile_step(source, "here"), functions(compile(source.text, "here", "exec"))
    assert len(made.functions) >= len(source.parts) - odd
    mine = {**functions(made.module), **made.functions}
    assert mine.keys() == whole.keys()
    for name, code in whole.items():
        assert told(mine[name]) == told(code)
        other = mine[name]
        assert (other.co_filename, other.co_firstlineno, other.co_stacksize) == (
            "here",
            code.co_firstlineno,
            code.co_stacksize,
        )


def test_a_step_of_it_calls_what_the_text_calls() -> None:
    names = Names()
    feed, block = names.new("feed"), Block()
    value = feed
    for _ in range(1100):
        kernel, args = names.new("kernel"), (value, names.new("buffer"))
        value = names.new("value")
        block.add(Launch(kernel, args, (value,)))
    source = print_step(block, [feed], [value])

    def run(define) -> tuple[list[object], object]:  # type: ignore[no-untyped-def]
        seen: list[object] = []
        namespace: dict[str, object] = {f"b{i}": i for i in range(1100)}
        for i in range(1100):
            namespace[f"k{i}"] = lambda x, y, i=i: (seen.append((i, x, y)), (i, y))[1]
        define(namespace)
        return seen, namespace["step"](7)  # type: ignore[operator]

    made = compile_step(source, "here")
    assert len(made.functions) > 10
    assert run(made.define) == run(lambda namespace: exec(source.text, namespace))
