"""Faults of devices: of a synchronous one, and of one with queues. The kernel that runs on them is right."""

from __future__ import annotations

import numpy as np
from graphdock.contracts import DeviceInfo, dtypes
from graphdock_testing.driver.device import DriverDevice
from graphdock_testing.driver.queue import DriverQueue
from graphdock_testing.queued import QueuedFactory

from planted.bench import Fault, make_host, right, suspects

BOTH = frozenset({"conformance", "debug"})
KIT = frozenset({"conformance"})


# -- a synchronous device


class IgnoresOffset(suspects.Chip):
    def view(self, storage, offset, dtype, shape):
        return super().view(storage, 0, dtype, shape)


class OneBlock(suspects.Chip):
    """Every block is the same memory."""

    def allocate(self, nbytes, align=64):
        if not hasattr(self, "block"):
            self.block = np.zeros(1 << 16, np.uint8)
        return self.block


class CopiesBackwards(suspects.Chip):
    def copy(self, src, dst):
        super().copy(dst, src)


class KeepsTheArray(suspects.Chip):
    """from_host returns before the array was read."""

    def from_host(self, array, dst):
        self.late = [*getattr(self, "late", []), (array, dst)]

    def to_host(self, src, dst):
        for array, target in getattr(self, "late", []):
            np.copyto(target.array, array)
        self.late = []
        super().to_host(src, dst)


class NarrowsDoubles(suspects.Chip):
    def to_host(self, src, dst):
        np.copyto(dst, src.array.astype(np.float32) if src.array.dtype == np.float64 else src.array)


class FlatShapes(suspects.Chip):
    def shape_of(self, buffer):
        return (buffer.array.size,)


class ShortBlocks(suspects.Chip):
    def allocate(self, nbytes, align=64):
        return np.zeros(nbytes // 16 * 16, np.uint8)


class AlwaysFloats(suspects.Chip):
    def empty(self, dtype, shape):
        return super().empty(dtypes.ALL["float32"], shape)


class ForgetsTheRest(suspects.Chip):
    """A copy leaves out the last element."""

    def copy(self, src, dst):
        np.copyto(dst.array.reshape(-1)[:-1], src.array.reshape(-1)[:-1])


class NothingIsTooMuch(suspects.Chip):
    def __init__(self, info):
        super().__init__(DeviceInfo("chip", 0, 1 << 20))


class Transposes(suspects.Chip):
    """Its memory is column-major, and the copies do not say so."""

    def from_host(self, array, dst):
        np.copyto(dst.array, np.reshape(array, array.shape, order="C").ravel(order="F").reshape(array.shape))


CHIPS = {
    "views ignore their offset": (IgnoresOffset, BOTH),
    "all blocks are one": (OneBlock, BOTH),
    "copies go backwards": (CopiesBackwards, KIT),
    "from_host keeps the array": (KeepsTheArray, BOTH),
    "to_host loses digits": (NarrowsDoubles, KIT),
    "shapes are flat": (FlatShapes, KIT),
    "blocks are too short": (ShortBlocks, BOTH),
    "empty ignores the dtype": (AlwaysFloats, BOTH),
    "copies leave out the last element": (ForgetsTheRest, KIT),
    "it gives memory that it does not have": (NothingIsTooMuch, KIT),
    "from_host turns matrices": (Transposes, KIT),
}


def _chip(kind):
    class Factory(suspects.ChipFactory):
        def open(self, info, options):
            return kind(info)

    return lambda: make_host(suspects.kernel("chip", right), factory=Factory())


# -- a device with queues


class Waits(DriverQueue):
    """wait does not wait."""

    def wait(self, event):
        pass


class OldRecords(DriverQueue):
    """An event means its first record for good."""

    def record(self, event=None):
        return super().record(event) if event is None or event.point is None else event


class RecordsNothing(DriverQueue):
    """An event stands for what was queued before the last piece of work."""

    def record(self, event=None):
        event = self.event() if event is None else event
        if self.recording is None:
            event.point = self.line.point()
            event.point = getattr(self, "before", event.point)
            return event
        return super().record(event)

    def copy(self, src, dst):
        self.before = self.line.point()
        super().copy(src, dst)


class ReadsAtOnce(DriverQueue):
    """to_host copies when it is called."""

    def to_host(self, src, dst):
        np.copyto(np.asarray(dst), src.array.reshape(dst.shape))


class CopiesAtOnce(DriverQueue):
    """A copy does not wait for the queue."""

    def copy(self, src, dst):
        np.copyto(dst.array, src.array.reshape(dst.array.shape))


class FreesAtOnce(DriverQueue):
    """A freed block is any queue's at once, whatever is queued."""

    def give_back(self, block, nbytes):
        self.device.memory.give(block, nbytes, self.device.memory.idle)

    def allocate(self, nbytes):
        return self.device.allocate(nbytes, self.device.alignment)

    def free(self, storage):
        storage.check()
        storage.live = False
        self.give_back(storage.block, storage.nbytes)


class KeepsArguments(DriverQueue):
    """set_arguments reads its data late."""

    def set_arguments(self, data):
        target = self.arguments.array[: len(data)]
        kept = memoryview(data)
        if len(data) > self.device.argument_bytes:
            super().set_arguments(data)
        self.launch("set_arguments", lambda: np.copyto(target, np.frombuffer(kept, np.uint8)), [], [self.arguments])


class ArgumentsAtOnce(DriverQueue):
    """set_arguments does not wait for the queue."""

    def set_arguments(self, data):
        if len(data) > self.device.argument_bytes:
            super().set_arguments(data)
        self.arguments.array[: len(data)] = np.frombuffer(bytes(data), np.uint8)


class RunsWhatItRecords(DriverQueue):
    """capture runs the body's work, too."""

    def capture(self, body):
        body()
        return super().capture(body)


class ReplaysOnce(DriverQueue):
    """Only the first replay does anything."""

    def capture(self, body):
        replay, done = super().capture(body), []

        def once():
            if not done:
                done.append(1)
                replay()

        return once


class FreezesContents(DriverQueue):
    """A replay gives what was in memory when it was recorded."""

    def capture(self, body):
        body()
        return lambda: None


class AllowsFences(DriverQueue):
    """A fence within a recording is left out in silence."""

    def synchronize(self):
        if self.recording is None:
            super().synchronize()


class DoesNotFence(DriverQueue):
    """synchronize returns at once."""

    def synchronize(self):
        pass


class ForgetsErrors(DriverQueue):
    """A fence raises nothing."""

    def synchronize(self):
        self.line.error = None
        super().settle()
        self.line.error = None
        super().synchronize()


class FreesTwice(DriverQueue):
    """A second free is no error."""

    def free(self, storage):
        if storage.live:
            super().free(storage)


class AnyLength(DriverQueue):
    """Step arguments that are too long are cut."""

    def set_arguments(self, data):
        super().set_arguments(data[: self.device.argument_bytes])


QUEUES = {
    "wait does not wait": (Waits, KIT),
    "an event means its first record": (OldRecords, KIT),
    "an event comes one copy early": (RecordsNothing, KIT),
    "to_host reads at once": (ReadsAtOnce, KIT),
    "copies run at once": (CopiesAtOnce, KIT),
    "memory is freed at once": (FreesAtOnce, KIT),
    "set_arguments reads late": (KeepsArguments, KIT),
    "set_arguments takes effect at once": (ArgumentsAtOnce, KIT),
    "recording runs the work": (RunsWhatItRecords, KIT),
    "only the first replay works": (ReplaysOnce, KIT),
    "a replay gives old contents": (FreezesContents, KIT),
    "a fence within a recording is let pass": (AllowsFences, KIT),
    "the fence does not wait": (DoesNotFence, BOTH),
    "the fence forgets errors": (ForgetsErrors, KIT),
    "a block is freed twice": (FreesTwice, KIT),
    "too many step arguments are cut": (AnyLength, KIT),
}


class PassesAtOnce(DriverDevice):
    def passed(self, event):
        return True

    def wait_host(self, event):
        pass


class NeverPasses(DriverDevice):
    def passed(self, event):
        return False


class FencesOne(DriverDevice):
    """The device's fence waits for its private queue only."""

    def synchronize(self):
        self.queue.synchronize()


class OneStaging(DriverDevice):
    """All staging memory is one block."""

    def staging(self, nbytes):
        if not hasattr(self, "block"):
            self.block = super().staging(1 << 20)
        return self.block[:nbytes]


class ForgetsWhatWasCurrent(DriverDevice):
    def restore(self, previous):
        pass


class LeavesTheLastOut(DriverDevice):
    """Its copies outside of steps leave out the last byte."""

    def from_host(self, array, dst):
        super().from_host(array, dst)
        if dst.array.size:
            dst.array.reshape(-1).view(np.uint8)[-1] = 0


DEVICES = {
    "an event has always passed": (PassesAtOnce, KIT),
    "an event never passes": (NeverPasses, KIT),
    "the device's fence waits for one queue": (FencesOne, KIT),
    "all staging memory is one block": (OneStaging, KIT),
    "what was current is not restored": (ForgetsWhatWasCurrent, BOTH),
    "from_host leaves out the last byte": (LeavesTheLastOut, BOTH),
}


def _queued(device=DriverDevice, queue=DriverQueue):
    class Kind(device):
        def new_queue(self):
            with self.driver.entered():
                self._made += 1
                made = queue(self, f"{self.name}/queue:{self._made - 1}")
                self._queues.add(made)
                return made

    class Factory(QueuedFactory):
        def open(self, info, options):
            return Kind(info, self.driver, None, self._stream_slots, self._memory)

    return lambda: make_host(suspects.kernel("queued", right), factory=Factory(seed=1, laziness=1.0))


def faults() -> list[Fault]:
    found = [Fault(name, "device", "chip", who, _chip(kind)) for name, (kind, who) in CHIPS.items()]
    found += [Fault(n, "device", "queued", who, _queued(queue=queue)) for n, (queue, who) in QUEUES.items()]
    found += [Fault(n, "device", "queued", who, _queued(device=device)) for n, (device, who) in DEVICES.items()]
    return found


def right_devices():
    """The same without a fault: place -> what makes the host."""
    return {"chip": _chip(suspects.Chip), "queued": _queued()}
