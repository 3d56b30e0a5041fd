"""The fake driver's calls about order: streams, events, waits."""

from __future__ import annotations

from graphdock_testing.driver.capture import Mark
from graphdock_testing.driver.scheduler import Work

from graphdock_cuda.driver.errors import CudaError
from graphdock_cuda.testing.state import Capture, Event, Record, State, Stream

__all__ = ["StreamCalls"]


class StreamCalls(State):
    """See Driver. Nothing runs until somebody waits or asks."""

    def stream(self) -> int:
        with self.call("stream"):
            return self.new_handle("stream", self._new_stream(self.device))

    def stream_destroy(self, stream: int) -> None:
        with self.lock:
            found: Stream = self.thing("stream", stream, "stream_destroy")
            with self.call("stream_destroy", device=found.device, releases=True):
                self.drop_handle("stream", stream, "stream_destroy")
                found.destroyed = True
                if found.capture is not None:
                    self.break_capture(
                        found.capture, CudaError("stream_destroy", 901, "a stream that it records was destroyed")
                    )

    def stream_synchronize(self, stream: int) -> None:
        with self.lock:
            found = self.stream_of(stream, "stream_synchronize")
            self.refuse_in_capture("stream_synchronize", found)
            with self.call("stream_synchronize", device=found.device):
                self.drain(found, "stream_synchronize")

    def device_synchronize(self) -> None:
        with self.call("device_synchronize", unsafe=True):
            device = self.device
            for stream in self.streams_of(device):
                if stream.capture is not None:
                    raise self.break_capture(stream.capture, CudaError("device_synchronize", 900))
                self.drain(stream, "device_synchronize")

    def event(self, timing: bool = False) -> int:
        with self.call("event"):
            return self.new_handle("event", Event(self.device, timing))

    def event_destroy(self, event: int) -> None:
        with self.lock:
            found: Event = self.thing("event", event, "event_destroy")
            with self.call("event_destroy", device=found.device, releases=True):
                self.drop_handle("event", event, "event_destroy")

    def event_record(self, event: int, stream: int) -> None:
        with self.lock:
            found: Event = self.thing("event", event, "event_record")
            on = self.stream_of(stream, "event_record")
            with self.call("event_record", device=on.device):
                if found.device is not on.device:
                    raise self.misuse("event_record", 400, f"an event of {found.device.name} on {on.name}")
                if on.capture is not None:
                    self.check_capture(on.capture, "event_record")
                    found.record = on.capture.record(on.name)
                    return
                record: list[Record] = []
                self.scheduler.add(on.line, Work("record", lambda: _stamp(record[0], on)))
                record.append(Record(on.line.point()))
                found.record = record[0]
                self.detector.record(on.name, record[0].point)

    def event_query(self, event: int) -> bool:
        with self.lock:
            found = self._event_to_wait_for(event, "event_query")
            with self.call("event_query", device=found.device):
                for _ in range(self.scheduler.random.randrange(3)):
                    self.scheduler.step()
                found.device.check("event_query")
                record = found.record
                if not isinstance(record, Record):
                    return True
                if record.point.reached:
                    self.detector.reached(record.point)
                return record.point.reached

    def event_synchronize(self, event: int) -> None:
        with self.lock:
            found = self._event_to_wait_for(event, "event_synchronize")
            with self.call("event_synchronize", device=found.device):
                record = found.record
                if isinstance(record, Record):
                    self.scheduler.reach(record.point)
                    found.device.check("event_synchronize")
                    self.detector.reached(record.point)

    def _event_to_wait_for(self, event: int, call: str) -> Event:
        """The event; not while this thread records, and not one that was recorded within a recording."""
        found: Event = self.thing("event", event, call)
        if isinstance(found.record, Mark):
            error = CudaError(call, 907)
            capture = found.record.recording
            if isinstance(capture, Capture) and capture.open:
                self.break_capture(capture, error)
            raise error
        self.refuse_in_capture(call)
        return found

    def event_elapsed(self, begin: int, end: int) -> float:
        with self.lock:
            first: Event = self.thing("event", begin, "event_elapsed")
            last: Event = self.thing("event", end, "event_elapsed")
            with self.call("event_elapsed", device=last.device):
                times = []
                for found in (first, last):
                    if not found.timing or not isinstance(found.record, Record):
                        raise self.misuse(
                            "event_elapsed", 400, "an event without timing, or that was never recorded on a stream"
                        )
                    if found.record.time is None:
                        raise CudaError("event_elapsed", 600)
                    times.append(found.record.time)
                return times[1] - times[0]

    def stream_wait(self, stream: int, event: int) -> None:
        with self.lock:
            on = self.stream_of(stream, "stream_wait")
            found: Event = self.thing("event", event, "stream_wait")
            with self.call("stream_wait", device=on.device):
                record = found.record
                if isinstance(record, Mark):
                    self._join(on, record)
                elif on.capture is not None and record is not None:
                    raise self.break_capture(
                        on.capture, CudaError("stream_wait", 905, "the capture waits for an event from outside of it")
                    )
                elif record is not None:
                    self.detector.wait(on.name, record.point)
                    self.scheduler.add(on.line, Work(f"wait on {on.name}", after=record.point))

    def _join(self, stream: Stream, mark: Mark) -> None:
        """A stream waits for an event of a recording, and is recorded from now on."""
        capture = mark.recording
        assert isinstance(capture, Capture)
        if not capture.open:
            raise self.misuse("stream_wait", 907, "an event that a capture recorded, which has ended since")
        if stream.capture not in (None, capture):
            assert stream.capture is not None
            self.break_capture(capture, CudaError("stream_wait", 902))
            raise self.break_capture(stream.capture, CudaError("stream_wait", 902, "two captures would become one"))
        self.check_capture(capture, "stream_wait")
        capture.wait(stream.name, mark)
        if stream.capture is None:
            stream.capture = capture
            capture.streams.append(stream)


def _stamp(record: Record, stream: Stream) -> None:
    record.time = stream.device.clock
