"""How far one plugin came: found, allowed, imported, registered, or stopped and why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType
from typing import TypeVar

from pluggy import PluginManager

from graphdock.contracts.device import HOST_MEMORY
from graphdock.errors import ManifestError
from graphdock.plugin.discovery import Found
from graphdock.plugin.kernel_rows import KernelRow
from graphdock.plugin.ledger import FAULTS, Added, LedgerEntry
from graphdock.plugin.manifest import Manifest

__all__ = ["PluginState"]

T = TypeVar("T")


@dataclass
class PluginState:
    """One installed plugin inside one host; changed under the host's lock.

    Attributes:
      stage: see :mod:`graphdock.plugin.ledger`.
      error: the first exception of a plugin that failed.
      hooks: pluggy's manager of this plugin alone, once it is imported and its hooks fit their specifications.
      triaged: its manifest was read and checked.
      done: hooks that have run -> how many things they registered.
      busy: it is being loaded on this thread right now.
    """

    found: Found
    stage: str = "found"
    cause: str | None = None
    hint: str | None = None
    error: BaseException | None = None
    manifest: Manifest | None = None
    module: ModuleType | None = None
    hooks: PluginManager | None = None
    triaged: bool = False
    done: dict[str, int] = field(default_factory=dict)
    busy: bool = False
    import_ms: float | None = None
    added: Added = Added()

    @property
    def name(self) -> str:
        return self.found.plugin

    @property
    def usable(self) -> bool:
        """Whether it may still load: not blocked, and no fault that keeps it from registering."""
        return self.stage not in FAULTS - {"inconsistent", "manifest drift", "probe failed"} and self.stage != "blocked"

    def may_have(self, hook: str) -> bool:
        """Whether it may implement a hook, as far as its manifest says; one that is not read yet does not say."""
        return self.manifest is None or self.manifest.hooks is None or hook in self.manifest.hooks

    @property
    def hidden(self) -> bool:
        """Whether it is opt-in, and nothing allows it."""
        return self.found.opt_in and self.stage == "blocked"

    @property
    def brings_passes(self) -> bool:
        """Whether its manifest says that it implements ``register_passes``, or it is in memory; known without importing it."""
        m = self.manifest
        return m is not None and ("register_passes" in (m.hooks or ()) or self.found.in_memory)

    @property
    def may_be_backend(self) -> bool:
        """Whether its manifest promises a device, a kernel on one or a region compiler, or does not say; others are no backends."""
        m = self.manifest
        if m is None or m.devices or m.hooks is not None and "register_region_compilers" in m.hooks:
            return True
        if m.hooks is not None and "register_kernels" not in m.hooks:
            return False
        return m.generated is None or any(
            device != HOST_MEMORY for device in self._stated(lambda m: tuple(m.kernels.devices()))
        )

    def may_serve_hosts(self, op: str) -> bool:
        """Whether its kernels are not registered yet, it owns no device, and its manifest has a kernel for an op in host memory."""
        if "register_kernels" in self.done or self.manifest is None or self.manifest.devices:
            return False
        return any(row.device == HOST_MEMORY for row in self.kernels_of(op))

    @property
    def kernel_rows(self) -> tuple[KernelRow, ...]:
        """The kernels that its manifest lists. Rows that can't be read make its stage ``bad manifest``."""
        return self._stated(lambda m: tuple(m.kernels))

    def kernels_of(self, op: str) -> tuple[KernelRow, ...]:
        """The kernels of an op that its manifest lists; as for :attr:`kernel_rows`."""
        return self._stated(lambda m: m.kernels.of(op))

    @property
    def op_names(self) -> tuple[str, ...]:
        """The ops that its manifest lists; as for :attr:`kernel_rows`."""
        return self._stated(lambda m: m.op_names)

    def _stated(self, read: Callable[[Manifest], tuple[T, ...]]) -> tuple[T, ...]:
        if self.manifest is None:
            return ()
        try:
            return read(self.manifest)
        except ManifestError as error:
            self.stop("bad manifest", error.text, f"a fault of {self.found.distribution} {self.found.version}", error)
            return ()

    def stop(self, stage: str, cause: str, hint: str | None = None, error: BaseException | None = None) -> None:
        self.stage, self.cause, self.hint = stage, cause, hint
        if self.error is None:
            self.error = error

    def entry(self) -> LedgerEntry:
        f = self.found
        return LedgerEntry(
            f.plugin, f.distribution, f.version, self.stage, self.cause, self.hint, self.import_ms, self.added
        )
