"""The host's device types: who owns each, what probes find, and the devices that are open, once per Host for every session."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from graphdock import contracts
from graphdock.contracts.device import DeviceInfo, returned
from graphdock.contracts.lazy_dataclass import changed
from graphdock.errors import (
    ConfigError,
    DeviceUnavailable,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    PluginError,
    format_error,
)
from graphdock.plugin.registry import NamedRegistry

if TYPE_CHECKING:
    from graphdock.contracts import Device, DeviceFactory, DeviceSpec
    from graphdock.plugin.host import Host

#: Most devices of a virtual type that a session may open: each costs memory and a place in every search for a device.
VIRTUAL_DEVICES = 4096


class Devices(NamedRegistry["DeviceFactory"]):
    """Device type -> its factory and the plugin that owns it; what probes found, and the devices that are open."""

    _HAS = "owns"

    def __init__(self, host: Host) -> None:
        super().__init__("device type", "device_type")
        self._host = host
        self._probed: dict[str, list[DeviceInfo]] = {}
        self._failed: dict[str, tuple[str, BaseException]] = {}
        self._open: dict[tuple[str, int], tuple[Device, dict[str, Any]]] = {}

    def owner(self, device_type: str) -> tuple[DeviceFactory, str]:
        """The factory of a device type or of an alias of one, and its plugin, which is loaded for it.

        Raises:
          NotFoundError: no installed plugin owns the type. PluginError: the plugin failed to load.
        """
        owner = self.entry(device_type)
        if owner is not None:
            return owner
        known = set(self.names())
        for state in self._host.plugins():
            for device in state.manifest.devices if state.manifest else ():
                known.add(device.type)
                if device_type == device.type or device_type in device.aliases:
                    self._host.backend(state.name)
                    owner = self.entry(device.type)
                    if owner is not None:
                        return owner
        message = f"no installed plugin owns the device type {device_type!r}"
        raise NotFoundError.unknown(message, device_type, sorted(known))

    def _options(self, plugin: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """Those of a plugin's options that its devices are opened with."""
        options = self._host.plugin_options(plugin, given)
        manifest = self._host.state(plugin).manifest
        assert manifest is not None
        return {key: value for key, value in options.items() if manifest.options[key].per == "device"}

    def infos(self, device_type: str, count: int | None = None) -> list[DeviceInfo]:
        """The devices of a type, as its probe reports them; probed once.

        ``count`` takes the first so many; a type that may be opened any number of times is repeated to that number.

        Raises:
          NotFoundError: no installed plugin owns the type.
          ConfigError: ``count`` is more than the probe found, or than VIRTUAL_DEVICES of a type that may be opened any number of
            times.
          DeviceUnavailable: the probe found no device.
          PluginError: the plugin failed to load, or its probe raised; ``__cause__`` is the first exception.
        """
        with self._host.lock:
            factory, plugin = self.owner(device_type)
            infos = self._probe(factory, plugin)
        if count is None:
            return infos
        if count < 1:
            raise InvalidArgumentError(f"device_count of {device_type!r} must be at least 1", got=str(count))
        if factory.virtual:
            if count > VIRTUAL_DEVICES:
                raise ConfigError(
                    f"device_count of {device_type!r} is too large",
                    expected=f"{VIRTUAL_DEVICES} at most",
                    got=str(count),
                )
            return [changed(infos[0], index=i) for i in range(count)]
        if count > len(infos):
            raise ConfigError(
                f"device_count of {device_type!r} is more than there are",
                expected="1" if len(infos) == 1 else f"1 to {len(infos)}",
                got=str(count),
                hint="`graphdock devices` lists what the probe finds",
            )
        return infos[:count]

    def _probe(self, factory: DeviceFactory, plugin: str) -> list[DeviceInfo]:
        kind = factory.device_type
        if kind in self._failed:
            text, error = self._failed[kind]
            if isinstance(error, DeviceUnavailable):
                raise DeviceUnavailable(error.reason, error.hint)
            raise PluginError(text) from error
        if kind in self._probed:
            return self._probed[kind]
        try:
            infos = list(factory.probe())
            if not infos:
                raise DeviceUnavailable(
                    f"the probe of {kind!r} found no device",
                    f"is the device connected, and the driver of {plugin!r} running?",
                )
            for info in infos:
                if not isinstance(info, DeviceInfo) or info.device_type != kind:
                    raise PluginError(
                        f"the probe of {kind!r} returned a wrong item", expected=f"DeviceInfo of {kind}", got=repr(info)
                    )
        except DeviceUnavailable as error:
            self._failed[kind] = ("", error)
            self._host.state(plugin).stop("no device", error.reason, error.hint)
            raise
        except Exception as error:  # a probe may raise anything; it is recorded and kept
            text = f"the probe of {kind!r} by plugin {plugin!r} failed: {format_error(error)}"
            self._failed[kind] = (text, error)
            self._host.state(plugin).fault("probe failed", format_error(error), error)
            raise PluginError(text) from error
        self._probed[kind] = infos
        return infos

    def open(self, spec: DeviceSpec, given: Mapping[str, Any] | None = None) -> Device:
        """The open device of a type and index (0 when it is not said).

        Raises:
          NotFoundError, DeviceUnavailable, PluginError: as for :meth:`infos`; or there is no such index.
          ConfigError: an option the plugin's manifest does not have.
          FailedPreconditionError: the device is open with other options.
          PluginError: what the factory opens is no device, or lacks methods of one.
        """
        if spec.type is None:
            raise InvalidArgumentError(f"a device must name its type, got {str(spec)!r}")
        index = spec.index or 0
        with self._host.lock:
            factory, plugin = self.owner(spec.type)
            key = (factory.device_type, index)
            present = self._open.get(key)
            if present is not None and isinstance(present[0], contracts.QueuedDevice) and present[0].forked:
                present = None  # it stays in the process that opened it
            if present is not None and given is None:
                return present[0]
            options = self._options(plugin, given or {})
            if present is not None:
                if present[1] != options:
                    raise FailedPreconditionError(
                        f"the device {key[0]}:{index} is open with other options",
                        expected=str(present[1]),
                        got=str(options),
                        hint="a device is opened once per process: give the same options in every session",
                    )
                return present[0]
            infos = self._probe(factory, plugin)
            if index >= len(infos) and not factory.virtual:
                names = ", ".join(f"{i.device_type}:{i.index}" for i in infos)
                raise NotFoundError(f"there is no device {key[0]}:{index}", expected=f"one of {names}")
            info = infos[index] if index < len(infos) else changed(infos[0], index=index)
            opens = functools.partial(factory.open, info, options)
            device: Device = returned(opens, contracts.Device, plugin, f"{type(factory).__name__}.open")
            device.plugin = plugin
            self._open[key] = (device, options)
            return device

    def declared(self, device_type: str, architecture: str, given: Mapping[str, Any]) -> Device:
        """A device that need not be here, for planning. See :meth:`graphdock.contracts.DeviceFactory.declared`."""
        with self._host.lock:
            factory, plugin = self.owner(device_type)
            device = factory.declared(architecture, self._options(plugin, given))
            device.plugin = plugin
            return device

    def close(self) -> None:
        """Close every open device."""
        with self._host.lock:
            while self._open:
                _, (device, _) = self._open.popitem()
                device.close()
