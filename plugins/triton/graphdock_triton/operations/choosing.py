"""Choice of a node's kernel, of those that compute the same, and how it is launched: the guess, or what was estimated or measured.

The guess is the first kernel that has nothing against a problem: those that stand in for others are asked before them
(:attr:`graphdock_triton.kernels.spec.Kernel.decline`). Configurations of all of them are candidates where something is found out.
Imports no triton.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from typing import Any

from graphdock.contracts import KernelRefused, PrepareContext, dtypes

from graphdock_triton.kernels.spec import Config, Kernel, Problem, plan, power
from graphdock_triton.operations.call import Call
from graphdock_triton.operations.packing import job_of, offsets_of, run_of
from graphdock_triton.tuning import Candidate, Subject, choose

__all__ = ["chosen"]


def chosen(mine: Kernel, library: Mapping[str, Kernel], call: Call, ctx: PrepareContext, service: Any) -> Config | None:
    """The configuration of ``mine`` that was found best for problems of this class; None where its guess stands.

    A kernel that checks values is never tuned: what is lent for measuring may hold any. One that does not say what its programs
    move has no estimate.

    Raises KernelRefused where ``mine`` stands in for a kernel that is better, or does not take the problem.
    """
    plan(mine, call.problem)  # raises where it does not take the problem
    how = str(ctx.options.get("persistent", "auto"))
    kernels = _of_one_result(mine, library, call.problem, how)
    if mine not in kernels:
        raise KernelRefused(f"the option persistent is {how!r}")
    found = _found(kernels, call, ctx, service)
    if found is not None:
        best, config = found
        if best is not mine and mine.instead_of:
            raise KernelRefused(f"{best.name} was found quicker")
        return config if best is mine else None
    reason = mine.decline(call.problem) if how != "always" else None
    if reason:
        raise KernelRefused(f"{mine.instead_of} is the better guess: {reason}")
    return None


def _of_one_result(mine: Kernel, library: Mapping[str, Kernel], problem: Problem, how: str) -> list[Kernel]:
    """The kernels to choose from, the best guess first. ``how``: the option ``persistent``."""
    last = library[mine.instead_of] if mine.instead_of else mine
    others = [k for k in library.values() if k.instead_of == last.name and _takes(k, problem)] if how != "never" else []
    if how == "always" and mine in others:
        return [mine]
    return sorted((*others, last), key=lambda k: k.decline(problem) is not None)


def _takes(kernel: Kernel, problem: Problem) -> bool:
    try:
        plan(kernel, problem)
    except KernelRefused:
        return False
    return True


def _found(kernels: Sequence[Kernel], call: Call, ctx: PrepareContext, service: Any) -> tuple[Kernel, Config] | None:
    """Return what is known of problems of this class, or can be found out."""
    every = [(kernel, config) for kernel in kernels for config in kernel.configs(call.problem)]
    if ctx.deterministic or call.fault is not None or len(every) < 2:
        return None

    def candidates() -> list[Candidate]:
        return [_candidate(kernel, call, config, ctx, service) for kernel, config in every]

    how = str(ctx.options.get("tune", "kept"))
    if how == "estimate" and any(kernel.moved is None for kernel in kernels):
        how = "kept"
    seconds = float(ctx.options.get("tune_seconds", 20.0))
    found = choose(
        _subject(kernels, call.problem),
        candidates,
        service.architecture,
        service.multiprocessors or 1,
        how,
        ctx.measure,
        seconds,
    )
    return next((pair for pair in every if _name(*pair) == found), None)


def _subject(kernels: Sequence[Kernel], p: Problem) -> Subject:
    """The code, types and flags; each dim and stride up to a power of two, and whether 16 divides it."""
    ordered = sorted(kernels, key=lambda k: k.name)
    sources = [getattr(stage.function, "cache_key", "") for kernel in ordered for stage in kernel.stages]
    facts = (sources, sorted(p.types.items()), sorted(p.flags.items()), sorted(p.present), sorted(p.unaligned))
    sizes = [n for _, size in sorted(p.dims.items()) for n in (power(size), int(size % 16 == 0))]
    return Subject(ordered[0].name, hashlib.sha256(repr(facts).encode()).hexdigest(), tuple(sizes))


def _name(kernel: Kernel, config: Config) -> tuple[int, ...]:
    sizes = [size for _, size in sorted(config.blocks.items())]
    return (*sizes, config.warps, config.stages, *([1] if kernel.instead_of else []))


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
    return Candidate(_name(kernel, config), jobs, blocks, work, run, kernel.warps)


def _bytes(ctx: PrepareContext) -> int:
    tensors: Sequence[Any] = (*ctx.inputs, *ctx.outputs)
    return sum(t.dtype.size * math.prod(d or 0 for d in t.shape or ()) for t in tensors)
