"""Rows of kernels. Every output is a buffer of its own, which nobody writes again while anybody knows it: many may read it at once.
Small ones, and all whose shapes are not known, are in mode ``fresh``; large ones are planned over memory that is used again.

Most kernels take values of the step and nothing else, and are called by one line. Others take variables, which may have to be
locked or copied from other devices; wait; or are dear, and may be handed to the pool.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from graphdock.contracts import (
    FRESH,
    HOST_MEMORY,
    SCALAR,
    ArgInfo,
    BindContext,
    Bound,
    BuildContext,
    In,
    Lit,
    Out,
    OutInfo,
    PlanNode,
    build_kernel,
    errors,
)
from graphdock.contracts.ir import arg_of
from graphdock.contracts.kernel_errors import kernel_error
from graphdock.contracts.runtime.resources import Variable, unset
from graphdock.contracts.runtime.return_check import ReturnCheck
from graphdock.contracts.streams import streams_of

from graphdock_dataflow.calls import Fire, caller, taker
from graphdock_dataflow.checks import finite, results_checked, rule_checked, with_refusals
from graphdock_dataflow.level import EMPTY, Row
from graphdock_dataflow.planned import can_recycle, planned, writing
from graphdock_dataflow.traces import timed, waited
from graphdock_dataflow.transfers import copied, copy_to, fenced, from_host, read_only, to_host

if TYPE_CHECKING:
    from graphdock_dataflow.instance import Instance, Runnable

__all__ = ["kernel"]


def kernel(instance: Instance, level: Runnable, row: Row, number: int) -> Fire:
    """Calls the node's kernel, or computes it as a small number of the host."""
    node = row.node
    assert node is not None
    placed = instance.placed
    if node.outputs and placed.home.get(node.outputs[0]) == SCALAR:
        return _called(level, number, placed.functions(node), [s for s in row.reads if s is not None], row.makes)
    return _Kernel(instance, level, row, node, number).begin()


@dataclass
class _Handle:
    """A resource among a kernel's inputs.

    Attributes:
      position: of the input. ``places``: where it stands among the arguments.
      writes: whether the kernel may write it.
    """

    position: int
    resource: Any
    writes: bool
    places: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class _Lease:
    """A kernel that one call at a time uses, and the arguments that are its own: scratch buffers and objects, by position."""

    compute: Callable[..., Any]
    own: dict[int, Any]


class _Kernel:
    """The kernel of one node in one context.

    Attributes:
      fire: what its row does. ``first``: what it does once, or in debug mode always, when what it returns is checked.
    """

    def __init__(self, instance: Instance, level: Runnable, row: Row, node: PlanNode, number: int) -> None:
        self.instance, self.level, self.row, self.node, self.number = instance, level, row, node, number
        placed = self.placed = instance.placed
        self.device = placed.device_of(node)
        self.handles = [
            _Handle(i, instance.resource(v), arg.access != "reads")
            for i, (v, arg) in enumerate(zip(node.inputs, arg_of(node), strict=True))
            if v.dtype.name == "resource"
        ]
        fresh = self._context()
        recycles = can_recycle(placed, node) and self.instance.returned.isdisjoint(node.outputs)
        self.context = planned(fresh, node in instance.dear) if recycles else fresh
        self.bound = self._bind()
        if self.bound.within is not None:
            instance.within[self.bound.within] = None
        self.streams: list[Any] = []
        self.args = self._args(self.bound)
        self.compute = timed(instance, node, "kernel", fenced(self.device, self.bound.compute, self.streams))
        self.take = results_checked(placed, row, taker(row.makes))
        self.check = ReturnCheck(fresh)
        self._idle: list[_Lease] = [_Lease(self.compute, {})]

    # -- making it

    def _context(self) -> BuildContext:
        placed, node, device = self.placed, self.node, self.device
        infos = []
        resources = {h.position: h.resource for h in self.handles}
        for i, (value, arg, space) in enumerate(zip(node.inputs, arg_of(node), placed.needs(node), strict=True)):
            resource = resources.get(i)
            if isinstance(resource, Variable):
                where = device.memory_space
                infos.append(ArgInfo(arg.name, resource.dtype, resource.dims, where, None, True, True))
            elif resource is not None:
                infos.append(ArgInfo(arg.name, value.dtype, (), HOST_MEMORY))
            else:
                infos.append(ArgInfo(arg.name, value.dtype, value.shape, space or HOST_MEMORY, node.constant(i)))
        names = node.opdef.outputs
        outs = []
        for i, value in enumerate(node.outputs):
            name = names[i if len(names) == len(node.outputs) else 0].name
            used = self.row.makes[i] not in self.row.drops
            outs.append(OutInfo(name, value.dtype, value.shape, placed.home[value], FRESH, used))
        return BuildContext(
            node, tuple(infos), tuple(outs), device, device.queue, placed.threads, functions=placed.function
        )

    def _count_planned(self) -> int:
        """Number of outputs that it is given memory for: all or none."""
        return 0 if self.context.fresh else len(self.context.outputs)

    def _bind(self) -> Bound:
        """The kernel, built once more; what it computes it returns."""
        prepared, told = self.placed.prepared.get(self.node), self.context
        given = self._count_planned()
        try:
            if prepared is None:
                bound = build_kernel(self.placed.kernels[self.node], told)
            else:
                nowhere = (None,) * (len(told.inputs) + given + len(prepared.scratch))
                known = told.node, told.inputs, told.outputs, told.device, told.queue, told.threads
                check = self.instance.token.check
                context = BindContext(*known, nowhere, self.placed.debug, check, functions=told.functions)
                bound = prepared.facts(prepared.bind(context))
        except Exception as error:  # noqa: BLE001 - whatever a kernel raises is raised again with its node
            explained = kernel_error(
                error, self.node, "could not be built" if prepared is None else "could not be bound"
            )
            if explained is error:
                raise
            raise explained from error
        return replace(bound, compute=writing(bound, told, self.instance.blocks)) if given else bound

    def _args(self, bound: Bound) -> list[int]:
        """Slot of each argument of ``compute``; of a handle one that is set when it is called."""
        level, device = self.level, self.device
        inputs = [EMPTY if slot is None else slot for slot in self.row.reads]
        for handle in self.handles:
            inputs[handle.position] = level.keep(self._stays(handle))
            handle.places = (handle.position,)
            if bound.args is not None:
                items = enumerate(bound.args)
                handle.places = tuple([at for at, a in items if isinstance(a, In) and a.index == handle.position])
        for name in streams_of(self.node):
            stream = self.placed.stream(name)
            self.instance.streams.setdefault(name.name, []).append(stream)
            self.streams.append(stream)
            inputs.append(level.keep(stream))
        scratch = [level.keep(device.empty(s.dtype, s.shape)) for s in bound.scratch]
        places = [EMPTY] * self._count_planned()  # what is written there is known when it is called
        if bound.args is None:
            return [*inputs, *places, *scratch]
        buffers = [*(places or [EMPTY] * len(self.node.outputs)), *scratch]
        return [
            level.keep(a.value) if isinstance(a, Lit) else inputs[a.index] if isinstance(a, In) else buffers[a.index]
            for a in bound.args
        ]

    def _stays(self, handle: _Handle) -> Any:
        """What the kernel gets for a handle in every step; None where that is known only when it is called."""
        resource = handle.resource
        if not isinstance(resource, Variable):
            return resource.open()
        here = resource.device.memory_space == self.device.memory_space
        return resource.buffer if here and resource.static else None

    # -- running it

    def begin(self) -> Fire:
        """What the row does: at first, or in debug mode always, what the kernel returns is checked."""
        node, row = self.node, self.row
        if node in self.instance.dear:
            fire: Fire = self._hand_over
        elif self._is_plain():
            fire = _called(self.level, self.number, self.compute, self.args, row.makes)
        else:
            fire = self._launch_and_take
        self.fire = self._around(fire)
        first = self.check.outputs and not (self.placed.debug and node in self.instance.dear)
        return self._around(self._first) if first else self.fire

    def _around(self, fire: Fire) -> Fire:
        if self.streams and self.level.table.inside:
            fire = self._at_iterations(fire)
        return rule_checked(self.placed, self.row, with_refusals(self.placed, self.row, fire))

    def _is_plain(self) -> bool:
        node = self.node
        return not (
            self.handles
            or self.bound.retains
            or "waits" in node.opdef.effects
            or self.placed.check_numerics
            or (node.guard is not None and node.guard.promised)
        )

    def _at_iterations(self, fire: Fire) -> Fire:
        streams = self.streams

        def at(values: list[Any]) -> Any:
            for stream in streams:
                stream.at(*values[0].iterations)
            return fire(values)

        return at

    def _launch_and_take(self, values: list[Any]) -> bool:
        result = None
        try:
            result = self._launch(self._given(values))
            return self._taken(values, result)
        except BaseException:  # an interrupt that comes before the step knows of the wait ends it
            _cancel(result)
            raise

    def _taken(self, values: list[Any], result: Any) -> bool:
        if isinstance(result, Future):
            run = values[0].run
            take = waited(run.step, self.node, self.take) if self.instance.traced else self.take
            waits: bool = run.wait(values[0], self.number, result, take)
            return waits
        self.take(values, result)
        return False

    def _given(self, values: list[Any]) -> list[Any]:
        given = [values[slot] for slot in self.args]
        if self.bound.retains:
            kept = {self.row.reads[i] for i in self.bound.retains}
            given = [copied(self.device, g) if slot in kept else g for slot, g in zip(self.args, given, strict=True)]
        return given

    def _read_only(self, values: list[Any]) -> list[Any]:
        """As :meth:`_given`, with inputs that can't be written."""
        kept = frozenset(self.row.reads)
        return [read_only(g) if slot in kept else g for slot, g in zip(self.args, self._given(values), strict=True)]

    def _launch(self, given: list[Any]) -> Any:
        """Call the kernel, with locks where the step holds none, and with copies of variables that live elsewhere."""
        if not self.handles:
            return self.compute(*given)
        if self.placed.holds:
            return self._on_resources(self.compute, given)
        reads = [h.resource for h in self.handles if not h.writes]
        writes = [h.resource for h in self.handles if h.writes]
        return self.placed.access(reads, writes)(self.instance.token, self._on_resources, self.compute, given)

    def _on_resources(self, compute: Callable[..., Any], given: list[Any]) -> Any:
        device = self.device
        copies: list[tuple[Variable, Any]] = []
        for handle in self.handles:
            variable = handle.resource
            if not isinstance(variable, Variable):
                continue
            if not variable.initialized:
                raise unset(variable)
            buffer = variable.buffer
            if variable.device.memory_space != device.memory_space:
                host = to_host(variable.device, buffer, variable.dtype)
                buffer = host.copy() if device.memory_space == HOST_MEMORY else from_host(device, host, variable.dtype)
                if handle.writes:
                    copies.append((variable, buffer))
            for at in handle.places:
                given[at] = buffer
        result = None
        try:
            result = compute(*given)
            if not isinstance(result, Future):
                self._written(copies)
            return result
        except BaseException:
            _cancel(result)
            raise

    def _written(self, copies: list[tuple[Variable, Any]]) -> None:
        """Bring what the kernel wrote to where variables live, and look for NaN and infinities in it."""
        for variable, buffer in copies:
            copy_to(variable.buffer, variable.device, to_host(self.device, buffer, variable.dtype))
        if self.placed.check_numerics:
            for handle in self.handles:
                variable = handle.resource
                if handle.writes and isinstance(variable, Variable) and variable.dtype.is_floating:
                    finite(variable.device, variable.dtype, variable.name)(variable.buffer)

    # -- on another thread

    def _hand_over(self, values: list[Any]) -> bool:
        """Have the pool call it, unless the scheduler has nothing else to do."""
        activation = values[0]
        run, workers = activation.run, self.instance.workers
        if workers is None or not (activation.ready or run.active or run.handed):
            return self._first(values) if self.placed.debug else self._launch_and_take(values)
        given = self._read_only(values) if self.placed.debug else self._given(values)
        lease = self._idle.pop() if self._idle else self._another()
        for at, item in lease.own.items():
            given[at] = item

        def take(values: list[Any], result: Any) -> None:
            self._idle.append(lease)
            if self.placed.debug:
                self.check(result)
            self.take(values, result)

        call = self._elsewhere if self.bound.within is None else self._elsewhere_within
        future = workers.submit(call, lease.compute, given)
        waits: bool = run.wait(activation, self.number, future, take, handed=True)
        return waits

    def _elsewhere(self, compute: Callable[..., Any], given: list[Any]) -> Any:
        return self._on_resources(compute, given) if self.handles else compute(*given)

    def _elsewhere_within(self, compute: Callable[..., Any], given: list[Any]) -> Any:
        assert self.bound.within is not None
        with self.bound.within:
            return self._elsewhere(compute, given)

    def _another(self) -> _Lease:
        """The kernel once more, for an iteration that runs while another one's is at work."""
        bound = self._bind()
        scratch = [self.device.empty(s.dtype, s.shape) for s in bound.scratch]
        compute = timed(self.instance, self.node, "kernel", bound.compute)
        first = len(self.node.inputs) + len(self.streams) + self._count_planned()
        if bound.args is None:
            return _Lease(compute, dict(enumerate(scratch, first)))
        count = len(self.node.outputs)
        own = {
            at: a.value if isinstance(a, Lit) else scratch[a.index - count]
            for at, a in enumerate(bound.args)
            if not (isinstance(a, In) or (isinstance(a, Out) and a.index < count))
        }
        return _Lease(compute, own)

    # -- the first call

    def _first(self, values: list[Any]) -> bool:
        """Call it with inputs that can't be written, and hold what it returns against what that is to be."""
        try:
            result = self._launch(self._read_only(values))
        except ValueError as error:
            if "read-only" not in str(error) or isinstance(error, errors.GraphdockError):
                raise
            raise self.check.error(
                f"writes to an input: {error}",
                "inputs as they are: others read them too",
                hint="write to a buffer of its own",
            ) from error
        try:
            if not isinstance(result, Future):
                self.check(result)
            if not self.placed.debug:
                self.level.replace(self.number, self.fire)
            return self._taken(values, result)
        except BaseException:
            _cancel(result)
            raise


def _called(
    level: Runnable, number: int, function: Callable[..., Any], args: Sequence[int], makes: Sequence[int]
) -> Fire:
    """A row that calls a function and no more, which the level's text may do in its place."""
    fire = caller(function, args, makes)
    level.calls[number] = fire, function, args, makes
    return fire


def _cancel(result: Any) -> None:
    if isinstance(result, Future):
        result.cancel()
