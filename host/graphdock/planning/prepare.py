"""Preparing the kernels of a plan: facts, compilation and tuning, once per plan and before memory is planned.

A kernel that refuses is out for its node, with the reason in the node's Decision, and the choice is made again.
"""

from __future__ import annotations

import concurrent.futures
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from graphdock.contracts.device import HOST_MEMORY
from graphdock.contracts.ir import PlanNode, Value, arg_of
from graphdock.contracts.kernel import UNDECIDED, ArgInfo, NotCompiled, OutInfo, PrepareContext, Prepared
from graphdock.contracts.kernel_errors import kernel_error
from graphdock.contracts.runtime.resources import Variable
from graphdock.errors import KernelRefused, format_error
from graphdock.opdef.shape_rule import rule_for
from graphdock.planning.measure import measurer
from graphdock.planning.plan_builder import PlanBuilder
from graphdock.planning.plan_shapes import infer_outputs
from graphdock.plugin.kernel_registry import RegisteredKernel

__all__ = ["prepare_kernels"]


def prepare_kernels(draft: PlanBuilder, choose_again: Callable[[PlanBuilder], None]) -> None:
    """Fill ``draft.prepared``. Kernels that refuse go to ``draft.refused``, and ``choose_again`` is called.

    Raises:
      InternalError: a kernel's ``prepare`` raised something else than KernelRefused; it names the node.
      KernelNotFoundError: from ``choose_again``, when all kernels of a node have refused.
    """
    done: dict[_Asked, Prepared] = {}
    while True:
        asked = _asked(draft)
        refusals: list[tuple[PlanNode, RegisteredKernel, str]] = []
        waiting: list[tuple[_Asked, RegisteredKernel, Prepared]] = []
        wanted = not draft.later  # what stands in for a kernel that is compiled is not wanted for long
        for key, registered in asked.items():
            if key in done:
                continue
            try:
                prepared = _prepared(draft, key, registered, wanted)
            except KernelRefused as refusal:
                refusals.append((key.node, registered, refusal.message))
                continue
            waiting.append((key, registered, prepared))
        concurrent.futures.wait([p.ready for _, _, p in waiting if p.ready is not None])
        for key, registered, prepared in waiting:
            reason = _failure(prepared)
            if reason is None:
                done[key] = prepared
            else:
                refusals.append((key.node, registered, reason))
        if not refusals:
            break
        for node, registered, reason in refusals:
            draft.refused.setdefault(node, {})[registered.full_name] = f"refused when it was prepared: {reason}"
        choose_again(draft)
    draft.prepared = {key.node: done[key] for key in asked}


class _Asked(NamedTuple):
    """Context for which a kernel is prepared. Where another choice changes who reads the node's outputs, it is prepared anew."""

    node: PlanNode
    kernel: str
    used: tuple[bool, ...]


def _asked(draft: PlanBuilder) -> dict[_Asked, RegisteredKernel]:
    """The kernels of the plan, as it stands, that want to be prepared."""
    chosen = [(n, r) for n, r in draft.placement.kernels.items() if r.kernel.prepare is not None]
    if not chosen:
        return {}
    read: set[Value] = set()
    for level in draft.graph.all_graphs():
        read.update(level.outputs)
        for node in level.nodes:
            read.update(node.inputs)
    return {_Asked(n, r.full_name, tuple([v in read for v in n.outputs])): r for n, r in chosen}


def _prepared(draft: PlanBuilder, asked: _Asked, registered: RegisteredKernel, wanted: bool) -> Prepared:
    """Statement of a kernel. ``wanted``: code that it lacks is compiled later, where the plan does without it."""
    assert registered.kernel.prepare is not None
    node = asked.node
    try:
        try:
            prepared = registered.kernel.prepare(_context(draft, asked, registered))
        except NotCompiled as missing:
            if draft.later is not None:
                if wanted:
                    draft.later.append(missing.compile)
                raise KernelRefused("its code is compiled while steps run without it") from None
            missing.compile()
            prepared = registered.kernel.prepare(_context(draft, asked, registered))
    except KernelRefused:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a kernel raises is raised again with its node
        explained = kernel_error(error, node, "could not be prepared")
        if explained is error:
            raise
        raise explained from error
    if not isinstance(prepared, Prepared):
        from graphdock.contracts.returned import misfit

        raise misfit(prepared, Prepared, registered.plugin, f"prepare of the kernel {registered.full_name}")
    return prepared


def _failure(prepared: Prepared) -> str | None:
    """Reason why a compilation failed; None when it did not."""
    if prepared.ready is None:
        return None
    try:
        error = prepared.ready.exception()
    except concurrent.futures.CancelledError as cancelled:
        error = cancelled
    if error is None:
        return None
    return error.message if isinstance(error, KernelRefused) else format_error(error)


def _context(draft: PlanBuilder, asked: _Asked, registered: RegisteredKernel) -> PrepareContext:
    setting, kernel, node = draft.setting, registered.kernel, asked.node
    assert node.device is not None
    device = setting.opened[node.device]

    def space(arg: Any, dtype: str) -> str:
        on_host = arg.memory == "host" or arg.name in kernel.host or dtype == "string"
        return HOST_MEMORY if on_host else device.memory_space

    inputs: list[ArgInfo] = []
    for value, arg in zip(node.inputs, arg_of(node), strict=True):
        if value.dtype.name == "resource":
            resource = draft.resource(value)
            if isinstance(resource, Variable):
                where = device.memory_space
                inputs.append(ArgInfo(arg.name, resource.dtype, resource.dims, where, None, True, True))
            else:
                inputs.append(ArgInfo(arg.name, value.dtype, (), HOST_MEMORY))
            continue
        source = value.node
        known = source.attrs["value"] if source is not None and source.verb == "constant" else None
        contiguous = kernel.layout == "contiguous" or known is not None
        inputs.append(ArgInfo(arg.name, value.dtype, value.shape, space(arg, value.dtype.name), known, contiguous))
    counts = rule_for(node.opdef).output_counts(node.attrs)
    args = [arg for arg, count in zip(node.opdef.outputs, counts, strict=True) for _ in range(count)]
    outputs = []
    for i, (arg, value) in enumerate(zip(args, node.outputs, strict=True)):
        where = space(arg, value.dtype.name)
        outputs.append(OutInfo(arg.name, value.dtype, value.shape, where, UNDECIDED, asked.used[i]))
    infos: list[ArgInfo | OutInfo] = [*[i for i in inputs if i.dtype.name != "resource"], *outputs]
    allowed = not draft.dry and not setting.config.deterministic and len(infos) == len(inputs) + len(outputs)
    measure = measurer(node, device, infos, allowed)
    options = setting.options.get(registered.plugin, {})
    told = (node, tuple(inputs), tuple(outputs), device, measure, options, setting.config.deterministic)
    return PrepareContext(*told, functools.partial(infer_outputs, node), setting.threads)
