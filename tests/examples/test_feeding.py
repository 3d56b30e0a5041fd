"""The classifier of examples/feeding.py has the same losses however it is fed, and they fall."""

from __future__ import annotations

import threading

import threadpoolctl

from examples import feeding


def test_losses_are_the_same_however_it_is_fed(capsys):
    before = set(threading.enumerate())
    with threadpoolctl.threadpool_limits(1):
        done = feeding.main(["--backend", "cpu", "--steps", "25", "--batch", "16", "--hidden", "16", "--rate", "0.02"])
    assert done.results == {"largest difference": 0.0}
    assert len(done.losses) == 25 and done.losses[-1] < 0.7 * done.losses[0]
    told = capsys.readouterr().out
    assert all(way in told for way in feeding.WAYS) and "one step: " in told
    left = set(threading.enumerate()) - before
    named = [t for t in left if t.name.startswith("graphdock-") and "late" not in t.name]
    for thread in named:
        thread.join(30)  # it has been told to end
    assert not [t for t in named if t.is_alive()]
