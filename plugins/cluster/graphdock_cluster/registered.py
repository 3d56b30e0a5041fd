"""Registered: one phase of a part of a session's steps, ready to run on its task."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Any

import graphdock as _tf
import numpy as np
from graphdock.contracts.effects import talks
from graphdock.graph.operation import Operation
from graphdock.graph.tensor import Tensor
from graphdock.session.session import Session

from graphdock_cluster.exchange import Exchange
from graphdock_cluster.running import NO_LIMIT

__all__ = ["Registered", "held_back"]

_UNLIMITED = _tf.RunOptions(timeout_in_ms=int(NO_LIMIT * 1e3))
#: Seconds within which a part must end to run on a thread that messages come by.
QUICK = 1e-3
#: Bytes up to which a tensor goes with others.
SMALL = 1 << 14


#: Edges and tensors by the names of the tasks that they are for.
Kept = dict[str, tuple[list[str], list[Any]]]


class _Thread(threading.local):
    sends: _Sends | None = None


_thread = _Thread()


class _Sends:
    """Small tensors that this thread sends within ``with``: those for one task go as one message at its end, if it ends well.

    Args:
      whom: the tasks for which they are held back. The others get each at once.
      kept: takes those for the tasks that it names, in the place of a message.
      watched: a task. ``since``: when the first tensor for it was sent.
    """

    def __init__(self, whom: Collection[str], kept: Kept, watched: str = "") -> None:
        self._whom, self._kept, self._watched = whom, kept, watched
        self._held: dict[Any, tuple[list[str], list[Any]]] = {}
        self.since: float | None = None

    def __enter__(self) -> _Sends:
        self._before, _thread.sends = _thread.sends, self
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        _thread.sends = self._before
        if kind is None:
            for (post, task, step), (edges, values) in self._held.items():
                if task in self._kept:
                    self._kept[task][0].extend(edges)
                    self._kept[task][1].extend(values)
                else:
                    post(task, step, edges, values)

    def hold(self, post: Callable[..., None], task: str, step: int, edge: str, value: Any) -> bool:
        """Return whether a tensor is held back, as it is now."""
        if self.since is None and task == self._watched:
            self.since = time.perf_counter()
        if task not in self._whom:
            return False
        if not isinstance(value, (np.ndarray, np.generic)) or value.nbytes > SMALL or value.dtype.kind == "O":
            return False
        edges, values = self._held.setdefault((post, task, step), ([], []))
        edges.append(edge)
        values.append(np.array(value))
        return True


def held_back(post: Callable[..., None], task: str, step: int, edge: str, value: Any) -> bool:
    """Return whether a tensor goes with others, as it is now. ``post``: is given task, step, edges and values then."""
    sends = _thread.sends
    return sends is not None and sends.hold(post, task, step, edge, value)


class Registered:
    """A part that is ready to run: its session, what it fetches, and what it is fed, in order.

    What is there before it begins, and is small and of a known shape, it is fed as well: it then waits for nothing, and runs as any
    step of one process.

    Args:
      home: the task of the part's master, which takes tensors with the answer; empty where there is none.

    Attributes:
      fed: how many values it is fed.
      first: edges that it takes before it does anything; empty where it does something before, or takes none.
      quick: it waits for nothing else, and took less than a moment the last time.
      home: as given, where what it sends there may go at its end.
    """

    def __init__(
        self,
        session: Session,
        step: Tensor | None,
        feeds: Sequence[Tensor],
        fetches: Sequence[Tensor],
        targets: Sequence[Operation],
        home: str = "",
    ) -> None:
        self.session = session
        operations = session.graph.get_operations()
        self.first, self._may_be_quick = _waits_of(operations)
        self.quick = False
        self.fed = len(feeds)
        self._feeds = feeds if step is None else [step, *feeds]
        self._fetches: list[Any] = [*fetches, *targets]
        self._count = len(fetches)
        self._numbered = step is not None
        self._sent = Counter(op.node_attrs["task"] for op in operations if op.type == "Send")
        self._received = _small_ones(operations) if self.first else {}
        self.home = home if home in self._sent and _sends_last(operations, home, bool(self.first)) else ""
        self._ends_soon = False

    def run(
        self, exchange: Exchange, step: int, feeds: list[Any], seconds: float, kept: Kept | None = None
    ) -> list[Any]:
        """The fetches of a step.

        Args:
          exchange: of the session, where what it takes ``first`` is by now, unless the step is over.
          kept: takes small tensors for the tasks that it names, where they may go at the part's end; the others are sent.
        """
        kept = kept or {}
        values = [np.asarray(step, np.int64), *feeds] if self._numbered else feeds
        fed = dict(zip(self._feeds, values, strict=True))
        if self._received and (received := exchange.take_all(step, list(self._received))) is not None:
            fed.update(zip(self._received.values(), received, strict=True))
        options = _UNLIMITED if seconds >= NO_LIMIT else _tf.RunOptions(timeout_in_ms=max(1, int(seconds * 1e3)))
        began = time.perf_counter()
        if not self._sent:
            results = self.session.run(self._fetches, fed, options=options)
            self.quick = self._may_be_quick and time.perf_counter() - began < QUICK
            return list(results[: self._count])
        whom: Collection[str] = ()
        if self.quick:
            whom = [task for task, count in self._sent.items() if count > 1 or task in kept]
        elif self._ends_soon and self.home in kept:
            whom = (self.home,)
        with _Sends(whom, kept, self.home) as sends:
            results = self.session.run(self._fetches, fed, options=options)
        ended = time.perf_counter()
        self.quick = self._may_be_quick and ended - began < QUICK
        self._ends_soon = sends.since is not None and ended - sends.since < QUICK
        return list(results[: self._count])

    def explain(self, shapes: Sequence[Sequence[int]]) -> dict[str, Any]:
        """Facts of its plan as plain data: ``kernels`` and ``devices`` with the number of nodes of each, ``table`` and ``source``.

        Args:
          shapes: of what it is fed.
        """
        feeds = self._feeds[1:] if self._numbered else self._feeds
        known = [(t, [n for n in t.shape.as_list() if n is not None]) for t in self._received.values()]
        given: list[tuple[Tensor, Sequence[int]]] = [*zip(feeds, shapes, strict=True), *known]
        fed = {t: np.broadcast_to(np.zeros((), t.dtype.as_numpy_dtype), s) for t, s in given if t.dtype.kind != "S"}
        said = self.session.explain(self._fetches, fed)
        devices = Counter(row.device for one in (*said.before, said) for row in one.rows if row.device)
        return {
            "kernels": said.kernels(),
            "devices": dict(sorted(devices.items())),
            "table": "\n".join([*(one.table() for one in said.before), said.table()]),
            "source": said.source,
        }


def _waits_of(operations: Sequence[Operation]) -> tuple[frozenset[str], bool]:
    """Edges that a part takes before it does anything, and whether it then waits for nothing and calls no Python."""
    received = [n for n, op in enumerate(operations) if op.type == "Recv"]
    before = operations[: received[-1]] if received else []
    first = not any(
        op.type != "Recv" and (talks(op.op_def) or op.bodies or any(arg.access for arg in op.op_def.inputs))
        for op in before
    )
    others = [op for op in operations if op.type != "Recv"]
    waits = any("waits" in op.op_def.effects or any(b.waits for b in op.bodies) for op in others)
    edges = [operations[n].node_attrs["edge"] for n in received] if first else []
    return frozenset(edges), first and not waits


def _sends_last(operations: Sequence[Operation], task: str, met: bool) -> bool:
    """Return whether all that a part waits for comes before each of its sends to a task, so that none of them is waited for.

    Args:
      met: what it receives is there when it begins.
    """
    before: dict[Operation, int] = {}
    count, sends = 0, []
    for op in operations:
        behind = 0
        for earlier in (*[t.op for t in op.inputs], *op._control):
            behind |= before.get(earlier, 0)
        waits = "waits" in op.op_def.effects and not (met and op.type == "Recv")
        if waits or any(b.waits for b in op.bodies):
            behind |= 1 << count
            count += 1
        before[op] = behind
        if op.type == "Send" and op.node_attrs["task"] == task:
            sends.append(behind)
    return all(behind == (1 << count) - 1 for behind in sends)


def _small_ones(operations: Sequence[Operation]) -> dict[str, Tensor]:
    """Edges of small tensors that are received, of known shapes and as they are, each with its tensor. No receipts."""
    found = {}
    for op in operations:
        if op.type == "Recv" and not op.node_attrs["compress"] and not op.node_attrs["edge"].startswith("^"):
            tensor = op.outputs[0]
            count = tensor.shape.num_elements()
            if count is not None and 0 < count * tensor.dtype.size <= SMALL:
                found[op.node_attrs["edge"]] = tensor
    return found
