"""Calls of native functions: kernels over buffers that stay or are given, and outputs that are made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from graphdock.contracts import (
    BindContext,
    Device,
    Native,
    NativeCall,
    NotCompiled,
    PrepareContext,
    Prepared,
    Scratch,
    dtypes,
    errors,
)

from graphdock_llvm import gathered, gathered_text
from graphdock_llvm.native import chain
from graphdock_llvm.target import compiled, is_compiled, width

__all__ = ["address_of", "bound", "called", "prepared", "results_of", "single_threaded"]


def address_of(ctx: PrepareContext, text: str, optimized: bool = False) -> int:
    """Address of a function. Raises NotCompiled where steps need not wait for it."""
    if ctx.options.get("compile") == "meanwhile" and not is_compiled(text, optimized):
        raise NotCompiled(partial(compiled, text, optimized))
    return compiled(text, optimized)


def single_threaded(device: Device) -> Any:
    """A context in which libraries keep to the calling thread, where the device has one."""
    try:
        return device.service("single-threaded", 1)
    except errors.NotFoundError:
        return None


def prepared(ctx: PrepareContext, work: gathered.Work) -> Prepared:
    """A kernel of some work over a node's inputs, its one output, and memory for a frame."""
    size = 0 if work.frame is None else work.frame.size
    return called(ctx, gathered_text.text(width()), gathered.numbers(work, ctx.threads), size)


def called(
    ctx: PrepareContext, text: str, numbers: Any, size: int = 0, refuse: Callable[..., Any] | None = None
) -> Prepared:
    """A kernel by the function of a module, called with a node's inputs, its outputs, and memory for so many numbers.

    Args:
      refuse: raises the error of arguments for which the function leaves a status, where it does.
    """
    native = Native(address_of(ctx, text), chain, numbers, status=refuse is not None)
    scratch = (Scratch(dtypes.float32, (size,)),) if size else ()
    within = single_threaded(ctx.device) if ctx.threads > 1 else None
    shapes = [(tuple([d or 0 for d in out.shape or ()]), out.dtype.np) for out in ctx.outputs]
    bind = partial(bound, native=native, count=len(ctx.inputs), shapes=shapes, refuse=refuse)
    return Prepared(bind, scratch=scratch, within=within, native=native, source=lambda: text)


def bound(
    ctx: BindContext,
    native: Native,
    count: int,
    shapes: Sequence[Any],
    refuse: Callable[..., Any] | None = None,
) -> Callable[..., Any]:
    """The function over buffers that stay, those that are given at each call, and those of outputs that are returned.

    Args:
      count: how many inputs there are. ``shapes``: shape and NumPy's dtype of each output.
      refuse: called with the arguments for which the function leaves a status: raises their error.
    """
    made = [i for i, o in enumerate(ctx.outputs) if o.mode.kind not in ("planned", "inplace")]
    total = len(ctx.buffers) + len(made)
    buffers = [i if b is None else b for i, b in enumerate(ctx.buffers)]
    if not made:
        run = chain([_call(native, buffers)], total)
        return run if refuse is None else partial(_or_refuse, run, refuse)
    # what is returned stands among the others, and is given behind them
    for place, i in enumerate(made):
        buffers.insert(count + i, total - len(made) + place)
    call, given = chain([_call(native, buffers)], total), total - len(made)

    def fresh(*args: Any) -> Any:
        results = [np.empty(*shapes[i]) for i in made]
        if call(*args[:given], *results) is not None and refuse is not None:
            refuse(*args)
        return results_of(results)

    return fresh


def _or_refuse(run: Callable[..., int | None], refuse: Callable[..., Any], *args: Any) -> None:
    if run(*args) is not None:
        refuse(*args)


def _call(native: Native, buffers: Sequence[Any]) -> NativeCall:
    return NativeCall(native.address, tuple(buffers), native.numbers, native.brief, native.status)


def results_of(results: Sequence[Any]) -> Any:
    """The return value of a kernel that makes these outputs."""
    return None if not results else results[0] if len(results) == 1 else tuple(results)
