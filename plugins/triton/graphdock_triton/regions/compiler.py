"""The region compiler of the ``cuda`` device: claims what one kernel computes, and launches it."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graphdock.contracts import (
    BindContext,
    Claim,
    KernelRefused,
    PlanNode,
    PrepareContext,
    Prepared,
    Refusal,
    Region,
    RegionCompiler,
)

from graphdock_triton.compiling import Job, cubin_of
from graphdock_triton.cubin import Cubin
from graphdock_triton.regions.kernel import RegionKernel, region_kernel
from graphdock_triton.regions.layout import what_forbids

__all__ = ["TritonRegions"]

#: Microseconds that a claim says it costs: one launch.
_LAUNCH = 3.0
#: What addresses and counts of vectorised accesses are multiples of.
_VECTOR = 16


class TritonRegions(RegionCompiler):
    """Elementwise operations, broadcasts and reductions over one set of axes, as one Triton kernel."""

    name = "region"
    device_type = "cuda"
    programs = True

    def claim(self, candidate: Region) -> Claim | Refusal:
        program = candidate.program
        assert program is not None
        nodes = [n for n in candidate.graph.nodes if n.verb != "constant"]
        if any(a.extent is None for a in program.axes):
            return Refusal("extents are not known")
        chosen = _of_one_set(nodes, candidate.reduces)
        if len(chosen) < 2:
            return Refusal(what_forbids(program) or "nothing to fuse")
        return Claim(tuple(chosen), _LAUNCH)

    def inplace(self, region: Region) -> Mapping[str, tuple[str, ...]]:
        program = region.program
        assert program is not None
        whole = len(program.axes)
        sources = [i.source for i in program.inputs]
        found = {}
        for number, out in enumerate(program.outputs):
            # what other blocks may still read is not written over
            alone = [sources[i] for i in out.inplace if sources.count(sources[i]) == 1]
            if alone and sum(d is not None for d in out.dims) == whole:
                found[f"out{number}"] = tuple(f"in{s}" for s in alone)
        return found

    def prepare(self, region: Region, ctx: PrepareContext) -> Prepared:
        program = region.program
        assert program is not None
        reason = what_forbids(program)
        if reason is not None:
            raise KernelRefused(reason)
        kernel = region_kernel(program)
        service = ctx.device.service("cuda-launch", 1)
        ready = cubin_of(job_of(kernel, _aligned(kernel)), service.architecture)
        return Prepared(lambda bind: _bound(bind, kernel, service), ready=ready)


def job_of(kernel: RegionKernel, divisible: Sequence[str]) -> Job:
    """What has to be compiled for a kernel whose arguments ``divisible`` are multiples of 16."""
    return Job(
        kernel.text.name,
        kernel.key,
        kernel.function,
        kernel.signature(),
        kernel.constants(),
        kernel.tiles.options,
        tuple(divisible),
    )


def _aligned(kernel: RegionKernel, addresses: Mapping[str, int] | None = None) -> list[str]:
    """The arguments that are multiples of 16: numbers, and addresses, of which all are that are not known."""
    numbers = kernel.numbers()
    known = addresses or {}
    return [
        name
        for name in kernel.text.arguments[:-2]
        if (numbers[name] if name in numbers else known.get(name, 0)) % _VECTOR == 0
    ]


def _of_one_set(nodes: Sequence[PlanNode], reduces: Mapping[PlanNode, frozenset[tuple[int, ...]]]) -> list[PlanNode]:
    """The nodes of a candidate that reduce over one set of axes, without those that need another reduction first.

    Of several sets the first to be reduced over is taken. Whatever stands behind another stays behind as well, so that no way leads
    from the chosen nodes over the others and back.
    """
    wanted: tuple[int, ...] | None = None
    gone: set[PlanNode] = set()
    chosen = []
    for node in nodes:
        before = (*(v.node for v in node.inputs), *node.control, *node.order)
        sets = reduces.get(node, frozenset())
        if any(n in gone for n in before if n is not None) or len(sets) > 1 or (sets and wanted not in (None, *sets)):
            gone.add(node)
            continue
        wanted = next(iter(sets), wanted)
        chosen.append(node)
    return chosen


def _bound(ctx: BindContext, kernel: RegionKernel, service: Any) -> Callable[..., Any]:
    """The launch, packed for the addresses of an instance; those that vary are put in at each call."""
    outputs = len(kernel.program.outputs)
    count = len(ctx.inputs)
    modes = [o.mode.kind for o in ctx.outputs]
    made = [i for i, mode in enumerate(modes) if mode not in ("planned", "inplace")]
    static: list[Any] = list(ctx.buffers[count : count + outputs - len(made)])
    for i in made:
        static.insert(i, None)
    if None not in static and None not in ctx.buffers[:count]:
        launch = _launch(ctx, kernel, service, ctx.buffers[:count], static)
        run = launch.run
        return lambda *_: run()
    launches: dict[tuple[str, ...], Any] = {}
    empty, shapes = ctx.queue.empty, [(o.dtype, o.shape) for o in kernel.program.outputs]

    def compute(*args: Any) -> Any:
        results = list(args[count : count + outputs - len(made)])
        for i in made:
            results.insert(i, empty(*shapes[i]))
        addresses = _addresses(kernel, args[:count], results)
        key = tuple(_aligned(kernel, addresses))
        launch = launches.get(key)
        if launch is None:
            launch = launches[key] = _launch(ctx, kernel, service, args[:count], results)
        else:
            for name, address in addresses.items():
                launch.words[launch.first[kernel.text.arguments.index(name)]] = address
        launch.run()
        given = [results[i] for i in made]
        return None if not given else given[0] if len(given) == 1 else tuple(given)

    return compute


def _addresses(kernel: RegionKernel, inputs: Sequence[Any], outputs: Sequence[Any]) -> dict[str, int]:
    found = {f"x{i}": inputs[source.source].address for i, source in enumerate(kernel.program.inputs)}
    return found | {f"y{i}": array.address for i, array in enumerate(outputs)}


def _launch(ctx: BindContext, kernel: RegionKernel, service: Any, inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
    addresses = _addresses(kernel, inputs, outputs)
    job = job_of(kernel, _aligned(kernel, addresses))
    cubin: Cubin = cubin_of(job, service.architecture).result()
    number = "<q" if kernel.tiles.walk.wide else "<i"
    values = {name: struct.pack(number, value) for name, value in kernel.numbers().items()}
    values |= {name: struct.pack("<Q", address) for name, address in addresses.items()}
    params = [values[name] for name in kernel.text.arguments[:-2]]
    params += [struct.pack("<Q", 0)] * 2  # global and profile scratch, which no region needs
    key = f"{service.architecture} {job.key} {' '.join(job.divisible)}"
    function = service.function(key, cubin.image, cubin.entry, cubin.shared)
    return service.launch(ctx.queue, function, (kernel.grid,), (cubin.threads,), params, cubin.shared)
