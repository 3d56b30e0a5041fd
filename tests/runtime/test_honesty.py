"""In debug mode a kernel that breaks its contract is named, with the op, the argument and the user's line."""

from __future__ import annotations

from typing import Any

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import Bound, BuildContext, KernelDef, OpDef, OpLibrary, hookimpl
from graphdock.contracts.opdef import ArgDef
from graphdock.errors import InternalError
from graphdock.plugin.host import Host

FAULTS: dict[str, tuple[Any, str]] = {
    "writes its input": (lambda x: (x.fill(0), x.copy())[1], "changed its input 'x'"),
    "returns None": (lambda x: None, "returned None for its output 'y'"),
    "returns a list": (lambda x: [x.copy(), x.copy()], "wrong number of buffers"),
    "returns another dtype": (lambda x: x.astype(np.float64), "wrong dtype"),
    "returns another shape": (lambda x: np.concatenate([x, x]), "wrong shape"),
    "returns no array": (lambda x: x.tolist()[0], "returned no array"),
}


class Plugin:
    """An op whose kernel does what a test says."""

    compute: Any = None

    @hookimpl
    def register_ops(self):
        return [OpLibrary("tests_honesty_ops")]

    @hookimpl
    def register_kernels(self):
        def build(ctx: BuildContext) -> Bound:
            return Bound(lambda *args: Plugin.compute(*args))

        return [KernelDef("fault.Op", "cpu", build, modes=("fresh",))]


@pytest.fixture
def op(monkeypatch):
    import sys
    import types

    module = types.ModuleType("tests_honesty_ops")
    opdef = OpDef("fault.Op", inputs=(ArgDef("x", "float32", "[*S]"),), outputs=(ArgDef("y", "float32", "[*S]"),))
    module.OPS = {"fault.Op": lambda: opdef}  # type: ignore[attr-defined]
    module.OPERATORS = {}  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tests_honesty_ops", module)
    host = Host()
    host.register("fault", Plugin())
    host.backend("fault")
    return host, opdef


def run(op, compute, debug):
    host, opdef = op
    Plugin.compute = staticmethod(compute)
    with tf.Graph().as_default() as graph:
        x = tf.placeholder(tf.float32, [3])
        y = graph.add_op(opdef, [tf.sqrt(x)], {}, "suspect").outputs[0]
        config = tf.SessionConfig(debug=debug, backends=("fault", "cpu"))
        with tf.Session(config=config, host=host, graph=graph) as s:
            return s.run(y, {x: [1.0, 4.0, 9.0]})


@pytest.mark.parametrize("name", FAULTS)
def test_a_dishonest_kernel_is_named(op, name):
    compute, message = FAULTS[name]
    with pytest.raises(InternalError, match=message) as caught:
        run(op, compute, debug=True)
    assert "fault.op" in str(caught.value)
    assert caught.value.op == "suspect"
    assert "test_honesty.py" in str(caught.value)


def test_an_honest_kernel_passes(op):
    assert run(op, lambda x: x * 2, debug=True).tolist() == [2.0, 4.0, 6.0]
