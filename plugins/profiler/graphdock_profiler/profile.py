"""Profiles: what traced steps spent, by node, op, kernel or device, and what memory they hold.

metadata = tf.RunMetadata()
sess.run(train_op, feed, options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=metadata)
print(Profile([metadata]))
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from graphdock import RunMetadata, RunOptions, Session
from graphdock.arguments import check_type
from graphdock.contracts.runtime.resources import Variable
from graphdock.contracts.step import TraceEvent, TraceLevel
from graphdock.errors import InvalidArgumentError, did_you_mean
from graphdock.shape import concrete
from graphdock.units import in_bytes, in_seconds

from graphdock_profiler import html
from graphdock_profiler.chrome import chrome_trace

__all__ = ["GROUPS", "Held", "Profile", "Row", "profile"]

#: What rows can stand for -> the part of an event that they share.
GROUPS: Mapping[str, Callable[[TraceEvent], tuple[str, str, str]]] = {
    "node": lambda e: (e.name, e.kernel or e.kind, e.device),
    "op": lambda e: (e.what, "", ""),
    "kernel": lambda e: (e.kernel or e.kind, "", e.device),
    "device": lambda e: (e.device, "", e.device),
}


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a profile. All numbers are per step, averaged over the steps that count.

    Attributes:
      name: of the node, op, kernel or device. ``kernel``, ``device``: where the group has one.
      calls: how often it was called. ``seconds``: how long that took.
      share: its part of the time of all rows, 0 to 1.
      nbytes: bytes that it read and wrote; of copies, that they moved.
    """

    name: str
    kernel: str
    device: str
    calls: float
    seconds: float
    share: float
    nbytes: float

    @property
    def rate(self) -> float:
        """Bytes per second; 0 where no time was seen."""
        return self.nbytes / self.seconds if self.seconds else 0.0


@dataclass(frozen=True, slots=True)
class Held:
    """Bytes that a plan holds in one memory space between its steps.

    Attributes:
      buffers: planned buffers of one context. ``variables``: all that the plan touches. ``constants``: of the plan, as the
        host keeps them; a device has copies of those that it reads.
    """

    buffers: int = 0
    variables: int = 0
    constants: int = 0


class Profile:
    """Times of some traced steps of one plan. The quicker half of them counts: what else the machine does falls on the others.

    Args:
      steps: what they reported.
      plain: seconds of calls of ``session.run`` of the same plan that were not traced.

    Attributes:
      counted: the steps that count, in order.
      events: what these reported.

    Raises:
      InvalidArgumentError: no step, or one that was not traced.
    """

    def __init__(self, steps: Iterable[RunMetadata], plain: Sequence[float] = ()) -> None:
        self.steps = tuple(steps)
        self.plain = tuple(plain)
        if not self.steps or not all(s.seconds for s in self.steps):
            raise InvalidArgumentError(
                "there is nothing to profile: no step was traced",
                hint="sess.run(..., options=tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE), run_metadata=metadata)",
            )
        bound = _quicker([s.seconds for s in self.steps])[-1]
        self.counted = tuple(s for s in self.steps if s.seconds <= bound)
        self.events: list[TraceEvent] = [e for s in self.counted for e in s.events if e.kind != "compile"]

    @property
    def seconds(self) -> float:
        """Return what a traced step takes, without what ``session.run`` does around it: the average of those that count."""
        return fmean(s.seconds for s in self.counted)

    @property
    def untraced_seconds(self) -> float | None:
        """Return what ``session.run`` takes without a trace, fetches and feeds included: the quicker half's average; None
        if unknown.
        """
        return fmean(_quicker(self.plain)) if self.plain else None

    @property
    def plan(self) -> Any:
        """The plan of the last step."""
        return self.steps[-1].plan

    def rows(self, by: str = "node") -> list[Row]:
        """One row per node, op, kernel or device, the dearest first.

        Raises:
          InvalidArgumentError: rows can't stand for that.
        """
        if by not in GROUPS:
            raise InvalidArgumentError(
                f"a profile has no rows by {by!r}",
                expected="one of " + ", ".join(GROUPS),
                hint=did_you_mean(by, GROUPS),
            )
        key = GROUPS[by]
        groups: dict[tuple[str, str, str], list[TraceEvent]] = {}
        for event in self.events:
            groups.setdefault(key(event), []).append(event)
        whole, count = sum(e.seconds for e in self.events), len(self.counted)
        rows = []
        for (name, kernel, device), events in groups.items():
            seconds = sum(e.seconds for e in events)
            moved = sum(e.nbytes for e in events)
            share = seconds / whole if whole else 0.0
            rows.append(Row(name, kernel, device, len(events) / count, seconds / count, share, moved / count))
        return sorted(rows, key=lambda row: -row.seconds)

    def held(self) -> dict[str, Held]:
        """Memory space -> what the plan holds in it."""
        plan = self.plan
        buffers = dict(plan.arena_bytes)
        variables: dict[str, int] = {}
        constants: dict[str, int] = {}
        for resource in plan.resources:
            if isinstance(resource, Variable):
                dims = concrete(resource.dims)
                space = resource.device.memory_space
                nbytes = 0 if dims is None else resource.dtype.size * math.prod(dims)
                variables[space] = variables.get(space, 0) + nbytes
        for level in plan.graph.all_graphs():
            for node in level.nodes:
                if node.verb == "constant":
                    constants["host"] = constants.get("host", 0) + int(node.attrs["value"].nbytes)
        spaces = dict.fromkeys([*buffers, *variables, *constants])
        return {s: Held(buffers.get(s, 0), variables.get(s, 0), constants.get(s, 0)) for s in spaces}

    def facts(self) -> dict[str, Any]:
        """All of it as plain data."""
        return {
            "steps": len(self.steps),
            "seconds": self.seconds,
            "counted": len(self.counted),
            "untraced_seconds": self.untraced_seconds,
            **{by: [asdict(row) for row in self.rows(by)] for by in GROUPS},
            "held": {space: asdict(held) for space, held in self.held().items()},
        }

    def table(self, by: str = "node", limit: int | None = 20) -> str:
        """The rows as text.

        Args:
          limit: how many rows; None for all.
        """
        rows = self.rows(by)
        shown = rows if limit is None else rows[:limit]
        head = [by, "calls", "time", "share", "bytes", "rate"]
        cells = [
            [
                r.name,
                f"{r.calls:g}",
                in_seconds(r.seconds),
                f"{r.share:.1%}",
                in_bytes(r.nbytes),
                f"{in_bytes(r.rate)}/s",
            ]
            for r in shown
        ]
        if by == "node":
            head.append("kernel")
            cells = [[*c, f"{r.kernel} on {r.device}"] for c, r in zip(cells, shown, strict=True)]
        elif by == "kernel":
            head.append("device")
            cells = [[*c, r.device] for c, r in zip(cells, shown, strict=True)]
        lines = _aligned(head, cells)
        if len(shown) < len(rows):
            rest = sum(r.seconds for r in rows[len(shown) :])
            lines.append(f"and {len(rows) - len(shown)} more, {in_seconds(rest)}")
        return "\n".join(lines)

    def summary(self) -> str:
        """Return what a step takes and holds, in a few lines."""
        count, every = len(self.counted), len(self.steps)
        busy = sum(e.seconds for e in self.events) / count
        which = "1 traced step" if every == 1 else f"{every} traced steps, of which the quickest {count} count"
        lines = [
            f"{which}: {in_seconds(self.seconds)} each, {in_seconds(busy)} of it in {len(self.events) / count:g} calls, "
            "the rest between them"
        ]
        if self.untraced_seconds is not None:
            lines.append(
                f"session.run without a trace, feeds and fetches included: {in_seconds(self.untraced_seconds)}"
            )
        for space, held in self.held().items():
            parts = [f"{in_bytes(n)} in {what}" for what, n in asdict(held).items() if n]
            lines.append(f"held in {space} memory: {', '.join(parts) or 'nothing'}")
        return "\n".join(lines)

    def __str__(self) -> str:
        return f"{self.summary()}\n\n{self.table()}"

    def _repr_html_(self) -> str:
        parts = []
        for by in GROUPS:
            found = self.rows(by)
            more = [n for n in ("kernel", "device") if n != by and any(getattr(r, n) for r in found)]
            rows = [
                (r.name, (r.calls, f"{r.calls:g}"), (r.seconds, in_seconds(r.seconds)), (r.share, f"{r.share:.1%}"))
                + ((r.nbytes, in_bytes(r.nbytes)), (r.rate, f"{in_bytes(r.rate)}/s"), *(getattr(r, n) for n in more))
                for r in found
            ]
            head = (by, "calls", "time", "share", "bytes", "rate", *more)
            parts.append(html.section(f"by {by}", html.table(head, rows)))
        return html.section(self.summary().partition("\n")[0], *parts)

    def chrome(self) -> dict[str, Any]:
        """The steps as a trace in Chrome's format; see :func:`graphdock_profiler.chrome.chrome_trace`.

        Before a step whose plan was made for it stand the stages of planning, end to end; kernels compile in ``prepare``.
        """
        return chrome_trace([(s.start, s.seconds, s.events) for s in self.steps])

    def save(self, path: str | Path) -> None:
        """Write the trace to a file that ui.perfetto.dev and chrome://tracing open."""
        Path(path).write_text(json.dumps(self.chrome()), encoding="utf-8")


def profile(
    session: Session,
    fetches: Any,
    feed_dict: Mapping[Any, Any] | None = None,
    steps: int = 10,
    warmup: int = 2,
    level: TraceLevel = TraceLevel.FULL_TRACE,
) -> Profile:
    """Run a step some times untraced and as often traced, in turns.

    Args:
      fetches, feed_dict: as of ``session.run``. ``warmup``: steps before any is measured.

    Raises:
      InvalidArgumentError: no steps. And whatever ``session.run`` raises.
    """
    for name, count, least in (("steps", steps, 1), ("warmup", warmup, 0)):
        check_type(count, int, f"profile: {name}", "a whole number")
        if count < least:
            raise InvalidArgumentError(f"profile: {name} is wrong", expected=f"{least} or more", got=repr(count))
    for _ in range(warmup):
        session.run(fetches, feed_dict)
    options = RunOptions(trace_level=level)
    plain: list[float] = []
    traced: list[RunMetadata] = []
    for _ in range(steps):
        start = time.perf_counter()
        session.run(fetches, feed_dict)
        plain.append(time.perf_counter() - start)
        metadata = RunMetadata()
        session.run(fetches, feed_dict, options, metadata)
        traced.append(metadata)
    return Profile(traced, plain)


def _quicker(seconds: Sequence[float]) -> list[float]:
    """The smaller half of some times, in order."""
    return sorted(seconds)[: (len(seconds) + 1) // 2]


def _aligned(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows under a head; the first column and those after the sixth are aligned left, the numbers right."""
    cells = [list(head), *map(list, rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(head))]
    return [
        "  ".join(
            c.rjust(w) if 0 < i < 6 else c.ljust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]
