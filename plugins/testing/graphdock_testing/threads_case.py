"""A ``threads`` case of conformance: a kernel in two steps at once, on threads that take turns at each of its instructions.

Steps of one session run at the same time, and so does a kernel in them. One that keeps a buffer for all of them is right by luck
whenever one thread was quick enough. Here each thread stops before every instruction of the kernel's Python until the other has
done one of its own, so that what one step leaves in such a buffer the other has written over before it is read: in every run.
A kernel that takes a lock of its own blocks the other thread, which is noticed, and runs on by itself. On a device with queues each
thread, about to wait for its queue, waits first for the other to be there too, so that the race checker sees both in flight. Of a
kernel without Python of its own, in C, many steps on large arrays run at once: there it is luck, tried often.
"""

from __future__ import annotations

import gc
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from types import FrameType
from typing import Any

from graphdock.contracts import Queue, QueuedDevice
from graphdock.contracts.device import HOST_MEMORY
from graphdock.contracts.opdef import OpDef
from graphdock.graph.graph import Graph
from graphdock.session.session import Session

from graphdock_testing.bench import Bench, Results, agree, run_program
from graphdock_testing.case import Case, ConformanceError
from graphdock_testing.facts.settings import arrays_of, varied
from graphdock_testing.numeric import same_bits
from graphdock_testing.programs import Program

__all__ = ["Turns", "check_threads", "has_threads"]

#: Seconds that a thread waits for the other to begin, which ends by itself where that is done, and for its turn, which a lock
#: that the kernel holds may keep from it; and turns that are taken, before both run freely.
_BEGIN, _PATIENCE, _TURNS = 10.0, 1.0, 4000
#: Steps of each thread where nothing takes turns: as many as take so many seconds of its time, in these bounds.
_SECONDS, _LEAST, _MOST = 0.02, 4, 100
#: Sessions that are opened at most for two with a stream slot each.
_SESSIONS = 8
#: The text of a step, and modules that are no kernel's.
_STEP, _OWN = "<graphdock step ", frozenset({"graphdock", "graphdock_executor", "graphdock_testing", "threading"})


def has_threads(opdef: OpDef) -> bool:
    """Return whether a kernel of the op is asked for them: steps of it lock nothing and have no state."""
    return bool(opdef.verb.kernel and not opdef.is_stateful and opdef.inputs)


def check_threads(bench: Bench, case: Case) -> None:
    """Raise ConformanceError where a step gives something else beside another than alone; Missing as a value case."""
    first, second = arrays_of(case, "a"), arrays_of(case, "b")
    if not _check(bench, case, first, second, 1) and not bench.brief:
        for _, variant, (first, second) in varied(bench, case, ("large",)):
            _check(bench, variant, first, second, _MOST)


def _check(bench: Bench, case: Case, first: Mapping[str, Any], second: Mapping[str, Any], most: int) -> bool:
    """Return whether there is nothing more to ask: turns were taken, or the device has queues."""
    gc.collect()  # of a device's stream slots the idle one is taken: sessions of earlier cases that still hold some count
    graph = Graph(bench.host)
    program = bench.build(graph, bench.host.ops.get(case.op), first, case.attrs)
    session = bench.open(graph, plain=True)
    kernel = bench.own_kernel(session, program, first, case)
    if kernel is None:
        return True
    device = None if kernel.device == HOST_MEMORY else bench.host.open_device(f"/device:{kernel.device}:0")
    queued = isinstance(device, QueuedDevice)
    alone = [run_program(session, program, arrays) for arrays in (first, second)]
    pair = [session, bench.open(graph, plain=True)] if not queued else _apart(bench, graph, program, first, device)
    began = time.thread_time()
    run_program(session, program, first)
    rounds = min(most, max(_LEAST, int(_SECONDS / (time.thread_time() - began + 1e-6))))
    turns = Turns(whole=queued)
    made = _at_once(pair, program, (first, second), rounds, turns)
    for known, results in zip(alone, made, strict=True):
        for got in results:
            if not kernel.deterministic:
                agree(case, got, known, "beside another step")
            elif not all(same_bits(a, b) for a, b in zip(got, known, strict=True)):
                raise ConformanceError(
                    "a step gives other bits while another one runs: the kernel keeps something for both"
                )
    return queued or turns.taken > 0


def _apart(
    bench: Bench, graph: Graph, program: Program, arrays: Mapping[str, Any], device: Any
) -> tuple[Session, Session]:
    """Two sessions, whose steps don't take turns on one stream slot of a device with queues that has several."""
    opened: list[tuple[Session, set[Any]]] = []
    while len(opened) < _SESSIONS:
        session, before = bench.open(graph, plain=True), {slot: slot.instances for slot in device._slots}
        run_program(session, program, arrays)
        slots = {slot for slot in device._slots if slot.instances > before.get(slot, 0)}
        for other, theirs in opened:
            if not slots & theirs:
                return other, session
        opened.append((session, slots))
    return opened[0][0], opened[-1][0]


def _at_once(
    sessions: Sequence[Session], program: Program, given: Sequence[Mapping[str, Any]], rounds: int, turns: Turns
) -> list[list[Results]]:
    """Results of the steps of each thread, in order. Raises what a step raises."""
    made: list[list[Results]] = [[] for _ in given]
    raised: list[BaseException] = []

    def work(me: int) -> None:
        try:
            for _ in range(rounds):
                with turns.of(me):
                    made[me].append(run_program(sessions[me], program, given[me]))
        except BaseException as error:  # noqa: BLE001 - raised below, on the thread of the caller
            raised.append(error)
        finally:
            turns.end()

    threads = [threading.Thread(target=work, args=(me,)) for me in range(len(given))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if raised:
        raise ConformanceError(f"a step fails while another one runs: {raised[0]}") from raised[0]
    return made


class Turns:
    """The turns of two threads: within a block ``of`` each stops before every instruction of functions that a step calls.

    Args:
      whole: each stops where it is about to wait for its queue alone, until the other is there too.

    Attributes:
      taken: how many turns there were.
    """

    def __init__(self, whole: bool = False) -> None:
        self.whole, self.taken = whole, 0
        self._begin = threading.Barrier(2)
        self._next = [threading.Semaphore(0), threading.Semaphore(0)]
        self._over = False

    def of(self, me: int) -> _Traced:
        """A block in which the calling thread, 0 or 1, takes turns with the other one."""
        return _Traced(self, me)

    def end(self) -> None:
        """Let both threads run freely from here on."""
        self._over = True
        self._begin.abort()
        for semaphore in self._next:
            semaphore.release()

    def take(self, me: int, first: bool) -> None:
        """Wait for the calling thread's turn."""
        if self._over:
            return
        if first:
            try:
                self._begin.wait(_BEGIN)
            except threading.BrokenBarrierError:
                self.end()
                return
        else:
            self._next[1 - me].release()
        if (me or not first) and not self.whole and not self._next[me].acquire(timeout=_PATIENCE):
            self.end()
        self.taken += 1
        if self.taken > _TURNS:
            self.end()


class _Traced:
    """A block on one thread whose kernels' frames are traced; tracing that was there comes back."""

    def __init__(self, turns: Turns, me: int) -> None:
        self._turns, self._me, self._first, self._depth = turns, me, True, 0

    def __enter__(self) -> None:
        self._before = sys.gettrace()
        sys.settrace(self._called)

    def __exit__(self, *error: object) -> None:
        sys.settrace(self._before)

    def _called(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any] | None:
        if self._turns.whole:
            if frame.f_code.co_name == Queue.synchronize.__name__:
                self._turns.take(self._me, True)
            return None
        if frame.f_code.co_filename.startswith(_STEP):
            self._depth += 1
            frame.f_trace_lines = False
            return self._step
        if not self._depth or str(frame.f_globals.get("__name__", "")).partition(".")[0] in _OWN:
            return None
        frame.f_trace_lines, frame.f_trace_opcodes = False, True
        return self._kernel

    def _step(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any]:
        self._depth -= event == "return"
        return self._step

    def _kernel(self, frame: FrameType, event: str, argument: Any) -> Callable[..., Any]:
        if event == "opcode":
            self._turns.take(self._me, self._first)
            self._first = False
        return self._kernel
