"""Batches whose padding is no number: values and gradients are TensorFlow's, for it says which padding is read and which is not."""

from __future__ import annotations

import graphdock as tf
import pytest

from tests.oracle.peer_programs import compare, peer, run

pytestmark = [pytest.mark.oracle, pytest.mark.slow]

HEAD = """
cells = tf.nn.rnn_cell
whole = np.random.RandomState(0).normal(size=(3, 5, 4)).astype(np.float32)
def leave(make, lengths=((2, 3, 0), (3, 3, 3), (0, 0, 0), (5, 5, 5), (7, 1, 1)), pads=(0.0, np.nan, np.inf)):
    '''Values and gradients of what is made of a batch and its lengths, for several of both.'''
    x, n = tf.placeholder(tf.float32, [None, None, 4]), tf.placeholder(tf.int32, [None])
    made = [t for t in make(x, n)]
    total = tf.add_n([tf.reduce_sum(tf.sin(t * 2.0)) for t in made])
    wanted = [x, *tf.trainable_variables()]
    grads = tf.gradients(total, wanted)
    facts['shapes'] = [t.shape.as_list() for t in made]
    facts['without gradient'] = [t.name for t, g in zip(wanted, grads) if g is None]
    grads = [tf.convert_to_tensor(g) for g in grads if g is not None]
    with tf.Session() as session:
        recorder.fill(session)
        for count in lengths:
            for pad in pads:
                batch = whole.copy()
                for row, length in zip(batch, count): row[length:] = pad
                values[f'{count} {pad}'] = session.run([made, grads], {x: batch, n: count})
def flat(s): return [t for v in s for t in flat(v)] if isinstance(s, (list, tuple)) else [s]
def steps(x): return tf.unstack(x[:, :5] + tf.zeros([3, 5, 4]), 5, 1)
"""

PROGRAMS = {
    "dynamic_rnn": """
leave(lambda x, n: flat([tf.nn.dynamic_rnn(c, x, n, dtype=tf.float32, scope=str(i)) for i, c in enumerate([
    cells.BasicRNNCell(3), cells.GRUCell(3), cells.MultiRNNCell([cells.LSTMCell(4, use_peepholes=True), cells.GRUCell(3)])])]))
""",
    "dynamic_rnn, time first, int64": """
leave(lambda x, n: flat(tf.nn.dynamic_rnn(cells.LSTMCell(3), tf.transpose(x, [1, 0, 2]), tf.cast(n, tf.int64), dtype=tf.float32,
                                          time_major=True)))
""",
    "a cell that has no value of zeros": """
class Own(cells.RNNCell):
    state_size = output_size = 4
    def call(self, inputs, state):
        new = tf.log(tf.abs(inputs)) * tf.get_variable('w', [4]) + tf.sin(state)
        return new, new
leave(lambda x, n: flat(tf.nn.dynamic_rnn(Own(), x, n, dtype=tf.float32)))
""",
    "bidirectional_dynamic_rnn": """
leave(lambda x, n: flat(tf.nn.bidirectional_dynamic_rnn(cells.GRUCell(3), cells.LSTMCell(2), x, n, dtype=tf.float32)),
      lengths=((2, 3, 0), (3, 3, 3), (0, 0, 0), (5, 5, 5)))
""",
    "static_rnn": """
leave(lambda x, n: flat(tf.nn.static_rnn(cells.GRUCell(3), steps(x), dtype=tf.float32, sequence_length=n)))
""",
    "static_rnn of a cell that has no value of zeros": """
class Own(cells.RNNCell):
    state_size = output_size = 4
    def call(self, inputs, state):
        new = tf.log(tf.abs(inputs)) * tf.get_variable('w', [4]) + tf.sin(state)
        return new, new
leave(lambda x, n: flat(tf.nn.static_rnn(Own(), steps(x), dtype=tf.float32, sequence_length=n)))
""",
    "static_bidirectional_rnn": """
leave(lambda x, n: flat(tf.nn.static_bidirectional_rnn(cells.GRUCell(3), cells.GRUCell(2), steps(x), dtype=tf.float32,
                                                       sequence_length=n)), lengths=((2, 3, 0), (3, 3, 3), (5, 5, 5)))
""",
    "raw_rnn": """
def make(x, n):
    cell = cells.GRUCell(3)
    rows = tf.transpose(x, [1, 0, 2])
    def loop_fn(time, output, state, loop_state):
        done = time >= n
        state = cell.zero_state(tf.shape(x)[0], tf.float32) if output is None else state
        after = tf.cond(tf.reduce_all(done), lambda: tf.zeros([tf.shape(x)[0], 4]), lambda: rows[time])
        after.set_shape([None, 4])
        return done, after, state, output, None
    emitted, last, _ = tf.nn.raw_rnn(cell, loop_fn)
    return [emitted.stack(), last]
leave(make, lengths=((2, 3, 0), (3, 3, 3), (5, 5, 5)))
""",
    "ctc_loss": """
labels = tf.SparseTensor(tf.constant([[0, 0], [1, 0], [1, 1], [2, 0]], tf.int64), tf.constant([1, 2, 0]+[1]), [3, 2])
leave(lambda x, n: [tf.nn.ctc_loss(labels, x, n, time_major=False)], lengths=((2, 3, 1), (3, 3, 3), (5, 5, 5)))
""",
    "reverse_sequence": """
leave(lambda x, n: [tf.where(tf.is_finite(y), y, tf.zeros_like(y)) for y in [tf.reverse_sequence(x, n, 1, 0)]],
      lengths=((2, 3, 0), (3, 3, 3), (5, 5, 5)))
""",
    "masks": """
def make(x, n):
    w = tf.get_variable('w', [4, 3])
    live = tf.sequence_mask(n, tf.shape(x)[1])
    y = tf.tensordot(x, w, 1)
    kept = tf.where(tf.tile(live[:, :, None], [1, 1, 3]), y, tf.zeros_like(y))
    before = tf.where(tf.tile(live[:, :, None], [1, 1, 4]), x, tf.zeros_like(x))
    scores = tf.where(live, tf.reduce_sum(before, 2), tf.fill(tf.shape(live), -1e9))
    largest = tf.where(live, tf.reduce_max(y, 2), tf.zeros_like(scores))
    return [kept, tf.tensordot(before, w, 1), tf.boolean_mask(x, live), tf.nn.softmax(scores), largest]
leave(make, lengths=((2, 3, 0), (3, 3, 3), (5, 5, 5)))
""",
    "map_fn, scan and foldl": """
def make(x, n):
    w = tf.get_variable('w', [4, 4])
    def step(a, b):
        (row, live) = b
        return tf.where(live, tf.tanh(tf.matmul(row, w) + a), a)
    rows, live = tf.transpose(x, [1, 0, 2]), tf.range(tf.shape(x)[1])[:, None] < n[None]
    start = tf.zeros([tf.shape(x)[0], 4])
    one = tf.map_fn(lambda b: tf.where(b[1], tf.log(tf.abs(b[0])), tf.zeros_like(b[0])), (rows, live), dtype=tf.float32)
    return [one, tf.scan(step, (rows, live), start), tf.foldl(step, (rows, live), start), tf.foldr(step, (rows, live), start)]
leave(make, lengths=((2, 3, 0), (3, 3, 3), (5, 5, 5)))
""",
    "a loop that stops": """
def make(x, n):
    w = tf.get_variable('w', [4, 4])
    def step(i, h): return i + 1, tf.where(i < n, tf.tanh(tf.matmul(x[:, i] + h, w)), h)
    start = tf.zeros([tf.shape(x)[0], 4])
    return [tf.while_loop(lambda i, h: i < tf.minimum(5, tf.reduce_max(n)), step, [0, start],
                          shape_invariants=[tf.TensorShape([]), tf.TensorShape([None, 4])])[1]]
leave(make)
""",
    "losses": """
def make(x, n):
    w = tf.get_variable('w', [4, 3])
    live = tf.cast(tf.sequence_mask(n, tf.shape(x)[1]), tf.float32)
    y = tf.tensordot(x, w, 1)
    target = tf.ones_like(y) * 0.5
    return [tf.losses.mean_squared_error(target, y, live[:, :, None]), tf.losses.huber_loss(target, y, live[:, :, None]),
            tf.losses.sparse_softmax_cross_entropy(tf.zeros(tf.shape(y)[:2], tf.int32), y, live),
            tf.losses.absolute_difference(target, y, live[:, :, None], reduction='none')]
leave(make, lengths=((2, 3, 0), (3, 3, 3), (5, 5, 5), (0, 0, 0)))
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
