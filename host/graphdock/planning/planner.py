"""The planner of a session: opens its devices, and sends drafts of plans through the stages."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from graphdock.config.session_config import SessionConfig
from graphdock.contracts.device import HOST_MEMORY, Device
from graphdock.contracts.executor import Executor, run_stages
from graphdock.contracts.step import StepServices
from graphdock.contracts.streams import RandomOrdinals
from graphdock.cores import threads as default_threads
from graphdock.device_name import DeviceSpec
from graphdock.errors import (
    CancelledError,
    ConfigError,
    DeviceUnavailable,
    FailedPreconditionError,
    NotFoundError,
    did_you_mean,
)
from graphdock.graph.operation import Operation
from graphdock.graph.tensor import Tensor
from graphdock.locks import collector_paused, new_lock
from graphdock.passes.pipeline import checked_switches, known_passes
from graphdock.placement.choose import Chooser
from graphdock.planning.decompose import Decomposer
from graphdock.planning.plan import Plan, make_plan
from graphdock.planning.plan_builder import PlanBuilder, PlanningContext
from graphdock.planning.pool import HostMemory, InstancePool
from graphdock.planning.stages import STAGES
from graphdock.planning.translate import translate
from graphdock.plugin.host import Host
from graphdock.shape import Dims

if TYPE_CHECKING:
    from graphdock.contracts.region import RegisteredCompiler
    from graphdock.placement.costs import Costs
    from graphdock.placement.lock import Lock

__all__ = ["AUTO", "Planner"]

T = TypeVar("T")

#: Executors that ``executor="auto"`` asks, in order.
AUTO = ("straight_line", "dataflow")


class Planner:
    """Makes plans for one session. ``plan`` takes a lock; plans are independent of one another.

    Args:
      config: the session's, resolved.
      ordinals: of the session's random streams. ``services``: what its steps share. ``is_part``: it runs a task's part of a step.

    Attributes:
      devices: whole names, in order of preference. ``absent``: device types of ``backends`` that this machine has no device of.

    Raises:
      DeviceUnavailable: there is no device of a backend, and ``fallback`` is ``forbid`` or no other backend has one.
    """

    def __init__(
        self,
        host: Host,
        config: SessionConfig,
        ordinals: RandomOrdinals,
        services: StepServices,
        is_part: bool = False,
    ) -> None:
        known = known_passes(host)
        switches = checked_switches(config.passes, known)
        self._config = config
        self._host = host
        self._lock = new_lock()
        device_count = self._by_type("device_count", config.device_count)
        memory_limit = self._by_type("memory_limit", config.memory_limit)
        self._declared = self._by_type("plan_for", config.plan_for)
        for pin in config.kernels:
            self._device_type("kernels", pin.rpartition("@")[2])
        chooser = Chooser(host, config.backends, config.kernels, config.deterministic)
        compilers: list[RegisteredCompiler] = []
        self.devices: list[DeviceSpec] = []
        self.absent: dict[str, DeviceUnavailable] = {}
        opened: dict[DeviceSpec, Device] = {}
        spaces: dict[str, Device] = {HOST_MEMORY: HostMemory()}
        resolved: dict[str, Mapping[str, Any]] = {}
        for name in config.backends:
            resolved[name] = host.plugin_options(name, config.options.get(name, {}))
            backend = host.backend(name, config.source("backends"))
            if config.fusion:
                compilers += host.region_compilers.of_plugin(name)
            for kind in backend.device_types:
                count = device_count.get(kind, 1)
                if count == 0:
                    continue
                try:
                    found = self._devices(kind, count, config.options.get(name))
                except DeviceUnavailable as error:
                    if kind in self._declared:
                        raise
                    self.absent[kind] = error
                    continue
                for device in found:
                    spec = DeviceSpec("localhost", 0, kind, device.info.index)
                    self.devices.append(spec)
                    opened[spec] = device
                    spaces.setdefault(device.memory_space, device)
        self._say_what_is_absent()
        self._say_what_is_misspelt(config.options)
        unused = sorted(self._declared.keys() - {d.type for d in self.devices})
        if unused:
            raise ConfigError(
                f"plan_for names {', '.join(unused)}, of which none of the backends {', '.join(config.backends)} has devices",
                hint="list the plugin that owns the device type among the backends",
            )
        if not self.devices:
            raise ConfigError(
                f"none of the backends {', '.join(config.backends)}{self._named_by()} brings a device",
                hint="add one that does, such as cpu",
            )
        limits = _limits(memory_limit, opened)
        self._pool = InstancePool(limits=limits)
        decomposer = Decomposer(host, self.devices)
        pins = tuple(sorted(config.kernels.items()))
        folded = tuple(config.backends), pins, tuple(self.devices), config.deterministic, config.check_numerics
        self.setting = PlanningContext(
            host=host,
            config=config,
            chooser=chooser,
            decomposer=decomposer,
            compilers=compilers,
            devices=self.devices,
            opened=opened,
            spaces=spaces,
            executors=_executors(host, config.executor),
            function=self.function,
            services=services,
            ordinals=ordinals,
            switches=switches,
            passes=[row for name, row in known.items() if switches[name]],
            pass_options=lambda plugin: host.plugin_options(plugin, config.options.get(plugin, {})),
            settings=(tuple(switches.items()), folded, config.debug),
            costs=lambda: self.costs,
            placer=None if config.placer == "rules" else host.placer(config.placer),
            limits=limits,
            lock=_lock(config),
            memory_budget=self._by_type("memory_budget", config.memory_budget),
            options=resolved,
            threads=config.intra_op_threads or default_threads(),
            workers=config.inter_op_threads or 1,
            is_part=is_part,
        )

    @functools.cached_property
    def costs(self) -> Costs:
        """The session's cost model."""
        from graphdock.placement.costs import Costs

        return Costs(self.setting.opened, self.setting.spaces, self._declared, self._host.measured)

    def _named_by(self) -> str:
        """Return where the backends were written, for messages."""
        source = self._config.source("backends")
        return f" ({source})" if source else ""

    def _devices(self, kind: str, count: int, options: Mapping[str, Any] | None) -> list[Device]:
        architecture = self._declared.get(kind)
        if architecture is not None:
            return [self._host.declared_device(kind, architecture, options or {})]
        infos = self._host.device_infos(kind, count)
        return [self._host.open_device(DeviceSpec(type=kind, index=info.index), options) for info in infos]

    def _say_what_is_absent(self) -> None:
        """A backend without a device here is passed over like a kernel that is not there: by the policy of fallback."""
        policy = self._config.fallback_for("default")
        for kind, error in self.absent.items():
            if policy == "forbid" or not self.devices:
                raise DeviceUnavailable(f"no device {kind}: {error.reason}", error.hint)
            if policy == "warn":
                import logging  # few sessions say anything

                others = ", ".join(d.short() for d in self.devices)
                logging.getLogger("graphdock").warning(
                    "no device %s here%s, the session runs on %s: %s", kind, self._named_by(), others, error.reason
                )

    def _say_what_is_misspelt(self, options: Mapping[str, Any]) -> None:
        """Options of a plugin that is not installed are no error, as machines may share a file. A slip of the finger is told."""
        installed = [state.name for state in self._host.plugins(every=True)]
        for name in options.keys() - set(installed):
            if near := did_you_mean(name, installed):
                import logging  # few sessions say anything

                logging.getLogger("graphdock").warning(
                    "options[%r] are nobody's here: no plugin of that name is installed; %s", name, near
                )

    def plan(
        self,
        outputs: Sequence[Tensor],
        targets: Sequence[Operation],
        feeds: Sequence[tuple[Tensor, Dims]],
        dry: bool = False,
        done: Collection[Operation] = (),
        handles: Mapping[Tensor, Operation] = MappingProxyType({}),
        pieces: bool = False,
        patient: bool = True,
    ) -> Plan:
        """The plan that computes ``outputs`` and runs ``targets``, given feeds of these shapes.

        Args:
          dry: it is to be explained; nothing is measured. ``done``: operations that a part of the step before has run.
          handles: placeholder of a handle, of a body that is planned by itself -> the operation that makes the handle.
          pieces: its steps are fed and fetched piece by piece.
          patient: code that a kernel wants is compiled first; else the plan does without the kernel, and says so in ``later``.

        Raises:
          InvalidArgumentError, ShapeError: the graph and the feeds do not fit. KernelNotFoundError, KernelTieError: no kernel,
          or two. FailedPreconditionError: a variable that exists with another type; a step is to run on a device that is declared.
          UnimplementedError: every executor that may run it refuses.
        """
        if self._declared and not dry:
            kinds = ", ".join(f"{kind} {architecture}" for kind, architecture in self._declared.items())
            raise FailedPreconditionError(
                f"this session plans for a device that is not here ({kinds}), and runs nothing",
                hint="leave plan_for out of its configuration; session.explain works with it",
            )
        with self._lock, collector_paused():
            draft = PlanBuilder(self.setting, outputs, targets, feeds, dry, done, handles, pieces)
            if dry:
                from graphdock.passes.history import PassHistory  # of plans that are explained

                draft.history = PassHistory()
            draft.later = None if patient else []
            draft.stages = run_stages(STAGES, draft, self.setting.config.debug)
            return make_plan(draft, self._pool)

    def function(self, body: Any) -> Callable[..., Sequence[Any]]:
        """A function attribute of a kernel as a function of arrays, planned when it is called."""
        from graphdock.planning.graph_function import GraphFunction  # few kernels have one

        return GraphFunction(body, self)

    def check_shapes(
        self,
        outputs: Sequence[Tensor],
        targets: Sequence[Operation],
        feeds: Sequence[tuple[Tensor, Dims]],
        done: Collection[Operation] = (),
    ) -> None:
        """Raise what :meth:`plan` would raise about the shapes of these feeds; makes no plan."""
        with self._lock, collector_paused():
            translate(outputs, targets, feeds, done=done)

    def close(self) -> None:
        """Stop every step that runs, and free the memory of all others."""
        self._pool.close(lambda: CancelledError("the step was cancelled: its session was closed while it ran"))

    def _by_type(self, label: str, table: Mapping[str, T]) -> dict[str, T]:
        """A table by device type, from one that may name aliases (``gpu``). Raises ConfigError where two names mean one type."""
        found: dict[str, T] = {}
        names: dict[str, str] = {}
        for name, value in table.items():
            kind = self._device_type(label, name)
            if found.setdefault(kind, value) != value:
                raise ConfigError(
                    f"{label}: {names[kind]!r} and {name!r} are one device type", got=f"{found[kind]} and {value}"
                )
            names[kind] = name
        return found

    def _device_type(self, label: str, name: str) -> str:
        """The device type behind a name; ConfigError for a misspelt one. One that resembles none may be of a plugin that is
        not installed here: a configuration file serves several machines. So may ``gpu``, which resembles ``cpu``."""
        try:
            return self._host.device_type(name)
        except NotFoundError as error:
            if error.hint is not None and name not in (HOST_MEMORY, "gpu"):
                raise ConfigError(
                    f"{label}: no installed plugin owns the device type {name!r}",
                    expected=error.expected,
                    hint=error.hint,
                ) from None
            return name


def _executors(host: Host, name: str) -> list[Callable[[], Executor]]:
    """Return what brings each executor that a session may use, in order; the first is looked up now, the others where it
    refuses.
    """
    first, *others = AUTO if name == "auto" else (name,)
    chosen = host.executor(first)
    return [lambda: chosen, *(functools.partial(host.executor, other) for other in others)]


def _lock(config: SessionConfig) -> Lock | None:
    if config.lock is None:
        return None
    from graphdock.placement.lock import Lock

    return Lock(str(config.lock))


def _limits(memory_limit: Mapping[str, int], opened: Mapping[DeviceSpec, Device]) -> dict[str, int]:
    """Memory space -> bytes. Devices that share a memory space share the smallest of their limits."""
    limits: dict[str, int] = {}
    for name, device in opened.items():
        limit = memory_limit.get(name.type or "")
        if limit is not None:
            limits[device.memory_space] = min(limit, limits.get(device.memory_space, limit))
    return limits
