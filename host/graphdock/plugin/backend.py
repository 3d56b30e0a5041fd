"""Backend: a loaded plugin, as sessions list it."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Backend"]


@dataclass(frozen=True, slots=True)
class Backend:
    """A plugin that is loaded and may be named in ``backends``.

    Attributes:
      name: entry-point name. ``package``: its import package.
      device_types: those it owns; empty for a plugin that brings kernels for another's device.
      kernel_devices: device types that it has kernels for.
    """

    name: str
    package: str
    distribution: str
    version: str
    device_types: tuple[str, ...] = ()
    kernel_devices: tuple[str, ...] = ()
