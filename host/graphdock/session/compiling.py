"""Code that is compiled while steps run without it, and plans that take the place of theirs between two steps."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from graphdock.graph.graph import Graph
from graphdock.planning.plan import Plan
from graphdock.planning.planner import Planner
from graphdock.session.plan_cache import PlanCache, made_for

__all__ = ["Compiling"]

#: Plans of one step that are made beside it, after which the next one waits for its code.
ROUNDS = 8


class Compiling:
    """The thread of a session that compiles for its plans, one function after the other, without locks.

    A plan is made anew under the session's lock, as any plan. One that can't be made, or code that can't be compiled, leaves no
    plan: the next step makes it, waits for the code, and raises what is wrong; all plans of the session wait from then on. When the
    program ends, or the session is closed, what is being compiled is waited for, and no more. A forked child goes on with the plans
    that it has; new ones get a new thread.

    Args:
      lock: the session's.

    Attributes:
      process: that its thread is of.
    """

    def __init__(self, plans: PlanCache, planner: Planner, graph: Graph, lock: threading.RLock) -> None:
        self._plans, self._planner, self._graph, self._lock = plans, planner, graph, lock
        self._thread = ThreadPoolExecutor(1, "graphdock-compile")
        self._closed = False
        self._known: weakref.WeakSet[Plan] = weakref.WeakSet()
        self.process = os.getpid()

    def add(self, plan: Plan) -> None:
        """Compile what a plan does without, once. The session's lock is held."""
        if plan not in self._known:
            self._known.add(plan)
            self._next(self._all(plan))

    def close(self) -> None:
        """Begin nothing any more."""
        self._closed = True
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _next(self, work: Iterator[None]) -> None:
        """Queue the next piece of work: behind those of other plans, and not at all once the interpreter ends."""
        try:
            self._thread.submit(self._piece, work)
        except RuntimeError:  # the session is closed, or the program ends
            work.close()  # type: ignore[attr-defined]

    def _piece(self, work: Iterator[None]) -> None:
        for _ in work:
            self._next(work)
            return

    def _all(self, plan: Plan) -> Iterator[None]:
        """Compile and plan, piece by piece, until a plan lacks nothing."""
        for number in range(ROUNDS):
            failed = False
            for compile_ in plan.later:
                failed = failed or not _succeeds(compile_)
                yield
            with self._lock:
                found = None if self._closed else self._made_anew(plan, failed or number == ROUNDS - 1)
            if found is None or not found.later:
                return
            plan = found

    def _made_anew(self, plan: Plan, failed: bool) -> Plan | None:
        """The plan in place of one whose code is there; None where it is not wanted any more, or has to wait for a step."""
        place = self._plans.place(plan)
        if place is None or place[0].mutation != self._graph._mutation:
            return None
        made: list[Plan] = []
        if not failed and _succeeds(lambda: made.append(made_for(*place, self._planner, patient=False))):
            self._plans.replace(plan, made[0])
            self._known.add(made[0])
            return made[0]
        self._plans.patient = True
        self._plans.discard(plan)
        return None


def _succeeds(function: Callable[[], Any]) -> bool:
    """Call it; whatever it raises is raised once more where a step waits for it."""
    try:
        function()
    except Exception:  # noqa: BLE001 - see above
        return False
    return True
