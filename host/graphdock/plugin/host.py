"""The Host: which plugins there are, what they registered, which devices are open.

The default host is made at first use, never at import; others may be made for tests. Hosts share nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from graphdock.contracts.device import HOST_MEMORY
from graphdock.contracts.resource import VARIABLE
from graphdock.device_name import DeviceSpec
from graphdock.errors import AlreadyExistsError, NotFoundError, UnknownBackendError, did_you_mean
from graphdock.locks import new_lock
from graphdock.plugin import loader, registry
from graphdock.plugin.admission import Admission, stop_clashes
from graphdock.plugin.devices import Devices
from graphdock.plugin.discovery import Found, discover, how_to_install
from graphdock.plugin.endpoints import Endpoints
from graphdock.plugin.hookspecs import HOOKS
from graphdock.plugin.kernel_registry import KernelRegistry
from graphdock.plugin.manifest import Manifest
from graphdock.plugin.patterns import PatternRegistry
from graphdock.plugin.registry import FormatRegistry, NamedRegistry, OpRegistry, RegisteredPass
from graphdock.plugin.settings import plugin_settings
from graphdock.plugin.state import Backend, LedgerEntry, PluginState

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from graphdock.contracts import (
        CheckpointFormat,
        Device,
        DeviceInfo,
        Executor,
        GraphFormat,
        Placer,
        RegisteredCompiler,
        ResourceKind,
        SessionFactory,
        Transport,
    )
    from graphdock.measured_times import MeasuredTimes
    from graphdock.workers import WorkerPools

T = TypeVar("T")


class Host:
    """Plugins, registries, devices and named containers of one process (or of one test).

    Args:
      allow: names of plugins or distributions that may load besides graphdock's own; None allows all. Opt-in plugins load only if
        they are among them; a list of nothing else blocks no other plugin.
      block: names of plugins or distributions that never load; graphdock's own may be among them.
      autoload: whether a plugin that no session names may load for its ops. Without it only graphdock's own, the
        allowed and the named ones do.
      origins: name in ``allow`` or ``block`` -> where it was written, for messages.

    All methods may be called from any thread; one lock guards loading, and a plugin loads once.

    Raises:
      ConfigError: a name in ``allow`` or ``block`` that no installed plugin or distribution has.
    """

    def __init__(
        self,
        allow: Iterable[str] | None = None,
        block: Iterable[str] = (),
        autoload: bool = True,
        *,
        origins: Mapping[str, str] | None = None,
    ) -> None:
        self.lock = new_lock()
        self._admission = Admission(
            None if allow is None else tuple(allow), tuple(block), autoload, dict(origins or {})
        )
        self._states: list[PluginState] | None = None
        self._all_searched = False
        self._loaded_for_plans: frozenset[str] = frozenset()
        self._compared = False
        self._comparing = new_lock()
        self._endpoints: Endpoints | None = None
        self._backends: dict[str, Backend] = {}
        self.ops = OpRegistry(self._search, self.fault_notes, self.lock)
        self.kernels = KernelRegistry(self._kernels_wanted, self.lock)
        self.devices = Devices(self)
        self.resource_kinds: NamedRegistry[ResourceKind] = NamedRegistry("resource kind")
        self.resource_kinds.add(VARIABLE.name, VARIABLE, "graphdock")
        self.region_compilers: NamedRegistry[RegisteredCompiler] = NamedRegistry(
            "region compiler", "full_name", registry.registered_compiler
        )
        self.patterns = PatternRegistry()
        self.passes: NamedRegistry[RegisteredPass] = NamedRegistry("pass", kept=registry.registered_pass)
        self.executors: NamedRegistry[Executor] = NamedRegistry("executor")
        self.placers: NamedRegistry[Placer] = NamedRegistry("placer")
        self.session_factories: NamedRegistry[SessionFactory] = NamedRegistry("session factory", "scheme")
        self.transports: NamedRegistry[Transport] = NamedRegistry("transport", "scheme")
        self.graph_formats: FormatRegistry[GraphFormat] = FormatRegistry("graph", self)
        self.checkpoint_formats: FormatRegistry[CheckpointFormat] = FormatRegistry("checkpoint", self)
        #: Named containers, as sessions made them (:class:`graphdock.contracts.runtime.resources.ResourceStore`).
        self.containers: dict[str, Any] = {}
        self.containers_lock = new_lock()
        self._workers: WorkerPools | None = None
        self._measured: MeasuredTimes | None = None
        #: Plugin -> what its passes keep for all sessions. The lock is the one that guards loading: a pass may trace a function
        #: that loads a plugin, and a plugin that is being loaded may run a step.
        self.shared: dict[str, dict[Any, Any]] = {}
        self.shared_lock = self.lock
        if self._admission.limits:
            self._plugins()

    # -- plugins

    def _triaged(self) -> list[PluginState]:
        """Return what is installed, with the manifests read and compared; nothing is imported. With the host's lock or without."""
        states = self._plugins()
        if not self._compared:
            with self._comparing:
                if not self._compared:
                    for state in states:
                        loader.triage(state)
                    stop_clashes(states)
                    self._compared = True
        return states

    def _plugins(self) -> list[PluginState]:
        """Return what is installed, with allow and block lists and duplicates decided; nothing is imported."""
        if self._states is None:
            with self.lock:
                if self._states is None:
                    self._states = self._admission.states(discover())
        return self._states

    @property
    def ledger(self) -> tuple[LedgerEntry, ...]:
        """Return how far each installed plugin came; imports nothing."""
        return tuple(state.entry() for state in self.plugins())

    def plugins(self, *, every: bool = False) -> tuple[PluginState, ...]:
        """The installed plugins with their manifests read and checked; imports nothing.

        Args:
          every: also opt-in plugins that nothing allows.
        """
        with self.lock:
            return tuple([s for s in self._triaged() if every or not s.hidden])

    def register(self, name: str, plugin: Any) -> Backend:
        """Add a plugin that is not installed, for a test or a notebook, and load it.

        Args:
          name: what ``backends`` calls it.
          plugin: a module, or any hashable object, whose attributes are marked with ``hookimpl``. It needs no manifest,
            and takes no options.

        Raises:
          AlreadyExistsError: a plugin of that name is there. PluginError: its hooks failed.
        """
        module = getattr(plugin, "__name__", None) or type(plugin).__module__
        with self.lock:
            others = [s for s in self._plugins() if not (s.hidden and s.name == name)]
            if any(s.name == name for s in others):
                raise AlreadyExistsError(f"a plugin named {name!r} is there already")
            state = PluginState(Found(name, module, f"graphdock-{name}", "0", ""), triaged=True, module=plugin)
            state.manifest = Manifest(name, "registered in memory", "", module, module)
            self._states = [*others, state]
            self._loaded_for_plans = frozenset()
            self._compared = False
        return self.backend(name)

    def backend(self, name: str, named_by: str | None = None) -> Backend:
        """Load the plugin of that name, whole.

        Args:
          named_by: where the name was written, such as ``graphdock.toml:2``, for the message.

        Raises:
          UnknownBackendError: no installed plugin has the name; the hint has the ``pip install`` line.
          PluginError: it is blocked, or failed to load; ``__cause__`` is its first exception.
        """
        with self.lock:
            self._triaged()
            state = self.state(name, named_by)
            if not loader.load_rest(self, state) or state.stage == "probe failed" or state.busy:
                raise state.unusable()
            if name not in self._backends:
                f = state.found
                kernels = self.kernels.devices(name) - {HOST_MEMORY}
                self._backends[name] = Backend(
                    f.plugin, f.package, f.distribution, f.version, state.added.devices, tuple(sorted(kernels))
                )
            return self._backends[name]

    def state(self, name: str, named_by: str | None = None) -> PluginState:
        """Return how far the plugin of that name came; the usable one where two distributions have it. Raises
        UnknownBackendError.
        """
        states = [s for s in self._plugins() if s.name == name]
        if not states:
            known = sorted({s.name for s in self.plugins() if s.may_be_backend})
            message = (f"{named_by}: " if named_by else "") + f"no installed plugin provides the backend {name!r}"
            raise UnknownBackendError.unknown(message, name, known, how_to_install(name, known))
        return next((s for s in states if s.usable), states[0])

    def plugin_options(self, name: str, given: Mapping[str, Any], where: str | None = None) -> dict[str, Any]:
        """A plugin's options, checked against its manifest before anything is imported, defaults filled in.

        Raises:
          ConfigError: an unknown option (with did-you-mean), a wrong type, a value out of bounds.
          UnknownBackendError, PluginError: there is no such plugin, or it can't be used.
        """
        with self.lock:
            state = self.state(name)
            if not loader.triage(state) or state.manifest is None:
                raise state.unusable()
            return state.manifest.resolve_options(given, where or f"options[{name!r}]")

    # -- names below tf, and ops

    @property
    def endpoints(self) -> Endpoints:
        """The names below ``tf`` that the installed plugins publish. Reads manifests; no lock is held while a table is imported."""
        if self._endpoints is None:
            self._endpoints = Endpoints(self._triaged(), self._admission.may_publish)
        return self._endpoints

    def _search(self, op: str | None, found: Callable[[], bool]) -> bool:
        """Load plugins that may declare ops, one by one, until ``found`` holds; first those that list ``op``.

        Args:
          op: an op type, or an operator method such as ``__add__``; None for any.
        """
        if self._all_searched:
            return found()
        with self.lock:
            states = self._candidates("register_ops")
            if op is not None:
                for state in states:
                    if "register_ops" not in state.done and (op in state.op_names or op in state.operators):
                        loader.load_ops(self, state)
                        if found():
                            return True
            for state in states:
                if found():
                    return True
                if "register_ops" not in state.done:
                    loader.load_ops(self, state)
            self._all_searched = not any(s.busy for s in self._plugins())
            return found()

    def _kernels_wanted(self, op: str) -> None:
        """Load who declares an op, and of one that runs on the host only the plugins without devices that have a kernel."""
        if op in self.ops and "host" in self.ops.get(op).traits:
            with self.lock:
                for state in [s for s in self._candidates("register_kernels") if s.may_serve_hosts(op)]:
                    loader.load_rest(self, state)

    def fault_notes(self) -> str | None:
        """Plugins that failed and might have declared an op that nobody else does."""
        lines = [f"plugin {s.name!r} did not load: {s.stage}: {s.cause}" for s in self._plugins() if s.entry().is_fault]
        return "; ".join(lines) or None

    def who_brings(self, kind: str, name: str) -> str | None:
        """Return which plugin of graphdock's would bring a name that nobody has. See
        :func:`graphdock.plugin.left_out.who_brings`.
        """
        from graphdock.plugin.left_out import who_brings  # reads a table, for errors

        return who_brings(kind, name, self.plugins())

    # -- resource kinds, executors and session factories

    def resource_kind(self, name: str, package: str = "") -> ResourceKind:
        """The kind of resource of that name.

        Args:
          package: import package of the op that names it; its plugin is asked first.

        Raises:
          NotFoundError: no allowed plugin brings it. PluginError: the plugin of that name failed to load.
        """
        found = self.resource_kinds.get(name)
        if found is None:
            with self.lock:
                for state in self._candidates("register_resource_kinds"):
                    if state.found.package == package:
                        loader.load_rest(self, state)
            missing = f"no resource kind named {name!r}"
            found = self._named(self.resource_kinds, name, "register_resource_kinds", missing)
        return found

    def executor(self, name: str) -> Executor:
        """The executor of that name.

        Raises:
          NotFoundError: no allowed plugin brings it. PluginError: the plugin of that name failed to load.
        """
        return self._named(self.executors, name, "register_executors", f"no executor named {name!r}", ("auto",))

    def placer(self, name: str) -> tuple[Placer, str]:
        """The placer of that name, and its plugin.

        Raises:
          NotFoundError: no allowed plugin brings it. PluginError: the plugin of that name failed to load.
        """
        placer = self._named(self.placers, name, "register_placers", f"no placer named {name!r}", ("rules",))
        entry = self.placers.entry(name)
        return placer, "" if entry is None else entry[1]

    def workers(self, threads: int) -> ThreadPoolExecutor | None:
        """The pool of so many threads for kernels of several nodes at once; its sessions share it. None for less than two."""
        from graphdock.workers import WorkerPools

        with self.lock:
            if self._workers is None:
                self._workers = WorkerPools()
        return self._workers.of(threads)

    @property
    def measured(self) -> MeasuredTimes:
        """The times that traced steps took on this machine, and the rates of its devices; read when first asked."""
        from graphdock.measured_times import MeasuredTimes

        with self.lock:
            if self._measured is None:
                self._measured = MeasuredTimes()
            return self._measured

    def keep_measured(self) -> None:
        """Write what was measured since, if anything was asked or told."""
        if self._measured is not None:
            self._measured.save()

    def load_for(self, hook: str, own: bool = False) -> None:
        """Load the plugins that may load unasked and implement a hook, graphdock's first.

        Args:
          own: graphdock's alone.
        """
        with self.lock:
            for state in self._candidates(hook):
                if state.found.is_own or not own:
                    loader.load_rest(self, state)

    def load_passes(self) -> list[RegisteredPass]:
        """The passes of every allowed plugin whose manifest says that it has some, whatever ``backends`` lists.

        One whose plugin fails to load takes no part; a warning names it, once, and ``graphdock doctor`` says more.
        """
        self._load_for_plans("register_passes")
        return self.passes.all()

    def load_patterns(self) -> PatternRegistry:
        """The patterns, likewise: which a plan finds depends on what is installed, not on what was loaded before."""
        self._load_for_plans("register_patterns")
        return self.patterns

    def _load_for_plans(self, hook: str) -> None:
        if hook not in self._loaded_for_plans:
            with self.lock:
                loader.load_for_plans(self, self._candidates(hook), hook)
                if not any(s.busy for s in self._plugins()):
                    self._loaded_for_plans |= {hook}

    def session_factory(self, target: str) -> SessionFactory:
        """The factory for a target such as ``grpc://host:port``, chosen by its scheme.

        A scheme that only a transport has is opened by the factory for servers, ``grpc``, which runs steps over any transport.

        Raises:
          NotFoundError: no allowed plugin brings the scheme. PluginError: the plugin of that name failed to load.
        """
        scheme = target.partition("://")[0]
        missing = f"no session factory for the target {target!r}"
        try:
            return self._named(self.session_factories, scheme, "register_session_factories", missing)
        except NotFoundError:
            try:
                self.transport(scheme)
            except NotFoundError:
                pass
            else:
                return self.session_factory("grpc")
            raise

    def transport(self, scheme: str) -> Transport:
        """The transport for targets of a scheme, such as ``grpc``.

        Raises:
          NotFoundError: no allowed plugin brings it. PluginError: the plugin of that name failed to load.
        """
        missing = f"no transport for targets of the scheme {scheme!r}"
        return self._named(self.transports, scheme, "register_transports", missing)

    def _named(
        self, registry: NamedRegistry[T], name: str, hook: str, missing: str, builtin: tuple[str, ...] = ()
    ) -> T:
        """Look up; then load the plugin of that name; then graphdock's that state it; then its others with that hook; then every
        allowed one."""
        with self.lock:
            found = registry.get(name)
            if found is None and any(s.name == name for s in self._plugins()):
                self.backend(name)
                found = registry.get(name)
            stated = HOOKS[hook].registry
            for state in self._candidates(hook) if found is None else ():
                if found is None and state.found.is_own and name in state.provided.get(stated, ()):
                    loader.load_rest(self, state)
                    found = registry.get(name)
            for own in (True, False):
                if found is None:
                    self.load_for(hook, own)
                    found = registry.get(name)
            if found is None:
                known = sorted({*builtin, *registry.names()})
                hint = "; ".join(filter(None, (did_you_mean(name, known), self.fault_notes())))
                raise NotFoundError.unknown(missing, name, known, hint)
            return found

    def _candidates(self, hook: str) -> list[PluginState]:
        """Plugins that may load although nobody named them, and may implement a hook."""
        return [s for s in self._triaged() if self._admission.may_autoload(s) and s.may_have(hook)]

    # -- devices

    def device_type(self, name: str) -> str:
        """The device type that a name or alias (``gpu``) stands for, lower case. Raises NotFoundError."""
        with self.lock:
            return self.devices.owner(name.lower())[0].device_type

    def device_infos(self, device_type: str, count: int | None = None) -> list[DeviceInfo]:
        """The devices of a type. See :meth:`graphdock.plugin.devices.Devices.infos`."""
        return self.devices.infos(device_type, count)

    def open_device(self, spec: DeviceSpec | str, options: Mapping[str, Any] | None = None) -> Device:
        """The device of that name, opened once. See :meth:`graphdock.plugin.devices.Devices.open`."""
        return self.devices.open(DeviceSpec.parse(spec), options)

    def declared_device(self, device_type: str, architecture: str, options: Mapping[str, Any]) -> Device:
        """A device that need not be here, for planning. See :meth:`graphdock.contracts.DeviceFactory.declared`."""
        return self.devices.declared(device_type, architecture, options)

    def close(self) -> None:
        """Close what is in the named containers, once no step uses it, then every open device. The default host is never closed."""
        with self.containers_lock:
            containers = list(self.containers.values())
        for container in containers:
            container.clear()
        self.devices.close()

    def discard(self, plugin: str, package: str) -> None:
        """Take back everything that a plugin registered."""
        self.shared.clear()
        for hook in HOOKS.values():
            getattr(self, hook.registry).discard(package if hook.registry == "ops" else plugin)


def configured_host() -> Host:
    """A new host with ``[plugins]`` of the configuration file and the environment.

    Raises:
      ConfigError: the configuration file or a GRAPHDOCK_* variable is wrong.
    """
    told = plugin_settings()
    return Host(told.allow, told.block, told.autoload, origins=told.origins)


_default: Host | None = None
_default_lock = new_lock()


def default_host() -> Host:
    """The process's own host, made at first use with ``[plugins]`` of the configuration file and the environment.

    Raises:
      ConfigError: the configuration file or a GRAPHDOCK_* variable is wrong.
    """
    global _default
    if _default is None:
        with _default_lock:
            if _default is None:
                _default = configured_host()
    return _default
