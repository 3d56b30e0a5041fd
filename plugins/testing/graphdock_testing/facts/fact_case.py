"""A ``fact`` case of conformance: what an op declares of itself, held against its oracle on a sample and on variants of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from graphdock.contracts.opdef import OpDef
from graphdock.errors import GraphdockError, KernelNotFoundError, format_error
from graphdock_opgen.facts import broken_facts, declared_facts

from graphdock_testing.bench import Bench
from graphdock_testing.case import Case, ConformanceError
from graphdock_testing.facts.edge_case import kinds_of
from graphdock_testing.facts.plan_facts import PLAN_FACTS, broken_plan_facts
from graphdock_testing.facts.settings import arrays_of, setting_of, varied

__all__ = ["check_facts", "facts_of", "on_arrays"]


def facts_of(opdef: OpDef) -> list[str]:
    """The names of the facts that are checked of an op; none of one that acts, or reads what stands elsewhere."""
    if opdef.is_stateful or not opdef.verb.kernel and opdef.executes != "alias":
        return []
    planned = [name for name, (declared, _) in PLAN_FACTS.items() if declared(opdef)]
    return list(dict.fromkeys([*declared_facts(opdef), *planned]))


def check_facts(bench: Bench, case: Case) -> None:
    """Raise ConformanceError with all that is wrong, by fact; nothing where the op declares none.

    A brief check takes the sample and one variant, which its number chooses.
    """
    kinds = kinds_of(bench.host.ops.get(case.op))
    if bench.brief:
        kinds = (kinds[(case.index + len(case.dtype)) % len(kinds)],)
    problems: list[str] = []
    sample = ("sample", case, tuple(arrays_of(case, letter) for letter in "ab"))
    for kind, variant, rounds in (sample, *varied(bench, case, kinds)):
        shapes = {n: list(a.shape) for n, a in rounds[0].items() if hasattr(a, "shape")}
        problems += [f"{p} ({kind}: {shapes})" for p in on_arrays(bench, variant, rounds, kind)]
    if problems:
        raise ConformanceError("\n  ".join(dict.fromkeys(problems)))


def on_arrays(bench: Bench, case: Case, rounds: tuple[Mapping[str, Any], ...], kind: str = "sample") -> Iterator[str]:
    """What is wrong with the facts of the case's op on these arrays; the second are others of the same shapes and dtypes."""
    try:
        yield from broken_facts(setting_of(bench, case, *rounds))
        yield from broken_plan_facts(bench, case, rounds, kind)
    except KernelNotFoundError:
        raise
    except GraphdockError as error:
        error.site = None
        yield f"a fact can't be used: {format_error(error)}"
