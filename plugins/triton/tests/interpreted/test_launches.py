"""Launches per step with the cuda plugin alone and with this one before it, in a golden table: ``launches.json``.

Two sizes of a program tell what one layer costs. Whoever changes the numbers for the better writes the table anew by
``WRITE_GOLDEN=1``.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import graphdock as tf
import numpy as np
import pytest
from graphdock.plugin.host import Host
from graphdock_cuda.testing import find_compiler, toolkit
from graphdock_cuda.testing.install import install
from graphdock_triton import compiling
from graphdock_triton.testing.compiler import InterpretingCompiler

from examples import mlp, transformer

pytestmark = pytest.mark.skipif(find_compiler() is None, reason="there is no C++ compiler for the emulated CUDA")
GOLDEN = Path(__file__).with_name("launches.json")
ALONE, WITH = ("cuda", "cpu"), ("triton", "cuda", "cpu")


def encoder(layers):
    """The transformer of the examples, small, and its training step."""
    random = np.random.RandomState(3)
    shape, vocabulary = [2, 8], 12
    tokens, targets = (tf.placeholder(tf.int32, shape) for _ in range(2))
    weights = tf.placeholder(tf.float32, shape)
    loss = transformer.loss_of(transformer.encode(tokens, vocabulary, 16, 2, layers), targets, weights, vocabulary)
    train = tf.train.AdamOptimizer(0.01).minimize(loss)
    return [loss, train], dict(
        zip((tokens, targets, weights), transformer.sequences(random, *shape, vocabulary), strict=True)
    )


def perceptron(layers):
    """Layers of rectifiers, and their training step by Adam."""
    random = np.random.RandomState(3)
    x, label = tf.placeholder(tf.float32, [6, 16]), tf.placeholder(tf.int32, [6])
    logits = mlp.inference(x, [16] * layers, 16)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=label, logits=logits))
    return [loss, tf.train.AdamOptimizer(0.01).minimize(loss)], {
        x: random.randn(6, 16).astype(np.float32),
        label: random.randint(16, size=6),
    }


def lstm(layers):
    """Layers of LSTM cells over four positions, and their training step."""
    random = np.random.RandomState(3)
    x = tf.placeholder(tf.float32, [3, 4, 8])
    cells = tf.nn.rnn_cell.MultiRNNCell([tf.nn.rnn_cell.BasicLSTMCell(8) for _ in range(layers)])
    outputs, _ = tf.nn.static_rnn(cells, tf.unstack(x, axis=1), dtype=tf.float32)
    loss = tf.reduce_mean(tf.square(tf.stack(outputs) - 0.5))
    return [loss, tf.train.GradientDescentOptimizer(0.5).minimize(loss)], {x: random.randn(3, 4, 8).astype(np.float32)}


def residual(layers):
    """Convolutions with batch norm and a way around each, and their training step."""
    random = np.random.RandomState(3)
    image, label = tf.placeholder(tf.float32, [2, 4, 4, 4]), tf.placeholder(tf.int32, [2])
    y = image
    for _ in range(layers):
        scale, offset = tf.Variable(np.ones(4, np.float32)), tf.Variable(np.zeros(4, np.float32))
        weights = tf.Variable(0.3 * random.randn(3, 3, 4, 4).astype(np.float32))
        normed, _, _ = tf.nn.fused_batch_norm(tf.nn.conv2d(y, weights, [1, 1, 1, 1], "SAME"), scale, offset)
        y = tf.nn.relu(normed + y)
    seen = tf.reduce_mean(y, [1, 2])
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=label, logits=seen))
    return [loss, tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss)], {
        image: random.randn(2, 4, 4, 4).astype(np.float32),
        label: [3, 1],
    }


def dropping(layers):
    """Layers of rectifiers with dropout, and their training step: no mask is written."""
    random = np.random.RandomState(3)
    x, label = tf.placeholder(tf.float32, [6, 16]), tf.placeholder(tf.int32, [6])
    logits = mlp.inference(x, [16] * layers, 16, keep_prob=0.5)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=label, logits=logits))
    return [loss, tf.train.GradientDescentOptimizer(0.1).minimize(loss)], {
        x: random.randn(6, 16).astype(np.float32),
        label: random.randint(16, size=6),
    }


def attending(layers):
    """Layers of attention, whose weights and answers are dropped, and their training step."""
    random = np.random.RandomState(3)
    x = tf.placeholder(tf.float32, [2, 8, 16])
    y = x
    for number in range(layers):
        with tf.variable_scope(f"layer{number}"):
            q, k, v = (tf.reshape(tf.layers.dense(y, 16, name=name), [2, 8, 16]) for name in "qkv")
            weights = tf.nn.softmax(tf.matmul(q, k, transpose_b=True) * 0.25)
            y += tf.nn.dropout(tf.matmul(tf.nn.dropout(weights, rate=0.2), v), rate=0.1)
    loss = tf.reduce_mean(tf.square(y - 0.5))
    return [loss, tf.train.GradientDescentOptimizer(0.1).minimize(loss)], {x: random.randn(2, 8, 16).astype(np.float32)}


def convolutional(layers):
    """Layers of convolutions with bias and activation, as ``tf.layers`` makes them, and their training step."""
    random = np.random.RandomState(3)
    image, label = tf.placeholder(tf.float32, [2, 4, 4, 4]), tf.placeholder(tf.int32, [2])
    y = image
    for _ in range(layers):
        y = tf.layers.conv2d(y, 4, 3, padding="same", activation=tf.nn.relu)
    seen = tf.reduce_mean(y, [1, 2])
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=label, logits=seen))
    return [loss, tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss)], {
        image: random.randn(2, 4, 4, 4).astype(np.float32),
        label: [3, 1],
    }


def clipped(layers):
    """Dense layers, trained by gradients whose global norm is clipped."""
    random = np.random.RandomState(3)
    y = x = tf.placeholder(tf.float32, [6, 8])
    for _ in range(layers):
        y = tf.layers.dense(y, 8, activation=tf.tanh)
    loss = tf.reduce_mean(tf.square(y - 0.5))
    variables = tf.trainable_variables()
    gradients, norm = tf.clip_by_global_norm(tf.gradients(loss, variables), 0.01)
    train = tf.train.GradientDescentOptimizer(0.5).apply_gradients(zip(gradients, variables, strict=True))
    return [norm, loss, train], {x: random.randn(6, 8).astype(np.float32)}


def trained(process_host, program, layers, backends):
    """Losses of three steps, and what the fourth launched."""
    tools, host = toolkit(seed=2), process_host(Host())
    install(host, tools)
    with tf.Graph().as_default():
        tf.set_random_seed(5)
        with tf.variable_scope("net", initializer=tf.random_uniform_initializer(-0.3, 0.3, seed=4)):
            fetches, feed = program(layers)
        with tf.Session(config=tf.SessionConfig(backends=backends), host=host) as session:
            session.run(tf.global_variables_initializer())
            found = [session.run(fetches, feed)[0] for _ in range(3)]
            tools.driver.log.reset()
            session.run(fetches, feed)
            launches = tools.driver.log.table()["kernels"]
    tools.driver.verify()
    return found, launches


@pytest.mark.parametrize(
    "program",
    [
        perceptron,
        *[
            pytest.param(p, marks=pytest.mark.exhaustive)
            for p in (encoder, lstm, residual, convolutional, dropping, attending, clipped)
        ],
    ],
    ids=["perceptron", "encoder", "lstm", "residual", "convolutional", "dropping", "attending", "clipped"],
)
@pytest.mark.sampled(2)
def test_launches_of_a_training_step(process_host, program):
    before = compiling.use(InterpretingCompiler())
    try:
        table = {}
        for layers in (1, 2):
            want, alone = trained(process_host, program, layers, ALONE)
            got, fused = trained(process_host, program, layers, WITH)
            np.testing.assert_allclose(got, want, rtol=1e-4)
            table[f"{layers} layer{'s' * (layers > 1)}"] = {"cuda": alone, "triton, cuda": fused}
    finally:
        compiling.use(before)
    one, two = table.values()
    table["each layer"] = {name: two[name] - one[name] for name in one}
    golden = json.loads(GOLDEN.read_text()) if GOLDEN.exists() else {}
    if os.environ.get("WRITE_GOLDEN") == "1":
        golden[program.__name__] = table
        GOLDEN.write_text(json.dumps(golden, indent=2, sort_keys=True) + "\n")
    assert table == golden[program.__name__]
    assert table["each layer"]["triton, cuda"] <= table["each layer"]["cuda"]
