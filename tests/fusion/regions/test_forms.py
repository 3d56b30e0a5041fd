"""What ops say of regions agrees with their specs' references, on every sample."""

from __future__ import annotations

import numpy as np
import pytest
from graphdock.contracts import DeviceSpec, cut_region
from graphdock.contracts.ir import arg_of
from graphdock.contracts.streams import RandomOrdinals
from graphdock.dtypes import as_dtype
from graphdock.graph.graph import Graph
from graphdock.session.session import Session
from graphdock_fusion.regions.forms import form_of
from graphdock_fusion.regions.lowering import lower_region
from graphdock_fusion.regions.typed import NotInRegion
from graphdock_opgen.samples import make_arrays
from graphdock_testing.bench import agree
from graphdock_testing.conformance import Conformance
from graphdock_testing.region_reference import evaluate

KIT = Conformance("cpu")
OPS = [op for op in KIT.ops if form_of(KIT.host.ops.get(op)) is not None]
#: What a sample may be in no region for.
EXPECTED = (
    "no elements",
    "has rank",
    "complex",
    "string",
    "data_format is NCHW",
    "is_training is True",
    "axis is ",
    "U is ",
    "T is ",
    "pow of ",
    "does not lie on axes",
    "a cast from",
)
QUICK = ("float32", "int32", "bool")


def check(op, dtypes):
    """Each sample as a region of one node, evaluated; how many there were."""
    opdef, seen = KIT.host.ops.get(op), 0
    for case in KIT.cases(op):
        if case.kind != "value" or dtypes and case.dtype not in (*dtypes, "-"):
            continue
        arrays = make_arrays(case.data, case.sample, case.types, f"{case.op} {case.index} {case.dtype} a")
        graph = Graph(KIT.host)
        program = KIT._bench.build(graph, opdef, arrays, case.attrs)
        feeds = program.feed(arrays)
        plan = Session(graph=graph).explain([*program.outputs, program.op], feeds).plan
        for node in [n for n in plan.graph.nodes if n.op == op]:
            region = cut_region(plan.graph, [node], DeviceSpec.parse("/device:cpu:0"))
            held = {v: arrays[a.name] for a, v in zip(arg_of(node), node.inputs, strict=True) if a.access}
            region.variables = {
                inner: (as_dtype(held[v].dtype), held[v].shape)
                for inner, v in zip(region.graph.inputs, region.entering, strict=True)
                if v in held
            }
            try:
                lowered = lower_region(region)
            except NotInRegion as reason:
                assert any(word in str(reason) for word in EXPECTED), (case, reason)
                continue
            fed = {t.name: v for t, v in feeds.items()}
            inputs = [held[v] if v in held else _known(v, fed).astype(v.dtype.np) for v in region.entering]
            want = KIT._bench.expected(case, opdef, program, arrays, 0)
            streams = [RandomOrdinals().stream(s.name, s.seed, s.seed2) for s in region.streams]
            right = [want[value.index] for value in region.leaving] or want
            for got, wanted in zip(evaluate(lowered, inputs, streams), right, strict=True):
                agree(case, [got], [wanted], "region")
            seen += 1
    return seen


def _known(value, fed):
    while value.node is not None and value.node.verb != "constant":
        (value,) = value.node.inputs
    return np.asarray(fed[value.name] if value.node is None else value.node.attrs["value"])


@pytest.mark.parametrize("op", OPS)
@pytest.mark.slow
@pytest.mark.sampled(4)
def test_the_form_of_an_op_agrees_with_its_reference(op):
    assert check(op, QUICK), f"no sample of {op} was in a region"


@pytest.mark.exhaustive
@pytest.mark.parametrize("op", OPS)
def test_the_form_of_an_op_agrees_with_its_reference_in_every_dtype(op):
    check(op, ())


def test_the_forms_are_there():
    assert len(OPS) > 90
    assert {"Softmax", "LayerNorm", "LayerNormGrad", "Sum", "BiasAdd", "Reshape", "AddN"} <= set(OPS)
    assert {"ResourceApplyAdam", "ResourceApplyMomentum", "ResourceApplyRMSProp"} <= set(OPS)
    assert "Gather" in OPS and form_of(KIT.host.ops.get("GatherNd")) is None
