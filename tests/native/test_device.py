"""Devices in C: another version of the interface, and what is no device, are refused; statuses become errors."""

from __future__ import annotations

from pathlib import Path

import graphdock as tf
import pytest
from graphdock.errors import PluginError
from graphdock_native import compile_library
from graphdock_native.device import NativeDevice

pytest.importorskip("cffi")
SLATE = Path(__file__).parents[2] / "examples" / "plugins" / "slate" / "native" / "slate.c"


def device_of(folder, name, *changes):
    """The device of slate's source with changes."""
    text = SLATE.read_text()
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    source = folder / f"{name}.c"
    source.write_text(text)
    return NativeDevice(
        "slate", compile_library([source], folder / name, ["-O1", "-pthread", "-Wall", "-Wextra", "-Werror"])
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("GRAPHDOCK_DEVICE_VERSION, sizeof", "GRAPHDOCK_DEVICE_VERSION + 1, sizeof"), "compiled for another version"),
        (("sizeof(gd_device_api), count", "sizeof(gd_device_api) - 8, count"), "compiled for another version"),
        (("GRAPHDOCK_DEVICE(&api)", "const void *nothing = &api;"), "is no device"),
    ],
    ids=["version", "size", "no table"],
)
def test_another_interface_is_refused(tmp_path, change, message):
    with pytest.raises(PluginError, match=message):
        device_of(tmp_path, "other", change).factory().probe()


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(PluginError, match="is not there"):
        NativeDevice("slate", tmp_path / "gone.so").factory().probe()


def test_no_device_is_no_fault(tmp_path):
    change = (
        "    (void)message;\n    *number = 1;\n    return GD_OK;",
        '    *number = 0;\n    return SAY(GD_UNAVAILABLE, "no slate is plugged in");',
    )
    with pytest.raises(tf.errors.DeviceUnavailable, match="no slate is plugged in"):
        device_of(tmp_path, "absent", change).factory().probe()


@pytest.fixture(scope="module")
def device(tmp_path_factory):
    factory = device_of(tmp_path_factory.mktemp("slate"), "whole").factory()
    (info,) = factory.probe()
    return factory.open(info, {"memory": 1 << 20})


def test_statuses_become_errors(device):
    with pytest.raises(tf.errors.ResourceExhaustedError, match="slate has no 1048577 bytes left"):
        device.allocate((1 << 20) + 1)
    queue = device.new_queue()
    with pytest.raises(tf.errors.FailedPreconditionError, match="never recorded"):
        queue.wait(queue.event())
    block = queue.allocate(64)
    queue.free(block)
    with pytest.raises(tf.errors.FailedPreconditionError, match="freed before"):
        queue.free(block)
    with pytest.raises(tf.errors.FailedPreconditionError, match="is current on this thread"):
        queue.launch(None, "relu", [])


def test_memory_comes_back(device):
    for _ in range(100):
        device.allocate(1 << 19)
    queue = device.new_queue()
    for _ in range(100):
        queue.free(queue.allocate(1 << 18))
        queue.synchronize()
