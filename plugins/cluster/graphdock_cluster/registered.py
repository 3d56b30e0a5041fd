"""Registered: one phase of a part of a session's steps, ready to run on its task."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import graphdock as _tf
import numpy as np
from graphdock.contracts.effects import talks
from graphdock.graph.operation import Operation
from graphdock.graph.tensor import Tensor
from graphdock.session.session import Session

from graphdock_cluster.running import NO_LIMIT

__all__ = ["Registered", "held_back"]

_UNLIMITED = _tf.RunOptions(timeout_in_ms=int(NO_LIMIT * 1e3))
#: Seconds within which a part must end to run on a thread that messages come by.
QUICK = 1e-3
#: Bytes up to which a tensor goes with others.
SMALL = 1 << 14


class _Thread(threading.local):
    held: dict[Any, tuple[list[str], list[Any]]] | None = None


_thread = _Thread()


class _Sends:
    """Small tensors that this thread sends within ``with``: those for one task go as one message at its end, if it ends well.

    Args:
      gathers: do so; else each goes at once.
    """

    def __init__(self, gathers: bool) -> None:
        self._gathers = gathers

    def __enter__(self) -> None:
        self._before, _thread.held = _thread.held, {} if self._gathers else None

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        held, _thread.held = _thread.held, self._before
        if held and kind is None:
            for (post, *whom), (edges, values) in held.items():
                post(*whom, edges, values)


def held_back(post: Callable[..., None], task: str, step: int, edge: str, value: Any) -> bool:
    """Return whether a tensor goes with others, as it is now. ``post``: is given task, step, edges and values then."""
    small = isinstance(value, (np.ndarray, np.generic)) and value.nbytes <= SMALL and value.dtype.kind != "O"
    if _thread.held is None or not small:
        return False
    edges, values = _thread.held.setdefault((post, task, step), ([], []))
    edges.append(edge)
    values.append(np.array(value))
    return True


class Registered:
    """A part that is ready to run: its session, what it fetches, and what it is fed, in order.

    Attributes:
      fed: how many values it is fed.
      first: edges that it takes before it does anything; empty where it does something before, or takes none.
      quick: it waits for nothing else, and took less than a moment the last time.
    """

    def __init__(
        self,
        session: Session,
        step: Tensor | None,
        feeds: Sequence[Tensor],
        fetches: Sequence[Tensor],
        targets: Sequence[Operation],
    ) -> None:
        self.session = session
        self.first, self._may_be_quick = _waits_of(session.graph.get_operations())
        self.quick = False
        self.fed = len(feeds)
        self._feeds = feeds if step is None else [step, *feeds]
        self._fetches: list[Any] = [*fetches, *targets]
        self._count = len(fetches)
        self._numbered = step is not None
        sent = Counter(op.node_attrs["task"] for op in session.graph.get_operations() if op.type == "Send")
        self._sends_several = max(sent.values(), default=0) > 1

    def run(self, step: int, feeds: list[Any], seconds: float) -> list[Any]:
        """The fetches of a step."""
        values = [np.asarray(step, np.int64), *feeds] if self._numbered else feeds
        options = _UNLIMITED if seconds >= NO_LIMIT else _tf.RunOptions(timeout_in_ms=max(1, int(seconds * 1e3)))
        began = time.perf_counter()
        with _Sends(self.quick and self._sends_several):
            results = self.session.run(self._fetches, dict(zip(self._feeds, values, strict=True)), options=options)
        self.quick = self._may_be_quick and time.perf_counter() - began < QUICK
        return list(results[: self._count])

    def explain(self, shapes: Sequence[Sequence[int]]) -> dict[str, Any]:
        """Facts of its plan as plain data: ``kernels`` and ``devices`` with the number of nodes of each, ``table`` and ``source``.

        Args:
          shapes: of what it is fed.
        """
        feeds = self._feeds[1:] if self._numbered else self._feeds
        given = zip(feeds, shapes, strict=True)
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
