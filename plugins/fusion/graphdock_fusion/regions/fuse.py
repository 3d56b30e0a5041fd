"""Regions: connected nodes are offered to region compilers, and what one claims becomes one node."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

from graphdock.contracts import (
    VARIABLE,
    ArgDef,
    AttrDef,
    Candidate,
    Claim,
    Cutter,
    Decision,
    KernelDef,
    OpDef,
    PlanContext,
    PlanGraph,
    PlanNode,
    Refusal,
    Region,
    RegionCompiler,
    RegionNote,
    RegisteredCompiler,
    Replacement,
    Rewriter,
    Value,
)
from graphdock.contracts.bodies import captures
from graphdock.contracts.effects import handle_of
from graphdock.contracts.ir import arg_of, make_node
from graphdock.device_name import DeviceSpec
from graphdock.dtypes import DType
from graphdock.errors import PlanError, PluginError
from graphdock.shape import Dims, as_dims

from graphdock_fusion.regions.answers import (
    answer_of,
    broken,
    cheaper_apart,
    chosen_of,
    inplace_of,
    named,
)
from graphdock_fusion.regions.arranged import ARRANGED, arrange
from graphdock_fusion.regions.far_histories import read_elsewhere
from graphdock_fusion.regions.forms import form_of
from graphdock_fusion.regions.groups import ByDevice, Kinds, elementwise, form_fusion_groups, without
from graphdock_fusion.regions.lowering import lower_region
from graphdock_fusion.regions.parts import erase_unread, readable_in_place
from graphdock_fusion.regions.rematerializable import apart, duplicate_into_groups, rematerializable
from graphdock_fusion.regions.spaces import BySpace
from graphdock_fusion.regions.typed import NotInRegion

__all__ = ["RegionKey", "fuse"]

#: The full name of a compiler, and the names of the nodes that it claimed.
RegionKey: TypeAlias = "tuple[str, frozenset[str]]"
#: The op type of a region; it never stands in a user's graph.
REGION = "Region"


def fuse(graph: PlanGraph, context: PlanContext) -> None:
    """Offer connected nodes of every level to the compilers, one after another, and put one node in the place of each claim.

    Raises:
      PluginError: a claim cannot be one node, or is none of what was offered; what a compiler says of itself is wrong. Names it.
    """
    handles = _handles(graph, context)
    for level in graph.all_graphs():  # what regions read that were put back
        if left := {n for n in level.nodes if n.op == ARRANGED}:
            erase_unread(level, left)
    for asked in context.compilers:
        if not isinstance(asked.compiler.largest, int) or asked.compiler.largest < 2:
            raise PluginError(
                f"the region compiler {asked.full_name} (of {asked.package}) says wrongly of how many nodes a candidate is",
                expected="largest, an integer of 2 and more",
                got=repr(asked.compiler.largest),
            )
        for level in graph.all_graphs():  # as it goes: the bodies of a loop that became one node are visited no more
            if asked.compiler.loops and level.holders:
                _fuse_loops(graph, level, asked, context, handles)
            kinds = _kinds(asked.compiler, level, context.kernels, handles)
            candidates = form_fusion_groups(level.nodes, kinds, asked.compiler.largest)
            if isinstance(kinds, BySpace):
                _note_unknown(kinds, asked, context)
            if candidates and isinstance(kinds, BySpace) and kinds.rematerializable:
                candidates = duplicate_into_groups(level, candidates, kinds.rematerializable, context.kernels)
            made = _take(graph, level, asked, kinds, context, handles, candidates)
            if asked.compiler.single and isinstance(kinds, BySpace):
                single = _between(level, asked, context)
                kinds.single.update(single)
                made += _take(graph, level, asked, kinds, context, handles, [[n] for n in single])
            parts = {region.source[n] for _, region in made for n in region.parts}
            if parts:
                erase_unread(level, parts)
            arrange(level, made, asked, context)


def _take(
    graph: PlanGraph,
    level: PlanGraph,
    asked: RegisteredCompiler,
    kinds: Kinds,
    context: PlanContext,
    handles: Mapping[Value, Value],
    candidates: Collection[list[PlanNode]],
) -> list[tuple[PlanNode, Region]]:
    """Put a node in the place of what a compiler claims of each candidate; these nodes, with their regions."""
    if not candidates:
        return []
    cutter, made, in_place = Cutter(level), list[tuple[PlanNode, Region]](), _in_place(asked, level is graph)
    with Rewriter(level) as change:
        for members in candidates:
            for region in _claims(cutter, members, asked, kinds, context, handles, in_place):
                node = _one_node(region, asked, context)
                made.append((node, region))
                _put(change, node, region)
                context.give(node, _kernel(region, asked), asked)
                context.replacements[node] = Replacement(_key(asked.full_name, _members(region)), region)
                _rely(graph, region)
                for member in _members(region):
                    del context.kernels[member]
    return made


def _between(level: PlanGraph, asked: RegisteredCompiler, context: PlanContext) -> list[PlanNode]:
    """Elementwise nodes that are left between kernels of a compiler's plugin: one reads what they make, and they what one makes."""

    def mine(node: PlanNode | None) -> bool:
        return node is not None and node.decision is not None and node.decision.kernel.startswith(f"{asked.plugin}.")

    read_by_mine = {v for n in level.nodes if mine(n) for v in n.inputs}
    return [
        n
        for n in level.nodes
        if n in context.kernels
        and n.opdef.scalar is not None
        and not mine(n)
        and any(mine(v.node) for v in n.inputs)
        and not read_by_mine.isdisjoint(n.outputs)
    ]


def _is_read(value: Value) -> bool:
    """Return whether a value is a variable's, which no loop that is a region writes."""
    return value.node is not None and value.node.verb == "read"


def _in_place(
    asked: RegisteredCompiler, inputs_stay: bool
) -> Callable[[Collection[PlanNode]], Callable[[Value], Value | None] | None]:
    """Nodes -> what says in which others values lie that they read there; None for a compiler that does not."""
    return functools.partial(readable_in_place, inputs_stay) if asked.compiler.parts else lambda nodes: None


def _rely(graph: PlanGraph, region: Region) -> None:
    """Note that a plan with a region of unknown extents is for feeds whose dims are the same where it assumes so."""
    unknown = region.program is not None and any(a.extent is None for a in region.program.axes)
    if unknown and graph.conditions is not None:
        graph.conditions = replace(graph.conditions, relied=True)


def _note_unknown(kinds: BySpace, asked: RegisteredCompiler, context: PlanContext) -> None:
    """Say which nodes are in no region because of their dims, a line for each device and reason."""
    said: dict[tuple[str, str], list[str]] = {}
    for node in kinds.unknown:
        assert node.device is not None
        said.setdefault((node.device.short(), kinds.reasons[node]), []).append(node.op)
    for (device, reason), ops in said.items():
        context.notes.append(RegionNote(asked.full_name, device, tuple(ops), 0, reason, by_host=True))


def _handles(graph: PlanGraph, context: PlanContext) -> Mapping[Value, Value]:
    """Handle anywhere in the graph -> the output of the node that makes it; none where no compiler takes updates."""
    return handle_of(graph) if any(asked.compiler.updates for asked in context.compilers) else {}


def _variable(owner: Value) -> tuple[DType, Dims]:
    """Dtype and dims of the variable of a handle; no dims where they may change."""
    assert owner.node is not None
    return owner.node.attrs["dtype"], as_dims(owner.node.attrs["shape"])


def _kinds(
    compiler: RegionCompiler,
    level: PlanGraph,
    kernels: Mapping[PlanNode, Any],
    handles: Mapping[Value, Value],
    steps: bool = False,
) -> Kinds:
    """Return which nodes a compiler is offered together."""

    def device_of(node: PlanNode) -> DeviceSpec | None:
        device = node.device
        # a number that the host was to compute, because it steers a loop, may be a part of that
        there = node in kernels or steps and node.decision is not None and node.decision.rule == "scalar"
        return device if device is not None and device.type == compiler.device_type and there else None

    if compiler.programs:
        owners = {v: o for v, o in handles.items() if o.node is not None and o.node.opdef.resource == VARIABLE.name}
        variables = {v: _variable(o) for v, o in owners.items()} if compiler.updates else None
        unknown = compiler.unknown_dims and not steps
        gathers = compiler.gathers and not steps
        kinds = BySpace(device_of, variables, compiler.products, compiler.reductions, steps, unknown, gathers)
        kinds.rematerializable.update(rematerializable(level, kinds.own))
        return kinds
    return ByDevice(lambda node: device_of(node) if elementwise(node) else None)


def _claims(
    cutter: Cutter,
    members: list[PlanNode],
    asked: RegisteredCompiler,
    kinds: Kinds,
    context: PlanContext,
    handles: Mapping[Value, Value],
    in_place: Callable[[Collection[PlanNode]], Callable[[Value], Value | None] | None] = lambda nodes: None,
    stay: Collection[Value] = frozenset(),
) -> Iterable[Region]:
    """The regions that a compiler claims of a group, one after another; what is left of a claim is offered again.

    Args:
      in_place: nodes -> what says in which others values lie that they read there, or None. stay: values that no iteration of
        the loop changes that the group is in.
    """
    waiting = [members]
    while waiting:
        nodes = waiting.pop()
        device = nodes[0].device
        assert device is not None
        outer = _views_at_the_rim(cutter, nodes)
        if outer:  # no way leads from the group over one of them and back
            waiting.extend(
                reversed(apart(form_fusion_groups([n for n in nodes if n not in outer], kinds), kinds.rematerializable))
            )
            continue
        lies_in = in_place(nodes)
        while True:
            offered = _as_step(cutter.cut(nodes, device, lies_in), kinds, stay)
            unsaid = _lower(offered, cutter, asked, handles)
            answer = answer_of(asked, offered, nodes[0]) if unsaid is None else Refusal(unsaid)
            if not (offered.parts and isinstance(answer, Refusal)):
                break
            lies_in = None  # of copies without gaps it may take them
        if isinstance(answer, Refusal):
            _refused(asked, nodes, answer.reason, context, by_host=unsaid is not None)
            if len(nodes) > 1:
                waiting.extend([[n] for n in reversed(nodes) if kinds.alone(n)])
            continue
        chosen = chosen_of(asked, answer, offered, nodes[0], kinds.alone)
        try:
            region = cutter.cut(chosen, device, lies_in and in_place(chosen))
        except PlanError as error:
            raise broken(asked, f"claims nodes that cannot be one: {error.message}", chosen[0]) from error
        reason, by_host = context.failed.get(_key(asked.full_name, chosen)), False
        if reason is None:
            reason = _lower(region, cutter, asked, handles)
            if not offered.step:  # which costs no call
                reason = reason or cheaper_apart(answer, chosen, asked, context)
            by_host = reason is not None
        if reason is None and offered.step and len(chosen) < len(_members(offered)):
            # a step of a loop can't be put back, and what leaves a part may not be what leaves the whole
            reason = _left_over(answer_of(asked, _as_step(region, kinds, stay), chosen[0]), region)
            if reason is not None:
                waiting.extend([[n] for n in reversed(chosen) if kinds.alone(n)])
        if reason is not None:
            _refused(asked, chosen, reason, context, by_host)
        else:
            cutter.take(chosen)
            yield region
        waiting.extend(reversed(apart(without(nodes, chosen, kinds), kinds.rematerializable)))


def _as_step(region: Region, kinds: Kinds, stay: Collection[Value]) -> Region:
    """The region, which is told whether it is to be part of a loop, and what stays through that."""
    region.step = isinstance(kinds, BySpace) and kinds.steps
    region.stays = frozenset([i for i, v in enumerate(region.entering) if v in stay or _is_read(v)])
    return region


def _left_over(answer: Claim | Refusal, region: Region) -> str | None:
    """Return why a compiler that claimed these nodes of a larger candidate does not take them by themselves; None where it does."""
    if isinstance(answer, Refusal):
        return answer.reason
    whole = len({n for n in answer.nodes if n.verb != "constant" and n not in region.parts}) == len(_members(region))
    return None if whole else "without what stands around them it takes fewer of its nodes"


def _fuse_loops(
    graph: PlanGraph, level: PlanGraph, asked: RegisteredCompiler, context: PlanContext, handles: Mapping[Value, Value]
) -> None:
    """Offer the loops of a level, each as one."""
    cutter = Cutter(level)
    owners = {v: o for v, o in handles.items() if o.node is not None and o.node.opdef.resource == VARIABLE.name}
    variables = {v: _variable(o) for v, o in owners.items()}
    with Rewriter(level) as change:
        for loop in [n for n in level.holders if n.verb == "loop"]:
            region = _loop(loop, cutter, asked, context, variables, owners)
            if isinstance(region, Region) and (reason := read_elsewhere(region, graph, level)):
                region = f"loop {loop.origin}: {reason}"
            if isinstance(region, Region):
                cutter.take([loop])
                node = _one_node(region, asked, context)
                _put(change, node, region)
                context.give(node, _kernel(region, asked), asked)
                context.replacements[node] = Replacement(_key(asked.full_name, [loop]), region)
            elif region:
                ops = tuple([n.op for n in loop.bodies[1].nodes])
                context.notes.append(RegionNote(asked.full_name, str(asked.compiler.device_type), ops, 0, region))


def _loop(
    loop: PlanNode,
    cutter: Cutter,
    asked: RegisteredCompiler,
    context: PlanContext,
    variables: Mapping[Value, tuple[DType, Dims]],
    owners: Mapping[Value, Value],
) -> Region | str:
    """A loop that a compiler takes, as a region; why it is none, or nothing where it is on no device of that type."""
    devices: dict[DeviceSpec, None] = {}
    within = [n for body in loop.bodies for g in body.all_graphs() for n in g.holders if n.verb == "loop"]
    stay = {v for n in (loop, *within) for _, _, inside in captures(n) for v in inside}

    def claim(level: PlanGraph) -> tuple[Sequence[Region], Any]:
        quiet = replace(context, notes=[])
        kinds = _kinds(asked.compiler, level, context.kernels, {}, steps=True)
        if isinstance(kinds, BySpace) and kinds.rematerializable:
            raise NotInRegion("it draws random numbers")
        inner, found = Cutter(level), list[Region]()
        in_place = _in_place(asked, True)
        for members in form_fusion_groups(level.nodes, kinds, asked.compiler.largest):
            found += _claims(inner, members, asked, kinds, quiet, {}, in_place, stay)
        devices.update(dict.fromkeys([r.device for r in found]))

        def reason(node: PlanNode) -> str:
            said = kinds.reasons.get(node) if isinstance(kinds, BySpace) else None
            noted = [n.what for n in quiet.notes if isinstance(n, RegionNote) and n.claimed == 0 and node.op in n.ops]
            return said or next(iter(noted), "it says nothing of regions, or stands elsewhere")

        return found, reason

    reason = context.failed.get(_key(asked.full_name, [loop]))
    if reason is not None:
        return f"loop {loop.origin}: {reason}"
    from graphdock_fusion.regions.loops import lower_loop

    try:
        results = [v for v in loop.outputs if cutter.leaves(v, {loop})]
        program, entering = lower_loop(loop, claim, results, variables, asked.compiler.histories, asked.compiler.parts)
        if len(devices) != 1:
            raise NotInRegion("it is on several devices, or on none")
        named = [owners[v] for v in entering if v in owners]
        if len(set(named)) < len(named):
            raise NotInRegion("two handles name one variable")
    except NotInRegion as refused:
        return f"loop {loop.origin}: {refused}"
    region = cutter.cut([loop], next(iter(devices)))
    assert list(region.entering) == entering and list(region.leaving) == results
    region.loop = program
    region.variables = {
        inner: variables[v] for inner, v in zip(region.graph.inputs, entering, strict=True) if v in owners
    }
    answer = answer_of(asked, region, loop)
    return f"loop {loop.origin}: {answer.reason}" if isinstance(answer, Refusal) else region


def _lower(region: Region, cutter: Cutter, asked: RegisteredCompiler, handles: Mapping[Value, Value]) -> str | None:
    """Give a region its program, if its compiler wants one; why it can't have one, else None."""
    if not asked.compiler.programs:
        return None
    if asked.compiler.updates:
        named = {i: handles[v] for i, v in zip(region.graph.inputs, region.entering, strict=True) if v in handles}
        if len(set(named.values())) < len(named):
            return "two handles name one variable"
        region.variables = {inner: _variable(owner) for inner, owner in named.items()}
    inside = set(_members(region))
    dying = [
        inner for inner, value in zip(region.graph.inputs, region.entering, strict=True) if cutter.dies(value, inside)
    ]
    try:
        lower_region(region, dying)
    except NotInRegion as refused:
        return f"its nodes are no program: {refused}"
    return None


def _views_at_the_rim(cutter: Cutter, nodes: Sequence[PlanNode]) -> set[PlanNode]:
    """Reshapes that come after nothing of the group, or that nothing of the group comes after: they cost nothing outside of it.

    Control and order edges count: a zero that waits for a node of the group, and that another one reads, stays between them.
    """
    outer: set[PlanNode] = set()
    for way in (nodes, list(reversed(nodes))):
        for node in way:
            form = form_of(node.opdef)
            if form is None or not form.reshapes:
                continue
            inside = set(nodes) - outer
            before = (*(v.node for v in node.inputs), *node.control, *node.order)
            if not any(n in inside for n in before) or not cutter.precedes(node, inside):
                outer.add(node)
    return outer


def _refused(
    compiler: RegisteredCompiler, nodes: Sequence[PlanNode], reason: str, context: PlanContext, by_host: bool
) -> None:
    assert nodes[0].device is not None
    ops = tuple([n.op for n in nodes])
    context.notes.append(RegionNote(compiler.full_name, nodes[0].device.short(), ops, 0, reason, by_host=by_host))


def _key(compiler: str, nodes: Iterable[PlanNode]) -> RegionKey:
    return compiler, frozenset([n.name for n in nodes])


def _members(region: Region) -> list[PlanNode]:
    """The plan's nodes that a region stands for, in order; constants and parts, which it copies, are not among them."""
    return [region.source[n] for n in region.graph.nodes if n.verb != "constant" and n not in region.parts]


def _one_node(region: Region, compiler: RegisteredCompiler, context: PlanContext) -> PlanNode:
    members = _members(region)
    ops = tuple(n.op for n in members)
    costs = [context.flops(n) for n in members]
    flops = None if None in costs else sum(c or 0 for c in costs)
    node = make_node(
        _opdef(region),
        f"{members[0].name}/region",
        region.entering,
        {"ops": ops, "flops": flops},
        [(v.dtype, v.shape) for v in region.leaving],
        region.control,
        site_of=members[0].site_of,
        origins=members[0].origins,
        order=region.order,
    )
    for made, left in zip(node.outputs, region.leaving, strict=True):
        made.extent = left.extent
    node.device, node.streams = region.device, region.streams or None
    what = f"Region of {len(members)} node{'s' * (len(members) > 1)}: " if region.loop is None else "Loop, whole: "
    what += ", ".join(n.origin for n in members[:8])
    what += f", and {len(members) - 8} more" if len(members) > 8 else ""
    what += f"; draws from {', '.join(s.name for s in region.streams)}" if region.streams else ""
    winner = Candidate(compiler.full_name, compiler.compiler.device_type)
    node.decision = Decision(compiler.full_name, "region", what, (winner,))
    context.notes.append(RegionNote(compiler.full_name, region.device.short(), ops, len(members), what))
    return node


def _put(change: Rewriter, node: PlanNode, region: Region) -> None:
    became: dict[Value, Value] = dict(zip(region.leaving, node.outputs, strict=True))
    members = _members(region)
    change.insert(node, before=members[-1])
    for member in members:
        change.replace(member, [became.get(v) for v in member.outputs], by=node)


def _kernel(region: Region, asked: RegisteredCompiler) -> KernelDef:
    mine, node = asked.compiler, _members(region)[0]
    prepares = type(mine).prepare is not RegionCompiler.prepare
    call: Callable[..., Any] = functools.partial(mine.prepare if prepares else mine.build, region)
    made = named(asked, f"is to {'prepare' if prepares else 'build'} a region", node, call)
    return KernelDef(
        REGION,
        mine.device_type,
        None if prepares else made,
        mine.name,
        layout=mine.layout,
        inplace=inplace_of(asked, region, node),
        prepare=made if prepares else None,
    )


def _opdef(region: Region) -> OpDef:
    """The op of a region: what its nodes do to resources and to the world, taken together. Equal regions share one."""
    access: dict[Value, str] = {}
    host: set[Value] = set()
    strength = {"": 0, "uses": 1, "reads": 2, "writes": 3}
    if region.loop is not None:  # of a variable it has the reads alone
        access.update((v, "reads") for v in region.graph.inputs if v.dtype.kind == "R")
    for node in region.graph.nodes:
        for value, arg in zip(node.inputs, arg_of(node), strict=True):
            if arg.memory == "host":
                host.add(value)
            if strength[arg.access] > strength[access.get(value, "")]:
                access[value] = arg.access
    nodes = [n for n in region.graph.nodes if n.verb != "constant"]
    return _shared(
        tuple((v.dtype.name, "host" if v in host else "device", access.get(v, "")) for v in region.graph.inputs),
        tuple(v.dtype.name for v in region.graph.outputs),
        frozenset().union(*(n.opdef.effects for n in nodes)),
        any("stateful" in n.opdef.traits for n in nodes if region.loop is None),
    )


@functools.lru_cache(maxsize=1024)
def _shared(
    inputs: tuple[tuple[str, str, str], ...], outputs: tuple[str, ...], effects: frozenset[str], stateful: bool
) -> OpDef:
    return OpDef(
        REGION,
        summary="Nodes that a region compiler computes as one.",
        inputs=tuple(ArgDef(f"in{i}", t, memory=m, access=a) for i, (t, m, a) in enumerate(inputs)),
        outputs=tuple(ArgDef(f"out{i}", t) for i, t in enumerate(outputs)),
        attrs=(AttrDef("ops", "list(string)"), AttrDef("flops", "int", None)),
        effects=effects,
        traits=frozenset({"stateful"} if stateful else ()),
        cost={"flops": "flops"},
    )
