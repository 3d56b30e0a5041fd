"""A quick choice among conformance cases: every sample and every dtype, but not all pairs of the two."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from graphdock_testing.case import Case

__all__ = ["covering"]


def covering(cases: Iterable[Case]) -> Iterator[Case]:
    """Fewer ``value`` cases, in their order: about half of them all. Cases of other kinds all stay.

    Each sample is left with one binding of dtypes at least, and each binding with one sample at least, for each kernel that is
    pinned. What brings both a sample and a binding that are new goes before what brings one of the two.
    """
    listed = [(case, _brings(case)) for case in cases]
    seen: set[Any] = set()
    chosen: set[int] = set()
    for both in (True, False):
        for i, (case, brings) in enumerate(listed):
            if case.kind == "value" and (brings.isdisjoint(seen) if both else not brings <= seen):
                chosen.add(i)
                seen |= brings
    yield from (case for i, (case, _) in enumerate(listed) if case.kind != "value" or i in chosen)


def _brings(case: Case) -> set[Any]:
    of = (case.op, case.kernel)
    return {(*of, case.index), (*of, tuple(sorted(case.types.items())))}
