"""A pattern: what is negated is a scale by minus one."""

import graphdock as tf
from graphdock.contracts import Operand, Pattern

__all__ = ["PATTERNS"]


def _negated(x):
    return tf.negative(x)


def _scaled(x):
    from graphdock.ops import apply_op

    return apply_op("toy.Scale", x=x, factor=-1.0)


PATTERNS = [Pattern("negated", "Neg", {"x": Operand((None,))}, _negated, _scaled, dtypes=("float32",))]
