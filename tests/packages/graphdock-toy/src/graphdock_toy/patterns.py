"""A pattern: what is negated twice is a scale by one."""

import graphdock as tf
from graphdock.contracts import Operand, Pattern

__all__ = ["PATTERNS"]


def _twice_negated(x):
    return tf.negative(tf.negative(x))


def _scaled(x):
    from graphdock.ops import apply_op

    return apply_op("toy.Scale", x=x, factor=1.0)


PATTERNS = [Pattern("twice_negated", "Neg", {"x": Operand((None,))}, _twice_negated, _scaled, dtypes=("float32",))]
