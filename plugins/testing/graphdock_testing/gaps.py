"""Gaps of a conformance run: what its cases of an op say nothing of, though the op or its kernels declare it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from graphdock.contracts.opdef import REQUIRED, OpDef
from graphdock.plugin.kernel_registry import RegisteredKernel

from graphdock_testing.case import Seen

__all__ = ["SMALL", "gaps_of"]

#: A kernel that was asked for fewer elements only was never asked for a whole vector of its machine and a rest.
SMALL = 100
#: Attributes that change no result's meaning: who draws, what a resource is called.
_NAMES = frozenset({"seed", "seed2", "container", "shared_name", "name"})


def gaps_of(
    opdef: OpDef,
    data: Mapping[str, Any],
    kernels: Sequence[RegisteredKernel],
    against: str,
    dtypes: Collection[str],
    seen: Seen,
) -> list[str]:
    """Sentences, each of which names the op.

    Args:
      data: of the op's samples (:mod:`graphdock_opgen.spec_cases`). kernels: the backend's. against: what results are held against.
      dtypes: of the cases that ran. seen: what their steps reached.
    """
    if not seen.modes:
        return []  # nothing ran: the table says so
    found = [*_attributes(opdef, data), *_dtypes(kernels, dtypes), *_modes(kernels, seen)]
    if against == "itself":
        found.append("its values are held against nothing: give the spec a `reference`")
    if seen.size < SMALL and opdef.inputs:
        found.append(f"no case has {SMALL} elements; the largest array has {seen.size}")
    return [f"{opdef.name}: {text}" for text in found]


def _attributes(opdef: OpDef, data: Mapping[str, Any]) -> Iterator[str]:
    for attr in opdef.attrs:
        if attr.inferred or attr.name in _NAMES or attr.type in ("func", "list(func)"):
            continue
        given = [s["attrs"].get(attr.name, attr.default) for s in data["samples"]]
        values = {repr(v) for v in given if v is not REQUIRED}
        lasting = len(attr.allowed) == 1 or attr.minimum is not None and attr.minimum == attr.maximum
        if len(values) == 1 and not lasting:
            yield f"attribute {attr.name} is {values.pop()} in every sample"


def _dtypes(kernels: Sequence[RegisteredKernel], ran: Collection[str]) -> Iterator[str]:
    for registered in kernels:
        declared = registered.kernel.types.get("T") or ()
        lacking = [name for name in declared if name not in ran]
        if lacking and "T" in registered.kernel.types:
            yield f"no case of {registered.full_name} has dtype {', '.join(lacking)}, which it declares"


def _modes(kernels: Sequence[RegisteredKernel], seen: Seen) -> Iterator[str]:
    """Modes that a kernel declares, and that only some of the ways to run it reach."""
    for registered in kernels:
        kernel = registered.kernel
        if (kernel.inplace or kernel.views) and "computed" not in seen.modes:
            yield f"{registered.full_name} was never given a buffer to work in or to view: the backend lacks the op that makes one"
        if kernel.layout == "strided" and "strided" not in seen.modes:
            yield f"{registered.full_name} was never given strided inputs: the backend lacks the op that makes them"
