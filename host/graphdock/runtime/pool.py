"""How much memory the instances of a session's plans may hold."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING

from graphdock.locks import new_lock

if TYPE_CHECKING:
    from graphdock.runtime.plan import Plan

__all__ = ["BUDGET", "InstancePool"]

#: Bytes of planned buffers that the instances of a session hold at most before idle ones are dropped.
BUDGET = 1 << 30


class InstancePool:
    """Drops idle instances when those of a session hold too much.

    It is asked only when an instance is made: leasing one and giving it back cost a list operation each. The plans that made
    an instance longest ago lose theirs first; the plan that asks keeps its own. Safe from any thread.
    """

    def __init__(self, budget: int = BUDGET) -> None:
        self.budget = budget
        self._lock = new_lock()
        self._plans: list[weakref.ref[Plan]] = []

    def held(self) -> int:
        """Bytes of all instances, idle or running."""
        return sum(plan.live_bytes() for plan in map(_deref, self._plans) if plan is not None)

    def made(self, plan: Plan) -> None:
        """``plan`` has a new instance; make room for it."""
        with self._lock:
            others = [ref for ref in self._plans if ref() is not None and ref() is not plan]
            self._plans = [*others, weakref.ref(plan)]
            for ref in others:
                if self.held() <= self.budget:
                    break
                other = ref()
                if other is not None:
                    other.drop_idle()

    def close(self, error: Callable[[], BaseException]) -> None:
        """Stop the steps that run, each with an error of its own, and free the memory of idle instances."""
        with self._lock:
            plans = [plan for plan in map(_deref, self._plans) if plan is not None]
        for plan in plans:
            plan.close(error)


def _deref(ref: weakref.ref[Plan]) -> Plan | None:
    return ref()
