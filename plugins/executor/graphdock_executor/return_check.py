"""Checks of what kernels return against what their outputs are to be, in debug mode at every call, otherwise once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from graphdock.contracts.device import HOST_MEMORY, Device
from graphdock.contracts.kernel import BuildContext, OutInfo
from graphdock.contracts.step import CancellationToken
from graphdock.errors import InternalError
from graphdock.shape import compatible, concrete, show

__all__ = ["FirstCallCheck", "ReturnCheck", "once_per_shape"]

#: Sets of feed shapes that an instance remembers as checked; beyond, they are forgotten and checked again.
_REMEMBERED = 1024


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

    def __call__(self, result: Any) -> list[Any]:
        """The buffers that were returned, one per output.

        Raises:
          InternalError: another number, something that is no buffer, another dtype or shape; names the kernel and the output.
        """
        outputs = self.outputs
        if not outputs:
            return []
        if len(outputs) == 1 and outputs[0].dtype.kind == "V":
            return self._history(result)
        several = isinstance(result, (tuple, list))
        if several == (len(outputs) == 1) or (several and len(result) != len(outputs)):
            raise self._error("returned the wrong number of buffers", self._number_expected(), _number(result))
        made = list(result) if several else [result]
        for buffer, out in zip(made, outputs, strict=True):
            if buffer is None:
                raise self._error(f"returned None for its output {out.name!r}", _shown(out), "None")
            dtype, shape = self._facts(buffer, out)
            if dtype is not None and dtype != out.dtype.np:
                raise self._error(f"returned the wrong dtype for its output {out.name!r}", out.dtype.name, str(dtype))
            if shape is not None and not compatible(out.shape, shape):
                raise self._error(f"returned the wrong shape for its output {out.name!r}", show(out.shape), show(shape))
        return made

    def _history(self, result: Any) -> list[Any]:
        """A history is a list of buffers; what they are is the op's to say."""
        if not isinstance(result, list):
            raise self._error(f"returned no list for its output {self.outputs[0].name!r}", "a list", _number(result))
        return [result]

    def _facts(self, buffer: Any, out: OutInfo) -> tuple[Any, tuple[int, ...] | None]:
        """dtype and shape of what was returned; None where nobody knows."""
        if out.memory_space == HOST_MEMORY:
            if not isinstance(buffer, (np.ndarray, np.generic)):
                raise self._error(f"returned no array for its output {out.name!r}", _shown(out), type(buffer).__name__)
            return buffer.dtype, tuple(buffer.shape)
        device: Device = self._device
        try:
            # what a view points to says nothing of its shape
            shape = None if out.mode.kind == "view" else tuple(device.shape_of(buffer))
        except (AttributeError, TypeError):
            raise self._error(
                f"returned no buffer of {device!r} for its output {out.name!r}", _shown(out), type(buffer).__name__
            ) from None
        return device.dtype_of(buffer), shape

    def _number_expected(self) -> str:
        names = ", ".join([o.name for o in self.outputs])
        return f"{len(self.outputs)} ({names})" + (", as a tuple" if len(self.outputs) > 1 else ", by itself")

    def _error(self, what: str, expected: str, got: str) -> InternalError:
        return InternalError(f"kernel {self.kernel} of {self.op} {what}", expected=expected, got=got)


def _shown(out: OutInfo) -> str:
    return f"{out.dtype.name}{show(out.shape)}"


def _number(result: Any) -> str:
    if result is None:
        return "None"
    return f"a {type(result).__name__} of {len(result)}" if isinstance(result, (tuple, list)) else type(result).__name__


class FirstCallCheck:
    """Stands for a kernel in an instance's namespace until it has been called, and checks what that call returns.

    Then the kernel stands there itself, so that later calls cost what they did.

    Args:
      called: what puts kernels back after an interrupt (see ``interrupter``).
    """

    __slots__ = ("_called", "_compute", "_name", "_namespace", "_token", "check")

    def __init__(
        self,
        compute: Callable[..., Any],
        check: ReturnCheck,
        name: str,
        namespace: dict[str, Any],
        called: dict[str, Any],
        token: CancellationToken,
    ) -> None:
        self.check = check
        self._compute, self._name = compute, name
        self._namespace, self._called, self._token = namespace, called, token

    def __call__(self, *args: Any) -> Any:
        result = self._compute(*args)
        self.check(result)
        self._put(self._compute)
        return result

    def renew(self) -> None:
        """Check the next call, too."""
        self._put(self)

    def _put(self, function: Callable[..., Any]) -> None:
        self._namespace[self._name] = self._called[self._name] = function
        # an interrupt of the step may have put its own there, just before: it sets the error first
        if self._token.error is not None:
            raise self._token.error


def once_per_shape(call: Callable[..., Any], kernels: Sequence[FirstCallCheck]) -> Callable[..., Any]:
    """``call`` of a step whose feeds have many shapes: the first step of each set of shapes checks what kernels return."""
    seen: set[tuple[tuple[int, ...], ...]] = set()

    def by_shape(*feeds: Any) -> Any:
        shapes = tuple([f.shape for f in feeds])
        if shapes in seen:
            return call(*feeds)
        for kernel in kernels:
            kernel.renew()
        results = call(*feeds)
        if len(seen) >= _REMEMBERED:
            seen.clear()
        seen.add(shapes)
        return results

    return by_shape
