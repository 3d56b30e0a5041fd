"""Inputs that facts and kernels are held on, and the results that are right: of a reference, else of a kernel."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from graphdock.contracts.opdef import OpDef
from graphdock.dtypes import as_dtype
from graphdock.errors import GraphdockError, InternalError, KernelNotFoundError
from graphdock.graph.graph import Graph
from graphdock_opgen.facts import Setting
from graphdock_opgen.samples import make_arrays
from graphdock_opgen.variants import RESIZED, extreme, resized, takes_extremes

from graphdock_testing.bench import Bench, Results, run_program
from graphdock_testing.case import Case, Missing

__all__ = ["arrays_of", "computed", "fits", "named_error", "setting_of", "varied"]


def varied(bench: Bench, case: Case, kinds: tuple[str, ...] = ("extreme", *RESIZED)) -> Iterator[tuple[str, Case, Any]]:
    """Variants of a case that its op takes: kind, the case with the sample changed, and its arrays, twice."""
    seed = zlib.crc32(f"{case.op} {case.index} {case.dtype}".encode())
    for kind in kinds:
        if kind == "extreme":
            rounds = [arrays_of(case, letter) for letter in "ab"]
            if takes_extremes(case.sample, rounds[0]):
                yield kind, case, tuple(extreme(case.sample, a, seed + i) for i, a in enumerate(rounds))
            continue
        if bench.oracle == "reference" and not _is_linear(bench.host.ops.get(case.op)):
            continue
        if kind == "large" and any(name.startswith("complex") for name in case.types.values()):
            continue  # products of thousands overflow, and what infinite complex numbers make is nobody's rule
        steering = [a.name for a in bench.host.ops.get(case.op).inputs if a.memory == "host"]
        for sample in resized(case.sample, kind, seed, steering):
            other = replace(case, data={**case.data, "samples": (sample,)}, index=0)
            if fits(bench, other):
                yield kind, other, tuple(arrays_of(other, letter) for letter in "ab")
                break


def _is_linear(opdef: OpDef) -> bool:
    """Return whether it looks at each element a few times: references, which are loops in Python, can do thousands of them."""
    few = opdef.traits & {"elementwise", "reduction", "view", "aggregate"}
    return bool(few or opdef.region is not None or opdef.aliases)


def arrays_of(case: Case, letter: str) -> dict[str, Any]:
    """Arrays of a case's sample; other letters give others."""
    return make_arrays(case.data, case.sample, case.types, f"{case.op} {case.index} {case.dtype} {letter}")


def fits(bench: Bench, case: Case) -> bool:
    """Return whether the op takes what the case gives, as far as inference and its oracle say."""
    try:
        computed(bench, case, arrays_of(case, "a"))
    except (KernelNotFoundError, Missing):
        raise
    except InternalError:
        return bench.oracle == "reference"  # for who checks to say, unless the oracle is a kernel of somebody else's
    except (GraphdockError, ValueError, IndexError):
        return False
    return True


def computed(bench: Bench, case: Case, arrays: Mapping[str, Any]) -> Results:
    """What the op computes: by its oracle, else by the kernel that a session without passes chooses."""
    graph = Graph(bench.host)
    program = bench.build(graph, bench.host.ops.get(case.op), arrays, case.attrs)
    found: Results | None = bench.expected(case, bench.host.ops.get(case.op), program, arrays, 0)
    return run_program(bench.open(graph, wide=True), program, arrays) if found is None else found


def setting_of(bench: Bench, case: Case, arrays: Mapping[str, Any], other: Mapping[str, Any]) -> Setting:
    """The setting in which algebraic facts are checked."""
    opdef = bench.host.ops.get(case.op)
    attrs = {a.name: a.default for a in opdef.attrs} | {n: as_dtype(v) for n, v in case.types.items()} | case.attrs
    kind = np.dtype(as_dtype(case.types.get("T", case.dtype)).np).name if case.dtype != "-" else ""
    tolerance = case.data["tolerances"].get(kind)
    known: list[Results] = []

    def compute(given: Mapping[str, Any]) -> Results:
        if given is not arrays:
            return computed(bench, case, given)
        if not known:
            known.append(computed(bench, case, given))
        return known[0]

    return Setting(opdef, compute, arrays, other, attrs, tolerance)


def named_error(error: BaseException, whose: str) -> str:
    """Error that somebody's function raised, by whose name."""
    return f"{whose} raises {type(error).__name__}: {error}"
