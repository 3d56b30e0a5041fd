"""Placement: a placer chooses the device of each group of nodes, over plain data; the host says what it may choose from.

Groups, what scopes ask for, which devices have kernels, and where variables live are the host's law, and settled before. A placer
comes by the hook ``register_placers``, and ``SessionConfig(placer=...)`` names it. What its choice would take is simulated
(:func:`simulate`): each engine computes one task after another, and a tensor is copied once to each memory that reads it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from math import inf
from typing import ClassVar

from graphdock.errors import InvalidArgumentError

__all__ = ["Placer", "PlacementProblem", "PlacementTask", "PlacementTensor", "Timeline", "simulate"]


@dataclass(frozen=True, slots=True)
class PlacementTensor:
    """A tensor between tasks.

    Attributes:
      nbytes: its bytes; 0 where nobody knows.
      home: memory space in which it is from the start, None of one that a task makes.
    """

    nbytes: int
    home: str | None = None


@dataclass(frozen=True, slots=True)
class PlacementTask:
    """A node, as far as its device is concerned. Tasks, groups and tensors have numbers: their places in the problem's tuples.

    Attributes:
      name: of the node.
      group: the group that it is of.
      reads: tensors that it reads, each once.
      makes: tensors that it makes.
      after: tasks that it follows without reading from them.
      seconds: device -> what it takes there; for each device that its group may be on. 0 where nobody knows.
    """

    name: str
    group: int
    reads: tuple[int, ...]
    makes: tuple[int, ...]
    after: tuple[int, ...]
    seconds: Mapping[str, float]


@dataclass(frozen=True)
class PlacementProblem:
    """The nodes of a plan, and where they may be.

    Attributes:
      devices: names such as ``cuda:0``, in the session's order.
      memory: device -> its memory space.
      groups: the devices that each group may be on; never none. Nodes of one group share a device.
      rules: where the host would put each group.
      tasks: in the order of the plan: a task comes behind those that it reads from and follows.
      tensors: those that tasks read and make.
      links: (memory space, other one) -> seconds that a copy takes to begin, and per byte.
      limits: memory space -> bytes that tensors may take there; absent for no limit.
      engines: device -> what computes its tasks, one after another. Devices without queues share the thread of the step, unless
        its executor has more threads. A device that is not named is an engine by itself.
      notes: lines that a placer leaves for ``explain``.

    Raises:
      InvalidArgumentError: these do not belong together: a number of nothing, a device without memory, a time that is missing.
    """

    devices: tuple[str, ...]
    memory: Mapping[str, str]
    groups: tuple[tuple[str, ...], ...]
    rules: tuple[str, ...]
    tasks: tuple[PlacementTask, ...]
    tensors: tuple[PlacementTensor, ...]
    links: Mapping[tuple[str, str], tuple[float, float]]
    limits: Mapping[str, int] = field(default_factory=dict)
    engines: Mapping[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if wrong := [t for t in self.tensors if not 0 <= t.nbytes < inf]:
            raise _wrong(f"a tensor has {wrong[0].nbytes} bytes")
        for (a, b), costs in self.links.items():
            if not all(0.0 <= c < inf for c in costs):
                raise _wrong(f"links takes {costs} from {a!r} to {b!r}")
        spaces = {*self.memory.values(), *(t.home for t in self.tensors if t.home is not None)}
        if lost := [d for d in self.devices if d not in self.memory]:
            raise _wrong(f"memory has no space of {lost[0]!r}")
        if pairs := [(a, b) for a in spaces for b in spaces if a != b and (a, b) not in self.links]:
            raise _wrong("links has no copy from {!r} to {!r}".format(*min(pairs)))
        if lost := sorted(self.engines.keys() - set(self.devices)):
            raise _wrong(f"engines names {lost[0]!r}; devices are {', '.join(self.devices)}")
        for group, may in enumerate(self.groups):
            if not may or not set(may) <= set(self.devices):
                raise _wrong(f"groups[{group}] is {may!r}; devices are {', '.join(self.devices)}")
        _per_group("rules", self.rules, self.groups)
        there = {i for i, t in enumerate(self.tensors) if t.home is not None}
        for number, task in enumerate(self.tasks):
            if not 0 <= task.group < len(self.groups):
                raise _wrong(f"tasks[{number}] is of group {task.group}; there are {len(self.groups)}")
            if not there.issuperset(task.reads):
                unmade = min({*task.reads} - there)
                raise _wrong(
                    f"tasks[{number}] reads tensor {unmade}, which no task before makes, and which has no home"
                )
            if task.after and not 0 <= min(task.after) <= max(task.after) < number:
                raise _wrong(f"tasks[{number}] is after {task.after}, which is not before it")
            if lost := [d for d in self.groups[task.group] if d not in task.seconds]:
                raise _wrong(f"tasks[{number}] has no seconds on {lost[0]!r}, on which its group may be")
            if not all(0.0 <= seconds < inf for seconds in task.seconds.values()):
                raise _wrong(f"tasks[{number}] takes {dict(task.seconds)}; seconds are at least 0, and finite")
            if not there.isdisjoint(task.makes):
                raise _wrong(f"tasks[{number}] makes tensor {min(there & {*task.makes})}, which is there before")
            there.update(task.makes)
        if there and not 0 <= min(there) <= max(there) < len(self.tensors):
            raise _wrong(f"a task makes tensor {max(there)}; there are {len(self.tensors)}")


def _wrong(what: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"PlacementProblem: {what}")


def _per_group(what: str, devices: Sequence[str], groups: Sequence[tuple[str, ...]]) -> None:
    if not isinstance(devices, Sequence) or isinstance(devices, str) or len(devices) != len(groups):
        raise InvalidArgumentError(
            f"{what} are wrong", expected=f"a device for each of {len(groups)} groups", got=repr(devices)
        )
    for group, may in enumerate(groups):
        if devices[group] not in may:
            raise InvalidArgumentError(
                f"{what}[{group}] is wrong",
                expected=f"a device that the group may be on: {', '.join(may)}",
                got=repr(devices[group]),
            )


@dataclass(frozen=True, slots=True)
class Timeline:
    """A simulated step.

    Attributes:
      makespan: seconds from its beginning to its end.
      tasks: per task its device, and when it begins and ends.
      transfers: (tensor, source, target, begin, end) of each copy, in the order of their beginning.
      peak: memory space -> the most bytes of tensors that are there at once, none of them reused in place.
    """

    makespan: float
    tasks: tuple[tuple[str, float, float], ...]
    transfers: tuple[tuple[int, str, str, float, float], ...]
    peak: Mapping[str, int]

    def excess(self, limits: Mapping[str, int]) -> Mapping[str, int]:
        """Memory space -> bytes by which its peak exceeds the limit."""
        return {m: self.peak[m] - limit for m, limit in limits.items() if self.peak.get(m, 0) > limit}


class Placer(ABC):
    """Chooses devices. ``name`` is what ``placer=`` in the configuration says.

    Threads: ``place`` runs under the planner's lock; plans of several sessions are made at once.
    """

    name: ClassVar[str]

    @abstractmethod
    def place(self, problem: PlacementProblem) -> Mapping[int, str]:
        """The device of every group, by its number: one of those that it may be on.

        The host checks that, and names the placer where it is not so. The same problem must have the same answer.
        """


def simulate(problem: PlacementProblem, devices: Sequence[str]) -> Timeline:
    """Seconds and bytes of a step with these devices of the groups.

    A task can begin when what it follows has ended and what it reads is in its memory. An engine that is free takes, of those that
    can begin on its devices, the first in the order of the plan. Copies between two memory spaces run one after another, beside
    what devices do.

    Args:
      devices: a device for each group, at the group's place.

    Raises:
      InvalidArgumentError: there are more or fewer devices than groups, or a group may not be on its device.
    """
    _per_group("devices", devices, problem.groups)
    memory, tensors, links, tasks = problem.memory, problem.tensors, problem.links, problem.tasks
    missing, followers, first = _edges(problem)
    engines = {device: problem.engines.get(device, device) for device in problem.devices}
    number_of = {engine: i for i, engine in enumerate(dict.fromkeys(engines.values()))}
    place = {device: number_of[engine] for device, engine in engines.items()}
    free = [0.0] * len(number_of)
    waiting: list[list[tuple[float, int]]] = [[] for _ in free]  # by the time at which they can begin
    ready: list[list[int]] = [[] for _ in free]  # which can begin when the engine is free, by number
    busy: dict[tuple[str, str], float] = {}
    there: dict[tuple[int, str], float] = {(i, t.home): 0.0 for i, t in enumerate(tensors) if t.home is not None}
    home: list[str | None] = [t.home for t in tensors]
    rows: list[tuple[str, float, float]] = [("", 0.0, 0.0)] * len(tasks)
    copies: list[tuple[int, str, str, float, float]] = []
    spans: dict[
        tuple[int, str], list[int]
    ] = {}  # (tensor, memory) -> the first and the last task, in order, that it is there for
    done = 0

    def can_begin(number: int, after: float) -> None:
        task = tasks[number]
        device = devices[task.group]
        space = memory[device]
        for tensor in task.reads:
            source = home[tensor]
            assert source is not None  # it was made, or was there from the start
            arrival = there.get((tensor, space))
            if arrival is None:
                begin = max(there[tensor, source], busy.get((source, space), 0.0))
                latency, per_byte = links[source, space]
                arrival = there[tensor, space] = busy[source, space] = (
                    begin + latency + per_byte * tensors[tensor].nbytes
                )
                copies.append((tensor, source, space, begin, arrival))
                spans[tensor, space] = [done, done]
            after = max(after, arrival)
        heappush(waiting[place[device]], (after, number))

    for number in first:
        can_begin(number, 0.0)
    while done < len(tasks):
        start, at = inf, 0
        for i, now in enumerate(free):
            begin = now if ready[i] else max(now, waiting[i][0][0]) if waiting[i] else inf
            if begin < start:
                start, at = begin, i
        while waiting[at] and waiting[at][0][0] <= start:
            heappush(ready[at], heappop(waiting[at])[1])
        number = heappop(ready[at])
        task = tasks[number]
        device = devices[task.group]
        space = memory[device]
        end = free[at] = start + task.seconds[device]
        rows[number] = (device, start, end)
        for tensor in task.reads:
            for key in ((tensor, space), (tensor, home[tensor] or space)):
                if key in spans:
                    spans[key][1] = done
        for tensor in task.makes:
            home[tensor] = space
            there[tensor, space] = end
            spans[tensor, space] = [done, done]
        done += 1
        for follower in followers[number]:
            missing[follower] -= 1
            if not missing[follower]:
                can_begin(follower, max([rows[t][2] for t in tasks[follower].after], default=0.0))
    makespan = max([0.0, *free, *(c[4] for c in copies)])
    copies.sort(key=lambda copy: copy[3])
    return Timeline(makespan, tuple(rows), tuple(copies), _peak(problem, spans))


def _edges(problem: PlacementProblem) -> tuple[list[int], list[list[int]], list[int]]:
    """Per task how many others it comes behind, and those that come behind it; and the tasks that come behind none."""
    maker = {tensor: number for number, task in enumerate(problem.tasks) for tensor in task.makes}
    missing: list[int] = []
    first: list[int] = []
    followers: list[list[int]] = [[] for _ in problem.tasks]
    for number, task in enumerate(problem.tasks):
        behind = {*(maker[t] for t in task.reads if t in maker), *task.after}
        missing.append(len(behind))
        for other in behind:
            followers[other].append(number)
        if not behind:
            first.append(number)
    return missing, followers, first


def _peak(problem: PlacementProblem, spans: Mapping[tuple[int, str], Sequence[int]]) -> dict[str, int]:
    change: dict[str, dict[int, int]] = {}
    for (tensor, space), (first, last) in spans.items():
        nbytes = problem.tensors[tensor].nbytes
        if nbytes:
            at = change.setdefault(space, {})
            at[first] = at.get(first, 0) + nbytes
            at[last + 1] = at.get(last + 1, 0) - nbytes
    peak = {}
    for space, at in change.items():
        held = most = 0
        for number in sorted(at):
            held += at[number]
            most = max(most, held)
        peak[space] = most
    return peak
