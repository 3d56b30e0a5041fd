"""variable_scope, get_variable, partitioners and templates, as TensorFlow 1 answers."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest


def _dense():
    with tf.variable_scope(None, "dense"):
        return tf.get_variable("w", [1])


def _names():
    return [v.op.name for v in tf.global_variables()]


def test_default_names_are_counted_by_openings(session):
    def nested(outer):
        with tf.variable_scope(None, outer), tf.variable_scope(None, "layer"):
            return tf.get_variable("w", []).op.name

    assert [nested(n) for n in ("scope1", "scope1", "scope", "scope1")] == [
        "scope1/layer/w",
        "scope1_1/layer/w",
        "scope/layer/w",
        "scope1_2/layer/w",
    ]
    made = []
    for reuse in (None, True, tf.AUTO_REUSE):
        with tf.variable_scope("outer", reuse=reuse):
            made.append(_dense())
    assert made[0] is made[1] is made[2] and made[0].op.name == "outer/dense/w"


def test_two_empty_scopes_share_no_name(session):
    with tf.variable_scope("n", reuse=tf.AUTO_REUSE):
        with tf.variable_scope(None, "d") as a:
            pass
        with tf.variable_scope(None, "d") as b:
            pass
        with tf.variable_scope(a):
            x = tf.get_variable("w", [1])
        with tf.variable_scope(b):
            y = tf.get_variable("w", [1])
    assert (x.op.name, y.op.name) == ("n/d/w", "n/d_1/w")


def test_a_scope_is_changed_while_it_is_open(session):
    with tf.variable_scope("model") as scope:
        a = tf.get_variable("w", [1])
        scope.reuse_variables()
        assert tf.get_variable("w", [1]) is a and scope.reuse is True
        with tf.variable_scope("inner") as inner:
            assert inner.reuse is True
    with tf.variable_scope("more") as scope:
        scope.set_initializer(tf.ones_initializer())
        scope.set_dtype(tf.float64)
        scope.set_regularizer(lambda v: tf.reduce_sum(v))
        scope.set_caching_device("/cpu:0")
        scope.set_use_resource(True)
        b = tf.get_variable("b", [2])
        scope.set_partitioner(tf.fixed_size_partitioner(2))
        parts = tf.get_variable("p", [2])
    session.run(tf.global_variables_initializer())
    assert session.run(b).tolist() == [1.0, 1.0] and b.dtype == tf.float64 and len(parts) == 2
    assert len(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)) == 3
    assert [v.op.name for v in scope.trainable_variables()] == ["more/b", "more/p/part_0", "more/p/part_1"]
    tf.get_variable_scope().reuse_variables()
    with pytest.raises(ValueError):
        tf.get_variable("fresh", [1])


def test_a_scope_object_is_entered_again_as_often_as_one_likes(session):
    scope = tf.variable_scope("a")
    with scope:
        first = tf.get_variable("w", [1])
        with scope:
            second = tf.get_variable("w", [1])
    with scope, tf.variable_scope(tf.get_variable_scope(), reuse=True):
        assert tf.get_variable("w") is first
    assert (first.op.name, second.op.name) == ("a/w", "a/a/w")


def test_a_regularizer_gets_the_variable(session):
    seen = []
    tf.get_variable("w", [2], regularizer=lambda v: seen.append(v) or tf.reduce_sum(v, name="loss"))
    (loss,) = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
    assert isinstance(seen[0], tf.Variable) and seen[0].op.name == "w" and loss.op.name == "w/Regularizer/loss"


def test_custom_getters(session):
    calls = []

    def outer(getter, name, *args, **kwargs):
        calls.append(("outer", name, kwargs["shape"], kwargs["trainable"], kwargs["reuse"]))
        return getter(name, *args, **kwargs)

    def inner(getter, name, **kwargs):
        calls.append(("inner", name))
        return getter(name + "_0", **kwargs) + getter(name + "_1", **kwargs)

    with tf.variable_scope("s", custom_getter=outer):
        with tf.variable_scope("t", custom_getter=inner):
            total = tf.get_variable("w", [2], initializer=tf.ones_initializer())
        plain = tf.get_variable("w", [1])
    session.run(tf.global_variables_initializer())
    assert session.run(total).tolist() == [2.0, 2.0] and isinstance(plain, tf.Variable)
    assert [c[:2] for c in calls] == [("inner", "s/t/w"), ("outer", "s/t/w_0"), ("outer", "s/t/w_1"), ("outer", "s/w")]
    assert calls[-1][2:] == ([1], None, False) and _names() == ["s/t/w_0", "s/t/w_1", "s/w"]


def test_arguments_that_are_taken(session):
    v = tf.get_variable(
        "w",
        [2],
        caching_device="/cpu:0",
        validate_shape=True,
        use_resource=True,
        constraint=tf.abs,
        trainable=None,
        synchronization=None,
        aggregation=None,
    )
    assert v.constraint is tf.abs and v in tf.trainable_variables()
    with tf.variable_scope("s", constraint=tf.abs, use_resource=False, caching_device=None, auxiliary_name_scope=False):
        assert tf.get_variable("w", [1]).constraint is tf.abs and tf.constant(1).op.name == "Const"
    w = tf.Variable(1.0, True, None, True, None, "named")
    assert w.op.name == "named" and tf.Variable(1.0, expected_shape=[], constraint=None).shape == []
    local = tf.get_local_variable("l", [1])
    assert local in tf.local_variables() and local not in tf.global_variables() + tf.trainable_variables()
    assert tf.get_variable("made", initializer=lambda: tf.constant([1, 2])).dtype == tf.int32
    with pytest.raises(ValueError):
        tf.variable_scope(None, "d", reuse=True)


PARTITIONERS = {
    "fixed": (tf.fixed_size_partitioner(3), [5, 2], [3, 1]),
    "fixed, more than rows": (tf.fixed_size_partitioner(9), [5, 2], [5, 1]),
    "fixed on another axis": (tf.fixed_size_partitioner(2, axis=1), [5, 2], [1, 2]),
    "bytes": (tf.variable_axis_size_partitioner(16), [5, 2], [3, 1]),
    "bytes, less than a slice": (tf.variable_axis_size_partitioner(1), [5, 2], [5, 1]),
    "bytes, few shards": (tf.variable_axis_size_partitioner(16, max_shards=2), [5, 2], [2, 1]),
    "min and max": (tf.min_max_variable_partitioner(8, min_slice_size=10), [5, 2], [4, 1]),
    "min and max, one": (tf.min_max_variable_partitioner(8), [5, 2], [1, 1]),
}


@pytest.mark.parametrize(("partitioner", "shape", "answer"), PARTITIONERS.values(), ids=PARTITIONERS)
def test_partitioners(partitioner, shape, answer):
    assert partitioner(shape=tf.TensorShape(shape), dtype=tf.float32) == answer


def test_a_variable_in_parts(session):
    value = np.arange(10.0, dtype=np.float32).reshape(5, 2)
    with tf.variable_scope("s", partitioner=tf.fixed_size_partitioner(3)) as scope:
        v = tf.get_variable("v", initializer=tf.constant(value))
        w = tf.get_variable("w", [2, 5], partitioner=tf.fixed_size_partitioner(2, axis=1))
    assert [p.op.name for p in v] == ["s/v/part_0", "s/v/part_1", "s/v/part_2"]
    assert [p.shape.as_list() for p in (*v, *w)] == [[2, 2], [2, 2], [1, 2], [2, 3], [2, 2]]
    session.run(tf.global_variables_initializer())
    assert session.run(tf.convert_to_tensor(v)).tolist() == value.tolist() == session.run(v.as_tensor()).tolist()
    assert session.run(tf.matmul(v, w)).shape == (5, 5) and (v.shape, v.dtype, len(v)) == ([5, 2], tf.float32, 3)
    session.run(v.assign(value * 2))
    assert session.run(tf.identity(v)).tolist() == (value * 2).tolist()
    with tf.variable_scope(scope, reuse=True):
        assert tf.get_variable("v") is v
    with pytest.raises(ValueError), tf.variable_scope(scope):
        tf.get_variable("v", [5, 2])


def test_initializers_are_told_of_the_part(session):
    seen = []

    def initializer(shape, dtype, partition_info):
        seen.append((list(shape), partition_info.full_shape, partition_info.var_offset))
        return tf.zeros(shape, dtype)

    tf.get_variable("v", [3, 2], initializer=initializer, partitioner=tf.fixed_size_partitioner(2))
    assert seen == [([2, 2], [3, 2], [0, 0]), ([1, 2], [3, 2], [2, 0])]


def test_templates(session):
    def net(x, size):
        return x * tf.get_variable("w", [size], initializer=tf.ones_initializer())

    template = tf.make_template("net", net, size=2)
    a = template(tf.constant([1.0, 2.0]))
    b = template(tf.constant([3.0, 4.0]))
    other = tf.make_template("net", net, size=2)
    other(tf.constant([1.0, 2.0]))
    session.run(tf.global_variables_initializer())
    assert [v.tolist() for v in session.run([a, b])] == [[1.0, 2.0], [3.0, 4.0]]
    assert _names() == ["net/w", "net_1/w"] and template.name == "net" and other.variables[0].op.name == "net_1/w"
    assert template.trainable_variables == template.global_variables and template.local_variables == []
    now = tf.make_template("net", net, create_scope_now_=True, size=2)
    assert now.variable_scope.name == "net_2" and tf.make_template("later", net).var_scope is None

    def grows(names=iter("ab")):
        return tf.get_variable(next(names), [1])

    growing = tf.make_template("growing", grows)
    growing()
    with pytest.raises(ValueError):
        growing()


def test_counting_up_to_a_limit(session):
    v = tf.Variable(0)
    up = tf.count_up_to(v, 2)
    session.run(v.initializer)
    assert [session.run(up), session.run(v.count_up_to(2))] == [0, 1]
    with pytest.raises(tf.errors.OutOfRangeError, match="reached its limit of 2"):
        session.run(up)
    assert session.run(v) == 2


def test_the_first_call_of_a_template_whose_scope_is_made_at_once_has_its_name():
    def net(x):
        return x * tf.get_variable("w", [1]) + 1.0

    later, now = tf.make_template("foo", net), tf.make_template("bar", net, create_scope_now_=True)
    x = tf.placeholder(tf.float32, [1])
    assert [later(x).name, later(x).name] == ["foo/add:0", "foo_1/add:0"]
    assert [now(x).name, now(x).name] == ["bar/add:0", "bar_1/add:0"]
    assert [v.name for v in tf.global_variables()] == ["foo/w:0", "bar/w:0"]
