"""Whole-step capture: which plans a device may record once and replay, and the source of such a step.

A captured step has three parts: feeds are copied into buffers of stable address, the recorded work is replayed, results are
copied out. Only the middle part is shown to :meth:`Device.capture`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from graphdock.contracts.device import HOST_MEMORY, Device
from graphdock.contracts.ir import PlanGraph, PlanNode, users
from graphdock.device_name import DeviceSpec
from graphdock.plugin.registry import RegisteredKernel
from graphdock.runtime.source import Block, Line, names_locals, render

__all__ = ["capturing_device", "render_captured", "whole"]

#: Verbs that steer nothing from the host.
_QUIET = frozenset({"kernel", "read", "assign", "move"})


def capturing_device(
    graph: PlanGraph, kernels: Mapping[PlanNode, RegisteredKernel], device_of: Callable[[DeviceSpec], Device]
) -> Device | None:
    """The device that may capture this placed plan, or None.

    It must run every kernel and override ``capture``; nothing may steer the step from the host: no control flow, host op or random
    stream, and no transfer but of feeds to the device and of results from it.
    """
    devices = {n.device for n in graph.nodes if n in kernels and n.device is not None}
    if len(devices) != 1:
        return None
    device = device_of(devices.pop())
    if type(device).capture is Device.capture or device.memory_space == HOST_MEMORY:
        return None
    readers = users(graph)
    inputs, outputs = set(graph.inputs), set(graph.outputs)
    for node in graph.nodes:
        if not (node.verb in _QUIET or node.opdef.verb.silent) or node.opdef.effects:
            return None
        if node.verb == "move":
            arriving = node.attrs["source"] == HOST_MEMORY and node.inputs[0] in inputs
            leaving = node.attrs["target"] == HOST_MEMORY and node.outputs[0] in outputs
            if not arriving and (not leaving or node.outputs[0] in readers):
                return None
    return device


def whole(body: Block) -> bool:
    """Whether a step's body touches only buffers whose address stays: none of its lines names a local of the step."""
    return not names_locals(body)


def render_captured(
    before: Block, body: Block, after: Block, feeds: Sequence[str], results: str
) -> tuple[str, list[PlanNode | None]]:
    """As :func:`graphdock.runtime.source.render`, with the body as a function ``body`` of its own; ``step`` calls ``replay``."""
    text, nodes = render(body, (), "None")
    text = re.sub(r"\bpart(\d+)\(", r"body_part\1(", text.replace("def step(", "def body("))
    around = Block([*before.items, Line("replay()"), *after.items])
    step, step_nodes = render(around, feeds, results)
    return text + step, nodes + step_nodes[1:]
