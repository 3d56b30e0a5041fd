"""Calls of native functions: kernels over buffers that stay or are given, and outputs that are made."""

from __future__ import annotations

from collections.abc import Callable
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

__all__ = ["address_of", "called", "prepared", "single_threaded"]


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


def called(ctx: PrepareContext, text: str, numbers: Any, size: int = 0) -> Prepared:
    """A kernel by the function of a module, called with a node's inputs, its one output, and memory for so many numbers."""
    native = Native(address_of(ctx, text), chain, numbers)
    scratch = (Scratch(dtypes.float32, (size,)),) if size else ()
    within = single_threaded(ctx.device) if ctx.threads > 1 else None
    bind = partial(_bound, native, len(ctx.inputs), bool(size))
    return Prepared(bind, scratch=scratch, within=within, native=native, source=lambda: text)


def _bound(native: Native, count: int, framed: bool, ctx: BindContext) -> Callable[..., Any]:
    """The function of one instance. What is returned stands behind what is given."""
    made, total = ctx.outputs[0].mode.kind not in ("planned", "inplace"), count + 1 + framed
    buffers: list[Any] = [i if b is None else b for i, b in enumerate(ctx.buffers)]
    if not made:
        return chain([NativeCall(native.address, tuple(buffers), native.numbers)], total)
    buffers.insert(count, total - 1)
    call = chain([NativeCall(native.address, tuple(buffers), native.numbers)], total)
    shape, dtype = [d or 0 for d in ctx.outputs[0].shape or ()], ctx.outputs[0].dtype.np

    def fresh(*args: Any) -> Any:
        result = np.empty(shape, dtype)
        call(*args[: total - 1], result)
        return result

    return fresh
