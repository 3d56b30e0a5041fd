"""Return values of a kernel are held against what it promised: at its first call for each shape, and then no more."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import FRESH, HOST_MEMORY, Bound, BuildContext, OpDef, OutInfo, PlanNode, dtypes
from graphdock.contracts.runtime.return_check import ReturnCheck
from graphdock.contracts.step import CancellationToken
from graphdock.errors import InternalError
from graphdock_cpu.device import CpuFactory
from graphdock_executor.first_call import FirstCallCheck, Watched

PLACES = ("cpu", "chip", "queued")
#: What a kernel does instead of returning one fresh float32 array of x's shape.
FAULTS = {
    "returns None": (lambda x: None, "wrong number of buffers|returned None"),
    "returns a list of one": (lambda x: [x.copy()], "wrong number of buffers"),
    "returns two": (lambda x: (x.copy(), x.copy()), "wrong number of buffers"),
    "returns another dtype": (lambda x: x.astype(np.float64), "wrong dtype"),
    "returns another shape": (lambda x: np.concatenate([x, x]), "wrong shape"),
    "returns another rank": (lambda x: x[None], "wrong shape"),
    "returns no buffer": (lambda x: "nothing", "returned no"),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", FAULTS)
@pytest.mark.sampled(2)
def test_what_does_not_fit_reaches_nobody(suspects, place, name):
    body, words = FAULTS[name]
    host = suspects.host_with(suspects.kernel(place, body, modes=("fresh",)))
    with pytest.raises(InternalError, match=words) as caught:
        suspects.run(host, place, [1.0, 2.0, 3.0])
    assert "kernel fault.op of fault.Op" in str(caught.value)
    assert caught.value.op.name == "suspect" and "suspects.py" in str(caught.value)


def test_what_is_fresh_is_contiguous_where_all_inputs_are(suspects):
    body = lambda x: np.lib.stride_tricks.as_strided(np.repeat(x, 2), x.shape, (2 * x.itemsize,))  # noqa: E731
    host = suspects.host_with(suspects.kernel("cpu", body, modes=("fresh",)))
    with pytest.raises(
        InternalError, match=r"strided array for its output 'y0?'[\s\S]*strides \(8,\)[\s\S]*ascontiguousarray"
    ):
        suspects.run(host, "cpu", [1.0, 2.0, 3.0])


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    "result", [lambda x: x.copy(), lambda x: (x.copy(),), lambda x: None], ids=["one", "few", "none"]
)
def test_too_few_outputs_are_counted(suspects, place, result):
    host = suspects.host_with(suspects.kernel(place, result, modes=("fresh",)), op=suspects.opdef(2))
    with pytest.raises(InternalError, match="kernel fault.op of fault.Op") as caught:
        suspects.run(host, place, [1.0])
    assert "2 (y0, y1)" in str(caught.value)


@pytest.mark.parametrize("place", PLACES)
def test_what_fits_passes(suspects, place):
    host = suspects.host_with(suspects.kernel(place, lambda x: (x + 1, x + 2), modes=("fresh",)), op=suspects.opdef(2))
    first, second = suspects.run(host, place, [1.0, 5.0], steps=3)
    assert first.tolist() == [2.0, 6.0] and second.tolist() == [3.0, 7.0]


def test_a_kernel_of_a_plan_for_any_shape_may_not_change_its_rank_with_a_shape(suspects):
    def right_for_two(x):
        return x.copy() if len(x) == 2 else x[None]

    host = suspects.host_with(suspects.kernel("cpu", right_for_two, modes=("fresh",)))
    config = tf.SessionConfig(backends=("fault", "cpu"), shape_policy="generic")
    with tf.Graph(host).as_default() as graph:
        x = tf.placeholder(tf.float32, [None])
        y = graph.add_op(host.ops.get("fault.Op"), [x], {"T": tf.float32}, "suspect").outputs[0]
        with tf.Session(config=config, host=host, graph=graph) as sess:
            for _ in range(3):
                assert sess.run(y, {x: [1.0, 2.0]}).tolist() == [1.0, 2.0]
            for _ in range(2):  # a shape that failed is not taken for checked
                with pytest.raises(InternalError, match="wrong shape"):
                    sess.run(y, {x: [1.0, 2.0, 3.0]})
            assert sess.run(y, {x: [1.0, 2.0]}).tolist() == [1.0, 2.0]


@pytest.mark.plain
def test_after_its_first_call_the_kernel_itself_is_called(suspects, monkeypatch):
    checks = []
    monkeypatch.setattr(ReturnCheck, "__call__", lambda self, result: checks.append(self.op) or [result])
    host = suspects.host_with(suspects.kernel("cpu", lambda x: x.copy(), modes=("fresh",)))
    suspects.run(host, "cpu", [1.0], steps=5)
    assert checks == ["fault.Op"]


def test_a_kernel_is_checked_where_it_first_runs(suspects):
    """In a branch that the first step does not take."""
    host = suspects.host_with(suspects.kernel("cpu", lambda x: x.astype(np.float64), modes=("fresh",)))
    with tf.Graph(host).as_default() as graph:
        x = tf.placeholder(tf.float32, [1])

        def faulty():
            body = tf.get_default_graph()
            return body.add_op(host.ops.get("fault.Op"), [x + 0.0], {"T": tf.float32}, "suspect").outputs[0]

        y = tf.cond(tf.reduce_sum(x) > 0.0, faulty, lambda: x)
        with tf.Session(config=tf.SessionConfig(backends=("fault", "cpu")), host=host, graph=graph) as sess:
            assert sess.run(y, {x: [-1.0]}).tolist() == [-1.0]
            with pytest.raises(InternalError, match="wrong dtype"):
                sess.run(y, {x: [1.0]})


class _Racing(dict):
    """Names of a step that is stopped between the look at one and its setting."""

    stop = staticmethod(lambda: None)

    def get(self, name):
        found = super().get(name)
        self.stop()
        return found


@pytest.mark.parametrize("between", [False, True])
def test_a_step_that_is_cancelled_during_the_first_call_stops(between):
    """The kernel puts itself in place of its check; what the stop put there before must stay, or stop the step at once."""
    token, namespace, called = CancellationToken(), _Racing(), {}

    def stop():
        token.error = RuntimeError("stop")
        namespace["k"] = "the stop's own"

    def compute():
        if between:
            namespace.stop = stop
        else:
            stop()
        return np.float32(1)

    device = CpuFactory().open(CpuFactory().probe()[0], {})
    out = OutInfo("y", dtypes.float32, (), HOST_MEMORY, FRESH)
    context = BuildContext(PlanNode("Op", "node", OpDef("Op"), {}, []), (), (out,), device)
    first = namespace["k"] = FirstCallCheck(compute, Watched(Bound(compute), context), "k", namespace, called, token)
    if between:
        with pytest.raises(RuntimeError, match="stop"):
            first()
    else:
        assert first() == 1 and namespace["k"] == "the stop's own"
    assert called["k"] is compute
