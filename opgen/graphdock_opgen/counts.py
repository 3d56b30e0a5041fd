"""Counts of how the inputs of a library's ops get their gradients."""

from __future__ import annotations

from dataclasses import dataclass

from graphdock_opgen.library import Library
from graphdock_opgen.op import Op

__all__ = ["Counts", "counts", "decisions"]


@dataclass(frozen=True, slots=True)
class Counts:
    """Counts of how inputs get their gradients."""

    formula: int = 0
    op: int = 0
    fn: int = 0
    none: int = 0
    todo: int = 0

    def __add__(self, other: Counts) -> Counts:
        return Counts(
            self.formula + other.formula,
            self.op + other.op,
            self.fn + other.fn,
            self.none + other.none,
            self.todo + other.todo,
        )

    def __str__(self) -> str:
        return (
            f"gradients: formula {self.formula}, op {self.op}, function {self.fn}, none {self.none}, todo {self.todo}"
        )


def counts(library: Library) -> Counts:
    """Gradient entries by kind, one per input; ``none`` counts inputs that could be floating, where it is a decision."""
    kinds = [kind for _, kind in decisions(library)]
    return Counts(**{k: kinds.count(k) for k in ("formula", "op", "fn", "none", "todo")})


def decisions(library: Library) -> list[tuple[str, str]]:
    """``("MatMul.a", "formula")`` for every input whose gradient the specs decide."""
    entries = [(op, e.kind, name) for op in library.ops for e in op.entries for name in e.inputs]
    return [(f"{op.type}.{name}", kind) for op, kind, name in entries if kind != "none" or _is_decision(op, name)]


def _is_decision(op: Op, name: str) -> bool:
    arg = op.input(name)
    return arg is not None and op.may_float(arg) and any(op.may_float(out) for out in op.spec.outputs)
