"""Activations, their gradients and biases, as expressions over single elements."""

from __future__ import annotations

from graphdock.contracts import KernelDef

from graphdock_cuda.kernel import family
from graphdock_cuda.kernels.elementwise import broadcast_shape, elementwise, mapped
from graphdock_cuda.work import Work

__all__ = ["FORMULAS", "KERNELS"]

KERNELS: list[KernelDef] = []
kernel = family(KERNELS)
_MODES = ("planned", "fresh", "inplace")

#: Op -> formula over its inputs, in the language of specs.
FORMULAS = {
    "Elu": "select(features > 0, features, expm1(features))",
    "Selu": "select(features > 0, features, expm1(features) * 1.6732632423543772) * 1.0507009873554805",
    "Softplus": "maximum(features, 0) + log1p(exp(-abs(features)))",
    "Softsign": "features / (abs(features) + 1)",
    "TanhGrad": "(1 - y * y) * dy",
    "SigmoidGrad": "(1 - y) * y * dy",
    "ClipByValue": "maximum(minimum(x, high), low)",
    "GeluGrad": "((1 + erf(x * 0.7071067811865476)) * 0.5 + x * exp(x * x * -0.5) * 0.3989422804014327) * dy",
    "GeluTanhGrad": "sigmoid((x + x * x * x * 0.044715) * 1.5957691216057308) * (1 + x "
    "* sigmoid((x + x * x * x * 0.044715) * -1.5957691216057308) * (x * x * 0.21406444881780076 + 1.5957691216057308)) * dy",
}


def _by_formula(w: Work) -> None:
    names = [arg.name for arg in w.node.opdef.inputs]
    out = w.output(broadcast_shape([x.shape for x in w.inputs]))
    elementwise(w, FORMULAS[w.node.op], list(zip(names, w.inputs, strict=True)), out)


_X = {"activations": ("features",)}
kernel("Elu", "Selu", "Softplus", "Softsign", inplace=_X, modes=_MODES)(_by_formula)
kernel("TanhGrad", "SigmoidGrad", inplace={"dx": ("y", "dy")}, modes=_MODES)(_by_formula)
kernel("GeluGrad", "GeluTanhGrad", inplace={"dx": ("x", "dy")}, modes=_MODES)(_by_formula)
kernel("ClipByValue", inplace={"y": ("x",)}, modes=_MODES)(_by_formula)


@kernel("BiasAdd", inplace={"output": ("value",)}, modes=_MODES)
def bias_add(w: Work) -> None:
    value, bias = w.inputs
    after = value.rank - 2 if w.attr("data_format") == "NCHW" else 0
    mapped(w, "bias_add", "add(x0, x1)", [value, bias.reshaped(bias.shape[0], *(1,) * after)], w.output(value.shape))
