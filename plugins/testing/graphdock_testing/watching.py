"""The race checker in a conformance run: which devices of a backend it watches, and what a case says when it finds something."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from graphdock.contracts import DeviceUnavailable, QueuedDevice
from graphdock.errors import NotFoundError
from graphdock.plugin.host import Host

from graphdock_testing.driver import races
from graphdock_testing.driver.instrument import watch_kernels

__all__ = ["Watching"]


class Watching:
    """The watch over the first device of each type that a backend owns, or, where it owns none, that its kernels run on.

    Devices are opened at the first case.

    A device that does not run late has nothing to order and is left alone, and so is one without ``extent``.
    """

    def __init__(self, host: Host, backend: str) -> None:
        self.host = host
        self.backend = backend
        self._watched: list[QueuedDevice] | None = None
        self._blind: list[QueuedDevice] = []

    def _devices(self) -> list[QueuedDevice]:
        if self._watched is None:
            self._watched = []
            loaded = self.host.backend(self.backend)
            for kind in loaded.device_types or loaded.kernel_devices:
                try:
                    device = self.host.open_device(f"/device:{kind}:0")
                except (DeviceUnavailable, NotFoundError):
                    continue  # the other types' devices are checked; a kit without any says so
                if not isinstance(device, QueuedDevice):
                    continue
                reports_itself = hasattr(device, "observers")
                if not reports_itself and type(device).extent is QueuedDevice.extent:
                    self._blind.append(device)
                    continue
                self._watched.append(device)
                if not reports_itself:
                    watch_kernels(self.host, self.backend)
        return self._watched

    @contextmanager
    def case(self) -> Iterator[None]:
        """Watch one case. Raises races.RaceError at the end of one that raced and raised nothing itself."""
        with races.check(*self._devices()):
            yield

    def lines(self) -> list[str]:
        """What was watched, for the end of a run."""
        return [
            *(f"races: every case was watched on {device!r}" for device in self._watched or ()),
            *(f"races: not looked for on {device!r}, which has no `extent`" for device in self._blind),
        ]
