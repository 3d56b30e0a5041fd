"""Checks of what kernels return against what their outputs are to be, in debug mode at every call, otherwise at the first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from graphdock.contracts.device import HOST_MEMORY, Device
from graphdock.contracts.ir import arg_of
from graphdock.contracts.kernel import Bound, BuildContext, In, Out, OutInfo
from graphdock.contracts.streams import streams_of
from graphdock.errors import InternalError
from graphdock.shape import compatible, concrete, show

__all__ = ["ReturnCheck", "argument_positions", "kept_inputs"]


class ReturnCheck:
    """Checks what a kernel returns for its fresh outputs and its views: how many, which dtype, which shape.

    Attributes:
      outputs: those that it returns.
      varies: a shape is not known before.
    """

    def __init__(self, ctx: BuildContext) -> None:
        promised = () if ctx.node.guard is None else ctx.node.guard.promised  # by the user, not by the kernel
        self.outputs: Sequence[OutInfo] = [
            replace(o, shape=None) if i in promised else o
            for i, o in enumerate(ctx.outputs)
            if o.mode.kind in ("fresh", "view")
        ]
        self.varies = any(concrete(o.shape) is None for o in self.outputs)
        self.op = ctx.node.op
        self.kernel = ctx.node.decision.kernel if ctx.node.decision is not None else ctx.node.op
        self._device = ctx.device
        self._row_major = all(i.contiguous for i in ctx.inputs)
        self._traits = ctx.node.opdef.traits

    def __call__(self, result: Any) -> list[Any]:
        """The buffers that were returned, one per output.

        Raises:
          InternalError: another number, something that is no buffer, another dtype, shape or order of elements than a kernel has to
            return; names the kernel and the output.
        """
        outputs = self.outputs
        if not outputs:
            return []
        if len(outputs) == 1 and outputs[0].dtype.kind == "V":
            return self._history(result)
        several = isinstance(result, (tuple, list))
        if several == (len(outputs) == 1) or (several and len(result) != len(outputs)):
            raise self.error("returned the wrong number of buffers", self._number_expected(), _number(result))
        made = list(result) if several else [result]
        for buffer, out in zip(made, outputs, strict=True):
            if out.dtype.kind == "V" and _is_history(buffer):
                continue
            if buffer is None:
                raise self.error(f"returned None for its output {out.name!r}", _shown(out), "None")
            dtype, shape = self._facts(buffer, out)
            if dtype is not None and dtype != out.dtype.np:
                raise self.error(f"returned the wrong dtype for its output {out.name!r}", out.dtype.name, str(dtype))
            if shape is not None and not compatible(out.shape, shape):
                raise self.error(f"returned the wrong shape for its output {out.name!r}", show(out.shape), show(shape))
            if (
                out.mode.kind == "fresh"
                and self._row_major
                and isinstance(buffer, np.ndarray)
                and not buffer.flags.c_contiguous
            ):
                raise self.error(
                    f"returned a strided array for its output {out.name!r}",
                    "an array that is contiguous, row by row, where all inputs are",
                    f"strides {buffer.strides} for {out.dtype.name}{list(buffer.shape)}",
                    "return np.ascontiguousarray(result)",
                )
        return made

    def _history(self, result: Any) -> list[Any]:
        """A history is a sequence of buffers; what they are, and what another variant is, is the op's to say."""
        if "unstacks" in self._traits and not _is_history(result):
            raise self.error(f"returned no list for its output {self.outputs[0].name!r}", "a list", _number(result))
        return [result]

    def _facts(self, buffer: Any, out: OutInfo) -> tuple[Any, tuple[int, ...] | None]:
        """dtype and shape of what was returned; None where nobody knows."""
        if out.memory_space == HOST_MEMORY:
            if not isinstance(buffer, (np.ndarray, np.generic)):
                raise self.error(f"returned no array for its output {out.name!r}", _shown(out), type(buffer).__name__)
            return buffer.dtype, tuple(buffer.shape)
        device: Device = self._device
        try:
            # what a view points to says nothing of its shape
            shape = None if out.mode.kind == "view" else tuple(device.shape_of(buffer))
        except (AttributeError, TypeError):
            raise self.error(
                f"returned no buffer of {device!r} for its output {out.name!r}", _shown(out), type(buffer).__name__
            ) from None
        return device.dtype_of(buffer), shape

    def _number_expected(self) -> str:
        names = ", ".join([o.name for o in self.outputs])
        return f"{len(self.outputs)} ({names})" + (", as a tuple" if len(self.outputs) > 1 else ", by itself")

    def error(self, what: str, expected: str, got: str | None = None, hint: str | None = None) -> InternalError:
        """The error of a kernel that breaks its contract."""
        return InternalError(f"kernel {self.kernel} of {self.op} {what}", expected=expected, got=got, hint=hint)


def _is_history(result: Any) -> bool:
    """Return whether something is a list of buffers, or a RowHistory."""
    return isinstance(result, Sequence) and not isinstance(result, (tuple, str))


def _shown(out: OutInfo) -> str:
    return f"{out.dtype.name}{show(out.shape)}"


def _number(result: Any) -> str:
    if result is None:
        return "None"
    return f"a {type(result).__name__} of {len(result)}" if isinstance(result, (tuple, list)) else type(result).__name__


def argument_positions(bound: Bound, ctx: BuildContext) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Of the arguments of ``compute``: position and index of each input, and of each output that it is given or scratch buffer."""
    count = len(ctx.inputs)
    if bound.args is not None:
        items = list(enumerate(bound.args))
        reads = [(at, item.index) for at, item in items if isinstance(item, In) and item.index < count]
        return reads, [(at, item.index) for at, item in items if isinstance(item, Out)]
    first = count + len(streams_of(ctx.node))  # they stand between them
    written = sum(o.mode.kind in ("planned", "inplace") for o in ctx.outputs) + len(bound.scratch)
    return [(i, i) for i in range(count)], [(first + i, i) for i in range(written)]


def kept_inputs(ctx: BuildContext) -> set[int]:
    """The inputs that the kernel must leave as they are: not those it takes over, nor variables that its op writes."""
    taken = {o.mode.input for o in ctx.outputs if o.mode.kind == "inplace"}
    args = arg_of(ctx.node)
    return {i for i, info in enumerate(ctx.inputs) if i not in taken and not (info.variable and args[i].mutates)}
