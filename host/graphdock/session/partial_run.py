"""Partial runs: one step, fed and fetched piece by piece."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from graphdock.errors import InvalidArgumentError, UnimplementedError
from graphdock.graph.graph import Graph
from graphdock.graph.operation import Operation
from graphdock.graph.tensor import Tensor
from graphdock.planning.translate import is_shared_read, needed_operations
from graphdock.session.fetches import Feed, FetchPlan, convert_feed, single_tensors

__all__ = ["PartialRun"]


class PartialRun:
    """A step between its pieces; what ``Session.partial_run_setup`` returns.

    Each piece is a step of its own, which is fed all that was fed before, and what earlier pieces computed and this one needs. So
    an operation that updates, draws or talks to the world runs once, in the first piece that needs it. Variables are read in each
    piece that needs their values, but for reads of one's own (``read_value``), which are snapshots.

    Args:
      graph: the session's. fetches, feeds: all that the pieces will fetch and feed.

    Raises:
      InvalidArgumentError: nothing to fetch, or what can't be fetched or fed.
    """

    def __init__(self, graph: Graph, fetches: Any, feeds: Sequence[Any] | None) -> None:
        self.graph = graph
        plan = FetchPlan(graph, fetches)
        if not plan.tensors and not plan.operations:
            raise InvalidArgumentError("partial_run_setup needs something to fetch", expected="a list of tensors")
        self._fetches = {*plan.tensors, *plan.operations}
        self._feeds = {Feed(graph, key).tensor for key in feeds or ()}
        self._given: dict[Tensor, Any] = {}
        self._fed: set[Tensor] = set()
        self._done: set[Any] = set()
        self._ran: set[Operation] = set()

    def piece(self, session: Any, fetches: Any, feed_dict: Mapping[Any, Any] | None) -> Any:
        """Run the next piece.

        Raises:
          InvalidArgumentError: a fetch or feed that was not set up, or is given a second time.
          UnimplementedError: an operation would have to run again: it waits, by a control input, for one that has run and does
            more than compute.
        """
        plan = FetchPlan(self.graph, fetches)
        wanted: list[Any] = [*plan.tensors, *plan.operations]
        for fetch in wanted:
            if fetch not in self._fetches:
                raise InvalidArgumentError(f"the fetch {fetch.name} was not specified in partial_run_setup")
            if fetch in self._done:
                raise InvalidArgumentError(f"the fetch {fetch.name} has been fetched already in this partial run")
        given = dict(self._given)
        for key, value in single_tensors(feed_dict or {}).items():
            feed = Feed(self.graph, key)
            tensor = feed.tensor
            if tensor not in self._feeds:
                raise InvalidArgumentError(f"the feed {tensor.name} was not specified in partial_run_setup")
            if tensor in self._fed:
                raise InvalidArgumentError(f"the feed {tensor.name} has been fed already in this partial run")
            given[tensor] = np.array(convert_feed(feed, value))  # the caller's array may change before the next piece
        needed = needed_operations(_makers(wanted, given), given)
        for op in needed:
            if op in self._ran and _once(op):
                raise UnimplementedError(
                    f"{op.name} has run in an earlier piece of this partial run, and this piece waits for it again",
                    op=op.name,
                    site=op.site,
                    hint="fetch in one piece what has a control input from it",
                )
        if not any(op.verb == "feed" for op in needed):  # else the step is refused
            self._ran.update(needed)  # also where the step fails: what had run by then is not known
        kept = self._kept(needed, set(wanted), given)
        flat = session.run([*wanted, *kept], given)
        count = len(plan.tensors)
        self._fed.update(given.keys() & self._feeds)
        self._done.update(wanted)
        self._given = given
        found = [*zip(plan.tensors, flat, strict=False), *zip(kept, flat[len(wanted) :], strict=True)]
        for tensor, value in found:
            if not is_shared_read(tensor):
                self._given[tensor] = value.copy() if isinstance(value, np.ndarray) else value
        return plan.pack(flat[:count])

    def _kept(self, needed: Iterable[Operation], wanted: set[Any], given: Mapping[Tensor, Any]) -> list[Tensor]:
        """Tensors of this piece that a later one may need."""
        rest = self._fetches - self._done - wanted
        later = {t for t in rest if isinstance(t, Tensor)}
        later.update(t for op in needed_operations(_makers(rest, {}), {}) if op not in self._ran for t in op.inputs)
        return [
            t
            for op in needed
            for t in op.outputs
            if t in later and t not in wanted and t not in given and t.dtype.kind not in "RV" and not is_shared_read(t)
        ]


def _makers(fetches: Iterable[Any], given: Mapping[Tensor, Any]) -> list[Operation]:
    """The operations that fetches need first, but for tensors that are given."""
    return [f.op if isinstance(f, Tensor) else f for f in fetches if f not in given]


def _once(op: Operation) -> bool:
    """Whether an operation, or one in its bodies, does more than compute, so that it may not run again.

    A read may: what it gave first is kept for whoever uses it.
    """
    stack = [op]
    while stack:
        one = stack.pop()
        if one.op_def.is_stateful and one.verb not in ("handle", "feed") and (one is not op or one.verb != "read"):
            return True
        stack.extend([inner for body in one.bodies for inner in body.get_operations()])
    return False
