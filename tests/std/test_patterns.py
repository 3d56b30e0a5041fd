"""Every pattern of std: found where it is written as it says, with its gradients, and the same numbers by other kernels."""

from __future__ import annotations

import dataclasses
import types

import graphdock as tf
import numpy as np
import pytest
from graphdock.contracts import hookimpl
from graphdock.plugin.host import Host
from graphdock_std.patterns import PATTERNS

SIZES = {"x": (2, 3, 4, 5), "gamma": (5,), "beta": (5,), "a": (4, 6), "b": (6, 5), "bias": (5,)}
NUMBERS = {"epsilon": 1e-3, "scale": 0.6}


@pytest.fixture(scope="module")
def host():
    """Patterns that cpus do without are looked for here as well."""
    made = Host()
    everywhere = [dataclasses.replace(p, not_on=()) for p in PATTERNS if p.not_on]
    hook = hookimpl(specname="register_patterns")(lambda: everywhere)
    made.register("lab", types.SimpleNamespace(__name__="lab", register_patterns=hook))
    made.backend("lab")
    return made


def arguments(pattern, random):
    """What enters a pattern, small: placeholders, arrays for them, and numbers that stand in the graph."""
    given, feed = {}, {}
    for name, operand in pattern.inputs.items():
        rank = len(operand.shape)
        if name == "shape":
            given[name] = [2, 2, 5]
        elif name == "seen":
            given[name] = np.tri(4, dtype=np.float32)
        elif name == "low":
            hidden = np.float32(1e9) * (1 - np.tri(4, dtype=np.float32))
            given[name] = hidden if "seen" in pattern.inputs else -hidden
        elif operand.constant:
            given[name] = np.float32(NUMBERS[name])
        else:
            size = SIZES.get(name, (2, 2, 4, 3))[-rank:]
            given[name] = tf.placeholder(tf.float32, (None, *size[1:]) if rank > 2 else size, name=name)
            feed[given[name]] = random.standard_normal(size).astype(np.float32)
    return given, feed


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda p: p.name)
def test_a_pattern_finds_itself(host, process_host, pattern):
    process_host(host)
    random = np.random.default_rng(7)
    with tf.Graph(host=host).as_default():
        given, feed = arguments(pattern, random)
        y = pattern.pattern(**given)
        slopes = tf.gradients(tf.sin(y), list(feed))
        results = []
        for fusion in (True, False):
            with tf.Session(config=tf.SessionConfig(fusion=fusion), host=host) as session:
                if fusion:
                    plan = session.explain([y, *slopes], feed).plan
                results.append(session.run([y, *slopes], feed))
    assert [n.claimed > 0 for n in plan.placement.notes][-1:] == [True], plan.placement.notes
    stands = {name: f"{name}Grad" for name in ("LayerNorm", "RMSNorm", "Attention")} | {"FusedMatMul": "FusedMatMul"}
    ops = [n.op for n in plan.graph.nodes]
    found = [op for op in stands if op in ops]
    assert len(found) == 1 and stands[found[0]] in ops and pattern.anchor not in ops[: ops.index(found[0])]
    for got, want in zip(*results, strict=True):
        np.testing.assert_allclose(got, want, rtol=2e-4, atol=2e-5)


def test_a_mask_that_is_not_causal_stays(host, process_host):
    process_host(host)
    with tf.Graph(host=host).as_default():
        q, k, v = (tf.placeholder(tf.float32, [2, 4, 3]) for _ in range(3))
        low = np.zeros((4, 4), np.float32)
        low[2, 1] = -1e9
        y = tf.matmul(tf.nn.softmax(tf.matmul(q, k, transpose_b=True) * 0.5 + low), v)
        with tf.Session(host=host) as session:
            notes = session.explain(y, {t: np.ones((2, 4, 3), np.float32) for t in (q, k, v)}).plan.placement.notes
    assert [(n.claimed, n.what) for n in notes] == [(0, "the mask is not causal")]


def test_gamma_that_is_no_row_stays(host, process_host):
    """One factor for all columns broadcasts as a row does, and is none."""
    process_host(host)
    with tf.Graph(host=host).as_default():
        x, one, row = (tf.placeholder(tf.float32, s) for s in ([4, 6], [1], [6]))
        d = x - tf.reduce_mean(x, -1, keepdims=True)
        y = d * tf.rsqrt(tf.reduce_mean(tf.square(d), -1, keepdims=True) + 1e-5) * one + row
        feed = {x: np.ones((4, 6)), one: [2.0], row: np.zeros(6)}
        with tf.Session(host=host) as session:
            notes = session.explain(y, feed).plan.placement.notes
    assert [(n.claimed, n.what) for n in notes] == [(0, "gamma and beta are no rows of x"), (0, "gamma is no row of x")]


@pytest.mark.parametrize("dtype", [tf.float16, tf.bfloat16])
def test_an_rms_norm_of_halves_that_is_read_within_stays_and_is_found_otherwise(host, process_host, dtype):
    process_host(host)
    with tf.Graph(host=host).as_default():
        x, gamma = tf.placeholder(dtype, [None, None, 6]), tf.placeholder(dtype, [6])
        inverse = tf.rsqrt(1e-3 + tf.reduce_mean(x * x, [2], keepdims=True))
        y = gamma * (inverse * x)
        feed = {x: np.random.default_rng(3).standard_normal((2, 4, 6)), gamma: np.linspace(0.5, 2.0, 6)}
        with tf.Session(host=host) as session:
            for fetches, claimed in ([y, inverse], False), ([y, *tf.gradients(tf.sin(y), [x, gamma])], True):
                (note,) = session.explain(fetches, feed).plan.placement.notes
                assert (note.claimed > 0) == claimed and (
                    claimed or note.what == "Rsqrt, which lies within, is fetched"
                )
            got = session.run(fetches, feed)
    with tf.Session(config=tf.SessionConfig(fusion=False), graph=y.graph, host=host) as session:
        for a, b in zip(got, session.run(fetches, feed), strict=True):
            np.testing.assert_allclose(a.astype(float), b.astype(float), rtol=0.06, atol=0.06)
