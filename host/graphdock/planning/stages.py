"""The stages of planning, from fetches and feeds to a program. Each is a function of the draft.

No stage takes a device's memory: ``explain`` runs them all.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from graphdock_fusion.patterns.tables import fold_tables
from graphdock_fusion.regions.fuse import fuse, key_of, put_back
from graphdock_fusion.unroll import Unrolling

from graphdock.contracts.device import HOST_MEMORY, Device
from graphdock.contracts.executor import PlacedGraph
from graphdock.contracts.handles import check_handles, handle_of, resource_name
from graphdock.contracts.ir import PlanGraph, PlanNode
from graphdock.contracts.ir_check import check, check_order
from graphdock.contracts.kernel import KernelDef, inplace, view
from graphdock.contracts.queue import can_record
from graphdock.contracts.rewriter import Rewriter
from graphdock.contracts.runtime.resources import Access, ResourceStore
from graphdock.device_name import DeviceSpec
from graphdock.dtypes import string
from graphdock.errors import ConfigError, NotFoundError
from graphdock.opdef.scalar_formula import host_scalar
from graphdock.passes.pipeline import PassReport, run_passes
from graphdock.passes.rewrite import Tools, prune
from graphdock.placement.placer import place, warn_of_fallbacks
from graphdock.planning.evaluate import evaluator
from graphdock.planning.host_ops import build_host_op
from graphdock.planning.plan_builder import Draft, Setting
from graphdock.planning.plan_shapes import infer_outputs
from graphdock.planning.prepare import prepare_kernels
from graphdock.planning.scalars import KEPT, scalar_function, scalar_values
from graphdock.planning.spaces import assign_spaces
from graphdock.planning.translate import translate

__all__ = ["STAGES", "simplify"]


def simplify(graph: PlanGraph, setting: Setting) -> list[PassReport]:
    """Run the passes of a session over a graph."""
    return run_passes(graph, setting.passes, _tools(setting), setting.debug)


def _tools(setting: Setting) -> Tools:
    return Tools(evaluator(setting), setting.host.ops.get("Const"), setting.host.ops.get)


def _translate(draft: Draft) -> None:
    """The user's graph becomes a plan graph: what the fetches need, with shapes inferred from the feeds'."""
    setting = draft.setting
    # where launches are recorded, and nothing is watched in between
    unrolling = Unrolling() if not setting.debug and can_record(setting.opened[setting.devices[0]]) else None
    draft.graph = translate(draft.outputs, draft.targets, draft.feeds, unrolling=unrolling)
    draft.loops = [] if unrolling is None else unrolling.notes
    draft.translated = sum(len(g.nodes) for g in draft.graph.all_graphs())


def _passes(draft: Draft) -> None:
    """Remove what changes nothing, is computed twice or is known already."""
    draft.reports = [*draft.reports, *simplify(draft.graph, draft.setting)]


def _patterns(draft: Draft) -> None:
    """Make one op of what is written in several and has a kernel as one."""
    patterns = draft.setting.patterns
    if patterns is None:
        return
    draft.found, draft.replaced = [], {}
    for level in draft.graph.all_graphs() if draft.setting.passes.get("fold", True) else ():
        for anchors, ranks in patterns.tables(level):
            fold_tables(level, anchors, ranks, _tools(draft.setting))
        prune(level)  # what made a table reads no longer what a pattern may stand for
    for late in (False, True):
        found, replaced = patterns.run(draft.graph, draft.chooser, draft.failed_patterns, late)
        draft.found += found
        draft.replaced |= replaced
        if replaced:
            _passes(draft)


def _decompose(draft: Draft) -> None:
    """Replace what has no kernel on its preferred device, or none that can be prepared, by nodes that have one there."""
    decomposed, tried = draft.setting.decomposer.run(draft.graph, draft.chooser)
    draft.decomposed, draft.tried = [*draft.decomposed, *decomposed], {**draft.tried, **tried}
    if decomposed:
        _passes(draft)


def _place(draft: Draft) -> None:
    """Every node gets a device and a kernel."""
    setting = draft.setting
    draft.handles = handle_of(draft.graph)
    check_handles(draft.graph, draft.handles)
    draft.placement = place(
        draft.graph,
        draft.handles,
        setting.devices,
        draft.chooser,
        setting.fallback,
        lambda name: _device_type(setting, name),
        lambda handle: _lives(setting, handle),
        draft.tried,
        draft.dry,
    )
    draft.placement.decomposed = list(draft.decomposed)


def _scalars(draft: Draft) -> None:
    """The small numbers that steer the step are the host's own, without kernels."""
    draft.scalars = scalar_values(draft.graph)
    kernels = draft.placement.kernels
    for value in draft.scalars:
        if value.node in kernels:
            del kernels[value.node]
            value.node.decision = KEPT


def _regions(draft: Draft) -> None:
    """Make one node of each region that a compiler claims."""
    draft.placement.notes = draft.found + fuse(
        draft.graph, draft.placement.kernels, draft.setting.compilers, draft.regions, draft.failed_regions
    )
    if draft.setting.debug:
        check(draft.graph)
        check_order(draft.graph, "the region compilers")


def _prepare(draft: Draft) -> None:
    """Kernels compile and tune; where one refuses, what is between the choice and here is done again."""
    prepare_kernels(draft, _choose_again)
    warn_of_fallbacks(draft.placement, draft.setting.fallback)


def _none_left(draft: Draft, node: PlanNode) -> bool:
    """Whether all kernels of a node's device have refused, or the one that is pinned."""
    try:
        return node.device is None or draft.chooser.choose(node, node.device.type or "").kernel is None
    except ConfigError:
        return True


def _choose_again(draft: Draft) -> None:
    names = list(STAGES)
    failed = {
        draft.replaced[n]: "; ".join(r.values())
        for n, r in draft.refused.items()
        if n in draft.replaced and _none_left(draft, n)
    }
    if failed:  # the nodes that it stood for are gone
        draft.failed_patterns.update(failed)
        draft.reports, draft.decomposed, draft.tried = (), (), {}
        draft.refused, draft.regions = {}, {}
        for name in names[: names.index("prepare")]:
            STAGES[name](draft)
        return
    for level in list(draft.graph.all_graphs()):
        standing = [node for node in level.nodes if node in draft.regions]
        if standing:
            with Rewriter(level) as change:
                for node in standing:
                    region = draft.regions.pop(node)
                    for reason in draft.refused.pop(node, {}).values():
                        draft.failed_regions[key_of(node, region)] = reason
                    put_back(change, node, region)
    for name in names[names.index("decompose") : names.index("prepare")]:
        STAGES[name](draft)


def _spaces(draft: Draft) -> None:
    """Every value gets a memory space; where a reader wants it elsewhere, it is moved."""
    opened, reaches = draft.setting.opened, functools.cache(draft.setting.reaches)
    draft.spaces = assign_spaces(
        draft.graph, draft.placement.kernels, draft.scalars, lambda d: opened[d].memory_space, reaches
    )
    for level in draft.graph.all_graphs():
        for node in level.nodes:
            if node.verb == "move" and node.device is None:
                source = node.inputs[0].node
                node.device = source.device if source is not None else None
    if draft.setting.debug:
        check(draft.graph)
        check_order(draft.graph, "placement")


def _accepting(kernel: KernelDef, modes: tuple[str, ...]) -> KernelDef:
    """The kernel, as one that accepts these modes alone."""
    views = kernel.views if view(0).kind in modes else {}
    return replace(kernel, modes=modes, views=views, inplace=kernel.inplace if inplace(0).kind in modes else {})


def _seal(draft: Draft) -> None:
    """The graph that an executor compiles: everything but storage is decided."""
    setting, graph, spaces = draft.setting, draft.graph, draft.spaces
    assert spaces is not None
    draft.handles = handle_of(graph)
    kernels = {node: registered.kernel for node, registered in draft.placement.kernels.items()}
    for node, prepared in draft.prepared.items():
        if prepared.modes is not None:
            kernels[node] = _accepting(kernels[node], prepared.modes)
    blocking = any("blocks" in n.opdef.effects for g in graph.all_graphs() for n in g.nodes)
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
        infer=infer_outputs,
        stream=lambda stream: setting.ordinals.stream(stream.name, stream.seed, stream.seed2),
        holds=not blocking and not any(p.may_block for p in draft.prepared.values()),
        debug=setting.debug,
        check_numerics=setting.check_numerics,
        timed=draft.timed,
        steps_in_flight=setting.steps_in_flight,
        threads=setting.threads,
    )


def _compile(draft: Draft) -> None:
    """The executor makes its program."""
    assert draft.placed is not None
    draft.program = draft.setting.executor.compile(draft.placed)


#: Name -> stage, in the order of running.
STAGES: Mapping[str, Callable[[Draft], None]] = {
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


def _device_type(setting: Setting, name: str) -> str:
    """The device type behind an alias (``gpu``); the name itself where nobody owns it."""
    try:
        return setting.host.device_type(name)
    except NotFoundError:
        return name


def _device_of(setting: Setting) -> Callable[[PlanNode], Device]:
    """Node -> the open device that it is placed on. Nearly always its name is the setting's own object, and known by identity."""
    known = {id(name): device for name, device in setting.opened.items()}

    def device_of(node: PlanNode) -> Device:
        device = known.get(id(node.device))
        if device is None:
            assert node.device is not None
            device = setting.opened[node.device]
        return device

    return device_of


def _lives(setting: Setting, handle: PlanNode) -> list[DeviceSpec]:
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
    return build_host_op(node) if node.verb == "host" else scalar_function(node)
