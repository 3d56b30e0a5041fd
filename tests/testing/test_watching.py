"""Races in a conformance run: a device whose numbers are right by luck fails, and one without extents is named."""

from __future__ import annotations

import graphdock as tf
import pytest
from graphdock.contracts import QueuedDevice, hookimpl
from graphdock.plugin.host import Host
from graphdock_testing import queued
from graphdock_testing.conformance import Conformance
from graphdock_testing.driver.device import DriverDevice
from graphdock_testing.watching import Watching


class Shy(DriverDevice):
    """Does not report by itself; the kit watches it at the boundary of the contract."""

    observers = property(lambda self: (_ for _ in ()).throw(AttributeError("observers")))


class Blind(Shy):
    extent = QueuedDevice.extent


def kit(kind):
    class Factory(queued.QueuedFactory):
        def open(self, info, options):
            return kind(info, self.driver)

    class Plugin(queued.Plugin):
        def __init__(self):
            self.factory = Factory(laziness=1.0)

        @hookimpl
        def register_devices(self):
            return [self.factory]

    host = Host()
    host.register("queued", Plugin())
    return Conformance("queued", host=host, oracle="reference")


def first(made, op="Add"):
    return next(c for c in made.cases(op) if c.dtype == "float32" and c.kind == "value")


@pytest.mark.parametrize("kind", [DriverDevice, Shy])
def test_a_device_that_orders_its_work_passes(kind):
    made = kit(kind)
    made.check(first(made))
    assert made.watching.lines() == [f"races: every case was watched on <{kind.__name__} queued:0>"]


def test_a_device_without_extents_is_not_watched_and_said_so():
    made = kit(Blind)
    made.check(first(made))
    assert made.watching.lines() == ["races: not looked for on <Blind queued:0>, which has no `extent`"]


def test_a_device_that_is_done_at_once_has_nothing_to_order():
    watching = Watching(tf.default_host(), "cpu")
    with watching.case():
        pass
    assert watching.lines() == []
