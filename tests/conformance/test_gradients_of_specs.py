"""What the specs say of gradients: every formula, op and function is checked numerically, and ``none`` stands only where the
derivative is nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from graphdock.graph.graph import Graph
from graphdock.plugin.host import default_host
from graphdock.session.session import Session
from graphdock_opgen.samples import bindings, make_arrays
from graphdock_testing.conformance import Conformance
from graphdock_testing.numeric import central_differences
from graphdock_testing.programs import build

KIT = Conformance("cpu")
#: Their gradients need bodies, a session's state or nothing at all; ``tests/host`` checks them.
STRUCTURAL = {
    "Cond",
    "While",
    "OptionalFromValue",
    "OptionalGetValue",
    "HistoryStack",
    "HistoryUnstack",
    "ReadVariableOp",
    "PlaceholderWithDefault",
    "Print",
}
#: Some gradient of theirs goes by way of float32 whatever the images' dtype, so that differences in float64 say nothing of it;
#: ``tests/std/image`` checks them.
NARROW = {
    "AdjustContrastv2",
    "AdjustHue",
    "AdjustSaturation",
    "CropAndResize",
    "CropAndResizeGradBoxes",
    "CropAndResizeGradImage",
    "ResizeAreaGrad",
    "ResizeBicubicGrad",
    "ResizeBilinearGrad",
}
#: The gradient is that by symmetric matrices, which differences by single elements leave; ``tests/std/linalg`` checks it.
SYMMETRIC = {"Cholesky"}
#: Their gradient is not the derivative, which is zero almost everywhere: it passes straight through.
#: ``tests/std/quantization/test_functions.py`` checks it.
STRAIGHT_THROUGH = {
    "FakeQuantWithMinMaxArgs",
    "FakeQuantWithMinMaxArgsGradient",
    "FakeQuantWithMinMaxVars",
    "FakeQuantWithMinMaxVarsGradient",
    "FakeQuantWithMinMaxVarsPerChannel",
    "FakeQuantWithMinMaxVarsPerChannelGradient",
    "QuantizeAndDequantizeV2",
    "QuantizeAndDequantizeV3",
}
#: Their gradients are zero except where they jump, and there their samples stand; ``tests/gradients/test_flow.py`` checks them.
JUMPS = {"Sign", "ReluGrad", "LeakyReluGrad", "MaxPoolGrad", "MaxPool3DGrad"}
#: Its second output is the derivative of the first; ``tests/std/ctc`` checks it.
GIVES_ITS_DERIVATIVE = {"CTCLoss"}
#: Of lists, whose values no difference reaches but through other ops; ``tests/data/arrays`` checks them.
LISTS = {op for op in KIT._all if op == "AddLists" or "TensorList" in op}
#: Stops gradients by definition; decoders give labels, and their scores are for comparing them.
STOPS = {"CTCBeamSearchDecoder", "CTCGreedyDecoder", "StopGradient"}


def kinds(op: str) -> dict[str, str]:
    return {name: kind.partition(":")[0] for name, kind in default_host().ops.get(op).gradient_kinds.items()}


def test_every_gradient_of_a_spec_is_checked_numerically() -> None:
    unchecked = set()
    for op, data in KIT._all.items():
        stated = {name for name, kind in kinds(op).items() if kind in ("formula", "op", "fn")}
        checked = set(data["gradcheck"]) if any(c.kind == "gradient" for c in KIT.cases(op)) else set()
        if stated - checked:
            unchecked.add(op)
    assert unchecked - LISTS == STRUCTURAL | NARROW | SYMMETRIC | STRAIGHT_THROUGH | JUMPS | GIVES_ITS_DERIVATIVE


def without_gradient() -> list[tuple[str, str]]:
    """(op, input) of every floating input of a stateless op whose gradient is stated to be none."""
    found = []
    for op in KIT.ops:
        opdef = default_host().ops.get(op)
        floating = {t.name for t in opdef.types if not t.allow or "float64" in t.allow} | {"float64"}
        if opdef.outputs and all(o.dtype == "string" for o in opdef.outputs):
            continue  # a text has no derivative that could be measured
        if not opdef.is_stateful and op not in STOPS | STRAIGHT_THROUGH:
            found += [
                (op, a.name)
                for a in opdef.inputs
                if a.dtype in floating and a.arity == "one" and kinds(op).get(a.name) == "none"
            ]
    return found


@pytest.mark.parametrize(("op", "name"), without_gradient(), ids=str)
def test_none_stands_where_the_result_does_not_follow_the_input(op: str, name: str) -> None:
    opdef, data = default_host().ops.get(op), KIT._all[op]
    var = next(a.dtype for a in opdef.inputs if a.name == name)
    for index, sample in enumerate(data["samples"]):
        types = next((t for t in bindings(opdef, data, sample) if t.get(var, var) == "float64"), None)
        if types is None:
            continue
        arrays = make_arrays(data, sample, types, f"{op} {index} none")
        if arrays[name].dtype != np.float64:
            continue
        # away from ties, and from the points where a step function jumps
        arrays[name] = arrays[name] + np.random.default_rng(index).uniform(0.01, 0.3, arrays[name].shape)
        attrs = {**{v: t for v, t in types.items() if v not in data["args"].values()}, **sample["attrs"]}
        program = build(Graph(), opdef, arrays, attrs, fed=[name])
        feed = program.feed(arrays)
        (source,) = [t for t, (n, _, _) in program.feeds.items() if n == name]
        session = Session(graph=program.op.graph)
        shapes = [r.shape for r in session.run(program.outputs, feed)]

        def total(
            x: Any, session: Any = session, program: Any = program, feed: Any = feed, source: Any = source
        ) -> float:
            return float(sum(np.sum(r.astype(np.float64)) for r in session.run(program.outputs, {**feed, source: x})))

        derivative = central_differences(total, [feed[source]], 0, 1e-7)
        assert not np.any(np.nan_to_num(derivative)), f"sample {index} {shapes}: {derivative}"
