"""An error of a device names the device, what it was asked for, and the node where there is one."""

from __future__ import annotations

import pytest
from graphdock.errors import InternalError, ResourceExhaustedError
from graphdock.planning.host_memory import HostMemory
from graphdock_executor.device_error import asking, device_error

DEVICE = HostMemory()


def test_a_foreign_error_becomes_one_that_names_the_device():
    message = r"device host:0 failed at allocate 8 bytes: ValueError: no"
    with pytest.raises(InternalError, match=message) as caught, asking(DEVICE, "allocate 8 bytes", op="layer/w"):
        raise ValueError("no")
    assert isinstance(caught.value.__cause__, ValueError)
    assert caught.value.op == "layer/w"


def test_graphdocks_own_error_keeps_its_class_and_what_it_says():
    full = ResourceExhaustedError("host memory has no 8 bytes", op="mine")
    assert device_error(full, DEVICE, "allocate", op="other") is full
    assert full.op == "mine"
    assert any("host:0" in note for note in full.__notes__)


def test_a_device_without_memory_is_no_fault_of_graphdocks():
    with (
        pytest.raises(
            ResourceExhaustedError, match="device host:0 has no memory left for allocate 8 bytes: full"
        ) as caught,
        asking(DEVICE, "allocate 8 bytes", op="layer/w"),
    ):
        raise MemoryError("full")
    assert caught.value.op == "layer/w"


def test_nothing_raised_is_nothing_said():
    storage = None
    with asking(DEVICE, "allocate"):
        storage = bytearray(8)
    assert storage is not None
