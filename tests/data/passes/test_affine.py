"""Affine forms of whole numbers of plans, beside what a step computes."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.shape import Symbol
from graphdock_data.passes.affine import Affine, Facts, Scopes, length_of


def test_forms_are_added_and_compared():
    dim, other = Symbol(True), Symbol(True)
    form = Affine(((dim, 2),), 3)
    assert form.plus(Affine(((other, 1),), -5)).minus(Affine(((dim, 2),))) == Affine(((other, 1),), -2)
    assert form.minus(form).is_zero() and form.times(-1).plus(form).is_zero() and form.known is None
    assert form.add(-3).at_least_zero() and not form.add(-4).at_least_zero() and not form.times(-1).at_least_zero()


@pytest.mark.parametrize("n", [-3, 0, 8])
def test_a_form_has_the_value_that_a_step_computes(planned, n):
    fed = tf.placeholder(tf.int32, [], name="n")
    y = tf.subtract(5 - (fed + 3), tf.identity(fed) - 2, name="y")
    graph, nodes = planned([y, fed * 1], {fed: n})
    scopes = Scopes(graph, Facts())
    form = scopes.affine(nodes["y"].outputs[0])
    (base,) = graph.inputs
    assert form == Affine(((base, -2),), 4)
    with tf.Session() as sess:
        assert sess.run(y, {fed: n}) == form.number + sum(factor * n for _, factor in form.terms)


def test_a_body_has_numbers_of_the_levels_around_it(planned):
    n = tf.placeholder(tf.int32, [], name="n")
    loop = tf.while_loop(lambda i: i < n - 1, lambda i: tf.while_loop(lambda j: j < n + 2, lambda j: [j + 1], [i]), [0])
    graph, nodes = planned(loop, {n: 3})
    scopes, found = Scopes(graph, Facts()), []
    for level in graph.all_graphs():
        found += [scopes.affine(node.inputs[1]) for node in level.nodes if node.op == "Less"]
    assert found == [Affine(((graph.inputs[0], 1),), -1), Affine(((graph.inputs[0], 1),), 2)]


def test_lengths_and_dims(planned):
    n = tf.placeholder(tf.int32, [], name="n")
    x = tf.placeholder(tf.float32, [None, 2])
    arrays = [tf.TensorArray(tf.float32, size=n + 1, dynamic_size=grows) for grows in (False, True)]
    written = [a.write(0, tf.reduce_sum(x)).size() for a in arrays]
    graph, nodes = planned([*written, tf.shape(x)[0] + 1], {n: 3, x: np.zeros((4, 2))})
    scopes = Scopes(graph, Facts())
    lists = [node.outputs[0] for node in graph.nodes if node.op == "TensorListSetItem"]
    assert sorted([str(length_of(v, scopes) is None) for v in lists]) == ["False", "True"]
    known = next(f for v in lists if (f := length_of(v, scopes)) is not None)
    assert known.number == 1 and known.terms[0][1] == 1
    (rows,) = [v for v in graph.inputs if v.shape]
    assert scopes.dim(rows, 0) == Affine((), 4)


def test_what_is_at_most_so_much_is_taken_for_that_where_it_is_subtracted(planned):
    n = tf.placeholder(tf.int32, [], name="n")
    graph, _ = planned(n + 1, {n: 2})
    facts = Facts()
    base = graph.inputs[0]
    scopes = Scopes(graph, facts)
    rest = Affine(((base, -1),), 6)
    assert not scopes.at_least_zero(rest)
    facts.most[base] = Affine((), 6)
    assert scopes.at_least_zero(rest) and not scopes.at_least_zero(rest.add(-1))
    assert not scopes.at_least_zero(Affine(((base, 1),)))
