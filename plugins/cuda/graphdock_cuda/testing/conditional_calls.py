"""The fake driver's calls about conditions: nodes of a graph whose bodies run when a word says so, set by a kernel before."""

from __future__ import annotations

import ctypes
import threading

from graphdock.errors import FailedPreconditionError
from graphdock_testing.driver.capture import Segment, Step
from graphdock_testing.driver.detector import Note

from graphdock_cuda.driver.errors import CudaError
from graphdock_cuda.testing.state import UNSET, Capture, Condition, State, Stream

__all__ = ["ConditionalCalls"]


class ConditionalCalls(State):
    """See Driver. ``no_conditions``: what ``conditions`` says, for tests of older drivers."""

    no_conditions = ""

    def conditions(self) -> str:
        return "the driver is older than CUDA 12.4" if self.newest < 12040 else self.no_conditions

    def condition(self, stream: int) -> int:
        with self.lock:
            found, capture = self._recording(stream, "condition")
            with self.call("condition", device=found.device, context=True):
                self.check_capture(capture, "condition")
                made = Condition(capture)
                capture.conditions.append(made)
                return ctypes.addressof(made.word)

    def body_begin(self, stream: int, condition: int, repeats: bool) -> None:
        with self.lock:
            found, capture = self._recording(stream, "body_begin")
            with self.call("body_begin", "while" if repeats else "if", device=found.device, context=True):
                self.check_capture(capture, "body_begin")
                steers = next((c for c in capture.conditions if ctypes.addressof(c.word) == condition), None)
                if steers is None or steers.capture is not capture or steers.used:
                    error = self.misuse("body_begin", 1, "the condition is not of this graph, or steers a node already")
                    raise self.break_capture(capture, error)
                if capture.members != {found.name}:
                    raise self.break_capture(
                        capture, CudaError("body_begin", 904, "other streams take part in the recording")
                    )
                steers.used = True
                inner = Capture(found.name, around=(capture, steers, repeats))
                inner.streams.append(found)
                self._captures.append(inner)
                found.capture = inner

    def body_end(self, stream: int) -> None:
        with self.lock:
            found, capture = self._recording(stream, "body_end")
            with self.call("body_end", device=found.device, context=True):
                if capture.around is None:
                    raise self.break_capture(capture, self.misuse("body_end", 401, f"{found.name} records no body"))
                self.check_capture(capture, "body_end")
                if any(member.device is not found.device for member in capture.streams):
                    raise self.break_capture(capture, CudaError("body_end", 1, "a body is of one device"))
                try:
                    segment = capture.finish()
                except FailedPreconditionError as error:
                    raise self.break_capture(capture, CudaError("body_end", 904, str(error))) from None
                self._captures.remove(capture)
                for member in capture.streams:
                    member.capture = None
                found.capture = capture.around[0]
                self._add_node(found, capture, segment)

    def _recording(self, stream: int, call: str) -> tuple[Stream, Capture]:
        """The stream and what it records. Raises Misuse where it records nothing, CudaError for another thread's."""
        found = self.stream_of(stream, call)
        if found.capture is None:
            raise self.misuse(call, 401, f"{found.name} is not captured")
        if found.capture.thread != threading.get_ident():
            raise self.break_capture(found.capture, CudaError(call, 908))
        return found, found.capture

    def _add_node(self, stream: Stream, body: Capture, segment: Segment) -> None:
        """The conditional node, behind what the graph around it holds."""
        assert body.around is not None
        outer, condition, repeats = body.around
        what = f"{'while' if repeats else 'if'} of {len(body.counted)} nodes"

        def run() -> None:
            if condition.word.value == UNSET and not stream.device.status:
                raise self.misuse("graph_launch", 1, f"{what}: no kernel has set its condition")
            if id(whole) in self.replaying:
                self.replaying.update(dict.fromkeys(map(id, accesses), self.replaying[id(whole)]))
            while condition.word.value and not stream.device.status:
                segment.run(self.scheduler.random)
                if not repeats:
                    break

        accesses = [note for note in segment.notes if note.kind == "access"]
        reads = tuple(r for note in accesses for r in note.reads)
        writes = tuple(r for note in accesses for r in note.writes)
        whole = Note("access", stream.name, what, reads, writes)
        outer.add(stream.name, Step(whole, run))
        outer.uses |= body.uses
        outer.lines += [(stream.name, what), *((name, f"  {line}") for name, line in body.lines)]
        outer.counted += body.counted
        outer.conditions += body.conditions
