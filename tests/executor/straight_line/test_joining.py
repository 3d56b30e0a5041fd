"""Runs of alike kernels in a recording are made one call, where none touches what another one writes."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from graphdock import dtypes
from graphdock.contracts import Prepared
from graphdock_executor.step_program.names import Name
from graphdock_executor.step_program.statements import Block, Copy, Launch, Segment
from graphdock_executor.storage import Root
from graphdock_executor.straight_line.joining import join_kernels

_numbers = itertools.count()


def root(kind: str = "variable") -> Root:
    return Root(kind, "chip", dtypes.float32, (1,))


class Program:
    """Launches of kernels; ``called``: what calls do, in their order. What is joined is a tuple."""

    def __init__(self) -> None:
        self.namespace: dict[str, Any] = {}
        self.prepared: dict[Any, Prepared] = {}
        self.called: list[Any] = []
        self.statements: list[Any] = []

    def launch(self, like: Any = "sgd", reads: Any = (), writes: Any = None, joins: Any = None) -> str:
        name = Name("kernel", f"k{next(_numbers)}")
        launch = Launch(name, ())
        launch.reads, launch.writes = tuple(reads), (root(),) if writes is None else tuple(writes)
        self.statements.append(launch)
        self.namespace[name.text] = lambda: self.called.append(name.text)
        if like is not None:
            self.prepared[name] = Prepared(lambda ctx: None, like=like, joins=joins or self.joins)
        return name.text

    def joins(self, computes: Any) -> Any:
        def all_of_them() -> None:
            start = len(self.called)
            for compute in computes:
                compute()
            self.called[start:] = [tuple(self.called[start:])]

        return all_of_them

    def run(self) -> list[Any]:
        join_kernels(self.namespace, [Segment(Name("replay", "p0"), Block(self.statements))], self.prepared)
        for statement in self.statements:
            if isinstance(statement, Launch):
                self.namespace[statement.kernel.text]()
        return self.called


def test_a_run_is_one_call() -> None:
    p = Program()
    names = [p.launch(), p.launch(), p.launch(), p.launch("adam"), p.launch("adam"), p.launch(None), p.launch()]
    assert p.run() == [tuple(names[:3]), tuple(names[3:5]), names[5], names[6]]


def test_other_work_parts_a_run() -> None:
    p = Program()
    first = p.launch()
    p.statements.append(Copy(Name("method", "d0"), Name("buffer", "b0"), Name("buffer", "b1")))
    second = p.launch()
    assert p.run() == [first, second]


@pytest.mark.parametrize("which", ["both write", "the second reads", "the first reads", "no lasting one"])
def test_what_depends_on_one_another_stays_apart(which: str) -> None:
    p, shared = Program(), root("fresh" if which == "no lasting one" else "variable")
    reads = {"the first reads": 0, "the second reads": 1}.get(which)
    names = [
        p.launch(reads=[shared] if reads == 0 else [], writes=[shared] if reads == 1 or reads is None else None),
        p.launch(
            reads=[shared] if reads == 1 else [], writes=[shared] if reads == 0 or which == "both write" else None
        ),
    ]
    assert p.run() == names


def test_a_kernel_may_refuse() -> None:
    p = Program()
    names = [p.launch(joins=lambda computes: None), p.launch()]
    assert p.run() == names


@pytest.mark.parametrize(("offset", "joined"), [(4, True), (0, False), (2, False)])
def test_planned_buffers_are_joined_where_they_do_not_lie_over_one_another(offset: int, joined: bool) -> None:
    """What the first reads is dead after it, and the second may write there."""
    p = Program()
    given, made = root("planned"), root("planned")
    given.offset, made.offset = 0, offset
    names = [p.launch(reads=[given], writes=[root("planned")]), p.launch(writes=[made])]
    assert p.run() == ([tuple(names)] if joined else names)
