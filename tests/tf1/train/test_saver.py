"""tf.train.Saver: what is saved is restored, what is kept, and what is said when it can't be."""

from __future__ import annotations

import errno
import logging
import os
import pathlib
import threading
import tracemalloc
from concurrent.futures import ThreadPoolExecutor, wait

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import (
    ArgumentTypeError,
    DataLossError,
    DTypeError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
    ResourceExhaustedError,
    ShapeError,
    UninitializedError,
)
from graphdock_storage.checkpoint import files


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


@pytest.fixture
def sess():
    with tf.Session() as session:
        yield session


def program():
    """Variables with slots, one in parts, and a step; of several dtypes."""
    v = tf.get_variable("v", [3, 2])
    p = tf.get_variable("p", [5, 2], partitioner=tf.fixed_size_partitioner(2))
    words = tf.get_variable("words", initializer=tf.constant(["a", "bc"]), trainable=False)
    half = tf.get_variable("half", initializer=tf.constant([1.5, 2.5], tf.bfloat16), trainable=False)
    step = tf.train.get_or_create_global_step()
    loss = tf.reduce_sum(tf.square(v)) + tf.reduce_sum(tf.square(p)) + tf.reduce_sum(tf.cast(half, tf.float32))
    train = tf.train.AdamOptimizer(0.1).minimize(loss, global_step=step)
    change = [words.assign(["x", "yy"]), half.assign_add(half)]
    return train, change


def values(sess):
    return [np.asarray(v).tolist() for v in sess.run(tf.global_variables())]


def test_what_is_saved_is_restored_bitwise(tmp_path, sess):
    train, change = program()
    saver = tf.train.Saver()
    sess.run(tf.global_variables_initializer())
    sess.run(train)
    before = values(sess)
    path = saver.save(sess, str(tmp_path / "m"), global_step=tf.train.get_global_step())
    assert path == str(tmp_path / "m-1")
    sess.run([train, change])
    assert values(sess) != before
    saver.restore(sess, path)
    assert values(sess) == before
    with tf.Session() as fresh:  # nothing is initialised
        saver.restore(fresh, path)
        assert values(fresh) == before


def test_slots_of_parts_are_parts_of_slots(tmp_path, sess):
    """As TensorFlow saves them; so that another partitioning restores them."""
    program()
    sess.run(tf.global_variables_initializer())
    path = tf.train.Saver().save(sess, str(tmp_path / "m"))
    assert dict(tf.train.list_variables(path)) == {
        "beta1_power": [],
        "beta2_power": [],
        "global_step": [],
        "half": [2],
        "p": [5, 2],
        "p/Adam": [5, 2],
        "p/Adam_1": [5, 2],
        "v": [3, 2],
        "v/Adam": [3, 2],
        "v/Adam_1": [3, 2],
        "words": [2],
    }


@pytest.mark.parametrize("parts", [None, 1, 3, 5])
def test_another_partitioning_is_restored(tmp_path, sess, parts):
    p = tf.get_variable("p", [5, 2], partitioner=tf.fixed_size_partitioner(2))
    sess.run(p.assign(np.arange(10.0).reshape(5, 2)))
    path = tf.train.Saver([p]).save(sess, str(tmp_path / "m"))
    with tf.Graph().as_default(), tf.Session() as other:
        cut = None if parts is None else tf.fixed_size_partitioner(parts)
        q = tf.get_variable("p", [5, 2], partitioner=cut)
        tf.train.Saver({"p": q}).restore(other, path)
        assert other.run(tf.convert_to_tensor(q)).tolist() == np.arange(10.0).reshape(5, 2).tolist()


def test_parts_along_another_axis(tmp_path, sess):
    p = tf.get_variable("p", [2, 5], partitioner=tf.fixed_size_partitioner(2, axis=1))
    sess.run(p.assign(np.arange(10.0).reshape(2, 5)))
    path = tf.train.Saver().save(sess, str(tmp_path / "m"))
    assert tf.train.load_variable(path, "p").tolist() == np.arange(10.0).reshape(2, 5).tolist()


def test_sharded_by_device(tmp_path):
    with tf.Session(config=tf.SessionConfig(device_count={"cpu": 2})) as sess:
        with tf.device("/cpu:0"):
            a = tf.get_variable("a", initializer=[1.0, 2.0])
        with tf.device("/cpu:1"):
            b = tf.get_variable("b", initializer=[3.0])
        saver = tf.train.Saver(sharded=True)
        sess.run(tf.global_variables_initializer())
        path = saver.save(sess, str(tmp_path / "m"), global_step=7)
        kinds = sorted(n.split(".")[1] for n in os.listdir(tmp_path) if "." in n)
        assert kinds == ["data-00000-of-00002", "data-00001-of-00002", "index", "meta"]
        sess.run([a.assign([0.0, 0.0]), b.assign([0.0])])
        saver.restore(sess, path)
        assert sess.run([a, b])[0].tolist() == [1, 2] and sess.run(b).tolist() == [3]


def test_a_dict_renames_and_takes_a_part(tmp_path, sess):
    a, b = tf.get_variable("a", initializer=[1.0]), tf.get_variable("b", initializer=[2.0])
    sess.run(tf.global_variables_initializer())
    path = tf.train.Saver({"old/a": a, "old/b": b}).save(sess, str(tmp_path / "m"))
    assert tf.train.list_variables(path) == [("old/a", [1]), ("old/b", [1])]
    tf.train.Saver({"old/a": b}).restore(sess, path)
    assert sess.run([a, b])[1].tolist() == [1]


def test_reshape(tmp_path, sess):
    a = tf.get_variable("a", initializer=np.arange(6, dtype=np.float32))
    b = tf.get_variable("b", [2, 3])
    sess.run(tf.global_variables_initializer())
    path = tf.train.Saver([a]).save(sess, str(tmp_path / "m"))
    with pytest.raises(ShapeError, match="'a'"):
        tf.train.Saver({"a": b}).restore(sess, path)
    tf.train.Saver({"a": b}, reshape=True, restore_sequentially=True).restore(sess, path)
    assert sess.run(b).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_a_variable_of_any_shape(tmp_path, sess):
    a = tf.Variable(tf.placeholder_with_default([1.0, 2.0], [None]), validate_shape=False, name="a")
    sess.run(a.initializer)
    saver = tf.train.Saver()
    path = saver.save(sess, str(tmp_path / "m"))
    sess.run(a.assign([3.0, 3.0]))
    saver.restore(sess, path)
    assert sess.run(a).tolist() == [1, 2]


def test_objects_of_several_tensors(tmp_path, sess):
    table = [tf.get_variable("keys", initializer=[1, 2]), tf.get_variable("counts", initializer=[3, 4])]

    class Table(tf.train.SaveableObject):
        def __init__(self):
            specs = [tf.train.SaveSpec(t, "", f"table/{t.op.name}") for t in table]
            super().__init__(table[0].op, specs, "table")

        def restore(self, restored_tensors, restored_shapes):
            return tf.group(*(t.assign(r) for t, r in zip(table, restored_tensors, strict=True)))

    tf.add_to_collection(tf.GraphKeys.SAVEABLE_OBJECTS, Table())
    saver = tf.train.Saver([*tf.get_collection(tf.GraphKeys.SAVEABLE_OBJECTS)])
    sess.run(tf.global_variables_initializer())
    path = saver.save(sess, str(tmp_path / "m"))
    sess.run([t.assign([0, 0]) for t in table])
    saver.restore(sess, path)
    assert sess.run(table)[1].tolist() == [3, 4] and tf.train.list_variables(path)[0] == ("table/counts", [2])


@pytest.mark.plain
def test_saving_takes_no_memory_of_the_size_of_the_variables(tmp_path, sess):
    """Reads are the variables' own storage, and go to the file from there."""
    for i in range(4):
        tf.get_variable(f"v{i}", [1 << 20])
    saver = tf.train.Saver()
    sess.run(tf.global_variables_initializer())
    saver.save(sess, str(tmp_path / "m"))
    tracemalloc.start()
    saver.save(sess, str(tmp_path / "m"))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 20, "16 MiB are saved"


# -- what is kept -------------------------------------------------------------------------------------------------------


@pytest.fixture
def one(sess):
    v = tf.get_variable("v", initializer=[1.0])
    sess.run(v.initializer)
    return v


def steps(folder):
    return sorted(int(n.removesuffix(".index").rpartition("-")[2]) for n in os.listdir(folder) if n.endswith(".index"))


def test_the_last_few_are_kept(tmp_path, sess, one):
    saver = tf.train.Saver(max_to_keep=2)
    paths = [saver.save(sess, str(tmp_path / "m"), global_step=i) for i in (1, 2, 3)]
    assert saver.last_checkpoints == paths[1:] and steps(tmp_path) == [2, 3]
    assert len(os.listdir(tmp_path)) == 7
    state = tf.train.get_checkpoint_state(str(tmp_path))
    assert state.model_checkpoint_path == paths[2] and state.all_model_checkpoint_paths == paths[1:]
    assert tf.train.latest_checkpoint(str(tmp_path)) == paths[2]
    saver.save(sess, str(tmp_path / "m"), global_step=2)  # again: now the newest
    assert saver.last_checkpoints == [paths[2], paths[1]] and steps(tmp_path) == [2, 3]


@pytest.mark.parametrize("limit", [None, 0])
def test_without_a_limit_all_stay_and_the_last_is_listed(tmp_path, sess, one, limit):
    saver = tf.train.Saver(max_to_keep=limit)
    paths = [saver.save(sess, str(tmp_path / "m"), global_step=i) for i in range(7)]
    assert saver.last_checkpoints == paths[-1:] and steps(tmp_path) == list(range(7))


def test_one_of_so_many_hours_is_kept_for_good(tmp_path, sess, one, monkeypatch):
    from graphdock_tf1.train import saver as module

    now = [1000.0]
    monkeypatch.setattr(module.time, "time", lambda: now[0])
    saver = tf.train.Saver(max_to_keep=1, keep_checkpoint_every_n_hours=1.0)
    for step, at in enumerate([1000, 2000, 4700, 4800, 8300, 8400, 8500]):
        now[0] = float(at)
        saver.save(sess, str(tmp_path / "m"), global_step=step)
    assert steps(tmp_path) == [2, 4, 6], "TensorFlow's"


def test_a_saver_that_starts_again_goes_on_counting(tmp_path, sess, one):
    first = tf.train.Saver(max_to_keep=2)
    paths = [first.save(sess, str(tmp_path / "m"), global_step=i) for i in (1, 2)]
    second = tf.train.Saver(max_to_keep=2)
    second.recover_last_checkpoints(tf.train.get_checkpoint_state(str(tmp_path)).all_model_checkpoint_paths + ["gone"])
    assert second.last_checkpoints == paths
    second.save(sess, str(tmp_path / "m"), global_step=3)
    assert steps(tmp_path) == [2, 3]
    second.set_last_checkpoints([str(tmp_path / "m-2")])
    assert second.last_checkpoints == [str(tmp_path / "m-2")]
    second.set_last_checkpoints_with_time([(str(tmp_path / "m-3"), 5.0)])
    assert second.last_checkpoints == [str(tmp_path / "m-3")]
    with pytest.raises(ArgumentTypeError):
        second.set_last_checkpoints("m-3")


def test_names_of_files(tmp_path, sess, one, monkeypatch):
    padded = tf.train.Saver(pad_step_number=True)
    assert padded.save(sess, str(tmp_path / "m"), global_step=12) == str(tmp_path / "m-00000012")
    assert padded.save(sess, tmp_path / "m", global_step=np.int64(3), latest_filename="list", write_state=True)
    assert tf.train.latest_checkpoint(str(tmp_path), "list") == str(tmp_path / "m-00000003")
    monkeypatch.chdir(tmp_path)
    relative = tf.train.Saver(save_relative_paths=True)
    relative.save(sess, str(tmp_path / "sub" / "m"))
    assert 'model_checkpoint_path: "m"' in (tmp_path / "sub" / "checkpoint").read_text()
    os.rename(tmp_path / "sub", tmp_path / "moved")
    relative.restore(sess, tf.train.latest_checkpoint("moved"))
    assert tf.train.Saver().save(sess, "here", write_state=False) == "here"
    assert not pathlib.Path("checkpoint").read_text().count("here")


# -- as data, and built late --------------------------------------------------------------------------------------------


def test_a_saver_is_made_again_of_its_data(tmp_path, sess, one):
    saver = tf.train.Saver(name="x")
    path = saver.save(sess, str(tmp_path / "m"))
    again = tf.train.Saver.from_proto(saver.to_proto())
    sess.run(one.assign([5.0]))
    again.restore(sess, path)
    assert sess.run(one).tolist() == [1]
    inner = saver.to_proto("x")
    assert inner.restore_op_name == "restore_all" and saver.to_proto("y") is None
    assert tf.train.Saver.from_proto(inner, "x").as_saver_def() == saver.as_saver_def()


def test_building_late(tmp_path, sess):
    saver = tf.train.Saver(defer_build=True)
    with pytest.raises(FailedPreconditionError, match="build"):
        saver.save(sess, str(tmp_path / "m"))
    v = tf.get_variable("v", initializer=[1.0])
    saver.build()
    saver.build()
    sess.run(v.initializer)
    assert saver.save(sess, str(tmp_path / "m")) and tf.train.list_variables(str(tmp_path / "m")) == [("v", [1])]


def test_a_graph_without_variables(tmp_path, sess):
    with pytest.raises(InvalidArgumentError, match="no variables"):
        tf.train.Saver()
    saver = tf.train.Saver(allow_empty=True)
    assert saver.save(sess, str(tmp_path / "m")) is None and saver.restore(sess, None) is None
    assert os.listdir(tmp_path) == []


# -- errors -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "make"),
    [
        (InvalidArgumentError, lambda v: tf.train.Saver({"a": v, "b": v})),
        (InvalidArgumentError, lambda v: tf.train.Saver([v, v])),
        (InvalidArgumentError, lambda v: tf.train.Saver([])),
        (TypeError, lambda v: tf.train.Saver(3)),
        (TypeError, lambda v: tf.train.Saver("v")),
        (TypeError, lambda v: tf.train.Saver(v)),
        (TypeError, lambda v: tf.train.Saver([tf.constant(1.0)])),
        (TypeError, lambda v: tf.train.Saver({"v": tf.constant(1.0)})),
        (TypeError, lambda v: tf.train.Saver({1: v})),
        (TypeError, lambda v: tf.train.Saver({"v": [v]})),
        (TypeError, lambda v: tf.train.Saver(saver_def=3)),
        (InvalidArgumentError, lambda v: tf.train.Saver([v], defer_build=True)),
        (InvalidArgumentError, lambda v: tf.train.Saver(builder=3)),
    ],
)
def test_what_is_no_list_of_variables_is_refused(one, error, make):
    with pytest.raises(error):
        make(one)


def test_arguments_of_save(tmp_path, sess, one):
    saver = tf.train.Saver()
    with pytest.raises(TypeError, match="session"):
        saver.save(3, str(tmp_path / "m"))
    with pytest.raises(ValueError, match="path components"):
        saver.save(sess, str(tmp_path / "m"), latest_filename="a/b")
    with pytest.raises(ValueError, match="collides"):
        saver.save(sess, str(tmp_path / "checkpoint"))
    with pytest.raises(ValueError, match="nor/here"):
        saver.save(sess, str(tmp_path / "nor" / "here" / "m"))
    assert os.listdir(tmp_path) == []


def test_nothing_is_written_of_a_variable_without_a_value(tmp_path, sess):
    tf.get_variable("v", [2])
    with pytest.raises(UninitializedError, match="v"):
        tf.train.Saver().save(sess, str(tmp_path / "m"))
    assert os.listdir(tmp_path) == []


def test_restoring_what_is_not_there(tmp_path, sess, one):
    saver = tf.train.Saver()
    for path in (str(tmp_path / "none"), str(tmp_path), ""):
        with pytest.raises(ValueError, match="there is no checkpoint"):
            saver.restore(sess, path)
    with pytest.raises(ValueError, match="None"):
        saver.restore(sess, tf.train.latest_checkpoint(str(tmp_path)))


def changed(kind, tmp_path, path):
    (data,) = tmp_path.glob("*.safetensors")
    if kind == "a byte":
        data.write_bytes(data.read_bytes()[:-1] + b"\x55")
    elif kind == "cut off":
        os.truncate(data, 20)
    elif kind == "gone":
        data.unlink()
    elif kind == "index":
        pathlib.Path(path + ".index").write_bytes(b"{}")


@pytest.mark.parametrize(
    ("kind", "error", "make"),
    [
        ("missing", NotFoundError, lambda: tf.get_variable("weight", [2, 2])),
        ("shape", ShapeError, lambda: tf.get_variable("weights", [2, 3])),
        ("dtype", DTypeError, lambda: tf.get_variable("weights", [2, 2], tf.float64)),
        *(
            (kind, DataLossError, lambda: tf.get_variable("weights", [2, 2]))
            for kind in ("a byte", "cut off", "gone", "index")
        ),
    ],
)
def test_a_checkpoint_that_does_not_fit_changes_no_variable(tmp_path, sess, kind, error, make):
    tf.get_variable("a", initializer=[1.0])
    tf.get_variable("weights", [2, 2])
    sess.run(tf.global_variables_initializer())
    path = tf.train.Saver().save(sess, str(tmp_path / "m"))
    changed(kind, tmp_path, path)
    with tf.Graph().as_default(), tf.Session() as other:
        a = tf.get_variable("a", initializer=[9.0])
        make()
        other.run(tf.global_variables_initializer())
        with pytest.raises(error) as caught:
            tf.train.Saver().restore(other, path)
        assert path in str(caught.value)
        if kind in ("missing", "shape", "dtype", "a byte"):
            assert "weight" in str(caught.value)
        if kind == "missing":
            assert "did you mean 'weights'" in str(caught.value)
        assert other.run(a).tolist() == [9]


@pytest.mark.parametrize(
    ("code", "error"), [(errno.ENOSPC, ResourceExhaustedError), (errno.EACCES, PermissionDeniedError)]
)
def test_a_disk_that_refuses_leaves_the_checkpoint_before(tmp_path, sess, one, monkeypatch, code, error):
    saver = tf.train.Saver()
    before = saver.save(sess, str(tmp_path / "m"), global_step=1)
    sess.run(one.assign([2.0]))

    def refuse(*args):
        raise OSError(code, os.strerror(code))

    with monkeypatch.context() as patch:
        patch.setattr(files.os, "fsync", refuse)
        with pytest.raises(error, match="m-2"):
            saver.save(sess, str(tmp_path / "m"), global_step=2)
    assert tf.train.latest_checkpoint(str(tmp_path)) == before and steps(tmp_path) == [1]
    saver.restore(sess, before)
    assert sess.run(one).tolist() == [1]
    assert saver.save(sess, str(tmp_path / "m"), global_step=2), "and the session goes on"


def test_an_old_checkpoint_that_cant_be_removed_stays_until_a_later_save(tmp_path, sess, one, monkeypatch, caplog):
    saver = tf.train.Saver(max_to_keep=1)
    saver.save(sess, str(tmp_path / "m"), global_step=1)
    from graphdock_tf1.train import saver as module

    def refuse(*args, **more):
        raise PermissionDeniedError("no")

    with monkeypatch.context() as patch:
        patch.setattr(module, "remove_checkpoint", refuse)
        for step in (2, 3):
            assert saver.save(sess, str(tmp_path / "m"), global_step=step)
    assert caplog.text.count("an old checkpoint stays until a later save") == 2  # once for each
    assert tf.train.checkpoint_exists(str(tmp_path / "m-1")) and tf.train.checkpoint_exists(str(tmp_path / "m-2"))
    saver.save(sess, str(tmp_path / "m"), global_step=1)  # one of them is current again
    assert tf.train.checkpoint_exists(str(tmp_path / "m-1"))
    assert not any(tf.train.checkpoint_exists(str(tmp_path / f"m-{step}")) for step in (2, 3))


def test_of_two_savers_of_one_path_the_second_waits_and_no_part_is_mixed(tmp_path, monkeypatch):
    """The second begins when the first has written one of its two parts."""
    path, sync = str(tmp_path / "model"), os.fsync
    begun, waits, saved = threading.Event(), threading.Event(), []

    def synced(file):
        sync(file)
        if threading.current_thread().name == "first" and not begun.is_set():
            begun.set()
            assert waits.wait(30)

    class Waits(logging.Handler):
        def emit(self, record):
            if "waiting for it" in record.getMessage():
                waits.set()

    def save(value):
        with tf.Graph().as_default(), tf.Session(config=tf.SessionConfig(device_count={"cpu": 2})) as sess:
            made = []
            for number in (0, 1):
                with tf.device(f"/cpu:{number}"):
                    made.append(tf.Variable(value, name=f"v{number}"))
            sess.run(tf.global_variables_initializer())
            try:
                saved.append(tf.train.Saver(sharded=True).save(sess, path, write_meta_graph=False))
            finally:
                waits.set()

    monkeypatch.setattr(os, "fsync", synced)
    log, handler = logging.getLogger("graphdock"), Waits()
    log.addHandler(handler)
    try:
        threads = [threading.Thread(target=save, args=(v,), name=n) for v, n in ((1.0, "first"), (2.0, "second"))]
        threads[0].start()
        assert begun.wait(30)
        threads[1].start()
        for thread in threads:
            thread.join(60)
    finally:
        log.removeHandler(handler)
    assert saved == [path, path], "both have saved"
    found = tf.train.load_checkpoint(path)
    assert [found.get_tensor("v0"), found.get_tensor("v1")] == [2.0, 2.0]
    assert not [name for name in os.listdir(tmp_path) if "lock" in name or "_temp" in name]


@pytest.mark.parametrize("other", ["a save", "a save of values alone", "a removal"])
def test_what_another_saver_does_while_the_graph_is_written_does_not_take_its_draft(
    tmp_path, sess, one, monkeypatch, caplog, other
):
    path, replace, found = str(tmp_path / "m"), os.replace, []
    keeper = tf.train.Saver(max_to_keep=1)
    keeper.save(sess, path, global_step=1)

    def do():
        if other == "a removal":
            return keeper.save(sess, path, global_step=2, write_meta_graph=False)
        return tf.train.Saver.save(second, sess, path, 1, write_state=other == "a save", write_meta_graph=False)

    def replaced(source, target):
        if target.endswith("m-1.meta") and not found:
            found.append(pool.submit(do))
            while not found[0].done() and "waiting for it" not in caplog.text:
                wait(found, timeout=0.01)
        replace(source, target)

    first, second = tf.train.Saver(), tf.train.Saver()
    monkeypatch.setattr(os, "replace", replaced)
    with ThreadPoolExecutor(1) as pool:
        assert first.save(sess, path, global_step=1) == path + "-1"
    assert found[0].result() and tf.train.import_meta_graph(path + "-1.meta")
    assert tf.train.load_checkpoint(path + "-1").get_tensor("v") == 1.0
    assert not [name for name in os.listdir(tmp_path) if "lock" in name or ".tmp" in name]


def test_a_saver_that_waits_for_another_ends_with_the_sessions_limit(tmp_path, one):
    path = str(tmp_path / "model")
    with tf.Session(config=tf.SessionConfig(operation_timeout=0.02)) as sess:
        sess.run(tf.global_variables_initializer())
        with (
            files.held(path, suffix=".save.lock"),
            pytest.raises(FailedPreconditionError, match="model' is being written by another saver"),
        ):
            tf.train.Saver().save(sess, path)
        assert not tf.train.checkpoint_exists(path)


def test_a_save_removes_the_draft_of_the_graph_that_one_which_was_cut_off_left(tmp_path):
    path = str(tmp_path / "m")
    with tf.Graph().as_default():
        tf.get_variable("v", [2])
        saver = tf.train.Saver()
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            saver.save(sess, path)
            (tmp_path / "m.meta.0123abcd.tmp").write_bytes(b"half")
            (tmp_path / "m-1.meta.0123abcd.tmp").write_bytes(b"of another one")
            saver.save(sess, path)
    assert sorted(f.name for f in tmp_path.glob("*.tmp")) == ["m-1.meta.0123abcd.tmp"]
    assert (tmp_path / "m.meta").exists()
