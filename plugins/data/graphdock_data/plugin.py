"""Entry point of the ``data`` plugin: its ops, their kernels in host memory, and the kinds of its resources."""

from __future__ import annotations

from collections.abc import Iterable

from graphdock.contracts import KernelModule, OpLibrary, Pass, PlanNode, ResourceKind, hookimpl

#: Modules of ``graphdock_data.kernels``; each holds a list ``KERNELS``.
FAMILIES = (
    "accumulators",
    "barriers",
    "examples",
    "files",
    "iterators",
    "queues",
    "readers",
    "serialized",
    "staging_maps",
    "tables",
    "tensor_lists",
)


@hookimpl
def register_ops() -> Iterable[OpLibrary]:
    return [OpLibrary("graphdock_data._gen.opdefs", specs="graphdock_data")]


@hookimpl
def register_kernels() -> Iterable[KernelModule]:
    return [KernelModule(f"graphdock_data.kernels.{family}") for family in FAMILIES]


def _is_element(node: PlanNode) -> bool:
    return node.op in ("TensorListGetItem", "TensorListSetItem")


@hookimpl
def register_passes() -> Iterable[Pass]:
    return [
        Pass(
            "lists",
            "rewrite",
            10,
            "keeps and reads rows in loops that write and read lists at their counter",
            "graphdock_data.passes.loop_lists:loop_lists",
            _is_element,
        )
    ]


@hookimpl
def register_resource_kinds() -> Iterable[ResourceKind]:
    from graphdock_data.resources.accumulator import ACCUMULATOR
    from graphdock_data.resources.barrier import BARRIER
    from graphdock_data.resources.iterator import ITERATOR
    from graphdock_data.resources.queue import QUEUE
    from graphdock_data.resources.reader import READER
    from graphdock_data.resources.staging_map import STAGING_MAP
    from graphdock_data.resources.table import TABLE

    return [ACCUMULATOR, BARRIER, ITERATOR, QUEUE, READER, STAGING_MAP, TABLE]
