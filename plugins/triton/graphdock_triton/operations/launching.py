"""Kernels of the library as kernels of ops: planned and compiled when they are prepared, packed for their addresses when bound."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from graphdock.contracts import BindContext, KernelDef, KernelRefused, PrepareContext, Prepared, Scratch, dtypes

from graphdock_triton.compiling import all_of, cubin_of
from graphdock_triton.kernels import library
from graphdock_triton.kernels.spec import Kernel, Plan, plan
from graphdock_triton.operations.call import Call, Operation
from graphdock_triton.operations.choosing import chosen
from graphdock_triton.operations.packing import job_of, offsets_of, run_of
from graphdock_triton.operations.table import OPERATIONS

__all__ = ["kernels"]

#: Sets of addresses that an instance keeps packed launches for.
_KEPT = 64


def kernels() -> Iterable[KernelDef]:
    """One KernelDef per op of the table. Imports no triton."""
    for operation in OPERATIONS:
        yield KernelDef(
            operation.op,
            "cuda",
            None,
            operation.name or operation.kernel,
            types=operation.types,
            inplace=operation.inplace,
            modes=("planned", "fresh", "inplace") if operation.inplace else ("planned", "fresh"),
            prepare=functools.partial(_prepare, operation),
        )


def _prepare(operation: Operation, ctx: PrepareContext) -> Prepared:
    call = operation.call(ctx)
    kernel = call.kernel or operation.kernel
    made = hand_written()[kernel]
    planned = plan(made, call.problem)
    service = ctx.device.service("cuda-launch", 1)
    config = chosen(made, call, ctx, service)
    if config is not None:
        planned = plan(made, call.problem, config)
    ready = [cubin_of(job_of(kernel, launch, launch.divisible), service.architecture) for launch in planned.launches]
    offsets, size = offsets_of(planned)
    scratch = (Scratch(dtypes.uint8, (size,)),) if size else ()
    bind = functools.partial(_bound, kernel, call, planned, offsets, service)
    return Prepared(bind, scratch=scratch, ready=all_of(ready))


@functools.cache
def hand_written() -> Mapping[str, Kernel]:
    """The library. Raises KernelRefused without triton."""
    try:
        return library()
    except ImportError as error:
        raise KernelRefused(f"it is written in triton, which can't be imported: {error}") from error


def _bound(
    kernel: str, call: Call, planned: Plan, offsets: Mapping[str, int], service: Any, ctx: BindContext
) -> Callable[..., Any]:
    """The launches, packed for the addresses of an instance; where some vary, for each set of them, of which some are kept."""
    count, made = len(ctx.inputs), [i for i, o in enumerate(ctx.outputs) if o.mode.kind not in ("planned", "inplace")]
    static: list[Any] = list(ctx.buffers)
    queue = ctx.queue
    fault = None if call.fault is None else service.fault(queue, ctx.node, call.fault)
    values = call.values if fault is None else {**call.values, "code": fault.code}

    needed = sorted(set(call.tensors.values()))

    def packed(arrays: Sequence[Any], scratch: int) -> list[Callable[[], Any]]:
        known = {name: arrays[position].address for name, position in call.tensors.items()}
        known |= {name: scratch + offset for name, offset in offsets.items()}
        if fault is not None:
            known["fault"] = fault.address
        return [run_of(kernel, launch, values, known, service, queue) for launch in planned.launches]

    total = count + len(ctx.outputs)
    if not made and all(static[i] is not None for i in needed) and not (offsets and static[-1] is None):
        runs = packed(static, static[-1].address if offsets else 0)
        return lambda *_, keep=fault: [run() for run in runs] and None
    empty, shapes = queue.empty, [(o.dtype, o.shape) for o in ctx.outputs]
    known: dict[tuple[int, ...], list[Callable[[], Any]]] = {}

    def compute(*args: Any) -> Any:
        results = list(args[count : total - len(made)])
        for i in made:
            results.insert(i, empty(*shapes[i]))
        arrays, scratch = (*args[:count], *results), args[-1].address if offsets else 0
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
