"""Ops that run on the host only: plugins without devices serve them, whatever ``backends`` lists."""

from __future__ import annotations

import subprocess
import sys

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import Bound, KernelDef, hookimpl
from graphdock.errors import NotFoundError
from graphdock.plugin import discovery
from graphdock.plugin.host import Host
from graphdock_testing import queued


def answers(text):
    def build(ctx):
        def compute(*args):
            out = np.empty((), object)
            out[()] = text
            return out

        return Bound(compute if ctx.fresh else lambda *args: args[-1].__setitem__((), text))

    return build


def plug(host, name, kernels):
    class Plugin:
        @hookimpl
        def register_kernels(self):
            return kernels

    return host.register(name, Plugin())


def sharded():
    from graphdock import ops

    return ops.apply_op("ShardedFilename", basename=tf.constant("a"), shard=1, num_shards=2)


def chosen(sess, fetch):
    (row,) = [row for row in sess.explain(fetch).rows if row.op in ("ShardedFilename", "Relu")]
    return row


def test_a_plugin_without_devices_serves_a_session_that_does_not_list_it():
    with (
        tf.Graph(host=Host()).as_default(),
        tf.Session(config=tf.SessionConfig(backends=("cpu",), passes={"fold": False})) as sess,
    ):
        name = sharded()
        assert sess.run(name) == b"a-00001-of-00002"
    code = (
        "import sys, graphdock as tf\n"
        "with tf.Session() as sess: sess.run(tf.nn.relu([1.0]))\n"
        "assert 'graphdock_storage.plugin' not in sys.modules, 'loaded for an op that it has nothing for'\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_kernels_on_the_host_of_other_ops_and_of_plugins_with_devices_stay_with_backends():
    host = Host()
    plug(host, "extra", [KernelDef("Relu", "host", answers(b"no"), priority=9)])
    with tf.Graph(host=host).as_default(), tf.Session() as sess:
        relu = tf.nn.relu(tf.placeholder(tf.float32, [1], name="x"))
        row = chosen(sess, relu)
        assert row.kernel == "cpu.relu"
        assert ("extra.relu", "extra is not in backends") in row.lost
    queued.install(host)
    host.backend("queued")
    host.kernels.add(
        KernelDef("ShardedFilename", "host", answers(b"queued"), priority=9), "queued", "graphdock_testing"
    )
    with tf.Graph(host=host).as_default(), tf.Session(config=tf.SessionConfig(passes={"fold": False})) as sess:
        row = chosen(sess, sharded())
        assert row.kernel == "storage.sharded_filename"
        assert ("queued.sharded_filename", "queued is not in backends") in row.lost
    host.close()


def test_two_plugins_that_serve_one_op_tie_unless_one_is_listed_or_higher():
    host = Host()
    plug(host, "extra", [KernelDef("ShardedFilename", "host", answers(b"extra"), priority=1)])
    with tf.Graph(host=host).as_default(), tf.Session(config=tf.SessionConfig(passes={"fold": False})) as sess:
        row = chosen(sess, sharded())
        assert row.kernel == "extra.sharded_filename" and "priority" in row.why
    config = tf.SessionConfig(backends=("cpu", "storage"), passes={"fold": False})
    with tf.Graph(host=host).as_default(), tf.Session(config=config) as sess:
        assert chosen(sess, sharded()).kernel == "storage.sharded_filename"


def test_without_the_plugin_the_error_says_what_to_install(monkeypatch, tmp_path):
    installed = discovery.discover()
    monkeypatch.setattr("graphdock.plugin.host.discover", lambda: [f for f in installed if f.plugin != "storage"])
    with tf.Graph(host=Host()).as_default(), tf.Session() as sess:
        w = tf.get_variable("w", [2])
        saver = tf.train.Saver([w])
        sess.run(w.initializer)
        with pytest.raises(NotFoundError, match="SaveV2") as caught:
            saver.save(sess, str(tmp_path / "m"))
        assert "pip install --force-reinstall graphdock" in str(caught.value) and "'storage'" in str(caught.value)


def test_a_session_whose_only_backend_has_a_memory_of_its_own_saves_and_restores(tmp_path):
    host = Host()
    queued.install(host)
    with tf.Graph(host=host).as_default():
        v = tf.get_variable("v", initializer=np.float32([1, 2, 3]))
        saver, summary = tf.train.Saver(), tf.summary.scalar("first", v[0])
        with tf.Session(host=host, config=tf.SessionConfig(backends=["queued"], fallback="forbid")) as sess:
            sess.run(v.initializer)
            path = saver.save(sess, str(tmp_path / "m"))
            sess.run(v.assign([0.0, 0.0, 0.0]))
            saver.restore(sess, path)
            assert sess.run(v).tolist() == [1, 2, 3]
            assert tf.Summary.FromString(sess.run(summary)).value[0].simple_value == 1
    host.close()
