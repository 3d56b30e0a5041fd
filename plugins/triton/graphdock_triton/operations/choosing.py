"""Which configuration of a library's kernel a node gets: the guess, or what was estimated or measured. Imports no triton."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import Any

from graphdock.contracts import PrepareContext, dtypes

from graphdock_triton.kernels.spec import Config, Kernel, Problem, plan, power
from graphdock_triton.operations.call import Call
from graphdock_triton.operations.packing import job_of, offsets_of, run_of
from graphdock_triton.tuning import Candidate, Subject, choose

__all__ = ["chosen"]


def chosen(kernel: Kernel, call: Call, ctx: PrepareContext, service: Any) -> Config | None:
    """The configuration that was found best for problems of this class; None where the guess stands.

    A kernel that checks values is never tuned: what is lent for measuring may hold any. One that does not say what its programs
    move has no estimate.
    """
    configs = kernel.configs(call.problem)
    if ctx.deterministic or call.fault is not None or len(configs) < 2:
        return None

    def candidates() -> list[Candidate]:
        return [_candidate(kernel, call, config, ctx, service) for config in configs]

    how = str(ctx.options.get("tune", "kept"))
    if how == "estimate" and kernel.moved is None:
        how = "kept"
    seconds = float(ctx.options.get("tune_seconds", 20.0))
    found = choose(
        _subject(kernel, call.problem),
        candidates,
        service.architecture,
        service.multiprocessors or 1,
        how,
        ctx.measure,
        seconds,
    )
    return next((config for config in configs if _name(config) == found), None)


def _subject(kernel: Kernel, p: Problem) -> Subject:
    """The code, types and flags; each dim and stride up to a power of two, and whether 16 divides it."""
    sources = [getattr(stage.function, "cache_key", "") for stage in kernel.stages]
    facts = (sources, sorted(p.types.items()), sorted(p.flags.items()), sorted(p.present), sorted(p.unaligned))
    sizes = [n for _, size in sorted(p.dims.items()) for n in (power(size), int(size % 16 == 0))]
    return Subject(kernel.name, hashlib.sha256(repr(facts).encode()).hexdigest(), tuple(sizes))


def _name(config: Config) -> tuple[int, ...]:
    return (*[size for _, size in sorted(config.blocks.items())], config.warps, config.stages)


def _candidate(kernel: Kernel, call: Call, config: Config, ctx: PrepareContext, service: Any) -> Candidate:
    planned = plan(kernel, call.problem, config)
    offsets, size = offsets_of(planned)
    blocks = max(math.prod(planned.launches[0].grid), 1)
    scratch: list[Any] = []

    def run(queue: Any, *buffers: Any) -> None:
        if size and not scratch:
            scratch.append(queue.empty(dtypes.uint8, (size,)))
        known = {name: buffers[position].address for name, position in call.tensors.items()}
        known |= {name: scratch[0].address + offset for name, offset in offsets.items()}
        for launch in planned.launches:
            run_of(kernel.name, launch, call.values, known, service, queue)()

    work = _bytes(ctx) // blocks if kernel.moved is None else kernel.moved(call.problem, config)
    jobs = [job_of(kernel.name, launch, launch.divisible) for launch in planned.launches]
    return Candidate(_name(config), jobs, blocks, work, run, kernel.warps)


def _bytes(ctx: PrepareContext) -> int:
    tensors: Sequence[Any] = (*ctx.inputs, *ctx.outputs)
    return sum(t.dtype.size * math.prod(d or 0 for d in t.shape or ()) for t in tensors)
