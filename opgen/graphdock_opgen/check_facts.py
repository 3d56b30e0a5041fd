"""Facts of a package's ops, held against their references: what ``opgen check`` can say of them without a kernel.

Regions as compilers get them, known integers, sums and joined products are conformance's, which has kernels and plans.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from graphdock.contracts.opdef import OpDef, resolve
from graphdock.dtypes import as_dtype
from graphdock.errors import OpSpecError

from graphdock_opgen.facts import Setting, broken_facts, declared_facts
from graphdock_opgen.library import Library
from graphdock_opgen.samples import bindings, make_arrays
from graphdock_opgen.spec_cases import spec_cases
from graphdock_opgen.variants import RESIZED, extreme, resized, takes_extremes

__all__ = ["check_facts"]

_ENDS = frozenset({"elementwise", "reduction"})


def check_facts(library: Library) -> list[OpSpecError]:
    """An error for each op with a reference that contradicts a fact, at the fact's line. Imports the package, installed or not."""
    if all(op.spec.reference is None for op in library.ops):
        return []
    top = str(library.directory.parents[library.package.count(".")])
    sys.path.insert(0, top)
    try:
        return list(_broken(library))
    finally:
        sys.path.remove(top)


def _broken(library: Library) -> Iterator[OpSpecError]:
    opdefs = {n: build() for n, build in importlib.import_module(f"{library.package}._gen.opdefs").OPS.items()}
    cases = spec_cases(library.package, lambda name: opdefs[name])
    for op in library.ops:
        opdef = opdefs.get(op.type)
        if op.spec.reference is None or opdef is None or opdef.is_stateful or not declared_facts(opdef):
            continue
        fault = next(_faults(opdef, cases[op.type]), None)
        if fault is not None:
            fact, _, problem = fault.partition(": ")
            yield op.document.error((*op.path, fact), f"the reference contradicts {fact}: {problem}")


def _faults(opdef: OpDef, data: Mapping[str, Any]) -> Iterator[str]:
    for index, sample in enumerate(data["samples"]):
        for number, types in enumerate(bindings(opdef, data, sample)):
            if index and number:
                break
            for kind, varied in _samples(opdef, sample, index == number == 0):
                rounds = [make_arrays(data, varied, types, f"{opdef.name} {index} {letter}") for letter in "ab"]
                if kind == "extreme":
                    if not takes_extremes(varied, rounds[0]):
                        continue
                    rounds = [extreme(varied, arrays, i) for i, arrays in enumerate(rounds)]
                setting = _setting(opdef, data, varied, types, rounds)
                if _takes(setting):
                    yield from (f"{problem} ({kind})" for problem in broken_facts(setting))


def _takes(setting: Setting) -> bool:
    """Return whether the reference has an answer: a variant may be none that the op takes, which is conformance's to say."""
    try:
        setting.compute(setting.arrays)
    except Exception:  # noqa: BLE001 - whatever a reference raises of what is no input for it
        return False
    return True


def _samples(opdef: OpDef, sample: Mapping[str, Any], varied: bool) -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield "sample", sample
    if varied and _ENDS & opdef.traits:
        yield "extreme", sample
        steering = [a.name for a in opdef.inputs if a.memory == "host"]
        for kind in RESIZED:
            yield from ((kind, other) for other in list(resized(sample, kind, 0, steering))[:1])


def _setting(
    opdef: OpDef, data: Mapping[str, Any], sample: Mapping[str, Any], types: Mapping[str, str], rounds: Any
) -> Setting:
    attrs = (
        {a.name: a.default for a in opdef.attrs} | {n: as_dtype(v) for n, v in types.items()} | dict(sample["attrs"])
    )
    assert opdef.reference is not None
    reference = resolve(opdef.reference)
    known = {n: getattr(v, "np", v) for n, v in attrs.items()}
    parameters = inspect.signature(reference).parameters
    if not any(p.kind is p.VAR_KEYWORD for p in parameters.values()):
        known = {n: v for n, v in known.items() if n in parameters}

    def compute(arrays: Mapping[str, Any]) -> list[Any]:
        given = {n: list(a) if isinstance(a, tuple) else None if a is None else a.copy() for n, a in arrays.items()}
        with np.errstate(all="ignore"):
            made = reference(**given, **{n: v for n, v in known.items() if n not in given})
        return [np.asarray(m) for m in made] if isinstance(made, list | tuple) else [np.asarray(made)]

    return Setting(opdef, compute, rounds[0], rounds[1], attrs, data["tolerances"].get(types.get("T", "")))
