"""Variables on any device are saved and restored: through moves to and from host memory, with one Saver."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.plugin.host import Host
from graphdock_testing import fake, queued
from graphdock_tf1.train import saver_ops


@pytest.fixture(scope="module")
def hosts():
    host = Host()
    fake.install(host)
    queued.install(host, seed=3)
    yield host
    host.close()


@pytest.mark.parametrize("backends", [("fake", "cpu"), ("queued", "cpu"), ("cpu", "fake")])
@pytest.mark.parametrize("sharded", [False, True])
def test_variables_of_a_device_and_of_the_host(tmp_path, hosts, backends, sharded, caplog):
    config = tf.SessionConfig(backends=backends)
    with tf.Graph().as_default() as graph, tf.Session(graph=graph, config=config, host=hosts) as sess:
        with tf.device(f"/{backends[0]}:0"):
            v = tf.get_variable("v", initializer=np.arange(6, dtype=np.float32).reshape(2, 3))
        with tf.device(f"/{backends[1]}:0"):
            w = tf.get_variable("w", initializer=np.arange(3, dtype=np.int32))
        words = tf.get_variable("words", initializer=tf.constant(["a", "b"]))
        step = [v.assign_add(v), w.assign_add(w), words.assign(["c", "d"])]
        saver = tf.train.Saver(sharded=sharded)
        sess.run(tf.global_variables_initializer())
        sess.run(step)
        before = [np.asarray(a).tolist() for a in sess.run([v, w, words])]
        path = saver.save(sess, str(tmp_path / "m"))
        sess.run(step)
        saver.restore(sess, path)
        assert [np.asarray(a).tolist() for a in sess.run([v, w, words])] == before
        with pytest.raises(tf.errors.DataLossError, match="'v'"):
            (data,) = (p for p in tmp_path.glob("*.safetensors") if np.float32(10).tobytes() in p.read_bytes())
            data.write_bytes(data.read_bytes().replace(np.float32(10).tobytes(), np.float32(11).tobytes()))
            saver.restore(sess, path)
        assert [np.asarray(a).tolist() for a in sess.run([v, w, words])] == before
    assert "fall" not in caplog.text, "the host's kernel is no fallback"


@pytest.mark.parametrize(("backend", "memory"), [("fake", "host"), ("queued", "staging of queued:0")])
def test_a_save_of_a_devices_variables_takes_a_portion_of_host_memory(tmp_path, hosts, monkeypatch, backend, memory):
    monkeypatch.setattr(saver_ops, "PORTION", 3 * 4096)
    config, values = tf.SessionConfig(backends=(backend, "cpu")), [np.full([1024], i, np.float32) for i in range(10)]
    with tf.Graph().as_default(), tf.Session(config=config, host=hosts) as sess:
        variables = [tf.get_variable(f"v{i}", initializer=value) for i, value in enumerate(values)]
        saver, seen = tf.train.Saver(), tf.RunMetadata()
        sess.run(tf.global_variables_initializer())
        path, how = str(tmp_path / "m"), saver.saver_def
        sess.run(how.save_tensor_name, {how.filename_tensor_name: path}, run_metadata=seen)
        assert seen.plan.arena_bytes[memory] <= 3 * 4096 + 2048, "of ten times 4096 bytes"
        sess.run([v.assign(tf.zeros([1024])) for v in variables])
        saver.restore(sess, path)
        assert all(np.array_equal(a, b) for a, b in zip(sess.run(variables), values, strict=True))
    assert len(list(tmp_path.glob("*-of-00004.*.safetensors"))) == 4, "three, three, three and one"
