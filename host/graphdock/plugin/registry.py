"""The host's tables of ops, of formats of files, and of what else goes by name.

Writers hold the host's lock. Readers of a table take no lock: tables change by single dict assignments. ``discard`` takes
back what one plugin registered and nothing else, because a plugin may make others load while it loads.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from graphdock import contracts
from graphdock.contracts.lazy_dataclass import changed, lazy_dataclass
from graphdock.errors import (
    AlreadyExistsError,
    InternalError,
    PluginError,
    UnavailableError,
    UnknownOpError,
    did_you_mean,
)
from graphdock.locks import new_lock

if TYPE_CHECKING:
    from graphdock.contracts import OpDef, OpLibrary, Pass, RegionCompiler, RegisteredCompiler
    from graphdock.plugin.host import Host
    from graphdock.plugin.state import PluginState

T = TypeVar("T")
#: The package under which the host's own ops are declared.
CORE = "graphdock"


@lazy_dataclass(frozen=True, slots=True)
class RegisteredPass:
    """A pass and who brought it; attributes as of a kernel of ``kernel_registry``.

    ``own``: it comes with graphdock, and is checked in debug mode only.
    """

    plugin: str
    package: str
    own: bool
    each: Pass

    @property
    def name(self) -> str:
        return self.each.name


class OpRegistry:
    """Op types -> OpDefs. An OpDef is built when it is first asked for.

    Args:
      search: called with (name or None, predicate) when a name is not there; loads plugins until the predicate holds,
        and returns whether it does.
      notes: called when a name is nowhere; lines about plugins that could not be asked.
      lock: the host's; held while anything is loaded.
    """

    def __init__(
        self,
        search: Callable[[str | None, Callable[[], bool]], bool] = lambda name, found: False,
        notes: Callable[[], str | None] = lambda: None,
        lock: threading.RLock | None = None,
    ) -> None:
        self._lock = lock or new_lock()
        self._defs: dict[str, OpDef] = {}
        #: Op type -> the package whose generated library builds it.
        self._homes: dict[str, str] = {}
        self._builders: dict[str, tuple[Callable[[], OpDef], str]] = {}
        self._operators: dict[str, tuple[str, str]] = {}
        self._specs: tuple[tuple[str, str], ...] = ()
        self._resolved: dict[str, Callable[..., Any]] = {}
        self._search = search
        self._notes = notes
        self._core = False
        self._loading = False

    def get(self, name: str) -> OpDef:
        """The OpDef of an op type. A dict lookup after the first call; may be called from any thread.

        Raises:
          UnknownOpError: no allowed plugin declares it; suggests the nearest name.
        """
        found = self._defs.get(name)
        return found if found is not None else self._first(name)

    def of_package(self, name: str, package: str) -> OpDef:
        """The OpDef of an op type, for a wrapper of the package.

        Raises:
          UnknownOpError: no allowed plugin declares it. AlreadyExistsError: another package declares it.
        """
        opdef = self.get(name)
        home = self._homes.get(name, package)
        if home != package:
            raise AlreadyExistsError(
                f"{package} has a function for the op {name!r}, but {home} declares that op",
                hint="an op of a package of its own is named 'namespace.Name'",
            )
        return opdef

    def _first(self, name: str) -> OpDef:
        if name not in self:
            hint = did_you_mean(name, self._builders)
            notes = self._notes()
            raise UnknownOpError(f"no op named {name!r}", hint="; ".join(h for h in (hint, notes) if h) or None)
        build, package = self._builders[name]
        opdef = build()
        if opdef.name != name:
            raise InternalError(f"the op library of {package} builds {opdef.name!r} under the name {name!r}")
        self._homes[name] = opdef.package
        if opdef.package != package:
            opdef = changed(opdef, package=package)
        return self._defs.setdefault(name, opdef)

    def __contains__(self, name: str) -> bool:
        if name in self._builders:
            return True
        self._load_core()
        return name in self._builders or self._search(name, lambda: name in self._builders)

    def names(self) -> list[str]:
        """Every op type of every allowed plugin, sorted; loads them all."""
        self._load_core()
        self._search(None, lambda: False)
        return sorted(self._builders)

    def operator(self, method: str) -> Callable[..., Any] | None:
        """The wrapper that implements a Python operator method such as ``__add__``; None when no library has one."""
        found = self._resolved.get(method)
        if found is not None:
            return found
        self._load_core()
        if method not in self._operators and not self._search(method, lambda: method in self._operators):
            return None
        module, _, function = self._operators[method][0].partition(":")
        wrapper: Callable[..., Any] = getattr(importlib.import_module(module), function)
        return self._resolved.setdefault(method, wrapper)

    def add(self, opdef: OpDef, package: str) -> None:
        """Declare one op at run time, as ``load_op_library`` does.

        Raises:
          AlreadyExistsError: another op of that name; declaring an equal one again does nothing.
        """
        opdef = changed(opdef, package=package)
        if opdef.name in self and self.get(opdef.name) == opdef:
            return
        self.add_library({opdef.name: lambda: opdef}, {}, package)

    def rebuild(self, name: str) -> None:
        """Build an op's OpDef anew when it is next asked for: its builder says something else now."""
        self._defs.pop(name, None)

    def spec_packages(self) -> tuple[str, ...]:
        """The packages that hold the specs of every allowed plugin's library, the host's own first; loads them all."""
        self.names()
        return tuple(specs for specs, _ in self._specs)

    def specs_of(self, package: str) -> str | None:
        """The package whose folder ``specs`` has the YAML of a loaded package's ops; None where they have none."""
        return next((specs for specs, owner in self._specs if owner == package), None)

    def register(self, by: PluginState, library: OpLibrary) -> int:
        """Declare the ops of a plugin's library. Raises as :meth:`add_library`, and what the import of its module raises."""
        loaded = load_library(library.module)
        assert loaded is not None
        self.add_library(*loaded, by.found.package, library.specs)
        return len(loaded[0])

    def add_library(
        self,
        ops: Mapping[str, Callable[[], OpDef]],
        operators: Mapping[str, str],
        package: str,
        specs: str | None = None,
    ) -> None:
        """Declare the ops of a generated library; ``specs`` names the package whose folder ``specs`` has its YAML.

        Raises:
          AlreadyExistsError: one of them is declared by another package; names both.
        """
        self._load_core()
        for name in ops:
            if name in self._builders:
                raise AlreadyExistsError(
                    f"{package} declares the op {name!r}, which {self._builders[name][1]} declares already",
                    hint="an op of a package of its own is named 'namespace.Name'",
                )
        self._builders = {**self._builders, **{name: (build, package) for name, build in ops.items()}}
        self._operators = {**{method: (target, package) for method, target in operators.items()}, **self._operators}
        if specs is not None and (specs, package) not in self._specs:
            self._specs = (*self._specs, (specs, package))

    def remove(self, names: Iterable[str]) -> None:
        """Forget ops that were declared at run time; operations keep the OpDefs that they were made with."""
        with self._lock:
            gone = set(names)
            self._builders = {name: built for name, built in self._builders.items() if name not in gone}
            for name in gone:
                self._defs.pop(name, None)
                self._homes.pop(name, None)

    def _load_core(self) -> None:
        """The host's own structural ops; there without any plugin."""
        if self._core:
            return
        with self._lock:
            if self._core or self._loading:
                return
            self._loading = True
            try:
                library = load_library("graphdock.ops._gen.opdefs", missing_ok="graphdock.ops._gen")
                if library is not None:
                    self.add_library(*library, CORE, "graphdock.ops")
            finally:
                self._loading = False
            self._core = True

    def declared(self) -> list[str]:
        """The op types that are declared by now; loads nothing but the host's own."""
        self._load_core()
        return sorted(self._builders)

    def declared_by(self, package: str) -> list[str]:
        """The op types that a package declared, sorted."""
        return sorted(name for name, (_, owner) in self._builders.items() if owner == package)

    def operators_of(self, package: str) -> list[str]:
        """The operator methods that a package's functions implement."""
        return [method for method, (_, owner) in self._operators.items() if owner == package]

    def discard(self, package: str) -> None:
        """Take back everything a package declared; the host's own ops stay."""
        if package == CORE:
            return
        for name in self.declared_by(package):
            self._defs.pop(name, None)
            self._homes.pop(name, None)
        self._builders = {name: item for name, item in self._builders.items() if item[1] != package}
        for method in [m for m, (_, owner) in self._operators.items() if owner == package]:
            self._resolved.pop(method, None)
        self._operators = {method: item for method, item in self._operators.items() if item[1] != package}
        self._specs = tuple(item for item in self._specs if item[1] != package)


def load_library(
    module: str, missing_ok: str | None = None
) -> tuple[Mapping[str, Callable[[], OpDef]], Mapping[str, str]] | None:
    """``OPS`` and ``OPERATORS`` of a generated module; None when it is ``missing_ok`` that does not exist."""
    try:
        library = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if missing_ok is not None and error.name is not None and error.name.startswith(missing_ok):
            return None
        raise
    return library.OPS, getattr(library, "OPERATORS", {})


class NamedRegistry(Generic[T]):
    """Name -> an object and the plugin that brought it: device types, passes, executors and formats, session factories by scheme.

    Args:
      noun: what is registered, for messages.
      key: the attribute that is an object's name.
      kept: (plugin, item of the hook) -> the object; the item itself where there is none.
    """

    #: The verb of the message about an object that is there already.
    _HAS = "has"

    def __init__(self, noun: str, key: str = "name", kept: Callable[[PluginState, Any], T] | None = None) -> None:
        self._noun = noun
        self._key = key
        self._kept = kept
        self._items: dict[str, tuple[T, str]] = {}

    def register(self, by: PluginState, item: Any) -> int:
        """Register an item of a plugin's hook. Raises as :meth:`add`."""
        kept: T = item if self._kept is None else self._kept(by, item)
        self.add(getattr(kept, self._key), kept, by.name)
        return 1

    def add(self, name: str, item: T, plugin: str) -> None:
        """Register an object.

        Raises:
          AlreadyExistsError: another plugin brought one of that name; names both.
        """
        owner = self._items.get(name)
        if owner is not None:
            raise AlreadyExistsError(
                f"plugin {plugin!r} brings the {self._noun} {name!r}, which plugin {owner[1]!r} {self._HAS}",
                hint=f'block one of them: [plugins] block = ["{plugin}"]',
            )
        self._items[name] = (item, plugin)

    def get(self, name: str) -> T | None:
        found = self._items.get(name)
        return None if found is None else found[0]

    def entry(self, name: str) -> tuple[T, str] | None:
        """The object of a name and the plugin that brought it, or None."""
        return self._items.get(name)

    def names(self) -> list[str]:
        return sorted(self._items)

    def all(self) -> list[T]:
        """Everything, in the order in which it was brought."""
        return [item for item, _ in self._items.values()]

    def of_plugin(self, plugin: str) -> list[T]:
        """Return what a plugin brought, in the order in which it brought it."""
        return [item for item, owner in self._items.values() if owner == plugin]

    def names_of(self, plugin: str) -> list[str]:
        """The names of what a plugin brought."""
        return [name for name, (_, owner) in self._items.items() if owner == plugin]

    def discard(self, plugin: str) -> None:
        """Take back everything of a plugin."""
        self._items = {name: item for name, item in self._items.items() if item[1] != plugin}


class FormatRegistry(NamedRegistry[T]):
    """Name -> a format of files and the plugin that brought it.

    Args:
      kind: ``graph`` or ``checkpoint``.
      host: before each look-up it loads the plugins that implement the hook.
    """

    def __init__(self, kind: str, host: Host) -> None:
        super().__init__(f"{kind} format")
        self._kind = kind
        self._host = host

    def all(self) -> list[T]:
        """Every format, in the order of names."""
        self._host.load_for(f"register_{self._kind}_formats")
        return [self._items[name][0] for name in self.names()]

    def find(self, name: str) -> T:
        """The format of that name: of one of graphdock's plugins, or else of any. Raises UnavailableError: none has it."""
        for own in (True, False):
            self._host.load_for(f"register_{self._kind}_formats", own)
            found = self.get(name)
            if found is not None:
                return found
        raise self.missing(f"no installed plugin has the {self._noun} {name!r}", name)

    def missing(self, message: str, name: str) -> UnavailableError:
        """The error where a format is needed that nobody has: why, and what brings it."""
        known = self.names()
        hints = [
            h
            for h in (self._host.who_brings(self._kind, name), did_you_mean(name, known), self._host.fault_notes())
            if h
        ]
        return UnavailableError.unknown(message, name, known, "; ".join(hints))


def registered_compiler(by: PluginState, compiler: RegionCompiler) -> RegisteredCompiler:
    """A region compiler of a plugin. Raises PluginError where it has both ``build`` and ``prepare``, or neither, or no device type,
    or a name that is none."""
    base, name, kind = contracts.RegionCompiler, compiler.name, getattr(compiler, "device_type", None)
    for wrong, expected, got in (
        (
            (type(compiler).build is base.build) == (type(compiler).prepare is base.prepare),
            "build or prepare, and not both",
            type(compiler).__name__,
        ),
        (
            not isinstance(kind, str) or not kind or kind != kind.lower(),
            "device_type, a device type in lower case",
            repr(kind),
        ),
        (
            not isinstance(name, str) or not name.replace("-", "_").isidentifier(),
            "name, of letters, digits, hyphens and underscores",
            repr(name),
        ),
    ):
        if wrong:
            raise PluginError(
                f"plugin {by.name!r}: the region compiler {name!r} is declared in the wrong way",
                expected=expected,
                got=got,
            )
    return contracts.RegisteredCompiler(by.name, by.found.package, compiler)


def registered_pass(by: PluginState, each: Pass) -> RegisteredPass:
    """A pass of a plugin. Raises PluginError where it is for a phase that there is not."""
    if each.phase not in contracts.PHASES:
        message = f"plugin {by.name!r}: the pass {each.name!r} is for the phase {each.phase!r}, which there is not"
        raise PluginError.unknown(message, each.phase, contracts.PHASES)
    return RegisteredPass(by.name, by.found.package, by.found.is_own, each)
