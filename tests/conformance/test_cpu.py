"""The cpu backend passes the conformance kit: every op, every dtype and every sample against the specs' oracles.

`make test` takes each sample with one dtype at least and each dtype with one sample at least; `make test-exhaustive` all pairs.
"""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from graphdock.testing.conformance import Case, Conformance, ConformanceError, Missing
from graphdock.testing.covering import covering

pytestmark = pytest.mark.slow  # the kit's sessions are in debug mode anyway


@pytest.fixture(scope="module")
def kit() -> Conformance:
    return Conformance("cpu")


OPS = Conformance("cpu").ops


@pytest.mark.parametrize("op", OPS)
def test_op(kit: Conformance, op: str) -> None:
    check(kit, covering(kit.cases(op)))


@pytest.mark.exhaustive
@pytest.mark.parametrize("op", OPS)
def test_every_pair_of_sample_and_dtype(kit: Conformance, op: str) -> None:
    check(kit, kit.cases(op))


def check(kit: Conformance, cases: Iterable[Case]) -> None:
    faults = []
    held: dict[str, bool] = {}
    for case in cases:
        reason = kit.xfail(case)
        failed = None
        try:
            kit.check(case)
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
    assert counts["todo"] <= 2
