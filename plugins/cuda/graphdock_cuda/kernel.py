"""Kernels that are traced as :class:`graphdock_cuda.work.Work`, as graphdock's KernelDefs.

A family's module has ``KERNELS: list[KernelDef] = []`` and ``kernel = family(KERNELS)``; ``kernel(op, ...)`` decorates a
function of one Work and takes what KernelDef takes by keyword.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

import numpy as np
from graphdock.contracts import (
    HOST_MEMORY,
    BindContext,
    KernelDef,
    KernelRefused,
    PrepareContext,
    Prepared,
    Scratch,
    dtypes,
)

from graphdock_cuda.bound import Act, Arrays, Bindings, bind_steps
from graphdock_cuda.compiled import Image
from graphdock_cuda.together import Joinable, joined_launches, like
from graphdock_cuda.work import Trace, Work

__all__ = ["DEVICE", "FLOATS", "INTEGERS", "NUMBERS", "PLAIN", "REAL", "family", "kernel_from_trace"]

DEVICE = "cuda"
#: Groups of dtypes, for ``types``: what memory of a GPU holds, and parts of it.
PLAIN = tuple(name for name, dtype in dtypes.ALL.items() if dtype.size)
FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
REAL = (*FLOATS, *INTEGERS)
NUMBERS = (*REAL, "complex64", "complex128")
#: Sets of shapes and host values that a node whose shapes vary keeps its work for.
_KEPT = 64


def family(kernels: list[KernelDef]) -> Callable[..., Callable[[Trace], Trace]]:
    """The decorator of one family: what it decorates is added to ``kernels``."""

    def kernel(*ops: str, **declared: Any) -> Callable[[Trace], Trace]:
        def add(trace: Trace) -> Trace:
            kernels.extend(kernel_from_trace(op, trace, **declared) for op in ops)
            return trace

        return add

    return kernel


def kernel_from_trace(op: str, trace: Trace, early: bool = False, **declared: Any) -> KernelDef:
    """The kernel of an op that ``trace`` describes. ``early``: it refuses a node of which something is known in the step alone."""
    return KernelDef(op, DEVICE, prepare=lambda ctx: _prepare(ctx, trace, early), **declared)


def _dims(shape: Any) -> tuple[int, ...] | None:
    return None if shape is None or None in shape else tuple(shape)


def _prepare(ctx: PrepareContext, trace: Trace, early: bool) -> Prepared:
    """Traced now where all is known, and compiled in the background; else in the step."""
    values = {i: x.value for i, x in enumerate(ctx.inputs) if x.value is not None}
    waiting = [i for i, x in enumerate(ctx.inputs) if x.memory_space == HOST_MEMORY and i not in values]
    shapes = [_dims(x.shape) for x in ctx.inputs]
    outs = [_dims(o.shape) for o in ctx.outputs]
    if waiting or None in shapes or None in outs:
        if early:
            raise KernelRefused("its shapes are known in the step alone", op=ctx.node.origin, site=ctx.node.site)
        return Prepared(lambda bind: _Late(bind, trace, ctx.options).call, capture_safe=False)
    work = _traced(ctx, trace, ctx.options, shapes, outs, values)
    images = [ctx.device.images.image(s.source) for s in work.steps if s.source is not None]  # type: ignore[attr-defined]
    scratch = (Scratch(dtypes.uint8, (work.scratch_bytes,)),) if work.scratch_bytes else ()
    ready, joins = _all(images), joined_launches
    return Prepared(lambda bind: _bound(bind, work), scratch=scratch, ready=ready, like=like(work), joins=joins)


def _traced(
    ctx: Any,
    trace: Trace,
    options: Mapping[str, Any],
    shapes: Sequence[Any],
    outs: Sequence[Any],
    values: Mapping[int, np.ndarray],
) -> Work:
    work = Work(
        ctx.node,
        ctx.device,
        [(x.name, x.dtype, shape) for x, shape in zip(ctx.inputs, shapes, strict=True)],
        [(o.name, o.dtype, shape) for o, shape in zip(ctx.outputs, outs, strict=True)],
        dict(values),
        options,
        frozenset([i for i, o in enumerate(ctx.outputs) if not o.used]),
    )
    trace(work)
    return work


def _all(images: Sequence[Image]) -> Future[Any] | None:
    """One future for several images; it fails with the first failure."""
    unique = list({image.key: image for image in images}.values())
    if len(unique) < 2:
        return unique[0].ready if unique else None
    whole: Future[Any] = Future()
    left = [len(unique)]

    def done(one: Future[bytes]) -> None:
        error = one.exception()
        left[0] -= 1
        if whole.done():
            return
        if error is not None:
            whole.set_exception(error)
        elif left[0] <= 0:
            whole.set_result(None)

    for image in unique:
        image.ready.add_done_callback(done)
    return whole


def _bound(ctx: BindContext, work: Work) -> Callable[..., Any]:
    """Work that is known, on the buffers of one instance."""
    count, scratch = len(ctx.inputs), work.scratch_bytes > 0
    random = "random" in ctx.node.opdef.effects
    modes = [o.mode.kind for o in ctx.outputs]
    made = [i for i, mode in enumerate(modes) if mode not in ("planned", "inplace")]
    written = len(modes) - len(made)
    buffers = list(ctx.buffers)
    static = buffers[count : count + written]
    for i in made:
        static.insert(i, None)
    known = Arrays(buffers[:count], static, buffers[count + written] if scratch else None, None)
    bindings = Bindings(ctx.device, ctx.queue, ctx.node)  # type: ignore[arg-type]
    fixed, varying = bind_steps(work.steps, known, bindings)
    if not varying and not made:
        run = _runner(fixed)
        if like(work) is not None:
            return Joinable(run, work.steps[0], known, bindings)
        if bindings.codes:
            bindings.end_with(run)
        return run
    acts: list[Act] = varying or [lambda arrays, act=act: act() for act in fixed]  # type: ignore[misc]
    empty, outs = ctx.queue.empty, [(o.dtype, work.out_shapes.get(i)) for i, o in enumerate(ctx.outputs)]
    begin = count + random

    def compute(*args: Any) -> Any:
        outputs = list(args[begin : begin + written])
        for i in made:
            outputs.insert(i, empty(*outs[i]))
        arrays = Arrays(args, outputs, args[-1] if scratch else None, args[count] if random else None)
        for act in acts:
            act(arrays)
        return _returned([outputs[i] for i in made])

    if bindings.codes:
        bindings.end_with(compute)
    return compute


def _returned(made: Sequence[Any]) -> Any:
    return None if not made else made[0] if len(made) == 1 else tuple(made)


def _runner(fixed: Sequence[Callable[[], None]]) -> Callable[..., None]:
    """Does it all; what it is called with is where it is known to be."""
    if len(fixed) == 1:
        only = fixed[0]
        return lambda *_: only()

    def compute(*_: Any) -> None:
        for act in fixed:
            act()

    return compute


class _Late:
    """A node whose shapes or host values are known in the step: traced once per set of them."""

    def __init__(self, ctx: BindContext, trace: Trace, options: Mapping[str, Any]) -> None:
        self._ctx = ctx
        self._trace = trace
        self._options = options
        self._host = [i for i, x in enumerate(ctx.inputs) if x.memory_space == HOST_MEMORY]
        self._random = "random" in ctx.node.opdef.effects
        self._known: dict[Any, tuple[Work, list[Act], Bindings]] = {}

    def call(self, *args: Any) -> Any:
        ctx, count = self._ctx, len(self._ctx.inputs)
        inputs = args[:count]
        values = {i: np.asarray(inputs[i]) for i in self._host}
        key = (tuple([x.shape for x in inputs]), tuple([(v.shape, v.tobytes()) for v in values.values()]))
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._traced(inputs, values)
            if len(self._known) > _KEPT:
                self._known.pop(next(iter(self._known)))[2].forget()
        work, acts, _ = found
        empty = ctx.queue.empty
        given = iter(args[count + self._random :])
        outputs: list[Any] = []
        made: list[Any] = []
        for i, info in enumerate(ctx.outputs):
            if info.mode.kind in ("planned", "inplace"):
                outputs.append(next(given))
            else:
                outputs.append(empty(info.dtype, work.out_shapes[i]))
                made.append(outputs[-1])
        scratch = empty(dtypes.uint8, (work.scratch_bytes,)) if work.scratch_bytes else None
        arrays = Arrays(inputs, outputs, scratch, args[count] if self._random else None)
        for act in acts:
            act(arrays)
        return _returned(made)

    def _traced(self, inputs: Sequence[Any], values: Mapping[int, np.ndarray]) -> tuple[Work, list[Act], Bindings]:
        ctx = self._ctx
        known = {i: x.value for i, x in enumerate(ctx.inputs) if x.value is not None} | dict(values)
        outs = [_dims(o.shape) for o in ctx.outputs]
        work = _traced(ctx, self._trace, self._options, [tuple(x.shape) for x in inputs], outs, known)
        nowhere = Arrays([None] * len(inputs), [None] * len(ctx.outputs), None, None)
        bindings = Bindings(ctx.device, ctx.queue, ctx.node)  # type: ignore[arg-type]
        bindings.end_with(self)
        fixed, varying = bind_steps(work.steps, nowhere, bindings)
        return work, varying or [lambda arrays, act=act: act() for act in fixed], bindings  # type: ignore[misc]
