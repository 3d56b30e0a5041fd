"""Calls for softmax and its cross-entropies: rows along the last axis. Imports no triton."""

from __future__ import annotations

from graphdock.contracts import PrepareContext, errors

from graphdock_triton.operations.call import FLOATS, Call, Operation, dims_of, problem_of, rows_of, type_of

__all__ = ["CALLS"]


def _rows(ctx: PrepareContext) -> dict[str, int]:
    return rows_of(dims_of(ctx, 0), -1)


def _softmax(ctx: PrepareContext, log: bool = False) -> Call:
    problem = problem_of(ctx, _rows(ctx), {"T": type_of(ctx, 0)}, flags={"LOG": log})
    return Call(problem, {"x": 0, "y": 1})


def _log_softmax(ctx: PrepareContext) -> Call:
    return _softmax(ctx, log=True)


def _losses(ctx: PrepareContext) -> tuple[dict[str, int], frozenset[str]]:
    """Return which tensors a loss has: the gradient only where something reads it, and then for what arrives, if that is an
    input.
    """
    wanted, scaled = ctx.outputs[1].used, len(ctx.inputs) == 3
    first = len(ctx.inputs)
    tensors = {"x": 0, "labels": 1, "loss": first}
    if wanted:
        tensors |= {"dx": first + 1} | ({"dloss": 2} if scaled else {})
    return tensors, frozenset(tensors) & {"dx", "dloss"}


def _cross_entropy(ctx: PrepareContext) -> Call:
    tensors, present = _losses(ctx)
    kind = type_of(ctx, 0)
    return Call(problem_of(ctx, _rows(ctx), {"T": kind, "L": kind}, present=present), tensors)


def _sparse_cross_entropy(ctx: PrepareContext) -> Call:
    tensors, present = _losses(ctx)
    dims, kind = _rows(ctx), type_of(ctx, 0)
    types = {"T": kind, "L": kind, "I": type_of(ctx, 1)}
    problem = problem_of(ctx, dims, types, present=present | {"fault"})
    classes = dims["width"]

    def wrong(label: int, row: int) -> errors.GraphdockError:
        return errors.InvalidArgumentError(
            "a label is no class index",
            expected=f"labels from 0 to {classes - 1}",
            got=str(label),
            hint="features end in one column per class",
        )

    return Call(problem, tensors, {"ignored": 0, "smoothing": 0.0}, wrong)


_LABELLED = {"T": FLOATS, "Tlabels": ("int32", "int64")}

_OVER = {"gradient": ("features",)}

#: The ops of this module.
CALLS = (
    Operation("Softmax", "softmax", _softmax, {"T": FLOATS}, {"softmax": ("logits",)}),
    Operation("LogSoftmax", "softmax", _log_softmax, {"T": FLOATS}, {"logsoftmax": ("logits",)}, "log_softmax"),
    Operation("SoftmaxCrossEntropyWithLogits", "cross_entropy", _cross_entropy, {"T": FLOATS}),
    Operation("SparseSoftmaxCrossEntropyWithLogits", "sparse_cross_entropy", _sparse_cross_entropy, _LABELLED),
    Operation(
        "SoftmaxCrossEntropyWithGradient", "cross_entropy", _cross_entropy, {"T": FLOATS}, _OVER, "loss_with_gradient"
    ),
    Operation(
        "SparseSoftmaxCrossEntropyWithGradient",
        "sparse_cross_entropy",
        _sparse_cross_entropy,
        _LABELLED,
        _OVER,
        "sparse_loss_with_gradient",
    ),
)
