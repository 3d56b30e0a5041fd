"""Forms: what an op computes inside of a region, as its OpDef says it: formulas over its inputs, in the space of its widest input.

An op with a ``scalar`` formula has one for its only output. Others say it in ``region``
(:class:`graphdock.contracts.opdef.RegionForm`), where formulas also reduce::

    region:
      let: {m: "max(logits, -1)", e: "exp(logits - m)"}
      outputs: {softmax: "e / sum(e, -1)"}

What a reduction gives is the same along the axes that are gone, so that it combines with what still has them; an output has the
axes that are left, whether it keeps dims of 1 for the others or not.

An op that draws says ``uniform()``: what it draws is told by its stream, the step and the iteration, and by nothing that runs
before or after it. An op that updates variables says under ``writes`` what each becomes, and nothing else of it is an effect.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from graphdock.contracts.ir import PlanNode, arg_of
from graphdock.contracts.opdef import OpDef
from graphdock.contracts.region_program import REDUCTIONS
from graphdock.contracts.scalar_formula import parse_formula
from graphdock.dtypes import DType

__all__ = ["Form", "form_of", "what_forbids"]


@dataclass(frozen=True, slots=True)
class Form:
    """The formulas of one op, parsed.

    Attributes:
      let: name -> formula, in order. ``outputs``: one formula per output. ``writes``: handle -> formula of its variable.
      space: names of its axes, and ``axes`` those of each input, where it is none that the inputs broadcast to.
      leading: names of inputs whose dims are the first of the space. ``gathers``: input -> the input that says which rows of it.
      when: attribute -> the values that it may have.
      reduces: whether any formula reduces. ``reshapes``: whether its output has the input's elements under another shape.
    """

    let: tuple[tuple[str, ast.expr], ...]
    outputs: tuple[ast.expr, ...]
    leading: frozenset[str]
    when: Mapping[str, tuple[Any, ...]]
    reduces: bool
    reshapes: bool
    writes: Mapping[str, ast.expr] = field(default_factory=dict)
    space: tuple[str, ...] = ()
    axes: Mapping[str, ast.expr] = field(default_factory=dict)
    gathers: Mapping[str, str] = field(default_factory=dict)

    def axes_of(self, node: PlanNode, name: str) -> list[str]:
        """The axes of an input's dims, by name, of a form that names its space."""
        tree = self.axes[name]
        while isinstance(tree, ast.IfExp):
            assert isinstance(tree.test, ast.Name)
            tree = tree.body if node.attrs[tree.test.id] else tree.orelse
        assert isinstance(tree, ast.List)
        return [e.id for e in tree.elts if isinstance(e, ast.Name)]


#: OpDef -> its form; by identity, because hashing an OpDef costs more than what is looked up.
_FORMS: dict[int, tuple[OpDef, Form | None]] = {}


def form_of(opdef: OpDef) -> Form | None:
    """The op's form, or None where it has none. Read once per OpDef."""
    known = _FORMS.get(id(opdef))
    if known is None or known[0] is not opdef:
        known = _FORMS[id(opdef)] = (opdef, _read(opdef))
    return known[1]


def _read(opdef: OpDef) -> Form | None:
    if opdef.scalar is not None:
        return Form((), (parse_formula(opdef.scalar),), frozenset(), {}, False, False)
    if opdef.region is None:
        return None
    said = opdef.region
    let = tuple((name, parse_formula(text)) for name, text in said.let.items())
    outputs = tuple(parse_formula(said.outputs[a.name]) for a in opdef.outputs)
    writes = {name: parse_formula(text) for name, text in said.writes.items()}
    called = {
        node.func.id
        for tree in (*(t for _, t in let), *outputs, *writes.values())
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    when = {name: tuple(v) if isinstance(v, list | tuple) else (v,) for name, v in said.when.items()}
    reduces, reshapes = bool(called & REDUCTIONS.keys()), "reshaped" in called
    axes = {name: parse_formula(text) for name, text in said.axes.items()}
    leading = frozenset(said.leading)
    return Form(let, outputs, leading, when, reduces, reshapes, writes, said.space, axes, said.gathers)


def _number(node: PlanNode, name: str) -> Any:
    """The number that an input in host memory always is; None where that is not known."""
    place = [arg.name for arg in arg_of(node)].index(name)
    return None if (array := node.constant(place)) is None else array.item()


def what_forbids(node: PlanNode, form: Form) -> str | None:
    """Return why a node of an op with this form is in no region all the same; None where nothing forbids it."""
    for name, allowed in form.when.items():
        value = node.attrs[name] if name in node.attrs else _number(node, name)
        shown = value.name if isinstance(value, DType) else value
        if shown not in allowed:
            return f"{name} is {shown}"
    opdef = node.opdef
    acts = not form.writes and (opdef.accesses or "stateful" in opdef.traits)
    if acts or opdef.effects - {"random"} or node.bodies:
        return "it has effects"
    if node.guard is not None:
        return "its shapes are checked when it runs"
    read = [v for v, arg in zip(node.inputs, arg_of(node), strict=True) if arg.memory != "host"]
    empty = any(value.shape is not None and 0 in value.shape for value in (*read, *node.outputs))
    return "a tensor of it has no elements" if empty else None
