"""Making an instance: memory, variables, kernels bound to queues, views and recordings, as names of the generated source."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import CodeType
from typing import TYPE_CHECKING, Any

import numpy as np
from graphdock.contracts.device import HOST_MEMORY, Device
from graphdock.contracts.executor import PlacedGraph
from graphdock.contracts.ir import PlanNode
from graphdock.contracts.kernel import BindContext, Bound, BuildContext, Lit, Prepared, build_kernel
from graphdock.contracts.lazy_dataclass import lazy_dataclass
from graphdock.contracts.runtime.access import step_name
from graphdock.contracts.step import CancellationToken, StepContext
from graphdock.contracts.streams import RandomStream
from graphdock.errors import ResourceExhaustedError
from graphdock.locks import new_lock
from graphdock.shape import concrete

from graphdock_executor.device_error import asking, explain_exhausted
from graphdock_executor.first_call import FirstCallCheck, Watched, once_per_shape
from graphdock_executor.lower import Build, Lowered, Setup
from graphdock_executor.storage import Root
from graphdock_executor.straight_line.helpers import HELPERS, poison
from graphdock_executor.straight_line.instance import Instance, QueuedInstance, stoppers
from graphdock_executor.stream_slots import Recording, StreamSlots, devices_of, lend, worker_of

if TYPE_CHECKING:
    from graphdock_executor.canaries import Canaries
    from graphdock_executor.step_program.code import StepCode

__all__ = ["InstanceBuilder"]

#: Bytes from which a buffer is worth being used again.
_LARGE = 1 << 20


@lazy_dataclass
class _Streams:
    """The random streams of an instance: by op, and, of each queued device, those whose ordinals are step arguments."""

    of_op: dict[str, list[RandomStream]]
    arguments: dict[Device, list[RandomStream]]


class InstanceBuilder:
    """Makes the instances of one program. ``make`` may be called from many threads.

    Args:
      blocks: memory space -> bytes that hold its planned buffers; ``roots``: memory space -> the buffers.
      code: the generated source, compiled.
    """

    def __init__(
        self,
        placed: PlacedGraph,
        lowered: Lowered,
        blocks: Mapping[str, int],
        roots: Mapping[str, Sequence[Root]],
        code: CodeType | StepCode,
    ) -> None:
        self._placed = placed
        self._lowered = lowered
        self._blocks = blocks
        self._roots = roots
        self._code = code
        self._holds = placed.holds
        nodes = (n for level in placed.graph.all_graphs() for n in level.nodes)
        self._quietly = placed.holds or not any(map(_may_call_python, nodes))
        self.queued = devices_of(lowered)
        self.builds = lowered.builds
        self._bounds: list[Any] | None = lowered.first_bounds
        named = [bound.within for bound in lowered.first_bounds if bound is not None]
        self._within = tuple(dict.fromkeys(context for context in named if context is not None))
        self._constants: dict[str, Any] | None = None
        self._lock = new_lock()

    def make(self, step: StepContext) -> Instance:
        """A new instance for a context; its memory is taken now.

        Raises:
          ResourceExhaustedError, InternalError: what a device or a kernel raises, with its name. ResourceClosed: a resource of the
            step was reset.
        """
        label = functools.partial(step_name, self._placed.graph)
        lowered, wanted = self._lowered, self._placed.steps_in_flight
        stream_slots = StreamSlots(self.queued, not self._holds, label, lowered.touches, lowered.overlaps, wanted)
        try:
            with stream_slots.entered():
                return self._on(stream_slots, step)
        except BaseException:
            stream_slots.close()
            raise

    def _on(self, stream_slots: StreamSlots, step: StepContext) -> Instance:
        lowered, debug = self._lowered, self._placed.debug
        bounds = self._shared(stream_slots)
        assert self._constants is not None
        ns: dict[str, Any] = dict(self._constants)
        ns.update(HELPERS)
        ns.update({name.text: item for name, item in lowered.objects.items()})
        ns["token"], ns["running"] = step.token, True
        canaries = _canaries() if debug else None
        self._buffers(ns, stream_slots, canaries)
        for name, resource in lowered.variables.items():
            ns[name.text] = resource.open()
        for name, variable in lowered.states.items():
            variable.open()
            ns[name.text] = variable
        stream_slots.bind(ns, lowered)
        for name, root in lowered.makers.items():
            ns[name.text] = self._new(root, stream_slots, canaries)
        for name, (root, owner) in lowered.lent.items():
            ns[name.text] = functools.partial(lend, owner, root)
        if debug:
            # the kernels of views are called below, and what they show is read before and after
            for touched in lowered.touches:
                touched.settle(False)
        streams = self._streams(ns, stream_slots)
        called: dict[str, Any] = {}
        unchecked_yet = self._kernels(ns, called, bounds, stream_slots, step.token, canaries)
        if lowered.segments and not debug:
            from graphdock_executor.straight_line.joining import join_kernels

            join_kernels(ns, lowered.segments, lowered.joinable)
        if lowered.native_runs:
            from graphdock_executor.straight_line.native_runs import bind_runs

            bind_runs(lowered.native_runs, lowered.native, ns, called, step.token)
        ns["__name__"] = "graphdock.step"
        called.update({name: value for name, value in ns.items() if callable(value)})
        if isinstance(self._code, CodeType):
            exec(self._code, ns)  # noqa: S102 - the source is our own
        else:
            self._code.define(ns)
        varying = [first for first in unchecked_yet if first.check.varies]
        if varying and any(concrete(v.shape) is None for v in self._placed.graph.inputs):
            ns["step"] = once_per_shape(ns["step"], varying)
        for segment in lowered.segments:
            assert segment.device is not None
            replay = _recording(ns[f"{segment.replay.text}_body"], segment.device, stream_slots)
            called[segment.replay.text] = ns[segment.replay.text] = replay
        if stream_slots.of:
            instance: Instance = QueuedInstance(
                ns, called, streams.of_op, self._quietly, debug, stream_slots, streams.arguments, self._within
            )
        else:
            instance = Instance(ns, called, streams.of_op, self._quietly, debug, within=self._within)
        instance.forget = step.token.watch(*stoppers(ns, called))
        return instance

    def _shared(self, stream_slots: StreamSlots) -> list[Bound | None]:
        """The kernels, built for this instance; the constants, put where their readers are, for all of them."""
        with self._lock:
            bounds, self._bounds = self._bounds, None
            if bounds is None or stream_slots.of:
                bounds = [_built(build, stream_slots) for build in self._lowered.builds]
            if self._constants is None:
                constants = self._lowered.constants.items()
                self._constants = {name.text: self._constant(*item) for name, item in constants}
            return bounds

    def _constant(self, node: PlanNode, device: Device, dtype: Any) -> Any:
        array = node.attrs["value"]
        if device.memory_space == HOST_MEMORY:
            return array
        with asking(device, f"empty of {array.nbytes} bytes for a constant", node):
            buffer = device.empty(dtype, array.shape)
        with asking(device, "from_host of a constant", node):
            device.from_host(array, buffer)
        return buffer

    def _buffers(self, ns: dict[str, Any], stream_slots: StreamSlots, canaries: Canaries | None) -> None:
        """One block of each memory space, cut into the planned buffers."""
        for space, roots in self._roots.items():
            nbytes = self._blocks[space]
            if space in self._lowered.staging:
                stream_slots.bind_staging(ns, self._lowered.staging[space], nbytes, roots)
                continue
            device = self._placed.spaces[space]
            largest = max(roots, key=lambda root: root.nbytes)
            try:
                with asking(device, f"allocate {nbytes} bytes for a step's buffers", largest.node):
                    if nbytes > sys.maxsize:
                        raise MemoryError("no process can address so many")
                    storage = device.allocate(nbytes, device.alignment)
            except ResourceExhaustedError as error:
                explain_exhausted(error, nbytes, roots)
                raise
            for root in roots:
                with asking(device, f"view of {root.nbytes} bytes", root.node):
                    ns[root.name] = device.view(storage, root.offset, root.dtype, root.shape)
                if canaries is not None:
                    canaries.add(device, storage, root, ns[root.name])
                    if space == HOST_MEMORY:
                        poison(ns[root.name])

    def _new(self, root: Root, stream_slots: StreamSlots, canaries: Canaries | None) -> Any:
        """Function that makes a buffer for one step."""
        bounds = canaries if root.nbytes > 0 else None
        if root.device == HOST_MEMORY:
            host = self._placed.spaces[HOST_MEMORY]
            if bounds is not None:
                return bounds.maker(host, host.allocate, root)
            if root.nbytes >= _LARGE and root.dtype.size:
                from graphdock_executor.straight_line.recycled import Recycled, can_recycle  # few steps return so much

                if can_recycle():
                    return Recycled(root.shape, root.dtype.np)
            return functools.partial(np.empty, root.shape, root.dtype.np)
        device = self._placed.spaces[root.device]
        if root.node is not None and root.node.device is not None:
            own = self._placed.device_of(root.node)
            device = own if own.memory_space == root.device else device
        worker = worker_of(device, stream_slots.of)
        if bounds is not None and bounds.keeps(device):
            return bounds.maker(device, worker.allocate, root)
        return functools.partial(worker.empty, root.dtype, root.shape)

    def _streams(self, ns: dict[str, Any], stream_slots: StreamSlots) -> _Streams:
        found = _Streams({}, {})
        for name, (identity, device) in self._lowered.streams.items():
            stream = ns[name.text] = self._placed.stream(identity)
            found.of_op.setdefault(identity.name, []).append(stream)
            if device in stream_slots.of:
                stream.slot = 8 * len(found.arguments.setdefault(device, []))
                found.arguments[device].append(stream)
        return found

    def _kernels(
        self,
        ns: dict[str, Any],
        called: dict[str, Any],
        bounds: Sequence[Bound | None],
        stream_slots: StreamSlots,
        token: CancellationToken,
        canaries: Canaries | None,
    ) -> list[FirstCallCheck]:
        """Make what statements call, and the views that are made once; returns what is checked at its first call."""
        firsts: list[FirstCallCheck] = []
        known: dict[tuple[int, int] | None, Watched] = {}
        setups = {setup.kernel: setup for setup in self._lowered.setups}
        for build, bound in zip(self._lowered.builds, bounds, strict=True):
            if bound is None:
                ns[build.name.text] = self._placed.functions(build.node)
                continue
            # nodes that share a kernel were told the same, but for what set_shape promises of each
            shares = build.prepared is None and build.node.guard is None
            key = (id(bound), id(build.told)) if shares else None
            if build.prepared is not None:
                bound = self._bound(build, build.prepared, ns, stream_slots, token)
            if "waits" in build.node.opdef.effects:
                bound = replace(bound, compute=_waiting(bound.compute, token))
            name = build.name.text
            ns[name] = bound.compute
            if canaries is not None:
                from graphdock_executor.kernel_sanitizer import sanitize

                ns[name] = sanitize(bound, _context(build, stream_slots), canaries)
            else:
                watched = known.get(key)
                if watched is None:
                    marks = build.kernel is None or "all_or_nothing" not in build.kernel.modes
                    context = _context(build, stream_slots)
                    watched = Watched(bound, context, marks, build.prepared is not None)
                    if key is not None:
                        known[key] = watched
                # a kernel that joins others is told them themselves
                joins = build.prepared is not None and build.prepared.joins is not None
                if watched and not (joins and not watched.check.outputs):
                    first = ns[name] = FirstCallCheck(bound.compute, watched, name, ns, called, token)
                    firsts.append(first)
            for literal, index in build.literals:
                assert bound.args is not None
                item = bound.args[index]
                assert isinstance(item, Lit)
                ns[literal.text] = item.value
            setup = setups.get(build.name)
            if setup is not None:
                _set_up(setup, build.node, ns)
        return firsts

    def _bound(
        self,
        build: Build,
        prepared: Prepared,
        ns: Mapping[str, Any],
        stream_slots: StreamSlots,
        token: CancellationToken,
    ) -> Bound:
        """A prepared kernel, bound to the buffers of this instance."""
        ctx = _context(build, stream_slots)
        buffers = tuple([None if name is None else name.value(ns) for name in build.static])
        debug = self._placed.debug
        facts = (ctx.node, ctx.inputs, ctx.outputs, ctx.device, ctx.queue, ctx.threads)
        versions = tuple([None if v is None else functools.partial(getattr, v, "version") for v in build.lasting])
        context = BindContext(*facts, buffers, debug, token.check, functions=ctx.functions, versions=versions)
        try:
            with self._lock:
                return prepared.facts(prepared.bind(context))
        except Exception as error:  # noqa: BLE001 - whatever a kernel raises is raised again with its node
            from graphdock.contracts.kernel_errors import kernel_error

            explained = kernel_error(error, build.node, "could not be bound")
            if explained is error:
                raise
            raise explained from error


def _canaries() -> Canaries:
    from graphdock_executor.canaries import Canaries

    return Canaries()


def _context(build: Build, stream_slots: StreamSlots) -> BuildContext:
    """Facts for a kernel, with the queue of this instance's stream slot."""
    assert build.ctx is not None
    stream_slot = stream_slots.of.get(build.ctx.device)
    return build.ctx if stream_slot is None else replace(build.ctx, queue=stream_slot.queue)


def _may_call_python(node: PlanNode) -> bool:
    """Return whether a function of the program may run on the step's thread: a host function, or what a resource was given.

    A kernel that waits and takes a graph, or finds its resource by itself, may be an iterator, whose stages run there.
    """
    op = node.opdef
    if node.verb == "host" or "waits" not in op.effects:
        return node.verb == "host"
    return any(attr.type == "func" for attr in op.attrs) or not any(arg.resource for arg in op.inputs)


def _waiting(compute: Callable[..., Any], token: CancellationToken) -> Callable[..., Any]:
    """The kernel of an op that waits, as a function that returns once what it waits for is there."""

    from concurrent.futures import Future  # few plans wait

    from graphdock.contracts.waiting import wait_for

    def wait(*args: Any) -> Any:
        result = None
        try:
            result = compute(*args)
            return wait_for(result, token) if isinstance(result, Future) else result
        except BaseException:  # an interrupt that comes before the wait begins ends it too
            if isinstance(result, Future):
                result.cancel()
            raise

    return wait


def _built(build: Build, stream_slots: StreamSlots) -> Bound | None:
    """The kernel, bound to the queue of its device's stream slot."""
    if build.kernel is None:
        return None
    if build.prepared is not None:
        return build.prepared.facts()
    return build_kernel(build.kernel, _context(build, stream_slots))


def _set_up(setup: Setup, node: PlanNode, ns: dict[str, Any]) -> None:
    """Make the views that are made once."""
    try:
        made = setup.kernel.value(ns)(*[a.value(ns) for a in setup.args])
    except Exception as error:  # noqa: BLE001 - whatever a kernel raises is raised again with its node
        from graphdock.contracts.kernel_errors import kernel_error

        explained = kernel_error(error, node)
        if explained is error:
            raise
        raise explained from error
    if len(setup.names) == 1:
        ns[setup.names[0].text] = made
    else:
        ns.update(zip([n.text for n in setup.names], made, strict=True))


def _recording(body: Any, device: Device, stream_slots: StreamSlots) -> Any:
    """Function that runs a recorded part of the step."""
    if device in stream_slots.of:
        return Recording(body, stream_slots.of[device].queue.capture)
    from graphdock_executor.kernel_sanitizer import unchecked

    device.activate()
    with unchecked():
        return device.capture(body) or body
