"""Passes run in their order, each can be switched off, and none changes what a step returns."""

from __future__ import annotations

import re
from pathlib import Path

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import PassContext, print_graph
from graphdock.errors import ConfigError
from graphdock.passes.pipeline import checked_switches, known_passes, run_passes, simplifications
from graphdock.planning.translate import translate

PAGE = Path(__file__).parents[2] / "docs" / "how-a-step-runs.md"


def program():
    """Something for each pass to do: constants in a body, an identity, a known shape, a double, constants, a factor of one."""
    x = tf.placeholder(tf.float32, [4, None], name="x")
    scale = tf.constant(2.0)
    looped = tf.while_loop(lambda v: tf.reduce_sum(v) < 50.0, lambda v: v * scale + 1.0, [tf.identity(x)])
    doubled = tf.exp(looped) + tf.exp(looped)
    rows = tf.cast(tf.shape(x)[0] * 3, tf.float32)
    return doubled * 1.0 + rows + tf.sqrt(tf.constant([4.0]) * 9.0)


#: Names of the passes that run unless the configuration says otherwise.
ON = [name for name, each in simplifications().items() if each.on]
FEED = {"x:0": np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)}


def run(**passes):
    with tf.Graph().as_default():
        y = program()
        with tf.Session(config=tf.SessionConfig(passes=passes)) as sess:
            plan = sess.explain(y, FEED).plan
            return sess.run(y, FEED), plan


def test_reports_stand_in_the_order_of_the_table():
    _, plan = run()
    assert [r.name for r in plan.reports] == ON
    assert all(r.after <= r.before and r.ms >= 0 for r in plan.reports if r.name != "captures")


@pytest.mark.parametrize("name", list(simplifications()))
def test_a_pass_that_is_off_is_not_run_and_the_result_stays(name):
    want, _ = run()
    got, plan = run(**{name: False})
    assert [r.name for r in plan.reports] == [n for n in ON if n != name]
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_without_any_pass_the_result_is_the_same_to_the_last_bits():
    want, _ = run()
    got, plan = run(**dict.fromkeys(simplifications(), False))
    assert plan.reports == [] or not plan.reports
    np.testing.assert_allclose(got, want, rtol=1e-6)


def test_a_switch_of_no_pass_suggests_the_nearest():
    with pytest.raises(ConfigError, match="no pass named 'fodl'") as caught:
        checked_switches({"cse": False, "fodl": False}, known_passes(tf.default_host()))
    assert caught.value.hint == "did you mean 'fold'?"


def test_the_docs_list_the_table():
    rows = re.findall(r"^\| (\w+) \| (\d+) \| (.*) \|$", PAGE.read_text(), re.M)
    assert rows == [(p.name, str(p.order), p.summary) for p in simplifications().values()]


@pytest.mark.parametrize("name", list(simplifications()))
def test_a_pass_that_has_run_finds_nothing_more(name):
    with tf.Graph().as_default():
        v = tf.Variable([1.0, 1.0])
        x = tf.placeholder(tf.float32, [2])
        y = tf.identity(tf.cond(tf.constant(True), lambda: x * 1.0 + v, lambda: v * 2.0))
        plan = translate([y + tf.tanh(v) * 1.0, tf.shape(y)], [v.assign_add(y).op], [(x, (2,))])
    host = tf.default_host()
    context = PassContext(lambda node: None, host.ops.get, host.ops.get("Const"))
    only = [known_passes(host)[name]]
    run_passes(plan, only, lambda row: context, verify=True)
    before = print_graph(plan)
    run_passes(plan, only, lambda row: context, verify=True)
    assert print_graph(plan) == before
