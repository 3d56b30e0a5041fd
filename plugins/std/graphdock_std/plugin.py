"""Entry point of the ``std`` plugin: the standard op library. It owns no device and no kernel."""

from __future__ import annotations

from collections.abc import Iterable

from graphdock.contracts import OpLibrary, Pass, PatternLibrary, PlanNode, hookimpl

_ANCHORS = (
    *("BiasAdd", "Conv2D", "Erf", "GeluTanhGrad", "MatMul", "Neg", "Pack", "Relu", "Select", "Sigmoid", "Softmax"),
    *("SoftmaxCrossEntropyWithLogits", "SparseSoftmaxCrossEntropyWithLogits", "Split", "Sum", "Tanh"),
)
#: Outermost op of a rule of arithmetic -> ops within, "" for a value that is read twice. Plans without such pairs import no rules.
_PAIRS = {
    "Neg": {"Neg"},
    "LogicalNot": {"Equal", "LogicalNot", "NotEqual"},
    "Conj": {"Conj"},
    "Invert": {"Invert"},
    "Add": {"Neg"},
    "Sub": {"Neg"},
    "Mul": {"", "Neg"},
    "RealDiv": {"Neg"},
    "Square": {"Neg"},
    "Abs": {"Abs", "Neg"},
    "Relu": {"Relu"},
    "Relu6": {"Relu6"},
    "Floor": {"Floor"},
    "Ceil": {"Ceil"},
    "Rint": {"Rint"},
    "Select": {"LogicalNot"},
    "Cast": {"Cast"},
    "Pow": {"Pow"},
    "Reciprocal": {"Sqrt"},
    "Log": {"Softmax"},
    "Transpose": {"Const", "MatMul", "Transpose"},
    "Reshape": {"ExpandDims", "Reshape", "Squeeze"},
    "Squeeze": {"ExpandDims"},
    "ExpandDims": {"Squeeze"},
    "ReverseV2": {"ReverseV2"},
    "MatMul": {"Transpose"},
}


def _may_be_spared(node: PlanNode) -> bool:
    within = _PAIRS.get(node.op)
    if within is None:
        return False
    if "" in within and node.inputs[0] is node.inputs[-1]:
        return True
    return any([v.node is not None and v.node.op in within for v in node.inputs])


def _has_format(node: PlanNode) -> bool:
    return "data_format" in node.attrs


@hookimpl
def register_ops() -> Iterable[OpLibrary]:
    return [OpLibrary("graphdock_std._gen.opdefs", specs="graphdock_std")]


@hookimpl
def register_patterns() -> Iterable[PatternLibrary]:
    return [
        PatternLibrary("graphdock_std.patterns:NORMS", ("Rsqrt", "Sqrt")),
        PatternLibrary("graphdock_std.patterns:OTHERS", _ANCHORS, not_on=("cpu",)),
    ]


@hookimpl
def register_passes() -> Iterable[Pass]:
    return [
        Pass(
            "channels_last",
            "simplify",
            42,
            "computes images with channels as their last dim, where asked for",
            "graphdock_std.layout:channels_last",
            _has_format,
            on=False,
        ),
        Pass(
            "channels_first",
            "simplify",
            43,
            "computes images with channels as dim 1, where asked for",
            "graphdock_std.layout:channels_first",
            _has_format,
            on=False,
        ),
        Pass(
            "arithmetic",
            "simplify",
            45,
            "spares arithmetic, by a table of rules",
            "graphdock_std.arithmetic.rewriting:arithmetic",
            _may_be_spared,
        ),
    ]
