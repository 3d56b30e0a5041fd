"""Preparing the kernels of a plan: facts, compilation and tuning, once per plan and before memory is planned.

A kernel that refuses is out for its node, with the reason in the node's Decision, and the choice is made again.
"""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable, Mapping
from typing import Any

from graphdock.contracts.device import HOST_MEMORY
from graphdock.contracts.ir import PlanNode, Value, arg_of
from graphdock.contracts.kernel import UNDECIDED, ArgInfo, OutInfo, PrepareContext, Prepared
from graphdock.contracts.kernel_error import kernel_error
from graphdock.errors import KernelRefused, told
from graphdock.plugin.registry import RegisteredKernel
from graphdock.runtime.draft import Draft
from graphdock.runtime.measure import measurer
from graphdock.runtime.resources import Variable

__all__ = ["prepare_kernels"]


def prepare_kernels(draft: Draft, choose_again: Callable[[Draft], None]) -> None:
    """Fill ``draft.prepared``. Kernels that refuse go to ``draft.refused``, and ``choose_again`` is called.

    Raises:
      InternalError: a kernel's ``prepare`` raised something else than KernelRefused; it names the node.
      KernelNotFoundError: from ``choose_again``, when all kernels of a node have refused.
    """
    done: dict[tuple[PlanNode, str], Prepared] = {}
    while True:
        kernels = draft.placement.kernels
        wanted = [(n, r) for n, r in kernels.items() if r.kernel.prepare is not None and (n, r.full_name) not in done]
        read = _read(draft) if wanted else set()
        refusals: list[tuple[PlanNode, RegisteredKernel, str]] = []
        waiting: list[tuple[PlanNode, RegisteredKernel, Prepared]] = []
        for node, registered in wanted:
            try:
                prepared = _prepared(draft, node, registered, read)
            except KernelRefused as refusal:
                refusals.append((node, registered, refusal.message))
                continue
            waiting.append((node, registered, prepared))
        concurrent.futures.wait([p.ready for _, _, p in waiting if p.ready is not None])
        for node, registered, prepared in waiting:
            reason = _failure(prepared)
            if reason is None:
                done[node, registered.full_name] = prepared
            else:
                refusals.append((node, registered, reason))
        if not refusals:
            break
        for node, registered, reason in refusals:
            draft.refused.setdefault(node, {})[registered.full_name] = f"refused when it was prepared: {reason}"
        choose_again(draft)
    draft.prepared = _of_chosen(draft, done)


def _of_chosen(draft: Draft, done: Mapping[tuple[PlanNode, str], Prepared]) -> dict[PlanNode, Prepared]:
    return {
        node: done[node, registered.full_name]
        for node, registered in draft.placement.kernels.items()
        if registered.kernel.prepare is not None
    }


def _read(draft: Draft) -> set[Value]:
    """The values that something in the plan reads."""
    graphs = list(draft.graph.all_graphs())
    return {v for g in graphs for n in g.nodes for v in n.inputs} | {v for g in graphs for v in g.outputs}


def _prepared(draft: Draft, node: PlanNode, registered: RegisteredKernel, read: set[Value]) -> Prepared:
    assert registered.kernel.prepare is not None
    try:
        return registered.kernel.prepare(_context(draft, node, registered, read))
    except KernelRefused:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a kernel raises is raised again with its node
        explained = kernel_error(error, node, "could not be prepared")
        if explained is error:
            raise
        raise explained from error


def _failure(prepared: Prepared) -> str | None:
    """Why a compilation failed; None when it did not."""
    if prepared.ready is None:
        return None
    try:
        error = prepared.ready.exception()
    except concurrent.futures.CancelledError as cancelled:
        error = cancelled
    if error is None:
        return None
    return error.message if isinstance(error, KernelRefused) else told(error)


def _context(draft: Draft, node: PlanNode, registered: RegisteredKernel, read: set[Value]) -> PrepareContext:
    setting, kernel = draft.setting, registered.kernel
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
    args = node.opdef.outputs
    outputs = []
    for i, value in enumerate(node.outputs):
        arg = args[i if len(args) == len(node.outputs) else 0]
        where, used = space(arg, value.dtype.name), value in read
        outputs.append(OutInfo(arg.name, value.dtype, value.shape, where, UNDECIDED, used))
    infos: list[ArgInfo | OutInfo] = [*[i for i in inputs if i.dtype.name != "resource"], *outputs]
    allowed = not draft.dry and not setting.deterministic and len(infos) == len(inputs) + len(outputs)
    measure = measurer(node, device, infos, allowed)
    options = setting.options.get(registered.plugin, {})
    return PrepareContext(node, tuple(inputs), tuple(outputs), device, measure, options, setting.deterministic)
