"""A ``late`` case of conformance: a kernel behind a busy queue, whose host arguments change as soon as its launch has returned.

A launch queues work and returns. One that waits for its queue is found by an event that was recorded behind the load and has
passed when the launch returns: at a load four times as long, and four times that, too. A kernel that reads an argument in host
memory when its work runs finds other numbers there: it is called with copies, which are written over behind the launch. The first
step of each session is quiet, for what a kernel does once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from graphdock.contracts import Bound, BuildContext, Queue, QueuedDevice
from graphdock.contracts.device import HOST_MEMORY
from graphdock.contracts.runtime.return_check import argument_positions
from graphdock.errors import GraphdockError, KernelNotFoundError, format_error
from graphdock.graph.graph import Graph
from graphdock.plugin.host import Host
from graphdock.shape import concrete

from graphdock_testing.adversary.load import Load, current
from graphdock_testing.bench import Bench, Results, agree, run_program
from graphdock_testing.case import Case, ConformanceError
from graphdock_testing.driver.instrument import wrap_kernels
from graphdock_testing.facts.settings import arrays_of
from graphdock_testing.numeric import same_bits
from graphdock_testing.programs import Program

__all__ = ["check_late"]

#: Loads of growing length behind which a launch that does not wait returns once at least.
_TRIES = 3


@dataclass
class _Turn:
    """One case.

    Attributes:
      armed: queues are loaded. launches: that were made behind a load which had not passed. returned: before it had passed.
    """

    op: str
    armed: bool = False
    launches: int = 0
    returned: int = 0
    load: Load | None = None


#: Host -> the plugins whose kernels are wrapped; and the case that runs, on the one thread that checks.
_wrapped: WeakKeyDictionary[Host, set[str]] = WeakKeyDictionary()
_turns: list[_Turn] = []


def check_late(bench: Bench, case: Case) -> None:
    """Raises ConformanceError, Missing, or what graphdock raises. A device that runs its work at once has nothing that is late."""
    known = _wrapped.setdefault(bench.host, set())
    if bench.backend not in known:
        known.add(bench.backend)
        wrap_kernels(bench.host, bench.backend, _around, lambda: bool(_turns))
    opdef = bench.host.ops.get(case.op)
    first, second = arrays_of(case, "a"), arrays_of(case, "b")
    hosted = [a.name for a in opdef.inputs if a.memory == "host"]
    for fed in [(), tuple(hosted)] if hosted else [()]:
        graph = Graph(bench.host)
        program = bench.build(graph, opdef, first, case.attrs, fed=fed)
        try:
            _check(bench, case, graph, program, first, second)
        except KernelNotFoundError:
            if not fed:
                raise


def _check(bench: Bench, case: Case, graph: Graph, program: Program, first: Any, second: Any) -> None:
    with _turn(case.op):
        quiet = bench.open(graph, plain=True)
        kernel = bench.own_kernel(quiet, program, first, case)
        wanted = [run_program(quiet, program, arrays) for arrays in (first, second)][1]
    with _turn(case.op) as turn:
        session = bench.open(graph, plain=True)
        run_program(session, program, first)
        turn.armed = True
        try:
            got = run_program(session, program, second)
        except GraphdockError as error:
            raise ConformanceError(f"behind a busy queue: {format_error(error)}") from error
        if turn.load is None:
            return  # nothing ran on a queue
        _same(bench, case, got, wanted, kernel is None or kernel.deterministic)
        for _ in range(_TRIES - 1):
            if not turn.load.late or turn.returned:
                return
            turn.load.heavier()
            run_program(session, program, second)
        if turn.launches and not turn.returned:
            raise ConformanceError(
                "its launch waits for what its queue was given before: a launch queues work and returns"
            )


def _same(bench: Bench, case: Case, got: Results, wanted: Results, exact: bool) -> None:
    opdef = bench.host.ops.get(case.op)
    drawn = "random" in opdef.effects and not any(case.attrs.get(n) for n in ("seed", "seed2"))
    if drawn or opdef.is_stateful and "random" not in opdef.effects:
        return
    if exact and not all(same_bits(a, b) for a, b in zip(got, wanted, strict=True)):
        raise ConformanceError(
            "behind a busy queue, its arguments in host memory changed once its launch had returned, it gives other numbers: "
            "what is read later is copied by the launch"
        )
    if not exact:
        agree(case, got, wanted, "behind a busy queue")


@contextmanager
def _turn(op: str) -> Iterator[_Turn]:
    _turns.append(_Turn(op))
    try:
        yield _turns[-1]
    finally:
        turn = _turns.pop()
        turn.armed = False
        if turn.load is not None:
            turn.load.close()


def _around(ctx: BuildContext, bound: Bound) -> Bound:
    """The kernel, which the case that runs loads the queue of; as it is where none does."""
    if not _turns or ctx.node.op != _turns[-1].op or not isinstance(ctx.queue, Queue):
        return bound
    assert isinstance(ctx.device, QueuedDevice)
    return replace(bound, compute=_late(ctx, ctx.device, bound, _turns[-1]), capture_safe=False)


def _late(ctx: BuildContext, device: QueuedDevice, bound: Bound, turn: _Turn) -> Callable[..., Any]:
    queue, compute = ctx.queue, bound.compute
    inputs, _ = argument_positions(bound, ctx)
    views = any(o.mode.kind == "view" for o in ctx.outputs)
    hosted = [at for at, i in inputs if ctx.inputs[i].memory_space == HOST_MEMORY and not views]
    on_host = any(o.memory_space == HOST_MEMORY or concrete(o.shape) is None for o in ctx.outputs)

    def late(*args: Any) -> Any:
        if not turn.armed:
            return compute(*args)
        if turn.load is None:
            turn.load = Load(device)
        with current(device, queue):
            turn.load.put(queue)
        event = queue.record()
        busy = not device.passed(event)
        given = list(args)
        for at in hosted:
            given[at] = _copied(args[at])
        result = compute(*given)
        if busy and not on_host:
            turn.launches += 1
            turn.returned += not device.passed(event)
        for at in hosted:
            _write_over(given[at])
        return result

    return late


def _copied(value: Any) -> Any:
    return np.array(value) if isinstance(value, np.ndarray) else value


def _write_over(array: Any) -> None:
    """Other numbers, which no kernel stumbles over."""
    if isinstance(array, np.ndarray) and array.dtype.kind in "iufb":
        array[...] = np.where(array == 0, np.ones_like(array), np.zeros_like(array))
