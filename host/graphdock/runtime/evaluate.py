"""Constant folding runs kernels while a plan is made, on a host-memory device of the session."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from graphdock.contracts.device import HOST_MEMORY
from graphdock.contracts.ir import PlanNode, arg_of
from graphdock.contracts.kernel import PLANNED, ArgInfo, BuildContext, In, Lit, OutInfo, build_kernel
from graphdock.runtime.draft import Setting
from graphdock.shape import concrete

__all__ = ["evaluator"]

Arrays: TypeAlias = "list[np.ndarray[Any, Any]]"


def evaluator(setting: Setting) -> Callable[[PlanNode], Arrays | None]:
    """What computes a node over constants; it returns None where no kernel on host memory can."""
    name = next((d for d in setting.devices if setting.opened[d].memory_space == HOST_MEMORY), None)
    if name is None or name.type is None:
        return lambda node: None
    device, device_type = setting.opened[name], name.type

    def evaluate(node: PlanNode) -> Arrays | None:
        choice = setting.chooser.choose(node, device_type)
        if choice.kernel is None or "planned" not in choice.kernel.kernel.modes:
            return None
        if choice.kernel.kernel.prepare is not None:
            return None  # compiling it would cost more than it saves
        arrays = [v.node.attrs["value"] for v in node.inputs]  # type: ignore[union-attr]
        out_args = node.opdef.outputs
        outs = [np.empty(concrete(v.shape) or (), v.dtype.np) for v in node.outputs]
        ctx = BuildContext(
            node,
            tuple(
                ArgInfo(arg.name, v.dtype, v.shape, HOST_MEMORY, a)
                for arg, v, a in zip(arg_of(node), node.inputs, arrays, strict=True)
            ),
            tuple(
                OutInfo(out_args[min(i, len(out_args) - 1)].name, v.dtype, v.shape, HOST_MEMORY, PLANNED)
                for i, v in enumerate(node.outputs)
            ),
            device,
            device.queue,
        )
        try:
            bound = build_kernel(choice.kernel.kernel, ctx)
            buffers = [*outs, *[np.empty(s.shape, s.dtype.np) for s in bound.scratch]]
            if bound.args is None:
                args: list[Any] = [*arrays, *buffers]
            else:
                args = [
                    a.value if isinstance(a, Lit) else arrays[a.index] if isinstance(a, In) else buffers[a.index]
                    for a in bound.args
                ]
            with np.errstate(all="ignore"):
                bound.compute(*args)
        except Exception:  # noqa: BLE001 - whatever a kernel raises
            return None  # the step itself will raise it, with the node's own line
        if setting.check_numerics:
            floating = [o for v, o in zip(node.outputs, outs, strict=True) if v.dtype.is_floating]
            if not all(np.isfinite(o).all() for o in floating):
                return None  # the step itself stops at it
        return outs

    return evaluate
