"""Random graphs against a NumPy interpreter: known and unknown shapes, passes on and off, debug mode, fed intermediates."""

from __future__ import annotations

import graphdock as tf
import numpy as np
import pytest
from graphdock.passes.pipeline import simplifications

OFF = dict.fromkeys(simplifications(), False)
pytestmark = pytest.mark.modes  # every program runs in debug mode, too
VARIANTS = {
    "plain": {"passes": OFF, "shape_policy": "exact"},
    "optimised": {"shape_policy": "exact"},
    "generic": {"shape_policy": "generic"},
    "debug": {"debug": True},
    "debug, plain, generic": {"debug": True, "passes": OFF, "shape_policy": "generic"},
}


@pytest.mark.parametrize("unknown", ["nothing", "some", "rank"])
@pytest.mark.parametrize("seed", range(16))
@pytest.mark.sampled(4)
def test_every_variant_agrees_with_the_interpreter(random_graph, seed, unknown):
    made = random_graph.Generator(100 * seed + len(unknown), feeds=2 + seed % 3)
    program = made.grow(8 + 3 * seed)
    rng = made.rng
    fetched = [int(i) for i in rng.integers(0, len(program.values), int(rng.integers(1, 8)))]
    other = {i: made.array(str(a.dtype), a.shape) for i, a in program.feeds.items()}
    inner = dict(program.feeds)
    for i in rng.integers(0, len(program.values), 2):
        array = program.values[int(i)]
        inner[int(i)] = made.array(str(array.dtype), array.shape)
    declared = {i: {"nothing": None, "rank": "rank"}.get(unknown, rng.choice(["", "dims", "rank"])) for i in other}
    with tf.Graph().as_default() as graph:
        tensors = program.build(declared.get)
        for name, fields in VARIANTS.items():
            with tf.Session(graph=graph, config=tf.SessionConfig(**fields)) as sess:
                for feeds in (program.feeds, other, inner, other):
                    expected = program.evaluate(feeds)
                    before = {i: a.copy() for i, a in feeds.items()}
                    got = sess.run([tensors[i] for i in fetched], {tensors[i]: a for i, a in feeds.items()})
                    for i, value in zip(fetched, got, strict=True):
                        random_graph.assert_close(value, expected[i], f"{name}: v{i} of\n{program.listing()}")
                    for i, array in feeds.items():
                        np.testing.assert_array_equal(array, before[i], err_msg=f"{name}: feed v{i} was written")
                    check_own(got)


def check_own(results):
    """Fetched arrays are the caller's: they share no memory with each other, and writing them disturbs no later step."""
    arrays = {id(r): r for r in results if isinstance(r, np.ndarray)}
    for key, a in arrays.items():
        assert not any(np.shares_memory(a, b) for other, b in arrays.items() if other != key)
    for a in arrays.values():
        a.fill(1)


@pytest.mark.parametrize("seed", range(8))
def test_three_devices_compute_what_one_does(random_graph, seed):
    made = random_graph.Generator(5000 + seed)
    program = made.grow(40)
    rng = made.rng
    where = [str(rng.choice(["/cpu:0", "/cpu:1", "/cpu:2", ""])) or None for _ in program.steps]
    results = []
    for scope in (None, where.__getitem__):
        with tf.Graph().as_default() as graph:
            tensors = program.build(scope=scope)
            config = tf.SessionConfig(device_count={"cpu": 3}) if scope else None
            with tf.Session(graph=graph, config=config) as sess:
                feeds = {tensors[i]: a for i, a in program.feeds.items()}
                results.append(sess.run([tensors[i] for i in sorted(tensors)], feeds))
    for one, many in zip(*results, strict=True):
        assert np.asarray(one).tobytes() == np.asarray(many).tobytes()
