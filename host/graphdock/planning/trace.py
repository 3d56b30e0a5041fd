"""Plan graphs of functions of ops: decompositions, and what passes look for or put in place of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphdock.contracts.ir import PlanGraph
from graphdock.dtypes import DType
from graphdock.gradients.backprop import gradients
from graphdock.graph.graph import Graph
from graphdock.graph.tensor import Tensor
from graphdock.ops.convert import convert_to_tensor
from graphdock.ops.core import placeholder
from graphdock.planning.translate import translate
from graphdock.plugin.host import Host
from graphdock.shape import Dims

__all__ = ["trace"]


class _Tracing:
    """What :class:`graphdock.contracts.passes.Tracing` says, over the default graph."""

    def __init__(self) -> None:
        self.feeds: list[tuple[Tensor, Dims]] = []

    def input(self, dtype: DType, declared: Dims, fed: Dims) -> Tensor:
        tensor = placeholder(dtype, declared)
        self.feeds.append((tensor, fed))
        return tensor

    def like(self, tensor: Tensor, fed: Dims) -> Tensor:
        return self.input(tensor.dtype, tensor._dims, fed)

    def constant(self, array: np.ndarray[Any, Any], dtype: DType) -> Tensor:
        return convert_to_tensor(array, dtype)

    def is_tensor(self, value: Any) -> bool:
        return isinstance(value, Tensor)

    def shapes(self, tensors: Sequence[Tensor]) -> list[Dims]:
        return [v.shape for v in translate(tensors, [], self.feeds).outputs]

    def gradients(self, ys: Sequence[Tensor], xs: Sequence[Tensor], arriving: Sequence[Tensor]) -> list[Any]:
        return gradients(list(ys), list(xs), list(arriving))


def trace(host: Host, build: Callable[[_Tracing], Sequence[Tensor]]) -> PlanGraph:
    """The plan graph of the tensors that ``build`` returns, whose inputs are in the order in which it made them.

    Raises:
      whatever ``build`` raises; GraphdockError: what it built can't be translated.
    """
    with Graph(host).as_default():
        tracing = _Tracing()
        return translate(build(tracing), [], tracing.feeds)
