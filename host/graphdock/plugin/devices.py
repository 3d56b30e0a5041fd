"""Probing device types and opening devices: each is opened once per Host and shared by every session."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from graphdock.contracts import Device, DeviceFactory, DeviceInfo, DeviceSpec
from graphdock.contracts.queue import QueuedDevice
from graphdock.errors import (
    ConfigError,
    DeviceUnavailable,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    PluginError,
    format_error,
)

__all__ = ["VIRTUAL_DEVICES", "DeviceTable"]

#: Most devices of a virtual type that a session may open: each costs memory and a place in every search for a device.
VIRTUAL_DEVICES = 4096


class DeviceTable:
    """What probes found, and the devices that are open.

    Args:
      owner: device type -> its factory and plugin; loads the plugin; raises NotFoundError or PluginError.
      options: (plugin, given options) -> all options with defaults; raises ConfigError.
      report: told (plugin, stage, exception) about a probe that found nothing or failed.
      lock: the host's.
    """

    def __init__(
        self,
        owner: Callable[[str], tuple[DeviceFactory, str]],
        options: Callable[[str, Mapping[str, Any]], dict[str, Any]],
        report: Callable[[str, str, BaseException], None],
        lock: threading.RLock,
    ) -> None:
        self._owner = owner
        self._options = options
        self._report = report
        self._lock = lock
        self._probed: dict[str, list[DeviceInfo]] = {}
        self._failed: dict[str, tuple[str, BaseException]] = {}
        self._open: dict[tuple[str, int], tuple[Device, dict[str, Any]]] = {}

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
        with self._lock:
            factory, plugin = self._owner(device_type)
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
            return [replace(infos[0], index=i) for i in range(count)]
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
            self._report(plugin, "no device", error)
            raise
        except Exception as error:  # a probe may raise anything; it is recorded and kept
            text = f"the probe of {kind!r} by plugin {plugin!r} failed: {format_error(error)}"
            self._failed[kind] = (text, error)
            self._report(plugin, "probe failed", error)
            raise PluginError(text) from error
        self._probed[kind] = infos
        return infos

    def open(self, spec: DeviceSpec, given: Mapping[str, Any] | None = None) -> Device:
        """The open device of a type and index (0 when it is not said).

        Raises:
          NotFoundError, DeviceUnavailable, PluginError: as for :meth:`infos`; or there is no such index.
          ConfigError: an option the plugin's manifest does not have.
          FailedPreconditionError: the device is open with other options.
        """
        if spec.type is None:
            raise InvalidArgumentError(f"a device must name its type, got {str(spec)!r}")
        index = spec.index or 0
        with self._lock:
            factory, plugin = self._owner(spec.type)
            key = (factory.device_type, index)
            present = self._open.get(key)
            if present is not None and isinstance(present[0], QueuedDevice) and present[0].forked:
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
            info = infos[index] if index < len(infos) else replace(infos[0], index=index)
            device = factory.open(info, options)
            self._open[key] = (device, options)
            return device

    def close(self) -> None:
        """Close every open device."""
        with self._lock:
            while self._open:
                _, (device, _) = self._open.popitem()
                device.close()
