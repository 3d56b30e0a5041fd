"""Activations as operations behind a primitive, or as primitives of their own.

The library's relu and clip make 0 of NaN. A relu is a parametric one of slope 0 here, which keeps NaN, and makes NaN of minus
infinity; relu6 is not taken.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from graphdock.contracts import PlanNode

from graphdock_onednn.interface import Algorithm, Arg, Kind
from graphdock_onednn.library import Unimplemented
from graphdock_onednn.program import Steps

__all__ = ["activate", "activation_refused", "behind"]

_ALGORITHMS = {
    "tanh": Algorithm.TANH,
    "sigmoid": Algorithm.LOGISTIC,
    "gelu": Algorithm.GELU_ERF,
    "gelu_tanh": Algorithm.GELU_TANH,
}


def activation_refused(node: PlanNode) -> str | None:
    """Return why an activation is not for the library."""
    name = node.attrs["activation"]
    return None if name in ("none", "relu", *_ALGORITHMS) else f"oneDNN's {name} makes 0 of NaN"


def behind(steps: Steps, name: str, rank: int) -> tuple[Any, dict[int, int]]:
    """Attributes of a primitive that applies the activation to what it makes, and further arguments of it."""
    if name == "none":
        return steps.attributes(), {}
    lib = steps.library
    ops, more = lib.made("dnnl_post_ops_t", lib.api.dnnl_post_ops_create), {}
    if name == "relu":
        lib.check(lib.api.dnnl_post_ops_append_prelu(ops, 0), "post-ops")
        more[int(Arg.POST_WEIGHTS)] = _slope(steps, rank)
    else:
        lib.check(lib.api.dnnl_post_ops_append_eltwise(ops, _ALGORITHMS[name], 0.0, 0.0), "post-ops")
    return steps.attributes(ops), more


def _slope(steps: Steps, rank: int) -> int:
    """Slot of the slope of a relu below 0."""
    return steps.same(np.zeros(1, np.float32), steps.layout("float32", (1,) * rank, (1,) * rank))


def activate(steps: Steps, name: str, source: int, target: int) -> None:
    """Add the activation of one slot into another. Raises Unimplemented for a relu."""
    if name == "none":
        steps.copy(source, target)
        return
    if name == "relu":
        raise Unimplemented("what a relu is applied to is read too")
    given = Kind.INFERENCE, _ALGORITHMS[name], steps.layout_of(source), steps.layout_of(target), 0.0, 0.0
    made = steps.described("eltwise_forward", *given, steps.attributes())
    steps.add(made, {Arg.SRC: source, Arg.DST: target}, (target,))
