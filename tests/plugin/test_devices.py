"""Probing and opening devices: probed once, opened once, shared; options checked; no device is not a fault."""

import sys

import pytest
from graphdock.contracts import DeviceSpec
from graphdock.errors import (
    ConfigError,
    DeviceUnavailable,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    PluginError,
)
from graphdock.plugin.host import Host

OPTIONS = '\n[options]\ntile = {type = "int", default = 64, min = 1}\n'


@pytest.fixture
def chip(site, builder):
    """A host with the plugin ``chip``: two devices, not virtual, one option."""
    site.plugin("chip", builder.device_source("chip"), manifest=builder.device_manifest("chip", OPTIONS))
    return Host()


def test_the_cpu_is_always_there(site):
    host = Host()
    (info,) = host.device_infos("cpu")
    assert (info.device_type, info.index) == ("cpu", 0)
    assert [i.index for i in host.device_infos("cpu", 3)] == [0, 1, 2]
    assert host.open_device("cpu:2").info.index == 2
    assert host.open_device("cpu:0").memory_space == "host"


def test_a_device_is_found_by_its_type_loads_its_plugin_and_is_probed_once(chip):
    assert [i.index for i in chip.device_infos("chip")] == [0, 1]
    assert [i.index for i in chip.device_infos("chip", 1)] == [0]
    assert [i.index for i in chip.device_infos("chip", 2)] == [0, 1]
    assert sys.modules["graphdock_chip.plugin"].PROBED == [1]


def test_more_devices_than_there_are_is_an_error(chip):
    with pytest.raises(ConfigError, match="device_count of 'chip' is more than there are") as caught:
        chip.device_infos("chip", 3)
    assert (caught.value.expected, caught.value.got) == ("1 to 2", "3")


def test_an_alias_stands_for_the_type(chip):
    assert chip.device_type("CHIP_alias") == "chip"
    assert chip.device_type("cpu") == "cpu"
    assert chip.open_device("chip_alias:1") is chip.open_device(DeviceSpec(type="chip", index=1))


def test_a_device_is_opened_once_with_its_options(chip):
    device = chip.open_device("chip:1", {"tile": 8})
    assert device.options == {"tile": 8}
    assert chip.open_device("chip:1") is device
    assert chip.open_device("chip:1", {"tile": 8}) is device
    assert chip.open_device("chip:0").options == {"tile": 64}
    with pytest.raises(FailedPreconditionError, match="chip:1 is open with other options"):
        chip.open_device("chip:1", {"tile": 9})


def test_options_of_sessions_do_not_open_a_device(site, builder):
    more = OPTIONS + 'style = {type = "string", default = "a", choices = ["a", "b"], per = "session"}\n'
    site.plugin("chip", builder.device_source("chip"), manifest=builder.device_manifest("chip", more))
    host = Host()
    device = host.open_device("chip:1", {"tile": 8, "style": "a"})
    assert device.options == {"tile": 8}
    assert host.open_device("chip:1", {"tile": 8, "style": "b"}) is device
    assert host.plugin_options("chip", {"style": "b"}) == {"tile": 64, "style": "b"}


def test_options_are_checked_before_the_plugin_is_imported(chip):
    with pytest.raises(ConfigError) as caught:
        chip.plugin_options("chip", {"tiel": 8}, "graphdock.toml:5")
    assert caught.value.message == "graphdock.toml:5: plugin 'chip' has no option 'tiel'; it has: tile"
    assert caught.value.hint == "did you mean 'tile'?"
    assert "graphdock_chip.plugin" not in sys.modules


def test_no_such_device(chip):
    with pytest.raises(NotFoundError) as caught:
        chip.open_device("chip:2")
    assert caught.value.expected == "one of chip:0, chip:1"
    with pytest.raises(NotFoundError) as caught:
        chip.device_infos("chp")
    assert caught.value.expected == "one of chip, cpu, cuda"
    assert caught.value.hint == "did you mean 'chip'?"
    with pytest.raises(InvalidArgumentError, match="must name its type"):
        chip.open_device("")
    with pytest.raises(InvalidArgumentError, match="at least 1"):
        chip.device_infos("chip", 0)


def test_an_absent_device_is_reported_each_time_and_is_no_fault(site, builder):
    probe = "raise DeviceUnavailable('the driver found no board', hint='run chipctl')"
    site.plugin("chip", builder.device_source("chip", probe), manifest=builder.device_manifest("chip"))
    host = Host()
    for _ in range(2):
        with pytest.raises(DeviceUnavailable, match="the driver found no board") as caught:
            host.open_device("chip:0")
        assert caught.value.hint == "run chipctl"
    assert sys.modules["graphdock_chip.plugin"].PROBED == [1]
    assert host.backend("chip").device_types == ("chip",)


def test_a_probe_that_raises_is_kept_as_the_cause(site, builder):
    site.plugin(
        "chip", builder.device_source("chip", "raise OSError('bus error')"), manifest=builder.device_manifest("chip")
    )
    host = Host()
    for _ in range(2):
        with pytest.raises(
            PluginError, match="the probe of 'chip' by plugin 'chip' failed: OSError: bus error"
        ) as caught:
            host.device_infos("chip")
        assert isinstance(caught.value.__cause__, OSError)
    with pytest.raises(PluginError, match="probe failed"):
        host.backend("chip")


def test_two_plugins_may_not_own_one_device_type(site, builder):
    site.plugin("one", builder.device_source("chip"), manifest=builder.device_manifest("one"))
    site.plugin("two", builder.device_source("chip"), manifest=builder.device_manifest("two"))
    host = Host()
    host.backend("one")
    with pytest.raises(PluginError, match="plugin 'two' brings the device type 'chip', which plugin 'one' owns"):
        host.backend("two")


def test_close_closes_what_is_open(chip, monkeypatch):
    closed = []
    device = chip.open_device("chip:0")
    monkeypatch.setattr(type(device), "close", lambda self: closed.append(self), raising=False)
    chip.close()
    assert closed == [device]
    assert chip.open_device("chip:0") is not device


def test_a_probe_that_raised_is_not_asked_again(site, builder):
    source = builder.device_source("bus", "raise OSError(f'bus error {len(PROBED)}')")
    site.plugin("bus", source, manifest=builder.device_manifest("bus"))
    host = Host()
    causes = []
    for _ in range(2):
        with pytest.raises(PluginError) as caught:
            host.device_infos("bus")
        causes.append(str(caught.value.__cause__))
    assert causes == ["bus error 1", "bus error 1"]
