"""An executor that interprets a placed graph node by node, in a random order that its edges allow: another one in every step.

It plans no storage: each kernel returns buffers of its own (mode ``fresh``), a read is a copy. What it and the straight-line
executor agree on is what the edges of a plan say.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from graphdock.contracts import (
    FRESH,
    HOST_MEMORY,
    SCALAR,
    ArgInfo,
    BindContext,
    BuildContext,
    Executor,
    In,
    Lit,
    OutInfo,
    PlacedGraph,
    PlanGraph,
    PlanNode,
    Program,
    StepContext,
    Value,
    build_kernel,
    errors,
    kernel_error,
)
from graphdock.contracts.bodies import carried, elements, given, stacked
from graphdock.contracts.ir import arg_of
from graphdock.contracts.streams import streams_of

#: (earlier, later): an order edge, by the nodes' names.
Edge = tuple[str, str]


def order_edges(graph: PlanGraph) -> list[Edge]:
    """Every order edge of a graph and its bodies that no path of other edges repeats."""
    found = []
    for level in graph.all_graphs():
        earlier = {n: {*(v.node for v in n.inputs if v.node is not None), *n.control, *n.order} for n in level.nodes}
        for node in level.nodes:
            for before in node.order:
                others = {v.node for v in node.inputs} | set(node.control) | (set(node.order) - {before})
                seen, stack = set(), [n for n in others if n is not None]
                while stack:
                    other = stack.pop()
                    if other not in seen:
                        seen.add(other)
                        stack += earlier[other]
                if before not in seen:
                    found.append((before.name, node.name))
    return found


class ShufflingExecutor(Executor):
    """Args:
    seed: of the orders. ``without``: order edges that it does not know of.
    """

    name = "shuffling"

    def __init__(self, seed: int = 0, without: Iterable[Edge] = ()) -> None:
        self.rng = random.Random(seed)
        self.without = frozenset(without)

    def compile(self, placed: PlacedGraph) -> ShuffledProgram:
        return ShuffledProgram(placed, self)


class ShuffledProgram(Program):
    """Keeps in each context what it built there: node -> function of the inputs' buffers, which returns the outputs'."""

    def __init__(self, placed: PlacedGraph, executor: ShufflingExecutor) -> None:
        self.placed = placed
        self.holds = placed.holds
        self.executor = executor
        self.levels = {level: self._edges(level) for level in placed.graph.all_graphs()}
        nodes = [n for level in self.levels for n in level.nodes]
        self.random = [n for n in nodes if "random" in n.opdef.effects]
        for node in nodes:
            if node.opdef.executes not in _RUN:
                raise errors.UnimplementedError(f"the shuffling executor has no {node.op}", op=node.name)

    def _edges(self, level: PlanGraph) -> dict[PlanNode, set[PlanNode]]:
        """Node -> the nodes of its level that must run before it."""
        without = self.executor.without
        edges = {}
        for node in level.nodes:
            order = {b for b in node.order if (b.name, node.name) not in without}
            edges[node] = {v.node for v in node.inputs if v.node is not None} | set(node.control) | order
        return edges

    def run(self, step: StepContext, feeds: Sequence[Any]) -> list[Any]:
        return _Run(self, step).results(feeds)

    def an_order(self, level: PlanGraph) -> list[PlanNode]:
        """A random order of a level's nodes that keeps its edges."""
        pending = {node: len(before) for node, before in self.levels[level].items()}
        followers: dict[PlanNode, list[PlanNode]] = {node: [] for node in level.nodes}
        for node, before in self.levels[level].items():
            for b in before:
                followers[b].append(node)
        ready = [node for node in level.nodes if not pending[node]]
        order = []
        while ready:
            last = len(ready) - 1
            at = self.executor.rng.randint(0, last)
            ready[at], ready[last] = ready[last], ready[at]
            order.append(ready.pop())
            for node in followers[order[-1]]:
                pending[node] -= 1
                if not pending[node]:
                    ready.append(node)
        assert len(order) == len(level.nodes)
        return order


class _Run:
    """One step. ``values``: what has been computed; ``iterations``: of the loops around, the innermost last."""

    def __init__(self, program: ShuffledProgram, step: StepContext) -> None:
        self.program = program
        self.placed = program.placed
        self.step = step
        self.values: dict[Value, Any] = {}
        self.iterations: list[int] = []
        if step.state is None:
            step.state = {}
        ordinals = {
            n: step.services.ordinal(n) for n in dict.fromkeys(s.name for n in program.random for s in streams_of(n))
        }
        self.streams = {}
        for node in program.random:
            self.streams[node] = []
            for name in streams_of(node):
                stream = self.placed.stream(name)
                stream.begin(ordinals[name.name])
                self.streams[node].append(stream)

    def results(self, feeds: Sequence[Any]) -> list[Any]:
        graph = self.placed.graph
        self.values.update(zip(graph.inputs, feeds, strict=True))
        self.level(graph)
        return [np.array(self.get(v, HOST_MEMORY))[()] for v in graph.outputs]

    def level(self, level: PlanGraph) -> None:
        for node in self.program.an_order(level):
            self.step.token.check()
            try:
                with np.errstate(all="ignore"):
                    made = _RUN[node.opdef.executes](self, node)
            except Exception as error:
                explained = kernel_error(error, node)
                if explained is error:
                    raise
                raise explained from error
            self.values.update(zip(node.outputs, made, strict=True))

    def get(self, value: Value, space: str | None) -> Any:
        """A value as a reader in ``space`` finds it; a constant is put there."""
        node = value.node
        if node is None or node.opdef.executes != "constant":
            return self.values[value]
        array = node.attrs["value"]
        return self.put(
            array.item() if space == SCALAR else array, SCALAR if space == SCALAR else HOST_MEMORY, space, value
        )

    def put(self, buffer: Any, source: str, target: str | None, like: Value) -> Any:
        """A buffer of one memory space in another."""
        if target is None or source == target:
            return buffer
        if source == SCALAR:
            return np.array(buffer, like.dtype.np)
        if target == SCALAR:
            return buffer.item()
        if source == HOST_MEMORY:
            device = self.placed.spaces[target]
            made = device.empty(like.dtype, buffer.shape)
            device.from_host(np.ascontiguousarray(buffer), made)
            return made
        device = self.placed.spaces[source]
        host = np.empty(device.shape_of(buffer), like.dtype.np)
        device.to_host(buffer, host)
        return host

    # -- resources

    def resource(self, handle: Value) -> Any:
        """The resource behind a handle, made if this is its first use."""
        resource = self.placed.resource(self.placed.handles[handle])
        resource.open()
        return resource

    def touching(self, node: PlanNode, function: Callable[..., Any]) -> Any:
        """``function(resources)`` of the node's handles, under locks where the step holds none."""
        touched = [(self.resource(v), a) for v, a in zip(node.inputs, arg_of(node), strict=True) if a.access]
        resources = [r for r, _ in touched]
        if self.placed.holds or not touched:
            return function(*resources)
        reads = [r for r, a in touched if a.access == "reads"]
        return self.placed.access(reads, [r for r in resources if r not in reads])(
            self.step.token, function, *resources
        )

    # -- kernels

    def kernel(self, node: PlanNode) -> list[Any]:
        placed, needs = self.placed, self.placed.needs(node)
        given = [
            None if v.dtype.name == "resource" else self.get(v, s) for v, s in zip(node.inputs, needs, strict=True)
        ]
        if node.outputs and placed.home.get(node.outputs[0]) == SCALAR:
            return [placed.functions(node)(*given)]

        def launch(*resources: Any) -> list[Any]:
            rest = iter([self.buffer_of(r, node) for r in resources])
            inputs = [next(rest) if v.dtype.name == "resource" else g for v, g in zip(node.inputs, given, strict=True)]
            handed = [v for v, a in zip(inputs, arg_of(node), strict=True) if a.access]
            for stream in self.streams.get(node, ()):
                if self.iterations:
                    stream.at(*self.iterations)
                inputs.append(stream)
            made = self.launcher(node)(inputs)
            for resource, buffer in zip(resources, handed, strict=True):
                if hasattr(resource, "buffer") and buffer is not resource.buffer:
                    self.bring(buffer, self.placed.device_of(node), resource.buffer, resource.device, resource.dtype)
            return made

        return self.touching(node, launch)  # type: ignore[no-any-return]

    def buffer_of(self, resource: Any, node: PlanNode) -> Any:
        """What a kernel gets for a handle; of a variable in another memory space, a copy."""
        if not hasattr(resource, "buffer"):
            return resource.open()
        self.require(resource, node)
        device = self.placed.device_of(node)
        if resource.device.memory_space == device.memory_space:
            return resource.buffer
        copy = device.empty(resource.dtype, resource.dims)
        self.bring(resource.buffer, resource.device, copy, device, resource.dtype)
        return copy

    def bring(self, source: Any, here: Any, target: Any, there: Any, dtype: Any) -> None:
        """Copy a buffer of one device into one of another."""
        host = source
        if here.memory_space != HOST_MEMORY:
            host = np.empty(here.shape_of(source), dtype.np)
            here.to_host(source, host)
        if there.memory_space == HOST_MEMORY:
            target[...] = host
        else:
            there.from_host(host, target)

    def require(self, variable: Any, node: PlanNode) -> None:
        if not variable.initialized:
            raise errors.UninitializedError(f"variable {variable.name!r} is read before it was assigned")

    def launcher(self, node: PlanNode) -> Callable[[list[Any]], list[Any]]:
        built = self.step.state.get(node)
        if built is None:
            built = self.step.state[node] = self.build(node)
        return built  # type: ignore[no-any-return]

    def build(self, node: PlanNode) -> Callable[[list[Any]], list[Any]]:
        placed = self.placed
        kernel, device = placed.kernels[node], placed.device_of(node)
        infos = []
        for value, arg, space in zip(node.inputs, arg_of(node), placed.needs(node), strict=True):
            if value.dtype.name == "resource":
                resource = self.resource(value)
                if hasattr(resource, "dims"):
                    space = device.memory_space
                    infos.append(ArgInfo(arg.name, resource.dtype, resource.dims, space, None, True, True))
                else:
                    infos.append(ArgInfo(arg.name, value.dtype, (), HOST_MEMORY))
                continue
            source = value.node
            known = source.attrs["value"] if source is not None and source.opdef.executes == "constant" else None
            infos.append(ArgInfo(arg.name, value.dtype, value.shape, space or HOST_MEMORY, known))
        names = node.opdef.outputs
        outs = [
            OutInfo(names[i if len(names) == len(node.outputs) else 0].name, v.dtype, v.shape, placed.home[v], FRESH)
            for i, v in enumerate(node.outputs)
        ]
        told = node, tuple(infos), tuple(outs), device, device.queue
        prepared = placed.prepared.get(node)
        if prepared is None:
            bound = build_kernel(kernel, BuildContext(*told, placed.threads))
        else:
            nowhere = (None,) * (len(infos) + len(prepared.scratch))
            bound = prepared.facts(prepared.bind(BindContext(*told, placed.threads, nowhere)))
        scratch = [device.empty(s.dtype, s.shape) for s in bound.scratch]

        def call(inputs: list[Any]) -> list[Any]:
            args = [*inputs, *scratch]
            if bound.args is not None:
                args = [
                    a.value if isinstance(a, Lit) else inputs[a.index] if isinstance(a, In) else scratch[a.index - len(outs)]
                    for a in bound.args
                ]  # fmt: skip
            result = bound.compute(*args)
            if not outs:
                return []
            whole = len(outs) == 1 and (outs[0].dtype.kind == "V" or not isinstance(result, (tuple, list)))
            return [result] if whole else list(result)

        return call

    # -- verbs

    def move(self, node: PlanNode) -> list[Any]:
        value = node.inputs[0]
        return [self.put(self.get(value, node.attrs["source"]), node.attrs["source"], node.attrs["target"], value)]

    def read(self, node: PlanNode) -> list[Any]:
        def snapshot(variable: Any) -> Any:
            self.require(variable, node)
            return variable.snapshot()

        return [self.touching(node, snapshot)]

    def assign(self, node: PlanNode) -> list[Any]:
        def put(variable: Any) -> None:
            variable.assign(self.get(node.inputs[1], variable.device.memory_space))

        self.touching(node, put)
        return []

    def host(self, node: PlanNode) -> list[Any]:
        given = [None if v.dtype.name == "resource" else self.get(v, HOST_MEMORY) for v in node.inputs]

        def call(*resources: Any) -> Any:
            rest = iter(resources)
            return self.placed.functions(node)(
                *[next(rest) if v.dtype.name == "resource" else g for v, g in zip(node.inputs, given, strict=True)]
            )

        result = self.touching(node, call)
        return [result] if len(node.outputs) == 1 else list(result) if node.outputs else []

    def branch(self, node: PlanNode) -> list[Any]:
        which = 0 if self.get(node.inputs[0], SCALAR) else 1
        body = node.bodies[which]
        self.enter(body, given(node, which))
        self.level(body)
        home = self.placed.home
        return [self.get(v, home.get(out)) for v, out in zip(body.outputs, node.outputs, strict=True)]

    def loop(self, node: PlanNode) -> list[Any]:
        cond, body = node.bodies
        count, home, limit = carried(node.opdef, node.attrs), self.placed.home, node.attrs["maximum_iterations"]
        for which, graph in enumerate(node.bodies):
            self.enter(graph, given(node, which))
        scans = [(element, list(self.values[history])) for history, element in elements(node)]
        made: list[tuple[Value, Value, list[Any]]] = [(history, value, []) for history, value in stacked(node)]
        self.iterations.append(0)
        while True:
            self.level(cond)
            if not self.get(cond.outputs[0], SCALAR) or 0 <= limit <= self.iterations[-1]:
                break
            if scans and not scans[0][1]:
                break
            self.values.update({element: left.pop() for element, left in scans})
            self.level(body)
            for history, value, kept in made:
                kept.append(self.get(value, home.get(history)))
            variables = zip(body.outputs[:count], body.inputs, strict=False)
            following = [self.get(v, home.get(p)) for v, p in variables]
            for graph in (cond, body):
                self.values.update(zip(graph.inputs, following, strict=False))
            self.iterations[-1] += 1
        self.iterations.pop()
        return [*(self.values[p] for p in body.inputs[:count]), *(kept for _, _, kept in made)]

    def enter(self, body: PlanGraph, taken: Sequence[Value]) -> None:
        home = self.placed.home
        for outer, inner in zip(taken, body.inputs, strict=True):
            if outer.dtype.name != "resource":
                self.values[inner] = self.get(outer, home.get(inner))


def _alias(run: _Run, node: PlanNode) -> list[Any]:
    value = node.inputs[0]
    return [None if value.dtype.name == "resource" else run.get(value, run.placed.home.get(node.outputs[0]))]


_RUN: dict[str, Callable[[_Run, PlanNode], list[Any]]] = {
    "kernel": _Run.kernel,
    "alias": _alias,
    "none": lambda run, node: [None] * len(node.outputs),
    "constant": lambda run, node: [node.attrs["value"]],
    "handle": lambda run, node: [None],
    "read": _Run.read,
    "assign": _Run.assign,
    "move": _Run.move,
    "branch": _Run.branch,
    "loop": _Run.loop,
    "host": _Run.host,
}
