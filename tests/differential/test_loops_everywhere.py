"""Random nested conds and loops with their gradients of both orders: each pass and fusion on and off, on other backends, in flight.

What a plain step gives is held against Python's own ``if`` and ``while`` and against differences (:mod:`loop_gradients`); every
other way of running the same graph gives the same, for feeds of other sizes, none among them. A program is run in debug mode, and
in a few of the other ways, which its seed chooses.
"""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest

pytestmark = pytest.mark.modes  # every program runs in debug mode, too
#: What a program is mostly of: matrices of unknown dims and weights, vectors of unknown length, or anything.
FAVOURED = ("um", "ug", "gf", "u", "")


class Everything:
    """The graph of a program, what is fetched, and a variable to which a step that returns nothing adds."""

    def __init__(self, loop_gradients, program):
        self.feeds = [program.feeds() for _ in range(2)]
        floats = loop_gradients.FLOATS
        with tf.Graph().as_default() as self.graph:
            self.fed, values = program.build(self.feeds[0])
            rng = np.random.default_rng(program.seed)
            total = tf.add_n([rng.normal() * tf.reduce_sum(tf.tanh(v)) for k in floats for v in values[k]])
            given = [x for k in floats for x in self.fed[k]]
            first = [tf.convert_to_tensor(g) for g in tf.gradients(total, given) if g is not None]
            inner = tf.add_n([tf.reduce_sum(tf.sin(g)) for g in first])
            second = [tf.convert_to_tensor(g) for g in tf.gradients(inner, given) if g is not None]
            numbers = [v for k in "ilb" for v in values[k][2:]]
            self.fetches = [total, *first, *second, *[v for k in floats for v in values[k][2:]], *numbers]
            self.sums = tf.Variable(np.zeros(len(first) + len(second)))
            with tf.control_dependencies([tf.group(*numbers)]):
                self.step = self.sums.assign_add(tf.stack([tf.reduce_sum(g) for g in first + second])).op

    def run(self, host, fields, in_flight=False):
        """Everything fetched for each feed, and what the steps that return nothing, one behind the other, leave."""
        more = {} if host is None else {"host": host}
        with tf.Session(graph=self.graph, config=tf.SessionConfig(**fields), **more) as sess:
            sess.run(self.sums.initializer)
            given = [{self.fed[k][i]: v for k, vs in feeds.items() for i, v in enumerate(vs)} for feeds in self.feeds]
            found = [sess.run(self.fetches, feed) for feed in given]
            for feed in given if in_flight else ():
                sess.run(self.step, feed)
                sess.run(self.step, feed)
            return [*found, [sess.run(self.sums)]]


def agree(got, want, what):
    for number, (mine, plain) in enumerate(zip(got, want, strict=True)):
        for k, (a, b) in enumerate(zip(map(np.asarray, mine), map(np.asarray, plain), strict=True)):
            assert (a.dtype, a.shape) == (b.dtype, b.shape), f"{what}: step {number}, fetch {k}"
            size = np.abs(b[np.isfinite(b)]).max(initial=1) if b.dtype.kind == "f" else 0
            np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9 * size, err_msg=f"{what}: step {number}, fetch {k}")


def check(loop_gradients, random_loops, ways_to_run, seed):
    program = loop_gradients.small(random_loops, seed, 3 + seed % 3, 1 + seed % 2, FAVOURED[seed % len(FAVOURED)])
    try:
        made = Everything(loop_gradients, program)
        plain = {flying: made.run(None, {}, flying) for flying in (False, True)}
        with ways_to_run.elsewhere(seed) as others:
            ways = [(name, None, fields) for name, fields in ways_to_run.WAYS.items()]
            ways += [(name, host, fields) for name, (host, fields) in others.items()]
            drawn = np.random.default_rng(seed).permutation(len(ways))[:4]
            for name, host, fields in [ways[0], *[ways[k] for k in drawn]]:
                flying = "steps_in_flight" in fields
                agree(made.run(host, fields, flying), plain[flying], name)
        loop_gradients.check(program, lambda graph: tf.Session(graph=graph))
    except Exception as error:
        error.add_note(f"seed {seed}")
        raise


@pytest.mark.parametrize("seed", range(600))
@pytest.mark.sampled(480)
def test_every_way_gives_the_same(loop_gradients, random_loops, ways_to_run, seed):
    check(loop_gradients, random_loops, ways_to_run, seed)
