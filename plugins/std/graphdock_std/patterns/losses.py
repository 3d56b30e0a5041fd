"""Cross-entropies and the gradient of their logits."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import graphdock as _tf
from graphdock import ops as _ops
from graphdock.contracts import Found, Operand, Pattern

from graphdock_std.patterns.operands import PARTS, any_of


def _apart(features: Any, labels: Any, column: Any, *, op: str) -> list[Any]:
    """As gradients are built: what arrives at the loss is a column."""
    made = _ops.apply_op(op, features=features, labels=labels)
    return [made.loss, made.backprop * column]


def _together(features: Any, labels: Any, column: Any, *, op: str) -> list[Any]:
    slope = _tf.reshape(column, features.shape[:-1])
    made = _ops.apply_op(op, features=features, labels=labels, slope=slope)
    return [made.loss, made.gradient]


def losses() -> Iterator[Pattern]:
    """One pattern per op, rank of the logits and type of the labels."""
    for rank in (2, 3):
        like = {"features": any_of(rank), "column": Operand((*(None,) * (rank - 1), 1))}
        kinds = {
            "softmax": any_of(rank),
            **{f"sparse_softmax_{t}": Operand((None,) * (rank - 1), t) for t in ("int32", "int64")},
        }
        for kind, labels in kinds.items():
            op = f"{'Sparse' if kind != 'softmax' else ''}SoftmaxCrossEntropyWith"
            yield Pattern(
                f"{kind}_cross_entropy_gradient_{rank}",
                f"{op}Logits",
                like | {"labels": labels},
                functools.partial(_apart, op=f"{op}Logits"),
                functools.partial(_together, op=f"{op}Gradient"),
                not_on=PARTS,
                check=_of_rows,
                late=True,
            )


def _of_rows(found: Found) -> str | None:
    """None where something arrives at each row: a column of one number, or of fewer dims, is stretched over them."""
    rows = found.shapes["features"][:-1]
    return None if found.shapes["column"][:-1] == rows else "what arrives is not a number per row"
