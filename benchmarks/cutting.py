"""Cost of a cluster of many tasks: cutting a step of 1,000 workers and writing the parts, beside planning it in one process.

Each worker has 39 nodes of its own and four of its variable's, on one of ten servers. Only what the master does is timed, by CPU
time: the assignment of tasks, the cut, and the text of each part as it travels. The peer plans the same graph whole.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

from benchmarks.cli import benchmark_main
from benchmarks.frameworks import graphdock
from benchmarks.planning import Planning, Wanted
from benchmarks.program import Bar, Case, Program

TASKS, FEW, SERVERS = 1000, 100, 10


def workers(tf: Any, count: int, placed: bool) -> Wanted:
    """So many null workers: each reads its variable, computes, and adds to it."""
    updates = []
    for n in range(count):
        with tf.device(f"/job:ps/task:{n % SERVERS}" if placed else None):
            v = tf.Variable(tf.zeros([4]), name=f"v{n}")
        with tf.device(f"/job:worker/task:{n}" if placed else None):
            h = tf.identity(v)
            for _ in range(38):
                h = tf.sin(h)
        updates.append(v.assign_add(h).op)
    return Wanted([], updates, [])


class Cutting:
    """Cuts one step again and again, as a session on a target does."""

    def __init__(self, count: int) -> None:
        from graphdock.contracts import TaskName

        self.tf = graphdock()
        self.graph = self.tf.Graph()
        with self.graph.as_default():
            self.wanted = workers(self.tf, count, placed=True)
        self.tasks = [TaskName("ps", n) for n in range(SERVERS)] + [TaskName("worker", n) for n in range(count)]
        self.cut: Any = None

    def begin(self) -> None:
        """Drop the last cut, and leave nothing to collect."""
        self.cut = None
        gc.collect()

    def call(self) -> None:
        from graphdock_cluster.partition.assign import Assignment
        from graphdock_cluster.partition.cut import partition

        assignment = Assignment(self.graph.get_operations(), self.tasks, self.tasks[SERVERS])
        self.cut = partition(self.graph, [], self.wanted.targets, [], assignment)
        self.bytes = sum(len(part.graph.as_graph_def(form="frames")[0]) for part in self.cut.parts)


def nodes_per_task(graph: Any, count: int) -> float:
    """Operations of a graph of so many workers, by their number: the same in each case."""
    return len(graph.get_operations()) / count


def cutting_case(count: int) -> Case:
    """A cut of one step, and the text of its parts."""
    cutting = Cutting(count)
    return Case(cutting.call, lambda: [[nodes_per_task(cutting.graph, count)]], count, time.process_time, cutting.begin)


def planning_case(count: int) -> Case:
    """A plan of the same graph in one process, in a new session each time."""
    plan = Planning(partial(workers, placed=False), count)
    return Case(
        plan.call, lambda: [[nodes_per_task(plan.graph, count)]], count, time.process_time, plan.begin, plan.parts
    )


def _programs() -> Iterator[Program]:
    about: dict[str, Any] = {"unit": "task", "reference": "graphdock", "once": True}
    many, few = partial(cutting_case, TASKS), partial(cutting_case, FEW)
    bar = Bar("24.5", ("graphdock/planned",), 1.0, note="cutting and writing beside planning")
    both = {"graphdock": many, "graphdock/planned": partial(planning_case, TASKS)}
    yield Program("cut", f"a step of {TASKS} workers, cut and written, beside its plan", both, (bar,), **about)
    linear = Bar("24.5", ("graphdock/few",), 1.3, note=f"linear from {FEW} tasks")
    yield Program(
        "cut_linear", f"{TASKS} workers beside {FEW}", {"graphdock": many, "graphdock/few": few}, (linear,), **about
    )


PROGRAMS = tuple(_programs())

if __name__ == "__main__":
    sys.exit(benchmark_main("cutting", PROGRAMS, rounds=3, seconds=0.01))
