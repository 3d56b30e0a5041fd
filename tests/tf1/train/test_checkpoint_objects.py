"""tf.train.Checkpoint, CheckpointManager and checkpoints_iterator: names, what goes where, what is kept, and waiting."""

from __future__ import annotations

import os

import graphdock as tf
import pytest
from graphdock.errors import ArgumentTypeError, FailedPreconditionError, InvalidArgumentError, NotFoundError


@pytest.fixture
def sess():
    with tf.Graph().as_default(), tf.Session() as session:
        yield session


@pytest.fixture
def model(sess):
    v = tf.get_variable("v", initializer=[1.0, 2.0])
    w = tf.get_variable("w", initializer=3.0)
    optimizer = tf.train.AdamOptimizer(0.1)
    train = optimizer.minimize(tf.reduce_sum(v) * w)
    return v, w, optimizer, train


VALUE = "/.ATTRIBUTES/VARIABLE_VALUE"


def test_names_are_tensorflows(tmp_path, sess, model):
    """Those that TensorFlow 2.15 writes for the same objects, and its list of checkpoints."""
    v, w, optimizer, _ = model
    checkpoint = tf.train.Checkpoint(v=v, inner=tf.train.Checkpoint(w=w), many=[v, w], optimizer=optimizer)
    checkpoint.restore(None).initialize_or_restore(sess)
    assert checkpoint.save(str(tmp_path / "m"), session=sess) == str(tmp_path / "m-1")
    path = checkpoint.save(str(tmp_path / "m"))
    assert [name.removesuffix(VALUE) for name, _ in tf.train.list_variables(path)] == [
        "inner/w",
        "inner/w/.OPTIMIZER_SLOT/optimizer/m",
        "inner/w/.OPTIMIZER_SLOT/optimizer/v",
        "optimizer/beta1_power",
        "optimizer/beta2_power",
        "save_counter",
        "v",
        "v/.OPTIMIZER_SLOT/optimizer/m",
        "v/.OPTIMIZER_SLOT/optimizer/v",
    ]
    text = (tmp_path / "checkpoint").read_text()
    assert text == 'model_checkpoint_path: "m-2"\nall_model_checkpoint_paths: "m-2"\n'
    assert sess.run(checkpoint.save_counter) == 2


def test_values_go_where_their_names_are(tmp_path, sess, model):
    v, w, optimizer, train = model
    sess.run(tf.global_variables_initializer())
    sess.run(train)
    parts = tf.get_variable("parts", [4], partitioner=tf.fixed_size_partitioner(2), initializer=tf.ones_initializer())
    sess.run([p.initializer for p in parts])
    saved = {"v": v, "model": {"w": w, "parts": parts}, "optimizer": optimizer}
    path = tf.train.Checkpoint(**saved).write(str(tmp_path / "m"), sess)
    before = sess.run([v, w, optimizer.get_slot(v, "m"), *parts])
    with tf.Graph().as_default(), tf.Session() as other:
        a, b, c = (tf.get_variable(n, initializer=i) for n, i in (("a", [0.0, 0.0]), ("b", 0.0), ("c", [9.0] * 4)))
        status = tf.train.Checkpoint(v=a, model={"w": b, "parts": c}).restore(path)
        status.assert_existing_objects_matched().expect_partial().run_restore_ops()
        assert [x.tolist() for x in other.run([a, b, c])] == [before[0].tolist(), float(before[1]), [1.0] * 4]
        with pytest.raises(AssertionError, match=r"nothing takes these values .*optimizer/beta1_power"):
            status.assert_consumed()
        new = tf.get_variable("new", initializer=7.0)
        status = tf.train.Checkpoint(v=a, model={"w": new, "weights": b}).restore(path)
        other.run(b.assign(5.0))
        status.initialize_or_restore()
        assert other.run(new) == before[1] and other.run(b) == 0.0, "one has a value in it, the other is initialised"
        with pytest.raises(AssertionError, match="has no model/weights/.ATTRIBUTES"):
            status.assert_existing_objects_matched()
    sess.run(train)
    tf.train.Checkpoint(**saved).restore(path).assert_consumed().run_restore_ops(sess)
    assert all(
        (x == y).all() for x, y in zip(sess.run([v, w, optimizer.get_slot(v, "m"), *parts]), before, strict=True)
    )


def test_what_is_refused(tmp_path, model):
    v = model[0]
    with pytest.raises(ArgumentTypeError, match="can't save 'v'"):
        tf.train.Checkpoint(v=3)
    with pytest.raises(ArgumentTypeError, match="can't save 'many/1'"):
        tf.train.Checkpoint().many = [v, "w"]
    with pytest.raises(NotFoundError, match="there is no checkpoint"):
        tf.train.Checkpoint(v=v).restore(str(tmp_path / "none"))
    with pytest.raises(FailedPreconditionError, match="the path is None"):
        tf.train.Checkpoint(v=v).restore(None).run_restore_ops()
    checkpoint = tf.train.Checkpoint()
    with tf.Graph().as_default():
        checkpoint = tf.train.Checkpoint(v=tf.get_variable("v", initializer=1.0))
    with pytest.raises(InvalidArgumentError, match="max_to_keep must be positive"):
        tf.train.CheckpointManager(checkpoint, str(tmp_path), max_to_keep=0)


def test_a_checkpoint_needs_a_session(tmp_path):
    with tf.Graph().as_default(), pytest.raises(FailedPreconditionError, match="needs a session"):
        tf.train.Checkpoint(v=tf.get_variable("v", initializer=1.0)).save(str(tmp_path / "m"))


def test_a_manager_keeps_the_last_ones_and_goes_on(tmp_path, sess, model, monkeypatch):
    from graphdock_tf1.train import checkpoint_manager

    now = [1e9]
    monkeypatch.setattr(checkpoint_manager.time, "time", lambda: now[0])
    folder, checkpoint = str(tmp_path / "kept"), tf.train.Checkpoint(v=model[0])
    sess.run(tf.global_variables_initializer())
    manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=2)
    assert manager.latest_checkpoint is None and manager.checkpoints == [] and manager.directory == folder
    assert [os.path.basename(manager.save()) for _ in range(3)] == ["ckpt-1", "ckpt-2", "ckpt-3"]
    manager.save(checkpoint_number=77)
    again = tf.train.CheckpointManager(checkpoint, folder, 2, keep_checkpoint_every_n_hours=1)
    assert (
        again.checkpoints == [f"{folder}/ckpt-3", f"{folder}/ckpt-77"]
        and again.latest_checkpoint == f"{folder}/ckpt-77"
    )
    assert sorted({n.partition(".")[0] for n in os.listdir(folder)}) == ["checkpoint", "ckpt-3", "ckpt-77"]
    for number in range(78, 82):
        now[0] += 1800.0
        again.save(number)
    assert sorted({n.partition(".")[0] for n in os.listdir(folder)}) == ["checkpoint", "ckpt-79", "ckpt-80", "ckpt-81"]
    again.save(80)
    assert again.checkpoints == [f"{folder}/ckpt-81", f"{folder}/ckpt-80"], "the last one that was saved stands last"
    again.save(81)
    state = tf.train.get_checkpoint_state(folder)
    assert state.all_model_checkpoint_paths == again.checkpoints == [f"{folder}/ckpt-80", f"{folder}/ckpt-81"]
    assert state.last_preserved_timestamp == 1e9 + 3600.0 and tf.train.latest_checkpoint(folder) == f"{folder}/ckpt-81"


def test_new_checkpoints_are_waited_for(tmp_path, sess, monkeypatch):
    from graphdock_tf1.train import checkpoints_iterator as module

    v = tf.get_variable("v", initializer=1.0)
    saver, waits, steps = tf.train.Saver(), [], iter([1, None, 2, 3])
    sess.run(v.initializer)
    clock = [0.0]

    def sleep(seconds):
        waits.append(seconds)
        clock[0] += seconds
        step = next(steps, None)
        if step is not None:
            saver.save(sess, str(tmp_path / "m"), global_step=step)

    monkeypatch.setattr(module.time, "sleep", sleep)
    monkeypatch.setattr(module.time, "monotonic", lambda: clock[0])
    found = tf.train.checkpoints_iterator(str(tmp_path), timeout=5)
    assert [next(found), next(found)] == [str(tmp_path / "m-1"), str(tmp_path / "m-2")] and waits == [1.0] * 3
    rest = tf.train.checkpoints_iterator(
        str(tmp_path), min_interval_secs=3, timeout=2, timeout_fn=lambda: len(waits) > 8
    )
    assert list(rest) == [str(tmp_path / "m-2"), str(tmp_path / "m-3")] and waits[3] == 3.0
    assert list(tf.train.checkpoints_iterator(str(tmp_path / "none"), timeout=0)) == []
