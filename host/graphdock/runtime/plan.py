"""Plan and Instance: what is immutable and shared, and what one running step owns."""

from __future__ import annotations

import contextvars
import functools
import itertools
import linecache
import struct
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from threading import get_ident
from typing import Any

import numpy as np

from graphdock.contracts.device import HOST_MEMORY, Device
from graphdock.contracts.ir import PlanGraph, PlanNode
from graphdock.contracts.kernel import Bound, BuildContext, Lit
from graphdock.contracts.step import StepContext, StepServices
from graphdock.errors import GraphdockError, InvalidArgumentError, UninitializedError
from graphdock.locks import new_lock
from graphdock.passes.pipeline import PassReport
from graphdock.placement.placer import Placement
from graphdock.runtime.device_error import asking, device_error
from graphdock.runtime.gate import Claim, through
from graphdock.runtime.honesty import honest, unchecked
from graphdock.runtime.host_ops import build_host_op, fetch_any, pull, push, wrap
from graphdock.runtime.kernel_error import kernel_error
from graphdock.runtime.lanes import Lanes, Recording, devices_of, worker_of
from graphdock.runtime.lower import Build, Lowered
from graphdock.runtime.pool import InstancePool
from graphdock.runtime.program.names import Name
from graphdock.runtime.program.printer import print_step
from graphdock.runtime.program.segments import described
from graphdock.runtime.program.statements import Activate, Copy, Fence, Statement
from graphdock.runtime.random_stream import RandomOrdinals, RandomStream
from graphdock.runtime.resources import Access, Resource, ResourceClosed, Variable
from graphdock.runtime.storage import Root, pack

__all__ = ["Instance", "Plan"]

_numbers = itertools.count(1)
#: Instances kept idle per plan; more are made when more steps run at once.
IDLE = 16


class Plan:
    """A compiled step: source, kernels, buffers' places. Immutable; any number of instances run it at once.

    Attributes:
      graph: the plan graph as it was lowered, placed and chosen.
      source: the generated Python source.
      arena_bytes: memory space -> bytes of planned buffers per instance.
      recordings: what a device records, and why each recording ends where it does, in words.
      idle: instances that nobody runs; :meth:`lease` takes from them.
    """

    def __init__(
        self,
        graph: PlanGraph,
        placement: Placement,
        lowered: Lowered,
        spaces: Mapping[str, Device],
        ordinals: RandomOrdinals,
        reports: Sequence[PassReport],
        locked: bool,
        debug: bool,
        translated: int,
        pool: InstancePool,
        services: StepServices,
        timed: bool,
    ) -> None:
        self.graph = graph
        self.placement = placement
        self.reports = tuple(reports)
        self.translated = translated
        self.debug = debug
        self.locked = locked
        self._lowered = lowered
        self._spaces = spaces
        self._ordinals = ordinals
        self._services = services
        printed = print_step(lowered.block, lowered.feeds, lowered.results, "check()" if timed else "")
        self.source, self._statements = printed.text, printed.statements
        self.recordings = described(lowered.segments, lowered.boundaries)
        self.filename = f"<graphdock step {next(_numbers)}>"
        linecache.cache[self.filename] = (len(self.source), None, self.source.splitlines(True), self.filename)
        weakref.finalize(self, linecache.cache.pop, self.filename, None)
        self._code = compile(self.source, self.filename, "exec")
        self.arena_bytes: dict[str, int] = {}
        self._roots: dict[str, list[Root]] = {}
        for root in lowered.roots:
            self._roots.setdefault(root.device, []).append(root)
        for space, roots in self._roots.items():
            owner = lowered.slots.get(space) or spaces[space]
            self.arena_bytes[space] = pack(roots, owner.alignment)
        self._queued = devices_of(lowered)
        self._bounds: list[Any] | None = lowered.first_bounds
        self._constants: dict[str, Any] | None = None
        self.idle: list[Instance] = []
        self.most_idle = IDLE
        self._live: weakref.WeakSet[Instance] = weakref.WeakSet()
        self._pool = pool
        self._lock = new_lock()
        self._closed = False
        self.checked: tuple[tuple[Variable, PlanNode], ...] = tuple(lowered.checked.items())
        held = {*lowered.read, *lowered.written, *lowered.variables.values(), *lowered.states.values()}
        self.resources: tuple[Resource, ...] = tuple(sorted(held, key=lambda r: r.number))
        access = Access(graph, lowered.read, lowered.written) if locked else Access(graph)
        self.claim: Claim = access.claim or Claim("a step that claims nothing")
        self.gates = access.gates
        #: Where the resources are: containers, of which there is rarely more than one.
        self.stores = tuple(sorted({r.store for r in held}, key=lambda s: s.gate.number))
        #: The claims at its only gate, where all that it holds is in one container; ``Instance.run`` writes that case out.
        self.claims = self.gates[0].claims if len(self.gates) == len(self.stores) == 1 else None
        for store in self.stores:
            store.add_user(self)
        self.kernel_nodes = [n for level in graph.all_graphs() for n in level.nodes if n in placement.kernels]

    def lease(self) -> Instance:
        """An instance that nobody else runs; made when none is idle. Give it back once the step has ended.

        Raises:
          ResourceClosed: a resource was reset since the plan was made: make another plan.
        """
        try:
            return self.idle.pop()
        except IndexError:
            instance = self._make()
            self._live.add(instance)
            self._pool.made(self)
            return instance

    def live_bytes(self) -> int:
        """Bytes of planned buffers of all its instances, idle or running."""
        return len(self._live) * sum(self.arena_bytes.values())

    def give_back(self, instance: Instance) -> None:
        self.idle.append(instance)
        if len(self.idle) > self.most_idle:
            self.drop_instances(self.most_idle)

    def drop_instances(self, keep: int = 0) -> None:
        """Free the memory of idle instances, at once, but for so many."""
        idle = self.idle
        while len(idle) > keep:
            try:
                instance = idle.pop()
            except IndexError:  # another thread leased it
                return
            instance.free()

    def close(self, error: Callable[[], BaseException]) -> None:
        """Free all instances: the idle ones now; those whose step runs once it has stopped, each with an error of its own."""
        self.most_idle = 0
        self.drop_instances()
        for instance in list(self._live):
            instance.context.cancel(error())

    def resources_closed(self) -> None:
        """Its store tells it that resources it holds may be closed: no idle instance may keep their memory."""
        if any(r.closed for r in self.resources):
            self.most_idle = 0
        self.drop_instances()

    def _make(self) -> Instance:
        lanes = Lanes(self._queued, own=not self.locked)
        try:
            with lanes.entered():
                return self._made_on(lanes)
        except BaseException:
            lanes.close()
            raise

    def _made_on(self, lanes: Lanes) -> Instance:
        lowered = self._lowered
        with self._lock:
            bounds, self._bounds = self._bounds, None
            if bounds is None or lanes.of:
                bounds = [_built(b, lanes) for b in lowered.builds]
            if self._constants is None:
                self._constants = {
                    name.text: self._constant(node, space, dtype)
                    for name, (node, space, dtype) in lowered.constants.items()
                }
        ns: dict[str, Any] = dict(self._constants)
        ns.update(_HELPERS)
        ns.update({name.text: item for name, item in lowered.objects.items()})
        for space, roots in self._roots.items():
            nbytes = self.arena_bytes[space]
            if space in lowered.slots:
                lanes.bind_slots(ns, lowered.slots[space], nbytes, roots)
                continue
            device = self._spaces[space]
            largest = max(roots, key=lambda root: root.nbytes)
            with asking(device, f"allocate {nbytes} bytes for a step's buffers", largest.node):
                storage = device.allocate(nbytes, device.alignment)
            for root in roots:
                with asking(device, f"view of {root.nbytes} bytes", root.node):
                    ns[root.name] = device.view(storage, root.offset, root.dtype, root.shape)
                if self.debug and space == HOST_MEMORY:
                    _poison(ns[root.name])
        for name, resource in lowered.variables.items():
            ns[name.text] = resource.open()
        for name, variable in lowered.states.items():
            variable.open()
            ns[name.text] = variable
        lanes.bind(ns, lowered)
        context = StepContext(self._services)
        ns["check"], ns["token"] = context.token.check, context.token
        for name, root in lowered.makers.items():
            if root.device == HOST_MEMORY:
                ns[name.text] = functools.partial(np.empty, root.shape, root.dtype.np)
            else:
                worker = worker_of(self._spaces[root.device], lanes.of)
                ns[name.text] = functools.partial(worker.empty, root.dtype, root.shape)
        streams: dict[str, list[RandomStream]] = {}
        arguments: dict[Device, list[RandomStream]] = {}
        for name, (node, device) in lowered.streams.items():
            stream = self._ordinals.stream(node.origin, int(node.attrs.get("seed", 0)), int(node.attrs.get("seed2", 0)))
            ns[name.text] = stream
            streams.setdefault(node.origin, []).append(stream)
            if device in lanes.of:
                stream.slot = 8 * len(arguments.setdefault(device, []))
                arguments[device].append(stream)
        for build, bound in zip(lowered.builds, bounds, strict=True):
            if bound is None:
                ns[build.name.text] = build_host_op(build.node)
                continue
            ns[build.name.text] = honest(bound, _context(build, lanes)) if self.debug else bound.compute
            for literal, index in build.literals:
                item = bound.args[index]
                assert isinstance(item, Lit)
                ns[literal.text] = item.value
        for setup in lowered.setups:
            made = setup.kernel.value(ns)(*[a.value(ns) for a in setup.args])
            if len(setup.names) == 1:
                ns[setup.names[0].text] = made[0] if isinstance(made, (tuple, list)) else made
            else:
                ns.update(zip([n.text for n in setup.names], made, strict=True))
        ns["__name__"] = "graphdock.step"
        called = {name: value for name, value in ns.items() if callable(value)}
        exec(self._code, ns)  # noqa: S102 - the source is our own
        for segment in lowered.segments:
            assert segment.device is not None
            body = ns[f"{segment.replay.text}_body"]
            if segment.device in lanes.of:
                replay: Any = Recording(body, lanes.of[segment.device].queue.capture)
            else:
                segment.device.activate()
                with unchecked():
                    replay = segment.device.capture(body) or body
            called[segment.replay.text] = ns[segment.replay.text] = replay
        if lanes.of:
            return _LaneInstance(self, ns, called, context, streams, lanes, arguments)
        return Instance(self, ns, called, context, streams, lanes)

    def _constant(self, node: PlanNode, space: str, dtype: Any) -> Any:
        array = node.attrs["value"]
        if space == HOST_MEMORY:
            return array
        device = self._spaces[space]
        with asking(device, f"empty of {array.nbytes} bytes for a constant", node):
            buffer = device.empty(dtype, array.shape)
        with asking(device, "from_host of a constant", node):
            device.from_host(array, buffer)
        return buffer

    def statement_at(self, error: BaseException) -> Statement | None:
        """The statement that raised, from the traceback's line in the generated source."""
        trace, found = error.__traceback__, None
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == self.filename:
                found = self._statements[trace.tb_lineno]
            trace = trace.tb_next
        return found

    def explain(self, error: Exception) -> None:
        """Raise what a step's error means to the user, ``from`` it; return where it says that itself, with its node filled in.

        The locals of the generated source are let go: whoever keeps the error need not keep the step's values.
        """
        statement = self.statement_at(error)
        trace = error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == self.filename and not self.debug:
                trace.tb_frame.clear()
            trace = trace.tb_next
        if statement is None or statement.node is None or isinstance(statement, Fence):
            return
        asked = self._asked(statement)
        if asked is None:
            explained = kernel_error(error, statement.node)
        else:
            explained = device_error(error, *asked, statement.node)
        if explained is not error:
            try:
                raise explained from error
            finally:
                del explained  # a frame that held it would make a cycle of it and its traceback

    def _asked(self, statement: Statement) -> tuple[Device, str] | None:
        """The device, and what it is asked for, where a statement asks no kernel."""
        if isinstance(statement, (Copy, Activate)) and isinstance(statement.method, Name):
            return self._lowered.methods[statement.method]
        return None

    def check_resources(self) -> None:
        """See that what the plan holds is there and that what it reads has a value.

        Raises:
          ResourceClosed: a resource was reset since the plan was made: make another plan.
          UninitializedError: a variable that it reads was never assigned.
        """
        for resource in self.resources:
            if resource.closed:
                raise ResourceClosed(f"{resource} was reset since this plan was made")
        for state, node in self.checked:
            if not state.initialized:
                raise _unset(state, node.origin, node.site)


def _context(build: Build, lanes: Lanes) -> BuildContext:
    """What a kernel is told, with the queue of this instance's lane."""
    assert build.ctx is not None
    lane = lanes.of.get(build.ctx.device)
    return build.ctx if lane is None else replace(build.ctx, queue=lane.queue)


def _built(build: Build, lanes: Lanes) -> Bound | None:
    """The kernel, bound to the queue of its device's lane."""
    if build.kernel is None:
        return None
    made = build.kernel.build(_context(build, lanes))
    return made if isinstance(made, Bound) else Bound(made)


class Instance:
    """One runnable copy of a plan: its buffers, bound kernels and function. One step at a time, on any thread.

    It survives the error of a step: the next one finds it as the first did.

    Args:
      namespace: the globals of the generated source.
      called: those of them that the source calls, kernels and copies.
    """

    __slots__ = (
        "__weakref__",
        "_epochs",
        "_release",
        "_step",
        "_streams",
        "claim",
        "context",
        "epoch",
        "plan",
        "step",
    )

    def __init__(
        self,
        plan: Plan,
        namespace: dict[str, Any],
        called: dict[str, Any],
        context: StepContext,
        streams: dict[str, list[RandomStream]],
        lanes: Lanes,
    ) -> None:
        self.context = context
        self.plan = plan
        self.claim = plan.claim
        self.step: Callable[..., Any] = namespace["step"]
        self._streams = streams
        #: Epochs of the stores when the resources were last checked; the first one also by itself.
        self._epochs: list[int] = []
        self.epoch = -1
        # The functions of the generated source know the namespace that holds them: a cycle, which is broken here.
        self._release = weakref.finalize(self, _free, namespace, called, lanes)
        self._release.atexit = False
        context.interrupt = functools.partial(_interrupt, namespace, called)
        self._step = self.step
        if plan.locked:
            # Floating-point warnings are off inside a step; a prepared context costs 12 ns where np.errstate costs 1 us.
            prepared = contextvars.copy_context()
            prepared.run(_quiet)
            self._step = functools.partial(prepared.run, self.step)

    def run(self, feeds: Sequence[Any]) -> Any:
        """Run one step; raises the kernel's error with the node and the user's line.

        Holds a claim on the plan's resources for the whole step, unless the plan may block or calls Python functions. The way
        through the gate is explained in :mod:`graphdock.runtime.gate`.

        Raises:
          ResourceClosed: a resource was reset since the plan was made; nothing has run.
          DeadlineExceededError: its turn did not come in time, or it did not end in time.
        """
        plan = self.plan
        if plan.debug:
            feeds = [_read_only(f) for f in feeds]
        claims = plan.claims
        try:
            try:
                if claims is not None:
                    claims[self] = get_ident()
                    if len(claims) > 1:
                        plan.gates[0].wait(self, self.context.token)
                    if plan.stores[0].epoch != self.epoch:
                        self._check_resources()
                elif plan.stores:
                    return through(plan.gates, self, self.context.token, self._run_checked, feeds)
                for name, streams in self._streams.items():
                    ordinal = self.context.services.ordinal(name)
                    for stream in streams:
                        stream.begin(ordinal)
                return self._step(*feeds)
            finally:
                if claims is not None:
                    claims.pop(self, None)
                    if plan.gates[0].waiting:
                        plan.gates[0].wake(self)
        except Exception as error:  # noqa: BLE001 - whatever a kernel raises is raised again with its node
            if error is not self.context.token.error or isinstance(error, GraphdockError):
                plan.explain(error)
            raise
        finally:
            if claims is not None and self in claims:
                plan.gates[0].leave(self)

    def _check_resources(self) -> None:
        epochs = [s.epoch for s in self.plan.stores]
        if epochs != self._epochs:
            self.plan.check_resources()
            self._epochs = epochs
            self.epoch = epochs[0]

    def _run_checked(self, feeds: Sequence[Any]) -> Any:
        self._check_resources()
        for name, streams in self._streams.items():
            ordinal = self.context.services.ordinal(name)
            for stream in streams:
                stream.begin(ordinal)
        return self._step(*feeds)

    def free(self) -> None:
        """Let go of its memory at once. It can't run any more."""
        self.context.interrupt = None
        self._release()


class _LaneInstance(Instance):
    """An instance of a step that gives work to queues."""

    __slots__ = ("_arguments", "_lanes")

    def __init__(
        self,
        plan: Plan,
        namespace: dict[str, Any],
        called: dict[str, Any],
        context: StepContext,
        streams: dict[str, list[RandomStream]],
        lanes: Lanes,
        arguments: Mapping[Device, Sequence[RandomStream]],
    ) -> None:
        super().__init__(plan, namespace, called, context, streams, lanes)
        self._lanes = lanes
        self._arguments = arguments
        self._step = functools.partial(self._until_fence, self._step)

    def run(self, feeds: Sequence[Any]) -> Any:
        """As :meth:`Instance.run`; it waits for its lanes before it claims anything."""
        with self._lanes.held():
            return super().run(feeds)

    def _until_fence(self, step: Callable[..., Any], *feeds: Any) -> Any:
        """The work of a step, up to its fence: its claims last as long."""
        with self._lanes.current({d: _packed(streams) for d, streams in self._arguments.items()}):
            return step(*feeds)


def _free(namespace: dict[str, Any], called: dict[str, Any], lanes: Lanes) -> None:
    called.clear()
    namespace.clear()
    lanes.close()


def _interrupt(namespace: dict[str, Any], called: Mapping[str, Any], error: BaseException | None) -> None:
    """Let every kernel and copy that a running step is still to call raise ``error`` instead; None puts them back.

    Statements look their kernels up by name when they run, so that a step can be stopped without a check in each of them.
    """
    if error is None:
        namespace.update(called)
        return

    def stop(*args: Any, **kwargs: Any) -> Any:
        raise error

    namespace.update(dict.fromkeys(called, stop))


def _settled(settle: Callable[[], None], function: Callable[..., Any], *args: Any) -> Any:
    """Call what gives a queue work, and wait for that work."""
    result = function(*args)
    settle()
    return result


def _packed(streams: Sequence[RandomStream]) -> bytes:
    """The step arguments of a device: the ordinal of each random op."""
    return struct.pack(f"<{len(streams)}Q", *[s.ordinal for s in streams])


def _read_only(array: Any) -> Any:
    view = array.view()
    view.flags.writeable = False
    return view


def _finite(array: Any, name: str) -> None:
    if not np.isfinite(array).all():
        raise InvalidArgumentError(f"{name} holds NaN or infinity (check_numerics)")


def _quiet() -> None:
    np.seterr(all="ignore")


def _unset(state: Variable, op: str | None = None, site: str | None = None) -> UninitializedError:
    """The error of a read before the first assignment."""
    return UninitializedError(
        f"variable {state.name!r} is read before it was assigned",
        op=op,
        site=site,
        hint="run tf.global_variables_initializer() first",
    )


def _raise_unset(state: Variable) -> None:
    raise _unset(state)


def _keep(array: Any) -> Any:
    """A contiguous copy of its own."""
    return np.array(array, order="C", copy=True)


def _poison(buffer: Any) -> None:
    """Fill a dead buffer with what no correct result contains."""
    if isinstance(buffer, np.ndarray) and buffer.dtype.kind != "O":
        buffer.reshape(-1).view(np.uint8).fill(0xFF) if buffer.flags.c_contiguous else None


_HELPERS: dict[str, Any] = {
    "fetch_any": fetch_any,
    "fill": np.copyto,
    "finite": _finite,
    "keep": _keep,
    "poison": _poison,
    "pull": pull,
    "push": push,
    "settled": _settled,
    "unset": _raise_unset,
    "wrap": wrap,
}
