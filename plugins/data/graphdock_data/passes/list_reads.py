"""Reads of many elements of a list of tensors, all of whose elements are the rows of one tensor: they read that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from graphdock.contracts import PassContext, PlanGraph, PlanNode, Rewriter, Value
from graphdock.shape import Symbol, compatible

from graphdock_data.passes.affine import Affine, Scopes
from graphdock_data.passes.plan_nodes import NodeMaker
from graphdock_data.passes.rows_of_lists import (
    Listed,
    dims_given,
    forgets,
    keeps_promise,
    listed,
    reads_of,
    row,
    span_of,
)
from graphdock_data.passes.trips import NotKnown

__all__ = ["read_rows"]


def read_rows(level: PlanGraph, context: PassContext, scopes: Scopes, known: Mapping[Value, Listed]) -> None:
    """Read rows, with zeros around them where nothing was written, in the place of lists of a level."""
    nodes = [n for n in level.nodes if n.op in ("TensorListStack", "TensorListGather") and not n.control]
    reads = reads_of(level) if nodes else Counter()
    for node in nodes:
        make = NodeMaker(node, level, context, scopes)
        try:
            source = listed(node.inputs[0], known, scopes)
            span = _span(node, source, scopes)
            if span is None or not _can(node, source, span, reads, scopes, known):
                continue
            before, behind = source.low.minus(span[0]), span[1].minus(source.end)
            rows = source.rows
            if not (before.is_zero() and behind.is_zero()):
                rows = make.padded(rows, before, behind, span[1].minus(span[0]).known)
            if not keeps_promise(node, rows.shape):
                continue
        except NotKnown:
            continue
        made = node.outputs[0]
        with Rewriter(level) as change:
            if _may_fail(source) and source.root is not None and source.rows.node is not None:
                change.rebind(source.rows.node, control=[*source.rows.node.control, source.root])
            if isinstance(made.extent, tuple) and isinstance(made.extent[0], Symbol):
                scopes.facts.dims.setdefault(made.extent[0], span[1].minus(span[0]))
            for each in make.made:
                change.insert(change.number(each), before=node)
            change.replace(node, [rows])


def _span(node: PlanNode, source: Listed, scopes: Scopes) -> tuple[Affine, Affine] | None:
    """The first of the elements that a node reads, and what follows the last; None where that is not known."""
    if node.op == "TensorListGather":
        return span_of(node.inputs[1], scopes)
    number = node.attrs["num_elements"]
    size = source.size
    if size is None:
        return Affine(), source.end if number < 0 else Affine((), number)
    if source.root is not None and source.root.attrs["dynamic_size"]:
        size = source.end if size.is_zero() else None
    if size is None or number >= 0 and not size.add(-number).is_zero():
        return None
    return Affine(), size


def _can(
    node: PlanNode,
    source: Listed,
    span: tuple[Affine, Affine],
    reads: Counter[Value],
    scopes: Scopes,
    known: Mapping[Value, Listed],
) -> bool:
    """Return whether a node gives the rows, and zeros around them, whatever they are."""
    array, rows = node.inputs[0], source.rows
    dims = dims_given(node, len(node.inputs) - 1)
    if isinstance(dims, bool) or not compatible(dims, row(rows)) or node.attrs["element_dtype"] is not rows.dtype:
        return False
    if forgets(array, scopes) and any(reads[n.outputs[0]] > 1 for n in source.nodes):
        return False
    if _may_fail(source) and array not in known:
        return False
    around = [source.low.minus(span[0]), span[1].minus(source.end)]
    if not all(map(scopes.at_least_zero, around)) or not scopes.at_least_zero(span[0]):
        return False
    if (
        source.size is not None
        and node.op == "TensorListGather"
        and not scopes.at_least_zero(source.size.minus(span[1]))
    ):
        return False
    # of no element, and of one that was not written, zeros are made of what is said alone
    said = [dims] if source.root is None else [dims, dims_given(source.root, 0)]
    some = source.end.minus(source.low).add(-1).at_least_zero() and all(form.is_zero() for form in around)
    return some or any(not isinstance(d, bool) and d is not None and None not in d for d in said)


def _may_fail(source: Listed) -> bool:
    """Return whether making a list may be an error, which its rows don't know of: its size is negative."""
    return source.size is not None and source.root is not None and not source.size.at_least_zero()
