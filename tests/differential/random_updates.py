"""Random steps over variables, and a sequential interpreter of them.

The interpreter runs the nodes that a step needs, those created first first (after what they wait for); a read is a snapshot.
A fetched variable is read when all of them have run. What a step may fetch is numbered: the nodes, then the variables.
Bodies of conds and loops are scripts: functions over an API that either acts at once on NumPy arrays or builds tensors.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import graphdock as tf
import numpy as np

VIEWS: list[tuple[str, Callable[[Any], Any], Callable[[Any], Any]]] = [
    ("transpose", lambda a: a.T, tf.transpose),
    ("reverse rows", lambda a: a[::-1], lambda t: t[::-1]),
    ("reverse columns", lambda a: a[:, ::-1], lambda t: t[:, ::-1]),
    ("reshape twice", lambda a: a.reshape(4)[::-1].reshape(2, 2), lambda t: tf.reshape(tf.reshape(t, [4])[::-1], [2, 2])),
    ("identity", lambda a: a, tf.identity),
    ("first row", lambda a: a[:1], lambda t: t[:1]),
    ("unstack and stack", lambda a: np.stack([a[1], a[0]]), lambda t: tf.stack(tf.unstack(t)[::-1])),
]  # fmt: skip
BINARY: list[tuple[str, Callable[[Any, Any], Any], Callable[[Any, Any], Any]]] = [
    ("add", lambda a, b: a + b, lambda a, b: a + b),
    ("sub", lambda a, b: a - b, lambda a, b: a - b),
    ("mul", lambda a, b: a * b, lambda a, b: a * b),
    ("max", np.maximum, tf.maximum),
]
SQUARE = (2, 2)


@dataclass
class Node:
    what: str
    inputs: list[int]
    control: list[int]
    run: Callable[..., Any]
    build: Callable[..., Any]
    late: list[int] = field(default_factory=list)


class Numbers:
    """The API of scripts over arrays: what is done happens now."""

    def __init__(self, state: dict[int, np.ndarray]) -> None:
        self.state = state

    def read(self, v: int) -> Any:
        return self.state[v].copy()

    def update(self, kind: str, v: int, x: Any) -> Any:
        value = np.broadcast_to(np.asarray(x), self.state[v].shape).copy()
        before = self.state[v]
        self.state[v] = value if kind == "assign" else before + value if kind == "add" else before - value
        return self.state[v].copy()

    def view(self, i: int, x: Any) -> Any:
        return VIEWS[i][1](x)

    def binary(self, i: int, x: Any, y: Any) -> Any:
        return BINARY[i][1](x, y)

    def cond(self, x: Any, then: Callable[[], Any], other: Callable[[], Any]) -> Any:
        return then() if x.sum() % 2 == 0 else other()

    def loop(self, count: int, start: Any, body: Callable[[Any], Any]) -> Any:
        for _ in range(count):
            start = body(start)
        return start


class Tensors:
    """The same over tensors."""

    def __init__(self, variables: Sequence[Any]) -> None:
        self.variables = variables
        #: What each body that is being built has done so far.
        self.done: list[list[Any]] = [[]]

    def _waited(self, made: Any) -> Any:
        self.done[-1].append(made)
        return made

    def _body(self, body: Callable[..., Any]) -> Callable[..., Any]:
        """The function with a result that waits for all it has done: a body runs what its result needs."""

        def waiting(*args: Any) -> Any:
            self.done.append([])
            result = body(*args)
            with tf.control_dependencies(self.done.pop()):
                return tf.identity(result)

        return waiting

    def read(self, v: int) -> Any:
        return self.variables[v].read_value()

    def update(self, kind: str, v: int, x: Any) -> Any:
        variable = self.variables[v]
        x = x + tf.zeros(SQUARE, variable.dtype)  # rows become squares
        return self._waited(
            {"assign": variable.assign, "add": variable.assign_add, "sub": variable.assign_sub}[kind](x)
        )

    def view(self, i: int, x: Any) -> Any:
        return VIEWS[i][2](x)

    def binary(self, i: int, x: Any, y: Any) -> Any:
        return BINARY[i][2](x, y)

    def cond(self, x: Any, then: Callable[[], Any], other: Callable[[], Any]) -> Any:
        test = tf.equal(tf.floormod(tf.reduce_sum(x), 2), 0)
        return self._waited(tf.cond(test, self._body(then), self._body(other)))

    def loop(self, count: int, start: Any, body: Callable[[Any], Any]) -> Any:
        step = self._body(body)
        return self._waited(
            tf.while_loop(lambda i, x: i < count, lambda i, x: (i + 1, step(x)), [tf.constant(0), start])[1]
        )


def _all(api: Any, result: Any, captured: Sequence[Any]) -> Any:
    """The result, made to need every captured value: what no body reads is not computed."""
    for x in captured:
        result = api.binary(0, result, api.binary(1, x, x))
    return result


Script = Callable[[Any, list[Any]], Any]


class Updates:
    """A random program over int64 squares.

    Attributes:
      nodes: in order of creation. ``shapeless``: variables that may change their shape.
    """

    shapeless: Sequence[int] = ()

    def __init__(self, seed: int, variables: int = 3) -> None:
        self.seed = seed
        self.rng = np.random.default_rng(seed)
        self.initial = [self.rng.integers(-9, 9, SQUARE) for _ in range(variables)]
        self.nodes: list[Node] = []

    @property
    def fetchable(self) -> int:
        """How many numbers of nodes and variables there are."""
        return len(self.nodes) + len(self.initial)

    def what(self, number: int) -> str:
        count = len(self.nodes)
        return f"node {number} {self.nodes[number].what}" if number < count else f"variable {number - count}"

    def pick(self, items: Sequence[Any]) -> Any:
        return items[int(self.rng.integers(len(items)))]

    def any(self) -> int:
        count = len(self.nodes)
        low = max(0, count - 6) if self.rng.random() < 0.6 else 0
        return int(self.rng.integers(low, count))

    def script(self, depth: int) -> Script:
        """Steps over the variables and the captured values; the result is a square."""
        lines: list[Callable[[Any, list[Any]], Any]] = []
        for _ in range(int(self.rng.integers(1, 5))):
            kind = self.pick(["read", "update", "update", "view", "binary", "cond", "loop"])
            v, i, j = int(self.rng.integers(len(self.initial))), int(self.rng.integers(64)), int(self.rng.integers(64))
            if kind == "read":
                lines.append(lambda api, xs, v=v: api.read(v))
            elif kind == "update":
                how = self.pick(["assign", "add", "sub"])
                lines.append(lambda api, xs, v=v, i=i, how=how: api.update(how, v, xs[i % len(xs)]))
            elif kind == "view":
                which = self.pick([0, 1, 2, 3, 4, 6])
                lines.append(lambda api, xs, i=i, which=which: api.view(which, xs[i % len(xs)]))
            elif kind == "binary":
                which = self.pick([0, 1, 3])
                lines.append(lambda api, xs, i=i, j=j, which=which: api.binary(which, xs[i % len(xs)], xs[j % len(xs)]))
            elif kind == "cond" and depth:
                then, other = self.script(depth - 1), self.script(depth - 1)
                lines.append(
                    lambda api, xs, i=i, then=then, other=other: api.cond(
                        xs[i % len(xs)], lambda: then(api, xs), lambda: other(api, xs)
                    )
                )
            elif kind == "loop" and depth:
                body, count = self.script(depth - 1), int(self.rng.integers(4))
                lines.append(
                    lambda api, xs, i=i, body=body, count=count: api.loop(
                        count, xs[i % len(xs)], lambda x: body(api, [*xs, x])
                    )
                )
        last = int(self.rng.integers(3))

        def run(api: Any, given: list[Any]) -> Any:
            values = list(given)
            for line in lines:
                values.append(line(api, values))
            return values[-1 - last % len(values)]

        return run

    def grow(self, count: int, depth: int = 2, late: float = 0.0) -> None:
        self.add("read v0", [], lambda api: api.read(0))
        while len(self.nodes) < count:
            kind = self.pick(["read", "read", "update", "update", "view", "binary", "script"])
            v = int(self.rng.integers(len(self.initial)))
            if kind == "read":
                self.add(f"read v{v}", [], lambda api, v=v: api.read(v))
            elif kind == "update":
                how = self.pick(["assign", "add", "sub"])
                self.add(f"{how} v{v}", [self.any()], lambda api, x, v=v, how=how: api.update(how, v, x))
            elif kind == "view":
                i = self.pick([0, 1, 2, 3, 4, 6])
                self.add(VIEWS[i][0], [self.any()], lambda api, x, i=i: api.view(i, x))
            elif kind == "binary":
                i = self.pick([0, 1, 3])
                self.add(BINARY[i][0], [self.any(), self.any()], lambda api, x, y, i=i: api.binary(i, x, y))
            else:
                script, captured = self.script(depth), [self.any() for _ in range(int(self.rng.integers(1, 3)))]
                how = self.pick(["cond", "loop"])
                other, times = self.script(depth), int(self.rng.integers(4))
                if how == "cond":
                    self.add("cond", captured, lambda api, *xs, a=script, b=other: _all(
                        api, api.cond(xs[0], lambda: a(api, list(xs)), lambda: b(api, list(xs))), xs))  # fmt: skip
                else:
                    self.add(f"loop {times}", captured, lambda api, *xs, a=script, n=times: _all(
                        api, api.loop(n, xs[0], lambda x: a(api, [x, *xs])), xs))  # fmt: skip
        for node in self.nodes:
            if self.rng.random() < late:
                node.late.append(int(self.rng.integers(len(self.nodes))))
        self._drop_cycles()

    def add(self, what: str, inputs: list[int], act: Callable[..., Any]) -> None:
        control = [self.any() for _ in range(self.pick([0, 0, 1, 2]))] if self.nodes else []
        self.nodes.append(Node(what, inputs, control, act, act))

    def _drop_cycles(self) -> None:
        """Keep of the late control inputs those that leave an order."""
        for n, node in enumerate(self.nodes):
            for late in list(node.late):
                stack, seen = [late], set()
                while stack:
                    at = stack.pop()
                    if at not in seen:
                        seen.add(at)
                        stack.extend(self.before(at))
                if n in seen:
                    node.late.remove(late)

    def before(self, number: int) -> list[int]:
        node = self.nodes[number]
        return [*node.inputs, *node.control, *node.late]

    def order(self, fetches: Sequence[int]) -> list[int]:
        """The nodes that must run, the first created of those that can run first."""
        needed: set[int] = set()
        stack = [f for f in fetches if f < len(self.nodes)]
        while stack:
            at = stack.pop()
            if at not in needed:
                needed.add(at)
                stack.extend(self.before(at))
        waiting = {n: len(set(self.before(n))) for n in needed}
        followers: dict[int, list[int]] = {n: [] for n in needed}
        for n in needed:
            for b in set(self.before(n)):
                followers[b].append(n)
        ready = [n for n, count in waiting.items() if not count]
        heapq.heapify(ready)
        found = []
        while ready:
            n = heapq.heappop(ready)
            found.append(n)
            for follower in followers[n]:
                waiting[follower] -= 1
                if not waiting[follower]:
                    heapq.heappush(ready, follower)
        return found

    def numbers(self, state: dict[int, np.ndarray]) -> Numbers:
        """What nodes are interpreted with."""
        return Numbers(state)

    def tensors(self, variables: Sequence[Any]) -> Tensors:
        """What nodes are built with."""
        return Tensors(variables)

    def step(self, state: dict[int, np.ndarray], fetches: Sequence[int]) -> list[np.ndarray]:
        """Run one step on ``state``; the values of ``fetches``."""
        api, values = self.numbers(state), {}
        for n in self.order(fetches):
            node = self.nodes[n]
            values[n] = np.array(node.run(api, *[values[i] for i in node.inputs]))
        count = len(self.nodes)
        return [values[f] if f < count else state[f - count].copy() for f in fetches]

    def build(self, scope: Callable[[int], Any] | None = None) -> tuple[list[Any], list[Any]]:
        """The variables, and what each number fetches: a tensor per node, and the variables."""
        variables = [tf.Variable(a, validate_shape=i not in self.shapeless) for i, a in enumerate(self.initial)]
        api = self.tensors(variables)
        tensors: list[Any] = []
        first: list[Any] = []
        graph = tf.get_default_graph()
        for n, node in enumerate(self.nodes):
            before = len(graph.get_operations())
            with tf.device(scope(n) if scope else None), tf.control_dependencies([tensors[c] for c in node.control]):
                tensors.append(tf.identity(node.build(api, *[tensors[i] for i in node.inputs])))
            first.append(graph.get_operations()[before:])
        for n, node in enumerate(self.nodes):
            for late in node.late:
                for op in first[n]:
                    op._add_control_input(tensors[late].op)
        return variables, [*tensors, *variables]
