"""The region compiler of the ``cuda`` device: claims what one kernel computes, and launches it."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from graphdock.contracts import (
    WORDS,
    BindContext,
    Claim,
    KernelRefused,
    PlanNode,
    PrepareContext,
    Prepared,
    Refusal,
    Region,
    RegionCompiler,
    RegionProgram,
    Scratch,
    dtypes,
)

from graphdock_triton.compiling import Job, all_of, cubin_for, cubin_of
from graphdock_triton.regions.kernel import RegionKernel, region_kernel
from graphdock_triton.regions.layout import what_forbids
from graphdock_triton.regions.space import space, subject
from graphdock_triton.tuning import Candidate, choose

__all__ = ["TritonRegions"]

#: Microseconds that a claim says it costs: one launch.
_LAUNCH = 3.0
#: Partial results lie at multiples of so many bytes.
_ROOM = 256
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
        service = ctx.device.service("cuda-launch", 1)
        stages = Stages(region_kernel(program, _tuned(program, ctx, service)))
        ready = [cubin_of(job_of(k, _aligned(k)), service.architecture) for k in stages.kernels]
        scratch = (Scratch(dtypes.uint8, (stages.scratch,)),) if stages.scratch else ()
        return Prepared(lambda bind: _bound(bind, stages, service), scratch=scratch, ready=all_of(ready))


def _tuned(program: RegionProgram, ctx: PrepareContext, service: Any) -> tuple[int, ...] | None:
    """The tiles that were found best for such a program; None where nothing is known, or may count."""
    if ctx.deterministic:
        return None

    def candidates() -> list[Candidate]:
        return [_candidate(program, block, service, len(ctx.inputs)) for block in space(program)]

    how = ctx.options.get("tune", "kept")
    seconds = float(ctx.options.get("tune_seconds", 20.0))
    processors = service.multiprocessors or 1
    found = choose(subject(program), candidates, service.architecture, processors, how, ctx.measure, seconds)
    return found if found is None or found in space(program) else None


def _candidate(program: RegionProgram, block: tuple[int, int, int], service: Any, inputs: int) -> Candidate:
    stages = Stages(region_kernel(program, block))
    blocks = math.prod(stages.kernels[0].grid)
    scratch: list[Any] = []
    ordinals: list[Any] = []

    def run(queue: Any, *buffers: Any) -> None:
        if stages.scratch and not scratch:
            scratch.append(queue.empty(dtypes.uint8, (stages.scratch,)))
        where = scratch[0].address if scratch else 0
        addresses = [b.address for b in buffers]
        if program.streams and not ordinals:
            ordinals.append(queue.empty(dtypes.uint64, (1,)))
        words = [dict.fromkeys(WORDS, 0) | {"ordinal": o.address} for o in ordinals] * len(program.streams)
        for launch in _launches(queue, stages, service, addresses[:inputs], addresses[inputs:], where, words):
            launch.run()

    moved = [(t.dtype, t.shape) for t in program.inputs] + [(t.dtype, t.shape) for t in program.outputs]
    total = sum(dtype.size * math.prod(d or 0 for d in shape) for dtype, shape in moved)
    return Candidate(block, [job_of(k, _aligned(k)) for k in stages.kernels], blocks, total // blocks, run)


class Stages:
    """The launches of one region: one, or two where blocks share the reduced places.

    Attributes:
      kernels: in order. ``scratch``: bytes that the first leaves for the second. ``offsets``: of each partial result in it.
    """

    def __init__(self, kernel: RegionKernel) -> None:
        rest = kernel.rest()
        self.kernels = [kernel] if rest is None else [kernel, rest]
        self.offsets: dict[str, int] = {}
        self.scratch = 0
        for name, (dtype, shape) in kernel.partials().items():
            self.offsets[name] = self.scratch
            self.scratch += -(-math.prod(shape) * dtype.size // _ROOM) * _ROOM

    @property
    def program(self) -> RegionProgram:
        return self.kernels[0].program

    def addresses(self, inputs: Sequence[int], outputs: Sequence[int], scratch: int) -> list[dict[str, int]]:
        """Of each kernel: argument -> address, of those that are addresses."""
        partials = {name: scratch + offset for name, offset in self.offsets.items()}
        first = self.kernels[0]
        known = {f"x{i}": inputs[s.source] for i, s in enumerate(self.program.inputs)}
        known |= {f"y{i}": address for i, address in enumerate(outputs)} | partials
        found = [{n: known[n] for n in first.text.arguments if n in known}]
        for rest in self.kernels[1:]:
            sources = [*partials.values(), *inputs]
            left = [a for i, a in enumerate(outputs) if f"y{i}" not in first.text.arguments]
            given = {f"x{i}": sources[s.source] for i, s in enumerate(rest.program.inputs)}
            found.append(given | {f"y{i}": address for i, address in enumerate(left)})
        return found


def job_of(kernel: RegionKernel, divisible: Sequence[str]) -> Job:
    """Return what has to be compiled for a kernel whose arguments ``divisible`` are multiples of 16."""
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
        if name[0] != "s" and (numbers[name] if name in numbers else known.get(name, 0)) % _VECTOR == 0
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


def _bound(ctx: BindContext, stages: Stages, service: Any) -> Callable[..., Any]:
    """The launches, packed for the addresses of an instance; those that vary are put in at each call."""
    outputs, count = len(stages.program.outputs), len(ctx.inputs)
    begin = count + len(stages.program.streams)
    made = [i for i, o in enumerate(ctx.outputs) if o.mode.kind not in ("planned", "inplace")]
    static: list[Any] = list(ctx.buffers)
    if not made and None not in static and begin == count:
        where = [b.address for b in static]
        scratch = where[-1] if stages.scratch else 0
        runs = [
            launch.run
            for launch in _launches(ctx.queue, stages, service, where[:count], where[count : count + outputs], scratch)
        ]
        if len(runs) == 1:
            only = runs[0]
            return lambda *_: only()
        return lambda *_: [run() for run in runs] and None
    known: dict[Any, list[Any]] = {}
    empty, shapes = ctx.queue.empty, [(o.dtype, o.shape) for o in stages.program.outputs]

    def compute(*args: Any) -> Any:
        results = list(args[begin : begin + outputs - len(made)])
        for i in made:
            results.insert(i, empty(*shapes[i]))
        inputs, outs = [a.address for a in args[:count]], [r.address for r in results]
        scratch = args[-1].address if stages.scratch else 0
        words = [_words(ctx.queue, stream) for stream in args[count:begin]]
        key = tuple([a % _VECTOR == 0 for a in (*inputs, *outs)])
        launches = known.get(key)
        if launches is None:
            launches = known[key] = _launches(ctx.queue, stages, service, inputs, outs, scratch, words)
        else:
            for kernel, launch, found in zip(
                stages.kernels, launches, stages.addresses(inputs, outs, scratch), strict=True
            ):
                found |= {n: words[stream][word] for n, (stream, word) in kernel.words().items()}
                for name, address in found.items():
                    launch.words[launch.first[kernel.text.arguments.index(name)]] = address
        for launch in launches:
            launch.run()
        given = [results[i] for i in made]
        return None if not given else given[0] if len(given) == 1 else tuple(given)

    return compute


def _launches(
    queue: Any,
    stages: Stages,
    service: Any,
    inputs: Sequence[int],
    outputs: Sequence[int],
    scratch: int,
    words: Sequence[Mapping[str, int]] = (),
) -> list[Any]:
    """The launches of a region. ``words``: of each stream its words, and of its ordinal the address."""
    found = stages.addresses(inputs, outputs, scratch)
    return [_launch(queue, kernel, service, where, words) for kernel, where in zip(stages.kernels, found, strict=True)]


def _words(queue: Any, stream: Any) -> dict[str, int]:
    """Return what a launch is told of a stream. Its ordinal it reads where the step's arguments are when it runs, recorded
    or not.
    """
    _, iteration, outer = stream.counter()
    ordinal = queue.arguments.address + stream.slot
    return dict(zip(WORDS, (*stream.key, outer, iteration, ordinal), strict=True))


def _launch(
    queue: Any, kernel: RegionKernel, service: Any, addresses: Mapping[str, int], words: Sequence[Mapping[str, int]]
) -> Any:
    job = job_of(kernel, _aligned(kernel, addresses))
    cubin = cubin_for(job, service.architecture)
    number = "<q" if kernel.tiles.walk.wide else "<i"
    values = {name: struct.pack(number, value) for name, value in kernel.numbers().items()}
    values |= {name: struct.pack("<Q", address) for name, address in addresses.items()}
    values |= {n: struct.pack("<Q", words[stream][word]) for n, (stream, word) in kernel.words().items()}
    params = [values[name] for name in kernel.text.arguments[:-2]]
    params += [struct.pack("<Q", 0)] * 2  # global and profile scratch, which no region needs
    key = f"{service.architecture} {job.key} {' '.join(job.divisible)}"
    function = service.function(key, cubin.image, cubin.entry, cubin.shared)
    return service.launch(queue, function, kernel.grid, (cubin.threads,), params, cubin.shared)
