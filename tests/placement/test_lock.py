"""Lock files: what was explained is replayed by another session, and what no longer holds is said and decided anew."""

from __future__ import annotations

import json

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import KernelDef, hookimpl
from graphdock.errors import ConfigError
from graphdock.plugin.host import Host

FEED = np.linspace(-1, 1, 6, dtype=np.float32)


@pytest.fixture
def program():
    x = tf.placeholder(tf.float32, [6], name="x")
    a = tf.tanh(x, name="a")
    with tf.device("/cpu:1"):
        b = tf.sin(a, name="b")
    return tf.while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, tf.exp(y, name="c")), [0, b])[1], {x: FEED}


def explained(program, host=None, **fields):
    fetched, feeds = program
    with tf.Session(config=tf.SessionConfig(**{"device_count": {"cpu": 2}, **fields}), host=host or Host()) as sess:
        return sess.explain(fetched, feeds), sess.run(fetched, feeds)


def where(explanation):
    return {row.node: (row.device, row.kernel) for row in explanation.rows}


def changed(path, **rows):
    """The lock file with other rows."""
    data = json.loads(path.read_text())
    for name, row in rows.items():
        data["nodes"][name] = {
            **data["nodes"].get(name, {"op": "Tanh", "device": "cpu:0", "kernel": "cpu.tanh"}),
            **row,
        }
    path.write_text(json.dumps(data))
    return str(path)


def test_a_lock_replays_what_a_placer_chose(program, tmp_path):
    path = tmp_path / "step.lock"
    first, want = explained(program)
    assert first.lock(path) == len(first.plan.placement.locked) >= 3
    assert any(row["op"] == "Exp" for row in json.loads(path.read_text())["nodes"].values())
    lock = changed(path, a={"device": "cpu:1"})
    second, got = explained(program, lock=lock)
    assert where(second)["a"] == ("cpu:1", "cpu.tanh") and where(first)["a"] == ("cpu:0", "cpu.tanh")
    assert got.tobytes() == want.tobytes()
    assert not any("lock" in note for note in second.notes())
    assert first.diff(second).splitlines()[2:] == [
        f"~ a (Tanh): cpu.tanh on cpu:0, {_time(first)} -> cpu.tanh on cpu:1, {_time(second)}"
    ]
    assert "every node runs where" in second.diff(second)


def _time(explanation):
    return next(row.time for row in explanation.rows if row.node == "a")


def test_a_kernel_of_lower_priority_is_pinned_for_its_node_alone(tmp_path):
    def host():
        class Plugin:
            @hookimpl
            def register_kernels(self):
                return [KernelDef("Tanh", "cpu", lambda ctx: np.tanh, name="slow", priority=-5)]

        made = Host()
        made.register("mine", Plugin())
        return made

    x = tf.placeholder(tf.float32, [6], name="x")
    program = tf.tanh(tf.sin(tf.tanh(x, name="a")), name="b"), {x: FEED}
    fields = {"backends": ("cpu", "mine"), "device_count": {}}
    first, want = explained(program, host(), **fields)
    path = tmp_path / "step.lock"
    first.lock(path)
    second, got = explained(program, host(), lock=changed(path, a={"kernel": "mine.slow"}), **fields)
    assert (where(second)["a"][1], where(second)["b"][1]) == ("mine.slow", "cpu.tanh")
    assert got.tobytes() == want.tobytes()
    third, _ = explained(program, lock=str(path), device_count={})  # where the plugin is not there
    assert where(third)["a"][1] == "cpu.tanh" and "a had the kernel mine.slow" in str(third)


STALE = {
    "a was on cpu:7, which this session does not have": {"a": {"device": "cpu:7"}},
    "b was on cpu:0, and is bound to cpu:1 now": {"b": {"device": "cpu:0"}},
    "a is Tanh, and was Sin": {"a": {"op": "Sin"}},
    "a had the kernel cpu.gone": {"a": {"kernel": "cpu.gone"}},
}


@pytest.mark.parametrize("what", STALE)
def test_what_no_longer_holds_is_said_once_and_decided_anew(program, tmp_path, what, caplog):
    path = tmp_path / "step.lock"
    first, want = explained(program)
    first.lock(path)
    second, got = explained(program, lock=changed(path, **STALE[what]))
    assert what in str(second) and str(path) in str(second)
    assert caplog.text.count(what) == 1
    assert where(second) == where(first) and got.tobytes() == want.tobytes()


def test_nodes_that_a_lock_does_not_name_are_counted(program, tmp_path):
    path = tmp_path / "step.lock"
    explained(program)[0].lock(path)
    fetched, feeds = program
    assert "1 of 6 nodes are new" in str(explained((tf.cos(fetched), feeds), lock=str(path))[0])
    other = tf.placeholder(tf.float32, [6])
    assert "it names no node of this plan" in str(explained((tf.cos(other), {other: FEED}), lock=str(path))[0])


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{}", '{"schema": 2, "nodes": {}}', '{"schema": 1, "nodes": {"a": {"op": "Tanh"}}}', "[" * 100_000],
    ids=lambda text: text[:50],
)
def test_a_file_that_is_no_lock_is_refused_when_the_session_is_made(tmp_path, text):
    path = tmp_path / "step.lock"
    path.write_text(text)
    with pytest.raises(ConfigError, match="lock: .*step.lock"):
        tf.Session(config=tf.SessionConfig(lock=path))
    with pytest.raises(ConfigError, match="can't be read"):
        tf.Session(config=tf.SessionConfig(lock=tmp_path / "none"))
