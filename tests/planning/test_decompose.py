"""A node without a kernel where it prefers to run becomes nodes that have one there: before fallback, and shown by explain."""

from __future__ import annotations

import json
import logging
import sys
import types
from concurrent.futures import Future

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import ArgDef, KernelDef, KernelRefused, OpDef, Prepared
from graphdock.planning.decompose import Decomposer
from graphdock.plugin.host import Host

X = np.array([[0.5, -1.0], [2.0, 0.25]], np.float32)


@pytest.fixture
def toy_session(toy, process_host):
    """Sessions on the toy device, which has Square and Sub but no SquaredDifference, then cpu."""
    host = process_host(Host())

    def make(**fields):
        return tf.Session(config=tf.SessionConfig(**{"backends": ["toy", "cpu"], **fields}), host=host)

    with tf.Graph().as_default():
        yield make


def program():
    x = tf.placeholder(tf.float32, [2, 2], name="x")
    y = tf.placeholder(tf.float32, [2, 2], name="y")
    z = tf.squared_difference(x, y, name="z")
    return x, y, z


def test_the_parts_run_on_the_preferred_device_and_explain_says_so(toy_session, caplog):
    x, y, z = program()
    feed = {x: X, y: X.T}
    with toy_session() as sess, caplog.at_level(logging.WARNING, "graphdock"):
        explained = sess.explain(z, feed)
        assert [(r.node, r.op, r.device) for r in explained.rows if r.kernel != "transfer"] == [
            ("z", "Sub", "toy:0"),
            ("z", "Square", "toy:0"),
        ]
        line = (
            "decomposed  z (SquaredDifference) on toy -> 2 nodes (Square, Sub): toy has no kernel for SquaredDifference"
        )
        assert line in str(explained).splitlines()
        (fact,) = json.loads(explained.to_json())["decomposed"]
        assert fact["node"] == "z" and fact["parts"] == ["Sub", "Square"]
        np.testing.assert_allclose(sess.run(z, feed), (X - X.T) ** 2)
        site = next(r.site for r in explained.rows if r.op == "Square")
        assert "test_decompose.py" in str(site)
    assert not [r for r in caplog.records if "back to another device" in r.getMessage()]


def test_it_comes_before_fallback_and_needs_none(toy_session):
    x, y, z = program()
    with toy_session(fallback="forbid") as sess:
        np.testing.assert_allclose(sess.run(z, {x: X, y: X.T}), (X - X.T) ** 2)


def test_where_the_op_has_a_kernel_nothing_is_decomposed(toy_session):
    x, y, z = program()
    with toy_session(backends=["cpu"]) as sess:
        explained = sess.explain(z, {x: X, y: X})
        assert [r.op for r in explained.rows] == ["SquaredDifference"]
        assert "decomposed" not in str(explained)


def test_an_explicit_device_is_the_preferred_one(toy_session):
    x, y = program()[:2]
    with tf.device("/device:toy:0"):
        z = tf.squared_difference(x, y, name="there")
    with toy_session(backends=["cpu", "toy"]) as sess:
        rows = [r for r in sess.explain(z, {x: X, y: X}).rows if r.kernel != "transfer"]
        assert {r.device for r in rows} == {"toy:0"} and len(rows) == 2


def test_gradients_are_those_of_the_op(toy_session):
    x, y, z = program()
    (slope,) = tf.gradients(tf.reduce_sum(z), [x])
    with toy_session() as sess:
        np.testing.assert_allclose(sess.run(slope, {x: X, y: X.T}), 2 * (X - X.T), rtol=1e-6)


def test_what_a_part_lacks_is_said_where_nothing_else_runs_it(toy_session):
    x = tf.placeholder(tf.float32, [2, 2])
    y = tf.rsqrt(x, name="root")
    with toy_session(backends=["toy"]) as sess, pytest.raises(tf.errors.KernelNotFoundError) as caught:
        sess.run(y, {x: X})
    assert "its decomposition: toy has no kernel for its part Sqrt" in caught.value.message


def test_equal_parts_are_merged_and_bodies_are_decomposed_too(toy_session):
    x, y, z = program()
    again = tf.squared_difference(x, y) + (x - y)
    looped = tf.while_loop(lambda i, v: i < 2, lambda i, v: (i + 1, tf.squared_difference(v, y)), [0, x])[1]
    feed = {x: X, y: X.T}
    with toy_session() as sess:
        explained = sess.explain([z, again], feed)
        assert sorted(r.op for r in explained.rows if r.kernel != "transfer") == ["Add", "Square", "Sub"]
        want = ((X - X.T) ** 2 - X.T) ** 2
        np.testing.assert_allclose(sess.run(looped, feed), want, rtol=1e-5)


def test_a_decomposition_is_traced_once_per_form(toy_session, monkeypatch):
    traced = []
    trace = Decomposer._trace
    monkeypatch.setattr(Decomposer, "_trace", lambda self, *a: traced.append(1) or trace(self, *a))
    x, y, z = program()
    wide = tf.placeholder(tf.float32, [3])
    with toy_session() as sess:
        sess.run(z, {x: X, y: X})
        sess.run([z, tf.squared_difference(y, x)], {x: X, y: X})
        assert len(traced) == 1
        sess.run(tf.squared_difference(wide, wide), {wide: [1.0, 2.0, 3.0]})
        assert len(traced) == 2


def test_shapes_that_only_the_step_knows_are_checked_before_the_parts_run(toy_session):
    x, y = (tf.placeholder(tf.float32, [None]) for _ in range(2))
    rows = tf.gather(x, tf.cast(tf.where(x > 0.0)[:, 0], tf.int32))
    with tf.control_dependencies([rows]):
        z = tf.squared_difference(rows, y, name="z")
    with toy_session() as sess:
        assert {"Sub", "Square"} <= {r.op for r in sess.explain(z).rows if r.device == "toy:0"}
        assert sess.run(z, {x: [1.0, -1.0, 3.0], y: [1.0, 1.0]}).tolist() == [0.0, 4.0]
        assert sess.run(z, {x: [1.0, -1.0, 3.0], y: [1.0]}).tolist() == [0.0, 4.0]
        with pytest.raises(tf.errors.ShapeError, match=r"SquaredDifference: shapes \[2\] and \[3\] cannot") as info:
            sess.run(z, {x: [1.0, -1.0, 3.0], y: [1.0, 1.0, 1.0]})
        assert info.value.op.name == "z"


# -- refusals when kernels are prepared


def refusing(ctx):
    raise KernelRefused("no tile fits")


def failing(ctx):
    ready: Future[None] = Future()
    ready.set_exception(ValueError("ptxas: 255 registers"))
    return Prepared(print, ready=ready)


REFUSED = {"refuses": (refusing, "no tile fits"), "does not compile": (failing, "ValueError: ptxas: 255 registers")}


@pytest.fixture
def proud(toy_session):
    """Gives the toy a kernel for an op, which refuses when it is prepared."""

    def give(how, op="SquaredDifference"):
        host = tf.default_host()
        host.backend("toy")
        host.kernels.add(KernelDef(op, "toy", prepare=REFUSED[how][0], name="proud"), "toy", "graphdock_toy")

    return give


@pytest.mark.parametrize("how", REFUSED)
@pytest.mark.parametrize("fallback", ["forbid", "warn"])
def test_what_is_refused_when_it_is_prepared_is_decomposed_too(toy_session, proud, how, fallback, caplog):
    proud(how)
    x, y, z = program()
    feed = {x: X, y: X.T}
    with toy_session(fallback=fallback) as sess, caplog.at_level(logging.WARNING, "graphdock"):
        explained = sess.explain(z, feed)
        assert [(r.node, r.op, r.device) for r in explained.rows if r.kernel != "transfer"] == [
            ("z", "Sub", "toy:0"),
            ("z", "Square", "toy:0"),
        ]
        why = f"toy.proud: refused when it was prepared: {REFUSED[how][1]}"
        assert (
            f"decomposed  z (SquaredDifference) on toy -> 2 nodes (Square, Sub): {why}" in str(explained).splitlines()
        )
        np.testing.assert_allclose(sess.run(z, feed), (X - X.T) ** 2)
    assert not caplog.records


def test_the_parts_of_what_was_refused_are_merged_with_the_rest(toy_session, proud):
    """In a loop's body too, beside a node that was decomposed at once."""
    proud("refuses")
    x, y, z = program()
    looped = tf.while_loop(lambda i, v: i < 2, lambda i, v: (i + 1, tf.squared_difference(v, y)), [0, x])[1]
    again = z + (x - y)
    feed = {x: X, y: X.T}
    with toy_session() as sess:
        rows = [r.op for r in sess.explain([z, again], feed).rows if r.kernel != "transfer"]
        assert sorted(rows) == ["Add", "Square", "Sub"]
        np.testing.assert_allclose(sess.run(looped, feed), ((X - X.T) ** 2 - X.T) ** 2, rtol=1e-5)


def test_a_refused_node_whose_parts_lack_a_kernel_goes_by_fallback(toy_session, proud, caplog):
    """Rsqrt has parts, Sqrt among them, which the toy has not: so it runs on cpu, with one warning."""
    proud("refuses", "Rsqrt")
    x = tf.placeholder(tf.float32, [2])
    y = tf.rsqrt(x, name="root")
    with toy_session() as sess, caplog.at_level(logging.WARNING, "graphdock"):
        np.testing.assert_allclose(sess.run(y, {x: [4.0, 16.0]}), [0.5, 0.25])
    (record,) = caplog.records
    assert "root (Rsqrt) on cpu:0" in record.getMessage() and "no tile fits" in record.getMessage()
    with toy_session(fallback="forbid") as sess, pytest.raises(tf.errors.KernelNotFoundError) as caught:
        sess.run(y, {x: [4.0, 16.0]})
    assert "its decomposition: toy has no kernel for its part Sqrt" in caught.value.message


# -- the policy, and whose gradient it is


@pytest.mark.parametrize("scope", ["toychip", "/device:toy:0"])
@pytest.mark.parametrize("fallback", ["forbid", "warn", "allow"])
def test_a_scope_prefers_by_any_of_its_names_under_every_policy(toy_session, scope, fallback):
    x, y = program()[:2]
    with tf.device(scope):
        z = tf.squared_difference(x, y, name="there")
    with toy_session(backends=["cpu", "toy"], fallback=fallback) as sess:
        rows = [r for r in sess.explain(z, {x: X, y: X}).rows if r.kernel != "transfer"]
        assert [(r.op, r.device) for r in rows] == [("Sub", "toy:0"), ("Square", "toy:0")]


def twice_as_sum(x):
    return [x + x]


def gradient_of_its_own(op, grad):
    return [grad * 100.0]


@pytest.fixture
def twice(monkeypatch):
    """An op without a kernel anywhere, whose gradient is another than its decomposition's would be."""
    args = ArgDef("x", "float32", "[*S]"), ArgDef("y", "float32", "[*S]")
    opdef = OpDef(
        "lab.Twice",
        inputs=args[:1],
        outputs=args[1:],
        package="lab",
        decomposition="lab_decompose:twice_as_sum",
        gradient="lab_decompose:gradient_of_its_own",
    )
    functions = {"twice_as_sum": twice_as_sum, "gradient_of_its_own": gradient_of_its_own}
    monkeypatch.setitem(sys.modules, "lab_decompose", types.SimpleNamespace(**functions))
    return lambda x: tf.get_default_graph().create_op("lab.Twice", [x], op_def=opdef).outputs[0]


@pytest.mark.parametrize("backends", [["toy"], ["cpu"], ["toy", "cpu"]])
def test_gradients_go_through_the_ops_own_rule(toy_session, twice, backends):
    x = tf.placeholder(tf.float32, [2])
    y = twice(x)
    (slope,) = tf.gradients(y, [x])
    with toy_session(backends=backends, fallback="forbid") as sess:
        assert "lab.Twice" not in {r.op for r in sess.explain([y, slope], {x: [1.0, 2.0]}).rows}
        assert sess.run(y, {x: [1.0, 2.0]}).tolist() == [2.0, 4.0]
        assert sess.run(slope, {x: [1.0, 2.0]}).tolist() == [100.0, 100.0], "the decomposition's would be 2"
