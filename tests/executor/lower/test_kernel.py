"""A restore reads straight into the variables' memory, where nobody could tell; and no variable is ever half restored."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import DataLossError, UninitializedError
from graphdock_storage.checkpoint import parallel, reading

SHAPE = [30, 20]


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


@pytest.fixture(autouse=True)
def much(monkeypatch):
    monkeypatch.setattr(parallel, "_LITTLE", 1000)


@pytest.fixture
def straight(monkeypatch):
    """The names of the tensors that were read straight into variables."""
    names = []
    real = reading.SafetensorsCheckpoint.read_into

    def read_into(self, wanted):
        names.extend(name for name, _, _ in wanted)
        real(self, wanted)

    monkeypatch.setattr(reading.SafetensorsCheckpoint, "read_into", read_into)
    return names


def session(debug=False):
    return tf.Session(config=tf.SessionConfig(debug=debug))


@pytest.fixture
def saved(tmp_path):
    """A Saver of five variables, and a checkpoint in which each holds its number."""
    for i in range(3):
        tf.get_variable(f"v{i}", SHAPE, initializer=tf.constant_initializer(float(i)))
    tf.get_variable("parts", SHAPE, initializer=tf.constant_initializer(3.0), partitioner=tf.fixed_size_partitioner(2))
    tf.get_variable("step", [], tf.int64, initializer=tf.constant_initializer(4))
    tf.get_variable("words", initializer=tf.constant(["a", "bc"]))
    saver = tf.train.Saver()
    with session() as sess:
        sess.run(tf.global_variables_initializer())
        return saver, saver.save(sess, str(tmp_path / "m"))


def values(sess):
    return [np.asarray(v).tolist() for v in sess.run(tf.global_variables())]


def changed(sess):
    """Values that no checkpoint holds."""
    sess.run(tf.global_variables_initializer())
    for variable in tf.global_variables():
        if variable.dtype != tf.string:
            sess.run(variable.assign(tf.ones_like(variable) * 9, read_value=False))
    return values(sess)


def test_variables_lend_their_memory(saved, straight):
    saver, path = saved
    with session() as plain, session(debug=True) as watched:
        saver.restore(plain, path)
        assert sorted(straight) == ["parts", "parts", "step", "v0", "v1", "v2"], "all but the words"
        straight.clear()
        saver.restore(watched, path)
        assert not straight
        assert values(plain) == values(watched) and values(plain)[1][0][0] == 1.0
        before = changed(plain)
        saver.restore(plain, path)
        assert before != values(plain) == values(watched)


def test_what_others_of_the_step_read_is_copied(saved, straight):
    """One variable is read once it has its new value, and what the checkpoint holds of another is fetched."""
    saver, path = saved
    restore = tf.get_default_graph().get_operation_by_name("save/restore_all")
    with tf.control_dependencies([restore]):
        after = next(v for v in tf.global_variables() if v.op.name == "v1").read_value()
    (fetched,) = [o for o in tf.get_default_graph().get_operation_by_name("save/RestoreV2").outputs if o.shape == []]
    with session() as sess:
        changed(sess)
        feed = {saver.saver_def.filename_tensor_name: path}
        _, new, step = sess.run([restore, after, fetched], feed)
        assert (new == 1.0).all() and step == 4 and values(sess)[5] == 4
        assert sorted(straight) == ["parts", "parts", "v0", "v2"]


@pytest.mark.parametrize("name", ["v0", "v2", "parts"])
def test_a_damaged_tensor_leaves_every_variable_as_it_was(tmp_path, saved, name):
    saver, path = saved
    (data,) = tmp_path.glob("*.safetensors")
    number = {"v0": 0.0, "v2": 2.0, "parts": 3.0}[name]
    piece = np.float32(number).tobytes() * 200
    raw = data.read_bytes()
    assert piece in raw
    data.write_bytes(raw.replace(piece, piece[:-1] + b"\x01"))
    with session() as sess, session() as new:
        before = changed(sess)
        with pytest.raises(DataLossError, match=f"'{name}'"):
            saver.restore(sess, path)
        assert values(sess) == before
        with pytest.raises(DataLossError, match=f"'{name}'"):
            saver.restore(new, path)
        assert len(new.run(tf.report_uninitialized_variables())) == 7


def test_a_disk_that_fails_after_all_was_seen_leaves_no_half_values(saved, monkeypatch):
    """What was read once can't be read again: then the variables have no values, and say so."""
    saver, path = saved
    real = reading.SafetensorsCheckpoint._fill

    def fill(self, wanted, found):
        if wanted[0] == "v1":
            raise DataLossError("the file is cut off")
        real(self, wanted, found)

    with session() as sess:
        changed(sess)
        with monkeypatch.context() as patch:
            patch.setattr(reading.SafetensorsCheckpoint, "_fill", fill)
            with pytest.raises(DataLossError, match="cut off"):
                saver.restore(sess, path)
        with pytest.raises(UninitializedError, match="'v1'"):
            sess.run("v1:0")
        saver.restore(sess, path)
        assert values(sess)[1] == np.ones(SHAPE).tolist()


def test_checked_numbers_are_checked(tmp_path, straight):
    variable = tf.get_variable("v", SHAPE, initializer=tf.constant_initializer(np.nan))
    saver = tf.train.Saver()
    with session() as sess:
        sess.run(variable.initializer)
        path = saver.save(sess, str(tmp_path / "m"))
    config = tf.SessionConfig(debug=False, check_numerics=True)
    with tf.Session(config=config) as sess, pytest.raises(tf.errors.InvalidArgumentError, match="check_numerics"):
        saver.restore(sess, path)
    assert straight == ["v"]
