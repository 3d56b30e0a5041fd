"""A quick choice among conformance cases: every sample and every dtype, but not all pairs of the two."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from graphdock.testing.case import Case

__all__ = ["covering"]


def covering(cases: Iterable[Case]) -> Iterator[Case]:
    """Cases, in their order, without those ``value`` cases that bring no op, kernel, sample or binding of dtypes that is new.

    About half of them all: each sample is left with one binding at least, and each binding with one sample at least, for each
    kernel that is pinned. Cases of other kinds all stay.
    """
    seen: set[Any] = set()
    for case in cases:
        of = (case.op, case.kernel)
        brings = {(*of, case.index), (*of, tuple(sorted(case.types.items())))}
        if case.kind != "value" or not brings <= seen:
            yield case
        if case.kind == "value":
            seen |= brings
