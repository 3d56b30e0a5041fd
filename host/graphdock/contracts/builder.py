"""Builder: makes a plan graph, node by node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from graphdock.contracts.ir import PlanGraph, PlanNode, Value, make_node
from graphdock.contracts.opdef import OpDef
from graphdock.device_name import DeviceSpec
from graphdock.dtypes import DType
from graphdock.shape import Dims

__all__ = ["Builder"]


class Builder:
    """Builds a PlanGraph node by node.

    b = Builder("main")
    x = b.input("x", float32, (None, 4))
    (y,) = b.node(opdef, "y", [x], {"T": float32}, [(float32, (None, 4))])
    graph = b.finish([y])
    """

    def __init__(self, name: str = "main") -> None:
        self.graph = PlanGraph(name)

    def input(self, name: str, dtype: DType, shape: Dims) -> Value:
        value = Value(name, dtype, shape)
        self.graph.inputs.append(value)
        return value

    def node(
        self,
        opdef: OpDef,
        name: str,
        inputs: Sequence[Value],
        attrs: Mapping[str, Any],
        outputs: Sequence[tuple[DType, Dims]],
        control: Iterable[PlanNode] = (),
        requested: DeviceSpec | None = None,
        site_of: Any = None,
        bodies: Sequence[PlanGraph] = (),
        origins: tuple[str, ...] = (),
        order: Iterable[PlanNode] = (),
    ) -> list[Value]:
        """Append a node and return its outputs; the node itself is ``outputs[0].node`` or ``graph.nodes[-1]``."""
        node = make_node(opdef, name, inputs, attrs, outputs, control, requested, site_of, bodies, origins, order)
        self.graph.add(node)
        return node.outputs

    def finish(self, outputs: Sequence[Value] = (), targets: Sequence[PlanNode] = ()) -> PlanGraph:
        """The graph, checked. Raises PlanError when it breaks the grammar."""
        from graphdock.contracts.ir_check import check

        self.graph.outputs = list(outputs)
        self.graph.targets = list(targets)
        check(self.graph)
        return self.graph
