"""Variables that begin with a checkpoint's, some by the words of their rows: the values are TensorFlow 2.21's, written down."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest

ROWS = np.arange(8, dtype=np.float32).reshape(4, 2)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "old").write_text("apple\nbanana\nguava\norange\n")
    (tmp_path / "new").write_text("orange\nguava\nbanana\napple\nraspberry\nblueberry\n")
    with tf.Graph().as_default(), tf.Session() as session:
        tf.get_variable("e", initializer=ROWS)
        tf.get_variable("k", initializer=ROWS.reshape(2, 4))
        tf.get_variable("b", initializer=[5.0])
        tf.get_variable("n", initializer=3.0, trainable=False)
        session.run(tf.global_variables_initializer())
        tf.train.Saver().save(session, str(tmp_path / "m"))
    return tmp_path


@pytest.fixture
def info(folder):
    def made(size, buckets=0, *rest):
        return tf.train.VocabInfo(str(folder / "new"), size, buckets, str(folder / "old"), *rest)

    return made


def begun(*variables):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return [session.run(v).tolist() for v in variables]


def zeros(name, shape, **fields):
    return tf.get_variable(name, shape, initializer=tf.zeros_initializer(), **fields)


def test_rows_go_by_their_words_and_new_ones_begin_with_zeros(folder, info) -> None:
    e, b = tf.get_variable("e", [7, 2], initializer=tf.ones_initializer()), zeros("b", [1])
    tf.train.warm_start(str(folder / "m"), var_name_to_vocab_info={"e": info(6, 1)})
    assert begun(e, b) == [[[6, 7], [4, 5], [2, 3], [0, 1], [0, 0], [0, 0], [0, 0]], [5]]


def test_old_words_beyond_a_number_are_not_known_and_the_backup_initializer_gives_their_values(folder, info) -> None:
    e, b = zeros("e", [6, 2]), zeros("b", [1])
    infos = {"e": info(6, 0, 2, tf.constant_initializer(9.0))}
    tf.train.warm_start(str(folder), "e", infos)
    assert begun(e, b) == [[[9, 9], [9, 9], [2, 3], [0, 1], [9, 9], [9, 9]], [0]]


def test_columns_of_a_variable_that_had_another_name(folder, info) -> None:
    k = zeros("kk", [2, 6])
    tf.train.warm_start(str(folder), "k.*", {"kk": info(6, 0, -1, None, 1)}, {"kk": "k"})
    assert begun(k) == [[[3, 2, 1, 0, 0, 0], [7, 6, 5, 4, 0, 0]]]


@pytest.mark.parametrize("rows", [5, 3])
def test_fewer_rows_than_words_take_the_first(folder, info, rows) -> None:
    e = zeros("e", [rows, 2])
    tf.train.warm_start(str(folder), var_name_to_vocab_info={"e": info(9)})
    assert begun(e) == [[[6, 7], [4, 5], [2, 3], [0, 1], [0, 0]][:rows]]


def test_parts_of_a_variable(folder, info) -> None:
    e = tf.get_variable("e", [6, 2], partitioner=tf.fixed_size_partitioner(3))
    tf.train.warm_start(str(folder), var_name_to_vocab_info={"e": info(6)})
    assert begun(*e) == [[[6, 7], [4, 5]], [[2, 3], [0, 1]], [[0, 0], [0, 0]]]
    whole = tf.get_variable("e2", [4, 2], partitioner=tf.fixed_size_partitioner(2))
    tf.train.warm_start(str(folder), "e2", var_name_to_prev_var_name={"e2": "e"})
    assert begun(*whole) == [ROWS[:2].tolist(), ROWS[2:].tolist()]


@pytest.mark.parametrize(("chosen", "found"), [(".*", [5, 0]), (["n"], [0, 3]), (None, [0, 0])])
def test_which_variables_begin_so(folder, chosen, found) -> None:
    b, n = zeros("b", [1]), zeros("n", [], trainable=False)
    tf.train.warm_start(str(folder), chosen)
    assert [np.ravel(v)[0] for v in begun(b, n)] == found
    tf.train.warm_start(str(folder), [b, n])
    assert begun(b, n) == [[5], 3]


def test_only_variables_with_words(folder, info) -> None:
    e, b = zeros("e", [6, 2]), zeros("b", [1])
    tf.train.warm_start(str(folder), None, {"e": info(4)})
    assert begun(e, b) == [[[6, 7], [4, 5], [2, 3], [0, 1], [0, 0], [0, 0]], [0]]


@pytest.mark.parametrize("which", ["var_name_to_prev_var_name", "var_name_to_vocab_info"])
def test_names_that_mean_no_variable_are_refused(folder, info, which) -> None:
    zeros("bias", [1])
    with pytest.raises(ValueError, match=rf"in {which} that were not used: \['bais'\]. .*did you mean 'bias'"):
        tf.train.warm_start(
            str(folder), [tf.global_variables()[0]], **{which: {"bais": info(6) if "info" in which else "b"}}
        )


def test_errors_name_what_is_wrong(folder, info) -> None:
    zeros("q", [1])
    with pytest.raises(ValueError, match="must be a `list` or `str`"):
        tf.train.warm_start(str(folder), 3)
    with pytest.raises(tf.errors.NotFoundError, match="no variable 'q'"):
        tf.train.warm_start(str(folder))
    with pytest.raises(tf.errors.NotFoundError, match="no variable 'q'"):
        tf.train.warm_start(str(folder), var_name_to_vocab_info={"q": info(6)})


def test_an_estimator_begins_with_what_settings_say(folder, tmp_path) -> None:
    def model(features, labels, mode):
        w = tf.get_variable("w", [1], initializer=tf.zeros_initializer())
        loss = tf.reduce_sum(w * features)
        step = tf.train.get_global_step()
        return tf.estimator.EstimatorSpec(mode, w, loss, step.assign_add(1))

    settings = tf.estimator.WarmStartSettings(str(folder), "w", var_name_to_prev_var_name={"w": "b"})
    estimator = tf.estimator.Estimator(model, str(tmp_path / "model"), warm_start_from=settings)
    estimator.train(lambda: (tf.constant(1.0), tf.constant(1.0)), steps=1)
    assert estimator.get_variable_value("w").tolist() == [5]
    with pytest.raises(ValueError, match="must be a string or a WarmStartSettings"):
        tf.estimator.Estimator(model, warm_start_from=3)
    with pytest.raises(ValueError, match="MUST be set"):
        tf.estimator.WarmStartSettings("")
