"""Skeleton (d): a worker that runs a Program on a thread of its own, behind a Rendezvous.

It stands for another task: what it needs arrives through the rendezvous, what it makes leaves through it, and it knows nothing of
the executor on the other side. The program here interprets its graph node by node on the devices it was compiled for.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from graphdock.contracts import Executor, PlacedGraph, PlanGraph, PlanNode, Program, RendezvousKey, StepContext, errors

#: Op type -> what it computes; enough of a device for a skeleton.
OPS: dict[str, Callable[..., Any]] = {"Add": np.add, "Mul": np.multiply, "Neg": np.negative}


def edge(node: PlanNode, step: int) -> RendezvousKey:
    """The key of a Send or Recv node in a step."""
    a = node.attrs
    ends = a["send_device"], a["send_incarnation"], a["recv_device"], a["recv_incarnation"]
    return RendezvousKey("session", step, *ends, a["tensor_name"])


def placed(graph: PlanGraph) -> PlacedGraph:
    """A graph for executors that look at nothing but its nodes."""

    def absent(*of: Any) -> Any:
        raise AssertionError(f"{of} was asked for")

    def anywhere(node: PlanNode) -> Sequence[str | None]:
        return [None] * len(node.inputs)

    return PlacedGraph(
        graph=graph,
        kernels={},
        prepared={},
        home={},
        needs=anywhere,
        handles={},
        resource=absent,
        access=absent,
        device_of=absent,
        spaces={},
        functions=absent,
        formula=absent,
        infer=absent,
        stream=absent,
    )


class InterpretedProgram(Program):
    """Walks the graph. A Recv parks a continuation and gives its thread back; the thread that sends goes on with the rest."""

    def __init__(self, graph: PlanGraph) -> None:
        self.graph = graph

    def run(self, step: StepContext, feeds: Sequence[Any]) -> list[Any]:
        """Run on the calling thread, for a graph without a Recv that has to wait."""
        outcome: list[Any] = []
        self.start(step, feeds, lambda results, error: outcome.extend((results, error)))
        if not outcome:
            raise errors.FailedPreconditionError("a Recv of this graph waits; use start")
        results, error = outcome
        if error is not None:
            raise error
        return list(results)

    def start(
        self,
        step: StepContext,
        feeds: Sequence[Any],
        done: Callable[[list[Any] | None, BaseException | None], None],
    ) -> None:
        """Run; ``done`` gets the results or the first error, on whatever thread finished the step."""
        values: dict[Any, Any] = dict(zip(self.graph.inputs, feeds, strict=True))

        def go(at: int) -> None:
            try:
                while at < len(self.graph.nodes):
                    node = self.graph.nodes[at]
                    at += 1
                    step.token.check()
                    if node.op == "Recv":
                        step.rendezvous.receive(edge(node, step.id), resume(node, at))
                        return
                    if node.op == "Send":
                        step.rendezvous.send(edge(node, step.id), values[node.inputs[0]])
                        continue
                    values[node.outputs[0]] = OPS[node.op](*[values[v] for v in node.inputs])
            except Exception as error:  # noqa: BLE001  whatever a kernel raises ends the step, here and at the other side
                step.cancel(error)
                done(None, error)
                return
            done([values[v] for v in self.graph.outputs], None)

        def resume(node: PlanNode, at: int) -> Callable[[Any, BaseException | None], None]:
            def continuation(value: Any, error: BaseException | None) -> None:
                if error is not None:
                    done(None, error)
                    return
                values[node.outputs[0]] = value
                go(at)

            return continuation

        go(0)


class InterpretingExecutor(Executor):
    """Compiles by keeping the graph as it is."""

    name = "interpreting"

    def compile(self, placed: PlacedGraph) -> InterpretedProgram:
        for node in placed.graph.nodes:
            if node.op not in OPS and node.op not in ("Send", "Recv"):
                raise errors.UnimplementedError(f"{node.name}: this executor has no {node.op}")
        return InterpretedProgram(placed.graph)


class Worker:
    """Runs a program on its own thread. ``result`` waits for the step to end."""

    def __init__(self, program: InterpretedProgram) -> None:
        self.program = program
        self._ended = threading.Event()
        self._results: list[Any] | None = None
        self._error: BaseException | None = None

    def start(self, step: StepContext, feeds: Sequence[Any]) -> threading.Thread:
        """Begin a step; the thread is free again as soon as a receive waits."""
        thread = threading.Thread(target=self.program.start, args=(step, feeds, self._done), daemon=True)
        thread.start()
        return thread

    def _done(self, results: list[Any] | None, error: BaseException | None) -> None:
        self._results, self._error = results, error
        self._ended.set()

    def result(self, timeout: float = 30.0) -> list[Any]:
        """The step's outputs; raises what ended it."""
        if not self._ended.wait(timeout):
            raise errors.DeadlineExceededError("the worker's step did not end")
        if self._error is not None:
            raise self._error
        assert self._results is not None
        return self._results
