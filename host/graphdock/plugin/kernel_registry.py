"""The host's table of kernels: those that plugins registered, and those of modules that are imported when one of them is chosen."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

from graphdock import contracts
from graphdock.contracts.lazy_dataclass import defaults_of, lazy_dataclass
from graphdock.errors import AlreadyExistsError, ManifestError, PluginError
from graphdock.locks import new_lock
from graphdock.plugin.kernel_rows import KernelRow, KernelRows
from graphdock.plugin.state import cause_of, first_of

if TYPE_CHECKING:
    from graphdock.contracts import KernelDef, KernelModule
    from graphdock.plugin.state import PluginState

_FACTS = tuple(name for name in defaults_of(KernelRow) if name != "name")


def row_of(kernel: KernelDef, module: str | None) -> KernelRow:
    """Return what a manifest says of a kernel of a module; of one that a hook returns itself it says what a listing shows."""
    types = {variable: tuple(_in_order(names)) for variable, names in sorted(kernel.types.items())}
    row = KernelRow(kernel.op, kernel.device, kernel.short_name, module, types)
    if module is None:
        return row
    attrs = {name: tuple(_in_order(values)) for name, values in sorted(kernel.attrs.items())}
    facts = (kernel.layout, kernel.priority, kernel.label, kernel.deterministic)
    return KernelRow(row.op, row.device, row.name, module, types, attrs, *facts)


def _in_order(values: Iterable[Any]) -> Iterable[Any]:
    """Values as a manifest lists them."""
    if isinstance(values, (set, frozenset)):
        return sorted(values)
    return [tuple(value) if isinstance(value, list) else value for value in values]


def import_kernels(module: str) -> list[KernelDef]:
    """The list ``KERNELS`` of a module.

    Raises:
      PluginError: there is no such list, or something else in it. And what the import raises.
    """
    found = getattr(importlib.import_module(module), "KERNELS", None)
    if not isinstance(found, Iterable):
        raise PluginError(f"{module} is a KernelModule and has no list KERNELS", got=repr(found))
    kernels = list(found)
    for item in kernels:
        if not isinstance(item, contracts.KernelDef):
            raise PluginError(f"KERNELS of {module} holds a wrong item", expected="KernelDef", got=repr(item))
    return kernels


class LazyModule:
    """A module of a plugin's kernels that is imported when one of them is needed, and until then is what its rows say."""

    def __init__(self, plugin: str, package: str, name: str, rows: KernelRows) -> None:
        self.plugin, self.package, self.name = plugin, package, name
        self.ops = rows.ops(name)
        self._rows = rows
        self._kernels: Mapping[tuple[str, str, str], KernelDef] | None = None

    @property
    def devices(self) -> set[str]:
        """The device types that its kernels are for."""
        return self._rows.devices(self.name)

    def of(self, op: str) -> Iterator[RegisteredKernel]:
        """Its kernels of an op. Raises ManifestError for a bad row."""
        for row in self._rows.of(op):
            if row.module == self.name:
                yield RegisteredKernel(self.plugin, self.package, row, self)

    def kernel(self, row: KernelRow) -> KernelDef:
        """The kernel of a row; the first one that is asked for imports the module.

        Raises:
          PluginError: the module can't be imported, or has no kernels; names plugin, module and kernel; ``__cause__`` says why.
          ManifestError: it holds other kernels than the manifest says.
        """
        if self._kernels is None:
            self._kernels = self._loaded(f"for the kernel {self.plugin}.{row.short_name} ({row.op} on {row.device})")
        return self._kernels[row.op, row.device, row.short_name]

    def load(self) -> None:
        """Import it and compare it with its rows. Raises as :meth:`kernel`."""
        if self._kernels is None:
            self._kernels = self._loaded("for all of its kernels")

    def _loaded(self, purpose: str) -> Mapping[tuple[str, str, str], KernelDef]:
        try:
            kernels = import_kernels(self.name)
        except (Exception, SystemExit) as error:
            raise PluginError(
                f"plugin {self.plugin!r}: the module {self.name} can't be imported {purpose}: "
                f"{cause_of(error, self.package)}"
            ) from error
        stated = {
            (r.op, r.device, r.short_name): r for op in self.ops for r in self._rows.of(op) if r.module == self.name
        }
        different = list(differences(stated.values(), [row_of(k, self.name) for k in kernels]))
        if different:
            raise ManifestError(
                f"plugin {self.plugin!r}: {self.name} is not what the manifest says: {first_of(different)}",
                hint=f"run `graphdock opgen manifest` in the package {self.package}",
            )
        return {(k.op, k.device, k.short_name): k for k in kernels}


@lazy_dataclass(frozen=True, slots=True)
class RegisteredKernel:
    """A kernel and who brought it.

    Attributes:
      plugin: entry-point name of the plugin, which is the name that ``backends`` lists.
      package: its import package; equal to the op's ``OpDef.package`` for a kernel of an op of its own.
      facts: what a choice looks at, the same of both: ``op``, ``device``, ``types``, ``attrs``, ``priority``, ``label``,
        ``deterministic``.
    """

    plugin: str
    package: str
    facts: KernelDef | KernelRow
    _module: LazyModule | None = None
    _held: KernelDef | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def kernel(self) -> KernelDef:
        """The kernel itself; imports its module where that was not done yet. Raises as :meth:`LazyModule.kernel`."""
        held = self._held  # each node of a plan asks
        if held is None:
            if isinstance(self.facts, contracts.KernelDef):
                held = self.facts
            else:
                assert self._module is not None
                held = self._module.kernel(self.facts)
            object.__setattr__(self, "_held", held)
        return held

    @property
    def full_name(self) -> str:
        """``cpu.mat_mul``; what pins and Decisions write."""
        return f"{self.plugin}.{self.facts.short_name}"


def differences(stated: Iterable[KernelRow], real: Iterable[KernelRow]) -> Iterator[str]:
    """Yield what rows of a manifest and rows made of KernelDefs do not have in common, in words."""
    in_file = {(r.op, r.device, r.short_name): r for r in stated}
    in_code = {(r.op, r.device, r.short_name): r for r in real}
    for key in sorted(in_code.keys() | in_file.keys()):
        op, device, name = key
        label = f"kernel {name} ({op} on {device})"
        if key not in in_code:
            yield f"{label} is only in the manifest"
        elif key not in in_file:
            yield f"{label} is only in the code"
        else:
            mine, theirs = in_code[key], in_file[key]
            other = [n for n in _FACTS if getattr(mine, n) != getattr(theirs, n)]
            if other:
                yield f"{label} has other {' and '.join(other)} in the code"


class KernelRegistry:
    """Op type -> kernels, in the order in which they were registered.

    Args:
      declared: called with an op type before its kernels are listed, so that the plugin that declares the op has
        registered its own.
      lock: the host's; held by those who register, and while rows of an op are read for the first time.
    """

    def __init__(
        self, declared: Callable[[str], object] = lambda op: None, lock: threading.RLock | None = None
    ) -> None:
        self._by_op: dict[str, tuple[RegisteredKernel, ...]] = {}
        self._unread: dict[str, tuple[LazyModule, ...]] = {}
        self._modules: list[LazyModule] = []
        self._declared = declared
        self._lock = lock or new_lock()

    def for_op(self, op: str) -> tuple[RegisteredKernel, ...]:
        """Every registered kernel of an op, whoever brought it; the session's ``backends`` choose among them.

        Raises:
          ManifestError: a row of a manifest is wrong; names file, line and key.
        """
        self._declared(op)
        return self._read(op)

    def read(self, op: str) -> tuple[RegisteredKernel, ...] | None:
        """The last answer of :meth:`for_op`, where nothing has changed; None where that has to be asked."""
        return None if op in self._unread else self._by_op.get(op)

    def _read(self, op: str) -> tuple[RegisteredKernel, ...]:
        """The kernels of an op, with those of the rows that nobody has asked for yet."""
        if op in self._unread:
            with self._lock:
                read = list(self._by_op.get(op, ()))
                for module in self._unread.get(op, ()):
                    for kernel in module.of(op):
                        self._check(kernel, read)
                        read.append(kernel)
                self._by_op[op] = tuple(read)
                self._unread.pop(op, None)
        return self._by_op.get(op, ())

    def all(self) -> Iterable[RegisteredKernel]:
        """Every registered kernel, by op."""
        for op in sorted({*self._by_op, *self._unread}):
            yield from self._read(op)

    def modules(self, plugin: str) -> list[LazyModule]:
        """The modules of a plugin's kernels that are imported when one of them is needed."""
        return [module for module in self._modules if module.plugin == plugin]

    def returned(self, plugin: str) -> list[KernelDef]:
        """The kernels that are there without a module's being imported for them: a plugin's hook returned them."""
        mine = [item.facts for items in self._by_op.values() for item in items if item.plugin == plugin]
        return [facts for facts in mine if isinstance(facts, contracts.KernelDef)]

    def devices(self, plugin: str) -> set[str]:
        """The device types that a plugin has kernels for; reads no row and imports nothing."""
        found = {kernel.device for kernel in self.returned(plugin)}
        return found.union(*[module.devices for module in self.modules(plugin)])

    def register(self, by: PluginState, item: KernelDef | KernelModule) -> int:
        """Register a kernel of a plugin, or the kernels of a module by the rows of its manifest. Raises as :meth:`add_module`."""
        if not isinstance(item, contracts.KernelModule):
            self.add(item, by.name, by.found.package)
            return 1
        rows = None if by.manifest is None else by.manifest.kernels
        return self.add_module(item.name, rows, by.name, by.found.package)

    def add(self, kernel: KernelDef, plugin: str, package: str) -> RegisteredKernel:
        """Register one kernel.

        Raises:
          AlreadyExistsError: the plugin has a kernel of that name for another op, or for the op and device already.
        """
        mine = RegisteredKernel(plugin, package, kernel)
        present = self._read(kernel.op)
        self._check(mine, present)
        self._by_op[kernel.op] = (*present, mine)
        return mine

    def of_user(self, like: KernelDef) -> KernelDef | None:
        """The kernel that no plugin brought and that has the op, device and name of another; None where there is none."""
        for item in self._read(like.op):
            if item.plugin == "user" and (item.facts.device, item.facts.short_name) == (like.device, like.short_name):
                return item.kernel
        return None

    def replace(self, old: KernelDef, new: KernelDef, package: str) -> None:
        """Put a kernel into the place of another one of its op that no plugin brought."""
        mine = RegisteredKernel("user", package, new)
        self._by_op[old.op] = tuple([mine if item.facts is old else item for item in self._read(old.op)])

    def add_module(self, name: str, rows: KernelRows | None, plugin: str, package: str) -> int:
        """Register the kernels of a module by the rows of a manifest, or by importing it where there are none. How many those are.

        Raises:
          AlreadyExistsError: as for :meth:`add`, or the module is registered already. And whatever its import raises.
        """
        if any(module.name == name for module in self.modules(plugin)):
            raise AlreadyExistsError(f"plugin {plugin!r} registers the kernels of {name} twice")
        module = None if rows is None else LazyModule(plugin, package, name, rows)
        if module is None or not module.ops:
            return len([self.add(kernel, plugin, package) for kernel in import_kernels(name)])
        self._modules.append(module)
        for op in module.ops:
            self._unread[op] = (*self._unread.get(op, ()), module)
        return sum(module.ops.values())

    @staticmethod
    def _check(mine: RegisteredKernel, others: Iterable[RegisteredKernel]) -> None:
        for other in others:
            if other.full_name == mine.full_name and other.facts.device == mine.facts.device:
                raise AlreadyExistsError(
                    f"two kernels named {mine.full_name!r} for {mine.facts.op} on {mine.facts.device}",
                    hint="give one of them another KernelDef.name",
                )

    def discard(self, plugin: str) -> None:
        """Take back every kernel of a plugin."""
        self._modules = [module for module in self._modules if module.plugin != plugin]
        for op, modules in list(self._unread.items()):
            self._unread[op] = tuple([module for module in modules if module.plugin != plugin])
        for op, items in list(self._by_op.items()):
            self._by_op[op] = tuple([item for item in items if item.plugin != plugin])
