"""The pass that makes one product of many by one matrix: what a recurrent layer computes of its inputs ahead of its steps.

A product of few rows costs little more arithmetic than the reading of the matrix. Products of rows that are known before any of the
products is made can be computed as one, of the rows one below the other. In a recurrent network such a product has to be cut in two
first: ``[x, h] W`` is ``x V + h U``, of which all ``x V`` can be one product while every ``h U`` waits for the one before. Of the
gradient ``g W'`` that is split into those by ``x`` and by ``h``, the first can be one product likewise.

Which op joins, cuts and adds the matrices is said by the spec of the product, by ``joint``.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from graphdock.contracts import OpDef, PassContext, PlanGraph, PlanNode, Rewriter, Value
from graphdock.contracts.ir import attr_key, make_node
from graphdock.dtypes import int32
from graphdock.shape import Dims

__all__ = ["batch_matmuls"]


@dataclass(frozen=True)
class _Product:
    """A product ``a b``, with b transposed where the node says so.

    joined: whether ``a`` is joined of pieces along its columns, each of which meets rows of a b that is not transposed.
    cut: the node that cuts the product into columns, of a transposed b, and that alone reads it; else None.
    widths: of the pieces, or of what the product is cut into: they part the rows of b.
    """

    node: PlanNode
    joined: bool
    cut: PlanNode | None
    widths: tuple[int, ...]

    @property
    def pieces(self) -> Sequence[Value]:
        """Return what ``a`` is joined of now; ``a`` alone where it is not."""
        a = self.node.inputs[0]
        return a.node.inputs[:-1] if self.joined and a.node is not None else [a]


def batch_matmuls(graph: PlanGraph, context: PassContext) -> None:
    """Join the products by one matrix whose rows don't depend on one another, where that moves fewer elements."""
    rights = Counter([_right(n) for n in graph.nodes if n.opdef.joint])
    if all(count == 1 for count in rights.values()):
        return
    reads = Counter(itertools.chain(graph.outputs, *[n.inputs for n in graph.nodes]))
    cuts = {n.inputs[0]: n for n in graph.nodes if n.inputs and reads[n.inputs[0]] == 1}
    kept = set(graph.targets).union(*[n.control for n in graph.nodes if n.control])
    groups: dict[Any, list[_Product]] = {}
    for node in graph.nodes:
        if node.opdef.joint and node not in kept and rights[_right(node)] > 1:
            found = _product(node, cuts, kept)
            if found is not None:
                groups.setdefault(_key(found), []).append(found)
    for group in groups.values():
        if len(group) > 1:
            # one group after the other: what joins one may order the products of the next
            _join_some(graph, group, context)


def _right(node: PlanNode) -> Any:
    """The matrix by which a product multiplies, and the way in which it does."""
    return node.op, node.inputs[1], node.attrs["transpose_a"], node.attrs["transpose_b"]


def _join_some(graph: PlanGraph, group: Sequence[_Product], context: PassContext) -> None:
    """Join what can be joined of products that are alike: whole ones, or else the first part of them of which some can be."""
    wholes = [_whole(p.node) for p in group]
    for alike, part in [(wholes, 0), *((group, part) for part in range(len(group[0].widths)))]:
        if not _pays(alike, part):
            continue
        levels: dict[int, list[_Product]] = {}
        for product, level in zip(alike, _levels(graph, alike, part), strict=True):
            levels.setdefault(level, []).append(product)
        joined = [found for found in levels.values() if len(found) > 1 and _pays(found, part)]
        if joined:
            with Rewriter(graph) as change:
                for found in joined:
                    _join(found, part, change, context)
                change.arrange(graph.nodes)
            return


def _product(node: PlanNode, cuts: dict[Value, PlanNode], kept: set[PlanNode]) -> _Product | None:
    """The node as a product that could be joined with others."""
    a, b = node.inputs
    result = node.outputs[0]
    if not (_is_free(node) and _is_matrix(a.shape) and _is_matrix(b.shape)) or node.attrs["transpose_a"]:
        return None
    if node.attrs["transpose_b"]:
        cut = cuts.get(result)
        if cut is not None and cut.op == node.opdef.joint["cut"] and cut not in kept and _is_free(cut):
            widths = [_width(v) for v in cut.outputs]
            if len(widths) > 1 and _parts(widths, result):
                return _Product(node, False, cut, tuple(w for w in widths if w is not None))
    elif a.node is not None and a.node.op == node.opdef.joint["join"] and _is_free(a.node):
        widths = [_width(v) for v in a.node.inputs[:-1]]
        if len(widths) > 1 and _parts(widths, a):
            return _Product(node, True, None, tuple(w for w in widths if w is not None))
    return _whole(node)


def _whole(node: PlanNode) -> _Product:
    """The node as a product that is computed as it is."""
    return _Product(node, False, None, (node.inputs[1].shape[0],))  # type: ignore[index, arg-type]


def _is_free(node: PlanNode) -> bool:
    return not node.control and node.guard is None and not node.order


def _is_matrix(shape: Dims) -> bool:
    return shape is not None and len(shape) == 2 and None not in shape


def _width(value: Value) -> int | None:
    return value.shape[1] if value.shape is not None and len(value.shape) == 2 else None


def _parts(widths: Sequence[int | None], whole: Value) -> bool:
    """Return whether the columns of a matrix are so many and no others: then they were joined or cut along them, not along rows."""
    return None not in widths and sum(w for w in widths if w is not None) == _width(whole)


def _key(product: _Product) -> Any:
    """Return what products have in common that are joined."""
    node = product.node
    attrs = tuple([(k, attr_key(v)) for k, v in sorted(node.attrs.items())])
    cut = None if product.cut is None else (product.cut.op, product.cut.requested)
    return node.op, attrs, node.requested, node.inputs[1], node.inputs[0].shape, product.widths, cut


def _sizes(product: _Product, part: int) -> tuple[int, int, int]:
    """Rows, the length of the sums, and columns of one part of the product."""
    rows, inner = product.node.inputs[0].shape  # type: ignore[misc]
    columns = product.node.outputs[0].shape[1]  # type: ignore[index]
    width = product.widths[part]
    return (rows, inner, width) if product.node.attrs["transpose_b"] else (rows, width, columns)  # type: ignore[return-value]


def _pays(alike: Sequence[_Product], part: int) -> bool:
    """Return whether laying the rows below one another, and adding what was cut, moves half as much as reading the matrix
    each time.
    """
    rows, inner, columns = _sizes(alike[0], part)
    return 2 * len(alike) * rows * (inner + 2 * columns) <= (len(alike) - 1) * inner * columns


def _levels(graph: PlanGraph, group: Sequence[_Product], part: int) -> list[int]:
    """For each product, how many of the others follow one another before this part of it can be computed.

    Products of one level don't depend on one another, if each is cut into its parts.
    """
    of_node, of_cut = {p.node: p for p in group}, {p.cut for p in group if p.cut is not None}
    depth: dict[Value, int] = {}
    deepest: dict[PlanNode, int] = {}
    found = {}
    for node in graph.nodes:
        before = [deepest.get(n, 0) for n in (*node.control, *node.order)]
        product = of_node.get(node)
        if product is not None:
            at = [depth.get(v, 0) for v in product.pieces]
            found[node] = at[part] if product.joined else at[0]
            if product.cut is None:
                at.append(found[node] + 1)
        else:
            at = [depth.get(v, 0) for v in node.inputs]
        deepest[node] = max([*before, *at], default=0)
        for index, value in enumerate(node.outputs):
            depth[value] = deepest[node] + (node in of_cut and index == part)
        if node in of_cut:
            deepest[node] += 1
    return [found[p.node] for p in group]


def _join(alike: Sequence[_Product], part: int, change: Rewriter, context: PassContext) -> None:
    """Replace the products by one of their parts of this number, and a product each for the others."""
    first = alike[0]
    make = _Maker(first.node, change, context)
    rights = make.cut(first.node.inputs[1], first.widths, 0) if len(first.widths) > 1 else [first.node.inputs[1]]
    at = part if first.joined else 0
    rows, _, columns = _sizes(first, part)
    below = make.join([p.pieces[at] for p in alike])
    whole = make.product(below, rights[part], (rows * len(alike), columns))
    for product, piece in zip(alike, make.cut(whole, [rows] * len(alike), 0), strict=True):
        node = product.node
        if product.cut is not None:
            values = [
                piece if i == part else make.product(node.inputs[0], rights[i], v.shape)
                for i, v in enumerate(product.cut.outputs)
            ]
            change.replace(product.cut, values)
            change.erase(node)
            continue
        total = piece
        for index, other in enumerate(product.pieces):
            if index != at:
                total = make.add(total, make.product(other, rights[index], node.outputs[0].shape))
        change.replace(node, [total])


class _Maker:
    """Makes nodes in the place of products, of which ``like`` is the first."""

    def __init__(self, like: PlanNode, change: Rewriter, context: PassContext) -> None:
        self._like, self._change, self._context = like, change, context
        self._count = 0

    def _node(
        self, opdef: OpDef, given: Sequence[Sequence[Value]], outputs: Sequence[Dims], **attrs: Any
    ) -> list[Value]:
        dtype = self._like.outputs[0].dtype
        for arg, values in zip(opdef.inputs, given, strict=True):
            if any(t.name == arg.dtype for t in opdef.types):
                attrs[arg.dtype] = values[0].dtype
            if arg.count is not None:
                attrs[arg.count] = len(values)
        if opdef.outputs[0].count is not None:
            attrs[opdef.outputs[0].count] = len(outputs)
        self._count += 1
        node = make_node(
            opdef,
            f"{self._like.name}/joint_{self._count}",
            [v for values in given for v in values],
            attrs,
            [(dtype, shape) for shape in outputs],
            requested=self._like.requested,
            site_of=self._like.site_of,
            origins=self._like.origins,
        )
        return self._change.insert(node).outputs

    def _integers(self, value: Any) -> Value:
        array = np.array(value, np.int32)
        self._count += 1
        name = Value(f"{self._like.name}/joint_{self._count}", int32, array.shape)
        return self._change.insert(self._context.constant(self._like, name, array)).outputs[0]

    def join(self, values: Sequence[Value]) -> Value:
        """One below the other."""
        rows, columns = values[0].shape  # type: ignore[misc]
        opdef = self._context.opdef(self._like.opdef.joint["join"])
        return self._node(opdef, [values, [self._integers(0)]], [(rows * len(values), columns)])[0]  # type: ignore[operator]

    def cut(self, value: Value, sizes: Sequence[int], axis: int) -> list[Value]:
        """Parts of so many rows."""
        opdef = self._context.opdef(self._like.opdef.joint["cut"])
        shapes = [(size, value.shape[1]) for size in sizes]  # type: ignore[index]
        return self._node(opdef, [[value], [self._integers(list(sizes))], [self._integers(axis)]], shapes)

    def product(self, a: Value, b: Value, shape: Dims) -> Value:
        return self._node(self._like.opdef, [[a], [b]], [shape], **self._like.attrs)[0]

    def add(self, x: Value, y: Value) -> Value:
        return self._node(self._context.opdef(self._like.opdef.joint["add"]), [[x], [y]], [x.shape])[0]
