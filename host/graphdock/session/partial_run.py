"""Partial runs: one step, fed and fetched piece by piece."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from graphdock.errors import GraphdockError, InvalidArgumentError
from graphdock.graph.operation import Operation
from graphdock.graph.tensor import Tensor
from graphdock.session.fetches import Feed, FetchPlan, convert_feed, single_tensors
from graphdock.session.run_options import name_operation

if TYPE_CHECKING:
    from graphdock.session.session import Session

__all__ = ["PartialRun"]


class PartialRun:
    """A step between its pieces; what ``Session.partial_run_setup`` returns. One thread at a time runs a piece.

    It is one step, planned as a whole: each operation runs once, in the first piece that needs it. So an update happens once, and a
    variable that was read is read for all pieces. Between its pieces it holds no lock. A piece that fails ends it.

    Args:
      session: whose step it is. fetches, feeds: all that the pieces will fetch and feed.

    Raises:
      InvalidArgumentError: nothing to fetch, or what can't be fetched or fed.
    """

    def __init__(self, session: Session, fetches: Any, feeds: Sequence[Any] | None) -> None:
        self.session = session
        plan = FetchPlan(session.graph, fetches)
        if not plan.tensors and not plan.operations:
            raise InvalidArgumentError("partial_run_setup needs something to fetch", expected="a list of tensors")
        self._tensors, self._operations = plan.tensors, plan.operations
        self._feeds = list(dict.fromkeys(Feed(session.graph, key).tensor for key in feeds or ()))
        self._fed: set[Tensor] = set()
        self._done: set[Any] = set()
        self._next: Any = None

    def piece(self, fetches: Any, feed_dict: Mapping[Any, Any] | None) -> Any:
        """Run the next piece.

        Raises:
          InvalidArgumentError: a fetch or feed that was not set up, or is given a second time; a placeholder is needed that was not
          fed. FailedPreconditionError: an earlier piece has failed. What a step raises.
        """
        plan = FetchPlan(self.session.graph, fetches)
        known = {*self._tensors, *self._operations}
        wanted: list[Tensor | Operation] = [*plan.tensors, *plan.operations]
        for fetch in wanted:
            if fetch not in known:
                raise InvalidArgumentError(f"the fetch {fetch.name} was not specified in partial_run_setup")
            if fetch in self._done:
                raise InvalidArgumentError(f"the fetch {fetch.name} has been fetched already in this partial run")
        given = {}
        for key, value in single_tensors(feed_dict or {}).items():
            feed = Feed(self.session.graph, key)
            if feed.tensor not in self._feeds:
                raise InvalidArgumentError(f"the feed {feed.tensor.name} was not specified in partial_run_setup")
            if feed.tensor in self._fed:
                raise InvalidArgumentError(f"the feed {feed.tensor.name} has been fed already in this partial run")
            # the caller's array may change before the next piece
            given[self._feeds.index(feed.tensor)] = np.array(convert_feed(feed, value))
        try:
            if self._next is None:
                self._next = self.session._begin(self._tensors, self._operations, self._feeds)
            outputs = [self._tensors.index(t) for t in plan.tensors]
            found = self._next(given, outputs, _names(plan.operations))
        except GraphdockError as error:
            name_operation(error, self.session.graph)
            raise
        self._fed.update(self._feeds[i] for i in given)
        self._done.update(wanted)
        return plan.pack(found)


def _names(operations: Sequence[Operation]) -> set[str]:
    """The names of operations that do something, in place of those that only wait for others."""
    found: set[Operation] = set()
    stack = list(operations)
    while stack:
        op = stack.pop()
        if op not in found:
            found.add(op)
            if op.op_def.verb.silent:
                stack += [*op.control_inputs, *[t.op for t in op.inputs]]
    return {op.name for op in found}
