"""Which memory space each value lives in, and the transfers between spaces, as nodes of the plan.

Besides the spaces of devices there is ``scalar``: Python ints and bools of the generated source. A tensor is moved once per level
and space; what a loop captures is moved before the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from graphdock.contracts.bodies import carried, given
from graphdock.contracts.device import HOST_MEMORY
from graphdock.contracts.ir import PlanGraph, PlanNode, Value, arg_of
from graphdock.contracts.opdef import OpDef
from graphdock.device_name import DeviceSpec
from graphdock.plugin.registry import RegisteredKernel

__all__ = ["SCALAR", "TRANSFER", "Spaces", "assign_spaces"]

SCALAR = "scalar"
#: The op of a transfer node; it never stands in a user's graph.
TRANSFER = OpDef(
    "Transfer", summary="Moves a tensor to another memory space.", executes="move", traits=frozenset({"pure"})
)


def assign_spaces(
    graph: PlanGraph,
    kernels: Mapping[PlanNode, RegisteredKernel],
    scalars: set[Value],
    space_of_device: Callable[[DeviceSpec], str],
) -> Spaces:
    """Insert Transfer nodes and find the space of every value. Constants have none: each reader gets its own copy."""
    spaces = Spaces(kernels, scalars, space_of_device)
    spaces.run(graph)
    return spaces


class Spaces:
    """The space of every value (``home``), and the space in which a node needs each of its inputs."""

    def __init__(
        self,
        kernels: Mapping[PlanNode, RegisteredKernel],
        scalars: set[Value],
        space_of_device: Callable[[DeviceSpec], str],
    ) -> None:
        self.kernels = kernels
        self.scalars = scalars
        self.of_device = space_of_device
        self.home: dict[Value, str] = {}
        self.count = 0

    def run(self, graph: PlanGraph) -> None:
        for value in graph.inputs:
            self.home[value] = HOST_MEMORY
        moved = self.level(graph)
        graph.outputs = [self.moved(v, HOST_MEMORY, graph, moved) for v in graph.outputs]

    def device_space(self, node: PlanNode) -> str:
        assert node.device is not None
        return self.of_device(node.device)

    def needs(self, node: PlanNode) -> list[str | None]:
        """The space each input must be in; None where any will do."""
        if node.opdef.verb.on_host:
            return [None if v.dtype.name == "resource" else HOST_MEMORY for v in node.inputs]
        if node.opdef.verb.silent:
            return [None] * len(node.inputs)
        if node.outputs and node.outputs[0] in self.scalars and not node.bodies:
            return [None if v.dtype.name == "resource" else SCALAR for v in node.inputs]
        space = self.device_space(node)
        registered = self.kernels.get(node)
        host = registered.kernel.host if registered is not None else ()
        result: list[str | None] = []
        for arg, value in zip(arg_of(node), node.inputs, strict=True):
            if value.dtype.name == "resource":
                result.append(None)
            elif arg.memory == "host" or arg.name in host or value.dtype.name == "string":
                result.append(HOST_MEMORY)
            else:
                result.append(space)
        return result

    def level(self, graph: PlanGraph) -> dict[tuple[Value, str], Value]:
        moved: dict[tuple[Value, str], Value] = {}
        nodes, graph.nodes = graph.nodes, []
        for node in nodes:
            if node.verb == "branch":
                self.cond(node, graph, moved)
            elif node.verb == "loop":
                self.loop(node, graph, moved)
            else:
                for i, need in enumerate(self.needs(node)):
                    if need is not None:
                        node.inputs[i] = self.moved(node.inputs[i], need, graph, moved)
                self.outputs(node)
            graph.nodes.append(node)
        return moved

    def outputs(self, node: PlanNode) -> None:
        if node.verb == "constant":
            return
        if node.verb == "alias":
            source = node.inputs[0]
            if source in self.home:
                self.home[node.outputs[0]] = self.home[source]
            else:
                self.home[node.outputs[0]] = HOST_MEMORY
            return
        space = HOST_MEMORY if node.opdef.verb.on_host else self.device_space(node)
        registered = self.kernels.get(node)
        host = registered.kernel.host if registered is not None else ()
        args = node.opdef.outputs
        for i, value in enumerate(node.outputs):
            arg = args[i] if len(args) == len(node.outputs) else args[0]
            if value in self.scalars:
                self.home[value] = SCALAR
            elif arg.memory == "host" or arg.name in host or value.dtype.name == "string":
                self.home[value] = HOST_MEMORY
            else:
                self.home[value] = space

    def is_constant(self, value: Value) -> bool:
        return value.node is not None and value.node.verb == "constant"

    def moved(self, value: Value, space: str, graph: PlanGraph, cache: dict[tuple[Value, str], Value]) -> Value:
        if self.is_constant(value) or value.dtype.name == "resource" or self.home[value] == space:
            return value
        found = cache.get((value, space))
        if found is not None:
            return found
        source = value
        if (
            self.home[value] not in (HOST_MEMORY, SCALAR)
            and space != HOST_MEMORY
            or self.home[value] == SCALAR
            and space != HOST_MEMORY
        ):
            source = self.moved(value, HOST_MEMORY, graph, cache)
        self.count += 1
        origin = value.node
        node = PlanNode(
            TRANSFER.name,
            f"{value.name}/to_{space}_{self.count}",
            TRANSFER,
            {"source": self.home[source], "target": space},
            [source],
            site_of=origin.site_of if origin is not None else None,
            origins=origin.origins if origin is not None else (value.name,),
        )
        result = Value(node.name, value.dtype, value.shape, node, 0)
        node.outputs.append(result)
        graph.nodes.append(node)
        self.home[result] = space
        cache[value, space] = result
        return result

    def wanted(self, bodies: list[PlanGraph], position: int) -> str | None:
        """The space in which the first reader inside wants input ``position`` of the bodies."""
        for body in bodies:
            value = body.inputs[position]
            for node in body.nodes:
                if value not in node.inputs:
                    continue
                if node.bodies:
                    for i, v in enumerate(given(node)):
                        if v is value:
                            found = self.wanted(node.bodies, i)
                            if found is not None:
                                return found
                    continue
                for v, need in zip(node.inputs, self.needs(node), strict=True):
                    if v is value and need is not None:
                        return need
        return None

    def cond(self, node: PlanNode, graph: PlanGraph, moved: dict[tuple[Value, str], Value]) -> None:
        node.inputs[0] = self.moved(node.inputs[0], SCALAR, graph, moved)
        for body in node.bodies:
            for outer, inner in zip(given(node), body.inputs, strict=True):
                if outer in self.home:
                    self.home[inner] = self.home[outer]
                else:
                    self.home[inner] = HOST_MEMORY
        caches = [self.level(body) for body in node.bodies]
        for i, out in enumerate(node.outputs):
            if out in self.scalars:
                space = SCALAR
            else:
                homes = [self.home.get(b.outputs[i]) for b in node.bodies if not self.is_constant(b.outputs[i])]
                space = next((h for h in homes if h not in (None, SCALAR)), HOST_MEMORY) or HOST_MEMORY
            self.home[out] = space
            for body, cache in zip(node.bodies, caches, strict=True):
                body.outputs[i] = self.moved(body.outputs[i], space, body, cache)

    def loop(self, node: PlanNode, graph: PlanGraph, moved: dict[tuple[Value, str], Value]) -> None:
        cond, body = node.bodies
        count = carried(node.opdef, node.attrs)
        for i, value in enumerate(node.inputs):
            if value.dtype.name == "resource":
                continue
            if i < count and node.outputs[i] in self.scalars:
                space: str = SCALAR
            else:
                start = None if self.is_constant(value) else self.home.get(value)
                wanted = self.wanted([body, cond], i)
                space = wanted or start or HOST_MEMORY
                if space == SCALAR and (i < count or value not in self.scalars):
                    space = SCALAR if i >= count else HOST_MEMORY
            node.inputs[i] = self.moved(value, space, graph, moved)
            for b in node.bodies:
                self.home[b.inputs[i]] = space
            if i < count:
                self.home[node.outputs[i]] = space
        cache = self.level(cond)
        cond.outputs[0] = self.moved(cond.outputs[0], SCALAR, cond, cache)
        cache = self.level(body)
        for i in range(count):
            body.outputs[i] = self.moved(body.outputs[i], self.home[body.inputs[i]], body, cache)
