"""Decompositions: a node without a kernel on the device that it prefers becomes nodes that have one there.

It happens before placement, so that the parts are folded, merged and placed once; the user's graph, and so every gradient, is as it
was. A decomposition is used whole: every op of it must have a kernel there, and none is decomposed again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from graphdock.contracts.ir import PlanGraph, PlanNode, Value, arg_of, attr_key, copy_node
from graphdock.contracts.lazy_dataclass import lazy_dataclass
from graphdock.contracts.opdef import OpDef, resolve
from graphdock.contracts.passes import Tracing
from graphdock.contracts.rewriter import Rewriter
from graphdock.device_name import DeviceSpec
from graphdock.dtypes import DType
from graphdock.errors import GraphdockError, NotFoundError
from graphdock.gradients.backprop import gradients
from graphdock.graph.graph import Graph
from graphdock.graph.tensor import Tensor
from graphdock.ops.convert import convert_to_tensor
from graphdock.ops.core import placeholder
from graphdock.placement.choose import Chooser
from graphdock.placement.placer import Decomposed
from graphdock.planning.translate import translate
from graphdock.plugin.host import Host
from graphdock.shape import Dims, merge

__all__ = ["Decomposer", "missing_kernel_reason", "trace"]

#: Largest constant, in bytes, whose value a decomposition may look at.
_SEEN = 4096
#: Traced decompositions that are kept.
_KEPT = 1024


@lazy_dataclass(frozen=True, slots=True)
class _Parts:
    """A traced decomposition; ``graph`` is copied for every node, and None where ``why`` says why it could not be made."""

    graph: PlanGraph | None
    why: str = ""


class Decomposer:
    """Decomposes nodes for one session, under the planner's lock.

    A decomposition is traced once per op, attributes, dtypes and shapes.
    """

    def __init__(self, host: Host, devices: Sequence[DeviceSpec]) -> None:
        self._host = host
        self._devices = devices
        self._traced: dict[Any, _Parts] = {}
        #: op -> itself, as an op that a step does not run
        self._silent: dict[str, OpDef] = {}

    def run(self, graph: PlanGraph, chooser: Chooser) -> tuple[list[Decomposed], dict[PlanNode, str]]:
        """Decompose what needs it, at every level.

        Args:
          chooser: knows which kernels have refused, when some were prepared already.

        Returns:
          What became of which node; and for each node whose decomposition was of no use, why.
        """
        done: list[Decomposed] = []
        tried: dict[PlanNode, str] = {}
        for level in list(graph.all_graphs()):
            with Rewriter(level) as change:
                for node in level.nodes:
                    if node.opdef.decomposition is None or node.verb != "kernel":
                        continue
                    type_ = self.preferred(node)
                    if type_ is None:
                        continue
                    choice = chooser.choose(node, type_)
                    if choice.kernel is not None:
                        continue
                    parts = self._parts(node)
                    why = parts.why or missing_kernel_reason(parts.graph, type_, chooser)
                    if why or parts.graph is None:
                        tried[node] = why
                        continue
                    check = None if node.guard is None else change.insert(self._shapes_of(node), before=node)
                    change.splice(node, _copy(parts.graph, node, check))
                    reasons = [f"{c.name}: {c.reason}" for c in choice.decision.candidates if c.reason]
                    ops = tuple(n.op for n in parts.graph.nodes if n.verb != "constant")
                    reason = "; ".join(reasons) or f"{type_} has no kernel for {node.op}"
                    done.append(Decomposed(node.origin, node.op, type_, ops, reason))
        return done, tried

    def _shapes_of(self, node: PlanNode) -> PlanNode:
        """A node that computes nothing and at which the shapes of ``node`` are checked, for parts that know nothing of it."""
        silent = self._silent.get(node.op)
        if silent is None:
            silent = self._silent[node.op] = replace(node.opdef, executes="none", decomposition=None)
        check = copy_node(node, node.inputs, node.control, node.order)
        check.opdef, check.verb, check.name = silent, silent.executes, f"{node.name}/shapes"
        for value in check.outputs:
            value.name = f"{node.name}/shapes:{value.index}"
        return check

    def preferred(self, node: PlanNode) -> str | None:
        """The device type that a node prefers: its scope's, else the first backend's; None where the session has no such one."""
        wanted = node.requested.type if node.requested is not None else None
        if wanted is None:
            return self._devices[0].type
        known = {d.type for d in self._devices}
        if wanted not in known:
            try:
                wanted = self._host.device_type(wanted)  # an alias
            except NotFoundError:
                return None  # placement says so
        return wanted if wanted in known else None

    def _parts(self, node: PlanNode) -> _Parts:
        seen = [node.constant(i) for i in range(len(node.inputs))]
        seen = [a if a is not None and a.nbytes <= _SEEN else None for a in seen]
        try:
            inputs = [
                (v.dtype.name, v.shape, None if a is None else attr_key(a))
                for v, a in zip(node.inputs, seen, strict=True)
            ]
            key = node.op, tuple(inputs), tuple([(k, attr_key(v)) for k, v in node.attrs.items()])
            hash(key)
        except TypeError:
            return self._trace(node, seen)
        found = self._traced.get(key)
        if found is None:
            if len(self._traced) >= _KEPT:
                self._traced.clear()
            found = self._traced[key] = self._trace(node, seen)
        return found

    def _trace(self, node: PlanNode, seen: Sequence[Any]) -> _Parts:
        """Call the decomposition over a graph of its own."""
        opdef = node.opdef
        fed: list[int] = []

        def build(tracing: Tracing) -> list[Any]:
            named: dict[str, Any] = {a.name: [] if a.arity == "many" else None for a in opdef.inputs}
            for i, (arg, value, array) in enumerate(zip(arg_of(node), node.inputs, seen, strict=True)):
                if array is None:
                    fed.append(i)
                    tensor = tracing.input(value.dtype, value.shape, value.shape)
                else:
                    tensor = tracing.constant(array, value.dtype)
                if arg.arity == "many":
                    named[arg.name].append(tensor)
                else:
                    named[arg.name] = tensor
            attrs = {k: v for k, v in node.attrs.items() if not k.startswith("_")}
            return list(resolve(opdef.decomposition or "")(**named, **attrs))

        try:
            graph = trace(self._host, build)
        except GraphdockError as error:
            return _Parts(None, f"it could not be built: {error.message}")
        if [v.dtype for v in graph.outputs] != [v.dtype for v in node.outputs]:
            return _Parts(None, "it does not make the outputs of the op")
        given = iter(graph.inputs)
        inputs = [next(given) if i in fed else Value(f"seen{i}", v.dtype, v.shape) for i, v in enumerate(node.inputs)]
        return _Parts(PlanGraph(graph.name, inputs, graph.nodes, graph.outputs, graph.targets))


def missing_kernel_reason(graph: PlanGraph | None, type_: str, chooser: Chooser) -> str:
    """Reason why the parts that would stand for a node, or for several, can't run on a device type; empty if they can."""
    levels = () if graph is None else graph.all_graphs()
    for part in (n for level in levels for n in level.nodes):
        if part.bodies:
            return f"its part {part.op} has bodies"
        if part.opdef.verb.kernel and chooser.choose(part, type_).kernel is None:
            return f"{type_} has no kernel for its part {part.op}"
    return ""


def _copy(parts: PlanGraph, node: PlanNode, check: PlanNode | None) -> PlanGraph:
    """The parts for one node: its site, its device, and what is known of its outputs' shapes. They wait for ``check``."""
    inputs = [Value(v.name, v.dtype, v.shape) for v in parts.inputs]
    became: dict[Value, Value] = dict(zip(parts.inputs, inputs, strict=True))
    copies: dict[PlanNode, PlanNode] = {}
    colocated: Mapping[str, Any] = {k: v for k, v in node.attrs.items() if k == "_colocate"}
    for part in parts.nodes:
        copy = copies[part] = copy_node(
            part,
            [became[v] for v in part.inputs],
            [*(copies[n] for n in part.control), *(() if check is None else (*node.control, check))],
            [copies[n] for n in part.order],
        )
        copy.site_of, copy.requested = node.site_of, node.requested
        if colocated:
            copy.attrs = {**copy.attrs, **colocated}
        became.update(zip(part.outputs, copy.outputs, strict=True))
    outputs = [became[v] for v in parts.outputs]
    for value, wanted in zip(outputs, node.outputs, strict=True):
        if value.node is not None:
            value.shape = merge(value.shape, wanted.shape)
    return PlanGraph(parts.name, inputs, list(copies.values()), outputs)


class _Tracing:
    """Implementation of :class:`graphdock.contracts.passes.Tracing` over the default graph."""

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

    def gradients(self, ys: Sequence[Tensor], xs: Sequence[Tensor], cotangents: Sequence[Tensor]) -> list[Any]:
        return gradients(list(ys), list(xs), list(cotangents))


def trace(host: Host, build: Callable[[_Tracing], Sequence[Tensor]]) -> PlanGraph:
    """The plan graph of the tensors that ``build`` returns, whose inputs are in the order in which it made them.

    Raises:
      whatever ``build`` raises; GraphdockError: what it built can't be translated.
    """
    with Graph(host).as_default():
        tracing = _Tracing()
        return translate(build(tracing), [], tracing.feeds)
