"""The stages of planning, from fetches and feeds to a program. Each is a function of the draft.

No stage takes a device's memory: ``explain`` runs them all.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from graphdock.contracts.device import HOST_MEMORY, Device, returned
from graphdock.contracts.effects import check_handles, resource_name
from graphdock.contracts.executor import Executor, PlacedGraph, Program
from graphdock.contracts.ir import PlanNode
from graphdock.contracts.kernel import KernelDef, inplace, view
from graphdock.contracts.passes import RegionNote
from graphdock.contracts.runtime.access import Access
from graphdock.contracts.runtime.resources import ResourceStore
from graphdock.contracts.scalar_formula import host_scalar
from graphdock.device_name import DeviceSpec
from graphdock.dtypes import string
from graphdock.errors import NotFoundError, UnimplementedError
from graphdock.placement.placer import Placement, place, warn_of_fallbacks
from graphdock.planning.plan_builder import PlanBuilder, PlanningContext
from graphdock.planning.plan_passes import loop_writer, run_phase, simplify, take_back
from graphdock.planning.plan_shapes import infer_outputs
from graphdock.planning.spaces import assign_spaces
from graphdock.planning.translate import is_shared_read, translate

__all__ = ["STAGES"]


def _translate(draft: PlanBuilder) -> None:
    """The user's graph becomes a plan graph: what the fetches need, with shapes inferred from the feeds'."""
    draft.graph = translate(
        draft.outputs,
        draft.targets,
        draft.feeds,
        unrolling=None if draft.pieces else loop_writer(draft),
        done=draft.done,
        handles=draft.captured,
        pieces=draft.pieces,
    )
    if draft.setting.is_part:
        for node in [n for level in draft.graph.all_graphs() for n in level.nodes if n.requested is not None]:
            assert node.requested is not None
            node.requested = DeviceSpec(None, None, node.requested.type, node.requested.index) or None
    graphs = list(draft.graph.all_graphs())
    made_of = (op.graph for op in (*draft.targets, *(t.op for t in draft.outputs)))
    if len(graphs) > 1 or any(graph.primitives for graph in made_of):
        draft.primitives = any([n.opdef.verb.primitive for g in graphs for n in g.nodes])
    draft.translated = sum(len(g.nodes) for g in graphs)
    rewritten = draft.loop_writer is not None and draft.loop_writer.notes
    draft.exact = not (len(graphs) > 1 or rewritten or draft.captured or any(map(is_shared_read, draft.outputs)))


def _passes(draft: PlanBuilder) -> None:
    """Remove what changes nothing, is computed twice or is known already."""
    if draft.fixed:
        return
    draft.reports = [*draft.reports, *simplify(draft, draft.graph)]


def _patterns(draft: PlanBuilder) -> None:
    """Let plugins compute otherwise what they can, such as in one op what is written in several."""
    run_phase(draft, "rewrite")


def _decompose(draft: PlanBuilder) -> None:
    """Replace what has no kernel on its preferred device, or none that can be prepared, by nodes that have one there."""
    decomposed, tried = draft.setting.decomposer.run(draft.graph, draft.chooser)
    draft.decomposed, draft.tried = [*draft.decomposed, *decomposed], {**draft.tried, **tried}
    if decomposed:
        _passes(draft)


def _place(draft: PlanBuilder) -> None:
    """Every node gets a device and a kernel."""
    _place_all(draft)
    if run_phase(draft, "placed"):
        _place_all(draft)


def _place_all(draft: PlanBuilder) -> None:
    setting = draft.setting
    draft.name_resources()
    check_handles(draft.graph, draft.handles)
    draft.placement = place(
        draft.graph,
        draft.handles,
        setting.devices,
        draft.chooser,
        setting.config.fallback_for,
        lambda name: _device_type(setting, name),
        lambda handle: _lives(setting, handle),
        draft.tried,
        draft.dry,
        None if setting.placer is None and setting.lock is None else functools.partial(_choose_devices, draft),
    )
    if draft.dry:
        from graphdock.placement.lock import locked

        draft.placement.locked = locked(draft.graph, draft.placement)
    draft.placement.decomposed = list(draft.decomposed)


def _choose_devices(draft: PlanBuilder, placement: Placement) -> None:
    """Let the session's lock file, or else its placer, move what the rules have placed freely."""
    setting = draft.setting
    if setting.lock is not None:
        placement.lock_notes = setting.lock.replay(draft.graph, placement, draft.chooser, setting.devices)
        return
    if not draft.dry and all(len(allowed) == 1 for _, allowed in placement.movable):
        return  # there is no choice; who explains the plan is told what a step would take all the same
    from graphdock.placement.problem import place_by

    assert setting.placer is not None
    placement.simulation = place_by(
        *setting.placer,
        draft.graph,
        placement,
        draft.chooser,
        setting.costs(),
        lambda d: setting.opened[d].memory_space,
        setting.devices,
        setting.limits,
        _engines(setting),
    )


def _engines(setting: PlanningContext) -> Mapping[str, str]:
    """Devices that the thread of a step computes for, one after another: those without queues, where the executor has no others."""
    candidates = setting.executors if setting.workers > 1 else setting.executors[:1]
    if setting.config.inter_op_threads != 1 and any(make().concurrent for make in candidates):
        return {}
    return {d.short(): "step" for d in setting.devices if setting.opened[d].queue is None}


def _scalars(draft: PlanBuilder) -> None:
    """The small numbers that steer the step are the host's own, without kernels."""
    draft.scalars = set()
    if not draft.graph.holders:
        return
    from graphdock.planning.scalars import KEPT, scalar_values

    draft.scalars = scalar_values(draft.graph)
    kernels = draft.placement.kernels
    for value in draft.scalars:
        if value.node in kernels:
            del kernels[value.node]
            value.node.decision = KEPT


def _regions(draft: PlanBuilder) -> None:
    """Make one node of each region that a compiler claims, and what else plugins make of nodes whose kernels are chosen."""
    run_phase(draft, "chosen")
    draft.placement.notes = draft.noted(RegionNote)


def _prepare(draft: PlanBuilder) -> None:
    """Kernels compile and tune; where one refuses, what is between the choice and here is done again."""
    if any([registered.kernel.prepare is not None for registered in draft.placement.kernels.values()]):
        from graphdock.planning.prepare import prepare_kernels

        prepare_kernels(draft, _choose_again)
    warn_of_fallbacks(draft.placement, draft.setting.config.fallback_for)


def _choose_again(draft: PlanBuilder) -> None:
    names = list(STAGES)
    first = "decompose"
    if take_back(draft):
        draft.reports, draft.decomposed, draft.tried, draft.refused = (), (), {}, {}
        first = names[0]
    for name in names[names.index(first) : names.index("prepare")]:
        STAGES[name](draft)


def _spaces(draft: PlanBuilder) -> None:
    """Every value gets a memory space; where a reader wants it elsewhere, it is moved."""
    opened, reaches = draft.setting.opened, functools.cache(draft.setting.reaches)
    one = len(draft.setting.spaces) == 1
    draft.spaces = assign_spaces(
        draft.graph, draft.placement.kernels, draft.scalars, lambda d: opened[d].memory_space, reaches, one
    )
    for level in draft.graph.all_graphs():
        for node in level.nodes:
            if node.verb == "move" and node.device is None:
                source = node.inputs[0].node
                node.device = source.device if source is not None else None
    if draft.setting.config.debug:
        from graphdock.contracts.ir_check import check, check_order

        check(draft.graph)
        check_order(draft.graph, "placement")
    run_phase(draft, "memory")


def _accepting(kernel: KernelDef, modes: tuple[str, ...]) -> KernelDef:
    """The kernel, as one that accepts these modes alone."""
    views = kernel.views if view(0).kind in modes else {}
    return replace(kernel, modes=modes, views=views, inplace=kernel.inplace if inplace(0).kind in modes else {})


def _seal(draft: PlanBuilder) -> None:
    """The graph that an executor compiles: everything but storage is decided."""
    setting, graph, spaces = draft.setting, draft.graph, draft.spaces
    assert spaces is not None
    draft.name_resources()
    kernels = {node: registered.kernel for node, registered in draft.placement.kernels.items()}
    for node, prepared in draft.prepared.items():
        if prepared.modes is not None:
            kernels[node] = _accepting(kernels[node], prepared.modes)
    draft.placed = PlacedGraph(
        graph=graph,
        kernels=kernels,
        prepared=draft.prepared,
        home=spaces.home,
        needs=spaces.needs,
        handles=draft.handles,
        resource=functools.cache(setting.resource),  # every reader of a handle asks
        access=lambda reads, writes: Access(graph, reads, writes),
        device_of=_device_of(setting),
        spaces=setting.spaces,
        functions=_function,
        formula=_formula,
        function=setting.function,
        infer=infer_outputs,
        seconds=lambda node: setting.costs().node(node),
        stream=lambda stream: setting.ordinals.stream(stream.name, stream.seed, stream.seed2),
        holds=draft.holds,
        pieces=draft.pieces,
        debug=setting.config.debug,
        check_numerics=setting.config.check_numerics,
        steps_in_flight=setting.config.steps_in_flight,
        threads=setting.threads,
        workers=setting.workers,
    )


def _compile(draft: PlanBuilder) -> None:
    """The first executor that neither refuses nor yields makes its program; where all that can run it yield, the last of these."""
    placed = draft.placed
    assert placed is not None
    able: list[Executor] = []
    for bring in draft.setting.executors:
        try:
            executor = bring()
        except NotFoundError as error:  # no plugin brings it, which counts where the others refuse
            draft.refusals.append(error.message)
            continue
        reason = executor.refuses(placed)
        if reason is None:
            able.append(executor)
            reason = None if bring is draft.setting.executors[-1] else executor.yields(placed)
            if reason is None:
                break
        draft.refusals.append(f"{executor.name}: {reason}")
    else:
        if not able:
            raise UnimplementedError(f"no executor runs this step: {'; '.join(draft.refusals)}")
    executor = able[-1]
    _, plugin = draft.setting.host.executors.entry(executor.name) or (None, executor.name)
    compile_ = functools.partial(executor.compile, placed)
    draft.program = returned(compile_, Program, plugin, f"{type(executor).__name__}.compile")
    draft.executor = executor.name


#: Name -> stage, in the order of running.
STAGES: Mapping[str, Callable[[PlanBuilder], None]] = {
    "translate": _translate,
    "passes": _passes,
    "patterns": _patterns,
    "decompose": _decompose,
    "place": _place,
    "scalars": _scalars,
    "regions": _regions,
    "prepare": _prepare,
    "spaces": _spaces,
    "seal": _seal,
    "compile": _compile,
}


def _device_type(setting: PlanningContext, name: str) -> str:
    """The device type behind an alias (``gpu``); the name itself where nobody owns it."""
    try:
        return setting.host.device_type(name)
    except NotFoundError:
        return name


def _device_of(setting: PlanningContext) -> Callable[[PlanNode], Device]:
    """Node -> the open device that it is placed on. Nearly always its name is the setting's own object, and known by identity."""
    known = {id(name): device for name, device in setting.opened.items()}

    def device_of(node: PlanNode) -> Device:
        device = known.get(id(node.device))
        if device is None:
            assert node.device is not None
            device = setting.opened[node.device]
        return device

    return device_of


def _lives(setting: PlanningContext, handle: PlanNode) -> list[DeviceSpec]:
    """The devices of the session in whose memory a variable is, its own first; none before it exists."""
    container, name = resource_name(handle)
    store: ResourceStore = setting.services.container(container)
    found = store.get(name)
    if handle.attrs["dtype"] is string:
        device = setting.spaces[HOST_MEMORY]  # nowhere else are there strings
    elif found is not None and found.made:
        device = found.device
    else:
        return []
    near = [d for d in setting.devices if setting.opened[d].memory_space == device.memory_space]
    return sorted(near, key=lambda d: setting.opened[d] is not device)


def _formula(node: PlanNode) -> str:
    formula = host_scalar(node.opdef, node.outputs[0].dtype)
    assert formula is not None  # the host keeps no other scalars
    return formula


def _function(node: PlanNode) -> Callable[..., Any]:
    if node.verb != "host":
        from graphdock.planning.scalars import scalar_function

        return scalar_function(node)
    from graphdock.planning.host_ops import build_host_op

    return build_host_op(node)
