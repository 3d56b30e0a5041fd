"""The pass ``arithmetic``: one way over a level's nodes, each of which the rules of its op type are tried on.

What a rule makes is tried again, so that chains become one node; what nobody reads any more is pruned behind the pass.
"""

from __future__ import annotations

import ast
import functools
import itertools
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from graphdock.contracts import PassContext, PlanGraph, PlanNode, Rewriter, Value
from graphdock.contracts.ir import arg_of, make_node
from graphdock.contracts.scalar_formula import parse_formula

from graphdock_std.arithmetic.rules import COMPUTED, RULES, Rule

__all__ = ["arithmetic", "heads", "ops_of", "parsed"]

#: A variable, or an op with its inputs.
Term: TypeAlias = "str | tuple[str, tuple[Any, ...]]"


@functools.cache
def parsed(text: str) -> tuple[Term, Mapping[str, str]]:
    """Return a term as plain data: a variable, or (op or function, terms); and keyword -> the attribute that it negates."""
    tree = parse_formula(text)
    negated = {}
    for keyword in tree.keywords if isinstance(tree, ast.Call) else ():
        assert isinstance(keyword.value, ast.UnaryOp) and isinstance(keyword.value.operand, ast.Name)
        negated[str(keyword.arg)] = keyword.value.operand.id
    return _term(tree), negated


def _term(tree: ast.expr) -> Term:
    if isinstance(tree, ast.Name):
        return tree.id
    assert isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name)
    return tree.func.id, tuple([_term(arg) for arg in tree.args])


def ops_of(term: Term) -> set[str]:
    """Return the op types in a term."""
    if isinstance(term, str):
        return set()
    return set().union({term[0]} - COMPUTED.keys(), *map(ops_of, term[1]))


def variables(term: Term) -> set[str]:
    """Return the variables in a term."""
    return {term} if isinstance(term, str) else set().union(*map(variables, term[1]))


@functools.cache
def heads() -> Mapping[str, tuple[Rule, ...]]:
    """Op type -> the rules whose patterns have it outermost, in the table's order."""
    found: dict[str, tuple[Rule, ...]] = {}
    for rule in RULES:
        outer = parsed(rule.pattern)[0][0]
        found[outer] = (*found.get(outer, ()), rule)
    return found


def arithmetic(graph: PlanGraph, context: PassContext) -> None:
    """Replace what a rule says need not be computed as it is written."""
    table = heads()
    reads: Counter[Value] | None = None
    with Rewriter(graph) as change:
        for node in graph.nodes:
            if node.op not in table or node.control or node.guard is not None:
                continue
            inputs = change.inputs(node)
            if not _tells(inputs):
                continue
            if reads is None:
                reads = Counter([v for n in graph.nodes for v in n.inputs] + graph.outputs)
            value = _reduced(node, inputs, change, context, reads)
            if value is not None:
                change.replace(node, [value])
                reads[value] += reads[node.outputs[0]]


def _tells(inputs: Sequence[Value]) -> bool:
    """Return whether an input is made by a node of the level, or comes twice: no rule is about anything else."""
    return any([v.node is not None for v in inputs]) or len(set(inputs)) < len(inputs)


def _reduced(
    node: PlanNode, inputs: Sequence[Value], change: Rewriter, context: PassContext, reads: Counter[Value]
) -> Value | None:
    """The value that stands for a node's after all rules, or None where there is none; nodes for it are inserted."""
    outer = node if inputs is node.inputs else _like(node, inputs)
    value = None
    made: list[PlanNode] = []
    while (step := _step(outer, change, context, reads)) is not None:
        more, value = step
        if not more:
            break
        made += more
        outer = more[-1]
    if value is not None and value.node in made:
        for each in made:
            change.insert(each, before=node)
    return value


def _like(node: PlanNode, inputs: Sequence[Value]) -> PlanNode:
    types = [(v.dtype, v.shape) for v in node.outputs]
    kept = {"requested": node.requested, "site_of": node.site_of, "origins": node.origins}
    return make_node(node.opdef, node.name, inputs, node.attrs, types, **kept)


def _step(
    outer: PlanNode, change: Rewriter, context: PassContext, reads: Counter[Value]
) -> tuple[list[PlanNode], Value] | None:
    """The nodes that stand for one by the first rule that fits, and the value; none for a value that is there already."""
    for rule in heads().get(outer.op, ()):
        pattern, (term, negated) = parsed(rule.pattern)[0], parsed(rule.replacement)
        for found, nodes in _matches(pattern, outer, {}, (), change):
            if rule.alone and any(reads[v] > 1 for n in nodes if n is not outer for v in n.outputs):
                continue
            dropped = variables(pattern) - variables(term)
            if any(not _is_constant(found[name]) for name in dropped):
                continue
            if rule.when is not None and not rule.when(found, outer):
                continue
            if isinstance(term, str):
                if found[term].shape != outer.outputs[0].shape:
                    continue
                return [], found[term]
            made = _made(term, negated, found, nodes, outer, context)
            if term[0] != outer.op and not context.computes(made[-1]):
                continue
            same = _identity(made[-1])
            return ([], same) if same is not None else (made, made[-1].outputs[0])
    return None


def _matches(
    term: Term, node: PlanNode, found: Mapping[str, Value], nodes: tuple[PlanNode, ...], change: Rewriter
) -> Iterator[tuple[Mapping[str, Value], tuple[PlanNode, ...]]]:
    """The ways in which a node, of the term's op type, is what a term says: what its variables are, and the nodes."""
    terms, inputs = term[1], change.inputs(node)
    assert isinstance(terms, tuple)
    if len(terms) != len(inputs):
        return
    orders = [terms]
    if len(terms) == 2 and terms[0] != terms[1] and "commutative" in node.opdef.traits:
        orders.append(terms[::-1])
    for each in orders:
        yield from _operands(list(zip(each, inputs, strict=True)), found, (*nodes, node), change)


def _operands(
    pairs: list[tuple[Term, Value]], found: Mapping[str, Value], nodes: tuple[PlanNode, ...], change: Rewriter
) -> Iterator[tuple[Mapping[str, Value], tuple[PlanNode, ...]]]:
    if not pairs:
        yield found, nodes
        return
    (term, value), rest = pairs[0], pairs[1:]
    if isinstance(term, str):
        known = found.get(term)
        if known is None or known is value or _same_constant(known, value):
            yield from _operands(rest, {**found, term: value}, nodes, change)
        return
    inner, outer = value.node, nodes[0]
    if inner is None or inner.op != term[0] or inner.control or inner.guard is not None:
        return
    if inner.requested != outer.requested:
        return
    for more, taken in _matches(term, inner, found, nodes, change):
        yield from _operands(rest, more, taken, change)


def _is_constant(value: Value) -> bool:
    return value.node is not None and value.node.verb == "constant"


def _same_constant(a: Value, b: Value) -> bool:
    if a.node is None or b.node is None or not (_is_constant(a) and _is_constant(b)) or a.dtype is not b.dtype:
        return False
    x, y = a.node.attrs["value"], b.node.attrs["value"]
    return x is y or (x.size <= 16 and bool(np.array_equal(x, y)))


def _made(
    term: Term,
    negated: Mapping[str, str],
    found: Mapping[str, Value],
    nodes: Sequence[PlanNode],
    outer: PlanNode,
    context: PassContext,
) -> list[PlanNode]:
    """The constants that a replacement needs, and its one op."""
    op, terms = term
    made: list[PlanNode] = []
    inputs: list[Value] = []
    for part in terms:
        if isinstance(part, str):
            inputs.append(found[part])
            continue
        function, names = part
        arrays = [v.node.attrs["value"] for v in map(found.__getitem__, names) if v.node is not None]
        constant = context.constant(outer, found[names[-1]], np.asarray(COMPUTED[function](*arrays)))
        constant.name = constant.outputs[0].name = f"{outer.name}/{function}"
        made.append(constant)
        inputs.append(constant.outputs[0])
    opdef, result = context.opdef(op), outer.outputs[0]
    kept: Mapping[str, Any] = next((n.attrs for n in nodes if n.op == op), {a.name: a.default for a in opdef.attrs})
    attrs = {**kept, **{name: not kept[of] for name, of in negated.items()}}
    attrs |= {arg.dtype: result.dtype for arg in opdef.outputs if arg.dtype in {t.name for t in opdef.types}}
    node = make_node(
        opdef,
        outer.name,
        inputs,
        attrs,
        [(result.dtype, result.shape)],
        requested=outer.requested,
        site_of=outer.site_of,
        origins=tuple(dict.fromkeys(itertools.chain.from_iterable(n.origins for n in nodes))),
    )
    types = {t.name for t in opdef.types}
    node.attrs = attrs | {a.dtype: v.dtype for a, v in zip(arg_of(node), inputs, strict=True) if a.dtype in types}
    return [*made, node]


def _identity(node: PlanNode) -> Value | None:
    """The input that a node's output equals by what its op says of itself, where both shapes are known."""
    made = node.outputs[0]
    for arg, value in zip(arg_of(node), node.inputs, strict=True):
        if arg.name == node.opdef.identity and value.dtype is made.dtype and value.shape == made.shape is not None:
            return value if None not in made.shape else None
    return None
