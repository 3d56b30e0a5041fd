"""Kernels that write and read checkpoints, in host memory whatever the device. The files are ``graphdock_storage``'s."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable
from typing import Any

import numpy as np
from graphdock.contracts import PLANNED, Bound, BuildContext, KernelDef, PartialWriteError, dtypes, errors, shape
from graphdock.shape import Dims

from graphdock_storage import checkpoint
from graphdock_storage.checkpoint.opening import Others
from graphdock_storage.checkpoint.slices import parse_shape_and_slice

__all__ = ["kernels"]


def _text(value: bytes) -> str:
    return os.fsdecode(value)


def _name(value: bytes) -> str:
    return value.decode("utf-8", "surrogateescape")


def _save(ctx: BuildContext) -> Bound:
    kinds = [info.dtype for info in ctx.inputs[3:]]

    def compute(prefix: Any, names: Any, slices: Any, *tensors: Any) -> None:
        items = []
        for name, spelled, array, dtype in zip(names, slices, tensors, kinds, strict=True):
            found = parse_shape_and_slice(_name(spelled))
            dims, part = found or (array.shape, checkpoint.Slice.whole(array.shape))
            items.append(checkpoint.Item(_name(name), array, dtype, dims, part))
        checkpoint.write(_text(prefix[()]), items)

    return Bound(compute)


def _restore(others: Others, ctx: BuildContext) -> Bound:
    kinds = [info.dtype for info in ctx.outputs]
    used = [info.used for info in ctx.outputs]
    shapes = ctx.attr("shapes") or [None] * len(kinds)
    reshape = ctx.attr("reshape")

    # a variable's own memory is the output; what else there is to read is read before anything is written
    given = [info.mode is PLANNED for info in ctx.outputs]

    def compute(prefix: Any, names: Any, slices: Any, *outs: Any) -> Any:
        with checkpoint.open_checkpoint(_text(prefix[()]), others) as source:
            wanted = [
                _Wanted(_name(n), _name(s), *more) for n, s, *more in zip(names, slices, kinds, shapes, strict=True)
            ]
            _check_all(source, wanted, reshape)
            mine = [w for w, g in zip(wanted, given, strict=True) if not g]
            read = [u for u, g in zip(used, given, strict=True) if not g]
            found = iter(source.read_all([(w.name, w.part) for w, u in zip(mine, read, strict=True) if u]))
            made = [w.shaped(next(found)) if u else w.unread() for w, u in zip(mine, read, strict=True)]
            if outs:
                theirs = [w for w, g in zip(wanted, given, strict=True) if g]
                _fill(source, [(w.name, w.part, out) for w, out in zip(theirs, outs, strict=True)])
        if len(made) == 1:
            return made[0]
        return tuple(made) if made else None

    return Bound(compute)


def _fill(source: checkpoint.Checkpoint, wanted: list[tuple[str, checkpoint.Slice | None, Any]]) -> None:
    try:
        source.read_into(wanted)
    except checkpoint.HalfRead as error:
        raise PartialWriteError from error.__cause__


class _Wanted:
    """One tensor that is asked for."""

    def __init__(self, name: str, spelled: str, dtype: dtypes.DType, dims: Dims) -> None:
        self.name = name
        self.spelled = spelled
        self.dtype = dtype
        self.dims = dims
        self.found = parse_shape_and_slice(spelled)

    @property
    def part(self) -> checkpoint.Slice | None:
        return None if self.found is None else self.found[1]

    def misfit(self, source: checkpoint.Checkpoint, reshape: bool) -> errors.GraphdockError | None:
        """Return why the checkpoint does not have it; None when it has."""
        try:
            stored = source.find(self.name)
        except errors.NotFoundError as error:
            return error
        if stored.dtype is not self.dtype:
            return self._differs(source, "dtype", self.dtype.name, stored.dtype.name)
        if self.found is not None:
            whole, part = self.found
            if whole != stored.shape:
                return self._differs(source, "shape", _shown(whole), _shown(stored.shape))
            found = part.lengths
        else:
            found = stored.shape
        if reshape and self.dims is not None and None not in self.dims:
            if math.prod(d or 0 for d in self.dims) != math.prod(found):
                return self._differs(source, "number of elements", _shown(self.dims), _shown(found))
        elif not shape.compatible(self.dims, found):
            return self._differs(source, "shape", _shown(self.dims), _shown(found))
        return None

    def _differs(self, source: checkpoint.Checkpoint, what: str, expected: str, got: str) -> errors.GraphdockError:
        kind = errors.DTypeError if what == "dtype" else errors.ShapeError
        hint = "the graph that saved it had another variable of this name; leave it out of var_list, or rename it"
        if what == "shape":
            hint += "; reshape=True takes another shape of as many elements"
        return kind(
            f"the variable {self.name!r} has another {what} in the checkpoint {source.prefix!r}",
            expected=f"{expected} (the graph's)",
            got=f"{got} (the checkpoint's)",
            hint=hint,
        )

    def shaped(self, array: Any) -> Any:
        """Return what was read, in the shape that is asked for."""
        return array if self.dims is None or None in self.dims else array.reshape(self.dims)

    def unread(self) -> Any:
        """Return what stands for values that nobody wants."""
        return np.empty(tuple(d or 0 for d in self.dims or (0,)), self.dtype.np)


def _shown(dims: Any) -> str:
    return str(list(dims))


def _check_all(source: checkpoint.Checkpoint, wanted: list[_Wanted], reshape: bool) -> None:
    """Refuse before anything is read: with the first misfit, and the names of all others."""
    misfits = [(each.name, error) for each in wanted if (error := each.misfit(source, reshape)) is not None]
    if not misfits:
        return
    (_, first), others = misfits[0], [name for name, _ in misfits[1:]]
    if others:
        more = ", ".join(map(repr, others[:10])) + (f" and {len(others) - 10} more" if len(others) > 10 else "")
        first.message += f"; nor does it have what the graph needs of {more}"
    raise first


def _merge(ctx: BuildContext) -> Bound:
    delete = ctx.attr("delete_old_dirs")

    def compute(prefixes: Any, destination: Any) -> None:
        checkpoint.merge([_text(p) for p in prefixes], _text(destination[()]), delete)

    return Bound(compute)


def _sharded_filename(ctx: BuildContext) -> Callable[..., Any] | Bound:
    def name(basename: Any, shard: Any, count: Any) -> bytes:
        made: bytes = basename[()] + f"-{int(shard):05d}-of-{int(count):05d}".encode()
        return made

    def fresh(*args: Any) -> Any:
        out = np.empty((), object)
        out[()] = name(*args)
        return out

    def planned(*args: Any) -> None:
        args[-1][()] = name(*args[:-1])

    return Bound(fresh if ctx.fresh else planned)


def kernels(others: Others) -> list[KernelDef]:
    """The kernels; those that read take checkpoints of these formats besides graphdock's own."""
    return [
        KernelDef("SaveV2", "host", _save),
        KernelDef("RestoreV2", "host", functools.partial(_restore, others), modes=("fresh", "all_or_nothing")),
        KernelDef("MergeV2Checkpoints", "host", _merge),
        KernelDef("ShardedFilename", "host", _sharded_filename),
    ]
