"""Preparation of a call the first time: its signature, and a plan for the shapes that it feeds.

The session calls ``signature_of`` and ``plan_for`` under its lock.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import NoneType
from typing import Any

from graphdock.arguments import check_type
from graphdock.config.session_config import SessionConfig
from graphdock.errors import ArgumentTypeError, InvalidArgumentError
from graphdock.graph.graph import Graph
from graphdock.graph.site import capture, describe
from graphdock.graph.tensor import Tensor
from graphdock.planning.plan import Plan
from graphdock.planning.planner import Planner
from graphdock.planning.translate import needed_operations
from graphdock.session.fetches import Feed, FetchPlan, convert_feed, single_tensors
from graphdock.session.plan_cache import PlanCache, Signature

__all__ = ["ACCEPTED", "SHAPES", "plan_for", "signature_of", "with_static_shapes"]

#: Shapes of one signature after which ``shape_policy="auto"`` makes a plan for any shape.
SHAPES = 8
#: Feed shapes of one signature that are remembered as fitting; beyond, they are forgotten and checked again.
ACCEPTED = 4096


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
    from graphdock.session.input_part import input_part

    part = input_part(graph, fetch, [f.tensor for f in feeds])
    if part is not None:
        before = FetchPlan(graph, [*part.tensors, *part.operations])
        made.first = Signature(("inputs", key), before, feeds, graph._mutation, False)
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


def plan_for(
    signature: Signature, shapes: tuple[Any, ...], plans: PlanCache, planner: Planner, config: SessionConfig
) -> Plan:
    """The plan for feeds of these shapes: one that is kept, or a new one, which is kept. It becomes the current one.

    Raises:
      What planning raises; ShapeError: the plan for any shape does not take these.
    """
    policy = config.shape_policy
    generic = policy == "generic" or (policy == "auto" and signature.exact >= SHAPES)
    fetch, tensors = signature.fetch, [f.tensor for f in signature.feeds]
    plan = signature.plans.get(shapes)
    if plan is None and generic:
        plan = signature.plans.get("generic")
    if plan is None:
        dims = [f.dims for f in signature.feeds] if generic else shapes
        feeds = list(zip(tensors, dims, strict=True))
        plan = planner.plan(fetch.tensors, fetch.operations, feeds, done=signature.done)
        signature.exact += not generic
        plans.add(signature, "generic" if generic else shapes, plan)
        if config.log_device_placement:
            from graphdock.session.explain import log_placement

            log_placement(plan)
    conditions = plan.graph.conditions
    if conditions is not None and shapes not in signature.accepted and not conditions.hold(shapes):
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
