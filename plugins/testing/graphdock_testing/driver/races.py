"""The race checker: two accesses to the same bytes, one of them a write, that no event and no fence orders.

    with races.check(device):                # raises RaceError at the end
        session.run(...)
    with races.watch(device) as report:      # for a test that expects one
        ...
    assert report.races

It does not wait for a race to go wrong: it knows the order that events, fences and queues promise, and reports whatever relies on
luck. Accesses of the host to staging memory count. The host is one agent, however many threads it has: what one thread has
fenced is done for all. What was queued before the check began is taken as done.

A device of :mod:`graphdock_testing.driver` reports by itself. Any other QueuedDevice takes part when it has ``extent``: its calls
are watched at the boundary of the contract, from the first ``watch`` or ``check`` on (see
:mod:`graphdock_testing.driver.instrument`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from graphdock_testing.driver.detector import Detector, RaceError, Report
from graphdock_testing.driver.instrument import observers_of

__all__ = ["RaceError", "Report", "check", "watch"]


@contextmanager
def watch(*devices: Any) -> Iterator[Report]:
    """Observe devices from here to the end of the block; the report grows while it runs.

    Raises InvalidArgumentError for a device that can't be observed.
    """
    detector = Detector()
    with ExitStack() as stack:
        for device in devices:
            stack.enter_context(_observed(device, detector))
        yield detector.report


@contextmanager
def check(*devices: Any) -> Iterator[Report]:
    """As :func:`watch`, and raises RaceError at the end of a block that found races and raised nothing itself."""
    with watch(*devices) as report:
        yield report
    report.verify()


@contextmanager
def _observed(device: Any, detector: Detector) -> Iterator[None]:
    observers = observers_of(device)
    if detector in observers:
        yield
        return
    observers.append(detector)
    try:
        yield
    finally:
        observers.remove(detector)
