"""Facts of std's ops hold; those of ops that are right and special don't fail."""

from __future__ import annotations

import pytest
from graphdock_testing.case import Case
from graphdock_testing.conformance import Conformance
from graphdock_testing.facts.fact_case import facts_of

pytestmark = pytest.mark.slow
#: One or more for each fact.
OPS = (
    "Add",
    "Mul",
    "Pow",
    "Relu",
    "ReluGrad",
    "Softsign",
    "Reshape",
    "Sum",
    "Max",
    "MatMul",
    "L2Loss",
    "Shape",
    "SquaredDifference",
)


@pytest.fixture(scope="module")
def kit():
    return Conformance("cpu")


@pytest.mark.parametrize("op", OPS)
@pytest.mark.sampled(4)
def test_facts_of_std_hold(kit, op):
    cases = [c for c in kit.cases(op) if c.kind == "fact" and c.dtype in ("float32", "int32", "-")]
    assert cases
    for case in cases[:3]:
        kit.check(case)


def test_each_fact_is_declared_by_some_op_of_the_list(kit):
    known = {fact for op in OPS for fact in facts_of(kit.host.ops.get(op))}
    assert known >= {
        *(
            "scalar",
            "region",
            "neutral",
            "commutative",
            "elementwise",
            "aliases",
            "evaluate",
            "sum",
            "joint",
            "stacked",
        ),
        *("decompose", "constants", "identity"),
    }


def test_an_op_that_acts_has_no_facts_to_check(kit):
    assert facts_of(kit.host.ops.get("RandomUniform")) == [] and facts_of(kit.host.ops.get("AssignVariableOp")) == []


def test_a_case_names_its_fact(kit):
    case = next(c for c in kit.cases("Mul") if c.kind == "fact")
    assert isinstance(case, Case) and case.id == "Mul[fact-float32-0]"
