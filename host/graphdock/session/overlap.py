"""Steps of a session of which several may be at work at once (``steps_in_flight``)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from graphdock.contracts.in_flight import InFlightSteps
from graphdock.contracts.runtime.access import step_name
from graphdock.contracts.runtime.resource_lock import Until
from graphdock.contracts.runtime.resources import ResourceClosed
from graphdock.contracts.step import TraceLevel
from graphdock.errors import GraphdockError, ResourceExhaustedError
from graphdock.graph.graph import Graph
from graphdock.planning.plan import Plan, Step
from graphdock.session.plan_cache import Signature
from graphdock.session.run_options import RunMetadata, name_operation, traced

__all__ = ["Overlap"]


class Overlap:
    """Runs steps, and keeps account of those that returned before their work was done. From any thread.

    A step of operations alone, in a plan whose program ``overlaps``, returns once its work is queued. Its context is idle again
    when its work is done. Before a step begins those are completed whose work is done, and the oldest ones until there is room.

    Args:
      most: steps that may be at work at once.
      remake: (signature, stale plan, shapes of the feeds) -> a plan in its place.
    """

    def __init__(self, most: int, graph: Graph, remake: Callable[[Signature, Plan, tuple[Any, ...]], Plan]) -> None:
        self.in_flight = InFlightSteps(most)
        self._graph = graph
        self._remake = remake
        self._closed = False

    def run(
        self,
        signature: Signature,
        plan: Plan,
        cached: bool,
        values: Sequence[Any],
        limit: float | None,
        level: TraceLevel | None,
        metadata: RunMetadata | None,
    ) -> Sequence[Any]:
        """Run one step; arguments and results are those of ``Session.run``, after its look-up.

        Raises:
          GraphdockError: what the step raises; or an earlier one raised since it returned, then nothing has run.
        """
        until = None if limit is None else Until(limit)
        try:
            self._make_room(self.in_flight.most - 1, until)
            while True:
                if metadata is not None:
                    metadata.plan, metadata.cached = plan, cached
                try:
                    return self._run(plan, values, limit, until, level, metadata)
                except ResourceClosed:
                    plan, cached = self._remake(signature, plan, tuple([v.shape for v in values])), False
        except GraphdockError as error:
            name_operation(error, self._graph)
            raise

    def synchronize(self) -> None:
        """Wait for all steps; raises the first error that was not raised yet."""
        try:
            self._make_room(0, None)
        except GraphdockError as error:
            name_operation(error, self._graph)
            raise

    def close(self) -> None:
        """As :meth:`synchronize`, for good: the errors of all are raised as one."""
        self._closed = True
        self.in_flight.complete(0)
        for error in list(self.in_flight.failed.values()):
            name_operation(error, self._graph)
        self.in_flight.check_all()

    def _make_room(self, keep: int, until: Until | None) -> None:
        self.in_flight.complete_passed(until)
        self.in_flight.complete(keep, until)
        self.in_flight.check()

    def _run(
        self,
        plan: Plan,
        values: Sequence[Any],
        limit: float | None,
        until: Until | None,
        level: TraceLevel | None,
        metadata: RunMetadata | None,
    ) -> Sequence[Any]:
        step, queued = self._lease(plan, until), None
        try:
            if step.used:
                step.reset()
            if until is not None:
                assert limit is not None
                step.limit(limit)
                step.token.deadline = until.deadline  # the wait for room was the step's
            if plan.program.overlaps and not plan.graph.outputs and not level:
                name = partial(step_name, plan.graph)
                queued = plan.program.in_flight(self.in_flight, step, name, plan.take_back)
            results: Sequence[Any] = (
                plan.run(step, values) if not level else traced(plan, step, values, level, metadata)
            )
        finally:
            if queued is None or not queued.submitted:
                step.on_submit = None
                if metadata is not None:
                    metadata.events = step.reported()
                plan.give_back(step)
        self.in_flight.complete(0 if self._closed else self.in_flight.most)
        return results

    def _lease(self, plan: Plan, until: Until | None) -> Step:
        """A context; where memory is short, once an earlier step has given its own back."""
        while True:
            try:
                return plan.lease()
            except ResourceExhaustedError:
                pending = len(self.in_flight.pending)
                if not pending:
                    raise
                self.in_flight.complete(pending - 1, until)
