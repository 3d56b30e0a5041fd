"""Kernels of the library as kernels of ops: planned and compiled when they are prepared, packed for their addresses when bound."""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from graphdock.contracts import BindContext, KernelDef, KernelRefused, PrepareContext, Prepared, Scratch, dtypes

from graphdock_triton.compiling import Job, all_of, cubin_for, cubin_of
from graphdock_triton.kernels import library
from graphdock_triton.kernels.spec import WIDTHS, Kernel, Launch, Plan, plan
from graphdock_triton.operations.call import Call, Operation
from graphdock_triton.operations.table import OPERATIONS

__all__ = ["kernels"]

#: Scratch memory of a call lies at multiples of so many bytes.
_ROOM = 256
#: What addresses are multiples of where loads and stores are as wide as they can be.
_VECTOR = 16
#: Sets of addresses that an instance keeps packed launches for.
_KEPT = 64
_FORMATS: Mapping[str, str] = {"i32": "<i", "i64": "<q", "u64": "<Q", "fp32": "<f"}


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
    planned = plan(hand_written()[kernel], call.problem)
    service = ctx.device.service("cuda-launch", 1)
    ready = [cubin_of(_job(kernel, launch, launch.divisible), service.architecture) for launch in planned.launches]
    offsets, size = _offsets(planned)
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


def _offsets(planned: Plan) -> tuple[dict[str, int], int]:
    """Scratch argument -> where it lies in one block, and the size of that."""
    offsets, size = {}, 0
    for name, (kind, count) in planned.scratch.items():
        offsets[name] = size
        size += -(-count * WIDTHS[kind] // _ROOM) * _ROOM
    return offsets, size


def _job(kernel: str, launch: Launch, divisible: Sequence[str]) -> Job:
    """What has to be compiled. Its key holds everything that the code is made for, and the source of the function."""
    function = launch.function
    said = [function.__name__, getattr(function, "cache_key", ""), *_pairs(launch.signature), *_pairs(launch.constants)]
    key = "\0".join([*said, repr(launch.options)])
    return Job(
        f"{kernel}_{function.__name__}",
        key,
        lambda: function,
        launch.signature,
        launch.constants,
        launch.options,
        tuple(divisible),
    )


def _pairs(table: Mapping[str, Any]) -> list[str]:
    return [f"{name}={value!r}" for name, value in sorted(table.items())]


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
        return [_run(kernel, launch, values, known, service, queue) for launch in planned.launches]

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


def _run(
    kernel: str,
    launch: Launch,
    values: Mapping[str, float],
    addresses: Mapping[str, int],
    service: Any,
    queue: Any,
) -> Callable[[], Any]:
    if not math.prod(launch.grid):
        return _nothing
    divisible = [n for n in launch.divisible if n not in addresses or addresses[n] % _VECTOR == 0]
    job = _job(kernel, launch, divisible)
    cubin = cubin_for(job, service.architecture)
    params = []
    for name in launch.arguments:
        kind = launch.signature[name]
        if kind.startswith("*"):
            params.append(struct.pack("<Q", addresses[name]))
        else:
            params.append(struct.pack(_FORMATS[kind], launch.dims[name] if name in launch.dims else values[name]))
    params += [struct.pack("<Q", 0)] * 2  # global and profile scratch, which no kernel of the library needs
    function = service.function(
        f"{service.architecture} {job.key} {' '.join(divisible)}", cubin.image, cubin.entry, cubin.shared
    )
    run: Callable[[], Any] = service.launch(queue, function, launch.grid, (cubin.threads,), params, cubin.shared).run
    return run


def _nothing() -> None:
    """A grid without programs."""
