"""``tensorflow.python.debug``: what a user types at the prompt, and what a step is then."""

from __future__ import annotations

import io
import sys
from concurrent.futures import ThreadPoolExecutor

import graphdock as tf
import numpy as np
import pytest
from graphdock_tensorflow.run import debugger


@pytest.fixture
def typed(monkeypatch):
    def put(*lines):
        monkeypatch.setattr(sys, "stdin", io.StringIO("".join(f"{line}\n" for line in lines)))

    return put


@pytest.fixture
def network():
    x = tf.placeholder(tf.float32, [None], name="x")
    y = tf.log(x, name="y")
    total = tf.reduce_sum(tf.multiply(y, tf.Variable(2.0, name="w"), name="z"), name="total")
    return x, total


def opened():
    sess = tf.Session()
    sess.run(tf.global_variables_initializer())
    return sess


def test_a_step_is_watched_and_its_tensors_are_printed(typed, network, capsys):
    x, total = network
    sess = debugger.LocalCLIDebugWrapperSession(opened())
    typed("run", "lt ^[xyz]", "pt z", "pt y[1:]", "ni z", "pt q", "run -f no_such_filter", "run -n")
    want = 2 * np.log(6.0)
    np.testing.assert_allclose(sess.run(total, {x: [2.0, 3.0]}), want, rtol=1e-6)
    out = capsys.readouterr().out
    assert "run 1: 1 fetches, 1 feeds" in out and "y:0  float32  [2]" in out and "total:0  float32" not in out
    assert f"z:0 =\n{np.float32(2) * np.log(np.float32([2, 3]))}" in out and "y:0 =\n[1.0986123]" in out
    assert "z  Mul" in out and "input  y:0  float32  (?,)" in out
    assert "no tensor 'q:0'" in out and "no filter 'no_such_filter'; there are has_inf_or_nan" in out


def test_steps_without_watching_and_several_at_once(typed, network, capsys):
    x, total = network
    with debugger.LocalCLIDebugWrapperSession(opened()) as sess:
        typed("run -n -t 2", "run -t 2", "exit")
        values = [sess.run(total, {x: [e]}) for e in (1.0, 2.0, 3.0)]
        np.testing.assert_allclose(values, 2 * np.log([1.0, 2.0, 3.0]), rtol=1e-6)
        with pytest.raises(SystemExit) as ended:
            sess.run(total, {x: [4.0]})
    assert ended.value.code == 0
    assert capsys.readouterr().out.count("fetches") == 2


def test_a_filter_stops_at_the_step_that_has_what_it_looks_for(typed, network, capsys):
    x, total = network
    sess = debugger.LocalCLIDebugWrapperSession(opened())
    sess.add_tensor_filter("large", lambda datum, array: datum.node_name == "z" and array.max() > 5)
    typed("run -f large", "run -f has_inf_or_nan", "pt y", "run")
    for value in (1.0, 20.0, 2.0, 0.0):
        sess.run(total, {x: [value]})
    out = capsys.readouterr().out
    assert "large found z:0 in run 2" in out and "has_inf_or_nan found" in out and "in run 4" in out
    assert "y:0 =\n[-inf]" in out


def test_a_watched_step_gives_what_it_gives_unwatched(typed):
    """A variable is updated once, a random op draws once, and bodies of loops are left alone."""
    w, r = tf.Variable(1.0), tf.random_uniform([], seed=1)
    up = tf.assign_add(w, 1.0)
    loop = tf.while_loop(lambda i: i < 5, lambda i: i + 1, [tf.constant(0)])
    sparse = tf.SparseTensor([[0, 1]], [3.0], [2, 2])
    fetches = {"r": r, "up": up, "loop": [loop], "op": up.op, "sparse": sparse}
    plain = opened()
    want = plain.run(fetches)
    sess = debugger.LocalCLIDebugWrapperSession(opened())
    typed("run", "run -n")
    got = sess.run(fetches)
    assert (got["r"], got["up"], got["loop"], got["op"]) == (want["r"], want["up"], want["loop"], None)
    assert got["up"] == 2.0 and sess.run(sparse).values.tolist() == [3.0] == got["sparse"].values.tolist()


def test_what_is_typed_wrong_leaves_the_prompt_where_it_is(typed, capsys):
    x = tf.placeholder(tf.float32, [3], name="x")
    text = tf.constant("text", name="text")
    both = tf.strings.join([text, "s"], name="both"), tf.exp(x, name="y")
    sess = debugger.LocalCLIDebugWrapperSession(opened())
    wrong = ["lt [", "lt (", "lt a**", "pt both[0]", "pt y[a]", "pt y[::0]", "pt y[0,1]", "run -n -f has_inf_or_nan"]
    typed("run", *wrong, "pt both", "pt y[", "run")
    assert sess.run(both, {x: [0.0, 0.0, 0.0]})[0] == b"texts"
    out = capsys.readouterr().out
    assert out.count("error: ") == len(wrong) and "both:0 =\nb'texts'" in out and "-n watches no tensors" in out


def test_what_is_fed_is_not_computed_to_be_watched(typed, capsys):
    x = tf.placeholder(tf.float32, [2], name="x")
    mid = tf.tanh(x, name="mid")
    out = tf.exp(mid, name="out")
    sess = debugger.LocalCLIDebugWrapperSession(opened())
    typed("run", "lt", "run", "lt", "run")
    for key in (mid, "mid:0"):
        np.testing.assert_allclose(sess.run([mid, out], {key: [0.0, 1.0]}), [[0, 1], np.exp([0, 1])], rtol=1e-6)
    said = capsys.readouterr().out
    assert said.count("out:0  float32  [2]") == 2 and "x:0" not in said


def test_threads_that_the_filter_does_not_name_run_as_without_the_prompt(typed, network, capsys):
    x, total = network
    hook = debugger.LocalCLIDebugHook(thread_name_filter="Main")
    sess = debugger.LocalCLIDebugWrapperSession(opened(), thread_name_filter="MainThread$")
    typed("run", "pt total", "run", "run", "pt total", "run")
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(sess.run, total, {x: [1.0]}).result() == 0.0
        assert capsys.readouterr().out == ""
        sess.run(total, {x: [1.0]})
        with tf.train.MonitoredSession(hooks=[hook]) as other:
            assert pool.submit(other.run, total, {x: [1.0]}).result() == 0.0
            other.run(total, {x: [1.0]})
    out = capsys.readouterr().out
    assert out.count("fetches") == out.count("total:0 =\n0.0") == 2


def test_a_hook_looks_at_the_graph_of_its_session_from_any_thread(typed, capsys):
    with tf.Graph().as_default():
        total = tf.multiply(tf.constant(2.0, name="two"), 3.0, name="total")
        with tf.train.MonitoredSession(hooks=[debugger.LocalCLIDebugHook()]) as sess, ThreadPoolExecutor(1) as pool:
            typed("run", "ni total", "pt total", "run")
            assert pool.submit(sess.run, total).result() == 6.0
    out = capsys.readouterr().out
    assert "total  Mul" in out and "input  two:0" in out and "total:0 =\n6.0" in out


def test_a_hook_of_monitored_sessions(typed, network, capsys):
    x, total = network
    hook = debugger.LocalCLIDebugHook()
    hook.add_tensor_filter("negative", lambda datum, array: array.min() < 0)
    typed("run", "pt total", "run -f negative", "pt total", "run")
    with tf.train.MonitoredSession(hooks=[hook]) as sess:
        for value in (1.0, 2.0, 0.5):
            sess.run(total, {x: [value]})
    out = capsys.readouterr().out
    assert "total:0 =\n0.0" in out and "negative found" in out and f"total:0 =\n{2 * np.log(np.float32(0.5))}" in out


@pytest.mark.parametrize(
    ("value", "bad"),
    [
        (np.float32([1, np.inf]), True),
        (np.float64(np.nan), True),
        (np.array([1, np.nan], tf.bfloat16.as_numpy_dtype), True),
        (np.array([1, 2], tf.bfloat16.as_numpy_dtype), False),
        (np.int32([1]), False),
        (b"text", False),
        (np.float32(1), False),
    ],
)
def test_infinities_and_nans(value, bad):
    assert debugger.has_inf_or_nan(debugger.DebugTensorDatum("a", 0), value) is bad
