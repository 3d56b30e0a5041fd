"""ops.RegisterKernel: a kernel without a package, for a notebook or a script."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from graphdock.arguments import check_keywords
from graphdock.contracts.kernel import KEYWORDS, Bound, BuildContext, KernelDef
from graphdock.contracts.kernel_facts import check_against
from graphdock.graph.graph import get_default_graph

__all__ = ["RegisterKernel"]

Function = TypeVar("Function", bound=Callable[..., Any])


class RegisterKernel:
    """Register the decorated function as a kernel of the default graph's host, which is the process's own unless it says so.

        @ops.RegisterKernel("so3.TensorProduct", device="cpu")
        def tensor_product(ctx):
            return lambda *args: ...

    The function is the kernel's ``build``: it takes a BuildContext and returns what is called in every step (see
    :mod:`graphdock.contracts.kernel`). Keywords are those of :class:`KernelDef`. With ``compute=True`` the function is called
    in every step itself: inputs first, then the outputs to write.

    Raises:
      AlreadyExistsError: a kernel of that name is registered for the op and device.
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
            build = lambda ctx: function  # noqa: E731
            fields.setdefault("modes", ("planned",))
        fields.setdefault("name", function.__name__)
        host = get_default_graph().host
        opdef = host.ops.get(self._op)
        kernel = KernelDef(self._op, self._device, build, **fields)
        check_against(kernel, opdef)
        host.kernels.add(kernel, "user", opdef.package)
        return function
