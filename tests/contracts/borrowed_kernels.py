"""Skeleton (b): a package that owns no device and brings kernels for another's, through that device's service ``launch``.

It imports nothing of the device's package: the device type is a name, the service and its version are the whole agreement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from graphdock.contracts import ArgInfo, Bound, BuildContext, KernelDef, OutInfo, PlanNode, hookimpl

DEVICE = "recorder"


def _planned(node: PlanNode) -> str | None:
    known = all(v.shape is not None and None not in v.shape for v in (*node.inputs, *node.outputs))
    return None if known else "it launches over shapes that are known when it is built"


def _build(name: str, program: Callable[..., Any], capture_safe: bool = True) -> Callable[[BuildContext], Bound]:
    def build(ctx: BuildContext) -> Bound:
        launch = ctx.device.service("launch", 1)
        infos: list[ArgInfo | OutInfo] = [*ctx.inputs, *ctx.outputs]
        facts = [(info.dtype, tuple(d or 0 for d in info.shape or ())) for info in infos]

        def compute(*buffers: Any) -> None:
            launch(name, program, [(b, dtype, shape) for b, (dtype, shape) in zip(buffers, facts, strict=True)])

        return Bound(compute, capture_safe=capture_safe)

    return build


@hookimpl
def register_kernels() -> Iterable[KernelDef]:
    return [
        KernelDef(
            "Add",
            DEVICE,
            _build("add", np.add),
            check=_planned,
            inplace={"z": ("x", "y")},
            modes=("planned", "inplace"),
        ),
        KernelDef("Square", DEVICE, _build("square", np.square), check=_planned, modes=("planned",)),
        KernelDef("Exp", DEVICE, _build("exp", np.exp, capture_safe=False), check=_planned, modes=("planned",)),
    ]
