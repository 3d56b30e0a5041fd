"""The fake driver's calls about recorded work."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from graphdock.errors import FailedPreconditionError
from graphdock_testing.driver.capture import Segment
from graphdock_testing.driver.detector import Pending
from graphdock_testing.driver.scheduler import Work

from graphdock_cuda.driver.errors import CudaError
from graphdock_cuda.testing.state import UNSET, Capture, Condition, Device, State, Use

__all__ = ["CaptureCalls", "Graph"]


@dataclass(frozen=True, slots=True)
class Graph:
    """Record of the calls of a capture.

    Attributes:
      device: that of the stream that recorded.
      uses: the memory and the modules that it points at, frozen with their addresses.
      counted: its kernels, copies and fills, for the log.
      lines: each of them with its stream, for listings.
      conditions: of its conditional nodes, those in bodies too.
    """

    device: Device
    segment: Segment
    uses: frozenset[Use]
    counted: tuple[tuple[str, str, int], ...]
    lines: tuple[tuple[str, str], ...]
    conditions: tuple[Condition, ...] = ()


class CaptureCalls(State):
    """See Driver. Nothing of a recording runs before its graph is launched."""

    def capture_begin(self, stream: int) -> None:
        with self.lock:
            found = self.stream_of(stream, "capture_begin")
            with self.call("capture_begin", device=found.device):
                if stream == 0:
                    raise self.misuse("capture_begin", 900, "the default stream can't be captured")
                if found.capture is not None:
                    raise self.misuse("capture_begin", 401, f"{found.name} is captured already")
                found.capture = Capture(found.name)
                found.capture.streams.append(found)
                self._captures.append(found.capture)

    def capture_end(self, stream: int) -> int:
        with self.lock:
            found = self.stream_of(stream, "capture_end")
            capture = found.capture
            if capture is None:
                raise self.misuse("capture_end", 401, f"{found.name} is not captured")
            if capture.origin != found.name:
                raise self.break_capture(
                    capture, CudaError("capture_end", 903, f"the capture began on {capture.origin}")
                )
            if capture.thread != threading.get_ident():
                raise self.break_capture(capture, CudaError("capture_end", 908))
            # it ends whatever happens
            within = capture.around is not None
            capture = self._ended(capture)
            broken, capture.broken = capture.broken, None
            with self.call("capture_end", device=found.device):
                if within:
                    raise CudaError("capture_end", 901, "the recording ended within the body of a condition")
                if broken is not None:
                    raise CudaError("capture_end", 901, f"capture invalidated: {broken}")
                try:
                    segment = capture.finish()
                except FailedPreconditionError as error:
                    raise CudaError("capture_end", 904, str(error)) from None
                graph = Graph(
                    found.device,
                    segment,
                    frozenset(capture.uses),
                    tuple(capture.counted),
                    tuple(capture.lines),
                    tuple(capture.conditions),
                )
                return self.new_handle("graph", graph)

    def _ended(self, capture: Capture) -> Capture:
        """The outermost recording around one: all of them have ended."""
        while True:
            self._captures.remove(capture)
            for member in capture.streams:
                member.capture = None
            capture.open = False
            if capture.around is None:
                return capture
            capture = capture.around[0]

    def capturing(self, stream: int) -> bool:
        with self.lock:
            found = self.stream_of(stream, "capturing")
            with self.call("capturing", device=found.device):
                return found.capture is not None

    def instantiate(self, graph: int, stream: int) -> int:
        made = self.make_executable(graph)
        try:
            self.upload(made, stream)
        except CudaError:
            self.graph_exec_destroy(made)
            raise
        return made

    def make_executable(self, graph: int) -> int:
        """The first half of ``instantiate``."""
        with self.lock:
            found: Graph = self.thing("graph", graph, "instantiate")
            with self.call("instantiate", f"{len(found.counted)} nodes", device=found.device, unsafe=True):
                if any(not condition.used for condition in found.conditions):
                    raise self.misuse("instantiate", 1, "a condition of the graph steers no node")
                if found.conditions and ("executable", found) in self._objects.values():
                    raise self.misuse("instantiate", 1, "a graph with conditional nodes has one executable at a time")
                return self.new_handle("executable", found)

    def upload(self, executable: int, stream: int) -> None:
        """The second half of ``instantiate``; may be asked for again."""
        with self.lock:
            found: Graph = self.thing("executable", executable, "upload")
            on = self.stream_of(stream, "upload")
            with self.call("upload", device=on.device):
                if on.device is not found.device:
                    raise self.misuse("upload", 400, f"a graph of {found.device.name} on {on.name}")
                if on.capture is not None:
                    raise self.break_capture(on.capture, CudaError("upload", 900))

    def graph_destroy(self, graph: int) -> None:
        with self.lock:
            found: Graph = self.thing("graph", graph, "graph_destroy")
            with self.call("graph_destroy", device=found.device, releases=True):
                self.drop_handle("graph", graph, "graph_destroy")

    def graph_exec_destroy(self, executable: int) -> None:
        with self.lock:
            found: Graph = self.thing("executable", executable, "graph_exec_destroy")
            with self.call("graph_exec_destroy", device=found.device, releases=True):
                self.drop_handle("executable", executable, "graph_exec_destroy")

    def graph_launch(self, executable: int, stream: int) -> None:
        with self.lock:
            found: Graph = self.thing("executable", executable, "graph_launch")
            on = self.stream_of(stream, "graph_launch")
            what = f"graph of {len(found.counted)} nodes"
            with self.call("graph_launch", what, device=on.device) as late:
                if on.capture is not None:
                    raise self.break_capture(on.capture, CudaError("graph_launch", 900))
                self._check_uses(found)
                for counted in found.counted:
                    self.log.work(*counted, replayed=True)
                pending: dict[int, Pending] | None = {} if self.traced else None
                self.detector.replay(on.name, found.segment.notes, pending)

                def run() -> None:
                    if late is not None:
                        self.end_context(on.device, late.status, f"{what}, call {late.number}, was told to fail late")
                    for condition in found.conditions:
                        condition.word.value = UNSET
                    self.replaying = dict(pending or {})
                    found.segment.run(self.scheduler.random)

                self.scheduler.add(on.line, Work(what, run))

    def _check_uses(self, graph: Graph) -> None:
        """Raises Misuse when memory or code that the graph points at is gone."""
        for use in graph.uses:
            if use.block is not None and not use.block.live:
                raise self.misuse("graph_launch", 1, f"the graph points at {use.block}")
            if use.module:
                self.thing("module", use.module, "graph_launch")
