"""Rules whose update is one op: which inputs it gets, in which order, for which gradient."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.errors import InvalidArgumentError, UnimplementedError
from graphdock_tf1.train.rule import Rule


class Recorder(Rule):
    """Notes what its op would get."""

    def __init__(self, before, rows=False):
        super().__init__(False, "Recorder", {"sum": 2.0, "mean": 0}, rate=0.5, decay=0.25)
        self._before_gradient, self.rows, self.seen = before, rows, []

    def _updates(self):
        return (lambda *given: self._note("dense", given)), (
            (lambda *given: self._note("rows", given)) if self.rows else None
        )

    def _note(self, kind, given):
        self.seen.append((kind, given))
        return tf.no_op()


def seen(rule, gradient):
    w = tf.Variable([1.0, 2.0], name="W")
    rule.apply_gradients([(gradient, w)])
    ((kind, (handle, *rest)),) = rule.seen
    assert handle is w.handle
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        starts = session.run([rule.get_slot(w, name) for name in ("sum", "mean")])
    np.testing.assert_array_equal(starts, [[2.0, 2.0], [0.0, 0.0]])
    assert [t.op.name for t in rest[:2]] == [f"W/Recorder{n}" for n in ("", "_1")]
    return kind, [t.op.name.rpartition("/")[2] for t in rest[2:]]


@pytest.mark.parametrize(
    ("before", "want"),
    [(None, ["rate", "decay", "grad"]), (0, ["grad", "rate", "decay"]), (1, ["rate", "grad", "decay"])],
)
def test_slots_then_scalars_with_the_gradient_among_them(before, want):
    assert seen(Recorder(before), tf.constant([1.0, 1.0], name="grad")) == ("dense", want)


def test_rows_go_to_an_op_of_their_own_where_there_is_one():
    def rows():
        return tf.IndexedSlices(tf.constant([1.0], name="values"), tf.constant([1], name="indices"), tf.constant([2]))

    assert seen(Recorder(1, rows=True), rows()) == ("rows", ["rate", "values", "indices", "decay"])
    with tf.Graph().as_default():
        kind, (first, _, last) = seen(Recorder(1), rows())
    assert (kind, first, last) == ("dense", "rate", "decay")


def test_what_is_refused():
    with pytest.raises(InvalidArgumentError, match="l2_regularization_strength must not be negative"):
        tf.train.ProximalAdagradOptimizer(0.1, l2_regularization_strength=-1.0)
    for kind in (tf.train.AdagradOptimizer, tf.train.ProximalAdagradOptimizer):
        with pytest.raises(InvalidArgumentError, match="initial_accumulator_value must be positive"):
            kind(0.1, initial_accumulator_value=0.0)
    with pytest.raises(UnimplementedError, match="_updates"):
        Rule(False, "R").apply_gradients([(tf.constant(1.0), tf.Variable(1.0))])
