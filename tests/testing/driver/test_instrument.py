"""The watch at the boundary of the contract: it finds on any QueuedDevice what the fake driver reports of itself."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest
from graphdock.contracts import (
    FRESH,
    PLANNED,
    ArgInfo,
    BuildContext,
    Builder,
    Device,
    DeviceInfo,
    OutInfo,
    QueuedDevice,
    dtypes,
    hookimpl,
    inplace,
)
from graphdock.errors import DeviceLostError, InvalidArgumentError
from graphdock.plugin.host import Host
from graphdock_testing import queued
from graphdock_testing.driver import races
from graphdock_testing.driver.device import Driver, DriverDevice
from graphdock_testing.driver.faults import DriverError
from graphdock_testing.driver.instrument import Instrument, observers_of, watch_kernels


class Shy(DriverDevice):
    """A fake device that does not report by itself."""

    observers = None  # type: ignore[assignment]


def device(kind, seed=0):
    return kind(DeviceInfo("chip"), Driver(seed, 1.0))


class Program:
    """Random copies, events, fences, frees and captures on three queues; the same calls for the same seed."""

    def __init__(self, device, seed):
        self.device, self.chance = device, random.Random(seed)
        self.queues = [device.new_queue() for _ in range(3)]
        self.memory = device.staging(256)
        self.slots = [self.memory[n * 16 : n * 16 + 16].view(np.float32) for n in range(4)]
        self.memory[...] = 0
        self.buffers = [device.empty(dtypes.float32, (4,)) for _ in range(4)]
        self.events = []
        self.replays = {}

    def run(self, length=40):
        steps = (
            "copy copy from_host to_host read write record wait fence reach poll arguments block capture replay".split()
        )
        for _ in range(length):
            queue = self.chance.choice(self.queues)
            self.device.activate(queue)
            getattr(self, self.chance.choice(steps))(queue)
        self.device.synchronize()

    def copy(self, queue):
        queue.copy(*self.chance.sample(self.buffers, 2))

    def from_host(self, queue):
        queue.from_host(self.chance.choice(self.slots), self.chance.choice(self.buffers))

    def to_host(self, queue):
        queue.to_host(self.chance.choice(self.buffers), self.chance.choice(self.slots))

    def read(self, queue):
        self.chance.choice(self.slots).sum()

    def write(self, queue):
        self.chance.choice(self.slots)[...] = 1

    def record(self, queue):
        self.events.append(queue.record())

    def wait(self, queue):
        if self.events:
            queue.wait(self.chance.choice(self.events))

    def fence(self, queue):
        queue.synchronize()

    def reach(self, queue):
        if self.events:
            self.device.wait_host(self.chance.choice(self.events))

    def poll(self, queue):
        if self.events:
            event = self.chance.choice(self.events)
            while not self.device.passed(event):
                pass

    def arguments(self, queue):
        queue.set_arguments(bytes(8))

    def block(self, queue):
        """A block that is used on another queue, and given back with or without waiting for it."""
        other = self.chance.choice(self.queues)
        buffer = queue.empty(dtypes.float32, (4,))
        queue.copy(self.buffers[0], buffer)
        other.wait(queue.record())
        self.device.activate(other)
        other.copy(buffer, self.buffers[1])
        if self.chance.random() < 0.5:
            queue.wait(other.record())
        queue.free(buffer.storage)

    def capture(self, queue):
        a, b, c = self.chance.sample(self.buffers, 3)
        branch = next(q for q in self.queues if q is not queue)
        torn = self.chance.random() < 0.5

        def body():
            queue.copy(a, b)
            fork = queue.record()
            branch.wait(fork)
            self.device.activate(branch)
            branch.copy(b, c)
            join = branch.record()
            self.device.activate(queue)
            if torn:
                queue.copy(b, c)
            queue.wait(join)

        self.replays[queue] = queue.capture(body)

    def replay(self, queue):
        if queue in self.replays:
            self.replays[queue]()


def found(report):
    return {
        (r.first.what, r.first.where, r.first.write, r.second.what, r.second.where, r.second.write)
        for r in report.races
    }


@pytest.mark.parametrize("seed", range(60))
def test_it_finds_what_the_fake_driver_reports_of_itself(seed):
    pairs = []
    for kind in (DriverDevice, Shy):
        made = device(kind)
        with races.watch(made) as report:
            Program(made, seed).run(10 + seed)
        pairs.append(found(report))
    assert pairs[0] == pairs[1]


def test_some_of_those_programs_race_and_some_do_not():
    counts = []
    for seed in range(60):
        made = device(Shy)
        with races.watch(made) as report:
            Program(made, seed).run(10 + seed)
        counts.append(len(report.races))
    assert 0 in counts and max(counts) > 3


def test_a_watched_device_is_watched_once_and_only_within_the_block():
    made = device(Shy)
    with races.watch(made) as first, races.watch(made) as second:
        queue = made.new_queue()
        made.activate(queue)
        buffer = made.empty(dtypes.float32, (4,))
        queue.copy(buffer, made.empty(dtypes.float32, (4,)))
    queue.copy(buffer, buffer)
    assert (first.accesses, second.accesses) == (1, 1)
    assert observers_of(made) == []
    assert isinstance(made._graphdock_instrument, Instrument)


def test_the_private_queue_is_watched_even_if_it_was_there():
    made = device(Shy)
    x = made.empty(dtypes.float32, (4,))
    made.from_host(np.ones(4, np.float32), x)
    with races.watch(made) as report:
        queue = made.new_queue()
        made.activate(queue)
        queue.copy(x, made.empty(dtypes.float32, (4,)))
        made.from_host(np.ones(4, np.float32), x)
    assert {(r.first.what, r.second.what) for r in report.races} == {("copy", "from_host")}


def test_memory_given_out_anew_is_nobody_s():
    """The device may know more than the checker about who is done."""
    made = device(Shy)
    with races.check(made):
        p, q = made.new_queue(), made.new_queue()
        made.activate(p)
        x, y = made.empty(dtypes.float32, (4,)), made.empty(dtypes.float32, (4,))
        p.copy(y, x)
        block = x.storage.block
        p.settle()
        del x
        z = made.empty(dtypes.float32, (4,))
        assert z.storage.block is block
        made.activate(q)
        q.copy(y, z)


def test_refused_calls_and_failed_captures_are_not_seen():
    made = device(Shy)
    with races.watch(made) as report:
        queue = made.new_queue()
        x = made.empty(dtypes.float32, (4,))
        with pytest.raises(Exception, match="is current on this thread"):
            queue.copy(x, x)
        made.activate(queue)
        made.faults.reset()
        made.faults.at(1)
        with pytest.raises(DriverError):
            queue.copy(x, x)
        with pytest.raises(KeyError):
            queue.capture(lambda: {}["x"])
        queue.copy(x, x)
        assert report.accesses == 1


def test_a_fence_that_raises_is_a_fence():
    made = device(Shy)
    with races.check(made):
        p, q = made.new_queue(), made.new_queue()
        x = made.empty(dtypes.float32, (4,))
        made.activate(p)
        made.faults.reset()
        made.faults.at(1, "fail")
        p.copy(x, x)
        with pytest.raises(DriverError):
            p.synchronize()
        made.activate(q)
        q.copy(x, x)
        made.lose()
        with pytest.raises(DeviceLostError):
            q.synchronize()


def test_devices_without_extents_or_queues_are_refused(bench):
    class Blind(Shy):
        extent = QueuedDevice.extent

    with pytest.raises(InvalidArgumentError, match="give it `extent`"):
        observers_of(device(Blind))

    class Plain(Device):
        allocate = view = copy = from_host = to_host = None

    with pytest.raises(InvalidArgumentError, match="only a QueuedDevice"):
        observers_of(Plain(DeviceInfo("plain")))


# -- kernels


class ShyFactory(queued.QueuedFactory):
    def open(self, info, options):
        return Shy(info, self.driver)


class ShyPlugin(queued.Plugin):
    def __init__(self):
        self.factory = ShyFactory(laziness=1.0)

    @hookimpl
    def register_devices(self):
        return [self.factory]


def bound(host, made, queue, mode):
    opdef = host.ops.get("Add")
    b = Builder()
    values = [b.input(n, dtypes.float32, (4,)) for n in "xy"]
    b.node(opdef, "scope/add", values, {"T": dtypes.float32}, [(dtypes.float32, (4,))])
    node, space = b.graph.nodes[-1], made.memory_space
    infos = tuple(ArgInfo(n, dtypes.float32, (4,), space) for n in "xy")
    ctx = BuildContext(node, infos, (OutInfo("z", dtypes.float32, (4,), space, mode),), made, queue)
    (kernel,) = (r.kernel for r in host.kernels.for_op("Add") if r.plugin == "queued")
    return kernel.build(ctx)


@pytest.mark.parametrize("mode", [PLANNED, inplace(0), FRESH])
def test_watched_kernels_report_what_they_read_and_write(mode):
    host = Host()
    host.register("queued", ShyPlugin())
    made = host.open_device("/device:queued:0")
    watch_kernels(host, "queued")
    with races.watch(made) as report:
        p, q = made.new_queue(), made.new_queue()
        x, y, z = (made.empty(dtypes.float32, (4,)) for _ in range(3))
        made.activate(p)
        compute = bound(host, made, p, mode).compute
        if mode is FRESH:
            z = compute(x, y)
        else:
            compute(x, y, z if mode is PLANNED else x)
        made.activate(q)
        for a, b in ((x, y), (y, x), (z, z)):
            q.copy(a, b)
    pairs = {(r.first.what, r.first.write) for r in report.races if r.second.where == q.name}
    assert ("scope/add", False) in pairs and ("scope/add", True) in pairs
    host.close()


def test_kernels_of_devices_that_nobody_watches_are_left_alone():
    host = Host()
    host.register("queued", ShyPlugin())
    made = host.open_device("/device:queued:0")
    watch_kernels(host, "queued")
    queue = made.new_queue()
    made.activate(queue)
    assert "_reporting" not in bound(host, made, queue, PLANNED).compute.__qualname__
    with races.watch(made):
        assert "_reporting" in bound(host, made, queue, PLANNED).compute.__qualname__
    host.close()


def test_watching_kernels_changes_nothing_else():
    host = Host()
    host.register("queued", ShyPlugin())
    before = {(r.full_name, r.kernel.device): r for r in host.kernels.all()}
    watch_kernels(host, "queued")
    after = {(r.full_name, r.kernel.device): r for r in host.kernels.all()}
    assert before.keys() == after.keys()
    for key, registered in after.items():
        build = before[key].kernel.build
        assert replace(registered.kernel, build=build, name="") == replace(before[key].kernel, name="")
    host.close()


def test_an_event_orders_the_queues_of_two_devices_with_one_memory():
    driver = Driver(0, 1.0)
    first, second = (Shy(DeviceInfo("chip", i), driver, "chip") for i in range(2))
    with races.watch(first, second) as report:
        a, b, c = (first.empty(dtypes.float32, (4,)) for _ in range(3))
        one, two = first.new_queue(), second.new_queue()
        for ordered in (True, False):
            first.activate(one)
            one.copy(a, b)
            if ordered:
                two.wait(one.record())
            second.activate(two)
            two.copy(b, c)
            assert bool(report.races) is not ordered, str(report)
    first.synchronize()
