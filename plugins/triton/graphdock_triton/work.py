"""Kernels that authors write in Triton, for ops of their own: a function tells once per plan what to launch.

    def soft_clip(work):
        from graphdock_lab.soft_clip_triton import soft_clip_kernel

        x, y = work.inputs[0], work.outputs[0]
        grid = (-(-x.size // 1024),)
        work.launch(soft_clip_kernel, grid, {"x": x, "y": y, "n": x.size, "factor": work.attr("factor")}, {"BLOCK": 1024})

    KERNELS.append(kernel_from_trace("lab.SoftClip", soft_clip, types={"T": ("float32",)}))

Importing this imports no triton.
"""

from __future__ import annotations

import functools
import math
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from graphdock.contracts import (
    BindContext,
    DType,
    KernelDef,
    KernelRefused,
    PrepareContext,
    Prepared,
    Scratch,
    dtypes,
    errors,
)

from graphdock_triton.compiling import Job, all_of, cubin_for, cubin_of
from graphdock_triton.cubin import DESCRIPTOR, Options, pointer

__all__ = ["Step", "Trace", "Tensor", "Work", "kernel_from_trace"]

_VECTOR = 16
_KEPT = 64


@dataclass(frozen=True, slots=True)
class Tensor:
    """An input or output of a node: row-major, its elements side by side. ``place``: among the inputs, then the outputs."""

    place: int
    dtype: DType
    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """Return how many elements it has."""
        return math.prod(self.shape)


@dataclass(frozen=True, slots=True)
class Step:
    """One launch. Attributes: as of :meth:`Work.launch`."""

    function: Any
    grid: tuple[int, ...]
    arguments: Mapping[str, Tensor | int | float]
    constants: Mapping[str, Any]
    options: Options
    descriptors: tuple[str, ...] = ()

    @property
    def room(self) -> int:
        """Bytes of global scratch memory of each program."""
        return len(self.descriptors) * DESCRIPTOR

    def kind(self, name: str) -> str:
        """Triton's name of an argument's type."""
        value = self.arguments[name]
        if isinstance(value, Tensor):
            return pointer(value.dtype.name)
        if isinstance(value, float):
            return "fp32"
        return "i32" if -(2**31) <= value < 2**31 else "i64"

    def job(self, aligned: Sequence[bool]) -> Job:
        """Return what is compiled. ``aligned``: of each place, whether its address is a multiple of 16."""
        signature = {n: self.kind(n) for n in self.arguments}
        divisible = tuple(n for n, v in self.arguments.items() if _is_divisible(v, aligned))
        name = self.function.__name__
        facts = (getattr(self.function, "cache_key", name), signature, sorted(self.constants.items()), self.options)
        return Job(
            name, repr(facts), lambda: self.function, signature, self.constants, self.options, divisible, self.room
        )

    def packed(self, addresses: Sequence[int], room: int = 0) -> list[bytes]:
        """The arguments of the compiled kernel, in its order. ``room``: address of its global scratch memory."""
        found = []
        for name in self.function.arg_names:
            if name in self.constants:
                continue
            value, kind = self.arguments[name], self.kind(name)
            if isinstance(value, Tensor):
                found.append(struct.pack("<Q", addresses[value.place]))
            else:
                found.append(struct.pack({"fp32": "<f", "i32": "<i", "i64": "<q"}[kind], value))
        return [*found, struct.pack("<Q", room), struct.pack("<Q", 0)]  # the last: scratch memory of profilers


def _is_divisible(value: Any, aligned: Sequence[bool]) -> bool:
    if isinstance(value, Tensor):
        return aligned[value.place]
    return isinstance(value, int) and value % _VECTOR == 0


class Work:
    """Work of one node, as launches in order.

    Attributes:
      inputs, outputs: tensors, whose shapes are known. ``steps``: what was told so far.
    """

    def __init__(self, node: Any, inputs: Sequence[tuple[DType, Any]], outputs: Sequence[tuple[DType, Any]]) -> None:
        self._node = node
        places = [Tensor(i, dtype, tuple(shape)) for i, (dtype, shape) in enumerate((*inputs, *outputs))]
        self.inputs, self.outputs = places[: len(inputs)], places[len(inputs) :]
        self.steps: list[Step] = []

    def attr(self, name: str) -> Any:
        return self._node.attrs[name]

    def refuse(self, reason: str) -> KernelRefused:
        """To be raised where the kernel can't compute this node; another one is chosen."""
        return KernelRefused(reason)

    def launch(
        self,
        function: Any,
        grid: Sequence[int],
        arguments: Mapping[str, Tensor | int | float],
        constants: Mapping[str, Any],
        warps: int = 4,
        stages: int = 2,
        descriptors: Sequence[str] = (),
    ) -> None:
        """Launch a ``triton.jit`` function. A grid that is empty launches nothing.

        Args:
          grid: up to three numbers of programs.
          arguments: what is passed: tensors, whole numbers, and numbers that are float32.
          constants: what the code is made for (``tl.constexpr``).
          warps, stages: as of Triton's ``num_warps`` and ``num_stages``.
          descriptors: the tensors for which the function makes descriptors, by ``tl.make_tensor_descriptor``; one for which it
            makes two, twice. Each takes 128 bytes of global scratch memory in every program, which a step plans. A kernel that
            makes more is refused when it is compiled. Addresses of these tensors have to be multiples of 16.

        Raises InternalError where arguments and constants are not the function's, or descriptors are of no tensors.
        """
        unknown = sorted((arguments.keys() | constants.keys()) ^ set(function.arg_names))
        unknown += [name for name in descriptors if not isinstance(arguments.get(name), Tensor)]
        if unknown:
            raise errors.InternalError(
                f"{function.__name__}: arguments {', '.join(unknown)} do not match the function's"
            )
        if math.prod(grid):
            options = Options(warps, stages)
            step = Step(function, tuple(grid), dict(arguments), dict(constants), options, tuple(descriptors))
            self.steps.append(step)


#: Says with which launches a node is computed.
Trace = Callable[[Work], None]


def kernel_from_trace(op: str, trace: Trace, **declared: Any) -> KernelDef:
    """The kernel of an op for the device ``cuda``. ``declared``: what KernelDef takes by keyword, such as ``types``."""
    return KernelDef(op, "cuda", prepare=lambda ctx: _prepare(ctx, trace), **declared)


def _prepare(ctx: PrepareContext, trace: Trace) -> Prepared:
    shapes = [*(x.shape for x in ctx.inputs), *(o.shape for o in ctx.outputs)]
    if any(shape is None or None in shape for shape in shapes):
        raise KernelRefused("shapes are not known")
    work = Work(ctx.node, [(x.dtype, x.shape) for x in ctx.inputs], [(o.dtype, o.shape) for o in ctx.outputs])
    trace(work)
    service = ctx.device.service("cuda-launch", 1)
    aligned = [True] * (len(ctx.inputs) + len(ctx.outputs))
    ready = [cubin_of(step.job(aligned), service.architecture) for step in work.steps]
    # one after the other on their queue, so that they share it
    size = max((step.room * math.prod(step.grid) for step in work.steps), default=0)
    scratch = (Scratch(dtypes.uint8, (size,)),) if size else ()
    bind = functools.partial(_bound, work, service, size)
    return Prepared(bind, scratch=scratch, ready=all_of(ready) if ready else None)


def _bound(work: Work, service: Any, room: int, ctx: BindContext) -> Callable[..., Any]:
    """The launches, packed once where nothing moves between steps; else once for each set of addresses, of which some are kept."""
    count = len(ctx.inputs)
    made = [i for i, o in enumerate(ctx.outputs) if o.mode.kind not in ("planned", "inplace")]
    buffers: list[Any] = list(ctx.buffers)
    if not made and None not in buffers:
        fixed = _launches(ctx, work, service, *_split([b.address for b in buffers], room))
        return lambda *_: [run() for run in fixed] and None
    empty, known = ctx.queue.empty, dict[tuple[int, ...], list[Callable[[], None]]]()

    def compute(*args: Any) -> Any:
        results = list(args[count:])
        for i in made:
            results.insert(i, empty(work.outputs[i].dtype, work.outputs[i].shape))
        addresses = tuple([a.address for a in (*args[:count], *results)])
        runs = known.get(addresses)
        if runs is None:
            runs = known[addresses] = _launches(ctx, work, service, *_split(addresses, room))
            if len(known) > _KEPT:
                known.pop(next(iter(known)))
        for run in runs:
            run()
        given = [results[i] for i in made]
        return None if not given else given[0] if len(given) == 1 else tuple(given)

    return compute


def _check_aligned(step: Step, addresses: Sequence[int]) -> None:
    for name in step.descriptors:
        value = step.arguments[name]
        if isinstance(value, Tensor) and addresses[value.place] % _VECTOR:
            raise errors.FailedPreconditionError(
                f"{step.function.__name__} makes a descriptor of {name}, which begins within another tensor",
                expected=f"an address that is a multiple of {_VECTOR}",
                got=f"{addresses[value.place]:#x}",
                hint="copy the part of the tensor first, such as by an addition of zero",
            )


def _split(addresses: Sequence[int], room: int) -> tuple[Sequence[int], int]:
    """Addresses of inputs and outputs, and that of scratch memory, which is the last where there is ``room``."""
    return (addresses[:-1], addresses[-1]) if room else (addresses, 0)


def _launches(
    ctx: BindContext, work: Work, service: Any, addresses: Sequence[int], room: int
) -> list[Callable[[], None]]:
    aligned = [a % _VECTOR == 0 for a in addresses]
    found = []
    for step in work.steps:
        _check_aligned(step, addresses)
        job = step.job(aligned)
        cubin = cubin_for(job, service.architecture)
        function = service.function(
            f"{service.architecture} {job.key} {' '.join(job.divisible)}", cubin.image, cubin.entry, cubin.shared
        )
        params = step.packed(addresses, room)
        found.append(service.launch(ctx.queue, function, step.grid, (cubin.threads,), params, cubin.shared).run)
    return found
