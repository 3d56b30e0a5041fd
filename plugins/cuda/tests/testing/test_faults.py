"""Where tests put failures."""

from __future__ import annotations

import pytest
from graphdock_cuda.driver.errors import CudaError
from graphdock_cuda.testing.faults import Faults


def test_the_nth_call_fails_once():
    faults = Faults()
    faults.at(2, 35)
    assert [faults.call("launch", "k") and faults.happened[-1].status for _ in range(4)] == [None, 35, None, None]
    assert (faults.calls, faults.by_call["launch"]) == (4, 4)


def test_the_nth_call_of_a_name():
    faults = Faults()
    faults.at(2, 2, call="malloc")
    found = [faults.call(name, "") for name in ("malloc", "copy", "copy", "malloc", "malloc")]
    assert [fault is not None for fault in found] == [False, False, False, True, False]


def test_late_is_for_calls_with_work():
    faults = Faults()
    for name, late in (("launch", True), ("malloc", False), ("graph_launch", True), ("event_record", False)):
        faults.at(faults.calls + 1, 719, late=True)
        assert faults.call(name, "").late is late


def test_at_random_by_a_seed():
    def drawn(seed: int) -> list[int]:
        faults = Faults()
        faults.randomly(0.3, seed, (1, 2), late=0.5)
        return [i for i in range(200) if faults.call("launch", "")]

    assert drawn(1) == drawn(1) != drawn(2)
    assert 30 < len(drawn(1)) < 90


def test_what_was_called_already_can_not_fail():
    faults = Faults()
    faults.call("launch", "")
    with pytest.raises(ValueError, match="reset"):
        faults.at(1)
    faults.reset()
    faults.at(1)
    assert faults.call("x", "").status == 999


CALLS = """
GD_KERNEL(k)(float* x, i64 n) { GD_GRID_LOOP(i64, i, n) x[i] += 1; }
"""


def _program(rig) -> None:
    """A program that asks for one of everything, and gives all back whatever fails."""
    d, back = rig.driver, []
    try:
        stream = d.stream()
        back.append(lambda: d.stream_destroy(stream))
        event = d.event()
        back.append(lambda: d.event_destroy(event))
        module = d.load(rig.build(CALLS))
        back.append(lambda: d.unload(module))
        function = d.function(module, "k")
        host = d.host_alloc(400)
        back.append(lambda: d.host_free(host))
        memory = d.malloc(400, stream)
        back.append(lambda: d.free(memory, stream))
        d.fill(memory, 0, 400, stream)
        rig.launch(function, memory, 100, stream=stream)
        d.event_record(event, stream)
        d.capture_begin(stream)
        try:
            rig.launch(function, memory, 100, stream=stream)
            d.copy(host, memory, 400, stream)
        finally:
            graph = d.capture_end(stream)
            back.append(lambda: d.graph_destroy(graph))
        executable = d.instantiate(graph, stream)
        back.append(lambda: d.graph_exec_destroy(executable))
        d.graph_launch(executable, stream)
        d.event_synchronize(event)
        d.stream_synchronize(stream)
    finally:
        failures = []
        # whichever of the two fails, the other one waits
        for give in (d.device_synchronize, d.device_synchronize, *reversed(back)):
            try:
                give()
            except CudaError as error:
                failures.append(error)
        if failures:
            raise failures[0]


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("status", [1, 719])
def test_every_call_of_a_program_fails_in_turn_and_nothing_leaks(rigs, status, late):
    rig = rigs()
    rig.driver.stream_destroy(rig.s)
    rig.driver.faults.reset()
    _program(rig)
    calls = rig.driver.faults.calls
    assert calls > 20
    for number in range(1, calls + 1):
        rig = rigs(seed=number)
        rig.driver.stream_destroy(rig.s)
        rig.driver.faults.reset()
        rig.driver.faults.at(number, status, late=late)
        with pytest.raises(CudaError) as caught:
            _program(rig)
        (fault,) = rig.driver.faults.happened
        assert caught.value.status in (status, 901), fault
        if rig.driver.devices[0].status == 0:
            assert not rig.driver.live, (fault, rig.driver.live)
        rig.driver.verify()
