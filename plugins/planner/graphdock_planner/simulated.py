"""Devices by simulation: list scheduling by completion time, beside simpler choices, of which the shortest step wins.

List scheduling places one task after another, those with the longest way to the end first, where it would end first (H. Topcuoglu,
S. Hariri, M.-Y. Wu: Performance-effective and low-complexity task scheduling for heterogeneous computing, 2002). What wins is
improved by moving single groups while that pays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar

from graphdock.contracts import PlacementProblem, Placer, Timeline, simulate

__all__ = ["Simulated"]

#: Tasks that all simulations of moves may place together: some hundredth of a second.
_WORK = 2_000
#: What counts as shorter: rounding does not.
_LESS = 1 - 1e-9


class Simulated(Placer):
    """The shortest simulated step of list scheduling, each single device, round-robin, and the host's rules, improved."""

    name: ClassVar[str] = "simulated"

    def place(self, problem: PlacementProblem) -> Mapping[int, str]:
        tried = [(what, devices, simulate(problem, devices)) for what, devices in _candidates(problem)]
        shortest = sorted(tried, key=lambda each: _rank(each[2], problem))
        left = _WORK
        best: tuple[tuple[int, float], str, list[str]] | None = None
        for what, devices, _ in shortest:
            if best is None or left > 0:
                rank, left = _improve(problem, devices, left)
                if best is None or rank < best[0]:
                    best = rank, what, devices
        assert best is not None
        (_, length), what, devices = best
        lengths = ", ".join(f"{name} {found.makespan * 1e6:.4g} us" for name, _, found in tried)
        problem.notes.append(f"simulated step {length * 1e6:.4g} us, from {what}; of {lengths}")
        return dict(enumerate(devices))


def _rank(found: Timeline, problem: PlacementProblem) -> tuple[int, float]:
    """Order of results, the better first: fewer bytes beyond the limits, then a step that is shorter by more than rounding."""
    return sum(found.excess(problem.limits).values()), float(f"{found.makespan:.9g}")


def _candidates(problem: PlacementProblem) -> Iterator[tuple[str, list[str]]]:
    yield "rules", list(problem.rules)
    tails = _tails(problem)
    order = sorted(range(len(tails)), key=lambda n: -min(tails[n][d] + problem.tasks[n].seconds[d] for d in tails[n]))
    yield "list scheduling", _list_schedule(problem, order, None)
    yield "list scheduling looking ahead", _list_schedule(problem, order, tails)
    for device in problem.devices:
        yield (
            f"{device} alone",
            [device if device in may else rule for may, rule in zip(problem.groups, problem.rules, strict=True)],
        )
    free = 0
    turns = []
    for may in problem.groups:
        turns.append(may[free % len(may)])
        free += len(may) > 1
    yield "round-robin", turns


def _list_schedule(
    problem: PlacementProblem, order: Sequence[int], tails: Sequence[Mapping[str, float]] | None
) -> list[str]:
    """Each group where the first of its tasks would end first.

    Args:
      order: the tasks, those with the longest way to the end of the step first.
      tails: what follows weighs, too: a task is where it and the longest way behind it would end first.
    """
    memory, tensors, links = problem.memory, problem.tensors, problem.links
    chosen: list[str | None] = [may[0] if len(may) == 1 else None for may in problem.groups]
    engine = {device: problem.engines.get(device, device) for device in problem.devices}
    free = dict.fromkeys(engine.values(), 0.0)
    busy: dict[tuple[str, str], float] = {}
    there: dict[tuple[int, str], float] = {(i, t.home): 0.0 for i, t in enumerate(tensors) if t.home is not None}
    home: list[str | None] = [t.home for t in tensors]
    held: dict[str, int] = {}
    ended = [0.0] * len(problem.tasks)

    def arrivals(number: int, space: str) -> tuple[float, list[tuple[int, str, float]]]:
        """Time when all is there that a task reads, and the copies that this takes."""
        latest, copies = 0.0, []
        lines: dict[str, float] = {}
        for tensor in problem.tasks[number].reads:
            at = there.get((tensor, space))
            if at is None:
                source = home[tensor]
                assert source is not None
                begin = max(there[tensor, source], lines.get(source, busy.get((source, space), 0.0)))
                latency, per_byte = links[source, space]
                at = lines[source] = begin + latency + per_byte * tensors[tensor].nbytes
                copies.append((tensor, source, at))
            latest = max(latest, at)
        return latest, copies

    for number in order:
        task = problem.tasks[number]
        waits = max([ended[other] for other in task.after], default=0.0)
        made = sum(tensors[t].nbytes for t in task.makes)
        known = chosen[task.group]
        options = []
        for place, device in enumerate(problem.groups[task.group] if known is None else (known,)):
            space = memory[device]
            arrival, copies = arrivals(number, space)
            end = max(free[engine[device]], waits, arrival) + task.seconds[device]
            needs = made + sum(tensors[t].nbytes for t, _, _ in copies)
            over = max(0, held.get(space, 0) + needs - problem.limits.get(space, 1 << 62))
            later = 0.0 if tails is None else tails[number][device]
            options.append((over, end + later, place, device, end, needs, copies))
        _, _, _, device, end, needs, copies = min(options)
        space = memory[device]
        chosen[task.group] = device
        for tensor, source, at in copies:
            there[tensor, space] = busy[source, space] = at
        held[space] = held.get(space, 0) + needs
        free[engine[device]] = end
        ended[number] = end
        for tensor in task.makes:
            home[tensor] = space
            there[tensor, space] = end
    return [device or rule for device, rule in zip(chosen, problem.rules, strict=True)]


def _tails(problem: PlacementProblem) -> list[dict[str, float]]:
    """Per task and device, the seconds from its end to the end of the step along the longest way, each reader where that is
    shortest."""
    readers: dict[int, list[int]] = {}
    behind: list[list[int]] = [[] for _ in problem.tasks]
    for number, task in enumerate(problem.tasks):
        for other in task.after:
            behind[other].append(number)
        for tensor in task.reads:
            readers.setdefault(tensor, []).append(number)
    tails: list[dict[str, float]] = [{} for _ in problem.tasks]
    for number in range(len(problem.tasks) - 1, -1, -1):
        task = problem.tasks[number]
        for device in problem.groups[task.group]:
            space = problem.memory[device]
            longest = max([min(_rest(problem, tails, follower).values()) for follower in behind[number]], default=0.0)
            for tensor in task.makes:
                for reader in readers.get(tensor, ()):
                    shortest = min(
                        _copying(problem, tensor, space, problem.memory[d]) + rest
                        for d, rest in _rest(problem, tails, reader).items()
                    )
                    longest = max(longest, shortest)
            tails[number][device] = longest
    return tails


def _rest(problem: PlacementProblem, tails: Sequence[Mapping[str, float]], number: int) -> dict[str, float]:
    """Per device, the seconds from the beginning of a task to the end of the step."""
    seconds = problem.tasks[number].seconds
    return {device: seconds[device] + tail for device, tail in tails[number].items()}


def _copying(problem: PlacementProblem, tensor: int, source: str, target: str) -> float:
    if source == target:
        return 0.0
    latency, per_byte = problem.links[source, target]
    return latency + per_byte * problem.tensors[tensor].nbytes


def _improve(problem: PlacementProblem, devices: list[str], left: int) -> tuple[tuple[int, float], int]:
    """Move single groups, in place, while the step gets shorter, or fits better: its rank then, and the work that is left."""
    best = _rank(simulate(problem, devices), problem)
    movable = [g for g, may in enumerate(problem.groups) if len(may) > 1]
    improved = True
    while improved and left > 0:
        improved = False
        for group in movable:
            for device in problem.groups[group]:
                was = devices[group]
                if device == was or left <= 0:
                    continue
                left -= len(problem.tasks)
                devices[group] = device
                rank = _rank(simulate(problem, devices), problem)
                if rank[0] < best[0] or (rank[0] == best[0] and rank[1] < best[1] * _LESS):
                    best, improved = rank, True
                else:
                    devices[group] = was
    return best, left
