"""Memory of a session's plans: limits per memory space on what their contexts hold, and host memory as the runtime itself needs it,
NumPy arrays for feeds, fetches and small tensors that steer kernels.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from graphdock.contracts.device import HOST_MEMORY, Buffer, Device, DeviceInfo, Storage
from graphdock.contracts.runtime.access import step_name
from graphdock.contracts.runtime.resources import Resource, ResourceStore, Variable
from graphdock.dtypes import DType
from graphdock.errors import ResourceExhaustedError
from graphdock.locks import new_lock

if TYPE_CHECKING:
    from graphdock.planning.plan import Plan, Step

__all__ = ["ALTERNATING", "BUDGET", "HostMemory", "InstancePool"]


#: Bytes of planned buffers per memory space that a session holds at most before idle contexts are dropped.
BUDGET = 1 << 30
#: Most plans that take turns without any of them losing its memory to another one, though they hold more than the budget.
ALTERNATING = 8


class InstancePool:
    """Counts the planned buffers of a session's contexts, and drops idle ones where they are too many.

    It is asked only when a context is made: leasing one and giving it back cost a list operation each. Who was used longest ago
    loses its idle contexts first. A plan that comes back takes nothing from those used since its last time: they take turns, and
    would take each other's memory in every step. Safe from any thread.

    Args:
      budget: bytes per memory space; None for :data:`BUDGET`. More is held where turns are taken or many steps run at once.
      limits: memory space -> bytes that planned buffers and resources may take together, whatever the pattern.
    """

    def __init__(self, budget: int | None = None, limits: Mapping[str, int] | None = None) -> None:
        self.budget = BUDGET if budget is None else budget
        self._limits = dict(limits or {})
        self._lock = new_lock()
        self._held: dict[str, int] = {}
        self._plans: weakref.WeakSet[Plan] = weakref.WeakSet()
        self._stores: weakref.WeakSet[ResourceStore] = weakref.WeakSet()
        self._closed: Callable[[], BaseException] | None = None

    def held(self, space: str | None = None) -> int:
        """Bytes of planned buffers of all contexts, idle or running, in a memory space or in all of them."""
        with self._lock:
            return sum(self._held.values()) if space is None else self._held.get(space, 0)

    def take(self, plan: Plan, step: Step) -> None:
        """Count the memory of a new context until it is gone, and make room for it.

        Raises:
          ResourceExhaustedError: it does not fit into a memory limit beside what is used now; nothing has run. CancelledError: the
            session was closed since the plan was asked for.
        """
        memory = plan.program.memory
        with self._lock:
            if self._closed is not None:
                raise self._closed()
            self._plans.add(plan)
            self._stores.update(plan.stores)
            for space, nbytes in memory.items():
                if self._held.get(space, 0) + nbytes > self.budget:
                    self._drop(plan, space, self.budget - nbytes, self._spared(plan))
            for space, limit in self._limits.items():
                self._fit(plan, space, limit)
            for space, nbytes in memory.items():
                self._held[space] = self._held.get(space, 0) + nbytes
        if memory:
            step.memory = gone = weakref.finalize(step, self._give, memory)
            gone.atexit = False

    def close(self, error: Callable[[], BaseException]) -> None:
        """Stop the steps that run, each with an error of its own, and free the memory of idle contexts. None begins any more."""
        with self._lock:
            self._closed = error
            plans = list(self._plans)
        for plan in plans:
            plan.close(error)

    @staticmethod
    def all_of(steps: weakref.WeakSet[Step]) -> list[Step]:
        """Return what is in a set to which other threads may add meanwhile."""
        while True:
            try:
                return list(steps)
            except RuntimeError:  # one did
                continue

    def _give(self, memory: Mapping[str, int]) -> None:
        with self._lock:
            for space, nbytes in memory.items():
                self._held[space] -= nbytes

    def _spared(self, plan: Plan) -> frozenset[Plan]:
        """The plans that take turns with this one: used since its last time, and few."""
        if plan.previous is None:
            return frozenset()
        since = frozenset(p for p in self._plans if p is not plan and p.latest > plan.previous)
        return since if len(since) < ALTERNATING else frozenset()

    def _drop(self, plan: Plan, space: str, at_most: int, spared: frozenset[Plan]) -> None:
        """Drop idle contexts of other plans, those used longest ago first, until no more than ``at_most`` bytes are held."""
        if self._held.get(space, 0) <= at_most:
            return
        others = [p for p in self._plans if p is not plan and p not in spared and space in p.program.memory]
        for other in sorted(others, key=lambda p: p.latest):
            other.drop_idle()
            if self._held.get(space, 0) <= at_most:
                return

    def _fit(self, plan: Plan, space: str, limit: int) -> None:
        needed = plan.program.memory.get(space, 0)
        new = _bytes_in(space, (r for r in plan.resources if not r.made))
        made = _bytes_in(space, (r for store in self._stores for r in store.made()))
        self._drop(plan, space, limit - needed - new - made, frozenset())
        used = self._held.get(space, 0)
        if used + needed + new + made > limit:
            from graphdock.units import in_bytes

            raise ResourceExhaustedError(
                f"{step_name(plan.graph)} does not fit into the memory limit of {space}",
                expected=f"{in_bytes(limit)} at most",
                got=f"{in_bytes(needed)} of buffers and {in_bytes(new)} of new variables, beside {in_bytes(made)} of variables "
                f"and {in_bytes(used)} that other steps use now",
                hint="raise memory_limit, feed smaller batches, or run fewer steps at once",
            )


def _bytes_in(space: str, resources: Iterable[Resource]) -> int:
    """Bytes of the variables among these that lie in a memory space; of unknown shape, what they hold now."""
    total = 0
    for resource in resources:
        if isinstance(resource, Variable) and resource.device.memory_space == space:
            total += resource.nbytes
    return total


class HostMemory(Device):
    """A device without kernels whose buffers are NumPy arrays. Usable from any thread."""

    def __init__(self) -> None:
        super().__init__(DeviceInfo("host"))
        self.memory_space = HOST_MEMORY

    def allocate(self, nbytes: int, align: int = 64) -> Storage:
        try:
            block = np.empty(nbytes + align, np.uint8)
        except (MemoryError, ValueError):  # the latter for more than a process can address
            raise ResourceExhaustedError(f"host memory has no {nbytes} bytes for a step's buffers") from None
        start = -block.ctypes.data % align
        return block[start : start + nbytes]

    def view(self, storage: Storage, offset: int, dtype: DType, shape: Sequence[int]) -> Buffer:
        if dtype.size == 0:
            return np.empty(shape, object)
        return np.ndarray(shape, dtype.np, storage, offset)

    def empty(self, dtype: DType, shape: Sequence[int]) -> Buffer:
        return np.empty(shape, dtype.np)

    def copy(self, src: Buffer, dst: Buffer) -> None:
        np.copyto(dst, src)

    def from_host(self, array: Any, dst: Buffer) -> None:
        np.copyto(dst, array)

    def to_host(self, src: Buffer, dst: Any) -> None:
        np.copyto(dst, src)
