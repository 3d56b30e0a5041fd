"""Cost of planning per node of the user's graph: a chain, a training step, and their growth from 10,000 to 100,000 nodes.

Only planning is timed, each time in a session of its own, by the process's own CPU time: nothing in it waits. The parts are the
planner's stages; what is in none, which is the collector's work and the plan's lock set; and of `compile`, which is the executor's,
its own stages, and what is in none: Python's compiler over the text of the step, mostly. Parts below 10 ns are left out.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from types import ModuleType
from typing import Any, NamedTuple
from unittest import mock

from benchmarks.cli import benchmark_main
from benchmarks.frameworks import graphdock
from benchmarks.program import Bar, Case, Program

SMALL, LARGE = 10_000, 100_000


class Wanted(NamedTuple):
    """Request for a plan: tensors, operations, and the fed tensors with their shapes."""

    fetches: Sequence[Any]
    targets: Sequence[Any]
    feeds: Sequence[tuple[Any, tuple[int, ...]]]


# (tf, about how many nodes) -> what to plan
Text = Callable[[ModuleType, int], Wanted]


def chain(tf: ModuleType, nodes: int) -> Wanted:
    """tanh of tanh of a placeholder [32]."""
    x = y = tf.placeholder(tf.float32, [32])
    for _ in range(nodes):
        y = tf.tanh(y)
    return Wanted([y], [], [(x, (32,))])


def recurrent(tf: ModuleType, nodes: int) -> Wanted:
    """A training step of an unrolled LSTM: few variables, much that the passes merge."""
    steps, batch, size = nodes // 56, 8, 16
    xs = tf.placeholder(tf.float32, [batch, steps, size])
    wanted = tf.placeholder(tf.float32, [batch, size])
    w, b = tf.Variable(tf.zeros([2 * size, 4 * size])), tf.Variable(tf.zeros([4 * size]))
    h = c = tf.zeros([batch, size])
    for step in range(steps):
        i, f, o, g = tf.split(tf.matmul(tf.concat([xs[:, step, :], h], 1), w) + b, 4, 1)
        c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
        h = tf.sigmoid(o) * tf.tanh(c)
    loss = tf.reduce_mean(tf.square(h - wanted))
    train = tf.train.AdamOptimizer(0.01).minimize(loss)
    return Wanted([loss], [train], [(xs, (batch, steps, size)), (wanted, (batch, size))])


def layers(tf: ModuleType, nodes: int) -> Wanted:
    """A training step of a deep perceptron whose batch only the feed tells: many variables, shapes inferred again."""
    batch, size = 8, 16
    x, wanted = (tf.placeholder(tf.float32, [None, size]) for _ in range(2))
    h = x
    for _ in range(nodes // 22):
        w, b = tf.Variable(tf.zeros([size, size])), tf.Variable(tf.zeros([size]))
        h = tf.nn.relu(tf.matmul(h, w) + b)
    loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(logits=h, labels=wanted))
    train = tf.train.MomentumOptimizer(0.01, 0.9).minimize(loss)
    return Wanted([loss], [train], [(x, (batch, size)), (wanted, (batch, size))])


class Planning:
    """Plans one thing again and again, each time in a new session."""

    def __init__(self, text: Text, nodes: int) -> None:
        self.tf = graphdock()
        self.graph = self.tf.Graph()
        with self.graph.as_default():
            self.wanted = text(self.tf, nodes)
        self.best: tuple[float, Any] | None = None
        self.session: Any = None
        self.begin()
        self.call()
        assert self.best is not None
        self.nodes = self.best[1].translated
        self.best = None  # the first has imported modules, too

    def begin(self) -> None:
        """Open another session, and leave nothing to collect."""
        if self.session is not None:
            self.session.close()
        self.session = self.tf.Session(graph=self.graph)
        gc.collect()

    def call(self) -> None:
        # what session.run does first; it alone is of interest. Stages are timed by the CPU's clock, too
        with mock.patch.object(time, "perf_counter", time.process_time):
            start = time.process_time()
            plan = self.session._planner.plan(*self.wanted)
            taken = time.process_time() - start
        if self.best is None or taken < self.best[0]:
            self.best = taken, plan

    def parts(self) -> Mapping[str, float]:
        """Seconds per node of each part of the quickest plan."""
        assert self.best is not None
        taken, plan = self.best
        inner = {f"compile/{stage.name}": stage.ms / 1e3 for stage in plan.program.stages}
        outer = {s.name: s.ms / 1e3 for s in plan.stages if f"compile/{s.name}" not in inner}
        python = outer["compile"] - sum(inner.values())
        parts = {**outer, "rest": taken - sum(outer.values()), **inner, "compile/Python": python}
        return {name: seconds / self.nodes for name, seconds in parts.items() if seconds >= 1e-6 * self.nodes / 100}


def planning_case(text: Text, nodes: int) -> Case:
    """A plan of a new session in every call."""
    plan = Planning(text, nodes)
    return Case(plan.call, lambda: [[plan.nodes / nodes]], plan.nodes, time.process_time, plan.begin, plan.parts)


_TEXTS: Mapping[str, tuple[str, Text]] = {
    "chain": ("a chain of tanh nodes", chain),
    "recurrent": ("a training step of an unrolled LSTM, Adam", recurrent),
    "layers": ("a training step of a deep perceptron, momentum, batch unknown", layers),
}


def _programs() -> Iterator[Program]:
    for name, (summary, text) in _TEXTS.items():
        small, large = partial(planning_case, text, SMALL), partial(planning_case, text, LARGE)
        about: dict[str, Any] = {"unit": "node", "reference": "graphdock", "once": True, "rtol": 0.1}
        yield Program(name, f"{summary}, {SMALL} nodes", {"graphdock": small}, **about)
        bar = Bar("plan", ("graphdock/small",), 1.3, note=f"linear to {LARGE}")
        both = {"graphdock": large, "graphdock/small": small}
        yield Program(f"{name}_linear", f"{summary}, {LARGE} nodes beside {SMALL}", both, (bar,), **about)


PROGRAMS = tuple(_programs())

if __name__ == "__main__":
    sys.exit(benchmark_main("planning", PROGRAMS, rounds=5, seconds=0.01))
