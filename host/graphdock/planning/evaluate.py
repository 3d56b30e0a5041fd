"""Constant folding runs kernels while a plan is made, on a host-memory device: the session's, else graphdock's own."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from graphdock.contracts.device import HOST_MEMORY, Device
from graphdock.contracts.ir import PlanNode, arg_of
from graphdock.contracts.kernel import PLANNED, ArgInfo, BuildContext, In, Lit, OutInfo, build_kernel
from graphdock.placement.choose import Chooser
from graphdock.planning.plan_builder import PlanningContext
from graphdock.shape import concrete

__all__ = ["evaluator"]

Arrays: TypeAlias = "list[np.ndarray[Any, Any]]"


def evaluator(setting: PlanningContext) -> Callable[[PlanNode], Arrays | None]:
    """Function that computes a node over constants; it returns None where no kernel on host memory can."""
    place = cache(lambda: _place(setting))

    def evaluate(node: PlanNode) -> Arrays | None:
        where = place()
        if where is None:
            return None
        chooser, device_type, device = where
        choice = chooser.choose(node, device_type)
        if choice.kernel is None or "planned" not in choice.kernel.kernel.modes:
            return None
        if choice.kernel.kernel.prepare is not None:
            return None  # compiling it would cost more than it saves
        arrays = [v.node.attrs["value"] for v in node.inputs]  # type: ignore[union-attr]
        out_args = node.opdef.outputs
        try:
            outs = [np.empty(concrete(v.shape) or (), v.dtype.np) for v in node.outputs]
        except (MemoryError, ValueError):  # more elements than an array can have
            return None
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
        if setting.config.check_numerics:
            floating = [o for v, o in zip(node.outputs, outs, strict=True) if v.dtype.is_floating]
            if not all(np.isfinite(o).all() for o in floating):
                return None  # the step itself stops at it
        return outs

    return evaluate


def _place(setting: PlanningContext) -> tuple[Chooser, str, Device] | None:
    """Place where constants are computed: on a device of the session, by its choice of kernels; else on one that graphdock itself
    brings, so that what folds does not depend on which backends are listed. None where that is blocked."""
    for name, device in setting.opened.items():
        if name.type is not None and device.memory_space == HOST_MEMORY:
            return setting.chooser, name.type, device
    host = setting.host
    for state in host.plugins():
        if state.found.is_own and state.usable and state.manifest is not None:
            for declared in state.manifest.devices:
                host.backend(state.name)
                device = host.open_device(f"/device:{declared.type}:0")
                if device.memory_space == HOST_MEMORY:
                    return Chooser(host, (state.name,), {}, setting.config.deterministic), declared.type, device
    return None
