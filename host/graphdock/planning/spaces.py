"""Memory spaces of values, and the transfers between spaces, as nodes of the plan.

Besides the spaces of devices there is ``scalar``: Python ints and bools of the generated source. A tensor is moved once per level
and space; what a loop captures is moved before the loop. A history lies where its elements do and never moves: an element that is
read in another space is moved where it is read, and those of a history that a kernel reads as a whole where they are kept.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, TypeAlias

from graphdock.contracts.bodies import captures, carried, elements, given, stacked
from graphdock.contracts.device import HOST_MEMORY
from graphdock.contracts.executor import SCALAR
from graphdock.contracts.ir import PlanGraph, PlanNode, Value, arg_of, make_node
from graphdock.contracts.lazy_dataclass import lazy_dataclass
from graphdock.contracts.opdef import ArgDef, OpDef
from graphdock.contracts.rewriter import Rewriter
from graphdock.device_name import DeviceSpec
from graphdock.dtypes import DType
from graphdock.errors import PlanError
from graphdock.plugin.kernel_registry import RegisteredKernel
from graphdock.shape import concrete

__all__ = ["SCALAR", "TRANSFER", "Spaces", "assign_spaces", "transfer"]

_DTYPE = operator.attrgetter("dtype.name")
#: Kinds of dtypes whose values are never moved: handles, histories.
_PLACELESS = "RV"
#: Verbs whose outputs lie nowhere: each reader of a constant has its own, and an empty slot has nothing.
_HOMELESS = frozenset({"constant", "none"})
#: Space that a node needs each input in, and that of each output; and whether its kernel reads histories as a whole.
_Facts: TypeAlias = "tuple[Sequence[str | None], Sequence[str], bool]"
#: The op of a transfer node; it never stands in a user's graph.
TRANSFER = OpDef(
    "Transfer", summary="Moves a tensor to another memory space.", executes="move", traits=frozenset({"pure"})
)


def assign_spaces(
    graph: PlanGraph,
    kernels: Mapping[PlanNode, RegisteredKernel],
    scalars: set[Value],
    space_of_device: Callable[[DeviceSpec], str],
    direct: Callable[[str, str], bool] = lambda source, target: False,
    one: bool = False,
) -> Spaces:
    """Insert Transfer nodes and find the space of every value. Constants have none: each reader gets its own copy.

    Args:
      direct: whether the devices of the second space copy from the first; else values go through the host's memory.
      one: no device has a memory but the host's.
    """
    spaces = Spaces(kernels, scalars, space_of_device, direct)
    if one and not (scalars or graph.holders):
        made = [v for n in graph.nodes if n.verb not in _HOMELESS for v in n.outputs]
        spaces.home.update(dict.fromkeys([*graph.inputs, *made], HOST_MEMORY))
    else:
        spaces.run(graph)
    return spaces


@lazy_dataclass(frozen=True, slots=True)
class _Level:
    """Changes of one level: transfers, and the inputs that read them. ``moved``: (value, space) -> the value there."""

    change: Rewriter
    moved: dict[tuple[Value, str], Value] = field(default_factory=dict)


class Spaces:
    """The space of every value (``home``), and the space in which a node needs each of its inputs."""

    def __init__(
        self,
        kernels: Mapping[PlanNode, RegisteredKernel],
        scalars: set[Value],
        space_of_device: Callable[[DeviceSpec], str],
        direct: Callable[[str, str], bool],
    ) -> None:
        self.kernels = kernels
        self.scalars = scalars
        self.of_device = space_of_device
        self.direct = direct
        self.home: dict[Value, str] = {}
        self.count = 0
        self._levels: dict[PlanGraph, _Level] = {}
        #: identity of a node's device -> its memory space; hashing a DeviceSpec costs more than all else here
        self._at: dict[int, str] = {}
        #: op, kernel, device and dtypes -> facts of a node of these; and node -> its facts, once they were asked for
        self._alike: dict[Any, _Facts] = {}
        self._found: dict[PlanNode, _Facts] = {}
        #: input of a body -> the space in which its first reader wants it, and that reader's device
        self._wanted: dict[Value, tuple[str, DeviceSpec | None]] = {}
        #: history that a kernel reads as a whole -> the space in which it does, and its device
        self._read_by_kernel: dict[Value, tuple[str | None, DeviceSpec | None]] = {}
        #: values of nodes with bodies, and inputs of bodies -> the device that works on them, where one does
        self._near: dict[Value, DeviceSpec] = {}

    def run(self, graph: PlanGraph) -> None:
        self._find_wanted(graph)
        for value in graph.inputs:
            self.home[value] = HOST_MEMORY
        stack = [self.level(graph)]
        while stack:  # a level yields each body when it is that body's turn
            body = next(stack[-1], None)
            if body is None:
                stack.pop()
            else:
                stack.append(self.level(body))
        self.returned(graph, [HOST_MEMORY] * len(graph.outputs))
        for level in self._levels.values():
            level.change.apply()
        self._levels.clear()

    def device_space(self, node: PlanNode) -> str:
        assert node.device is not None
        found = self._at.get(id(node.device))
        if found is None:
            found = self._at[id(node.device)] = self.of_device(node.device)
        return found

    def needs(self, node: PlanNode) -> Sequence[str | None]:
        """The space each input must be in; None where any will do."""
        return self._facts(node)[0]

    def _facts(self, node: PlanNode) -> _Facts:
        found = self._found.get(node)
        if found is None:
            opdef, kernel, outputs, key = node.opdef, self.kernels.get(node), node.outputs, None
            if opdef.plain and node.verb != "move" and (not self.scalars or self.scalars.isdisjoint(outputs)):
                dtypes = map(_DTYPE, (*node.inputs, *outputs))
                key = id(opdef), id(kernel), id(node.device), len(outputs), *dtypes
                found = self._alike.get(key)
            if found is None:
                found = self._alike[key] = self._made(node, kernel)
            self._found[node] = found
        return found

    def _made(self, node: PlanNode, registered: RegisteredKernel | None) -> _Facts:
        if node.verb == "move":  # a pass put it there
            return [node.attrs["source"]], [node.attrs["target"]], False
        verb, args = node.opdef.verb, node.opdef.outputs
        args = args if len(args) == len(node.outputs) else args[:1] * len(node.outputs)
        host = registered.kernel.host if registered is not None else ()
        nowhere = verb.on_host or node.verb == "alias" or node.verb in _HOMELESS
        space = HOST_MEMORY if nowhere else self.device_space(node)
        needs: list[str | None] = [None] * len(node.inputs)
        if verb.on_host or (not verb.silent and not node.bodies and self.scalars.intersection(node.outputs[:1])):
            where = HOST_MEMORY if verb.on_host else SCALAR
            needs = [None if v.dtype.kind in _PLACELESS else where for v in node.inputs]
        elif not verb.silent:
            needs = [_need(a, v.dtype, host, space) for a, v in zip(arg_of(node), node.inputs, strict=True)]
        homes = []
        for arg, value in zip(args, node.outputs, strict=True):
            on_host = arg.memory == "host" or arg.name in host or value.dtype.name == "string"
            homes.append(SCALAR if value in self.scalars else HOST_MEMORY if on_host else space)
        whole = registered is not None and any(v.dtype.kind == "V" for v in node.inputs)
        return needs, () if node.verb in _HOMELESS else homes, whole

    def level(self, graph: PlanGraph) -> Iterator[PlanGraph]:
        level, home = _Level(Rewriter(graph)), self.home
        self._levels[graph] = level
        for node in graph.nodes:
            if node.verb == "branch":
                yield from self.branch(node, level)
            elif node.verb == "loop":
                yield from self.loop(node, level)
            else:
                needs, homes, whole = self._facts(node)
                self.bind(node, needs, level)
                if whole:
                    self._check_histories(node)
                if node.verb == "alias":
                    home[node.outputs[0]] = home.get(node.inputs[0], HOST_MEMORY)
                else:
                    for i, space in enumerate(homes):
                        home[node.outputs[i]] = space

    def _check_histories(self, node: PlanNode) -> None:
        """Refuse a kernel that reads a history which lies elsewhere: one that its own level's loop did not make for it."""
        for value in node.inputs:
            if value.dtype.kind == "V" and self.home.get(value, SCALAR) not in (SCALAR, self.device_space(node)):
                raise PlanError(
                    f"{node.name} reads a history as a whole in {self.device_space(node)}, but it lies in {self.home[value]}",
                    op=node.origin,
                    site=node.site,
                )

    def bind(self, node: PlanNode, needs: Sequence[str | None], level: _Level) -> None:
        """Let a node read its inputs in the spaces in which it needs them."""
        home, inputs = self.home, node.inputs
        for i, need in enumerate(needs):
            if need is not None and home.get(node.inputs[i]) != need:
                reader = self._near.get(node.bodies[-1].inputs[i]) if node.verb == "loop" else node.device
                value = self.moved(node.inputs[i], need, level, node, reader)
                if value is not node.inputs[i]:
                    inputs = [*inputs[:i], value, *inputs[i + 1 :]]
        if inputs is not node.inputs:
            level.change.rebind(node, inputs=inputs)

    def returned(
        self, graph: PlanGraph, spaces: Sequence[str | None], readers: Sequence[DeviceSpec | None] | None = None
    ) -> None:
        """Let a graph return its outputs in these spaces, for devices that read them; None where any will do."""
        level = self._levels[graph]
        reader = {} if readers is None else dict(zip(graph.outputs, readers, strict=True))
        outputs = [
            v if s is None else self.moved(v, s, level, reader=reader.get(v))
            for v, s in zip(graph.outputs, spaces, strict=True)
        ]
        if outputs != graph.outputs:
            level.change.returns(outputs)

    def is_constant(self, value: Value) -> bool:
        """A constant, or another name of one."""
        while value.node is not None and value.node.verb == "alias":
            value = value.node.inputs[0]
        return value.node is not None and value.node.verb == "constant"

    def near(self, value: Value) -> DeviceSpec | None:
        """The device that works on a value; None where only the host does."""
        return self._near.get(value) or (None if value.node is None or value.node.bodies else value.node.device)

    def moved(
        self,
        value: Value,
        space: str,
        level: _Level,
        before: PlanNode | None = None,
        reader: DeviceSpec | None = None,
    ) -> Value:
        """The value in a space; where it is not there a transfer is put before a node, or at the end of the level.

        A device makes the transfers of what it works on: those to a reader in its memory, and those of what it made.
        """
        if self.is_constant(value) or value.dtype.kind in _PLACELESS or self.home[value] == space:
            return value
        found = level.moved.get((value, space))
        if found is not None:
            return found
        source = value
        if self._by_way_of_host(value, space):
            source = self.moved(value, HOST_MEMORY, level, before)
        maker = self.near(source)
        self.count += 1
        moving = {self.home[source], space} - {HOST_MEMORY, SCALAR}
        origin = value.node or (before if space == SCALAR else None)  # a feed has no line of its own
        device = next((d for d in (reader, maker) if d is not None and self.of_device(d) in moving), maker)
        node = transfer(source, f"{value.name}/to_{space}_{self.count}", self.home[source], space, origin, device)
        (result,) = node.outputs
        level.change.insert(node, before)
        self.home[result] = space
        level.moved[value, space] = result
        return result

    def _by_way_of_host(self, value: Value, space: str) -> bool:
        home = self.home[value]
        if HOST_MEMORY in (space, home):
            return False
        return SCALAR in (space, home) or concrete(value.shape) is None or not self.direct(home, space)

    def _find_wanted(self, graph: PlanGraph) -> None:
        levels = list(graph.all_graphs())
        if len(levels) == 1:
            return
        for level in levels:
            for node in level.nodes:
                if node in self.kernels:
                    at = self.device_space(node), node.device
                    self._read_by_kernel.update((v, at) for v in node.inputs if v.dtype.kind == "V")
        for level in reversed(levels[1:]):  # innermost first
            inputs = set(level.inputs)
            for node in level.nodes:
                if inputs.isdisjoint(node.inputs):
                    continue
                if node.bodies:
                    for which, body in enumerate(node.bodies):
                        for value, inner in zip(given(node, which), body.inputs, strict=True):
                            if value in inputs and inner in self._wanted and value.dtype.kind not in _PLACELESS:
                                self._wanted.setdefault(value, self._wanted[inner])
                    continue
                for value, need in zip(node.inputs, self.needs(node), strict=True):
                    if need is not None and value in inputs:
                        self._wanted.setdefault(value, (need, node.device))

    def branch(self, node: PlanNode, level: _Level) -> Iterator[PlanGraph]:
        maker = self.home.get(node.inputs[0])
        inputs = [self.moved(node.inputs[0], SCALAR, level, node), *node.inputs[1:]]
        for position, outer, inside in captures(node):
            space, device = self._before(outer, inside, maker) or (self.home.get(outer, HOST_MEMORY), self.near(outer))
            if outer in self.home and self.home[outer] != space:
                inputs[position] = self.moved(outer, space, level, node, device)
            for inner in inside:
                self.home[inner] = space
                self._note(inner, device)
        if inputs != list(node.inputs):
            level.change.rebind(node, inputs=inputs)
        yield from node.bodies
        spaces: list[str | None] = []
        readers: list[DeviceSpec | None] = []
        for i, out in enumerate(node.outputs):
            made = [b.outputs[i] for b in node.bodies if not self.is_constant(b.outputs[i])]
            first = next((v for v in made if self.home.get(v) not in (None, SCALAR)), None)
            if out.dtype.kind == "V":
                space = _only(node, {self.home[v] for v in made if v in self.home})
                self._note(out, None if first is None else self.near(first))
            elif out in self.scalars:
                space = SCALAR
            else:
                space = HOST_MEMORY if first is None else self.home[first]
                self._note(out, None if first is None else self.near(first))
            self.home[out] = space
            spaces.append(space)
            readers.append(self._near.get(out))
        for body in node.bodies:
            self.returned(body, spaces, readers)

    def _before(self, outer: Value, inside: Sequence[Value], maker: str | None) -> tuple[str, DeviceSpec | None] | None:
        """Space in which a branch wants a value, and for whom, if it is to be moved there before the branch: the space in which the
        predicate is made, whose device may decide then without the host."""
        wanted = next((self._wanted[inner] for inner in inside if inner in self._wanted), None)
        if (
            wanted is None
            or wanted[0] != maker
            or maker in (None, HOST_MEMORY, SCALAR)
            or outer.dtype.kind in _PLACELESS
        ):
            return None
        return wanted

    def _note(self, value: Value, device: DeviceSpec | None) -> None:
        if device is not None:
            self._near[value] = device

    def loop(self, node: PlanNode, level: _Level) -> Iterator[PlanGraph]:
        cond, body = node.bodies
        count = carried(node.opdef, node.attrs)
        needs: list[str | None] = [None] * len(node.inputs)
        for i, value in enumerate(node.inputs[:count]):
            names = (cond.inputs[i], body.inputs[i], node.outputs[i])
            space = SCALAR
            if node.outputs[i] not in self.scalars:
                space = self._entering(value, names)
                space = HOST_MEMORY if space == SCALAR else space
            needs[i] = space
            self.home.update(dict.fromkeys(names, space))
        for history, element in elements(node):
            self.home[element] = self.home.get(history, HOST_MEMORY)
            self._note(element, self.near(history))
        for position, value, inside in captures(node):
            if value.dtype.kind in _PLACELESS:
                space = self.home.get(value, HOST_MEMORY)
            else:
                space = needs[position] = self._entering(value, inside)
            self.home.update(dict.fromkeys(inside, space))
        self.bind(node, needs, level)
        yield from node.bodies
        self.returned(cond, [SCALAR])
        variables = body.inputs[:count]
        near = [self._near.get(v) for v in variables]
        kept = [self._read_by_kernel.get(history, (None, None)) for history, _ in stacked(node)]
        keeps = [
            None if self.home.get(v) == SCALAR and space == HOST_MEMORY else space
            for (space, _), (_, v) in zip(kept, stacked(node), strict=True)
        ]
        self.returned(body, [*(self.home.get(v) for v in variables), *keeps], [*near, *(device for _, device in kept)])
        for (history, value), keep, (_, device) in zip(stacked(node), keeps, kept, strict=True):
            self.home[history] = self.home.get(value, HOST_MEMORY) if keep is None else keep
            self._note(history, device or self.near(value))

    def _entering(self, value: Value, names: Sequence[Value]) -> str:
        """The space in which a loop takes a value in: where its first reader wants it, the body's before the condition's.

        ``names``: what it is in the condition and in the body, and outside afterwards.
        """
        start = None if self.is_constant(value) else self.home.get(value)
        wanted = self._wanted.get(names[1]) or self._wanted.get(names[0])
        space, device = wanted or (start or HOST_MEMORY, self.near(value))
        for name in names:
            self._note(name, device)
        return space


def transfer(
    value: Value, name: str, source: str, target: str, origin: PlanNode | None, device: DeviceSpec | None
) -> PlanNode:
    """A node that moves a value from one memory space to another, made by a device, on behalf of a node; None for a feed."""
    node = make_node(
        TRANSFER,
        name,
        [value],
        {"source": source, "target": target},
        [(value.dtype, value.shape)],
        site_of=origin.site_of if origin is not None else None,
        origins=origin.origins if origin is not None else (value.name,),
    )
    node.device = device
    return node


def _only(node: PlanNode, homes: set[str]) -> str:
    """The one memory space in which what the branches leave lies."""
    if len(homes) > 1:
        raise PlanError(
            f"the branches of {node.name} leave a history in {' and in '.join(sorted(homes))}; it can lie in one memory space only",
            op=node.origin,
            site=node.site,
        )
    return next(iter(homes), HOST_MEMORY)


def _need(arg: ArgDef, dtype: DType, host: Collection[str], space: str) -> str | None:
    """The space in which a kernel needs an input."""
    if dtype.kind in _PLACELESS:
        return None
    return HOST_MEMORY if arg.memory == "host" or arg.name in host or dtype.name == "string" else space
