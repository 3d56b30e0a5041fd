"""Entry point of the ``std`` plugin: the standard op library. It owns no device and no kernel."""

from __future__ import annotations

from collections.abc import Iterable

from graphdock.contracts import OpLibrary, PatternLibrary, hookimpl

_ANCHORS = (
    *("BiasAdd", "Conv2D", "Erf", "GeluTanhGrad", "MatMul", "Neg", "Pack", "Relu", "Select", "Sigmoid", "Softmax"),
    *("SoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits", "Split", "Sum", "Tanh"),
)


@hookimpl
def register_ops() -> Iterable[OpLibrary]:
    return [OpLibrary("graphdock_std._gen.opdefs", specs="graphdock_std")]


@hookimpl
def register_patterns() -> Iterable[PatternLibrary]:
    return [
        PatternLibrary("graphdock_std.patterns:NORMS", ("Rsqrt", "Sqrt")),
        PatternLibrary("graphdock_std.patterns:OTHERS", _ANCHORS, not_on=("cpu",)),
    ]
