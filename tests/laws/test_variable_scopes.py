"""Default names of variable scopes are counted by openings of the scope."""

import graphdock as tf


def test_two_empty_scopes_of_one_default_name_have_names_of_their_own():
    names = []
    for _ in range(2):
        with tf.variable_scope(None, "fc") as scope:
            names.append(scope.name)
    assert names == ["fc", "fc_1"]


def test_default_names_begin_again_when_the_scope_around_them_is_entered_again():
    def net():
        with tf.variable_scope("net", reuse=tf.AUTO_REUSE):
            for _ in range(2):
                with tf.variable_scope(None, "fc"):
                    yield tf.get_variable("w", [1])

    first, second = list(net()), list(net())
    assert [v.name for v in first] == ["net/fc/w:0", "net/fc_1/w:0"]
    assert all(a is b for a, b in zip(first, second, strict=True))


def test_a_name_given_counts_for_the_default_names_after_it():
    with tf.variable_scope("fc"):
        pass
    with tf.variable_scope(None, "fc") as scope:
        assert scope.name == "fc_1"
    with tf.variable_scope("fc") as scope, tf.variable_scope(None, "inner") as inner:
        assert (scope.name, inner.name) == ("fc", "fc/inner")


def test_a_scope_that_is_entered_again_counts_for_nothing_where_it_is():
    with tf.variable_scope("net") as net, tf.variable_scope(None, "fc"):
        pass
    with tf.variable_scope("net") as net:
        with tf.variable_scope(None, "fc") as first:
            pass
        with tf.variable_scope(net), tf.variable_scope(None, "fc") as second:
            pass
        with tf.variable_scope(None, "fc") as third:
            pass
    assert [s.name for s in (first, second, third)] == ["net/fc", "net/fc_1", "net/fc_1"]
