"""States of plugins: how far each came, why not further, how long it took and what it added; and the ledger of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, field
from typing import TYPE_CHECKING, Any, TypeVar

from graphdock.contracts.device import HOST_MEMORY
from graphdock.contracts.lazy_dataclass import lazy_dataclass
from graphdock.errors import GraphdockError, ManifestError, PluginError

if TYPE_CHECKING:
    from types import ModuleType

    from pluggy import PluginManager

    from graphdock.plugin.discovery import Found
    from graphdock.plugin.kernel_rows import KernelRow
    from graphdock.plugin.manifest import Manifest

T = TypeVar("T")

#: Every stage, in the order in which a plugin can stop at it.
STAGES = (
    "found",
    "blocked",
    "duplicate",
    "no manifest",
    "bad manifest",
    "incompatible",
    "missing module",
    "import failed",
    "hook failed",
    "inconsistent",
    "manifest drift",
    "probe failed",
    "no device",
    "registered",
)

#: Stages that are somebody's mistake. ``graphdock doctor --strict`` exits 1 when a plugin stands at one of them.
FAULTS = frozenset(STAGES) - {"found", "blocked", "no device", "registered"}
#: Faults with which a plugin can still be used, as far as it goes.
_USABLE = frozenset({"inconsistent", "manifest drift", "probe failed"})


@lazy_dataclass(frozen=True, slots=True)
class Added:
    """Account of what a plugin registered: its device types, how many ops and kernels, and of what else how many, by noun."""

    devices: tuple[str, ...] = ()
    ops: int = 0
    kernels: int = 0
    others: tuple[tuple[str, int], ...] = ()

    def __str__(self) -> str:
        counts = (("device", len(self.devices)), ("op", self.ops), ("kernel", self.kernels), *self.others)
        return ", ".join(counted(noun, n) for noun, n in counts if n)


def counted(noun: str, n: int) -> str:
    """``1 pass``, ``2 passes``."""
    return f"{n} {noun}" if n == 1 else f"{n} {plural(noun)}"


def plural(noun: str) -> str:
    """More than one of what a hook registers."""
    return noun + ("es" if noun.endswith("s") else "s")


@lazy_dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One plugin of one distribution, as it stands now.

    Attributes:
      stage: one of :data:`STAGES`.
      cause: why it stands there, in words; None for ``found``. Of one that is ``registered``, what it has parts for and nobody here
        has; else None.
      hint: what to do about it.
      import_ms: wall time of its import and hooks; None when it was not imported.
      whole: the cause with all that was found, where it is long; else None.
    """

    plugin: str
    distribution: str
    version: str
    stage: str
    cause: str | None = None
    hint: str | None = None
    import_ms: float | None = None
    added: Added = Added()
    whole: str | None = None

    @property
    def is_fault(self) -> bool:
        return self.stage in FAULTS

    def as_json(self) -> dict[str, Any]:
        """The entry as ``graphdock doctor --json`` prints it: its cause is whole."""
        facts = asdict(self)
        whole = facts.pop("whole")
        return {**facts, "cause": whole or self.cause, "fault": self.is_fault}


@lazy_dataclass(frozen=True, slots=True)
class Backend:
    """A plugin that is loaded and may be named in ``backends``, as sessions list it.

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


@lazy_dataclass
class PluginState:
    """One installed plugin inside one host; changed under the host's lock.

    Attributes:
      stage: one of :data:`STAGES`.
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
    whole: str | None = None
    error: BaseException | None = None
    manifest: Manifest | None = None
    module: ModuleType | None = None
    hooks: PluginManager | None = None
    triaged: bool = False
    done: dict[str, int] = field(default_factory=dict)
    busy: bool = False
    import_ms: float | None = None
    added: Added = Added()

    def __str__(self) -> str:
        return f"plugin {self.name!r} ({self.found.release})"

    @property
    def name(self) -> str:
        return self.found.plugin

    @property
    def usable(self) -> bool:
        """Return whether it may still load: not blocked, and no fault that keeps it from registering."""
        return self.stage not in FAULTS - _USABLE and self.stage != "blocked"

    @property
    def loaded(self) -> bool:
        """Return whether its hooks have run and nothing was found wrong since; its devices need not be here."""
        return self.stage in ("registered", "no device")

    def may_have(self, hook: str) -> bool:
        """Return whether it may implement a hook, as far as its manifest says; one that is not read yet does not say."""
        return self.manifest is None or self.manifest.hooks is None or hook in self.manifest.hooks

    @property
    def hidden(self) -> bool:
        """Return whether it is opt-in, and nothing allows it."""
        return self.found.opt_in and self.stage == "blocked"

    def states(self, hook: str) -> bool:
        """Return whether its manifest says that it implements a hook, or it is in memory; known without importing it."""
        m = self.manifest
        return m is not None and (hook in (m.hooks or ()) or self.found.in_memory)

    @property
    def may_be_backend(self) -> bool:
        """Return whether its manifest promises a device, a kernel on one or a region compiler, or does not say; others are
        no backends.
        """
        m = self.manifest
        if m is None or m.devices or m.hooks is not None and "register_region_compilers" in m.hooks:
            return True
        if m.hooks is not None and "register_kernels" not in m.hooks:
            return False
        return m.generated is None or any(
            device != HOST_MEMORY for device in self._stated(lambda m: tuple(m.kernels.devices()))
        )

    def may_serve_hosts(self, op: str) -> bool:
        """Return whether its kernels are not registered yet, it owns no device, and its manifest has a kernel for an op in
        host memory.
        """
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

    @property
    def operators(self) -> tuple[str, ...]:
        """The operator methods that its manifest lists; as for :attr:`kernel_rows`."""
        return self._stated(lambda m: m.operators)

    @property
    def provided(self) -> Mapping[str, tuple[str, ...]]:
        """The names of what else its manifest lists; as for :attr:`kernel_rows`."""
        return dict(self._stated(lambda m: tuple(m.provided.items())))

    def _stated(self, read: Callable[[Manifest], tuple[T, ...]]) -> tuple[T, ...]:
        if self.manifest is None:
            return ()
        try:
            return read(self.manifest)
        except ManifestError as error:
            self.fault("bad manifest", error.text, error)
            return ()

    def stop(
        self,
        stage: str,
        cause: str,
        hint: str | None = None,
        error: BaseException | None = None,
        whole: str | None = None,
    ) -> None:
        self.stage, self.cause, self.hint, self.whole = stage, cause, hint, whole
        if self.error is None:
            self.error = error

    def fault(
        self, stage: str, cause: str, error: BaseException | None = None, more: str = "", whole: str | None = None
    ) -> None:
        """Stop it for a mistake of its distribution's."""
        self.stop(stage, cause, f"a fault of {self.found.release}" + more, error, whole)

    def unusable(self) -> PluginError:
        """The error of a use of a plugin that is stopped, or is being loaded."""
        if self.busy:
            return PluginError(f"plugin {self.name!r} asks for itself while it is being loaded")
        error = PluginError(f"{self} can't be used: {self.stage}: {self.cause}", hint=self.hint)
        error.__cause__ = self.error
        return error

    def entry(self) -> LedgerEntry:
        f = self.found
        return LedgerEntry(
            f.plugin,
            f.distribution,
            f.version,
            self.stage,
            self.cause,
            self.hint,
            self.import_ms,
            self.added,
            self.whole,
        )


def first_of(found: Sequence[str]) -> str:
    """The first three things that were found, and how many more there are."""
    return "; ".join([*found[:3], *([f"and {len(found) - 3} more"] if len(found) > 3 else [])])


def cause_of(error: BaseException, package: str) -> str:
    """``NameError: name 'npx' is not defined (graphdock_mychip/kernels.py:14)``: with the last line of its own code."""
    import traceback  # of faults only

    if isinstance(error, SystemExit):
        text = f"SystemExit: it asked the process to exit with {error.code!r}"
    elif isinstance(error, GraphdockError):
        text = error.text
    else:
        text = f"{type(error).__name__}: {error}"
    own = [
        f"{os.path.join(package, frame.filename.replace(os.sep, '/').rpartition(f'/{package}/')[2])}:{frame.lineno}"
        for frame in traceback.extract_tb(error.__traceback__)
        if f"/{package}/" in frame.filename.replace(os.sep, "/")
    ]
    return f"{text} ({own[-1]})" if own else text
