"""The plans of a session, by the form of a call and the shapes of its feeds; the least recently used go first.

The session calls ``signature_of`` and ``plan_for``, which prepare a call the first time, under its lock.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from types import NoneType
from typing import Any

from graphdock.arguments import check_type
from graphdock.config.session_config import SessionConfig
from graphdock.errors import ArgumentTypeError, InvalidArgumentError
from graphdock.graph.graph import Graph
from graphdock.graph.operation import Operation
from graphdock.graph.site import capture, describe
from graphdock.graph.tensor import Tensor
from graphdock.planning.plan import Plan
from graphdock.planning.planner import Planner
from graphdock.planning.translate import needed_operations
from graphdock.session.fetches import Feed, FetchPlan, convert_feed, single_tensors

__all__ = [
    "ACCEPTED",
    "ALWAYS",
    "NODES",
    "SHAPES",
    "PlanCache",
    "Signature",
    "for_any_shape",
    "made_for",
    "plan_for",
    "signature_of",
    "takes",
    "with_static_shapes",
]

#: Kernels that the plans of a session run together at most, of about 2 KB each; fewer plans are kept where they are large.
NODES = 100_000
#: Plans that are kept however large they are.
ALWAYS = 64
#: Shapes of one signature after which ``shape_policy="auto"`` makes a plan for any shape.
SHAPES = 8
#: Feed shapes of one signature that are remembered as fitting; beyond, they are forgotten and checked again.
ACCEPTED = 4096


class Signature:
    """One form of call (these fetches, these fed tensors), and what it has been compiled to.

    Attributes:
      key: what :class:`PlanCache` finds it by. ``single``: whether the caller gets the one result itself.
      mutation: the graph's mutation number for which its plans hold.
      plans: shapes of the feeds (or ``"generic"``) -> plan.
      exact: how many plans have been made for one shape each, those that are gone included.
      accepted: shapes of the feeds that the generic plan was found to take, where its conditions do not tell.
      current: the plan that ran last and the feeds' shapes it ran for; one object, because other threads replace it. Not set where
        there is a part that runs first: then, and of that part, it is ``recent``, the plan alone.
      first: the part of the step that runs before; its results are the last of ``feeds``. ``done``: what it has run.
        ``in_parts``: runs both.
    """

    __slots__ = (
        "accepted",
        "current",
        "done",
        "exact",
        "feeds",
        "fetch",
        "first",
        "in_parts",
        "key",
        "mutation",
        "plans",
        "recent",
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
        self.recent: Plan | None = None
        self.first: Signature | None = None
        self.done: Collection[Operation] = ()
        self.in_parts: Callable[..., Any] | None = None


class PlanCache:
    """Plans in the order of their use. ``touch`` and reading ``signatures`` need no lock; all else needs the session's.

    Args:
      size: most plans that are kept. When they run more than :data:`NODES` kernels together, fewer are, but :data:`ALWAYS`.

    Attributes:
      signatures: key -> signature, of those that have a plan.
      patient: new plans wait for their code: bits are to stay the same, or compiling it beside steps has failed.
    """

    def __init__(self, size: int, patient: bool = False) -> None:
        self._size = size
        self.patient = patient
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

    def place(self, plan: Plan) -> tuple[Signature, Any] | None:
        """The signature and the shapes that a plan is kept for; None once it is dropped."""
        return self._order.get(plan)

    def replace(self, old: Plan, new: Plan) -> None:
        """``new`` stands in the place of ``old`` from the next step on."""
        signature, shapes = self._order[old]
        self._drop(old)
        self.add(signature, shapes, new)

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
        if signature.recent is plan:
            signature.recent = None
        if not signature.plans and self.signatures.get(signature.key) is signature:
            del self.signatures[signature.key]
        plan.drop_idle()


def signature_of(graph: Graph, fetches: Any, feed_dict: Mapping[Any, Any] | None) -> Signature:
    """The form of a call, without plans.

    Raises:
      InvalidArgumentError: feeds that are no dict, or feed one tensor twice; fetches nested too deep.
    """
    if feed_dict is not None and not isinstance(feed_dict, Mapping):
        raise ArgumentTypeError(
            "feed_dict must be a dict of tensors to values", got=repr(feed_dict), site=describe(capture())
        )
    try:
        fetch = FetchPlan(graph, fetches)
    except RecursionError:
        raise InvalidArgumentError("the fetches are nested too deep", site=describe(capture())) from None
    feeds = [Feed(graph, key) for key in feed_dict or ()]
    if len({f.tensor for f in feeds}) < len(feeds):
        raise InvalidArgumentError(
            "feed_dict feeds one tensor twice", got=", ".join(f.tensor.name for f in feeds), site=describe(capture())
        )
    single = not isinstance(fetches, (list, tuple, Mapping)) and len(fetch.tensors) == 1
    key: Any = _key(fetches)
    if feed_dict:
        key = (dict, key, *feed_dict)
    made = Signature(key, fetch, feeds, graph._mutation, single)
    if not graph.waits:
        return made
    from graphdock.session.input_part import input_part, run_in_parts

    part = input_part(graph, fetch, [f.tensor for f in feeds])
    if part is not None:
        before = FetchPlan(graph, [*part.tensors, *part.operations])
        made.first = Signature(("inputs", key), before, feeds, graph._mutation, False)
        made.in_parts = run_in_parts
        made.feeds, made.done = [*feeds, *[Feed(graph, t) for t in part.tensors]], part.done
        fetch.operations = [op for op in fetch.operations if op not in part.done]
    return made


def with_static_shapes(
    graph: Graph, fetches: Any, feed_dict: Mapping[Any, Any] | None
) -> tuple[FetchPlan, list[tuple[Tensor, Any]]]:
    """Tensors that a call fetches, and all that it feeds or must feed, with shapes: of what is not fed, the static ones."""
    fetch = FetchPlan(graph, fetches)
    check_type(feed_dict, (Mapping, NoneType), "feed_dict", "a dict of tensors to values")
    fed = [(Feed(graph, k), v) for k, v in single_tensors(feed_dict or {}).items()]
    feeds = {feed.tensor: convert_feed(feed, v).shape for feed, v in fed}
    roots = [t.op for t in fetch.tensors if t not in feeds] + fetch.operations
    dims: dict[Tensor, Any] = dict(feeds)
    for op in needed_operations(roots, feeds):
        if op.verb == "feed" and op.outputs[0] not in dims:
            dims[op.outputs[0]] = op.outputs[0]._dims
    return fetch, list(dims.items())


def made_for(signature: Signature, shapes: Any, planner: Planner, patient: bool) -> Plan:
    """A new plan for feeds of these shapes, or ``"generic"``. ``patient``: it waits for code that is compiled."""
    dims = [f.dims for f in signature.feeds] if shapes == "generic" else shapes
    feeds = [(f.tensor, d) for f, d in zip(signature.feeds, dims, strict=True)]
    fetch = signature.fetch
    return planner.plan(fetch.tensors, fetch.operations, feeds, done=signature.done, patient=patient)


def for_any_shape(signature: Signature, shapes: tuple[Any, ...], policy: str) -> bool:
    """Return whether feeds of these shapes get the plan for any shape, if it takes them."""
    return shapes not in signature.plans and (policy == "generic" or (policy == "auto" and signature.exact >= SHAPES))


def takes(plan: Plan, shapes: Sequence[Sequence[int]]) -> bool:
    """Return whether a plan for any shape is for feeds of these: its code may need dims to be the same, of which one is 1 now, or
    none of them fits."""
    conditions = plan.graph.conditions
    return conditions is None or not conditions.relied or conditions.agree(shapes)


def plan_for(
    signature: Signature, shapes: tuple[Any, ...], plans: PlanCache, planner: Planner, config: SessionConfig
) -> Plan:
    """The plan for feeds of these shapes: one that is kept, or a new one, which is kept. It becomes the current one.

    Raises:
      What planning raises; ShapeError: the plan for any shape does not take these.
    """
    generic = for_any_shape(signature, shapes, config.shape_policy)
    fetch, tensors = signature.fetch, [f.tensor for f in signature.feeds]
    plan = signature.plans.get("generic" if generic else shapes)

    def new(generic: bool) -> Plan:
        key = "generic" if generic else shapes
        plan = made_for(signature, key, planner, plans.patient)
        signature.exact += not generic
        plans.add(signature, key, plan)
        if config.log_device_placement:
            from graphdock.contracts.placed import log_placement

            log_placement(plan.graph)
        return plan

    if plan is None:
        plan = new(generic)
    conditions = plan.graph.conditions
    if conditions is not None and shapes not in signature.accepted and not conditions.hold(shapes):
        if not takes(plan, shapes):
            plan = new(False)
        else:
            fed = list(zip(tensors, shapes, strict=True))
            planner.check_shapes(fetch.tensors, fetch.operations, fed, signature.done)
            if len(signature.accepted) >= ACCEPTED:
                signature.accepted.clear()
            signature.accepted.add(shapes)
    if signature.first is None:
        signature.current = (plan, shapes)
    return plan


def _key(fetches: Any) -> Any:
    """A hashable key of a fetch structure: what ``run`` looks up at once, unless it is nested or a namedtuple."""
    if isinstance(fetches, (list, tuple)):
        return type(fetches), *map(_key, fetches)
    if isinstance(fetches, Mapping):
        return type(fetches), *[(k, _key(v)) for k, v in fetches.items()]
    return fetches
