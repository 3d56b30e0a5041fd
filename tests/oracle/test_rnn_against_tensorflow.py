"""Recurrent cells and networks are TensorFlow 1's: names, shapes, values, states and gradients of the same programs under both."""

from __future__ import annotations

import graphdock as tf
import pytest

from tests.oracle.peer_programs import compare, peer, run

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

HEAD = """
cells = tf.nn.rnn_cell
a = np.random.RandomState(0).normal(size=(3, 5, 4)).astype(np.float32)
x = tf.placeholder(tf.float32, [None, None, 4])
n = tf.placeholder(tf.int32, [None])
feed = {x: a, n: [2, 5, 0]}
def steps(): return tf.unstack(x[:, :5] + tf.zeros([3, 5, 4]), 5, 1)
def flat(s): return [t for v in s for t in flat(v)] if isinstance(s, (list, tuple)) else [s]
def leave(*found, names=True):
    '''Names and shapes of the first, values of all, gradients by variables and inputs.'''
    if names: facts['found'] = [(t.name if 'transpose' in t.name else '', t.shape.as_list()) for t in flat(found[0])]
    facts['kinds'] = [type(f).__name__ for f in found if isinstance(f, tuple)]
    y = tf.concat([tf.reshape(t, [-1]) for t in flat(found)], 0)
    (dx,) = tf.gradients(tf.reduce_sum(tf.sin(y * 2.0)), x)
    record(y, feed, facts=False)
    with tf.Session() as session:
        recorder.fill(session)
        values['dx'] = session.run(dx, feed)
"""

PROGRAMS = {
    "cells": """
h, s = tf.nn.dynamic_rnn(cells.BasicRNNCell(3, activation=tf.nn.relu), x, dtype=tf.float32)
g, t = tf.nn.dynamic_rnn(cells.GRUCell(4), x, dtype=tf.float32, scope='gru', time_major=True)
b, u = tf.nn.dynamic_rnn(cells.BasicLSTMCell(5, forget_bias=0.3), x, dtype=tf.float32, scope='lstm')
c, v = tf.nn.dynamic_rnn(cells.BasicLSTMCell(2, state_is_tuple=False, name='own'), x, dtype=tf.float32, scope='flat')
leave([h, g, b, c], s, t, u, v)
""",
    "peepholes, clips and projection": """
cell = cells.LSTMCell(6, use_peepholes=True, cell_clip=0.3, num_proj=3, proj_clip=0.2, num_unit_shards=2, num_proj_shards=3)
h, s = tf.nn.dynamic_rnn(cell, x, dtype=tf.float32)
g, t = tf.nn.dynamic_rnn(cells.LSTMCell(4, num_proj=2, state_is_tuple=False, initializer=tf.ones_initializer()), x, n,
                         dtype=tf.float32, scope='flat')
leave([h, g], s, t)
""",
    "lengths": """
h, s = tf.nn.dynamic_rnn(cells.MultiRNNCell([cells.LSTMCell(4), cells.GRUCell(3)]), x, n, dtype=tf.float32)
leave(h, s)
""",
    "static": """
cell = cells.MultiRNNCell([cells.BasicLSTMCell(4), cells.BasicLSTMCell(4)])
h, s = tf.nn.static_rnn(cell, steps(), dtype=tf.float32)
g, t = tf.nn.static_rnn(cells.GRUCell(3), steps(), dtype=tf.float32, sequence_length=n, scope='short')
leave(h + g, s, t, names=False)
""",
    "bidirectional": """
h, s = tf.nn.bidirectional_dynamic_rnn(cells.GRUCell(3), cells.LSTMCell(2), x, n, dtype=tf.float32)
g, t = tf.nn.bidirectional_dynamic_rnn(cells.GRUCell(3), cells.GRUCell(2), x, dtype=tf.float32, scope='b', time_major=True)
o, u, v = tf.nn.static_bidirectional_rnn(cells.GRUCell(3), cells.GRUCell(2), steps(), dtype=tf.float32,
                                            sequence_length=n, scope='c')
p, w, _ = tf.nn.static_bidirectional_rnn(cells.GRUCell(3), cells.GRUCell(2), steps(), dtype=tf.float32, scope='d')
leave(list(h + g) + o + p, s, t, u, v, w, names=False)
""",
    "a state that is given, and reuse": """
cell = cells.BasicLSTMCell(4)
state = cell.zero_state(tf.shape(x)[0], tf.float32)
facts['zero'] = [(t.name, t.shape.as_list()) for t in state]
with tf.variable_scope('model'):
    h, s = tf.nn.dynamic_rnn(cell, x, initial_state=state)
with tf.variable_scope('model', reuse=True):
    g, t = tf.nn.dynamic_rnn(cells.BasicLSTMCell(4), x, initial_state=s)
with tf.variable_scope('model'):
    k, u = tf.nn.dynamic_rnn(cell, x, initial_state=t)
out, last = cell(x[:, 0], u)
leave([h, g, k, out], t, u, last)
facts['weights'] = [v.name for v in cell.trainable_weights], [v.name for v in cell.variables]
""",
    "wrappers": """
drop = cells.DropoutWrapper(cells.GRUCell(4), input_keep_prob=1.0, output_keep_prob=tf.constant(1.0), state_keep_prob=1.0, seed=3)
around = cells.ResidualWrapper(drop)
device = cells.DeviceWrapper(cells.LSTMCell(4), '/cpu:0')
twice = cells.ResidualWrapper(device, residual_fn=lambda i, o: o * 2.0 - i)
h, s = tf.nn.dynamic_rnn(cells.MultiRNNCell([around, twice]), x, dtype=tf.float32)
leave(h, s)
facts['sizes'] = around.state_size, twice.output_size
""",
    "a cell of one's own": """
class Own(cells.RNNCell):
    @property
    def state_size(self): return (3, tf.TensorShape([2, 2]))
    @property
    def output_size(self): return 3
    def call(self, inputs, state):
        w = tf.get_variable('w', [4, 3])
        new = tf.tanh(tf.matmul(inputs, w) + state[0])
        return new * 2.0, (new, state[1] + tf.reduce_sum(new))
cell = Own()
h, s = tf.nn.dynamic_rnn(cell, x, n, dtype=tf.float32)
facts['weights'] = [v.name for v in cell.weights]
class Two(cells.RNNCell):
    state_size = 3
    output_size = (3, 4)
    def __call__(self, inputs, state, scope=None):
        with tf.variable_scope(scope or 'two'):
            new = tf.tanh(tf.matmul(inputs[0] + inputs[1], tf.get_variable('w', [4, 3])) + state)
        return (new, inputs[0]), new
(p, q), t = tf.nn.dynamic_rnn(Two(), (x, x * 2.0), n, dtype=tf.float32, scope='nested')
leave([h, p, q], s, t)
""",
    "state saving": """
class Saver:
    kept = {}
    def state(self, name): return tf.ones([3, 4]) * (0.5 if name == 'c' else 0.25)
    def save_state(self, name, value): self.kept[name] = value; return tf.no_op()
h, s = tf.nn.static_state_saving_rnn(cells.LSTMCell(4), steps(), Saver(), ('c', 'h'))
leave(h, s, list(Saver.kept.values()), names=False)
""",
}


@pytest.fixture(scope="module")
def theirs():
    found = peer({name: HEAD + text for name, text in PROGRAMS.items()})
    if found is None:
        pytest.skip("TensorFlow is not installed")
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program(theirs, name):
    compare(run(tf, {name: HEAD + PROGRAMS[name]})[name], theirs[name])
