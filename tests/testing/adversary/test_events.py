"""The adversary finds what an author's threaded device does wrong in every run, and nothing in one that is right."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from graphdock_testing.adversary.events import LATE_CHECKS
from graphdock_testing.adversary.load import Load
from graphdock_testing.case import ConformanceError

LAWS = str(Path(__file__).parents[2] / "laws")
sys.path.insert(0, LAWS)
from planted import events  # noqa: E402

sys.path.remove(LAWS)
pytestmark = [pytest.mark.plain, pytest.mark.slow]
FAULTS = events.faulty()


@pytest.mark.parametrize("check", LATE_CHECKS)
@pytest.mark.sampled(2)
def test_nothing_is_found_in_a_device_that_is_right(check):
    LATE_CHECKS[check](events.opened())


@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.sampled(8)
def test_a_fault_is_found(name):
    queue, device, check = FAULTS[name]
    with pytest.raises(ConformanceError):
        LATE_CHECKS[check](events.opened(queue, device))


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_in_every_run(name):
    queue, device, check = FAULTS[name]
    for _ in range(20):
        with pytest.raises(ConformanceError):
            LATE_CHECKS[check](events.opened(queue, device))


def test_a_heavier_load_is_four_times_as_long():
    load = Load(events.opened())
    before = load.copies
    load.heavier()
    assert load.late and load.copies == min(4 * before, 4096)


def test_a_device_that_does_all_at_once_is_never_late():
    class AtOnce(events.tandem.TandemQueue):
        def _give(self, run):
            run()

        def record(self, event=None):
            event = event or events.tandem.Event(self)
            event.point = events.threading.Event()
            event.point.set()
            return event

    load = Load(events.opened(AtOnce))
    before = load.copies
    load.heavier()
    assert not load.late and load.copies == before
