"""The plans of a session, by the form of a call and the shapes of its feeds; the least recently used go first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Hashable
from typing import Any

from graphdock.graph.operation import Operation
from graphdock.planning.plan import Plan
from graphdock.session.fetches import Feed, FetchPlan

__all__ = ["ALWAYS", "NODES", "PlanCache", "Signature"]

#: Kernels that the plans of a session run together at most, of about 2 KB each; fewer plans are kept where they are large.
NODES = 100_000
#: Plans that are kept however large they are.
ALWAYS = 64


class Signature:
    """One form of call (these fetches, these fed tensors), and what it has been compiled to.

    Attributes:
      key: what :class:`PlanCache` finds it by. ``single``: whether the caller gets the one result itself.
      mutation: the graph's mutation number for which its plans hold.
      plans: shapes of the feeds (or ``"generic"``) -> plan.
      exact: how many plans have been made for one shape each, those that are gone included.
      accepted: shapes of the feeds that the generic plan was found to take, where its conditions do not tell.
      current: the plan that ran last and the feeds' shapes it ran for; one object, because other threads replace it. Not set where
        there is a part that runs first.
      first: the part of the step that runs before; its results are the last of ``feeds``. ``done``: what it has run.
    """

    __slots__ = (
        "accepted",
        "current",
        "done",
        "exact",
        "feeds",
        "fetch",
        "first",
        "key",
        "mutation",
        "plans",
        "single",
    )

    def __init__(self, key: Hashable, fetch: FetchPlan, feeds: list[Feed], mutation: int, single: bool) -> None:
        self.key = key
        self.fetch = fetch
        self.feeds = feeds
        self.mutation = mutation
        self.single = single
        self.plans: dict[Any, Plan] = {}
        self.exact = 0
        self.accepted: set[Any] = set()
        self.current: tuple[Plan | None, tuple[Any, ...]] = (None, (None,) * len(feeds))
        self.first: Signature | None = None
        self.done: Collection[Operation] = ()


class PlanCache:
    """Plans in the order of their use. ``touch`` and reading ``signatures`` need no lock; all else needs the session's.

    Args:
      size: most plans that are kept. When they run more than :data:`NODES` kernels together, fewer are, but :data:`ALWAYS`.

    Attributes:
      signatures: key -> signature, of those that have a plan.
    """

    def __init__(self, size: int) -> None:
        self._size = size
        self._nodes = 0
        self._order: OrderedDict[Plan, tuple[Signature, Any]] = OrderedDict()
        self.signatures: dict[Any, Signature] = {}

    def __len__(self) -> int:
        return len(self._order)

    def add(self, signature: Signature, shapes: Any, plan: Plan) -> None:
        """Keep ``plan`` for feeds of these shapes; drop what was used longest ago, and the plans of an older graph."""
        before = self.signatures.get(signature.key)
        if before is not signature:
            for old in [] if before is None else list(before.plans.values()):
                self._drop(old)
            self.signatures[signature.key] = signature
        signature.plans[shapes] = plan
        self._order[plan] = signature, shapes
        self._nodes += len(plan.kernel_nodes)
        while len(self._order) > self._size or (self._nodes > NODES and len(self._order) > ALWAYS):
            self._drop_oldest()

    def known(self, signature: Signature) -> Signature | None:
        """The one that is kept for the same form of call and the same state of the graph."""
        kept = self.signatures.get(signature.key)
        return kept if kept is not None and kept.mutation == signature.mutation else None

    def touch(self, plan: Plan) -> None:
        """``plan`` is used now. It may have been dropped by another thread meanwhile."""
        plan.used()
        order = self._order
        if plan in order:
            try:
                order.move_to_end(plan)
            except KeyError:
                return

    def discard(self, plan: Plan) -> None:
        """Drop a plan that can't run any more. It does not count among those made for one shape each."""
        if plan in self._order:
            signature, shapes = self._order[plan]
            signature.exact -= shapes != "generic"
            self._drop(plan)

    def clear(self) -> None:
        """Drop all plans, and the memory of their idle instances."""
        while self._order:
            self._drop_oldest()

    def _drop(self, plan: Plan) -> None:
        self._forget(plan, *self._order.pop(plan))

    def _drop_oldest(self) -> None:
        # one call: an iterator would break where another thread touches a plan meanwhile
        plan, (signature, shapes) = self._order.popitem(last=False)
        self._forget(plan, signature, shapes)

    def _forget(self, plan: Plan, signature: Signature, shapes: Any) -> None:
        self._nodes -= len(plan.kernel_nodes)
        del signature.plans[shapes]
        if signature.current[0] is plan:
            signature.current = (None, (None,) * len(signature.feeds))
        if not signature.plans and self.signatures.get(signature.key) is signature:
            del self.signatures[signature.key]
        plan.drop_idle()
