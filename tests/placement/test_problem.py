"""Placers choose among what the host offers; what they return is looked at, and the plan stays the same program."""

from __future__ import annotations

import operator
from collections.abc import Mapping

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import Placer, hookimpl
from graphdock.errors import ConfigError, NotFoundError, PluginError
from graphdock.plugin.host import Host

APART = {"cpu": {"memories": "apart"}}
FEED = np.linspace(-1, 1, 6, dtype=np.float32)


def session(place=None, name="mine", cpus=3, **fields):
    host = Host()

    class Mine(Placer):
        def place(self, problem):
            self.problem = problem
            return place(problem)

    Mine.name = "mine"
    placer = Mine()

    class Plugin:
        @hookimpl
        def register_placers(self):
            return [placer]

    host.register("others", Plugin())
    fields = {"device_count": {"cpu": cpus}, "placer": name, **fields}
    return tf.Session(config=tf.SessionConfig(**fields), host=host), placer


def last(problem):
    return {i: may[-1] for i, may in enumerate(problem.groups)}


def rows(sess, fetches, feeds):
    return {row.node: row.device for row in sess.explain(fetches, feeds).rows}


def test_what_is_free_moves_and_what_scopes_colocation_and_variables_say_stays():
    x = tf.placeholder(tf.float32, [6], name="x")
    v = tf.Variable(FEED, name="v")
    free = tf.tanh(x, name="free")
    with tf.device("/cpu:1"):
        pinned = tf.sin(free, name="pinned")
    with tf.colocate_with(pinned.op):
        beside = tf.cos(free, name="beside")
    with tf.device("/cpu"):
        any_cpu = tf.exp(free, name="any_cpu")
    update = tf.scatter_add(v, [0], [1.0], name="update")
    sess, placer = session(last)
    with sess:
        sess.run(v.initializer)
        where = rows(sess, [pinned, beside, any_cpu, update], {x: FEED})
        assert (where["free"], where["pinned"], where["beside"], where["any_cpu"]) == (
            "cpu:2",
            "cpu:1",
            "cpu:1",
            "cpu:2",
        )
        assert next(device for node, device in where.items() if "update" in node) == "cpu:0"
        np.testing.assert_allclose(sess.run(any_cpu, {x: FEED}), np.exp(np.tanh(FEED)), rtol=1e-6)
    tasks = {t.name: t for t in placer.problem.tasks}
    assert placer.problem.groups[tasks["free"].group] == ("cpu:0", "cpu:1", "cpu:2")


def test_bodies_stay_where_the_rules_put_them_and_count_in_their_node():
    x = tf.placeholder(tf.float32, [6], name="x")
    y = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, tf.tanh(y, name="inside")), [0, tf.sin(x)], name="loop")[
        1
    ]
    sess, placer = session(last)
    with sess:
        assert next(d for node, d in rows(sess, y, {x: FEED}).items() if "inside" in node) == "cpu:0"
        loop = next(t for t in placer.problem.tasks if t.name == "loop")
        assert placer.problem.groups[loop.group] == ("cpu:0",) and loop.seconds["cpu:0"] > 0
        want = np.sin(FEED)
        for _ in range(3):
            want = np.tanh(want)
        np.testing.assert_allclose(sess.run(y, {x: FEED}), want, rtol=1e-5)


def test_tasks_follow_control_edges_and_order():
    v = tf.Variable(FEED, name="v")
    first = tf.assign_add(v, FEED, name="first")
    with tf.control_dependencies([first]):
        second = tf.identity(v.read_value() * 2.0, name="second")
    sess, placer = session(last)
    with sess:
        sess.run(v.initializer)
        np.testing.assert_array_equal(sess.run(second), FEED * 4)
    tasks = placer.problem.tasks
    added = next(i for i, t in enumerate(tasks) if t.name.startswith("first"))
    assert any(added in t.after for t in tasks[added + 1 :])


@pytest.mark.parametrize("integer", [np.int64, np.uint8, int], ids=lambda c: c.__name__)
def test_groups_are_named_by_integers_of_any_kind(integer):
    x = tf.placeholder(tf.float32, [6], name="x")
    sess, _ = session(lambda p: {integer(i): np.str_(device) for i, device in last(p).items()})
    with sess:
        assert rows(sess, tf.tanh(x, name="y"), {x: FEED})["y"] == "cpu:2"


def test_notes_of_several_lines_are_seen_to_belong_together():
    def place(problem):
        problem.notes.extend(["a\nb\r\n  c", 7])
        return last(problem)

    x = tf.placeholder(tf.float32, [6], name="x")
    sess, _ = session(place)
    with sess:
        explained = sess.explain(tf.tanh(x, name="y"), {x: FEED})
    assert "\nplacer mine: a\n    b\n    c\nplacer mine: 7\nplacer mine: a step of" in str(explained)
    assert "placer mine: a\n    b\n    c" in explained.facts()["notes"]


def test_transfers_are_counted_once_in_what_is_printed():
    x = tf.placeholder(tf.float32, [6], name="x")
    y = tf.sin(tf.tanh(x))
    sess, _ = session(lambda p: {i: may[i % len(may)] for i, may in enumerate(p.groups)}, options=APART)
    with sess:
        explained = sess.explain(y, {x: FEED})
    assert str(explained).count(" transfers") == 1
    assert f"{sum(row.kernel == 'transfer' for row in explained.rows)} transfers" in explained.summary()


class Raising(Mapping):
    """A table that fails when it is read."""

    def __len__(self):
        return 1

    def __iter__(self):
        return iter(range(1))

    def __getitem__(self, key):
        raise RuntimeError("no table")


WRONG = {
    "placed 'Tanh', which is no number of a group but str": lambda p: {**last(p), "Tanh": "cpu:0"},
    "placed 2.0, which is no number of a group but float": lambda p: {**last(p), 2.0: "cpu:0"},
    "placed 98, which is none": lambda p: {**last(p), np.int64(98): "cpu:0"},
    "left out the group": lambda p: {},
    "placed 99, which is none": lambda p: {**last(p), 99: "cpu:0"},
    "it may be on cpu:0, cpu:1": lambda p: {**last(p), 0: "cpu:7"},
    "returned list, not a table": lambda p: ["cpu:0"],
    "failed: ZeroDivisionError": lambda p: 1 // 0,
    "failed: RuntimeError: no table": lambda p: Raising(),
    "failed: AttributeError": lambda p: p.engines.clear(),
    "failed: TypeError": lambda p: operator.setitem(p.tasks[0].seconds, "cpu:0", 1.0),
}


@pytest.mark.parametrize("what", WRONG)
def test_an_answer_that_is_none_names_the_placer_and_its_plugin(what):
    x = tf.placeholder(tf.float32, [6])
    sess, _ = session(WRONG[what])
    with sess, pytest.raises(PluginError, match="the placer 'mine' of plugin 'others'") as error:
        sess.run(tf.tanh(x), {x: FEED})
    assert what in error.value.message and "rules" in str(error.value) + str(error.value.hint)


def test_an_error_of_graphdocks_own_goes_through_with_a_note():
    def place(problem):
        raise ConfigError("it wants more")

    x = tf.placeholder(tf.float32, [6])
    sess, _ = session(place)
    with sess, pytest.raises(ConfigError, match="it wants more") as error:
        sess.run(tf.tanh(x), {x: FEED})
    assert error.value.__notes__[0] == "raised by the placer mine of plugin others"


def test_a_placer_that_nobody_brings_is_an_error_of_the_session():
    with pytest.raises(NotFoundError, match="no placer named 'simulate'") as error:
        session(last, "simulate")
    assert "simulated" in str(error.value)


def test_one_device_is_no_choice_and_no_placer_is_asked_but_by_explain():
    x = tf.placeholder(tf.float32, [6])
    sess, placer = session(last, cpus=1)
    with sess:
        sess.run(tf.tanh(x), {x: FEED})
        assert not hasattr(placer, "problem")
        assert "placer mine: a step of" in str(sess.explain(tf.tanh(x), {x: FEED}))
    assert all(len(may) == 1 for may in placer.problem.groups)


def test_a_peak_beyond_a_limit_is_told():
    x = tf.placeholder(tf.float32, [100_000], name="x")
    sess, _ = session(last, memory_limit={"cpu": "100KB"})
    with sess:
        assert "more than memory_limit" in str(sess.explain(tf.sin(tf.tanh(x)), {x: np.ones(100_000)}))


@pytest.mark.parametrize(
    ("fields", "shared"),
    [
        ({}, True),
        ({"executor": "straight_line", "inter_op_threads": 4}, True),
        ({"executor": "dataflow", "inter_op_threads": 1}, True),
        ({"executor": "dataflow"}, False),
        ({"inter_op_threads": 4}, False),
    ],
    ids=str,
)
def test_devices_share_the_thread_of_the_step_unless_its_executor_has_more(fields, shared):
    x = tf.placeholder(tf.float32, [6])
    sess, placer = session(last, **fields)
    with sess:
        sess.explain(tf.tanh(x), {x: FEED})
    assert len(set(placer.problem.engines.values())) == int(shared) and bool(placer.problem.engines) is shared
