"""Passes at work on a plan in the making: what each may ask, constant folding among it, and what becomes of what it made."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from graphdock.contracts.bodies import LoopWriter
from graphdock.contracts.device import HOST_MEMORY, Device
from graphdock.contracts.ir import PlanGraph, PlanNode, Value, arg_of
from graphdock.contracts.kernel import (
    PLANNED,
    ArgInfo,
    BuildContext,
    Decision,
    In,
    KernelDef,
    Lit,
    OutInfo,
    build_kernel,
)
from graphdock.contracts.passes import PassContext, PlanContext, RegionNote, Swap
from graphdock.contracts.queue import QueuedDevice, can_record
from graphdock.contracts.rewriter import Rewriter
from graphdock.dtypes import DType
from graphdock.errors import ConfigError
from graphdock.passes.pipeline import PassReport, Promise, apply_pass, broken, check_after, run_passes
from graphdock.placement.choose import Chooser
from graphdock.planning.decompose import missing_kernel_reason, trace
from graphdock.planning.plan_builder import PlanBuilder, PlanningContext
from graphdock.planning.spaces import transfer
from graphdock.plugin.kernel_registry import RegisteredKernel
from graphdock.plugin.registry import RegisteredPass
from graphdock.shape import Dims, concrete

if TYPE_CHECKING:
    from graphdock.contracts.pattern import RegisteredPattern
    from graphdock.contracts.region import RegisteredCompiler

__all__ = ["evaluator", "loop_writer", "run_phase", "simplify", "take_back"]


def simplify(draft: PlanBuilder, graph: PlanGraph) -> list[PassReport]:
    """Run the session's passes of the phase ``simplify`` over a graph of a plan: its own, or one that stands for nodes of it."""
    setting = draft.setting
    ops = setting.host.ops
    plain = PassContext(evaluator(setting), ops.get, ops.get("Const"), computes=_computes(setting))

    def context(row: RegisteredPass) -> PassContext:
        if row.own:
            return plain
        return replace(plain, options=setting.pass_options(row.plugin), notes=noted.setdefault(row.each.name, []))

    noted: dict[str, list[RegionNote | str]] = {}
    history = draft.history if graph is draft.graph else None
    exact, draft.exact = draft.exact and graph is draft.graph and history is None, False
    reports = run_passes(graph, setting.in_phase("simplify"), context, setting.config.debug, history, exact)
    for name, notes in noted.items():
        draft.simplify_notes.setdefault(name, {}).update(dict.fromkeys(notes))
    return reports


def _computes(setting: PlanningContext) -> Callable[[PlanNode], bool]:
    def computes(node: PlanNode) -> bool:
        device_type = setting.decomposer.preferred(node)
        return device_type is not None and setting.chooser.fits(node, device_type)

    return computes


def loop_writer(draft: PlanBuilder) -> LoopWriter | None:
    """Return what writes the loops of a plan out: the first that a pass of the phase ``translate`` returns."""
    for row in draft.setting.in_phase("translate"):
        context = draft.contexts[row.each.name] = _context(draft, row)
        context.notes.clear()
        writer: LoopWriter | None = apply_pass(row, draft.graph, [], context)
        if writer is not None:
            draft.loop_writer = writer
            return writer
    return None


def run_phase(draft: PlanBuilder, phase: str) -> bool:
    """Run the session's passes of a phase over a plan; whether any changed it. After each of ``rewrite`` it is simplified again."""
    changed = False
    for row in () if draft.fixed else draft.setting.in_phase(phase):
        context = draft.contexts[row.each.name] = _context(draft, row)
        context.notes.clear()
        levels = list(draft.graph.all_graphs())
        was = [level.nodes for level in levels]
        held = set() if row.own else {node for nodes in was for node in nodes}
        known = set(context.replacements)
        promise = None if row.own else Promise.of(draft.graph)
        if draft.history is not None:
            draft.history.see(draft.graph)
        start = time.perf_counter()
        apply_pass(row, draft.graph, levels, context)
        took = (time.perf_counter() - start) * 1e3
        here = any(level.nodes is not nodes for level, nodes in zip(levels, was, strict=True))
        changed = changed or here
        if not row.own or (draft.setting.config.debug and here):
            check_after(row, draft.graph, promise)
        if draft.history is not None:
            draft.history.note(row.each.name, draft.graph)
        if not row.own:
            _check_made(draft, row, phase, held)
            draft.reports = [*draft.reports, PassReport(row.each.name, len(held), len(_nodes(draft.graph)), took)]
        for node in context.replacements.keys() - known:
            key = context.replacements[node].key
            if key in context.failed:
                raise broken(row, f"made {node.name} again, of which all kernels refused: {context.failed[key]}")
        if here and phase == "rewrite":
            draft.reports = [*draft.reports, *simplify(draft, draft.graph)]
        if here and phase == "chosen":
            stay = set(_nodes(draft.graph))
            for node in [n for n in draft.placement.kernels if n not in stay]:
                del draft.placement.kernels[node]
    return changed


def take_back(draft: PlanBuilder) -> bool:
    """Take back what passes made and no kernel will have: regions become their nodes again. Whether the plan has to be begun anew,
    because what a node stood for is gone."""
    anew = False
    for node, reasons in draft.refused.items():
        for context in draft.contexts.values():
            made = context.replacements.get(node)
            if made is not None and (made.region is not None or _none_left(draft, node)):
                context.failed[made.key] = "; ".join(reasons.values())
                anew = anew or made.region is None
    cut = {
        node: made.region
        for context in draft.contexts.values()
        for node, made in context.replacements.items()
        if made.region is not None
    }
    for level in () if anew else list(draft.graph.all_graphs()):
        regions = [(node, cut[node]) for node in level.nodes if node in cut]
        if regions:
            from graphdock.contracts.cut import put_back

            with Rewriter(level) as change:
                for node, region in regions:
                    draft.refused.pop(node, None)
                    put_back(change, node, region)
    for context in draft.contexts.values():
        for node in [n for n, made in context.replacements.items() if anew or made.region is not None]:
            del context.replacements[node]
    return anew


def _none_left(draft: PlanBuilder, node: PlanNode) -> bool:
    """Return whether all kernels of a node's device have refused, or the one that is pinned."""
    try:
        return node.device is None or draft.chooser.choose(node, node.device.type or "").kernel is None
    except ConfigError:
        return True


def _context(draft: PlanBuilder, row: RegisteredPass) -> PlanContext:
    """Return what a pass of this plan gets; from one run to the next it keeps what the pass said and made."""
    setting, known = draft.setting, draft.contexts.get(row.each.name)
    kernels: dict[PlanNode, Any] = draft.placement.kernels
    if known is not None:
        return replace(known, kernels=kernels)

    def give(node: PlanNode, kernel: KernelDef, compiler: RegisteredCompiler | None = None) -> None:
        by = compiler or row
        draft.placement.kernels[node] = RegisteredKernel(by.plugin, by.package, kernel)

    return PlanContext(
        evaluator(setting),
        setting.host.ops.get,
        setting.host.ops.get("Const"),
        {} if row.own else setting.pass_options(row.plugin),
        _computes(setting),
        switches=setting.switches,
        device_type=lambda node: node.device.type if node.device is not None else setting.decomposer.preferred(node),
        missing=lambda graph, device_type: missing_kernel_reason(graph, device_type, draft.chooser),
        flops=_flops,
        seconds=lambda node: setting.costs().node(node),
        memory_budget=setting.memory_budget,
        # where launches are recorded, and nothing is watched in between
        records=not setting.config.debug and can_record(setting.opened[setting.devices[0]]),
        patterns=lambda graph: _patterns(draft, graph),
        compilers=setting.compilers,
        kernels=kernels,
        give=give,
        swap=lambda value: _swap(setting, value),
        derive=lambda value, key, dims, fill: _derive(draft, value, key, dims, fill),
        transient=lambda value: _transient(draft, value)[1],
        trace=lambda build: trace(setting.host, build),
        simplify=lambda graph: simplify(draft, graph),
        shared=setting.host.shared.setdefault(row.plugin, {}),
        lock=setting.host.shared_lock,
        settings=setting.settings,
    )


def _derive(
    draft: PlanBuilder, value: Value, key: str, dims: Dims, fill: Callable[[Any, Any], object]
) -> PlanNode | None:
    from graphdock.planning.derived import Derivation, derive

    owner, reason = _transient(draft, value)
    if owner is None or reason:
        return None
    made = derive(value, owner, key, dims)
    draft.derivations[made.inputs[0]] = Derivation(owner, fill)
    return made


def _transient(draft: PlanBuilder, value: Value) -> tuple[Value | None, str]:
    """The handle of the variable whose value this is, if any, and why nothing that is made of it may stay; empty where it may."""
    from graphdock.planning.derived import constant_reads

    if draft.has_changed_for("derivations"):
        draft.name_resources()
        draft.constant_reads, draft.other_reads = constant_reads(draft.graph, draft.handles)
    owner, setting = draft.constant_reads.get(value), draft.setting
    if owner is None:
        return None, draft.other_reads.get(value, "")
    if not draft.holds:
        return owner, "the step waits for others"
    if setting.memory_budget or HOST_MEMORY in setting.limits:
        return owner, "the session is to save memory"
    there = setting.resource(owner).device.memory_space == HOST_MEMORY
    return owner, "" if there else "it is in no memory of the host"


def _swap(setting: PlanningContext, value: Value) -> Swap | None:
    from graphdock.placement.costs import nbytes_of

    made = value.node
    device = None if made is None or made.device is None else setting.opened[made.device]
    nbytes = nbytes_of([value])
    if made is None or not nbytes or not isinstance(device, QueuedDevice) or device.memory_space == HOST_MEMORY:
        return None
    there, here = (device.memory_space, HOST_MEMORY), (HOST_MEMORY, device.memory_space)
    out = transfer(value, f"{value.name}/swapped_out", *there, made, made.device)
    back = transfer(out.outputs[0], f"{value.name}/swapped_in", *here, made, made.device)
    out.decision = Decision("host", "host", "memory_budget: it waits in the host's memory for who reads it late")
    back.decision = Decision("host", "host", "memory_budget: it comes back for who reads it late")
    first, second = (setting.costs().transfer(nbytes, *way) for way in (there, here))
    return Swap(out, back, None if first is None or second is None else first + second)


def _patterns(draft: PlanBuilder, graph: PlanGraph) -> Sequence[RegisteredPattern]:
    setting = draft.setting
    if not setting.config.fusion:
        return []
    if graph is draft.graph and not draft.has_changed_for("patterns"):
        return draft.patterns
    found = setting.host.load_patterns().around(_nodes(graph), setting.decomposer.preferred, setting.config.backends)
    if graph is draft.graph:
        draft.patterns = found
    return found


def _flops(node: PlanNode) -> int | None:
    from graphdock.opdef.cost import cost_of

    return cost_of(node.opdef, node.attrs, _typed(node.inputs), _typed(node.outputs)).flops


def _typed(values: Sequence[Value]) -> list[tuple[DType, Dims]]:
    return [(v.dtype, v.shape) for v in values]


def _nodes(graph: PlanGraph) -> list[PlanNode]:
    return [node for level in graph.all_graphs() for node in level.nodes]


def _check_made(draft: PlanBuilder, row: RegisteredPass, phase: str, held: Collection[PlanNode]) -> None:
    """PluginError for a node that a pass added where it can have no place or no kernel."""
    for node in _nodes(draft.graph) if phase in ("chosen", "memory") else ():
        if node in held:
            continue
        if phase == "memory":
            raise broken(row, f"added {node.name} ({node.op}), for which there is no kernel any more")
        if node.device is None or (node.opdef.verb.kernel and node not in draft.placement.kernels):
            raise broken(row, f"added {node.name} ({node.op}), and gave it no device or no kernel")


Arrays: TypeAlias = "list[np.ndarray[Any, Any]]"


def evaluator(setting: PlanningContext) -> Callable[[PlanNode], Arrays | None]:
    """Function that computes a node over constants; it returns None where no kernel on host memory can."""
    place = cache(lambda: _place(setting))

    def evaluate(node: PlanNode) -> Arrays | None:
        where = place()
        if where is None:
            return None
        chooser, device_type, device = where
        choice = chooser.choose(node, device_type)
        if choice.kernel is None or "planned" not in choice.kernel.kernel.modes:
            return None
        if choice.kernel.kernel.prepare is not None:
            return None  # compiling it would cost more than it saves
        arrays = [v.node.attrs["value"] for v in node.inputs]  # type: ignore[union-attr]
        out_args = node.opdef.outputs
        try:
            outs = [np.empty(concrete(v.shape) or (), v.dtype.np) for v in node.outputs]
        except (MemoryError, ValueError):  # more elements than an array can have
            return None
        ctx = BuildContext(
            node,
            tuple(
                ArgInfo(arg.name, v.dtype, v.shape, HOST_MEMORY, a)
                for arg, v, a in zip(arg_of(node), node.inputs, arrays, strict=True)
            ),
            tuple(
                OutInfo(out_args[min(i, len(out_args) - 1)].name, v.dtype, v.shape, HOST_MEMORY, PLANNED)
                for i, v in enumerate(node.outputs)
            ),
            device,
            device.queue,
        )
        try:
            bound = build_kernel(choice.kernel.kernel, ctx)
            buffers = [*outs, *[np.empty(s.shape, s.dtype.np) for s in bound.scratch]]
            if bound.args is None:
                args: list[Any] = [*arrays, *buffers]
            else:
                args = [
                    a.value if isinstance(a, Lit) else arrays[a.index] if isinstance(a, In) else buffers[a.index]
                    for a in bound.args
                ]
            with np.errstate(all="ignore"):
                bound.compute(*args)
        except Exception:  # noqa: BLE001 - whatever a kernel raises
            return None  # the step itself will raise it, with the node's own line
        if setting.config.check_numerics:
            floating = [o for v, o in zip(node.outputs, outs, strict=True) if v.dtype.is_floating]
            if not all(np.isfinite(o).all() for o in floating):
                return None  # the step itself stops at it
        return outs

    return evaluate


def _place(setting: PlanningContext) -> tuple[Chooser, str, Device] | None:
    """Place where constants are computed: on a device of the session, by its choice of kernels; else on one that graphdock itself
    brings, so that what folds does not depend on which backends are listed. None where that is blocked."""
    for name, device in setting.opened.items():
        if name.type is not None and device.memory_space == HOST_MEMORY:
            return setting.chooser, name.type, device
    host = setting.host
    for state in host.plugins():
        if state.found.is_own and state.usable and state.manifest is not None:
            for declared in state.manifest.devices:
                host.backend(state.name)
                device = host.open_device(f"/device:{declared.type}:0")
                if device.memory_space == HOST_MEMORY:
                    return Chooser(host, (state.name,), {}, setting.config.deterministic), declared.type, device
    return None
