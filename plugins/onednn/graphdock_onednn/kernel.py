"""Kernels of the cpu device whose nodes are programs of the library."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from graphdock.contracts import (
    BindContext,
    KernelDef,
    KernelRefused,
    PlanNode,
    PrepareContext,
    Prepared,
    Scratch,
    dtypes,
    errors,
)

from graphdock_onednn.launch import Kept, Lasting, Launch, Shared, room_of
from graphdock_onednn.library import Library, Unimplemented, library
from graphdock_onednn.programs import KEPT, Call, Make, program_of

__all__ = ["FLOATS", "Watch", "kernel"]

#: dtypes that the library computes with; the narrow ones are summed up in float32.
FLOATS = ("float32", "bfloat16", "float16")
#: Bytes of a tensor from which on the library's own numbers might overflow.
_LARGEST = 1 << 31
#: Elements of all arrays, up to which a node is computed before threads of BLAS would disturb it: a step of such nodes alone is
#: spared the context, which takes some microseconds.
_SMALL = 1 << 14
#: Elements of the largest array, from which on ways are measured.
_LARGE = 1 << 17
#: What was measured.
_CHOSEN: dict[Hashable, Make] = {}
#: How many ways for arrays to lie a node keeps launches for.
_VIEWS = 8


@dataclass(frozen=True, slots=True)
class Watch:
    """Numbers that a node's program writes behind its arrays, float32 of this shape: where they are not ``good``, what
    ``instead(*arrays)`` computes counts.
    """

    shape: tuple[int, ...]
    good: Callable[[Any], bool]
    instead: Callable[..., None]


def refused(node: PlanNode) -> str | None:
    """Return why a node is not for the library, as far as its shapes and dtypes say."""
    for value in (*node.inputs, *node.outputs):
        shape = value.shape
        if shape is None or None in shape:
            return "its shapes are not known"
        if value.dtype.name in FLOATS:
            if 0 in shape:
                return "it has no elements"
            if math.prod(shape) * value.dtype.size >= _LARGEST:  # type: ignore[arg-type]
                return "a tensor takes 2 GiB or more"
    return None


def kernel(
    op: str,
    make: Make,
    *,
    attrs: Sequence[str] = (),
    check: Callable[[PlanNode], str | None] | None = None,
    types: Sequence[str] = FLOATS,
    strided: bool = False,
    watch: Callable[[Call], Watch] | None = None,
    other: Make | None = None,
) -> list[KernelDef]:
    """Kernels whose program ``make`` adds to its steps: one that is computed on one thread where others have the threads, or would
    not get a core, with other bits then; and one for sessions that want the same bits always.

    Args:
      attrs: attributes that the program depends on.
      check: why a node of known shapes is not for it.
      strided: arrays may be views: the program is made for how they lie.
      watch: what is computed by NumPy, where the library computes something else than the op's spec says.
      other: another way to the same, which is measured beside ``make`` where much is to be computed and bits may differ.
    """

    def reason(node: PlanNode) -> str | None:
        return refused(node) or (None if check is None else check(node))

    def prepare(ctx: PrepareContext) -> Prepared:
        return _prepare(ctx, (make,) if other is None else (make, other), tuple(attrs), strided, watch, steady=False)

    def prepare_steady(ctx: PrepareContext) -> Prepared:
        return _prepare(ctx, (make,), tuple(attrs), strided, watch, steady=True)

    facts: dict[str, Any] = {"types": {"T": tuple(types)}, "check": reason, "probe": _probe}
    facts["layout"] = "strided" if strided else "contiguous"
    quick = KernelDef(op, "cpu", prepare=prepare, priority=1, deterministic=False, **facts)
    return [quick, KernelDef(op, "cpu", prepare=prepare_steady, name=f"{quick.short_name}_steady", **facts)]


def _probe() -> str:
    """The library, in words. Raises where it is not there."""
    found = library()
    return f"oneDNN {found.version} on {found.isa}: {found.path}"


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _quickest(ctx: PrepareContext, lib: Library, makes: Sequence[Make], call: Call) -> Make:
    """The way of least time: measured where there are several and it is worth it, once per process; else the first one."""
    key = lib.path, tuple(makes), call, ctx.threads
    if len(makes) < 2 or max(math.prod(s) for s in call.shapes) < _LARGE:
        return makes[0]
    if key in _CHOSEN:
        return _CHOSEN[key]
    ran: set[Make] = set()

    def candidate(make: Make) -> Callable[..., None]:
        program = program_of(lib, make, call, ctx.threads)
        room = room_of(program.nbytes) if program.nbytes else None
        launch = Launch(program, [None] * len(call.shapes), room, Lasting(), Kept())

        def run(queue: Any, *arrays: Any) -> None:
            launch.run(arrays)
            ran.add(make)

        return run

    try:
        chosen = makes[ctx.measure([candidate(make) for make in makes])]
    except Unimplemented:
        return makes[0]
    if len(ran) == len(makes):  # a plan that is only explained measures nothing
        if len(_CHOSEN) >= KEPT:
            _CHOSEN.clear()
        _CHOSEN[key] = chosen
    return chosen


def _prepare(
    ctx: PrepareContext,
    makes: Sequence[Make],
    names: tuple[str, ...],
    strided: bool,
    watch: Callable[[Call], Watch] | None,
    steady: bool,
) -> Prepared:
    why = refused(ctx.node)
    if why:
        raise KernelRefused(why)
    lib = library(str(ctx.options.get("library", "")))
    call = Call.contiguous(ctx.inputs, ctx.outputs, tuple((n, _frozen(ctx.attr(n))) for n in names))
    make = _quickest(ctx, lib, makes, call)
    program = program_of(lib, make, call, ctx.threads)
    bound = partial(
        _bind, lib=lib, make=make, call=call, threads=ctx.threads, kept=Kept(), steady=steady, strided=strided,
        watch=None if watch is None else watch(call),
    )  # fmt: skip
    scratch = (Scratch(dtypes.uint8, (program.nbytes,)),) if program.nbytes else ()
    small = sum(math.prod(s) for s in call.shapes) <= _SMALL
    return Prepared(bound, scratch=scratch, within=None if small else _single_threaded(ctx))


def _single_threaded(ctx: PrepareContext) -> AbstractContextManager[Any] | None:
    """The context in which the device's own BLAS leaves the cores alone; None where it has no such thing."""
    try:
        found: AbstractContextManager[Any] = ctx.device.service("single-threaded", 1)
    except errors.GraphdockError:
        return None
    return found


class _Node:
    """Launches of one node in one instance, by how its arrays lie."""

    def __init__(self, lib: Library, make: Make, call: Call, steady: bool, lasting: Lasting, kept: Kept) -> None:
        self._library, self._make, self.call, self._steady = lib, make, call, steady
        self._lasting, self._kept = lasting, kept
        self._views: dict[Any, Shared] = {}

    def shared(self, call: Call, threads: int, buffers: Sequence[Any], scratch: Any) -> Shared:
        """For arrays that lie as the call says; ``scratch``: the instance's own."""
        own = call is self.call
        lasting, kept = (self._lasting, self._kept) if own else (Lasting(), Kept())

        def launch(threads: int, first: bool) -> Launch:
            program = program_of(self._library, self._make, call, threads)
            if first:
                return Launch(program, buffers, scratch, lasting, kept)
            lent = room_of(program.nbytes) if program.nbytes else None
            own = [b if i >= len(call.dtypes) else None for i, b in enumerate(buffers)]
            return Launch(program, own, lent, lasting, kept)

        return Shared(self._library, launch, threads, self._steady)

    def of_views(self, arrays: Sequence[Any], threads: int) -> Shared:
        """For arrays that lie as they do."""
        key = tuple(a.strides for a in arrays)
        found = self._views.get(key)
        if found is None:
            call = self.call
            for place, array in enumerate(arrays):
                call = call.lying(place, tuple(s // array.itemsize for s in array.strides))
            nbytes = program_of(self._library, self._make, call, threads).nbytes
            room = room_of(nbytes) if nbytes else None
            if len(self._views) >= _VIEWS:
                self._views.clear()
            found = self._views[key] = self.shared(call, threads, [None] * len(arrays), room)
        return found


def _bind(
    told: BindContext, *, lib: Library, make: Make, call: Call, threads: int, kept: Kept, steady: bool, strided: bool,
    watch: Watch | None,
) -> Callable[..., Any]:  # fmt: skip
    count, ends = call.inputs, len(call.shapes)
    constants = {i: np.ascontiguousarray(told.inputs[i].value) for i in call.constants}
    versions = {i: v for i, v in enumerate(told.versions) if v is not None and told.buffers[i] is not None}
    lasting = Lasting(constants, {i: told.buffers[i] for i in versions}, tuple(versions.values()))
    node = _Node(lib, make, call, steady, lasting, kept)
    buffers = [*told.buffers[:count], *([None] * (ends - count) if told.fresh else told.buffers[count:ends])]
    scratch = told.buffers[-1] if len(told.buffers) > (count if told.fresh else ends) else None
    sums = [] if watch is None else [np.empty(watch.shape, np.float32)]
    shared = node.shared(call, threads, [*buffers, *sums], scratch)
    empty = [partial(np.empty, s, o.dtype.np) for s, o in zip(call.shapes[count:], told.outputs, strict=True)]
    fresh = told.fresh

    def compute(*args: Any) -> Any:
        made = [make() for make in empty] if fresh else []
        arrays = [*args[:count], *made] if fresh else args[:ends]
        if strided and not all(a.flags.c_contiguous for a in arrays):
            arrays = [a if lies_well(a) else np.ascontiguousarray(a) for a in arrays]
            node.of_views(arrays, threads).run(arrays)
        else:
            shared.run(arrays, args[-1])
        if watch is not None and not watch.good(sums[0]):
            watch.instead(*arrays)
        if fresh:
            return made[0] if len(made) == 1 else tuple(made)
        return None

    return compute


def lies_well(array: Any) -> bool:
    """Return whether the library takes a view as it lies: whole elements apart, none repeated, rows or columns without gaps."""
    steps = [s for s, n in zip(array.strides, array.shape, strict=True) if n > 1]
    whole = all(s > 0 and s % array.itemsize == 0 for s in steps)
    return whole and (not steps or array.itemsize in array.strides[-2:])
