"""Steps of a program that runs as it stands: counted, and stopped at the one that is asked about.

Only the main thread's own calls of ``Session.run`` count, not those that a call makes within.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import graphdock as tf
from graphdock.errors import NotFoundError, did_you_mean

__all__ = ["Stopped", "Watch", "is_training", "named", "watched"]


class Stopped(BaseException):
    """The program ran as far as it was asked to. No Exception, so that a program's own handlers let it through."""


class Watch:
    """Watch over the steps of a program.

    Args:
      limit: steps after which the program is stopped; None for no limit.
      look: called with session, fetches and feeds in place of the first step that trains; the program is stopped then.
      fetch: name of a tensor or operation, or of a variable of the program: the first step that fetches it is looked at instead. A
        step that trains without it does not run: what it feeds is what ``fetch`` alone is looked at with.

    Attributes:
      seen: names of what steps have fetched. refusal: why it was stopped without a look.
      steps: steps that ran. largest: session, fetches and feeds of the step with the most operations; None before any.
    """

    def __init__(
        self, limit: int | None = None, look: Callable[[Any, Any, Any], None] | None = None, fetch: str | None = None
    ) -> None:
        self.limit = limit
        self.look = look
        self.fetch = fetch
        self.seen: set[str] = set()
        self.refusal: NotFoundError | None = None
        self.steps = 0
        self.largest: tuple[Any, Any, Any] | None = None
        self._size = -1

    def before(self, session: Any, fetches: Any, feeds: Any) -> None:
        """Raises Stopped: this is the step that is asked about."""
        if self.look is None:
            return
        size, trains = is_training(session.graph, fetches)
        if self.fetch is not None:
            elements = {_element(session.graph, leaf) for leaf in _leaves(fetches)}
            self.seen.update(element.name.removesuffix(":0") for element in elements)
            wanted = named(session.graph, self.fetch)
            if wanted in elements or (trains and wanted is not None):
                self.look(session, fetches if wanted in elements else wanted, feeds)
                raise Stopped
            if not trains:
                return
            self.refusal = NotFoundError(
                f"the program has no {self.fetch!r} at its first step that trains",
                hint=did_you_mean(self.fetch, self.seen) or f"its steps fetch {', '.join(sorted(self.seen)[:8])}",
            )
            raise Stopped
        if trains:
            self.look(session, fetches, feeds)
            raise Stopped
        if size > self._size:
            self._size, self.largest = size, (session, fetches, feeds)

    def after(self) -> None:
        """Raises Stopped: that was the last step."""
        self.steps += 1
        if self.limit is not None and self.steps >= self.limit:
            raise Stopped


def is_training(graph: Any, fetches: Any) -> tuple[int, bool]:
    """Return how many operations a step needs, and whether one of them is an update that an optimizer has made."""
    trains = {op.op if hasattr(op, "op") else op for op in graph.get_collection(tf.GraphKeys.TRAIN_OP)}
    seen: set[Any] = set()
    waiting = [
        found if hasattr(found, "control_inputs") else found.op
        for found in (_element(graph, item) for item in _leaves(fetches))
    ]
    while waiting:
        op = waiting.pop()
        if op not in seen:
            seen.add(op)
            waiting += [tensor.op for tensor in op.inputs] + list(op.control_inputs)
    return len(seen), not trains.isdisjoint(seen)


def _element(graph: Any, item: Any) -> Any:
    """The tensor or operation that a fetch stands for."""
    return graph.as_graph_element(item, allow_tensor=True)


def named(graph: Any, name: str) -> Any:
    """Return the tensor or operation of a name: the graph's own, the innermost of the program's variables, or the end of one scope.

    None where there is none, or where several scopes end so.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if not str(frame.f_globals.get("__name__", "")).partition(".")[0].startswith("graphdock"):
            for value in (frame.f_locals.get(name), frame.f_globals.get(name)):
                if getattr(value, "graph", None) is graph:
                    return _element(graph, value)
        frame = frame.f_back
    try:
        return _element(graph, name if ":" in name else graph.get_operation_by_name(name).values()[0])
    except IndexError:
        return graph.get_operation_by_name(name)
    except (KeyError, ValueError):
        found = [op for op in graph.get_operations() if op.name.endswith(f"/{name}")]
    return (found[0].outputs or found)[0] if len(found) == 1 else None


def _leaves(fetches: Any) -> list[Any]:
    if isinstance(fetches, dict):
        return [leaf for value in fetches.values() for leaf in _leaves(value)]
    if isinstance(fetches, (list, tuple)):
        return [leaf for value in fetches for leaf in _leaves(value)]
    if isinstance(fetches, tf.SparseTensor):
        return [fetches.indices, fetches.values, fetches.dense_shape]
    return [] if fetches is None else [fetches]


@contextlib.contextmanager
def watched(watch: Watch) -> Iterator[None]:
    """Let a watch see the main thread's steps meanwhile."""
    run = tf.Session.run
    main, inside = threading.main_thread(), False

    @functools.wraps(run)
    def counted(self: Any, fetches: Any, feed_dict: Any = None, *args: Any, **kwargs: Any) -> Any:
        nonlocal inside
        if inside or threading.current_thread() is not main:
            return run(self, fetches, feed_dict, *args, **kwargs)
        inside = True
        try:
            watch.before(self, fetches, feed_dict)
            result = run(self, fetches, feed_dict, *args, **kwargs)
        finally:
            inside = False
        watch.after()
        return result

    tf.Session.run = counted  # type: ignore[method-assign]
    try:
        yield
    finally:
        tf.Session.run = run  # type: ignore[method-assign]
