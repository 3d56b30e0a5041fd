"""Sharded saves over tasks: each writes and reads its own variables, the chief merges, and a save is complete or unseen."""

from __future__ import annotations

import errno
import os
from concurrent.futures import Future

import graphdock as tf
import pytest
from graphdock_testing.thread_cluster import ThreadCluster


@pytest.fixture(scope="module")
def cluster():
    with ThreadCluster({"ps": 2, "worker": 1}) as made:
        yield made


def variables():
    made = []
    for number in (0, 1):
        with tf.device(f"/job:ps/task:{number}"):
            made.append(tf.get_variable(f"v{number}", initializer=[1.0 + number, 2.0]))
    return made, tf.train.Saver(sharded=True)


def tasks_of(session, saver, op_type):
    """The tasks that run operations of a type where a Saver saves and restores."""
    found = set()
    for fetch in (saver.saver_def.save_tensor_name, saver.saver_def.restore_op_name):
        element = session.graph.as_graph_element(fetch)
        for part in session.explain(element, {saver.saver_def.filename_tensor_name: b"x"}).partition.parts:
            found |= {str(part.task) for op in part.graph.get_operations() if op.type == op_type}
    return found


def test_each_task_writes_and_reads_what_is_its_own(cluster, tmp_path):
    server = cluster.server("worker0")
    with tf.Graph(server.host).as_default():
        (a, b), saver = variables()
        with tf.Session(server.target) as session:
            session.run([a.initializer, b.initializer])
            path = saver.save(session, str(tmp_path / "model"), global_step=3, write_meta_graph=False)
            servers = {"/job:ps/task:0", "/job:ps/task:1"}
            assert tasks_of(session, saver, "SaveV2") == tasks_of(session, saver, "RestoreV2") == servers
            assert tasks_of(session, saver, "MergeV2Checkpoints") == {"/job:worker/task:0"}
            session.run([a.assign([0.0, 0.0]), b.assign([0.0, 0.0])])
            saver.restore(session, path)
            assert [v.tolist() for v in session.run([a, b])] == [[1.0, 2.0], [2.0, 2.0]]
    assert sorted(tf.train.load_checkpoint(path).get_variable_to_shape_map()) == ["v0", "v1"]
    assert not [name for name in os.listdir(tmp_path) if "probe" in name or "_temp" in name]


def test_a_save_is_unseen_where_a_task_dies(cluster, tmp_path):
    server = cluster.server("worker0")
    with tf.Graph(server.host).as_default():
        (a, b), saver = variables()
        with tf.Session(server.target) as session:
            session.run([a.initializer, b.initializer])
            first = saver.save(session, str(tmp_path / "model"), global_step=1, write_meta_graph=False)
            cluster.kill("ps1")
            with pytest.raises(tf.errors.UnavailableError):
                saver.save(session, str(tmp_path / "model"), global_step=2, write_meta_graph=False)
            cluster.start("ps1")
        assert tf.train.latest_checkpoint(str(tmp_path)) == first
        assert not tf.train.checkpoint_exists(str(tmp_path / "model-2"))
        with tf.Session(server.target) as session:
            saver.restore(session, first)
            assert session.run(b).tolist() == [2.0, 2.0]


def test_a_save_is_unseen_where_the_disk_of_a_task_is_full(cluster, tmp_path, monkeypatch):
    server = cluster.server("worker0")
    with tf.Graph(server.host).as_default():
        (a, b), saver = variables()
        with tf.Session(server.target) as session:
            session.run([a.initializer, b.initializer])
            first = saver.save(session, str(tmp_path / "model"), global_step=1, write_meta_graph=False)
            session.run(b.assign([7.0, 7.0]))
            synced, shards = os.fsync, []

            def refuse(file):
                """The second shard that is written finds no room."""
                shards.append(file)
                if len(shards) == 2:
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                synced(file)

            with monkeypatch.context() as patch:
                patch.setattr(os, "fsync", refuse)
                with pytest.raises(tf.errors.ResourceExhaustedError, match="No space left on device") as caught:
                    saver.save(session, str(tmp_path / "model"), global_step=2, write_meta_graph=False)
            assert "/job:ps/task:" in "".join(caught.value.__notes__)
            assert tf.train.latest_checkpoint(str(tmp_path)) == first
            assert not tf.train.checkpoint_exists(str(tmp_path / "model-2"))
            saver.restore(session, first)
            assert session.run(b).tolist() == [2.0, 2.0]
            third = saver.save(session, str(tmp_path / "model"), global_step=3, write_meta_graph=False)
            assert tf.train.latest_checkpoint(str(tmp_path)) == third


def test_tasks_without_a_common_folder_are_named(cluster, tmp_path, monkeypatch):
    """The second server sees another file system than the others: what they write is not there."""
    server = cluster.server("worker0")
    with tf.Graph(server.host).as_default():
        (a, b), saver = variables()
        with tf.Session(server.target) as session:
            session.run([a.initializer, b.initializer])
            task = cluster.server("ps1")._task
            run = task.run

            def elsewhere(*arguments, **named):
                found = Future()
                found.set_result([v[:0] if v.dtype.kind in "OS" else v for v in run(*arguments, **named)])
                return found

            monkeypatch.setattr(task, "start", elsewhere)
            with pytest.raises(tf.errors.FailedPreconditionError, match="/job:ps/task:1"):
                saver.save(session, str(tmp_path / "model"), write_meta_graph=False)
    assert not os.listdir(tmp_path)
