"""Arguments of ``gradients`` that TensorFlow names by classes."""

from __future__ import annotations

import enum
from typing import Any

from graphdock.errors import InvalidArgumentError

__all__ = ["AggregationMethod", "UnconnectedGradients"]


class AggregationMethod:
    """Taken for TensorFlow's sake: gradients that arrive at one tensor are summed by one AddN, whatever is asked for."""

    ADD_N = 0
    DEFAULT = ADD_N
    EXPERIMENTAL_TREE = 1
    EXPERIMENTAL_ACCUMULATE_N = 2

    @classmethod
    def check(cls, method: Any) -> None:
        """Raise InvalidArgumentError for what is no aggregation method and not None."""
        known = (None, cls.ADD_N, cls.EXPERIMENTAL_TREE, cls.EXPERIMENTAL_ACCUMULATE_N)
        if method not in known:
            raise InvalidArgumentError(
                "aggregation_method is wrong", expected="one of tf.AggregationMethod", got=repr(method)
            )


class UnconnectedGradients(enum.Enum):
    """What stands for the gradient by a tensor that nothing depends on: None, or zeros."""

    NONE = "none"
    ZERO = "zero"
