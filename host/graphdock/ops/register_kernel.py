"""ops.RegisterKernel: a kernel without a package, for a notebook or a script."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from graphdock.arguments import check_keywords
from graphdock.contracts.device import HOST_MEMORY
from graphdock.contracts.kernel import KEYWORDS, Bound, BuildContext, KernelDef
from graphdock.contracts.kernel_facts import check_against
from graphdock.contracts.streams import streams_of
from graphdock.errors import InternalError
from graphdock.graph.graph import Graph, get_default_graph
from graphdock.ops.replacing import same_place

__all__ = ["RegisterKernel"]

Function = TypeVar("Function", bound=Callable[..., Any])


class RegisterKernel:
    """Register the decorated function as a kernel of the default graph's host, which is the process's own unless it says so.

        @ops.RegisterKernel("so3.TensorProduct", device="cpu")
        def tensor_product(ctx):
            return lambda *args: ...

    The function is the kernel's ``build``: it takes a BuildContext and returns what is called in every step (see
    :mod:`graphdock.contracts.kernel`). Keywords are those of :class:`KernelDef`. With ``compute=True`` the function is called
    in every step itself: inputs first, then the outputs to write. It may return arrays of the outputs' dtypes and shapes
    instead, one or a tuple, and need not take the outputs then; on a device of other memory than the host's it writes.

    A cell of a notebook, or a file, that is run again replaces the kernel that it registered before; plans are made anew.

    Raises:
      AlreadyExistsError: a kernel of that name is registered for the op and device, from another place.
      InvalidArgumentError: a keyword that no KernelDef has, the nearest of which is told; the kernel names what the op does not
        have, or is declared in a wrong way.
    """

    def __init__(self, op: str, device: str = "cpu", compute: bool = False, **fields: Any) -> None:
        check_keywords(fields, KEYWORDS, "RegisterKernel")
        self._op, self._device, self._compute, self._fields = op, device, compute, fields

    def __call__(self, function: Function) -> Function:
        build: Callable[[BuildContext], Bound | Callable[..., Any]] = function
        fields = dict(self._fields)
        if self._compute:
            build = functools.partial(_computing, function)
            fields.setdefault("modes", ("planned",))
        fields.setdefault("name", function.__name__)
        host = get_default_graph().host
        opdef = host.ops.get(self._op)
        kernel = KernelDef(self._op, self._device, build, **fields)
        check_against(kernel, opdef)
        before = host.kernels.of_user(kernel)
        if before is not None and before.build is not None and same_place(before.build, build):
            host.kernels.replace(before, kernel, opdef.package)
            Graph.plan_all_anew()
        else:
            host.kernels.add(kernel, "user", opdef.package)
        return function


def _computing(function: Callable[..., Any], ctx: BuildContext) -> Callable[..., Any]:
    """The function, whose outputs are written with what it returns, if it returns anything."""
    if ctx.device.memory_space != HOST_MEMORY:
        return function
    outputs, count = ctx.outputs, len(ctx.outputs)
    writes = _takes(function, len(ctx.inputs) + len(streams_of(ctx.node)) + count)

    def compute(*args: Any) -> None:
        made = function(*args) if writes else function(*args[:-count])
        if made is None and writes:
            return
        several = made if isinstance(made, tuple) else (made,)
        if len(several) != count:
            raise _mismatch(ctx, "returned the wrong number of arrays", str(count), str(len(several)))
        for array, given, out in zip(several, args[-count:], outputs, strict=True):
            if array is not given:
                if getattr(array, "dtype", None) != given.dtype or getattr(array, "shape", None) != given.shape:
                    got = f"{array.dtype}{list(array.shape)}" if isinstance(array, np.ndarray) else repr(array)
                    expected = f"an array {given.dtype}{list(given.shape)}"
                    raise _mismatch(ctx, f"returned another array for its output {out.name!r}", expected, got)
                np.copyto(given, array)

    return compute


def _takes(function: Callable[..., Any], count: int) -> bool:
    """Return whether a function may be called with so many arguments; of one that says nothing about them, yes."""
    try:
        inspect.signature(function).bind(*range(count))
    except TypeError:
        return False
    except ValueError:
        pass
    return True


def _mismatch(ctx: BuildContext, what: str, expected: str, got: str) -> InternalError:
    kernel = ctx.node.op if ctx.node.decision is None else ctx.node.decision.kernel
    return InternalError(f"kernel {kernel} of {ctx.node.op} {what}", expected=expected, got=got)
