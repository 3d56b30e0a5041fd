"""Kernels of the library as kernels of ops: planned and compiled when they are prepared, packed for their addresses when bound."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graphdock.contracts import BindContext, KernelDef, KernelRefused, PrepareContext, Prepared, Scratch, dtypes

from graphdock_triton.compiling import Job, all_of, cubin_of
from graphdock_triton.kernels import library
from graphdock_triton.kernels.spec import Config, Kernel, Problem, plan
from graphdock_triton.operations.call import Call, Operation
from graphdock_triton.operations.choosing import chosen
from graphdock_triton.operations.packing import VECTOR, job_of, offsets_of, run_of
from graphdock_triton.operations.table import OPERATIONS

__all__ = ["KERNELS"]

#: Sets of addresses that an instance keeps packed launches for.
_KEPT = 64


class _Way:
    """One way to compute a node.

    Attributes:
      kernel, planned: what is launched. ``offsets``, ``size``: of its scratch memory.
      aligned: arguments whose addresses it needs to be multiples of 16.
    """

    def __init__(self, kernel: Kernel, problem: Problem, config: Config | None) -> None:
        self.kernel, self.aligned = kernel.name, kernel.aligned
        self.planned = plan(kernel, problem, config)
        self.offsets, self.size = offsets_of(self.planned)

    def takes(self, addresses: Mapping[str, int]) -> bool:
        return not any(addresses[name] % VECTOR for name in self.aligned)

    def jobs(self, otherwise: Sequence[Job] = ()) -> list[Job]:
        return [job_of(self.kernel, launch, launch.divisible, otherwise) for launch in self.planned.launches]


def _prepare(operation: Operation, ctx: PrepareContext) -> Prepared:
    call, known = operation.call(ctx), hand_written()
    mine = known[call.kernel or operation.kernel]
    service = ctx.device.service("cuda-launch", 1)
    ways = [_Way(mine, call.problem, chosen(mine, known, call, ctx, service))]
    if mine.aligned:
        ways.append(_Way(known[mine.instead_of], call.problem, None))
    otherwise = [job.plain for way in ways[1:] for job in way.jobs()]
    ready = [cubin_of(job, service.architecture) for job in ways[0].jobs(otherwise)]
    size = max(way.size for way in ways)
    scratch = (Scratch(dtypes.uint8, (size,)),) if size else ()
    bind = functools.partial(_bound, call, ways, size, service)
    return Prepared(bind, scratch=scratch, ready=all_of(ready))


@functools.cache
def hand_written() -> Mapping[str, Kernel]:
    """The library. Raises KernelRefused without triton."""
    try:
        return library()
    except ImportError as error:
        raise KernelRefused(f"it is written in triton, which can't be imported: {error}") from error


def _bound(call: Call, ways: Sequence[_Way], room: int, service: Any, ctx: BindContext) -> Callable[..., Any]:
    """The launches, packed for the addresses of an instance; where some vary, for each set of them, of which some are kept."""
    count, made = len(ctx.inputs), [i for i, o in enumerate(ctx.outputs) if o.mode.kind not in ("planned", "inplace")]
    static: list[Any] = list(ctx.buffers)
    queue = ctx.queue
    fault = None if call.fault is None else service.fault(queue, ctx.node, call.fault)
    values = call.values if fault is None else {**call.values, "code": fault.code}

    needed = sorted(set(call.tensors.values()))

    def packed(arrays: Sequence[Any], scratch: int) -> list[Callable[[], Any]]:
        known = {name: arrays[position].address for name, position in call.tensors.items()}
        if fault is not None:
            known["fault"] = fault.address
        way = next(way for way in ways if way.takes(known))
        known |= {name: scratch + offset for name, offset in way.offsets.items()}
        return [run_of(way.kernel, launch, values, known, service, queue) for launch in way.planned.launches]

    total = count + len(ctx.outputs)
    if not made and all(static[i] is not None for i in needed) and not (room and static[-1] is None):
        runs = packed(static, static[-1].address if room else 0)
        return lambda *_, keep=fault: [run() for run in runs] and None
    empty, shapes = queue.empty, [(o.dtype, o.shape) for o in ctx.outputs]
    known: dict[tuple[int, ...], list[Callable[[], Any]]] = {}

    def compute(*args: Any) -> Any:
        results = list(args[count : total - len(made)])
        for i in made:
            results.insert(i, empty(*shapes[i]))
        arrays, scratch = (*args[:count], *results), args[-1].address if room else 0
        where = (*[arrays[i].address for i in needed], scratch)
        runs = known.get(where)
        if runs is None:
            runs = known[where] = packed(arrays, scratch)
            if len(known) > _KEPT:
                known.pop(next(iter(known)))
        for run in runs:
            run()
        given = [results[i] for i in made]
        return None if not given else given[0] if len(given) == 1 else tuple(given)

    return compute


#: One per op of the table.
KERNELS = [
    KernelDef(
        operation.op,
        "cuda",
        None,
        operation.name or operation.kernel,
        types=operation.types,
        inplace=operation.inplace,
        priority=operation.priority,
        modes=("planned", "fresh", "inplace") if operation.inplace else ("planned", "fresh"),
        prepare=functools.partial(_prepare, operation),
    )
    for operation in OPERATIONS
]
