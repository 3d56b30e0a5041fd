"""The cpu backend passes the conformance kit: every op, every dtype and every sample against the specs' oracles.

Ops that run on the host only and that the cpu has no kernel for are storage's and data's; these pass the kit too.

`make test` takes one sample and one gradient in every mode, and the others, and each dtype, in plans of known shapes (``tests/cpu``
holds most kernels to all modes in all dtypes); `make test-exhaustive` takes all pairs in every mode.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

import pytest
from graphdock.plugin.host import default_host
from graphdock_testing.conformance import Case, Conformance, ConformanceError, Missing

pytestmark = pytest.mark.slow  # the kit's sessions are in debug mode anyway


@pytest.fixture(scope="module")
def kit() -> Conformance:
    return Conformance("cpu")


def ops_of(backend: str) -> list[str]:
    """The ops that it has kernels for, and what the host runs itself."""
    kit = Conformance(backend)
    return [op for op in kit.ops if kit.has_kernel(op)]


#: Op -> the plugin that has its kernel.
ON_HOST = {op: name for name in ("storage", "data") for op in ops_of(name) if default_host().ops.get(op).verb.kernel}
OPS = [op for op in Conformance("cpu").ops if op not in ON_HOST]


@pytest.mark.parametrize("op", OPS)
@pytest.mark.sampled(81)
def test_op(kit: Conformance, op: str) -> None:
    check(kit, sampled(kit.cases(op)))


@pytest.mark.parametrize("op", ON_HOST)
@pytest.mark.sampled(6)
def test_op_on_the_host(op: str) -> None:
    kit = Conformance(ON_HOST[op])
    check(kit, sampled(kit.cases(op)))


@pytest.mark.exhaustive
@pytest.mark.parametrize("op", OPS)
def test_every_pair_of_sample_and_dtype(kit: Conformance, op: str) -> None:
    check(kit, ((case, False) for case in kit.cases(op)))


def sampled(cases: Iterable[Case]) -> Iterator[tuple[Case, bool]]:
    """What `make test` takes of an op, and whether briefly: a case of each sample, the dtypes by turns, and one of each dtype.

    The first case of a kind is not brief.
    """
    rest: list[Case] = []
    seen: set[Any] = set()
    kinds: set[str] = set()
    for (_, index), group in groupby(cases, lambda case: (case.kind, case.index)):
        bound = list(group)
        chosen = bound.pop(index % len(bound))
        seen |= brings(chosen)
        rest += bound
        yield chosen, chosen.kind in kinds
        kinds.add(chosen.kind)
    for case in rest:
        if not brings(case) <= seen:
            seen |= brings(case)
            yield case, True


def brings(case: Case) -> set[Any]:
    return {(case.kind, *types) for types in case.types.items()}


def test_each_sample_stays_and_each_dtype(kit: Conformance) -> None:
    for op in ("Sum", "Conv2D", "GatherNd", "Cast"):
        every = list(kit.cases(op))
        chosen = [case for case, _ in sampled(every)]
        assert {(c.kind, c.index) for c in chosen} == {(c.kind, c.index) for c in every}
        for kind in ("value", "gradient"):
            wanted, found = (set().union(*(brings(c) for c in cases if c.kind == kind)) for cases in (every, chosen))
            assert found == wanted, op


def check(kit: Conformance, cases: Iterable[tuple[Case, bool]]) -> None:
    faults = []
    held: dict[str, bool] = {}
    for case, brief in cases:
        reason = kit.xfail(case)
        failed = None
        try:
            kit.check(case, brief)
        except (ConformanceError, Missing) as error:
            failed = str(error)
        if reason is None:
            faults += [failed] if failed else []
        else:
            held[reason] = held.get(reason, False) or failed is not None
    faults += [
        f"passes, although the manifest expects it to fail: {reason}" for reason, holds in held.items() if not holds
    ]
    assert not faults, f"{len(faults)} faults:\n" + "\n".join(faults[:10])


def test_every_op_with_an_oracle_has_samples(kit: Conformance) -> None:
    silent = [op for op, data in kit._all.items() if data["reference"] and not data["samples"]]
    assert silent == []


def test_no_gradient_is_left_open(kit: Conformance) -> None:
    """A ``todo`` in a spec has a reason; the count says how much is owed."""
    counts = kit.gradient_kinds()
    assert counts["formula"] + counts["op"] + counts["fn"] > 100
    primitives = {
        "Switch": 1,
        "Merge": 1,
        "Enter": 1,
        "Exit": 1,
        "NextIteration": 1,
    }  # refused: tf.while_loop has gradients
    assert counts["todo"] <= 2 + sum(primitives.values())
