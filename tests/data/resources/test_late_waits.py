"""Waits that are late are logged once, by a clock of the test."""

from __future__ import annotations

import logging

from graphdock_data.resources.late_waits import LateWaits


class Waited:
    def __init__(self):
        self.since = 0.0

    def oldest_wait(self):
        return None if self.since is None else (self.since, "'q' (FIFOQueue with 0 elements): a step waits")


def test_what_is_late_is_told_once(caplog):
    now = [0.0]
    waits, waited = LateWaits(lambda: now[0], runs=False), Waited()
    waits.add(waited)
    with caplog.at_level(logging.WARNING, "graphdock"):
        now[0] = 9.0
        assert waits.look() and not caplog.records
        now[0] = 10.5
        assert waits.look() and waits.look()
        waits.add(waited)
        assert waits.look()
    (record,) = caplog.records
    assert "'q' (FIFOQueue with 0 elements): a step waits for 10 seconds" in record.message
    waited.since = None
    assert not waits.look()
    waits.add(waited)
    waited.since = 20.0
    now[0] = 40.0
    with caplog.at_level(logging.WARNING, "graphdock"):
        assert waits.look()
    assert len(caplog.records) == 2  # another wait
