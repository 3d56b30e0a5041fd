"""The device part of the kit: right devices pass, whatever the interleaving of their queues. What is found of wrong ones is in
``tests/laws/test_planted_faults.py``."""

from __future__ import annotations

import pytest
from graphdock.plugin.host import Host
from graphdock_testing import queued
from graphdock_testing.adversary.events import LATE_CHECKS
from graphdock_testing.conformance import Conformance
from graphdock_testing.device_check import CHECKS, QUEUE_CHECKS, checks_of


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("laziness", [None, 1.0], ids=["interleaved", "late"])
@pytest.mark.sampled(16)
@pytest.mark.slow
def test_the_driver_passes_under_the_race_checker(seed, laziness):
    host = Host()
    queued.install(host, seed=seed, laziness=laziness)
    kit = Conformance("queued", host=host)
    cases = list(kit.cases("device queued"))
    assert [case.id for case in cases] == [f"device queued[{name}]" for name in (*CHECKS, *QUEUE_CHECKS, *LATE_CHECKS)]
    for case in cases:
        kit.check(case)


def test_a_synchronous_device_has_no_checks_of_queues(suspects):
    host = suspects.host_with()
    assert checks_of(host.open_device("chip:0")) is CHECKS
    kit = Conformance("fault", host=host)
    assert kit.devices == ["device chip"]
    for case in kit.cases("device chip"):
        kit.check(case)


def test_cases_of_all_begin_with_the_devices(suspects):
    kit = Conformance("fault", host=suspects.host_with())
    assert next(kit.cases()).id == "device chip[round trip]"
    assert next(kit.cases("Square")).op == "Square"
