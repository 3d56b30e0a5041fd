"""Arrangements of what regions read: made once for all that want them, of constants when a plan is made, held to what was said."""

from __future__ import annotations

import types
from dataclasses import replace

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import KernelDef, KernelRefused, Prepared, hookimpl
from graphdock.errors import PluginError
from graphdock.plugin.host import Host
from graphdock_testing.region_reference import ArrangingCompiler

W = np.random.default_rng(3).normal(size=(5, 4)).astype(np.float32)
X = np.random.default_rng(4).normal(size=(3, 5)).astype(np.float32)


def _session(compiler):
    host = Host()
    hook = hookimpl(specname="register_region_compilers")(lambda: [compiler])
    host.register("lab", types.SimpleNamespace(register_region_compilers=hook, __name__="lab"))
    return tf.Session(config=tf.SessionConfig(backends=["lab", "cpu"]), host=host)


def _changed(**fields):
    """A compiler whose arrangements have other fields."""

    class Changed(ArrangingCompiler):
        def arranged(self, region):
            return {i: replace(a, **fields) for i, a in super().arranged(region).items()}

    return Changed()


def _products(w, count=2):
    return [tf.tanh(tf.matmul(tf.constant(X * (i + 1)), w)) for i in range(count)]


def _run(compiler, build):
    """Results and kernels of what is built of w, which is fed."""
    with tf.Graph().as_default():
        w = tf.placeholder(tf.float32, [5, 4])
        fetches = build(w)
        with _session(compiler) as session:
            return session.run(fetches, {w: W}), session.explain(fetches, {w: W}).kernels()


def test_what_two_regions_read_is_arranged_once_and_what_one_reads_is_not():
    got, kernels = _run(ArrangingCompiler(), _products)
    assert kernels == {"lab.reference": 2, "lab.turned": 1}
    np.testing.assert_allclose(got, np.tanh([X @ W, 2 * X @ W]), rtol=1e-5)
    got, kernels = _run(ArrangingCompiler(), lambda w: _products(w, 1))
    assert kernels == {"lab.reference": 1}
    np.testing.assert_allclose(got, np.tanh([X @ W]), rtol=1e-5)


def test_a_constant_is_arranged_when_the_plan_is_made():
    calls = []

    def fill(array, room):
        calls.append(array)
        np.copyto(room, array.T)

    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [3, 5])
        y = tf.tanh(tf.matmul(x, tf.constant(W)))
        with _session(_changed(fill=fill)) as session:
            for _ in range(3):
                np.testing.assert_allclose(session.run(y, {x: X}), np.tanh(X @ W), rtol=1e-5)
            assert len(calls) == 1
            assert session.explain(y, {x: X}).kernels() == {"lab.reference": 1}


def test_where_its_kernel_refuses_regions_read_the_value():
    def refuse(ctx):
        raise KernelRefused("not today")

    made = KernelDef("Arranged", "cpu", name="turned", prepare=refuse)
    got, kernels = _run(_changed(kernel=made), _products)
    assert kernels == {"lab.reference": 2}
    np.testing.assert_allclose(got, np.tanh([X @ W, 2 * X @ W]), rtol=1e-5)
    works = KernelDef(
        "Arranged", "cpu", name="turned", prepare=lambda ctx: Prepared(lambda told: lambda x, y: np.copyto(y, x.T))
    )
    assert _run(_changed(kernel=works), _products)[1] == {"lab.reference": 2, "lab.turned": 1}


def test_claimed_parts_are_ignored():
    class Takes(ArrangingCompiler):
        def claim(self, candidate):
            said = super().claim(candidate)
            return replace(said, nodes=(*candidate.parts, *said.nodes))

    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [2, 6])
        left, right = tf.split(x, 2, 1)
        y = tf.tanh(left) * right
        with _session(Takes()) as session:
            feed = {x: np.arange(12.0).reshape(2, 6)}
            assert session.explain(y, feed).kernels() == {"lab.reference": 1}
            np.testing.assert_allclose(session.run(y, feed), np.tanh(feed[x][:, :3]) * feed[x][:, 3:], rtol=1e-5)


def test_a_compiler_says_why_it_reads_a_weight_as_it_lies():
    class Refuses(ArrangingCompiler):
        def arranged(self, region):
            return dict.fromkeys(super().arranged(region), "it likes it so")

    with tf.Graph().as_default():
        v = tf.get_variable("v", [5, 4])
        w = tf.placeholder(tf.float32, [5, 4])
        with _session(Refuses()) as session:
            by_constant = tf.tanh(tf.matmul(tf.placeholder(tf.float32, [3, 5]), tf.constant(W, name="c")))
            plan = session.explain([*_products(v), *_products(w), by_constant])
    assert [line for line in plan.notes() if "likes" in line] == [
        "pass regions: lab.reference keeps c, v in no other order from step to step: it likes it so"
    ]


def _raises(*_):
    raise ZeroDivisionError("no panels")


class _Raising(ArrangingCompiler):
    arranged = _raises


class _Beyond(ArrangingCompiler):
    def arranged(self, region):
        return {i + 9: a for i, a in super().arranged(region).items()}


@pytest.mark.parametrize(
    "compiler, says",
    [
        (_changed(fill=_raises), "raises ZeroDivisionError when it arranges what stays: no panels"),
        (_Raising(), "raises ZeroDivisionError when it is asked for arrangements: no panels"),
        (_Beyond(), "wants an arrangement of what is no input of the region"),
    ],
)
def test_what_cannot_be_names_the_compiler(compiler, says):
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [3, 5])
        y = tf.tanh(tf.matmul(x, tf.constant(W)))
        with _session(compiler) as session, pytest.raises(PluginError, match=f"lab.reference.* {says}"):
            session.run(y, {x: X})


def test_a_variable_that_the_plan_only_reads_is_arranged_after_each_write():
    calls = []

    def fill(array, room):
        calls.append(array.copy())
        np.copyto(room, array.T)

    with tf.Graph().as_default():
        x, w = tf.placeholder(tf.float32, [3, 5]), tf.get_variable("w", initializer=W, use_resource=True)
        y = tf.tanh(tf.matmul(x, w))
        with _session(_changed(fill=fill)) as session:
            session.run(w.initializer)
            for times in (1, 2):
                w.load(W * times, session)
                for _ in range(3):
                    np.testing.assert_allclose(session.run(y, {x: X}), np.tanh(X @ (W * times)), rtol=1e-5)
    assert [call.sum() for call in calls] == [W.sum(), (W * 2).sum()]


def test_what_raises_in_a_step_names_the_compiler_and_the_next_step_tries_again():
    with tf.Graph().as_default():
        x, w = tf.placeholder(tf.float32, [3, 5]), tf.get_variable("w", initializer=W, use_resource=True)
        y = tf.tanh(tf.matmul(x, w))
        with _session(_changed(fill=_raises)) as session:
            session.run(w.initializer)
            for _ in range(2):
                with pytest.raises(
                    PluginError, match=r"lab.reference.* raises ZeroDivisionError when it arranges what stays"
                ):
                    session.run(y, {x: X})


def _all_but_the_last(array, room):
    room.reshape(-1)[:-1] = np.ascontiguousarray(array.T).reshape(-1)[:-1]


@pytest.mark.parametrize("variable", [True, False])
def test_a_fill_that_leaves_an_element_is_found_when_it_is_called_first(variable):
    with tf.Graph().as_default():
        w, x = tf.Variable(W) if variable else tf.constant(W), tf.placeholder(tf.float32, [3, 5])
        fetches = [tf.tanh(tf.matmul(x, w)), tf.tanh(tf.matmul(x * 2.0, w))]
        with _session(_changed(fill=_all_but_the_last)) as session:
            session.run(tf.global_variables_initializer())
            for _ in range(2):
                with pytest.raises(PluginError, match=r"(?s)lab.reference.* leaves elements.*1 of 20"):
                    session.run(fetches, {x: X})
