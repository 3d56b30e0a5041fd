"""Region programs in words::

region y (i: 8, j: 512) {
  x: float16[i, j], aligned 16, dying
  g: float32[j]
  draws from dropout/random_uniform
  t0: float32 = input x
  t1: float32 [i] = sum t0 over j      # mean
  return t0 as float16[i, j] in place of x
  update t1 as mean: float32[i]
}
"""

from __future__ import annotations

from collections.abc import Sequence

from graphdock.contracts.region_program import REDUCTIONS, RegionInput, RegionProgram, Span, Term

__all__ = ["print_program"]


def print_program(program: RegionProgram) -> str:
    """The program, a line for each of its parts."""
    axes = [a.name for a in program.axes]
    space = ", ".join(f"{a.name}: {'?' if a.extent is None else a.extent}" for a in program.axes)
    lines = [f"region {program.name} ({space}) {{"]
    for source in program.inputs:
        facts = f", aligned {source.alignment}" if source.alignment > 1 else ""
        if source.strides is not None:
            strides = [
                str(s) if isinstance(s, int) else "*".join(map(str, (s.factor, *[axes[a] for a in s.axes])))
                for s in source.strides
            ]
            facts += f", strides {', '.join(strides)} from {source.offset}"
            facts += "".join(
                _span(axes, d, s) for d, s in zip(source.dims, source.spans, strict=False) if s is not None
            )
        lines.append(
            f"  {source.name}: {source.dtype}{_read(program, source, axes)}{facts}{', dying' if source.dying else ''}"
        )
    lines += [f"  draws from {name}" for name in program.streams]
    for number, term in enumerate(program.terms):
        over = "" if term.axes == tuple(range(len(axes))) else f" [{', '.join(axes[a] for a in term.axes)}]"
        origin = f"  # {term.origin}" if term.origin else ""
        lines.append(f"  t{number}: {term.dtype}{over} = {_right(program, term, axes)}{origin}")
    for out in program.outputs:
        place = f" in place of {' or '.join(program.inputs[i].name for i in out.inplace)}" if out.inplace else ""
        how = "return" if out.into is None else "update"
        lines.append(f"  {how} t{out.term} as {out.name}: {out.dtype}{_dims(out.dims, axes)}{place}")
    return "\n".join([*lines, "}"])


def _read(program: RegionProgram, source: RegionInput, axes: Sequence[str]) -> str:
    """Its dims; of the first one, along which rows are gathered, the input that says where."""
    if source.indices is None:
        return _dims(source.dims, axes)
    rest = ["1" if d is None else axes[d] for d in source.dims[1:]]
    return f"[{', '.join([f'at {program.inputs[source.indices].name}', *rest])}]"


def _span(axes: Sequence[str], dim: int | None, span: Span) -> str:
    cut = (span.begin, span.end, span.step) != (0, None, 1)
    edges = f"[{span.begin}:{'' if span.end is None else span.end}:{span.step}]" * cut
    return f", {'1' if dim is None else axes[dim]} along {span.dim}{edges}"


def _right(program: RegionProgram, term: Term, axes: Sequence[str]) -> str:
    if term.op == "input":
        return f"input {program.inputs[term.value].name}"
    if term.op == "literal":
        return repr(term.value)
    if term.op == "place":
        return f"place among {', '.join(axes[a] for a in term.axes)}"
    if term.op == "stream":
        number, word = term.value
        return f"{word} of {program.streams[number]}"
    if term.op in ("index", "extent"):
        return f"{term.op} {axes[term.value]}"
    args = ", ".join(f"t{a}" for a in term.args)
    if term.op in REDUCTIONS:
        return f"{term.op} {args} over {', '.join(axes[a] for a in term.value)}"
    return f"{term.op} {args}" + (f" to {term.value}" if term.op == "round" else "")


def _dims(dims: Sequence[int | None], axes: Sequence[str]) -> str:
    return f"[{', '.join('1' if d is None else axes[d] for d in dims)}]"
