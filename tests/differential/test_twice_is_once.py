"""Each pass twice is each pass once: right after a pass, the same pass finds nothing, in plans of random graphs.

The random programs with branches, loops and variables in ``test_random_programs.py`` are held to it, too.
"""

from __future__ import annotations

import graphdock as tf
import pytest


@pytest.mark.sampled(4)
@pytest.mark.parametrize("part", range(40))
def test_a_pass_twice_is_the_pass_once(again, random_graph, part):
    for seed in range(10 * part, 10 * part + 10):
        made = random_graph.Generator(seed, feeds=2 + seed % 3)
        program = made.grow(10 + seed % 40)
        with tf.Graph().as_default() as graph:
            tensors = program.build()
            fields = {"memory_budget": {"cpu": 64}} if seed % 2 else {}
            with tf.Session(graph=graph, config=tf.SessionConfig(**fields)) as sess:
                fetched = [tensors[int(i)] for i in made.rng.integers(0, len(program.values), 5)]
                sess.run(fetched, {tensors[i]: a for i, a in program.feeds.items()})
    assert sum(times > 0 for times in again.values()) >= 3, again
