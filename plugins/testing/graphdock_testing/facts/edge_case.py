"""An ``edge`` case of conformance: a kernel without elements, beyond a block, for other shapes, and of NaN and infinities.

NaN and infinities are asked of elementwise ops, and of reductions that say what they compute in a region; what a kernel makes
of them
elsewhere is its own affair. Of ArgMax and of segments it depends in TensorFlow on the order in which it looks at the elements.
"""

from __future__ import annotations

from typing import Any

from graphdock.contracts.opdef import OpDef
from graphdock.graph.graph import Graph
from graphdock_opgen.variants import RESIZED

from graphdock_testing.bench import Bench, agree, run_program
from graphdock_testing.case import Case, ConformanceError
from graphdock_testing.facts.settings import varied
from graphdock_testing.numeric import same_bits

__all__ = ["check_edges", "has_edges", "kinds_of"]


def has_edges(opdef: OpDef) -> bool:
    """Return whether a kernel of the op is asked for them: it computes from inputs, and nothing else."""
    return bool(opdef.verb.kernel and not opdef.is_stateful and opdef.inputs)


def kinds_of(opdef: OpDef) -> tuple[str, ...]:
    """The variants that the op is asked for, in order."""
    said = "elementwise" in opdef.traits or "reduction" in opdef.traits and opdef.region is not None
    return ("extreme", *RESIZED) if said else RESIZED


def check_edges(bench: Bench, case: Case) -> None:
    """Raise ConformanceError at the first variant for which the kernel gives what the oracle does not; Missing as a value case."""
    kinds = kinds_of(bench.host.ops.get(case.op))
    if bench.brief:
        kinds = (kinds[(case.index + len(case.dtype)) % len(kinds)],)
    opdef = bench.host.ops.get(case.op)
    if "reduction" in opdef.traits and {"float16", "bfloat16"} & set(case.types.values()):
        kinds = tuple(k for k in kinds if k != "large")  # a sum of thousands of halves may be added up in halves
    for kind, variant, rounds in varied(bench, case, kinds):
        shapes = {n: list(a.shape) for n, a in rounds[0].items() if hasattr(a, "shape")}
        try:
            for how in ("planned", "fresh"):
                _check(bench, variant, rounds[0], kind, how)
        except ConformanceError as error:
            raise ConformanceError(f"{error} (of {shapes})") from error


def _check(bench: Bench, case: Case, arrays: Any, kind: str, how: str) -> None:
    graph = Graph(bench.host)
    opdef = bench.host.ops.get(case.op)
    program = bench.build(graph, opdef, arrays, case.attrs, how)
    session = bench.open(graph, "exact" if how == "planned" else "generic")
    kernel = bench.own_kernel(session, program, arrays, case)
    got = bench.step(session, program, arrays, kind)
    agree(case, got, bench.expected(case, opdef, program, arrays, 0), kind)
    if kernel is None or kernel.deterministic:
        again = run_program(session, program, arrays)
        if not all(same_bits(a, b) for a, b in zip(got, again, strict=True)):
            raise ConformanceError(f"{kind}: the same inputs give other bits the second time")
