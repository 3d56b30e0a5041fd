"""Variables on any device are saved and restored: through moves to and from host memory, with one Saver."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.plugin.host import Host
from graphdock.testing import fake, queued


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
