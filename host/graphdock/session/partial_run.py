"""Partial runs: one step, fed and fetched piece by piece."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphdock.errors import InvalidArgumentError
from graphdock.graph.graph import Graph
from graphdock.graph.tensor import Tensor
from graphdock.session.fetches import Feed, FetchPlan, single_tensors

__all__ = ["PartialRun"]


class PartialRun:
    """A step between its pieces; what ``Session.partial_run_setup`` returns.

    Each piece is a step of its own, which is fed all that was fed before, and what was fetched before in place of computing it
    again. So what is fetched once stays as it was; what lies between and draws random numbers or changes variables runs again
    in each piece that needs it.

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

    def piece(self, session: Any, fetches: Any, feed_dict: Mapping[Any, Any] | None) -> Any:
        """Run the next piece.

        Raises:
          InvalidArgumentError: a fetch or feed that was not set up, or is given a second time.
        """
        plan = FetchPlan(self.graph, fetches)
        wanted: list[Any] = [*plan.tensors, *plan.operations]
        for fetch in wanted:
            if fetch not in self._fetches:
                raise InvalidArgumentError(f"the fetch {fetch.name} was not specified in partial_run_setup")
            if fetch in self._done:
                raise InvalidArgumentError(f"the fetch {fetch.name} has been fetched already in this partial run")
        for key, value in single_tensors(feed_dict or {}).items():
            tensor = Feed(self.graph, key).tensor
            if tensor not in self._feeds:
                raise InvalidArgumentError(f"the feed {tensor.name} was not specified in partial_run_setup")
            if tensor in self._fed:
                raise InvalidArgumentError(f"the feed {tensor.name} has been fed already in this partial run")
            self._fed.add(tensor)
            self._given[tensor] = value
        flat = session.run(wanted, self._given)
        results = flat[: len(plan.tensors)]
        self._given.update(zip(plan.tensors, results, strict=True))
        self._done.update(plan.tensors, plan.operations)
        return plan.pack(results)
