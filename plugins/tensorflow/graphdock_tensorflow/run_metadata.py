"""Report of a traced step, as the message that TensorBoard reads: times and memory node by node."""

from __future__ import annotations

import math
from typing import Any

from graphdock.contracts.ir import PlanNode
from graphdock.messages import make
from graphdock.shape import concrete
from graphdock_storage.tensor_messages import number_of, shape_proto

from graphdock_tensorflow.step_stats import StepStats

__all__ = ["run_metadata_proto"]


def run_metadata_proto(stats: StepStats, plan: Any) -> Any:
    """The message of a step's stats. A node's memory is that of its outputs, as far as the plan knows their shapes.

    A node that ran in less than a microsecond counts as one, as in TensorFlow: TensorBoard leaves out what took no time.
    """
    nodes = {} if plan is None else {node.name: node for level in plan.graph.all_graphs() for node in level.nodes}
    made = make("RunMetadata")
    made.SetInParent()
    for device in stats.dev_stats:
        told = made.step_stats.dev_stats.add(device=device.device)
        for each in device.node_stats:
            one = told.node_stats.add(
                node_name=each.node_name,
                all_start_micros=each.all_start_micros,
                op_start_rel_micros=each.op_start_rel_micros,
                op_end_rel_micros=max(each.op_end_rel_micros, 1),
                all_end_rel_micros=max(each.all_end_rel_micros, 1),
                timeline_label=each.timeline_label,
            )
            if each.node_name in nodes:
                _add_memory(one, nodes[each.node_name], device.device)
    return made


def _add_memory(stats: Any, node: PlanNode, device: str) -> None:
    total = 0
    for slot, value in enumerate(node.outputs):
        dims = None if value.shape is None else concrete(value.shape)
        if dims is None:
            continue
        total += math.prod(dims) * value.dtype.size
        described = {"dtype": number_of(value.dtype), "shape": shape_proto(tuple(dims))}
        stats.output.add(slot=slot, tensor_description=described)
    if total:
        stats.memory.add(allocator_name=device, total_bytes=total, peak_bytes=total)
