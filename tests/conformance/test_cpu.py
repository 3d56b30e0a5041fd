"""The cpu backend passes the whole conformance kit: every op, dtype and sample against the specs' oracles."""

from __future__ import annotations

import pytest
from graphdock.testing.conformance import Conformance, ConformanceError, Missing

pytestmark = pytest.mark.slow  # the kit's sessions are in debug mode anyway


@pytest.fixture(scope="module")
def kit() -> Conformance:
    return Conformance("cpu")


@pytest.mark.parametrize("op", Conformance("cpu").ops)
def test_op(kit: Conformance, op: str) -> None:
    faults = []
    held: dict[str, bool] = {}
    for case in kit.cases(op):
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
