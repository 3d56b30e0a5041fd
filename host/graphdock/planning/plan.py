"""Plan: what a session keeps of one form of step. What was decided, the program that runs it, and its idle contexts."""

from __future__ import annotations

import contextlib
import itertools
import weakref
from collections.abc import Callable, Mapping, Sequence
from threading import get_ident
from typing import TYPE_CHECKING, Any, ClassVar

from graphdock.contracts.executor import PlacedGraph
from graphdock.contracts.ir import arg_of
from graphdock.contracts.runtime.access import Access
from graphdock.contracts.runtime.resource_lock import LockSet, ResourceLock, with_locks
from graphdock.contracts.runtime.resources import Resource, ResourceClosed, Variable, unset
from graphdock.contracts.step import StepContext, StepServices, TraceEvent
from graphdock.planning.plan_builder import PlanBuilder
from graphdock.planning.pool import InstancePool

if TYPE_CHECKING:
    from graphdock.planning.derived import Derived

__all__ = ["Plan", "Step", "make_plan"]

#: Counts uses of plans, so that they can be told by age.
_uses = itertools.count(1)
#: Contexts kept idle per plan; more are made when more steps run at once.
IDLE = 16


class Step(StepContext):
    """A context of one plan.

    Attributes:
      lock_set: what its steps hold, of these ``locks``. ``memory``: called when the context is gone, so that its memory no longer
        counts.
      epochs: of the plan's stores when its resources were last checked; ``epoch``: the first of them by itself, or -1 where each
        step must look (``follows``) for what is in flight there, or for what is derived.
    """

    __slots__ = ("epoch", "epochs", "follows", "lock_set", "locks", "memory")

    def __init__(self, services: StepServices, lock_set: LockSet, locks: Sequence[ResourceLock]) -> None:
        super().__init__(services)
        self.lock_set = lock_set
        self.locks = locks
        self.follows = False
        self.epoch = -1
        self.epochs: list[int] = []
        self.memory: Callable[[], Any] | None = None

    def release_locks(self) -> None:
        for lock in self.locks:
            lock.release(self)


class Plan:
    """A plan of a session. Any number of steps run it at once, each in a context that it leases.

    Attributes:
      graph: the plan graph, placed and chosen. ``placement``: the kernels. ``kernel_nodes``: the nodes that have one.
      program: what runs it; made by the executor named ``executor``. ``refusals``: of those
        that were asked before it.
      translated: nodes before pruning and passes. ``reports``: what the passes did. ``changes``:
        operation -> the passes that changed nodes of it, of a plan that is explained. ``stages``: what planning took.
      loops: what became of loops that could have been written out. ``notes``: what else passes said.
      later: functions that compile kernels which it does without; a plan made after that has them.
      costs: ``costs()`` is the cost model of its session.
      resources: all that its steps touch; ``touched``: with whether they do more than read it; ``written``: what they write, and
        lock before. ``lock_set``: what they hold while
        they run.
      derived: values made of its variables, which a step makes again where these were written.
      stores: the containers of its resources, of which there is rarely more than one. ``locks``: of those containers.
      latest, previous: when the plan was used last, and the time before (None: never); :meth:`used` counts.
      idle: contexts that no step runs in; :meth:`lease` takes from them. At most ``most_idle`` are kept.
      run: ``run(step, feeds)`` runs one step and returns its results, under its locks on the plan's resources unless the step may
        wait for others. It raises the kernel's error with the node and the user's line; and, before anything has run,
        ResourceClosed when a resource was reset since the plan was made, UninitializedError when a variable was not assigned.
    """

    run: Callable[[Step, Sequence[Any]], Any]

    def __init__(
        self, draft: PlanBuilder, pool: InstancePool, access: Access, touched: Sequence[tuple[Resource, bool]]
    ) -> None:
        assert draft.program is not None
        kernels = draft.placement.kernels
        self.graph = draft.graph
        self.placement = draft.placement
        self.reports = tuple(draft.reports)
        self.changes = {} if draft.history is None else draft.history.changes
        self.loops = () if draft.loop_writer is None else tuple(draft.loop_writer.notes)
        self.later = tuple(draft.later or ())
        self.notes = tuple(f"pass {name}: {said}" for name, said in draft.said())
        if self.later:
            what, they = ("kernel is", "it") if len(self.later) == 1 else ("kernels are", "them")
            said = f"{len(self.later)} {what} compiled while its steps run, and a plan with {they} takes its place"
            self.notes = (*self.notes, said)
        self.translated = draft.translated
        self.program = draft.program
        self._sources = {n.name: p.source for n, p in draft.prepared.items() if p.source is not None}
        self.stages = (*draft.stages, *self.program.stages)
        self.executor, self.refusals = draft.executor, tuple(draft.refusals)
        self.kernel_nodes = [n for level in draft.graph.all_graphs() for n in level.nodes if n in kernels]
        self.latest = next(_uses)
        self.previous: int | None = None
        self._runs = False
        self.idle: list[Step] = []
        self.most_idle = IDLE
        self._live: weakref.WeakSet[Step] = weakref.WeakSet()
        self._pool = pool
        self._services = draft.setting.services
        self.costs = draft.setting.costs
        self.touched = tuple(sorted(touched, key=lambda item: item[0].number))
        self.resources: tuple[Resource, ...] = tuple([r for r, _ in self.touched])
        self.lock_set: LockSet = access.lock_set or LockSet("a step that locks nothing")
        self.locks = access.locks
        self.derived = _derived(draft)
        self.written = tuple([r for r, writes in self.touched if writes and r.locked_by_steps])
        self.stores = tuple(sorted({r.store for r in self.resources}, key=lambda s: s.resource_lock.number))
        for store in self.stores:
            store.add_user(self)

    @property
    def source(self) -> str:
        """The generated source, where the program has one."""
        return self.program.source

    def compiled(self) -> dict[str, str]:
        """Name of a node -> the text that its kernel was compiled from, of those that tell."""
        return {name: source() for name, source in self._sources.items()}

    @property
    def arena_bytes(self) -> dict[str, int]:
        """Memory space -> bytes of planned buffers per context."""
        return dict(self.program.memory)

    def used(self) -> None:
        """A step of this plan runs now, after one of another plan."""
        self.previous, self.latest, self._runs = self.latest if self._runs else None, next(_uses), True

    def learn(self, events: Sequence[TraceEvent], cold: bool) -> None:
        """Take what a traced step told into the costs of this machine. ``cold``: it was the first of its context."""
        self.costs().observe(self.graph, events, cold)

    def lease(self) -> Step:
        """A context in which no step runs; made when none is idle. Give it back once the step has ended.

        Raises:
          ResourceExhaustedError: another one does not fit into a memory limit. CancelledError: the session was closed meanwhile.
        """
        try:
            return self.idle.pop()
        except IndexError:
            step = Step(self._services, self.lock_set, self.locks)
            self._live.add(step)  # before the pool knows of it: whoever closes all contexts sees this one
            self._pool.take(self, step)
            return step

    def give_back(self, step: Step) -> None:
        """The step has ended, well or not."""
        self.idle.append(step)
        if len(self.idle) > self.most_idle:
            self.drop_idle(self.most_idle)

    def take_back(self, held: list[Step]) -> None:
        """As :meth:`give_back`, of the one context in ``held``, or of none: it is idle in the moment in which it is taken out.

        No interrupt comes between the two, and of two threads one takes it.
        """
        with contextlib.suppress(IndexError):
            self.idle.extend(map(list.pop, [held]))
        if len(self.idle) > self.most_idle:
            self.drop_idle(self.most_idle)

    def live_bytes(self) -> int:
        """Bytes of planned buffers of all its contexts, idle or running."""
        return len(self._live) * sum(self.program.memory.values())

    def drop_idle(self, keep: int = 0) -> None:
        """Free the memory of idle contexts, at once, but for so many."""
        idle = self.idle
        while len(idle) > keep:
            try:
                step = idle.pop()
            except IndexError:  # another thread leased it
                return
            self.program.free(step)
            if step.memory is not None:
                step.memory()

    def close(self, error: Callable[[], BaseException]) -> None:
        """Free all contexts: the idle ones now; the others once their steps have stopped, each with an error of its own."""
        self.most_idle = 0
        self.drop_idle()
        for step in self._pool.all_of(self._live):
            step.close(error())

    def resources_closed(self) -> None:
        """Its store tells it that resources it holds may be closed: no idle context may keep their memory."""
        if any(r.closed for r in self.resources):
            self.most_idle = 0
        self.drop_idle()

    def check(self, step: Step) -> None:
        """See that what the plan holds is there, and that what it reads has a value, where either may have changed.

        Where steps overlap, the step comes after what they do.
        """
        epochs = [s.epoch for s in self.stores]
        if epochs != step.epochs:
            self._check(step, epochs)
        if step.follows:
            self.program.follow(step, self.touched)
        for each in self.derived:
            each.refresh()

    def _check(self, step: Step, epochs: list[int]) -> None:
        for resource in self.resources:
            if resource.closed:
                raise ResourceClosed(f"{resource} was reset since this plan was made")
        for variable, node in self.program.checked:
            if not variable.initialized:
                raise unset(variable, node.origin, node.site)
        step.follows = self.program.holds and any(s.overlapping for s in self.stores)
        step.epochs, step.epoch = epochs, -1 if step.follows or self.derived else epochs[0]


def _run_free(plan: Plan, step: Step, feeds: Sequence[Any]) -> Any:
    """A step that touches no resource."""
    return plan.program.run(step, feeds)


def _run_locked(plan: Plan, step: Step, feeds: Sequence[Any]) -> Any:
    """A step that touches resources of one container and holds them, the way that
    :mod:`graphdock.contracts.runtime.resource_lock` explains."""
    lock = plan.locks[0]
    requests = lock.requests
    try:
        try:
            requests[step] = get_ident()
            if len(requests) > 1:
                lock.wait(step, step.token)
            if plan.stores[0].epoch != step.epoch:
                plan.check(step)
            for resource in plan.written:
                resource.version += 1
            return plan.program.run(step, feeds)
        finally:
            requests.pop(step, None)
            if lock.waiting:
                lock.wake(step)
    finally:
        if step in requests:
            lock.release(step)


def _run_with_locks(plan: Plan, step: Step, feeds: Sequence[Any]) -> Any:
    """A step that touches resources of several containers."""
    return with_locks(plan.locks, step, step.token, _run_checked, plan, step, feeds)


def _run_checked(plan: Plan, step: Step, feeds: Sequence[Any]) -> Any:
    plan.check(step)
    for resource in plan.written:
        resource.version += 1
    return plan.program.run(step, feeds)


def _run_unlocked(plan: Plan, step: Step, feeds: Sequence[Any]) -> Any:
    """A step that touches resources of one container and locks none."""
    if plan.stores[0].epoch != step.epoch:
        plan.check(step)
    return plan.program.run(step, feeds)


class _FreePlan(Plan):
    def __init__(
        self, draft: PlanBuilder, pool: InstancePool, access: Access, touched: Sequence[tuple[Resource, bool]]
    ) -> None:
        super().__init__(draft, pool, access, touched)
        self.run = self.program.run


class _LockedPlan(Plan):
    run = _run_locked


class _UnlockedPlan(Plan):
    run = _run_unlocked


class _ManyLocksPlan(Plan):
    run = _run_with_locks


class _TurnPlan(Plan):
    """Of steps that wait for their turn before they lock anything."""

    _WAYS: ClassVar[Mapping[type[Plan], Callable[[Plan, Step, Sequence[Any]], Any]]] = {
        _FreePlan: _run_free,
        _LockedPlan: _run_locked,
        _UnlockedPlan: _run_unlocked,
        _ManyLocksPlan: _run_with_locks,
    }

    def __init__(
        self,
        draft: PlanBuilder,
        pool: InstancePool,
        access: Access,
        touched: Sequence[tuple[Resource, bool]],
        kind: type[Plan],
    ) -> None:
        super().__init__(draft, pool, access, touched)
        self._way = self._WAYS[kind]

    def run(self, step: Step, feeds: Sequence[Any]) -> Any:
        return self.program.turn(step, self._way, self, step, feeds)


def make_plan(draft: PlanBuilder, pool: InstancePool) -> Plan:
    """The plan of a draft that went through all stages."""
    assert draft.program is not None and draft.placed is not None
    if not draft.dry:
        _make_targets(draft.placed)
    reads, writes = _touched(draft.placed)
    reads += [each.source for each in _derived(draft)]
    access = Access(draft.graph, reads, writes) if draft.program.holds else Access(draft.graph)
    touched = list({**{r: False for r in reads}, **{r: True for r in writes}}.items())
    stores = {r.store for r, _ in touched}
    if draft.program.overlaps and not draft.dry:
        for store in stores:
            store.let_overlap()
    kind: type[Plan] = _ManyLocksPlan
    if not stores:
        kind = _FreePlan
    elif len(stores) == 1 and len(access.locks) <= 1:
        kind = _LockedPlan if access.locks else _UnlockedPlan
    if draft.program.takes_turns:
        return _TurnPlan(draft, pool, access, touched, kind)
    return kind(draft, pool, access, touched)


def _make_targets(placed: PlacedGraph) -> None:
    """Make what a handle names that the step runs for itself, as ``queue.queue_ref.op.run()`` does; variables need a value.

    Raises FailedPreconditionError: it is there with other attributes. AlreadyExistsError: of another kind.
    """
    for node in placed.graph.targets:
        if node.opdef.resource is not None:
            resource = placed.resource(node.outputs[0])
            if not isinstance(resource, Variable):
                resource.open()


def _derived(draft: PlanBuilder) -> tuple[Derived, ...]:
    """The derived values that regions of a plan read."""
    if not draft.derivations:
        return ()
    from graphdock.planning.derived import Derived

    placed, found = draft.placed, []
    assert placed is not None
    for made, derivation in draft.derivations.items():
        if made in placed.handles:
            source, kept = (placed.resource(placed.handles[handle]) for handle in (derivation.source, made))
            assert isinstance(source, Variable) and isinstance(kept, Variable)
            found.append(Derived(source, kept, derivation.fill))
    return tuple(found)


def _touched(placed: PlacedGraph) -> tuple[list[Resource], list[Resource]]:
    """The resources that a step reads, and those that it does more with."""
    reads: dict[Resource, None] = {}
    writes: dict[Resource, None] = {}
    for level in placed.graph.all_graphs():
        for node in level.nodes:
            if node.opdef.accesses:
                for value, arg in zip(node.inputs, arg_of(node), strict=True):
                    if arg.access:
                        resource = placed.resource(placed.handles[value])
                        (reads if arg.access == "reads" else writes).setdefault(resource)
    return list(reads), list(writes)
