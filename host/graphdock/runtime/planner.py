"""The planner: the only place that knows the whole order, from fetches and feeds to a plan."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from graphdock.contracts.device import HOST_MEMORY, Device
from graphdock.contracts.handles import check_handles, handle_of, resource_name
from graphdock.contracts.ir import PlanNode, Value, arg_of
from graphdock.contracts.ir_check import check, check_order
from graphdock.contracts.kernel import PLANNED, ArgInfo, Bound, BuildContext, In, Lit, OutInfo
from graphdock.contracts.resource import VARIABLE
from graphdock.contracts.step import StepServices
from graphdock.device_name import DeviceSpec
from graphdock.dtypes import string
from graphdock.errors import CancelledError, ConfigError, NotFoundError
from graphdock.graph.operation import Operation
from graphdock.graph.tensor import Tensor
from graphdock.locks import new_lock
from graphdock.passes.pipeline import check_switches, run_passes
from graphdock.passes.rewrite import Tools
from graphdock.placement.choose import Chooser
from graphdock.placement.placer import place
from graphdock.plugin.host import Host
from graphdock.runtime.capture import capturing_device, feeds_first
from graphdock.runtime.host_memory import HostMemory
from graphdock.runtime.liveness import analyse
from graphdock.runtime.lower import Given, lower
from graphdock.runtime.plan import Plan
from graphdock.runtime.pool import InstancePool
from graphdock.runtime.random_stream import RandomOrdinals
from graphdock.runtime.resources import Resource, ResourceStore
from graphdock.runtime.scalars import KEPT, scalar_values
from graphdock.runtime.spaces import assign_spaces
from graphdock.runtime.translate import translate
from graphdock.shape import Dims, concrete

__all__ = ["Planner"]


@contextlib.contextmanager
def _collector_paused() -> Iterator[None]:
    """No cyclic garbage collection meanwhile.

    A plan is made of objects that stay; searching the growing heap for garbage made plans of 100,000 nodes cost 1.6 times
    as much per node as plans of 10,000.
    """
    on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if on:
            gc.enable()


class Planner:
    """Makes plans for one session. ``plan`` takes a lock; plans are independent of one another.

    Args:
      backends: names of plugins, in order. ``device_count``: device type -> how many.
      named_by: where ``backends`` was written, for messages.
      services: what the steps of the session share.
    """

    def __init__(
        self,
        host: Host,
        backends: Sequence[str],
        device_count: Mapping[str, int],
        pins: Mapping[str, str],
        fallback: Callable[[str], str],
        passes: Mapping[str, bool],
        options: Mapping[str, Mapping[str, Any]],
        debug: bool,
        check_numerics: bool,
        named_by: str | None,
        ordinals: RandomOrdinals,
        services: StepServices,
    ) -> None:
        check_switches(passes)
        self._host = host
        self._fallback = fallback
        self._passes = dict(passes)
        self._debug = debug
        self._check_numerics = check_numerics
        self._ordinals = ordinals
        self._pool = InstancePool()
        self._services = services
        self._lock = new_lock()
        for label, names in (("device_count", device_count), ("kernels", [k.rpartition("@")[2] for k in pins])):
            for name in names:
                self._check_device_type(label, name)
        self.chooser = Chooser(host, backends, pins)
        self.devices: list[DeviceSpec] = []
        self._open: dict[DeviceSpec, Device] = {}
        self.spaces: dict[str, Device] = {HOST_MEMORY: HostMemory()}
        for name in backends:
            host.plugin_options(name, options.get(name, {}))
            backend = host.backend(name, named_by)
            for kind in backend.device_types:
                for info in host.device_infos(kind, device_count.get(kind, 1)):
                    spec = DeviceSpec("localhost", 0, kind, info.index)
                    device = host.open_device(DeviceSpec(type=kind, index=info.index), options.get(name))
                    self.devices.append(spec)
                    self._open[spec] = device
                    self.spaces.setdefault(device.memory_space, device)
        if not self.devices:
            raise ConfigError(
                f"none of the backends {', '.join(backends)}{f' ({named_by})' if named_by else ''} brings a device",
                hint="add one that does, such as cpu",
            )
        self._host_device = next((d for d in self.devices if self._open[d].memory_space == HOST_MEMORY), None)

    def device(self, spec: DeviceSpec) -> Device:
        return self._open[spec]

    def plan(
        self,
        outputs: Sequence[Tensor],
        targets: Sequence[Operation],
        feeds: Sequence[tuple[Tensor, Dims]],
        timed: bool = False,
    ) -> Plan:
        """The plan that computes ``outputs`` and runs ``targets``, given feeds of these shapes.

        Args:
          timed: its steps have deadlines and look at them between nodes.

        Raises:
          InvalidArgumentError, ShapeError: the graph and the feeds do not fit. KernelNotFoundError, KernelTieError: no kernel,
          or two. FailedPreconditionError: a variable that exists with another type.
        """
        with self._lock, _collector_paused():
            graph = translate(outputs, targets, feeds)
            translated = sum(len(g.nodes) for g in graph.all_graphs())
            reports = run_passes(graph, self._passes, Tools(self._evaluate, self._host.ops.get("Const")), self._debug)
            check_handles(graph)
            placement = place(graph, self.devices, self.chooser, self._fallback, self._device_type)
            kernels = placement.kernels
            scalars = scalar_values(graph)
            for value in scalars:
                if value.node in kernels:
                    del kernels[value.node]
                    value.node.decision = KEPT
            spaces = assign_spaces(graph, kernels, scalars, lambda d: self._open[d].memory_space)
            for level in graph.all_graphs():
                for node in level.nodes:
                    if node.verb == "move" and node.device is None:
                        source = node.inputs[0].node
                        node.device = source.device if source is not None else None
            recorder = None if self._check_numerics else capturing_device(graph, kernels, self.device)
            if recorder is not None:
                feeds_first(graph)
            if self._debug:
                check(graph)
                check_order(graph, "placement")
            handles = handle_of(graph)
            facts = analyse(graph, kernels, handles)
            locked = not any("blocks" in n.opdef.effects for g in graph.all_graphs() for n in g.nodes)
            given = Given(
                graph,
                kernels,
                spaces.home,
                spaces.needs,
                facts,
                handles,
                self.spaces,
                lambda n: self._open[n.device],  # type: ignore[index]
                self._variable,
                locked,
                self._debug,
                self._check_numerics,
                recorder,
            )
            lowered = lower(given)
            if locked and any(b is not None and b.may_block for b in lowered.first_bounds):
                locked = False
                lowered = lower(replace(given, locked=False))
            return Plan(
                graph,
                placement,
                lowered,
                self.spaces,
                self._ordinals,
                reports,
                locked,
                self._debug,
                translated,
                self._pool,
                self._services,
                timed,
            )

    def close(self) -> None:
        """Stop every step that runs, and free the memory of all others."""
        self._pool.close(lambda: CancelledError("the session was closed while the step ran"))

    def _check_device_type(self, label: str, name: str) -> None:
        """Raise ConfigError for a misspelt device type. One that resembles none may be of a plugin that is not installed
        here: a configuration file serves several machines."""
        try:
            self._host.device_type(name)
        except NotFoundError as error:
            if error.hint is not None and name != HOST_MEMORY:
                raise ConfigError(
                    f"{label}: no installed plugin owns the device type {name!r}",
                    expected=error.expected,
                    hint=error.hint,
                ) from None

    def _device_type(self, name: str) -> str:
        """The device type behind an alias (``gpu``); the name itself where nobody owns it."""
        try:
            return self._host.device_type(name)
        except NotFoundError:
            return name

    def _variable(self, handle: Value, node: PlanNode) -> Resource:
        """The resource that a handle names: declared, of which nothing is made yet."""
        owner = handle.node
        assert owner is not None and owner.device is not None
        container, name = resource_name(owner)
        assert owner.opdef.resource is not None  # check_handles saw to it
        kind = self._host.resource_kind(owner.opdef.resource, owner.opdef.package)
        space = self._open[owner.device].memory_space
        if kind is VARIABLE and owner.attrs["dtype"] is string:
            space = HOST_MEMORY  # nowhere else are there strings
        store: ResourceStore = self._services.container(container)
        return store.declare(kind, name, owner.attrs, self.spaces[space])

    def _evaluate(self, node: PlanNode) -> list[np.ndarray[Any, Any]] | None:
        """Constant folding: run the node's kernel now, on a host-memory device of the session."""
        if self._host_device is None or self._host_device.type is None:
            return None
        choice = self.chooser.choose(node, self._host_device.type)
        if choice.kernel is None or "planned" not in choice.kernel.kernel.modes:
            return None
        arrays = [v.node.attrs["value"] for v in node.inputs]  # type: ignore[union-attr]
        device = self._open[self._host_device]
        out_args = node.opdef.outputs
        outs = [np.empty(concrete(v.shape) or (), v.dtype.np) for v in node.outputs]
        ctx = BuildContext(
            node,
            tuple(
                ArgInfo(arg.name, v.dtype, v.shape, HOST_MEMORY, a)
                for arg, v, a in zip(arg_of(node), node.inputs, arrays, strict=True)
            ),
            tuple(
                OutInfo(out_args[min(i, len(out_args) - 1)].name, v.dtype, v.shape, HOST_MEMORY, PLANNED)
                for i, v in enumerate(node.outputs)
            ),
            device,
            device.queue,
        )
        try:
            made = choice.kernel.kernel.build(ctx)
            bound = made if isinstance(made, Bound) else Bound(made)
            buffers = [*outs, *[np.empty(s.shape, s.dtype.np) for s in bound.scratch]]
            if bound.args is None:
                args: list[Any] = [*arrays, *buffers]
            else:
                args = [
                    a.value if isinstance(a, Lit) else arrays[a.index] if isinstance(a, In) else buffers[a.index]
                    for a in bound.args
                ]
            with np.errstate(all="ignore"):
                bound.compute(*args)
        except Exception:  # noqa: BLE001 - whatever a kernel raises
            return None  # the step itself will raise it, with the node's own line
        return outs
